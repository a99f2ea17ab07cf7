# The tests' own runner: what it runs, counts and says, in a small project of its own.
# this file only with ALL=1
. tests/lib.sh

# A project of a few tests that pass, fail, skip, crash and say nothing.
S=$T/project
mkdir -p "$S/tests/some" "$S/tests/others"
cp tests/run tests/lib.sh tests/link.sh "$S/tests/"
mkdir -p "$S/support/run"
cp Makefile "$S/"
mkdir "$S/data"
cp data/microgpt.1 data/manual.awk "$S/data/"
echo 'int engine(void); int engine(void) { return 3; }' >"$S/autograd.c"
echo 'int other(void); int other(void) { return 4; }' >"$S/support/run/other.c"
echo 'int main(void) { return 0; }' >"$S/microgpt.c"
: >"$S/autograd.h"
test_file() { cat >"$S/tests/$1"; }
test_file some/test_good.sh <<'END'
. tests/lib.sh
ok one
[ -z "$ALL" ] || ok two
finish
END
test_file some/test_bad.sh <<'END'
. tests/lib.sh
ok one
not_ok two this that
finish
END
test_file others/test_skips.sh <<'END'
. tests/lib.sh
skip one "there is no such thing"
finish
END
test_file others/test_long.sh <<'END'
# this file only with ALL=1
. tests/lib.sh
ok "a long one"
finish
END
test_file others/test_page.sh <<'END'
# needs microgpt.1
. tests/lib.sh
check "made before" test -f microgpt.1
finish
END
test_file others/test_crash.sh <<'END'
kill -SEGV $$
END
test_file others/test_silent.sh <<'END'
true
END
test_file some/test_engine.c <<'END'
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
test_file some/test_syntax.c <<'END'
int main(void) { return nothing; }
END

# typed ARGUMENT...: make test in that project, as somebody types it; what it says in $T/said, its status in $status.
typed()
{
    (unset TESTS ALL JOBS VERBOSE MICROGPT_WRAPPER; cd "$S" && make test CC="$CC" CFLAGS=-O0 LDFLAGS= "$@") \
        >"$T/said" 2>&1 </dev/null
    status=$?
    last=$(grep -E '^[0-9]+ passed' "$T/said" | tail -n 1)
}
said() { if grep -qF -e "$2" "$T/said"; then ok "$1"; else not_ok "$1" "'$2'" "'$(cat "$T/said")'"; fi; }

typed TESTS='good engine'
same "tests that pass" "0 3 passed, 0 failed" "$status $last"
said "one of three, and how long" "1 of 3, "
said "three of three" "3 of 3, "
said "a test with a flag" "tests/some/test_engine.c with -DOTHER: 1 passed"
said "all in all" "3 in "
typed TESTS='good engine' JOBS=1
same "what takes long starts first" 1 "$(grep -c '^1 of 3, .*/test_engine.c: 1 passed' "$T/said")"
typed TESTS='good engine' ALL=1
same "with ALL=1 they do more" "0 6 passed, 0 failed" "$status $last"
typed TESTS='some !bad !syntax' JOBS=1
same "a folder, without some of its files" "0 3 passed, 0 failed" "$status $last"
typed TESTS=bad
same "one that fails" "2 1 passed, 1 failed" "$status $last"
said "is shown" "    not ok - two: expected this, saw that"
same "what passed is not" 0 "$(grep -c 'ok - one' "$T/said")"
typed TESTS=bad VERBOSE=1
same "unless it is asked for" 1 "$(grep -c '^    ok - one' "$T/said")"
typed TESTS=skips
same "one that skips" "0 0 passed, 0 failed, 1 skipped" "$status $last"
said "says why" "    skip - one: there is no such thing"
typed TESTS=crash
same "one that crashes" "2 0 passed, 1 failed" "$status $last"
typed TESTS=silent
same "one without a check" "2 0 passed, 1 failed" "$status $last"
typed TESTS=syntax
same "one that does not compile" "2 0 passed, 1 failed" "$status $last"
said "shows the compiler's words" "nothing"
typed TESTS='!bad !crash !silent !syntax'
same "everything that is quick, and what it needs" "0 4 passed, 0 failed, 1 skipped" "$status $last"
said "and how much is left to ALL=1" "ALL=1 runs 2 more"
typed TESTS='!bad !crash !silent !syntax' ALL=1
same "everything" "0 8 passed, 0 failed, 1 skipped" "$status $last"
typed TESTS=long
same "a long one by its name" "0 1 passed, 0 failed" "$status $last"
typed
same "failures are counted, wherever they are" "2 5 passed, 4 failed, 1 skipped" "$status $last"

# What nobody meant to type.
typed TESTS=nosuch
same "no such test: status" 2 "$status"
said "no such test: a sentence" "tests/run: no test has nosuch in its name"
typed TESTS='good nosuch'
said "one of two is no such test" "tests/run: no test has nosuch in its name"
same "and the other does not run" "2 " "$status $last"
typed TESTS='good !good'
said "nothing left" "tests/run: no test is left to run"
same "nothing left: status" 2 "$status"

# As many at a time as are asked for: two that wait for each other end, if they run side by side.
for i in 1 2; do
    test_file some/test_pair$i.sh <<END
. tests/lib.sh
: >tests/build/here$i
n=0
while [ ! -e tests/build/here$((3 - i)) ] && [ \$n -lt 100 ]; do
    sleep 0.1
    n=\$((n + 1))
done
[ \$n -lt 100 ] && ok met || not_ok met yes no
finish
END
done
typed TESTS=pair JOBS=2
same "two at a time" "0 2 passed, 0 failed" "$status $last"
same "nothing of a run is left" "" "$(find "$S/tests/build" -name 'run.*')"
finish
