# Where a word helps: notes, hints, samples that are new.
. tests/lib.sh
B=./microgpt
M=$T/model
printf 'anna\nbob\ncara\ndora\nemma\nfay\n' >"$T/six"
SIZES="--data $T/six --n-embd 4 --n-head 2 --block-size 8 --steps 20"

# notes WHAT EXPECTED OPTION...: what microgpt says on standard error; -q leaves only that documents of --data are cut, and
# standard output is the same.
notes()
{
    notes_what=$1 expected=$2
    shift 2
    microgpt "$@" >"$T/stdout" 2>"$T/stderr" </dev/null
    same "$notes_what" "0: $expected" "$?: $(cat "$T/stderr")"
    microgpt "$@" -q >"$T/quiet" 2>"$T/stderr" </dev/null
    status=$?
    case " $* " in *' --data '*) cut=$(echo "$expected" | grep ' cut to the block ') ;; *) cut= ;; esac
    same "$notes_what: with -q" "0: $cut" "$status: $(cat "$T/stderr")"
    tr '\r' '\n' <"$T/stdout" | grep -v '^step' >"$T/want"
    tr '\r' '\n' <"$T/quiet" >"$T/saw"
    same_file "$notes_what: the rest of standard output is the same" "$T/want" "$T/saw"
}

# Documents that are cut, and a byte-order mark.
notes "whole documents" "" $SIZES
notes "four letters in a block of four: the end is cut off" \
    "microgpt: note: $T/six: 4 of 6 documents are cut to the block of 4; --block-size 5 keeps them whole" $SIZES --block-size 4
printf 'ann\nbobby\nal\n' >"$T/three"
notes "one document is cut" "microgpt: note: $T/three: 1 of 3 documents is cut to the block of 4; --block-size 6 keeps it whole" \
    --data "$T/three" --n-embd 4 --steps 3 --block-size 4
notes "the lesson's block" \
    "microgpt: note: the shipped names: 4830 of 32178 documents are cut to the block of 8; --block-size 16 keeps them whole" \
    --recipe lesson --steps 3
mark=$(printf '\357\273\277')
{ printf %s "$mark" && cat "$T/six"; } >"$T/marked"
notes "a byte-order mark" \
    "microgpt: note: $T/marked: begins with a byte-order mark, which is skipped" $SIZES --data "$T/marked"
microgpt $SIZES >"$T/want"
microgpt $SIZES --data "$T/marked" >"$T/saw" 2>"$T/stderr"
same_file "and then it is the same run" "$T/want" "$T/saw"
microgpt $SIZES --data - --block-size 3 <"$T/marked" >"$T/stdout" 2>"$T/stderr"
same "both at once, of standard input" 2 "$(grep -c '^microgpt: note: standard input: ' "$T/stderr")"
fails 2 "--prompt anna: too long: *" $B $SIZES --block-size 4 --prompt anna
what="where something is wrong, that alone is said" fails 1 "*: No such file or directory" $B $SIZES --block-size 4 --save "$T/nowhere/model"

# The other commands: notes, and -q.
microgpt $SIZES --block-size 4 --samples 0 -q --save "$M" >"$T/stdout"
cut_of_six="microgpt: note: $T/six: 4 of 6 documents are cut to the block of 4; --block-size 5 keeps them whole"
notes "eval" "$cut_of_six" eval "$M" --data "$T/six"
printf 'bob\nfay\nanna\n' >"$T/three"
notes "eval of documents that are whole" "" eval "$M" --data "$T/three" --docs 2
notes "heads" "$cut_of_six" heads "$M" --data "$T/six"

# Hints.
fails 2 "names.txt: no such command; to train on it: --data names.txt" $B names.txt
fails 2 "./names: no such command; to train on it: --data ./names" $B ./names
for model in names.safetensors ./none.safetensors; do
    fails 2 "$model: no such command; for a saved model: microgpt sample|eval|heads|page*" $B "$model"
done
(cd "$T" && "$ROOT/microgpt" six) >"$T/stdout" 2>"$T/stderr"
want=2 pattern="six: no such command; to train on it: --data six" fails_as_said "a file that is there" $?
for typo in sampel:sample evla:eval tran:train haeds:heads; do
    fails 2 "${typo%:*}: no such command; did you mean ${typo#*:}? See microgpt --help" $B "${typo%:*}"
done
for command in train sample eval heads page; do
    microgpt $command --help >"$T/want"
    prints "help $command" "$T/want" help $command
    prints "--help $command" "$T/want" --help $command
done
microgpt --help >"$T/want"
prints "help" "$T/want" help
fails 2 "nonsense: no such command; see microgpt --help" $B help nonsense
fails 2 "nonsense: one argument too many; see microgpt train --help" $B --help nonsense
fails 2 "--holdout 10%: not a whole number, but a share; how many? For 100: --holdout 100" $B --holdout 10%
fails 1 "$T/six: not a model file, but a text; to train on it: --data FILE" $B --resume "$T/six"
fails 1 "README.md: not a model file, but a text; *" $B sample README.md
for typo in verison:version hlep:help temprature:temperature setps:steps seeds:seed batchs:batch n_embd:n-embd; do
    fails 2 "--${typo%:*}: no such option; did you mean --${typo#*:}? See microgpt train --help" $B "--${typo%:*}"
done
fails 2 "--smaples: no such option; did you mean --samples? See microgpt sample --help" $B sample "$M" --smaples 3
# Quiet, and nothing to print: no heading.
same "-q --samples 0: no heading" "num docs: 6|vocab size: 12|num params: 320" \
    "$(microgpt $SIZES -q --samples 0 | paste -s -d '|' -)"
same "--samples 0: the heading is there" 1 "$(microgpt $SIZES --samples 0 | grep -c '^--- ')"
same "-q: the heading is there" 1 "$(microgpt $SIZES -q | grep -c '^--- ')"

# Samples that are new.
model=$T/names.safetensors
microgpt -q --samples 0 --save "$model" >"$T/stdout"
microgpt sample "$model" --samples 60 >"$T/sixty"
grep -v -x -F -f data/names.txt "$T/sixty" | awk '!seen[$0]++' >"$T/want"
microgpt sample "$model" --new --samples "$(wc -l <"$T/want")" >"$T/saw"
same_file "--new: the samples that are not in the shipped names, each once" "$T/want" "$T/saw"
check "and those are fewer" [ "$(wc -l <"$T/want")" -lt 60 ]
microgpt sample "$model" --new --samples 3000 --temperature 1 >"$T/many"
same "three thousand: all different, none in the list" "3000 3000 0" \
    "$(wc -l <"$T/many" | tr -d ' ') $(sort -u "$T/many" | wc -l | tr -d ' ') $(grep -c -x -F -f data/names.txt "$T/many")"
awk '!seen[$0]++' "$T/sixty" >"$T/different"
microgpt sample "$model" --new --samples "$(wc -l <"$T/different")" --data "$T/six" >"$T/saw" 2>"$T/stderr"
same "--new --data of another list says so" \
    "microgpt: note: $T/six: not the documents that $model was trained on; samples may repeat those" "$(cat "$T/stderr")"
same_file "--new --data FILE: compared with that file" "$T/different" "$T/saw"
notes "--new --data of its own list" "" sample "$model" --new --samples 1 --data data/names.txt
stdout_may=yes
fails 1 "no more new names: 1 of 20 found, and then none in 1000 samples; a higher --temperature may help" \
    $B sample "$model" --new --temperature 0
same "what was found is printed" 1 "$(wc -l <"$T/stdout" | tr -d ' ')"
cp "$T/stdout" "$T/likeliest"
fails 1 "no more new names: 0 of 5 found, and then none in 1000 samples; *" \
    $B sample "$model" --new --temperature 0 --samples 5 --data "$T/likeliest" -q
stdout_may=
check "--new --samples 0: nothing to find" microgpt sample "$model" --new --samples 0 --temperature 0
fails 2 "--data needs --new" $B sample "$model" --data "$T/six"
fails 1 "$T/none: No such file or directory" $B sample "$model" --new --data "$T/none"
fails 1 "not enough memory" $B sample "$model" --new --samples 9007199254740992
fails 2 "--new: no such option; see microgpt train --help" $B --new
finish
