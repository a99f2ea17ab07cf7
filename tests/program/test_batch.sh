# Several documents a step: the losses, and what is refused.
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

# A batch of one is what there is without the option.
prints "--batch 1 changes nothing" tests/reference/microgpt-names2018.stdout --batch 1

# A batch that is larger than the number of documents takes them again and again.
head -n 5 data/names.txt >"$T/five.txt"
microgpt -q --data "$T/five.txt" --lr 0 --samples 0 --steps 3 --batch 25 --log "$T/five.csv" >"$T/stdout"
same "five documents in batches of 25: the same loss at every step" "3 1" \
    "$(losses "$T/five.csv" | awk '{ n++; if (!($1 in seen)) kinds++; seen[$1] } END { print n, kinds }')"

fails 1 "not enough memory: *" microgpt --batch 1048576 --block-size 1000 --n-embd 1024 --n-layer 8
finish
