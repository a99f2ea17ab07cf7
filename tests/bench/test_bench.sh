# The benchmark builds without a warning and prints its table; one round is enough to see that.
# this file only with ALL=1
. tests/lib.sh

# shellcheck disable=SC2086
if $CC $WARN -Wno-unused-function $CFLAGS $LDFLAGS -o "$T/bench" tests/bench/bench.c -lm >"$T/log" 2>&1; then
    same "tests/bench/bench.c: warnings" "" "$(head -n 3 "$T/log")"
    "$T/bench" data/names.txt ./microgpt 1 >"$T/table" 2>"$T/errors"
    same "its exit status and errors" "0 " "$? $(cat "$T/errors")"
    same "a row for each size" 11 "$(grep -c ' % .* MB' "$T/table")"
    # After the name, nine figures above 0: time, tokens, time again, share of the peak, lines, values, memory twice, names.
    same "figures that can be" 11 "$(awk '/ MB / { $0 = substr($0, 32); gsub(/ (%|MB)/, ""); n = 0
        for (i = 1; i <= NF; i++) n += $i + 0 > 0
        rows += n == 9 && NF == 9 } END { print rows + 0 }' "$T/table")"
    same "the machine's peak and the start-up" 2 "$(grep -c "^This machine's peak: [0-9]\|^Start-up .*: [0-9]" "$T/table")"
else
    not_ok "tests/bench/bench.c compiles" "success" "$(head -n 3 "$T/log")"
fi
finish
