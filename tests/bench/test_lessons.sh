# The table of what the lessons claim: a few of its rows with two seeds, the changes to gpt() that they make, and the table
# in tests/README.md.
# this file only with ALL=1
. tests/lib.sh

# lessons ARGUMENT...: the script, with a folder of its own.
lessons() { SEEDS=2 BUILD="$BUILD/test_lessons.d" sh tests/bench/lessons "$@" >"$T/table" 2>"$T/errors"; }
has() { same "$1" 1 "$(grep -c -e "$2" "$T/table")"; }

lessons 1 2 3 20 23
same "exit status and errors" "0 " "$? $(cat "$T/errors")"
same "rows" 5 "$(sed 1,2d "$T/table" | grep -c '^| [0-9]* | .* | .* | .*`.* | .* | .* |$')"
has "the parameters do not depend on the heads" 'heads: 4192, 4192, 4192, 4192, 4192 | Holds'
has "heads that begin alike stay alike" 'differ by at most 0 bits'
has "a silent head's columns of attn_wo do not move" ', 0 of the 64 numbers in its columns move, 192 of the 192 others'
has "parameters that shared keys and values leave unused" 'Not used are 128, 256, 384 of 4192 parameters'
lessons 24 25
same "a block in the lesson's order, and a row that cannot be seen" "0 2" "$? $(grep -c '^| 2[45] | ' "$T/table")"
for row in no_such_row 0 99; do
    lessons $row
    same "row $row: exit status" 1 $?
    same "row $row: message" 1 "$(grep -c "^lessons: $row: no such row; there are 1 to " "$T/errors")"
done

# Every row of the script is in tests/README.md, with its claim and its command.
sed -n '/^## The lessons, measured/,$p' tests/README.md >"$T/readme"
sed -n 's/^all_rows="*'"'"'*\([a-z_ $]*\).*/\1/p' tests/bench/lessons | tr ' ' '\n' | grep -c '^[a-z]' >"$T/n"
same "rows of the script, and of the table in tests/README.md" "$(cat "$T/n")" "$(grep -c '^| [0-9]* | .* |$' "$T/readme")"
grep '^| \([1-3]\|20\|23\|24\|25\) | ' "$T/readme" | cut -d '|' -f 2-5 >"$T/shown"
{ lessons 1 2 3 20 23 24 25; sed 1,2d "$T/table"; } | sed "s|$BUILD/test_lessons.d|tests/build|g" | cut -d '|' -f 2-5 >"$T/printed"
same_file "lessons, claims and commands of these rows" "$T/printed" "$T/shown"
finish
