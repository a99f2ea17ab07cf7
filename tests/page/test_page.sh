# `microgpt page`: what it says on a command line, and what it writes. test_page_browser.sh opens the page itself.
# this file only with ALL=1
. tests/lib.sh
. tests/page/lib.sh

model names --steps 2000
names=$T/names.safetensors page=$T/names.html

# The command.
microgpt page "$names" --log "$T/names.csv" >"$page" 2>"$T/stderr"
same "page: exit status and standard error" "0 " "$? $(cat "$T/stderr")"
size=$(sed -n '/^const FROM_PROGRAM/,/};$/p' "$page" | wc -c)
check "what the program puts in, at most 200 KB: $size" test "$size" -le 200000
microgpt page "$names" -q maria >"$T/word.html"
same "the word is in it" '"word":"maria",' "$(grep '^"word":' "$T/word.html")"
printf 'anna\nbo\n' >"$T/two.txt"
same "other documents, in the order of the seed" '"documents":"bo\nanna",' \
    "$(microgpt page "$names" --data "$T/two.txt" | grep '^"documents":')"
same "and that they are others" '"own":false,' "$(microgpt page "$names" --data "$T/two.txt" | grep '^"own":')"
size=$(grep '^"documents":' "$page" | sed 's/.*:"//; s/",$//; s/\\n/ /g' | tr -d '\n' | wc -c)
check "the shipped names, up to 32 KB: $size" test "$size" -gt 32700 -a "$size" -le 32768
same "how many documents there are, and whose they are" "\"n_documents\":$(grep -c . data/names.txt), \"own\":true," \
    "$(grep '^"n_documents":\|^"own":' "$page" | tr '\n' ' ' | sed 's/ $//')"
# The losses of 2000 steps are a curve of 1000 points, each the mean of its steps.
sed -n 's/^"log":.*"points":\[\(.*\)\],"held":.*$/\1/p' "$page" | tr ',' '\n' >"$T/points"
awk -F , 'NR > 1 { sum += $2; if (NR % 2) { printf "%.4g\n", sum / 2; sum = 0 } }' "$T/names.csv" >"$T/means"
same_file "the curve of 2000 steps" "$T/means" "$T/points"
# Whatever stands in the documents, or in the name of a file, ends neither the JSON nor the script.
odd=$(printf "o\"\\\\d&'d<\\377\\303\\251")
printf 'a"\\/<>&'"'"'\177~ \302\200\303\251\357\277\277\360\220\200\200\364\217\277\277\n' >"$T/$odd"
microgpt page "$names" --data "$T/$odd" >"$T/odd.html"
same "odd characters in documents" \
    '"documents":"a\u0022\u005c/\u003c\u003e\u0026\u0027\u007f~ \u0080\u00e9\uffff\ud800\udc00\udbff\udfff",' \
    "$(grep '^"documents":' "$T/odd.html")"
same "odd characters in the name of a file" '"data":"o\u0022\u005cd\u0026\u0027d\u003c\ufffd\u00e9",' "$(grep '^"data":' "$T/odd.html")"
# The model in it is the model, to the byte; with these sizes 0, 1 and 2 bytes are left after the last three.
if printf TQ== | base64 -d >"$T/out" 2>"$T/stderr"; then
    for sizes in 4-1 8-1 4-2; do
        model "sizes$sizes" --steps 20 --n-embd "${sizes%-*}" --n-layer "${sizes#*-}"
        microgpt page "$T/sizes$sizes.safetensors" | sed -n 's/^"model":"\(.*\)",*$/\1/p' | base64 -d >"$T/back.safetensors"
        same_file "the model in the page, of width and layers $sizes" "$T/sizes$sizes.safetensors" "$T/back.safetensors"
    done
else
    skip "the model in the page is the model" "there is no base64"
fi
fails 2 "the word Maria: the model does not know the character M" microgpt page "$names" Maria
fails 2 "the word *: too long: *" microgpt page "$names" abcdefghijklmnop
fails 2 "page: an argument is missing; see microgpt page --help" microgpt page
fails 2 "three: one argument too many; see microgpt page --help" microgpt page one two three
fails 1 "*nowhere: No such file or directory" microgpt page "$names" --data "$T/nowhere"
fails 1 "*nowhere: No such file or directory" microgpt page "$T/nowhere"
fails 1 "*nowhere: No such file or directory" microgpt page "$names" --log "$T/nowhere"
fails 1 "*names.safetensors: not a log of a run: *" microgpt page "$names" --log "$names"
# log TEXT: a log of these lines.
log() { printf "$1" >"$T/log.csv"; }
log 'step,loss,lr\n'
fails 1 "*log.csv: not a log of a run: no step in it" microgpt page "$names" --log "$T/log.csv"
log 'step,loss,lr\n1,2.5,0.01\n3,2.5,0.01\n'
fails 1 "*log.csv:3: not the step,loss,lr of the next step" microgpt page "$names" --log "$T/log.csv"
for row in '1,nan,0.1' '1;2;3' 'x,2.5,0.1' '1,2.5' '1,,0.1' '' '-1,2,0.1' ' 1,2,0.1' '1,0x10,0.1' '1,2,zzz' '1,2,0.1,3' '1e0,2,0.1' '1,inf,0.1' \
    ',held_out 1,2.5,0.01' ',held_out 1,2.5,0.01,x' ',held_out 1,2.5,0.01,,' ',held_out 1,2.5,0.01,nan'; do
    held=${row%%,held_out*}
    log "step,loss,lr$([ -n "$held" ] || echo ,held_out)\\n${row#,held_out }\\n1,1,1\\n"
    what="a log with the row '$row'"
    fails 1 "*log.csv:2: not the step,loss,lr of the next step" microgpt page "$names" --log "$T/log.csv"
done
log 'step,loss,lr\n1,1e308,0.01\n2,1e308,0.01\n'
fails 1 "*log.csv: losses too large to plot" microgpt page "$names" --log "$T/log.csv"
log 'step,loss,lr\n7,2.5,0.01\n8,2.25,0.01\n9,2.'
same "a log that is being written: its whole lines" \
    '"log":{"first":7,"steps":2,"points":[2.5,2.25],"held":[]},' \
    "$(microgpt page "$names" --log "$T/log.csv" | grep '^"log":')"
log 'step,loss,lr,held_out\n7,2.5,0.01,\n8,2.25,0.01,2.625\n9,2,0.01,2.5\n'
same "the losses held out, where they were measured" \
    '"log":{"first":7,"steps":3,"points":[2.5,2.25,2],"held":[[8,2.625],[9,2.5]]},' \
    "$(microgpt page "$names" --log "$T/log.csv" | grep '^"log":')"
# The program's own losses: of the first documents; without documents, of the word, or of the first characters.
compared() { sed -n 's/^"losses":\(.*\)};$/\1/p' "$1"; }
wanted=
for name in $(sed -n 's/^"documents":"\(.*\)",$/\1/p' "$page" | sed 's/\\n/ /g' | cut -d ' ' -f 1-8); do
    wanted="$wanted${wanted:+,}[\"$name\",$(loss_of "$names" "$name")]"
done
same "the losses of the first documents" "[$wanted]" "$(compared "$page")"
model two --data "$T/two.txt" --steps 20
microgpt page "$T/two.safetensors" ann >"$T/two.html"
same "without documents, of the word" "[[\"ann\",$(loss_of "$T/two.safetensors" ann)]]" "$(compared "$T/two.html")"
microgpt page "$T/two.safetensors" >"$T/two.html"
same "without both, of the first characters" "[[\"abno\",$(loss_of "$T/two.safetensors" abno)]]" "$(compared "$T/two.html")"
if [ -w /dev/full ]; then
    full() { microgpt page "$names" >/dev/full; }
    fails 1 "standard output: *" full
fi
if command -v script >/dev/null 2>&1; then
    script -qec "./microgpt page '$names'" /dev/null </dev/null >"$T/terminal" 2>&1
    same "to a terminal: status 2" 2 "$?"
    same "to a terminal: one line, which says to redirect it" "1 1" \
        "$(grep -c "redirect it.* > page.html" "$T/terminal") $(wc -l <"$T/terminal" | tr -d ' ')"
else
    skip "to a terminal" "no script(1) here"
fi
model large --steps 0 --n-embd 288 --n-head 2
fails 1 "*large.safetensors: too large for a page: * parameters; the limit is 1000000" microgpt page \
    "$T/large.safetensors"
model large --steps 0 --n-embd 100 --n-layer 8 --block-size 346         # a million, to the last
check "as large as a page can be" microgpt page "$T/large.safetensors"
rm -f "$T/large.safetensors" "$T/check.log"
model long --steps 0 --block-size 1024
check "as long a block as a page can have" microgpt page "$T/long.safetensors"
model long --steps 0 --block-size 1025
fails 1 "*long.safetensors: block too long for a page: 1025 positions; the limit is 1024" microgpt page \
    "$T/long.safetensors"

# Where the shipped page is: nowhere, without a place for the model, where it is installed, and where make runs.
mkdir -p "$T/alone/data/page" "$T/usr/bin" "$T/usr/share/microgpt"
cp microgpt Makefile "$T/alone/"
cp data/names.txt "$T/alone/data/"
alone() { (cd "$T/alone" && ./microgpt "$@"); }
fails 1 "*page/index.html: No such file or directory" alone page "$names"
echo "no place" >"$T/alone/data/page/index.html"
fails 1 "*index.html: not a page: it does not name model.js" alone page "$names"

# Its parts are put together as they are, in the order in which index.html names them.
cat >"$T/alone/data/page/index.html" <<'END'
<p>Some text : as it is</p>
<link rel="stylesheet" href="a.css">
<script src="second.js"></script>
<script src="model.js"></script>
<script src="first.js"></script> stays
<script src="first.js"></script>
the last line
END
printf '/* a comment */\n  a { b : c }\n' >"$T/alone/data/page/a.css"
printf '// two\n\n    const b = "x" ;\n' >"$T/alone/data/page/second.js"
fails 1 "*page/first.js: No such file or directory" alone page "$names"
same "then there is no part of a page" "" "$(alone page "$names" 2>"$T/stderr")"
printf '// one' >"$T/alone/data/page/first.js"
cat >"$T/joined" <<'END'
<p>Some text : as it is</p>
<style>
/* a comment */
  a { b : c }
</style>
<script>
// two

    const b = "x" ;
</script>
<script>
</script>
<script src="first.js"></script> stays
<script>
// one</script>
the last line
END
alone page "$names" | sed '/^const FROM_PROGRAM/,/};$/d' >"$T/joined.seen"
same_file "the page, put together" "$T/joined" "$T/joined.seen"
rm "$T/alone/data/page"/*
same "no part of the page ends a script, or a style" "" "$(grep -l '</s' data/page/*.js data/page/*.css)"
same "index.html names every script" "$(cd data/page && ls ./*.js | grep -v model.js)" \
    "$(sed -n 's/^<script src="\(.*\)"><.*/.\/\1/p' data/page/index.html | grep -v model.js | LC_ALL=C sort)"
same "every script is strict" "" "$(grep -L '^"use strict";$' data/page/*.js | grep -v model.js)"
same "no line of the page is longer than 120 characters" "" \
    "$(awk 'length > 120 { print FILENAME ": " FNR }' data/page/*.js data/page/*.css data/page/index.html | grep -v model.js)"

# A model that the page cannot compute is refused: a changed program knows another activation, and a wider matrix.
fork=$T/fork
mkdir -p "$fork"
cp -r Makefile autograd.c autograd.h support data "$fork/"
sed 's/enum { RELU, RELU2 }/enum { RELU, RELU2, RELU3 }/' support/run/options.h >"$fork/support/run/options.h"
sed 's/relu|relu2/relu|relu2|relu3/' support/run/options.c >"$fork/support/run/options.c"
sed 's/4 \* n_embd/5 * n_embd/g; s/4 \* model->n_embd/5 * model->n_embd/g' microgpt.c >"$fork/microgpt.c"
(cd "$fork" && make -s CFLAGS=-O1 microgpt) >"$T/make.log" 2>&1 ||
    not_ok "another program" "it builds" "$(tail -n 3 "$T/make.log")"
# refused ACTIVATION WHAT: a model of this activation, for WHAT is in it.
refused()
{
    "$fork/microgpt" -q --steps 5 --samples 0 --activation "$1" --save "$T/$1.safetensors" >"$T/train.log" 2>&1
    fails 1 "*$1.safetensors: the page cannot compute it: unknown: $2" \
        "$fork/microgpt" page "$T/$1.safetensors"
}
refused relu3 "activation relu3"
refused relu "tensor layer0.mlp_fc1, 80 x 16"

cp microgpt "$T/usr/bin/"
cp -r data/names.txt data/page "$T/usr/share/microgpt/"
"$T/usr/bin/microgpt" page "$names" --log "$T/names.csv" >"$T/installed.html"
same_file "the installed program writes the same page" "$page" "$T/installed.html"
cp -r data/names.txt data/page "$T/alone/data/"
(cd "$T/alone" && make -s -o microgpt page) >"$T/make.log" 2>&1
same "make page says how to open it" \
    "microgpt.html is ready: open it in a browser" "$(tail -n 1 "$T/make.log")"
same "make page: 20,000 steps, and their curve" '"steps":20000' "$(grep -o '"steps":20000' "$T/alone/microgpt.html")"

finish
