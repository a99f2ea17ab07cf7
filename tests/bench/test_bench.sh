# The benchmark builds without a warning and prints its table; one round is enough to see that.
# this file only with ALL=1
. tests/lib.sh

# shellcheck disable=SC2086
if $CC $WARN -Wno-unused-function $CFLAGS $LDFLAGS -o "$T/bench" tests/bench/bench.c -lm >"$T/log" 2>&1; then
    same "tests/bench/bench.c: warnings" "" "$(head -n 3 "$T/log")"
    "$T/bench" data/names.txt ./microgpt 1 >"$T/table" 2>"$T/errors"
    same "its exit status and errors" "0 " "$? $(cat "$T/errors")"
    same "a row for each size" 6 "$(grep -c ' % .* MB' "$T/table")"
    # Every figure is above 0: time, tokens, share of the peak, lines, values, memory, names.
    same "figures that can be" 6 "$(awk -F '  +' '/ MB / { n = 0; for (i = 2; i <= NF; i++) n += $i + 0 > 0
        if (n >= 6) rows++ } END { print rows + 0 }' "$T/table")"
    same "the machine's peak and the start-up" 2 "$(grep -c "^This machine's peak: [0-9]\|^Start-up .*: [0-9]" "$T/table")"
else
    not_ok "tests/bench/bench.c compiles" "success" "$(head -n 3 "$T/log")"
fi
finish
