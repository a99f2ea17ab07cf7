# The house: what is at the top level, who includes whom, and how the code is laid out.
. tests/lib.sh

# Three files to read, what surrounds them in one folder, and nothing else beside data, tests, README and Makefile.
if git rev-parse --git-dir >/dev/null 2>&1; then
    same "the top level" "LICENSE Makefile README.md autograd.c autograd.h data microgpt.c support tests " \
        "$(git ls-files | sed 's|/.*||' | grep -v '^\.' | LC_ALL=C sort -u | tr '\n' ' ')"
else
    skip "the top level" "not a clone: which files are sources is not known"
fi

# The rooms of support/: what a file in each may include.
includes()
{
    for file in $1; do
        sed -n 's/^#include "\([^"]*\)".*/\1/p' "$file" | while read -r header; do
            from=$(cd "$(dirname "$file")" && cd "$(dirname "$header")" && pwd -P)
            echo "${from#"$(pwd -P)"}/$(basename "$header")" | sed 's|^/||'
        done
    done | sort -u | grep -vE "^($2)$" | tr '\n' ' '
}
same "base/ knows no model" "" "$(includes 'support/base/*.[ch]' 'support/base/.*')"
same "engine/ knows autograd.h alone" "" "$(includes 'support/engine/*.[ch]' 'autograd.h|support/engine/.*')"
same "run/ knows of engine/ how it is installed" "" \
    "$(includes 'support/run/*.[ch]' 'support/(run|base)/.*|autograd.h|support/engine/(faster|threads).h|support/debugger/views.h')"
same "autograd.c knows its header alone" "" "$(includes 'autograd.[ch]' 'autograd.h')"
same "microgpt.c knows autograd.h and model.h" "" "$(includes microgpt.c 'autograd.h|support/run/model.h')"
same "no product file includes anything from tests/" "" "$(grep -ln '#include ".*tests/' ./*.[ch] support/*/*.[ch])"

# One width for the three files, one for the rest.
same "the three files have 76 columns" "" "$(awk 'length > 76 { print FILENAME ":" FNR }' autograd.[ch] microgpt.c)"
if [ -n "$ALL" ] && command -v clang-format >/dev/null 2>&1; then
    ls ./*.[ch] support/*/*.[ch] tests/*.h tests/*/*.[ch] | grep -v '^\./[^am]' | while read -r file; do
        clang-format "$file" | cmp -s - "$file" || echo "$file"
    done >"$T/unformatted"
    same "clang-format changes nothing" "" "$(tr '\n' ' ' <"$T/unformatted")"
elif [ -n "$ALL" ]; then
    skip "clang-format changes nothing" "there is no clang-format"
fi

finish
