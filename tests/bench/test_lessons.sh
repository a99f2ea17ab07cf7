# The table of what the lessons claim: a few of its rows with two seeds, the changes to gpt() that they make, and what is
# typed to see them.
# this file only with ALL=1
. tests/lib.sh

# lessons ARGUMENT...: the script, with a folder of its own.
lessons() { SEEDS=2 BUILD="$BUILD/test_lessons.d" sh tests/bench/lessons "$@" >"$T/table" 2>"$T/errors"; }
has() { same "$1" 1 "$(grep -c -e "$2" "$T/table")"; }

# shellcheck disable=SC2046
set -- 1 2 3 $(! command -v valgrind >/dev/null 2>&1 || echo 8) 12 20 23 24 25
lessons "$@"
same "exit status and errors" "0 " "$? $(cat "$T/errors")"
same "rows" $# "$(sed 1,2d "$T/table" | grep -c '^| [0-9]* | .* | .* | .* | .* | .* |$')"
has "the parameters do not depend on the heads" 'heads: 4192, 4192, 4192, 4192, 4192 | Holds'
has "heads that begin alike stay alike" 'differ by at most 0 bits'
has "a silent head's columns of attn_wo do not move" ', 0 of the 64 numbers in its columns move, 192 of the 192 others'
has "parameters that shared keys and values leave unused" 'Not used are 128, 256, 384 of 4192 parameters'
same "programs and models in their commands that are not there" '' \
    "$(grep -o 'tests/build/lessons/[a-z0-9.]*' "$T/table" | sort -u | while read -r file; do
        [ -e "$T/lessons/${file##*/}" ] || echo "$file"; done)"
for row in no_such_row 0 99; do
    lessons $row
    same "row $row: exit status" 1 $?
    same "row $row: message" 1 "$(grep -c "^lessons: $row: no such row; there are 1 to " "$T/errors")"
done

# Every row of the script is in tests/README.md.
same "rows of the script, and of the table in tests/README.md" \
    "$(grep -c '^row_[a-z_]*()' tests/bench/lessons)" \
    "$(sed -n '/^## The lessons, measured/,$p' tests/README.md | grep -c '^| [0-9]* | .* |$')"
finish
