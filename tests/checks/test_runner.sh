# The tests' own runner: what it runs, counts and says, in a small project of its own.
# this file only with ALL=1
# shellcheck disable=SC2016
. tests/lib.sh

# A project of a few tests that pass, fail, skip, crash and say nothing.
S=$T/project
mkdir -p "$S/tests/some" "$S/tests/others" "$S/support/run" "$S/data"
cp tests/run tests/lib.sh tests/link.sh "$S/tests/"
cp Makefile "$S/"
cp data/microgpt.1 data/manual.awk "$S/data/"
echo 'int engine(void); int engine(void) { return 3; }' >"$S/autograd.c"
echo 'int other(void); int other(void) { return 4; }' >"$S/support/run/other.c"
echo 'int main(void) { return 0; }' >"$S/microgpt.c"
: >"$S/autograd.h"

# test_file NAME LINE...: a test in sh.
test_file()
{
    test_file=$S/tests/$1.sh
    shift
    printf '%s\n' "$@" >"$test_file"
}
lib='. tests/lib.sh'
test_file some/test_good "$lib" 'ok one' '[ -z "$ALL" ] || ok two' finish
test_file some/test_bad "$lib" 'ok one' 'not_ok two this that' finish
test_file others/test_skips "$lib" 'skip one "there is no such thing"' finish
test_file others/test_long '# this file only with ALL=1' "$lib" 'ok "a long one"' finish
test_file others/test_page '# needs microgpt.1' "$lib" 'check "made before" test -f microgpt.1' finish
test_file others/test_crash 'kill -SEGV $$'
test_file others/test_silent true
echo 'int main(void) { return nothing; }' >"$S/tests/some/test_syntax.c"
cat >"$S/tests/some/test_engine.c" <<'END'
// takes long
// also built with -DOTHER
// also built with -DLONG only with ALL=1
#include <stdio.h>
int engine(void);
int main(void)
{
#ifdef LONG
    printf("ok - long\n");
#endif
    printf("%s - the engine is linked\n", engine() == 3 ? "ok" : "not ok");
    return 0;
}
END

# gives WHAT STATUS SUMS ARGUMENT...: make test in that project, as somebody types it; what it says is in $T/said.
gives()
{
    gives_what=$1 expected="$2 $3"
    shift 3
    (unset TESTS ALL JOBS VERBOSE MICROGPT_WRAPPER; cd "$S" && make test CC="$CC" CFLAGS=-O0 LDFLAGS= "$@") \
        >"$T/said" 2>&1 </dev/null
    same "$gives_what" "$expected" "$? $(grep -E '^[0-9]+ passed' "$T/said" | tail -n 1)"
}
said() { if grep -q -e "$2" "$T/said"; then ok "$1"; else not_ok "$1" "'$2'" "'$(cat "$T/said")'"; fi; }

gives "tests that pass" 0 "3 passed, 0 failed" TESTS='good engine'
said "one of three, and how long" "^1 of 3, "
said "three of three" "^3 of 3, "
said "a test with a flag" "tests/some/test_engine.c with -DOTHER: 1 passed"
said "all in all" "3 in "
gives "one at a time" 0 "3 passed, 0 failed" TESTS='good engine' JOBS=1
said "what takes long starts first" '^1 of 3, .*/test_engine.c: 1 passed'
gives "with ALL=1 they do more" 0 "6 passed, 0 failed" TESTS='good engine' ALL=1
gives "a folder, without some of its files" 0 "3 passed, 0 failed" TESTS='some !bad !syntax'
gives "one that fails" 2 "1 passed, 1 failed" TESTS=bad
said "is shown" "^    not ok - two: expected this, saw that"
same "what passed is not" 0 "$(grep -c 'ok - one' "$T/said")"
gives "the same" 2 "1 passed, 1 failed" TESTS=bad VERBOSE=1
said "where what passed is asked for" '^    ok - one'
gives "one that skips" 0 "0 passed, 0 failed, 1 skipped" TESTS=skips
said "says why" "^    skip - one: there is no such thing"
gives "one that crashes" 2 "0 passed, 1 failed" TESTS=crash
gives "one without a check" 2 "0 passed, 1 failed" TESTS=silent
gives "one that does not compile" 2 "0 passed, 1 failed" TESTS=syntax
said "shows the compiler's words" "nothing"
gives "everything that is quick, and what it needs" 0 "4 passed, 0 failed, 1 skipped" TESTS='!bad !crash !silent !syntax'
said "and how much is left to ALL=1" "ALL=1 runs 2 more"
gives "everything" 0 "8 passed, 0 failed, 1 skipped" TESTS='!bad !crash !silent !syntax' ALL=1
gives "a long one by its name" 0 "1 passed, 0 failed" TESTS=long
gives "failures are counted, wherever they are" 2 "5 passed, 4 failed, 1 skipped"

# What nobody meant to type.
gives "no such test" 2 "" TESTS=nosuch
said "no such test: a sentence" "tests/run: no test has nosuch in its name"
gives "one of two is no such test" 2 "" TESTS='good nosuch'
gives "nothing left" 2 "" TESTS='good !good'
said "nothing left: a sentence" "tests/run: no test is left to run"

# As many at a time as are asked for: two that wait for each other end, if they run side by side.
for i in 1 2; do
    test_file some/test_pair$i "$lib" ": >tests/build/here$i" n=0 \
        "while [ ! -e tests/build/here$((3 - i)) ] && [ \$n -lt 100 ]; do sleep 0.1; n=\$((n + 1)); done" \
        '[ $n -lt 100 ] && ok met || not_ok met yes no' finish
done
gives "two at a time" 0 "2 passed, 0 failed" TESTS=pair JOBS=2
same "nothing of a run is left" "" "$(find "$S/tests/build" -name 'run.*')"
finish
