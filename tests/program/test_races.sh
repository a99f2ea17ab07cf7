# Races: ThreadSanitizer and helgrind watch threads share products, lanes, batches, Adam, eval and heads.
# takes long
# this file only with ALL=1
# shellcheck disable=SC2086
. tests/lib.sh

tr '\n' ' ' <data/names.txt | fold -w 120 | head -n 40 >"$T/docs"
ln -s "$ROOT/data" "$T/data"
sources="microgpt.c autograd.c $(echo support/[!d]*/*.c)"
fast='-g -ffp-contract=fast -fno-math-errno -DAUTOGRAD_LANES -pthread'

# watched COMMAND...: runs that share all there is to share. Nothing is reported, and the model is that of one thread.
watched()
{
    for threads in 1 3; do
        rm -f "$T/model.$threads"
        runs "watched, $threads threads: names in a batch" "$@" -q --samples 0 --threads $threads --n-embd 64 --batch 8 --steps 3 \
            --holdout 50 --save "$T/model.$threads"
        runs "watched, $threads threads: a batch in parts" "$@" -q --samples 0 --threads $threads --batch 9 --steps 4
        runs "watched, $threads threads: long documents" "$@" -q --samples 0 --threads $threads --data "$T/docs" --n-embd 64 \
            --block-size 128 --steps 2
    done
    same_file "three threads: the same model" "$T/model.1" "$T/model.3"
    runs "watched: eval" "$@" eval "$T/model.3" --docs 40 --threads 3 -q
    runs "watched: heads" "$@" heads "$T/model.3" --docs 20 --threads 3
}

# runs WHAT COMMAND...: it succeeds, and standard error is silent.
runs()
{
    what=$1
    shift
    "$@" >"$T/out" 2>"$T/errors"
    same "$what" "0" "$?$(head -c 2000 "$T/errors")"
}

if echo 'int main(void) { return 0; }' | $CC -fsanitize=thread -x c -o "$T/try" - 2>/dev/null && "$T/try" 2>/dev/null; then
    check "a build for ThreadSanitizer" $CC -O2 -march=native $fast -fsanitize=thread -o "$T/sanitized" $sources -lm
    watched "$T/sanitized"
else
    skip "ThreadSanitizer" "$CC has none here"
fi

# valgrind knows AVX2, but not every processor's wider vectors.
if command -v valgrind >/dev/null 2>&1 && echo '#include <valgrind/helgrind.h>' | $CC -E -x c - >/dev/null 2>&1; then
    march=$($CC -march=haswell -E -x c /dev/null >/dev/null 2>&1 && grep -q avx2 /proc/cpuinfo 2>/dev/null && echo -march=haswell)
    check "a build for helgrind" $CC -O2 $march $fast -DAUTOGRAD_HELGRIND -o "$T/helgrind" $sources -lm
    watched valgrind -q --tool=helgrind --error-exitcode=99 "$T/helgrind"
else
    skip "helgrind" "there is no valgrind, or none of its headers"
fi
finish
