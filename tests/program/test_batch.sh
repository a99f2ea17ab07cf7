# Several documents a step: the losses, a run that was stopped and resumed, and what is refused.
# shellcheck disable=SC2086
. tests/lib.sh

losses() { tail -n +2 "$1" | cut -d, -f2; }

# Without learning, the loss of a step is the mean of the losses that its documents have one by one.
microgpt -q --lr 0 --samples 0 --steps 60 --log "$T/one.csv" >"$T/stdout"
for batch in 2 3 5 12 20; do
    microgpt -q --lr 0 --samples 0 --steps $((60 / batch)) --batch $batch --log "$T/batch.csv" >"$T/stdout"
    losses "$T/one.csv" | awk -v n=$batch '{ s += $1 } NR % n == 0 { printf "%.17g\n", s / n; s = 0 }' >"$T/means"
    same "batches of $batch: steps whose loss is not the mean of the documents' losses" "$((60 / batch)) 0" \
        "$(losses "$T/batch.csv" | paste - "$T/means" |
            awk '{ d = $1 - $2; if (!(d < 1e-12 && d > -1e-12)) off++ } END { print NR, off + 0 }')"
done

# A batch of one is what there is without the option; a batch of more learns otherwise.
microgpt >"$T/plain.out"
microgpt --batch 1 >"$T/one.out"
same_file "--batch 1 changes nothing" "$T/plain.out" "$T/one.out"
microgpt --batch 2 >"$T/two.out"
same "--batch 2 does" differ "$(cmp -s "$T/plain.out" "$T/two.out" && echo same || echo differ)"

# A batch that is larger than the number of documents takes them again and again.
head -n 5 data/names.txt >"$T/five.txt"
microgpt -q --data "$T/five.txt" --lr 0 --samples 0 --steps 3 --batch 25 --log "$T/five.csv" >"$T/stdout"
same "five documents in batches of 25: the same loss at every step" "3 1" \
    "$(losses "$T/five.csv" | awk '{ n++; if (!($1 in seen)) kinds++; seen[$1] } END { print n, kinds }')"

# Stopped after any step and resumed, with the batch from the file: the same file, the same log, the same output.
before_exit=
case $CFLAGS in *--coverage*) before_exit=-DBEFORE_EXIT=__gcov_dump ;; esac
$CC $CFLAGS -O1 $before_exit -o "$T/stop_at" tests/faults/stop_at.c $(rest_of "$BUILD/objects" tests/faults/stop_at.c) -lm || exit 1
ln -s "$ROOT/data" "$T/data"
for batch in 2 5 9; do
    set -- --steps 60 --n-layer 2 --block-size 9 --batch $batch
    "$T/stop_at" "$@" --save "$T/whole" --log "$T/whole.csv" >"$T/whole.out"
    for step in 1 23 60; do
        rm -f "$T/part" "$T/part.csv"
        STOP_AT=$step "$T/stop_at" "$@" --save "$T/part" --log "$T/part.csv" >"$T/stdout" 2>"$T/stderr"
        same "batches of $batch, interrupted after step $step" 130 $?
        "$T/stop_at" --resume "$T/part" --save "$T/part" --log "$T/part.csv" >"$T/stdout"
        same_file "batches of $batch, resumed after step $step: the same file" "$T/whole" "$T/part"
        same_file "the same log" "$T/whole.csv" "$T/part.csv"
        tr '\r' '\n' <"$T/whole.out" | awk -v done=$step '!/^step/ || $2 > done' >"$T/want"
        tr '\r' '\n' <"$T/stdout" >"$T/saw"
        same_file "the same remaining steps and samples" "$T/want" "$T/saw"
    done
done

# The batch belongs to the run: another one is refused, and so is one that is none.
microgpt -q --steps 10 --batch 3 --samples 0 --save "$T/three" >"$T/stdout"
cp "$T/three" "$T/kept"
fails 2 "--batch 4: the run in $T/three has 3" microgpt -q --resume "$T/three" --batch 4 --save "$T/three"
same_file "a resume that was refused leaves the file alone" "$T/kept" "$T/three"
check "the same batch may be given" microgpt -q --resume "$T/three" --batch 3 --steps 12
for batch in 0 -1 1.5 x '' 1048577; do
    fails 2 "--batch*" microgpt --batch "$batch"
done
fails 1 "not enough memory: *" microgpt --batch 1048576 --block-size 1000 --n-embd 1024 --n-layer 8
finish
