# `microgpt page`: what it says on a command line, and what it writes. test_page_browser.sh opens the page itself.
# this file only with ALL=1
. tests/lib.sh

# model NAME OPTION...: trains $T/NAME.safetensors.
model()
{
    file=$T/$1.safetensors
    shift
    microgpt train -q --samples 0 --save "$file" "$@" >"$T/train.log" 2>&1 ||
        not_ok "$file" "a model" "$(cat "$T/train.log")"
}
model names --steps 2000 --log "$T/names.csv"
names=$T/names.safetensors page=$T/names.html

# The command.
microgpt page "$names" --log "$T/names.csv" >"$page" 2>"$T/stderr"
same "page: exit status and standard error" "0 " "$? $(cat "$T/stderr")"
size=$(wc -c <"$page")
check "at most 350 KB: $size" test "$size" -le 350000
microgpt page "$names" -q maria >"$T/word.html"
same "the word is in it" '"word":"maria",' "$(grep '^"word":' "$T/word.html")"
printf 'anna\nbo\n' >"$T/two.txt"
same "other documents, in the order of the seed" '"documents":"bo\nanna",' \
    "$(microgpt page "$names" --data "$T/two.txt" | grep '^"documents":')"
same "and that they are others" '"own":false}</script>' "$(microgpt page "$names" --data "$T/two.txt" | grep '^"own":')"
size=$(grep '^"documents":' "$page" | sed 's/.*:"//; s/",$//; s/\\n/ /g' | tr -d '\n' | wc -c)
check "the shipped names, up to 32 KB: $size" test "$size" -gt 32700 -a "$size" -le 32768
for n in 32767 32768; do        # each document counts a byte more: its end
    printf "%0${n}d\\n" 0 >"$T/long.txt"
    size=$(microgpt page "$names" --data "$T/long.txt" | sed -n 's/^"documents":"\(.*\)",$/\1/p' | tr -d '\n' | wc -c)
    same "a document of $n bytes, in 32 KB or not" "$((n < 32768 ? n : 0))" "$((size))"
done
same "how many documents there are, and whose they are" "\"n_documents\":$(grep -c . data/names.txt), \"own\":true}</script>" \
    "$(grep '^"n_documents":\|^"own":' "$page" | tr '\n' ' ' | sed 's/ $//')"
# The losses of 2000 steps are a curve of 1000 points, each the mean of its steps; and those of a log without so many.
for steps in 2000 1001 999; do
    head -n $((steps + 1)) "$T/names.csv" >"$T/some.csv"
    microgpt page "$names" --log "$T/some.csv" | sed -n 's/^"log":.*"points":\[\(.*\)\]},$/\1/p' | tr ',' '\n' >"$T/points"
    awk -F , -v n=$steps 'NR > 1 { loss[NR - 2] = $2 } END {
        points = n < 1000 ? n : 1000
        for (i = 0; i < points; i++) {
            sum = count = 0
            for (k = int(i * n / points); k < int((i + 1) * n / points); k++) { sum += loss[k]; count++ }
            printf "%.4g\n", sum / count
        } }' "$T/some.csv" >"$T/means"
    same_file "the curve of $steps steps" "$T/means" "$T/points"
done
# Whatever stands in the documents, or in the name of a file, ends neither the JSON nor the script.
odd=$(printf "o\"\\\\d&'d<\\377\\303\\251")
printf 'a"\\/<>&'"'"'\177~ \302\200\303\251\357\277\277\360\220\200\200\364\217\277\277\n' >"$T/$odd"
microgpt page "$names" --data "$T/$odd" >"$T/odd.html"
same "odd characters in documents" \
    '"documents":"a\u0022\u005c/\u003c\u003e\u0026\u0027\u007f~ \u0080\u00e9\uffff\ud800\udc00\udbff\udfff",' \
    "$(grep '^"documents":' "$T/odd.html")"
same "odd characters in the name of a file" '"data":"o\u0022\u005cd\u0026\u0027d\u003c\ufffd\u00e9",' "$(grep '^"data":' "$T/odd.html")"
# The model in it is the model, to the byte: its checksum says so, and so do its names. Its sizes leave 0, 1 and 2 bytes
# after the last three.
if printf TQ== | base64 -d >"$T/out" 2>"$T/stderr"; then
    rests=
    for sizes in 4-1 8-1 12-1 4-2; do
        model "sizes$sizes" --steps 20 --n-embd "${sizes%-*}" --n-layer "${sizes#*-}"
        microgpt page "$T/sizes$sizes.safetensors" | sed -n 's/^"model":"\(.*\)",*$/\1/p' | base64 -d >"$T/back.safetensors"
        microgpt sample "$T/sizes$sizes.safetensors" >"$T/want"
        microgpt sample "$T/back.safetensors" >"$T/saw" 2>&1
        same_file "the model in the page, of width and layers $sizes, is the model" "$T/want" "$T/saw"
        rests="$rests $(($(wc -c <"$T/back.safetensors") % 3))"
    done
    same "all three rests are tried" "0 1 2" "$(echo "$rests" | tr ' ' '\n' | grep . | sort -u | tr '\n' ' ' | sed 's/ $//')"
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
echo step,loss,lr >"$T/empty.csv"
fails 1 "*empty.csv: not a log of a run: no step in it" microgpt page "$names" --log "$T/empty.csv"
printf 'step,loss,lr\n1,2.5,0.01\n3,2.5,0.01\n' >"$T/gap.csv"
fails 1 "*gap.csv:3: not the step,loss,lr of the next step" microgpt page "$names" --log "$T/gap.csv"
for row in '1,nan,0.1' '1;2;3' 'x,2.5,0.1' '1,2.5' '1,,0.1' '' '1,' '-1,2,0.1' ' 1,2,0.1' '1, 2,0.1' '1,0x10,0.1' '1,2,zzz' '1,2,' '1,2,0.1,3' '1e0,2,0.1' '1,inf,0.1'; do
    printf 'step,loss,lr\n%s\n1,1,1\n' "$row" >"$T/row.csv"
    what="a log with the row '$row'"
    fails 1 "*row.csv:2: not the step,loss,lr of the next step" microgpt page "$names" --log "$T/row.csv"
done
printf 'step,loss,lr\n1,1e308,0.01\n2,1e308,0.01\n' >"$T/high.csv"
fails 1 "*high.csv: losses too large to plot" microgpt page "$names" --log "$T/high.csv"
printf 'step,loss,lr\n7,2.5,0.01\n8,2.25,0.01\n9,2.' >"$T/part.csv"
same "a log that is being written: its whole lines" \
    '"log":{"first":7,"steps":2,"points":[2.5,2.25]},' \
    "$(microgpt page "$names" --log "$T/part.csv" | grep '^"log":')"
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
same "one place for the model in data/page.html" 1 "$(grep -c 'THE MODEL' data/page.html)"
mkdir -p "$T/alone/data" "$T/usr/bin" "$T/usr/share/microgpt"
cp microgpt Makefile "$T/alone/"
alone() { (cd "$T/alone" && ./microgpt "$@"); }
fails 1 "*page.html: No such file or directory" alone page "$names"
echo "no place" >"$T/alone/data/page.html"
fails 1 "*page.html: not a page template: it has no place for the model" alone page "$names"

# What a browser does not need is left out; texts in quotes stay as they are.
cat >"$T/alone/data/page.html" <<'END'
<p>Some text : as it is</p>
<style>
    /* gone */
    a, b > i { margin: 0 auto;
        width: calc(1px + 2px); }
</style>
<script id="model">THE MODEL</script>
<script>
    // gone
    const a = "x = 1, \" y", b = `t , ${f("{ , }", `in , ${a + 1}`)} , z`, c = 'q , "r', d = a - -b;

    if (a) {
        e = b ? c
            : d;
    }
    f(a,
        b);               // it's gone
    const g = "\"" , h = `${"a , b" + 1}` , i = 1;
</script>
END
cat >"$T/squeezed" <<'END'
<p>Some text : as it is</p>
<style>
a,b>i{margin:0 auto;width:calc(1px + 2px);}
</style>
<script>
const a="x = 1, \" y",b=`t , ${f("{ , }",`in , ${a+1}`)} , z`,c='q , "r',d=a- -b;
if(a){e=b?c:d;}
f(a,b);
const g="\"",h=`${"a , b"+1}`,i=1;
</script>
END
cp data/names.txt "$T/alone/data/"
alone page "$names" | grep -v '^"\|^<script id' >"$T/squeezed.seen"
same_file "the page without what a browser does not need" "$T/squeezed" "$T/squeezed.seen"
cp microgpt "$T/usr/bin/"
cp data/names.txt data/page.html "$T/usr/share/microgpt/"
"$T/usr/bin/microgpt" page "$names" --log "$T/names.csv" >"$T/installed.html"
same_file "the installed program writes the same page" "$page" "$T/installed.html"
cp data/names.txt data/page.html "$T/alone/data/"
(cd "$T/alone" && make -s -o microgpt page) >"$T/make.log" 2>&1
same "make page says how to open it" \
    "microgpt.html is ready: open it in a browser" "$(tail -n 1 "$T/make.log")"
same "make page: 20,000 steps, and their curve" '"steps":20000' "$(grep -o '"steps":20000' "$T/alone/microgpt.html")"

finish
