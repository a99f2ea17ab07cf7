# The benchmark builds without a warning and prints its tables; one round is enough to see that.
# this file only with ALL=1
. tests/lib.sh

case $CFLAGS in *--coverage*) skip "the benchmark" "a build that counts its lines is too slow for it"; finish ;; esac
mkdir -p .build
# shellcheck disable=SC2086
if ! $CC $WARN $CFLAGS $LDFLAGS -I. -o "$T/bench" tests/bench/bench.c support/base/processors.c -lm >"$T/log" 2>&1; then
    not_ok "tests/bench/bench.c compiles" "success" "$(head -n 3 "$T/log")"
    finish
fi
same "tests/bench/bench.c: warnings" "" "$(head -n 3 "$T/log")"
"$T/bench" data/names.txt ./microgpt 1 >"$T/table" 2>"$T/errors"
same "its exit status and errors" "0 " "$? $(cat "$T/errors")"

# rows START N WHAT: in the table that begins so are N rows, whose figures after the name are WHAT: each above 0, but shares
# of dgemm (-) may be a dash.
rows()
{
    same "rows of figures: $1" "$2" "$(awk -v start="$1" -v what="$3" '
        index($0, start) == 1 { on = NR } $0 == "" { on = 0 }
        on && NR > on + 1 {
            gsub(/ MB| %/, "")
            n = split(substr($0, 33), figure, " "); good = n == length(what)
            for (i = 1; i <= n; i++) good = good && (figure[i] > 0 || figure[i] == "-" && substr(what, i, 1) == "-")
            count += good
        }
        END { print count + 0 }' "$T/table")"
}
rows 'training, one thread' 11 'tttp-mn'
rows 'training, us per document' 21 'ttsst-'
rows 'width: 2 layers' 4 'ptprr'
rows 'block: n_embd 64' 6 'trr'

# By hand: 3 * (28 * 64 + 12 * 64 * 64 + 2 * 64 * (n + 1) / 2) multiply-adds per token, n = 1024 over n = 32.
same "the work of attention is counted" 2.20 "$(awk '/^block 1024/ { print $NF }' "$T/table")"
same "the machine's peak, the start-up, the noise, NumPy's rate or a word" 4 \
    "$(grep -c "^This machine's peak: [0-9]\|^Start-up .*: [0-9]\|^Noise: .* [0-9.]* times\|^NumPy's dgemm: [0-9]\|^Beside dgemm: skipped" "$T/table")"
finish
