# --scalar: microgpt.c and autograd.c compute everything, atom by atom, and nothing else shows.
. tests/lib.sh
R=tests/reference

prints "--scalar: microgpt" "$R/microgpt-names2018.stdout" --scalar
notes_may=yes prints "--scalar: lesson" "$R/lesson-names2018.stdout" --scalar --recipe lesson

# The other commands that take it say what they say without it.
microgpt -q --samples 0 --steps 30 --save "$T/model" >"$T/out"
for command in 'sample' 'eval --docs 50' 'heads --docs 50' 'heads maria'; do
    name=${command%% *} rest=${command#"$name"}
    # shellcheck disable=SC2086
    microgpt $name "$T/model" $rest >"$T/fast.out"
    # shellcheck disable=SC2086
    prints "$command --scalar" "$T/fast.out" $name "$T/model" $rest --scalar
done
microgpt heads "$T/model" --docs 20 --tsv >"$T/fast.tsv"
microgpt heads "$T/model" --docs 20 --tsv --scalar >"$T/scalar.tsv"
same "heads --tsv: how many lines, and how many numbers differ by more than 1e-12" "5 0" \
    "$(paste "$T/fast.tsv" "$T/scalar.tsv" | awk 'NR > 1 { for (i = 1; i <= NF / 2; i++) { d = $i - $(i + NF / 2); apart += !(d * d <= 1e-24) } }
    END { print NR, apart + 0 }')"
fails 2 '*--scalar*' microgpt page "$T/model" --scalar

# A batch, and a run that goes on: the figures are those of the fast engine.
for way in '' --scalar; do
    rm -f "$T/run" "$T/log$way"
    # shellcheck disable=SC2086
    microgpt -q --samples 0 --steps 5 --batch 9 --n-layer 2 --save "$T/run" --log "$T/log$way" $way >"$T/out"
    # shellcheck disable=SC2086
    microgpt -q --samples 0 --steps 8 --resume "$T/run" --save "$T/run" --log "$T/log$way" $way >"$T/out"
done
same "batches, resumed: how many losses, and how many differ by more than 1e-12" "8 0" \
    "$(paste -d , "$T/log" "$T/log--scalar" | awk -F , 'NR > 1 { d = $2 / $5 - 1; n++; apart += !(d * d <= 1e-24) }
    END { print n, apart + 0 }')"
same "what a model file says of it" 0 "$(head -c 4000 "$T/run" | grep -ac scalar)"

# Anyone can build it by hand. Such a build is scalar, so it is slower, but it prints the same bytes.
# shellcheck disable=SC2086
check "cc -O2 microgpt.c autograd.c support/base/*.c support/engine/*.c support/run/*.c -lm" $CC -O2 $LDFLAGS -o "$T/by hand" \
    microgpt.c autograd.c support/base/*.c support/engine/*.c support/run/*.c -lm
(cd / && "$T/by hand" --data "$ROOT/data/names.txt") >"$T/hand.out" 2>"$T/errors"
same_file "a build by hand: its output" "$R/microgpt-names2018.stdout" "$T/hand.out"

finish
