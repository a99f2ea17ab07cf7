# The table of what the lessons claim: a few of its rows with two seeds, and the changes to gpt() that they make.
# this file only with ALL=1
. tests/lib.sh

# lessons ARGUMENT...: the script, with a folder of its own.
lessons() { SEEDS=2 BUILD="$BUILD/test_lessons.d" sh tests/bench/lessons "$@" >"$T/table" 2>"$T/errors"; }

lessons parameters slices silent_head shared_keys
same "exit status and errors" "0 " "$? $(cat "$T/errors")"
same "rows" 6 "$(sed 1,2d "$T/table" | grep -c '^| .* | .*`.* | .* |$')"
same "the parameters do not depend on the heads" 1 "$(grep -c 'heads: 4192, 4192, 4192, 4192, 4192 |$' "$T/table")"
same "a silent head's columns of attn_wo do not move" 1 \
    "$(grep -c ': 0 of the 64 numbers in its columns move, 192 of the 192 others' "$T/table")"
same "parameters that shared keys and values leave unused" "128 256 384" \
    "$(grep -o '; [0-9]* [of 0-9]*parameters' "$T/table" | awk '{ printf "%s%s", sep, $2; sep = " " }')"
lessons no_such_row
same "an unknown row: exit status" 1 $?
same "an unknown row: message" 1 "$(grep -c '^lessons: no_such_row: no such row' "$T/errors")"
finish
