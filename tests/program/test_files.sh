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
"$M" sample "$dir/a" >"$dir/names"
same_file "sample prints the names that training printed" "$dir/a.names" "$dir/names"
"$M" sample "$dir/a" --seed 42 >"$dir/names"
same_file "and so it does with the seed of the training" "$dir/a.names" "$dir/names"
"$M" --seed 7 --steps 50 --save "$dir/seven" >"$dir/stdout"
"$M" sample "$dir/a" --seed 43 >"$dir/names43"
same "another seed gives other names" differ "$(cmp -s "$dir/names" "$dir/names43" && echo same || echo differ)"
same "20 of them" 20 "$(wc -l <"$dir/names43" | tr -d ' ')"
"$M" sample "$dir/a" --prompt jo --samples 50 >"$dir/names"
same "a prompt begins every name" 50 "$(grep -c '^jo' "$dir/names")"
"$M" sample "$dir/a" --temperature 0 --samples 3 >"$dir/names"
same "at temperature 0 all names are one" 1 "$(sort -u "$dir/names" | wc -l | tr -d ' ')"
{ "$M" sample "$dir/a" --samples 10000000 2>"$dir/stderr"; } | head -n 3 >"$dir/names"
same "sample ends when head does, and quietly" "3:" "$(wc -l <"$dir/names" | tr -d ' '):$(cat "$dir/stderr")"
refuses "a model that is not there" 1 "$dir/none: *" "$M" sample "$dir/none"
refuses "a folder as a model" 1 "$dir: *" "$M" sample "$dir"

same "the log has a heading" "step,loss,lr" "$(head -n 1 "$dir/a.csv")"
same "and a row a step" "1001 1000" "$(wc -l <"$dir/a.csv" | tr -d ' ') $(tail -n 1 "$dir/a.csv" | cut -d, -f1)"
awk -F, 'NR > 1 { printf "step %4d / 1000 | loss %.4f\n", $1, $2 }' "$dir/a.csv" >"$dir/steps"
tr '\r' '\n' <"$dir/a.out" | grep '^step' >"$dir/steps2"
same_file "its losses are those of the step lines" "$dir/steps2" "$dir/steps"
same "its learning rate falls from lr to lr / steps" "0.01 1e-05" \
    "$(awk -F, 'NR == 2 { a = $3 } END { printf "%g %g", a, $3 }' "$dir/a.csv")"
refuses "standard output closed" 1 "standard output: *" sh -c "'$M' -q --log '$dir/closed.csv' --save '$dir/closed' >&-"
same "no file takes its place: the log" 0 "$(grep -c num "$dir/closed.csv")"
same "no file takes its place: the model" "" "$("$M" sample "$dir/closed" --samples 0 2>&1)"
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

# --- where a file cannot be written: said at once, before the first step, and nothing is touched
refuses "a folder that is not there" 1 "$dir/none/m: *" "$M" --save "$dir/none/m"
same "and nothing is printed" 0 "$(wc -c <"$dir/stdout" | tr -d ' ')"
refuses "a folder as a file" 1 "$dir: *" "$M" --save "$dir"
refuses "a device" 1 "/dev/full: *" "$M" --save /dev/full
refuses "a file as a folder" 1 "$dir/a/m: Not a directory" "$M" --save "$dir/a/m"
ln -s nowhere "$dir/dangling"
refuses "a broken symbolic link" 1 "$dir/dangling: *" "$M" --save "$dir/dangling"
mkdir "$dir/real"
cp "$dir/seven" "$dir/real/m"
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

# Root may write everywhere, so these two are done as somebody else.
if as_somebody_else; then
    mkdir "$open/readonly"
    cp "$dir/seven" "$open/readonly/m"
    chmod 555 "$open/readonly"
    chmod 666 "$open/readonly/m"
    refuses "a read-only folder" 1 "$open/readonly/m: Permission denied" $as "$open/microgpt" --save "$open/readonly/m"
    same_file "the old file is untouched" "$dir/seven" "$open/readonly/m"
    same "no file is left behind" 0 "$(leftovers "$open/readonly")"
    chmod 777 "$open/readonly"
    chmod 444 "$open/readonly/m"
    refuses "a read-only file" 1 "$open/readonly/m: Permission denied" $as "$open/microgpt" --save "$open/readonly/m"
    same_file "is untouched, too" "$dir/seven" "$open/readonly/m"
else
    skip "a read-only folder" "root may write everywhere, and no one else can run the program"
fi
same "no unfinished file is left in the end" 0 "$(leftovers "$dir")"

# --- a model file that is no file but a pipe
if [ -e /dev/stdin ]; then
    n=$(wc -c <"$dir/w")
    for case in "$n|0|" "$((n - 9))|1|microgpt: /dev/stdin: it ends within the data" "900|1|microgpt: /dev/stdin: it ends within the header" \
        "$((n + 1))|1|microgpt: /dev/stdin: extra bytes after the data"; do
        { cat "$dir/w"; echo; } | head -c "${case%%|*}" | "$M" sample /dev/stdin --samples 5 >"$dir/stdout" 2>"$dir/stderr"
        same "a model from a pipe, ${case%%|*} bytes of $n" "${case#*|}" "$?|$(cat "$dir/stderr")"
    done
else
    skip "a model from a pipe" "there is no /dev/stdin"
fi

# --- another run's log is kept; its name is said without links, which a folder with an odd name is reached by
logs=$(cd "$dir" && pwd -P)
"$M" --steps 3 -q --samples 0 --log "$logs/kept.csv" >"$dir/out"
cp "$logs/kept.csv" "$dir/first.csv"
chmod 640 "$logs/kept.csv"
"$M" --steps 4 --samples 0 --log "$logs/kept.csv" >"$dir/out" 2>"$dir/err"
same "another run's log is kept, and a note says so" \
    "microgpt: note: $logs/kept.csv: replacing another run's log, kept as $logs/kept.csv~" "$(cat "$dir/err")"
same_file "it is the log of before" "$dir/first.csv" "$logs/kept.csv~"
same "the new one has four steps, and the mode of the old one" "5 -rw-r-----" \
    "$(wc -l <"$logs/kept.csv" | tr -d ' ') $(ls -l "$logs/kept.csv" | cut -c 1-10)"
echo 'not a log' >"$logs/kept.csv~"
fails 1 "$logs/kept.csv~: not a log of a run: it does not begin with step,loss,lr" "$M" --steps 3 -q --log "$logs/kept.csv"
same "and both are as they were" "5 not a log" "$(wc -l <"$logs/kept.csv" | tr -d ' ') $(cat "$logs/kept.csv~")"
rm "$logs/kept.csv~"
head -n 1 "$dir/kept.csv" >"$dir/heading.csv"
"$M" --steps 3 -q --samples 0 --log "$dir/heading.csv" >"$dir/out" 2>"$dir/err"
same "a heading alone is no log to keep" "4 no" \
    "$(wc -l <"$dir/heading.csv" | tr -d ' ') $([ -e "$dir/heading.csv~" ] && echo yes || echo no)"
ln -s kept.csv "$dir/link.csv"
"$M" --steps 5 -q --samples 0 --log "$dir/link.csv" >"$dir/out" 2>"$dir/err"
same "by a symbolic link: what it leads to is kept beside itself" "6 5" \
    "$(wc -l <"$dir/kept.csv" | tr -d ' ') $(wc -l <"$dir/kept.csv~" | tr -d ' ')"

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
