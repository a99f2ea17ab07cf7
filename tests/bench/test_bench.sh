# The benchmark builds without a warning and prints its tables; one round is enough to see that.
# this file only with ALL=1
. tests/lib.sh

case $CFLAGS in
*--coverage*)
    skip "the benchmark" "a build that counts its lines is too slow for its figures"
    finish
    ;;
esac
objects=$BUILD/objects
# shellcheck disable=SC2086,SC2046
if $CC $WARN -Wno-unused-function $CFLAGS $LDFLAGS -I. -o "$T/bench" tests/bench/bench.c \
    $(rest_of "$objects" tests/bench/bench.c) -lm >"$T/log" 2>&1; then
    same "tests/bench/bench.c: warnings" "" "$(head -n 3 "$T/log")"
    "$T/bench" data/names.txt ./microgpt 1 >"$T/table" 2>"$T/errors"
    same "its exit status and errors" "0 " "$? $(cat "$T/errors")"
    same "a row for each size" 11 "$(grep -c ' MB ' "$T/table")"
    # After the name, nine figures above 0: time, tokens, time again, share of the peak, of dgemm (or a dash), entries,
    # values, memory, names.
    same "figures that can be" 11 "$(awk '/ MB / { $0 = substr($0, 32); gsub(/ MB/, ""); n = 0
        for (i = 1; i <= NF; i++) n += $i + 0 > 0 || (i == 5 && $i == "-")
        rows += n == 9 && NF == 9 } END { print rows + 0 }' "$T/table")"
    # One thread, all threads, speed-up, efficiency, against a document alone, share of dgemm.
    same "threads: rows of figures" 21 "$(sed -n '/^training, us/,/^$/p' "$T/table" | awk '/ % / { $0 = substr($0, 32)
        rows += $1 > 0 && $2 > 0 && $3 > 0 && $4 > 0 && $6 > 0 && ($7 > 0 || $7 == "-") && NF == 7 }
        END { print rows + 0 }')"
    same "NumPy's rate, or a word" 1 "$(grep -c "^NumPy's dgemm: [0-9]\|^Beside dgemm: skipped" "$T/table")"
    same "growth with the width: rows of figures" 4 "$(sed -n '/^width/,/^$/p' "$T/table" | awk '/^n_embd/ { n = 0
        for (i = 2; i <= NF; i++) n += $i + 0 > 0
        rows += n == 6 && NF == 7 } END { print rows + 0 }')"
    # After the name of a row, as many figures above 0 as its table has; but ns per position may be anything.
    same "growth with the block: rows of figures" 6 "$(sed -n '/^block:/,/^$/p' "$T/table" | awk '/^block [0-9]/ {
        rows += $3 > 0 && $(NF - 1) > 0 && $NF > 0 && NF == 5 + (rows > 0) } END { print rows + 0 }')"
    # By hand: 3 * (28 * 64 + 12 * 64 * 64 + 2 * 64 * (n + 1) / 2) multiply-adds per token, n = 1024 over n = 32.
    same "the work of attention is counted" 2.20 "$(awk '/^block 1024/ { print $NF }' "$T/table")"
    same "the machine's peak, the start-up, the noise" 3 \
        "$(grep -c "^This machine's peak: [0-9]\|^Start-up .*: [0-9]\|^Noise: .* [0-9.]* times" "$T/table")"
else
    not_ok "tests/bench/bench.c compiles" "success" "$(head -n 3 "$T/log")"
fi
finish
