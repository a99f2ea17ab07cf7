# Saving, resuming, sampling, logs and interrupts: what a run leaves behind, and what it does when it cannot.
# shellcheck disable=SC2086
# takes long
# needs microgpt.1
. tests/lib.sh
dir=$T
M=$PWD/microgpt

# Runs the program: its exit status in $status, its standard error in $said.
run() {
    "$@" >"$dir/stdout" 2>"$dir/stderr"
    status=$?
    said=$(cat "$dir/stderr")
}
refuses() { # WHAT STATUS PATTERN COMMAND...
    what=$1
    shift
    stdout_may=yes
    fails "$@"
}
leftovers() { # in a folder: names that are no one's
    find "$1" -name '*.part' | wc -l | tr -d ' '
}

# --- a whole run: the file, its names, its log
run "$M" --save "$dir/a" --log "$dir/a.csv"
same "a run that saves ends well" 0 "$status"
cp "$dir/stdout" "$dir/a.out"
"$M" >"$dir/plain.out"
same_file "saving and logging do not change the output" "$dir/plain.out" "$dir/a.out"
sed -n 's/^sample ..: //p' "$dir/a.out" >"$dir/a.names"
same "there are 20 names" 20 "$(wc -l <"$dir/a.names" | tr -d ' ')"
"$M" sample "$dir/a" >"$dir/names"
same_file "sample prints the names that training printed" "$dir/a.names" "$dir/names"
"$M" sample "$dir/a" --seed 42 >"$dir/names"
same_file "and so it does with the seed of the training" "$dir/a.names" "$dir/names"
"$M" --seed 7 --steps 50 --save "$dir/seven" >"$dir/stdout"
sed -n 's/^sample ..: //p' "$dir/stdout" >"$dir/names7"
"$M" sample "$dir/seven" >"$dir/names43"
same_file "and so it does after a training with another seed" "$dir/names7" "$dir/names43"
"$M" sample "$dir/a" --seed 43 >"$dir/names43"
same "another seed gives other names" differ "$(cmp -s "$dir/names" "$dir/names43" && echo same || echo differ)"
same "20 of them" 20 "$(wc -l <"$dir/names43" | tr -d ' ')"
"$M" sample "$dir/a" --prompt jo --samples 50 >"$dir/names"
same "a prompt begins every name" 50 "$(grep -c '^jo' "$dir/names")"
"$M" sample "$dir/a" --temperature 0 --samples 3 >"$dir/names"
same "at temperature 0 all names are one" 1 "$(sort -u "$dir/names" | wc -l | tr -d ' ')"
run "$M" sample "$dir/a" --samples 0
same "no samples, no output" "0:0" "$status:$(wc -c <"$dir/stdout" | tr -d ' ')"
{ "$M" sample "$dir/a" --samples 10000000 2>"$dir/stderr"; } | head -n 3 >"$dir/names"
same "sample ends when head does, and quietly" "3:" "$(wc -l <"$dir/names" | tr -d ' '):$(cat "$dir/stderr")"
refuses "a prompt that the model does not know" 2 "*--prompt*" "$M" sample "$dir/a" --prompt 'é'
refuses "a model that is not there" 1 "$dir/none: *" "$M" sample "$dir/none"
refuses "a folder as a model" 1 "$dir: *" "$M" sample "$dir"
refuses "no model at all" 2 "sample: *" "$M" sample
refuses "sample to a full device" 1 "standard output: *" sh -c "'$M' sample '$dir/a' >/dev/full"

same "the log has a heading" "step,loss,lr" "$(head -n 1 "$dir/a.csv")"
same "and a row a step" "1001 1000" "$(wc -l <"$dir/a.csv" | tr -d ' ') $(tail -n 1 "$dir/a.csv" | cut -d, -f1)"
awk -F, 'NR > 1 { printf "step %4d / 1000 | loss %.4f\n", $1, $2 }' "$dir/a.csv" >"$dir/steps"
tr '\r' '\n' <"$dir/a.out" | grep '^step' >"$dir/steps2"
same_file "its losses are those of the step lines" "$dir/steps2" "$dir/steps"
same "its learning rate falls from lr to lr / steps" "0.01 1e-05" \
    "$(awk -F, 'NR == 2 { a = $3 } END { printf "%g %g", a, $3 }' "$dir/a.csv")"
refuses "a log on a full device" 1 "/dev/full: *" "$M" -q --log /dev/full
head -n 50 data/names.txt >"$dir/words"
cp "$dir/words" "$dir/kept"
refuses "the documents as the log" 2 "*one file cannot be two of *" "$M" -q --data "$dir/words" --log "$dir/words"
refuses "the documents as the model" 2 "*one file cannot be two of *" "$M" -q --data "$dir/words" --save "$dir/./words"
refuses "the model as the log" 2 "*one file cannot be two of *" "$M" -q --save "$dir/both" --log "$dir/both"
same_file "the documents are as they were" "$dir/kept" "$dir/words"
refuses "standard output closed" 1 "standard output: *" sh -c "'$M' -q --log '$dir/closed.csv' --save '$dir/closed' >&-"
same "no file takes its place: the log" 0 "$(grep -c num "$dir/closed.csv")"
same "no file takes its place: the model" "" "$("$M" sample "$dir/closed" --samples 0 2>&1)"
refuses "the documents as the log, and a model" 2 "$dir/words: *one file cannot be two of *" \
    "$M" -q --data "$dir/words" --log "$dir/words" --save "$dir/new"
refuses "the resumed model as the log" 2 "$dir/a: *one file cannot be two of *" "$M" -q --resume "$dir/a" --log "$dir/a"
: >"$dir/empty.csv"
for log in empty.csv none.csv; do
    run "$M" -q --resume "$dir/a" --log "$dir/$log" --steps 1002 --samples 0
    same "a resume with the log $log: a heading and two rows" "0:3" "$status:$(wc -l <"$dir/$log" | tr -d ' ')"
done
run "$M" -q --resume "$dir/a" --log /dev/null --steps 1002 --samples 0
same "a resume with a log that is no file" "0:" "$status:$said"
run "$M" -q --data "$dir/words" --log "$dir/empty.csv" --save "$dir/words2" --steps 1
same "files that differ, of one disk" 0 "$status"
run "$M" -q --data "$dir/words" --log "$dir/new.csv" --save "$dir/words2" --steps 1
same "a file that is there, and one that is not" 0 "$status"
if [ -f /proc/version ]; then
    run "$M" -q --data /proc/version --log "$dir/empty.csv" --steps 1
    same "files that differ, of two disks" 0 "$status"
fi
refuses "a log in a folder that is not there" 1 "$dir/none/x: *" "$M" --log "$dir/none/x"

# --- eval
"$M" eval "$dir/a" >"$dir/eval"
same "eval prints five figures" "docs tokens loss bits perplexity" \
    "$(cut -d' ' -f1 "$dir/eval" | tr '\n' ' ' | sed 's/ $//')"
same "over all documents" "docs $(grep -c . data/names.txt)" "$(head -n 1 "$dir/eval")"
head -n 100 data/names.txt >"$dir/100.txt"
"$M" eval "$dir/a" --docs 100 >"$dir/eval"
"$M" eval "$dir/a" --data - <"$dir/100.txt" >"$dir/eval2"
same_file "the first documents are those of the file" "$dir/eval" "$dir/eval2"
printf 'anna\n\n  bo%%b\n' >"$dir/odd.txt"
refuses "documents that the model does not know" 1 "$dir/odd.txt:3: *%*" "$M" eval "$dir/a" --data "$dir/odd.txt"
run "$M" eval "$dir/a" --data "$dir/odd.txt" --docs 1
same "unless they are not asked for" "0:docs 1" "$status:$(head -n 1 "$dir/stdout")"
: >"$dir/empty.txt"
refuses "no documents" 1 "$dir/empty.txt: *" "$M" eval "$dir/a" --data "$dir/empty.txt"

# --- the documents that a model was trained on
tr a-z b-za <"$dir/100.txt" >"$dir/words.txt"
"$M" -q --data "$dir/words.txt" --steps 9 --samples 0 --save "$dir/w" >"$dir/stdout"
same "the file says where the documents were" 1 "$(grep -a -c '"train.data":"words.txt"' "$dir/w")"
for command in "eval $dir/w" "heads $dir/w" "sample $dir/w --new"; do
    refuses "$command: other documents" 2 "$dir/w: trained on words.txt, not on the shipped names; --data FILE is needed" \
        "$M" $command
    run "$M" $command --data "$dir/words.txt"
    same "$command: the documents given" 0 "$status"
done
run "$M" heads "$dir/w" bob
same "heads of a word needs none" 0 "$status"
refuses "a resume with other documents names them" 1 \
    "the shipped names: not the documents that $dir/w was trained on: words.txt" "$M" --resume "$dir/w"
run "$M" -q --data - --steps 9 --samples 0 --save "$dir/w2" <"$dir/words.txt"
refuses "documents of standard input" 2 "$dir/w2: trained on /dev/stdin, *" "$M" eval "$dir/w2"
cp data/names.txt "$dir/mine.txt"
run "$M" -q --data "$dir/mine.txt" --steps 9 --samples 0 --save "$dir/w2"
same "the shipped names under another name: kept as that" 1 "$(grep -a -c '"train.data":"mine.txt"' "$dir/w2")"
run "$M" eval "$dir/w2" --docs 9
same "but they are what it was trained on" 0 "$status"
for key in train.data train.fingerprint; do
    sed "s/\"$key\"/\"$(echo $key | tr a-z b-za)\"/" "$dir/w" >"$dir/w2"
    run "$M" eval "$dir/w2" --docs 9
    same "a file without $key is taken at its word" 0 "$status"
done
odd=$(printf 'a"\\\001\377\303\251')
cp "$dir/words.txt" "$dir/$odd"
run "$M" -q --data "$dir/$odd" --steps 9 --samples 0 --save "$dir/w2"
refuses "an odd name of a file" 2 "$dir/w2: trained on a\"\\\\\?$(printf '\357\277\275\303\251'), *" "$M" eval "$dir/w2"

# --- stopped after any step and resumed
before_exit=
case $CFLAGS in *--coverage*) before_exit=-DBEFORE_EXIT=__gcov_dump ;; esac
# shellcheck disable=SC2086
$CC $CFLAGS $before_exit -o "$dir/stop_at" tests/faults/stop_at.c $(rest_of "$BUILD/objects" tests/faults/stop_at.c) -lm || exit 1
ln -s "$PWD/data" "$dir/data"
S=$dir/stop_at
"$S" --save "$dir/whole" --log "$dir/whole.csv" >"$dir/whole.out"
remaining() { # STEPS: what a run prints that has so many steps behind it
    tr '\r' '\n' <"$1" | awk -v done="$2" '!/^step/ || $2 > done'
}
for step in 1 137 999 1000; do
    rm -f "$dir/b" "$dir/b.csv"
    STOP_AT=$step run "$S" --save "$dir/b" --log "$dir/b.csv"
    same "an interrupt ends with 130 and one line" \
        "130:microgpt: interrupted after step $step of 1000; saved in $dir/b; to continue: $S --save $dir/b --log $dir/b.csv \
--resume $dir/b" "$status:$said"
    same "after step $step the log has $step rows" "$step" "$(tail -n 1 "$dir/b.csv" | cut -d, -f1)"
    run "$S" --resume "$dir/b" --save "$dir/b" --log "$dir/b.csv"
    same "a run stopped at step $step is resumed" 0 "$status"
    same_file "resumed at $step: the same file" "$dir/whole" "$dir/b"
    same_file "resumed at $step: the same log" "$dir/whole.csv" "$dir/b.csv"
    remaining "$dir/whole.out" "$step" >"$dir/want"
    tr '\r' '\n' <"$dir/stdout" >"$dir/saw"
    same_file "resumed at $step: the same remaining steps and samples" "$dir/want" "$dir/saw"
done
set -- --recipe lesson --steps 300 --seed 18446744073709551615 --n-layer 2 --n-embd 12 --n-head 3 --block-size 5 \
    --lr 0.0123456789 --beta1 0.8 --activation relu --data "$dir/100.txt"    # whose documents are cut
"$S" "$@" --save "$dir/c" >"$dir/c.out" 2>"$dir/stderr"
STOP_BY_TERM=1 STOP_AT=123 run "$S" "$@" --save "$dir/d"
same "SIGTERM does the same" "130:microgpt: interrupted after step 123 of 300; saved in $dir/d" \
    "$status:$(echo "$said" | sed '/^microgpt: note: /d; s/; to continue: .*//')"
run "$S" --resume "$dir/d" --save "$dir/d" --data "$dir/100.txt"
remaining "$dir/c.out" 123 >"$dir/want"
same_file "a resume needs no option but the documents" "$dir/c" "$dir/d"
same_file "and prints what the whole run would" "$dir/want" "$dir/stdout"
STOP_AT=9 run "$S" -q
same "without --save, an interrupt says that nothing was saved" "130:1" "$status:$(grep -c 'not saved' "$dir/stderr")"
rm -f "$dir/d"
STOP_AT=9 STOP_TWICE=1 run "$S" -q --save "$dir/d"
same "a second signal within a second is the same wish" "130:microgpt: interrupted after step 9 of 1000; saved in $dir/d" \
    "$status:${said%; to continue: *}"
rm -f "$dir/d"
STOP_AT=9 STOP_TWICE=1 STOP_LATER=1 run "$S" -q --save "$dir/d"
same "a later one ends at once" "130:microgpt: interrupted again, after more than a second: ended:no file" \
    "$status:$said:$([ -e "$dir/d" ] && echo file || echo no file)"
STOP_AT=9 STOP_TWICE=1 STOP_LATER=1 STOP_BY_XCPU=1 run "$S" -q --save "$dir/d"
same "unless it is SIGXCPU, which comes again by itself" "130:microgpt: interrupted after step 9 of 1000; saved in $dir/d" \
    "$status:${said%; to continue: *}"
STOP_IN_SAVE=1 run "$S" -q --steps 20 --save "$dir/d"
same "a signal during the last save" "130:microgpt: interrupted after step 20 of 20; saved in $dir/d" \
    "$status:${said%; to continue: *}"
"$M" -q --steps 20 --save "$dir/e" >"$dir/stdout"
same_file "which is whole" "$dir/e" "$dir/d"
STOP_IN_SAVE=2 STOP_LATER=1 run "$S" -q --steps 30 --save "$dir/d"
same "two signals during a save, more than a second apart" \
    "130:microgpt: interrupted again, after more than a second: ended" "$status:$said"
same_file "leave the file that was there" "$dir/e" "$dir/d"
same "and nothing beside it" 0 "$(leftovers "$dir")"
refuses "an interrupt, and then a file that finds no room" 1 "$dir/d: not saved: *" \
    sh -c "trap '' XFSZ; ulimit -f 100; STOP_AT=9 exec '$S' -q --save '$dir/d'"
same_file "the old file is untouched" "$dir/e" "$dir/d"

# An odd number of parameters leaves the second of a pair of random numbers for later: it is kept, too.
set -- -q --data "$dir/100.txt" --n-embd 1 --n-head 1 --block-size 3 --lr 0.30000000000000004
"$M" "$@" --steps 9 --save "$dir/odd" >"$dir/stdout"
same "an odd number of parameters" 1 "$(($(sed -n 's/^num params: //p' "$dir/stdout") % 2))"
same "a number of 17 digits is kept to the last one" 1 "$(grep -a -c '"train.lr":"0.30000000000000004"' "$dir/odd")"
STOP_AT=4 run "$S" "$@" --steps 9 --save "$dir/odd4"
"$M" -q --data "$dir/100.txt" --resume "$dir/odd4" --save "$dir/odd4" >"$dir/stdout"
same_file "resumed: the same file" "$dir/odd" "$dir/odd4"
refuses "more layers than a header has room for" 1 "$dir/deep: too many layers for a model file" \
    "$M" -q --data "$dir/100.txt" --n-layer 70000 --n-embd 1 --n-head 1 --block-size 1 --steps 0 --save "$dir/deep"
same "no file of them" "no file" "$([ -e "$dir/deep" ] && echo file || echo no file)"

# --- every N steps
rm -f "$dir/b" "$dir/b.csv"
"$M" -q --save "$dir/b" --save-every 300 >"$dir/stdout"
same_file "saves on the way do not change the last one" "$dir/a" "$dir/b"
mkfifo "$dir/fifo"
"$M" --save "$dir/b" --save-every 137 --log "$dir/b.csv" --steps 100000000 -q >"$dir/fifo" & # killed while it trains
pid=$!
exec 3<"$dir/fifo"
i=0
while [ $i -lt 100 ] && ! [ "$(tail -n 1 "$dir/b.csv" 2>/dev/null | cut -d, -f1)" -gt 500 ] 2>/dev/null; do
    sleep 0.1
    i=$((i + 1))
done
kill -KILL $pid
wait $pid 2>/dev/null
exec 3<&-
rm -f "$dir"/b.*.part # what was being written at that moment
at=$(tr ',' '\n' <"$dir/b" | sed -n 's/^"train.step":"\(.*\)"$/\1/p' 2>/dev/null | head -n 1)
same "a killed run leaves the file of a multiple of N steps" 0 "$((at > 0 ? at % 137 : 1))"
last=$(tail -n 1 "$dir/b.csv" | cut -d, -f1)
same "its log is not behind the file" yes "$([ "${last:-0}" -ge "$at" ] && echo yes || echo "no: $last, $at")"
total=$((at + 50))
"$M" --resume "$dir/b" --steps $total --save "$dir/b2" --log "$dir/b.csv" >"$dir/stdout"
same "--steps goes on to another end" "$total" \
    "$(tr '\r' '\n' <"$dir/stdout" | sed -n 's/^step *\([0-9]*\) .*/\1/p' | tail -n 1)"
same "and the log with it, each step once" "$((total + 1)) $total" \
    "$(wc -l <"$dir/b.csv" | tr -d ' ') $(cut -d, -f1 "$dir/b.csv" | sed 1d | sort -n | uniq | wc -l | tr -d ' ')"
same "the schedule is over the new total" "$(awk "BEGIN { printf \"%.10g\", 0.01 * (1 - ($total - 1) / $total) }")" \
    "$(tail -n 1 "$dir/b.csv" | awk -F, '{ printf "%.10g", $3 }')"
"$M" -q --steps 0 --save "$dir/zero" >"$dir/stdout"
"$M" -q --resume "$dir/zero" --steps 1000 --save "$dir/zero" >"$dir/stdout"
same_file "a run of no steps can be resumed, too" "$dir/a" "$dir/zero"

# --- resumes that are refused
cp "$dir/b" "$dir/old"
refuses "other documents" 1 "$dir/100.txt: *" "$M" --resume "$dir/b" --data "$dir/100.txt" --save "$dir/b"
for option in "--n-embd 32" "--n-layer 2" "--n-head 2" "--block-size 8" "--activation relu2" "--seed 1" "--init-std 1" \
    "--recipe lesson"; do
    refuses "a resume with $option" 2 "$option: *$dir/b*" "$M" --resume "$dir/b" $option --save "$dir/b"
done
refuses "a resume with fewer steps than are done" 2 "--steps 1: *$dir/b*" \
    "$M" --resume "$dir/b" --steps 1 --save "$dir/b"
refuses "a resume of a file that is none" 1 "data/names.txt: *" "$M" --resume data/names.txt
refuses "a resume with a log that is none" 1 "$dir/100.txt: *" "$M" --resume "$dir/a" --log "$dir/100.txt"
same "which is left as it was" 100 "$(wc -l <"$dir/100.txt" | tr -d ' ')"
refuses "--save-every without --save" 2 "--save-every*" "$M" --save-every 5
refuses "--save-every 0" 2 "--save-every 0*" "$M" --save-every 0 --save "$dir/b"
same_file "the file is still what it was" "$dir/old" "$dir/b"
run "$M" --resume "$dir/a" --n-embd 16 --seed 42 --recipe microgpt
same "options that are as they were may be given" 0 "$status"

# --- where a file cannot be written: said at once, before the first step, and nothing is touched
refuses "a folder that is not there" 1 "$dir/none/m: *" "$M" --save "$dir/none/m"
same "and nothing is printed" 0 "$(wc -c <"$dir/stdout" | tr -d ' ')"
refuses "a folder as a file" 1 "$dir: *" "$M" --save "$dir"
refuses "a device" 1 "/dev/full: *" "$M" --save /dev/full
refuses "no name" 1 ": *" "$M" --save ""
refuses "a file as a folder" 1 "$dir/a/m: Not a directory" "$M" --save "$dir/a/m"
same "the device is still there" yes "$([ -c /dev/full ] && echo yes)"
ln -s nowhere "$dir/dangling"
refuses "a broken symbolic link" 1 "$dir/dangling: *" "$M" --save "$dir/dangling"
mkdir "$dir/real"
cp "$dir/old" "$dir/real/m"
chmod 640 "$dir/real/m"
ln -s real/m "$dir/link"
run "$M" -q --save "$dir/link"
same "a link stays a link" "0 real/m" "$status $(readlink "$dir/link")"
same_file "and what it leads to is written" "$dir/a" "$dir/real/m"
# shellcheck disable=SC2012
same "with the mode it had" "-rw-r-----" "$(ls -l "$dir/real/m" | cut -c1-10)"
(umask 027 && "$M" -q --steps 1 --samples 0 --save "$dir/masked" >"$dir/stdout")
# shellcheck disable=SC2012
same "a new file has the mode that the mask allows" "-rw-r-----" "$(ls -l "$dir/masked" | cut -c1-10)"
(cd "$dir/real" && "$M" -q --save here >/dev/null)
same_file "a name alone is in the working folder" "$dir/a" "$dir/real/here"

# Root may write everywhere, so these two are done as somebody else.
if as_somebody_else; then
    mkdir "$open/readonly"
    cp "$dir/old" "$open/readonly/m"
    chmod 555 "$open/readonly"
    chmod 666 "$open/readonly/m"
    refuses "a read-only folder" 1 "$open/readonly/m: Permission denied" $as "$open/microgpt" --save "$open/readonly/m"
    same_file "the old file is untouched" "$dir/old" "$open/readonly/m"
    same "no file is left behind" 0 "$(leftovers "$open/readonly")"
    chmod 777 "$open/readonly"
    chmod 444 "$open/readonly/m"
    refuses "a read-only file" 1 "$open/readonly/m: Permission denied" $as "$open/microgpt" --save "$open/readonly/m"
    same_file "is untouched, too" "$dir/old" "$open/readonly/m"
else
    skip "a read-only folder" "root may write everywhere, and no one else can run the program"
fi
# A disk that fills up while the file is written: a limit on the size of files does the same to a write.
cp "$dir/old" "$dir/real/m"
refuses "a file that finds no room" 1 "$dir/real/m: not saved: *" \
    sh -c "trap '' XFSZ; ulimit -f 100; exec '$M' -q --save '$dir/real/m'"
same_file "the old file is untouched" "$dir/old" "$dir/real/m"
same "no file is left behind" 0 "$(leftovers "$dir/real")"
same "no unfinished file is left in the end" 0 "$(leftovers "$dir")"

# --- the manual page
for command in $("$M" --help | sed -n 's/^  microgpt \([a-z]*\).*/\1/p'); do
    "$M" "$command" --help
done | sed -n 's/^  *\(-[a-z], \)\{0,1\}--\([a-z0-9-]*\).*/\2/p' >"$dir/options"
same "the help has the options of every command" yes \
    "$([ "$(wc -l <"$dir/options")" -gt 40 ] && echo yes || cat "$dir/options")"
while read -r option; do
    grep -q "fB.-.-$(echo "$option" | sed 's/-/\\\\-/g').fR" microgpt.1 || echo "$option"
done <"$dir/options" >"$dir/missing"
same "the manual page has the options of the help" "" "$(cat "$dir/missing")"
same "each of them where it belongs" "$(cat "$dir/options")" \
    "$(sed -n 's/^\(.fB.-[a-z].fR, \)\{0,1\}.fB.-.-\([^ ]*\).fR .*/\2/p' microgpt.1 | tr -d '\\')"
same "its version is the program's" 1 "$(grep -c "^.TH.*\"$("$M" --version)\"" microgpt.1)"
finish
