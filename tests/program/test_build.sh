# Builds with other flags, and with ALL=1 other compilers: no warning, and the same output. And what make fetches.
# takes long
. tests/lib.sh
R=$ROOT/tests/reference

# The sources, in a folder of their own.
S=$T/source
mkdir -p "$S"
cp -R Makefile microgpt.c autograd.c autograd.h support data LICENSE "$S"
rm -f "$S/data/makemore.txt"

# built WHAT COMPILER FLAGS: make without a word of warning, and both recipes to the byte.
built()
{
    if ! command -v "$2" >/dev/null 2>&1; then
        skip "$1" "there is no $2"
        return
    fi
    # Without flags, those that the Makefile chooses for this compiler: not the ones that this run was started with.
    if ! ([ -n "$3" ] || unset CFLAGS; make -s -B -C "$S" CC="$2" ${3:+"CFLAGS=$3"} LDFLAGS=) >"$T/make.log" 2>&1; then
        not_ok "$1" "make to succeed" "$(grep -m 1 error "$T/make.log" || head -n 1 "$T/make.log")"
        return
    fi
    same "$1: warnings" "" "$(head -n 3 "$T/make.log")"
    (cd / && "$S/microgpt") >"$T/stdout" 2>"$T/stderr"
    same_file "$1: microgpt" "$R/microgpt-names2018.stdout" "$T/stdout"
    (cd / && "$S/microgpt" --recipe lesson) >"$T/stdout" 2>"$T/stderr"
    same_file "$1: lesson" "$R/lesson-names2018.stdout" "$T/stdout"
}

if [ -n "$ALL" ]; then
    built "$CC -O1, plain C11 engine" "${CC%% *}" '-O1 -DAUTOGRAD_LANES -DAUTOGRAD_PLAIN'
    built "gcc" gcc ''
    built "gcc -O2 -std=c11" gcc '-O2 -std=c11'
    built "clang" clang ''
fi

# What make says to people: what to do next, and what there is to do.
make -C "$S" CC="$CC" CFLAGS=-O0 LDFLAGS= >"$T/make.log" 2>&1
same "a bare make says what to do next" "./microgpt is ready. Next: make run, make test" \
    "$(sed -n 's/^\(.*make test\) or .*/\1/p' "$T/make.log")"
same "make all is the same; make -s says nothing" "$(make -C "$S" all CC="$CC" CFLAGS=-O0 LDFLAGS= | grep -c 'is ready') " \
    "1 $(make -s -C "$S" CC="$CC" CFLAGS=-O0 LDFLAGS=)"
make -s help >"$T/help"
missing=
for target in $(sed -n 's/^\.PHONY: //p' Makefile); do
    case $target in always | objects) continue ;; esac
    grep -q "^  make $target  *[a-z]" "$T/help" || missing="$missing $target"
done
same "targets that make help leaves out" "" "$missing"
same "make help fits 100 columns" "" "$(awk 'length > 100' "$T/help")"

# Scripts that people start can be run.
missing=
for file in $(find tests support -type f ! -path 'tests/build/*' ! -name 'test_*.sh'); do
    [ "$(head -c 2 "$file" | tr -d '\0')" != '#!' ] || [ -x "$file" ] || missing="$missing $file"
done
same "scripts that cannot be run" "" "$missing"

# Other flags are another program; the same flags are not.
for case in "the same flags|-O0|" "other flags|-O0 -DAUTOGRAD_PLAIN|-O0 -DAUTOGRAD_PLAIN"; do
    name=${case%%|*} rest=${case#*|}
    make -s -C "$S" CC="$CC" CFLAGS=-O0 LDFLAGS=
    same "make again with $name" "${rest#*|}" \
        "$(make --no-print-directory -C "$S" CC="$CC" CFLAGS="${rest%|*}" LDFLAGS= | sed -n 's/.*\(-O0.*[^ ]\) -pthread *-o microgpt .*/\1/p')"
done

# One build makes the program and nothing else but its flags; cleaning takes all of it away.
find "$S" -type f | sed "s|$S/||" | sort >"$T/after"
(git ls-files Makefile microgpt.c autograd.c autograd.h support data LICENSE 2>/dev/null; echo microgpt) |
    sort >"$T/expected"
if [ "$(wc -l <"$T/expected")" -gt 2 ]; then
    grep -v '^\.build/' "$T/after" >"$T/beside"
    same_file "make leaves the program and its objects, nothing else" "$T/expected" "$T/beside"
else
    skip "make leaves the program and nothing else" "not a clone: which files are sources is not known"
fi
check "make clean" make -s -C "$S" clean
same "what make clean leaves of the program" "" "$(find "$S" -name 'microgpt' -o -name '*.o')"

# The names of the published run: right, or not there at all.
nothing_left()
{
    same "$1: what is left of it" "" "$(find "$S/data" -name 'makemore*')"
}
if command -v curl >/dev/null 2>&1; then
    for case in "a wrong file|file://$ROOT/data/README.md|*not the file expected*" \
        "an unreachable file|file://$T/none.txt|*" "an empty file|file://$T/empty|*not the file expected*"; do
        name=${case%%|*} rest=${case#*|}
        : >"$T/empty"
        make -s -C "$S" data/makemore.txt MAKEMORE_URL="${rest%%|*}" >"$T/make.log" 2>&1
        status=$?
        # shellcheck disable=SC2254
        case "$status $(cat "$T/make.log")" in
        0*) not_ok "make data/makemore.txt, $name" "a failure" "status 0" ;;
        *${rest#*|}) ok "make data/makemore.txt, $name: fails" ;;
        *) not_ok "make data/makemore.txt, $name" "'${rest#*|}'" "'$(cat "$T/make.log")'" ;;
        esac
        nothing_left "make data/makemore.txt, $name"
    done
    sum=$( (sha256sum data/names.txt || shasum -a 256 data/names.txt) 2>/dev/null | cut -d ' ' -f 1)
    check "make data/makemore.txt, the right file" make -s -C "$S" data/makemore.txt \
        MAKEMORE_URL="file://$ROOT/data/names.txt" MAKEMORE_SHA="$sum"
    same_file "make data/makemore.txt, the right file: its bytes" data/names.txt "$S/data/makemore.txt"
    same "make data/makemore.txt, the right file: nothing beside it" "" "$(find "$S/data" -name '*.part')"
    same "the shipped names are the ones they should be" \
        a311634f5113663f131a60cd0c76afb8420199991dbd9045773b8a2949ada835 "$sum"
else
    skip "make data/makemore.txt" "there is no curl"
fi
finish
