# The house: what is at the top level, who includes whom, and how the code is laid out.
. tests/lib.sh

# Three files to read, what surrounds them in one folder, and nothing else beside data, tests, README and Makefile.
if git rev-parse --git-dir >/dev/null 2>&1; then
    same "the top level" "LICENSE Makefile README.md autograd.c autograd.h data microgpt.c support tests " \
        "$(git ls-files | sed 's|/.*||' | grep -v '^\.' | LC_ALL=C sort -u | tr '\n' ' ')"
else
    skip "the top level" "not a clone: which files are sources is not known"
fi

# row FILE: how high a room is. It may include its own row and those below; the engine's speed knows the engine alone.
row()
{
    case $(basename "$1" | sed 's/\.[ch]$//') in
    output | random | text | processors) echo 1 ;;
    files | json | safetensors) echo 2 ;;
    options | command_line | model | job | memory | batch | prove | holdout | checkpoint | progress | log | training | samples | heads | maps | votes | page | views | notes | source | places | graph | tour) echo 3 ;;
    commands) echo 4 ;;
    microgpt) echo 5 ;;
    autograd | fast | faster | lanes | kernels | softmax | products | tiles | adam | plan | threads) echo engine ;;
    *) echo unknown ;;
    esac
}
wrong=
for file in microgpt.c autograd.c autograd.h support/*.[ch] support/debugger/*.[ch]; do
    from=$(row "$file")
    [ "$from" != unknown ] || wrong="$wrong $file has no row;"
    for header in $(sed -n 's/^#include "\([^"]*\)".*/\1/p' "$file"); do
        to=$(row "$header")
        case $from:$to in
        engine:engine | [3-5]:engine) ;;
        engine:* | *:engine | *:unknown) wrong="$wrong $file includes $header;" ;;
        *) [ "$to" -le "$from" ] || wrong="$wrong $file includes $header;" ;;
        esac
    done
done
same "a file of a lower row includes no header of a higher one" "" "$wrong"
same "fast.h is private to the engine" "" \
    "$(grep -l 'include ".*fast\.h"' microgpt.c autograd.h support/*.[ch] | grep -v 'lanes\|kernels\|softmax\|products\|tiles\|adam\|plan\|threads\|fast')"
same "no product file includes anything from tests/" "" "$(grep -ln '#include ".*tests/' ./*.[ch] support/*.[ch] support/debugger/*.[ch])"

# One width for the three files, one for the rest.
if command -v clang-format >/dev/null 2>&1; then
    ls ./*.[ch] support/*.[ch] support/debugger/*.[ch] tests/*.h tests/*/*.[ch] | grep -v '^\./[^am]' | while read -r file; do
        clang-format "$file" | cmp -s - "$file" || echo "$file"
    done >"$T/unformatted"
    same "clang-format changes nothing" "" "$(tr '\n' ' ' <"$T/unformatted")"
else
    skip "clang-format changes nothing" "there is no clang-format"
fi

# Anyone can build it by hand.
check "cc -O2 microgpt.c autograd.c support/*.c -lm" $CC -O2 -o "$T/by hand" microgpt.c autograd.c support/*.c -lm
(cd / && "$T/by hand" --data "$ROOT/data/names.txt") >"$T/stdout" 2>"$T/stderr"
same_file "its output" tests/reference/microgpt-names2018.stdout "$T/stdout"
finish
