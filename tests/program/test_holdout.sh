# Documents held out: which ones count, when their loss is measured, what is said about it; the same model, samples and
# losses as without measuring.
# shellcheck disable=SC2086
. tests/lib.sh

# A list of 300 lines, 30 of them twice, and a list of which every held-out line is also a training line.
head -n 270 data/names.txt >"$T/list"
head -n 30 data/names.txt >>"$T/list"
{ cat "$T/list" && cat "$T/list"; } >"$T/twice"
train="--data $T/list --holdout 60"

# --- which ones: the last after the shuffle, which the losses of all six show: a model that learned nothing has the same
# loss of each document as the first step that takes it. The others are taken in turn.
# Six documents of one letter: every loss has two tokens, and the mean over tokens is that of the documents.
printf 'a\nb\nc\nd\ne\nf\n' >"$T/letters"
plain="--data $T/letters --n-embd 4 --n-head 2 --block-size 8 --lr 0 --steps 6 -q --samples 0"
microgpt $plain --log "$T/six.csv" >"$T/stdout"
for n in 1 2 5; do
    microgpt $plain --holdout $n --log "$T/some.csv" >"$T/stdout"
    same "--holdout $n: the others are taken in turn" \
        "$(awk -F , -v n=$n 'NR > 1 && NR <= 7 - n { loss[NR - 2] = $2 } END { for (i = 0; i < 6; i++) print loss[i % (6 - n)] }' "$T/six.csv")" \
        "$(awk -F , 'NR > 1 { print $2 }' "$T/some.csv")"
    same "--holdout $n: the loss of the last $n" \
        "held out: $n docs, loss $(awk -F , -v n=$n 'NR > 7 - n { sum += $2 } END { printf "%.4f", sum / n }' "$T/six.csv")" \
        "$(tail -n 1 "$T/stdout")"
done
microgpt --steps 20 --samples 3 --holdout 0 >"$T/want"
microgpt --steps 20 --samples 3 --holdout 30 >"$T/saw" 2>"$T/stderr"
same "--holdout among a step's lines: a line of its own" "1 held out: 23 docs, loss" \
    "$(grep -c '^held out: ' "$T/saw") $(sed -n 's/^\(held out: .* loss\) [0-9]*\.[0-9][0-9][0-9][0-9]$/\1/p' "$T/saw")"
same "and the same steps and samples" "$(cat "$T/want")" "$(sed '/^held out/{N;d;}' "$T/saw")"
for n in 6 9007199254740992; do
    fails 2 "--holdout $n: nothing is left to train on: there are 6 documents" microgpt $plain --holdout $n
done

# --- measuring changes nothing: the sums of losses and the model are those of a program that measures at the end alone
microgpt $train --steps 3 -q --samples 5 --save "$T/few" --log "$T/few.csv" >"$T/few.out"
microgpt $train --steps 400 --samples 5 --save "$T/all" --log "$T/all.csv" >"$T/all.out" 2>"$T/all.err"
microgpt $train --steps 400 --samples 0 -q --save "$T/quiet" >"$T/quiet.out"
same_file "--quiet, without a log: the same model" "$T/all" "$T/quiet"
same "a heading with the column" "step,loss,lr,held_out" "$(head -n 1 "$T/all.csv")"
same "twenty measurements, evenly spaced" "$(seq 20 20 400 | paste -s -d ' ' -)" \
    "$(awk -F , 'NR > 1 && $4 != "" { print $1 }' "$T/all.csv" | paste -s -d ' ' -)"
same "few steps: after each" "3 3" "$(wc -l <"$T/few.csv" | awk '{ print $1 - 1 }') $(grep -c '[0-9]$' "$T/few.csv" | awk '{ print $1 - 0 }')"
# Held-out lines that are known do not count. Which lines are trained on is seen where every line has a loss of its own.
n=$(sed -n 's/^held out: \([0-9]*\) docs, loss .*/\1/p' "$T/all.out")
same "a note says how many are left out" \
    "microgpt: note: $((60 - n)) of the 60 documents held out are also in the training data and are left out" \
    "$(sed -n 1p "$T/all.err")"
check "and those are some: $n of 60 count" [ "$n" -gt 40 -a "$n" -lt 60 ]
microgpt eval "$T/all" --data "$T/list" --holdout 2>"$T/err" >"$T/eval"
same "eval --holdout: as many" "docs $n" "$(sed -n 1p "$T/eval")"
same "the figure that training measured last, to the last digit" "$(tail -n 1 "$T/all.csv" | cut -d , -f 4)" \
    "$(sed -n 's/^loss //p' "$T/eval")"
same "and printed" "held out: $n docs, loss $(awk '/^loss/ { printf "%.4f", $2 }' "$T/eval")" "$(grep '^held' "$T/all.out")"
# Without the ones that are left out, the loss over all lines is a sum of three: trained on, held out, known.
for threads in 1 3; do
    microgpt eval "$T/all" --data "$T/list" --holdout --threads $threads 2>"$T/err" >"$T/saw"
    same_file "with $threads threads, too" "$T/eval" "$T/saw"
done
# By hand: a list of letters, of which `a` and `b` are there twice. A model that learned nothing has for each line the loss
# that eval finds for it alone; the lines held out are those that the first 26 steps do not take.
for letter in a b c d e f g h i j a b k l; do echo $letter; done >"$T/letters"
letters="--data $T/letters --n-embd 4 --n-head 2 --block-size 4 --lr 0 -q --samples 0 --holdout 5"
for seed in 1 2 3; do
    microgpt $letters --seed $seed --steps 9 --save "$T/model" --log "$T/log.csv" >"$T/out" 2>"$T/err"
    for letter in a b c d e f g h i j a b k l; do
        echo $letter >"$T/one"
        microgpt eval "$T/model" --data "$T/one" | sed -n 's/^loss //p'
    done >"$T/losses"
    want=$(awk -F , 'NR == FNR { if (FNR > 1) seen[sprintf("%.9f", $2)] = 1; next }
        { key = sprintf("%.9f", $1) } !(key in seen) { n++; sum += $1 }
        END { printf "held out: %d docs, loss %.4f", n, sum / n }' "$T/log.csv" "$T/losses")
    same "seed $seed: lines that are also trained on do not count" "$want" "$(tail -n 1 "$T/out")"
done
# Nothing is left.
microgpt --data "$T/twice" --holdout 3 --steps 5 --samples 0 --save "$T/none" --log "$T/none.csv" >"$T/out" 2>"$T/err"
same "all are known: no loss" "held out: 0 docs: all 3 are also training documents" "$(grep '^held' "$T/out")"
same "and no loss in the log" "step,loss,lr,held_out 5" "$(head -n 1 "$T/none.csv") $(grep -c ',$' "$T/none.csv")"
fails 1 "--holdout: nothing to measure: all 3 documents held out are also in the training data" \
    microgpt eval "$T/none" --data "$T/twice" --holdout -q

# --- eval --holdout, and eval without it
fails 2 "--holdout: $T/list: not the documents that $T/none was trained on" microgpt eval "$T/none" --data "$T/list" --holdout
microgpt -q --samples 0 --steps 1 --data "$T/list" --save "$T/plain" >"$T/out"
fails 2 "--holdout: $T/plain was trained without --holdout" microgpt eval "$T/plain" --data "$T/list" --holdout
microgpt eval "$T/all" --data "$T/list" >"$T/out" 2>"$T/err"
same "eval says that the figure includes what was trained on" \
    "microgpt: note: $T/all was trained on most of these documents; --holdout takes only the others" "$(cat "$T/err")"
microgpt eval "$T/all" --data "$T/list" -q >"$T/saw" 2>"$T/err"
same "but not with -q" "" "$(cat "$T/err")"
same_file "and the figures are the same" "$T/out" "$T/saw"
head -n 40 data/names.txt >"$T/other"
microgpt eval "$T/all" --data "$T/other" >"$T/out" 2>"$T/err"
same "eval of other documents: no such note" "" "$(cat "$T/err")"
microgpt eval "$T/all" --data "$T/list" --holdout --docs 7 2>"$T/err" >"$T/out"
same "--holdout --docs 7" "docs 7" "$(sed -n 1p "$T/out")"
same "--holdout --docs 1000: all there are" "docs $n" "$(microgpt eval "$T/all" --data "$T/list" --holdout --docs 1000 2>"$T/err" | sed -n 1p)"

# --- a sample, of more than 500
microgpt --holdout 3000 --steps 40 -q --samples 3 --save "$T/large" --log "$T/large.csv" >"$T/large.out"
microgpt eval "$T/large" --holdout -q >"$T/eval"
same "of the shipped names, 2583 of 3000 count" "docs 2583 held out: 2583 docs" \
    "$(sed -n 1p "$T/eval") $(sed -n 's/^\(held out: .*\), .*/\1/p' "$T/large.out")"
same "the last measurement is of all" "$(sed -n 's/^loss //p' "$T/eval")" "$(tail -n 1 "$T/large.csv" | cut -d , -f 4)"
microgpt --holdout 3000 --steps 40 -q --samples 0 --lr 0 --save "$T/still" --log "$T/still.csv" >"$T/out"
same "the others are of the first 500" "$(microgpt eval "$T/still" --holdout --docs 500 -q | sed -n 's/^loss //p')" \
    "$(awk -F , 'NR > 1 && $1 < 40 && $4 != "" { print $4 }' "$T/still.csv" | sort -u)"

# --- a log of an earlier version, of three columns, goes on with three.
microgpt $train --steps 40 -q --samples 0 --save "$T/part" --log "$T/part.csv" >"$T/out" 2>"$T/err"
cut -d , -f 1-3 "$T/part.csv" >"$T/three.csv"
microgpt --data "$T/list" --resume "$T/part" --steps 60 -q --samples 0 --log "$T/three.csv" >"$T/out" 2>"$T/err"
same "three columns stay three" "0 60 step,loss,lr 0" \
    "$? $(tail -n 1 "$T/three.csv" | cut -d , -f 1) $(head -n 1 "$T/three.csv") $(grep -c ',.*,.*,' "$T/three.csv")"
same "the page reads both" "0 0" "$(microgpt page "$T/part" --data "$T/list" --log "$T/part.csv" >"$T/page"; echo $?) \
$(microgpt page "$T/part" --data "$T/list" --log "$T/three.csv" >"$T/page"; echo $?)"
for row in '1,2' '1,2,3' '1,2,3,x' '1,2,3,4,5' '1,2,3,nan' '1,2,3,,'; do
    { head -n 1 "$T/part.csv" && echo "$row"; } >"$T/bad.csv"
    fails 1 "$T/bad.csv:2: not the step,loss,lr of the next step" microgpt page "$T/part" --data "$T/list" --log "$T/bad.csv"
done

# --- what is said after the run
said() { microgpt "$@" 2>&1 >"$T/out" | grep 'note: held out' | sed 's/.*note: //'; }
head -n 60 data/names.txt >"$T/small"
microgpt --data "$T/small" --holdout 20 --steps 3000 --samples 0 --log "$T/small.csv" >"$T/out" 2>"$T/err"
lowest=$(awk -F , 'NR > 1 && $4 != "" && (!n++ || $4 < low) { low = $4; step = $1 } END { printf "%d (loss %.2f)", step, low }' "$T/small.csv")
rise=$(awk -F , 'NR > 1 && $4 != "" { if (!n++ || $4 < low) low = $4; last = $4 } END { printf "%.2f", last - low }' "$T/small.csv")
case $(grep 'note: held out' "$T/err") in
"microgpt: note: held out: lowest at step $lowest; since then it has risen by $rise, to "*" above the training loss: the model memorizes; try --steps ${lowest%% *}")
    ok "a model that memorizes: when it was lowest, and what to try" ;;
*) not_ok "a model that memorizes: when it was lowest, and what to try" "lowest at step $lowest; risen by $rise" "$(cat "$T/err")" ;;
esac
case $(said --holdout 3000 --samples 0 --steps 1000) in
"held out: "*" above the training loss; lowest at the end" | "held out: "*" above the training loss; lowest at step "*", but within two standard errors ("*") of the last")
    ok "a model that does not: no advice" ;;
*) not_ok "a model that does not: no advice" "lowest at the end, or nearly" "$(cat "$T/out")" ;;
esac
same "one document held out: no standard error, no advice" 1 \
    "$(said --data "$T/small" --holdout 1 --steps 3000 --samples 0 | grep -c 'above the training loss; one document is too few to say more$')"

# --- passes
often() { microgpt --samples 0 "$@" 2>&1 >"$T/out" | sed -n 's/^microgpt: note: \([0-9]* steps: .*\)/\1/p'; }
ending="; that often, a model memorizes them: try fewer --steps, or --holdout N to see"
same "each line 21 times: a note" "21 steps: each of the 1 documents about 21 times$ending" "$(echo anna | often --data - --steps 21)"
same "20 times: none" "" "$(echo anna | often --data - --steps 20)"
same "batches count" "100 steps: each of the 60 documents about 27 times$ending" "$(often --data "$T/small" --steps 100 --batch 16)"
same "with --holdout it is seen anyway" "" "$(often --data "$T/small" --steps 100 --batch 16 --holdout 20)"
same "with weight decay it may be right" "" "$(often --data "$T/small" --steps 100 --batch 16 --weight-decay 0.3)"
finish
