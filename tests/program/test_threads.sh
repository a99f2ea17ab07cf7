# Threads: the same bytes for every number of them, in training, resumed runs, eval and heads; interrupts; threads that
# cannot be started. tests/engine/test_threads.c tests the pool itself.
# takes long
# shellcheck disable=SC2086
. tests/lib.sh

tr '\n' ' ' <data/names.txt | fold -w 140 | head -n 60 >"$T/docs"
counts='2 3 7 16'

# same_models OPTION...: the model and the log of one thread, and those of more.
same_models()
{
    rm -f "$T/one" "$T/one.csv"
    microgpt -q --samples 0 --threads 1 "$@" --save "$T/one" --log "$T/one.csv" >"$T/one.out"
    differ=
    for threads in $counts; do
        rm -f "$T/more" "$T/more.csv"
        microgpt -q --samples 0 --threads $threads "$@" --save "$T/more" --log "$T/more.csv" >"$T/more.out"
        cmp -s "$T/one" "$T/more" && cmp -s "$T/one.csv" "$T/more.csv" && cmp -s "$T/one.out" "$T/more.out" ||
            differ="$differ $threads"
    done
    same "$*: numbers of threads that change a byte" "" "$differ"
}

same_models --steps 20 --batch 16
same_models --steps 4 --n-embd 64 --batch 16
same_models --steps 5 --n-embd 128
same_models --steps 2 --data "$T/docs" --n-embd 64 --n-layer 2 --block-size 128
same_models --steps 2 --data "$T/docs" --n-embd 50 --n-head 5 --block-size 77 --batch 3
same_models --steps 2 --data "$T/docs" --n-embd 72 --n-head 2 --block-size 300 --batch 2 --activation relu2
tr '\n' ' ' <data/names.txt | fold -w 211 | awk '{ print substr($0, 1, 125 + 7 * NR) }' | head -n 12 >"$T/lengths"
same_models --steps 2 --data "$T/lengths" --n-embd 40 --n-head 2 --block-size 300 --batch 5
same_models --steps 30 --batch 5 --holdout 100 --recipe lesson
if [ -n "$ALL" ]; then
    same_models --steps 2 --data "$T/docs" --n-embd 128 --n-layer 4 --block-size 128
    same_models --steps 2 --data "$T/docs" --n-embd 256 --n-head 16 --n-layer 2 --block-size 100 --batch 2
    for n_embd in 17 33 65 100 129 200; do
        for block in 13 64 131; do
            same_models --steps 2 --data "$T/docs" --n-embd $n_embd --n-head 1 --block-size $block --batch 2
        done
    done
fi

# Begun with one number of threads and resumed with another.
set -- -q --samples 0 --batch 16 --n-embd 32
for pair in '1 2' '2 1' '3 16'; do
    rm -f "$T/part"
    STOP=${pair% *}
    # A run that ends early is saved as it is; the steps in the file are those of the whole run.
    microgpt "$@" --steps 12 --threads "$STOP" --save "$T/part" --save-every 5 >"$T/out"
    microgpt -q --samples 0 --resume "$T/part" --steps 15 --threads "${pair#* }" --save "$T/part" >"$T/out"
    [ "$pair" != '1 2' ] || cp "$T/part" "$T/first"
    same_file "resumed, threads $pair: the same file" "$T/first" "$T/part"
done

# eval, heads, held-out documents.
microgpt -q --samples 0 --steps 200 --n-embd 32 --n-layer 2 --save "$T/model" >"$T/out"
for command in 'eval --docs 501' 'eval --docs 1' 'heads --docs 101 --tsv' 'heads anna'; do
    set -- $command
    name=$1
    shift
    microgpt $name "$T/model" --threads 1 "$@" >"$T/one.out"
    for threads in $counts; do
        microgpt $name "$T/model" --threads $threads "$@" >"$T/more.out"
        same_file "$command --threads $threads" "$T/one.out" "$T/more.out"
    done
done
# Too many; a command that takes none.
fails 2 "--threads 1025: out of range: 1 to 1024" microgpt --threads 1025
fails 2 "*--threads*" microgpt sample "$T/model" --threads 2

# An interrupt during shared work: the step is finished and saved.
rm -f "$T/saved"
# shellcheck disable=SC2086
timeout -s INT 1 $MICROGPT_WRAPPER ./microgpt -q --data "$T/docs" --n-embd 64 --block-size 128 --threads 3 --steps 1000000 \
    --save "$T/saved" >"$T/out" 2>"$T/errors"
same "interrupted: what it says" "microgpt: interrupted after step N of 1000000; saved in $T/saved" \
    "$(sed -n '/interrupted/{s/after step [0-9]*/after step N/; s/; to continue: .*//; p;}' "$T/errors")"
check "the model is there" microgpt eval "$T/saved" --data "$T/docs" --docs 2

# Threads that cannot be started: a note, and the same model.
cat >"$T/few.c" <<'END'
#include <pthread.h>
static int few(pthread_t *t, const pthread_attr_t *a, void *(*f)(void *), void *x)
{
    static int left = FEW;
    return left-- > 0 ? pthread_create(t, a, f, x) : 11;
}
#define pthread_create few
#include "./support/engine/threads.c"
int microgpt_main(int argc, char **argv);
int main(int argc, char **argv) { return microgpt_main(argc, argv); }
END
if case $CFLAGS in *-DAUTOGRAD_LANES*) : ;; *) false ;; esac; then
    ln -s "$ROOT/data" "$T/data"
    for few in 0 1 2 7; do
        check "a program in which $few threads start" $CC $CFLAGS $LDFLAGS -O1 -pthread -D_XOPEN_SOURCE=700 -DFEW=$few -I. \
            -o "$T/few.$few" "$T/few.c" $(rest_of "$BUILD/objects" "$T/few.c") -lm
    done
    "$T/few.2" --samples 0 --threads 8 --steps 2 --n-embd 128 --batch 16 --save "$T/few.model" >"$T/out" 2>"$T/errors"
    same "its status and note" "0 microgpt: note: 5 of 8 threads could not be started; the result is the same" \
        "$? $(cat "$T/errors")"
    # Few lanes, and products by columns; tests/faults/test_matrix.sh lets each of the threads fail in more sizes.
    for sizes in '--batch 16' '--n-embd 64 --batch 8'; do
        set -- -q --samples 0 --threads 8 --steps 1 $sizes
        rm -f "$T/all.model"
        "$T/few.7" "$@" --save "$T/all.model" >"$T/out"
        for few in 0 1 2; do
            rm -f "$T/few.model"
            "$T/few.$few" "$@" --save "$T/few.model" >"$T/out" 2>"$T/errors"
            same_file "$sizes: $few of 7 threads start" "$T/all.model" "$T/few.model"
        done
    done
else
    skip "threads that cannot be started" "this build has none"
fi
finish
