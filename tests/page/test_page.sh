# `microgpt page`: what it says on a command line, and the page itself, opened from a file in a browser without a window
# and compared with the program. checks.js does the comparing, within the page.
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
check "at most 250 KB: $size" test "$size" -le 250000
microgpt page "$names" -q maria >"$T/word.html"
same "the word is in it" '"word":"maria",' "$(grep '^"word":' "$T/word.html")"
fails 2 "the word Maria: the model does not know the character M" microgpt page "$names" Maria
fails 2 "the word *: too long: *" microgpt page "$names" abcdefghijklmnop
fails 2 "page: an argument is missing; see microgpt page --help" microgpt page
fails 2 "three: one argument too many; see microgpt page --help" microgpt page one two three
fails 2 "--data: no such option; *ee microgpt page --help" microgpt page "$names" --data x
fails 1 "*nowhere: No such file or directory" microgpt page "$T/nowhere"
fails 1 "*nowhere: No such file or directory" microgpt page "$names" --log "$T/nowhere"
fails 1 "*names.safetensors: not a log of a run: *" microgpt page "$names" --log "$names"
echo step,loss,lr >"$T/empty.csv"
fails 1 "*empty.csv: not a log of a run: no step in it" microgpt page "$names" --log "$T/empty.csv"
printf 'step,loss,lr\n1,2.5,0.01\n3,2.5,0.01\n' >"$T/gap.csv"
fails 1 "*gap.csv:3: not the step,loss,lr of the next step" microgpt page "$names" --log "$T/gap.csv"
for row in '1,nan,0.1' '1;2;3' 'x,2.5,0.1' '1,2.5' '1,,0.1' '' '1,'; do
    printf 'step,loss,lr\n%s\n1,1,1\n' "$row" >"$T/row.csv"
    what="a log with the row '$row'"
    fails 1 "*row.csv:2: not the step,loss,lr of the next step" microgpt page "$names" --log "$T/row.csv"
done
printf 'step,loss,lr\n7,2.5,0.01\n8,2.25,0.01\n9,2.' >"$T/part.csv"
same "a log that is being written: its whole lines" \
    '"log":{"first":7,"steps":2,"points":[[2.5,2.5,2.5],[2.25,2.25,2.25]]}}' \
    "$(microgpt page "$names" --log "$T/part.csv" | sed -n 's/^\("log":.*\)<\/script>$/\1/p')"
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
fails 1 "*large.safetensors: too large for a page: * parameters, and the limit is 1000000" microgpt page \
    "$T/large.safetensors"
rm -f "$T/large.safetensors"

# Where the shipped page is: nowhere, without a place for the model, where it is installed, and where make runs.
same "one place for the model in data/page.html" 1 "$(grep -c 'THE MODEL' data/page.html)"
mkdir -p "$T/alone/data" "$T/usr/bin" "$T/usr/share/microgpt"
cp microgpt Makefile "$T/alone/"
alone() { (cd "$T/alone" && ./microgpt "$@"); }
fails 1 "*page.html: No such file or directory" alone page "$names"
echo "no place" >"$T/alone/data/page.html"
fails 1 "*page.html: no place for the model in it" alone page "$names"
cp microgpt "$T/usr/bin/"
cp data/page.html "$T/usr/share/microgpt/"
"$T/usr/bin/microgpt" page "$names" --log "$T/names.csv" >"$T/installed.html"
same_file "the installed program writes the same page" "$page" "$T/installed.html"
cp data/names.txt data/page.html "$T/alone/data/"
(cd "$T/alone" && make -s -o microgpt page) >"$T/make.log" 2>&1
same "make page says how to open it" \
    "microgpt.html is ready: double-click it, or open file://$T/alone/microgpt.html in a browser" "$(cat "$T/make.log")"
same "make page: 20,000 steps, and their curve" '"steps":20000' "$(grep -o '"steps":20000' "$T/alone/microgpt.html")"

# The statements of C on the page are those of microgpt.c.
tr -s ' \n' '  ' <microgpt.c >"$T/microgpt.c"
sed -n '/^function gpt/,/^const numbers_of/p' data/page.html | grep -o '"[^"]*;"' | tr -d '"' | sort -u >"$T/statements"
same "statements on the page: at least 20" yes "$([ "$(wc -l <"$T/statements")" -ge 20 ] && echo yes)"
while IFS= read -r statement; do
    check "in microgpt.c: $statement" grep -qF -- "$statement" "$T/microgpt.c"
done <"$T/statements"

browser=
for name in chromium chromium-browser google-chrome chrome; do
    [ -n "$browser" ] || browser=$(command -v "$name")
done
if [ -z "$browser" ]; then
    skip "the page in a browser" "no Chromium here"
    finish
fi

# Opens a file in the browser, and prints the page as it is at the end. What it says to the console is in $T/console.
opened()
{
    timeout 300 "$browser" --headless=new --no-sandbox --disable-gpu --disable-background-networking \
        --disable-extensions --no-first-run --user-data-dir="$T/profile" --window-size=1280,900 \
        --enable-logging=stderr --dump-dom "$@" 2>"$T/browser.log" </dev/null
    grep ':CONSOLE' "$T/browser.log" >"$T/console"
}

# Prints what the checks within a page reported.
reported()
{
    sed -n '/<pre id="report">/,/<\/pre>/p' | grep -E '^(not )?ok - ' | sed 's/&lt;/</g; s/&gt;/>/g; s/&amp;/\&/g'
}

# Takes over the checks of a page: WHAT LEAST LOG.
judge()
{
    cat "$3"
    failures=$((failures + $(grep -c '^not ok' "$3")))
    [ "$(wc -l <"$3")" -ge "$2" ] ||
        not_ok "$1" "at least $2 checks" "$(wc -l <"$3"): $(tail -n 3 "$T/browser.log" | tr '\n' ' ')"
    same "$1: nothing on the console" "" "$(cat "$T/console")"
}

# A table as a string of JSON.
json_text() { awk '{ gsub(/\t/, "\\t"); printf "%s\\n", $0 }'; }

# What the program says of a word, as JSON: MODEL WORD [POSITIONS, if it is cut].
loss_of() { microgpt eval "$1" -q --data "$2" | sed -n 's/^loss //p'; }
word_of()
{
    printf '%s\n' "$2" >"$T/word.txt"
    printf '{"word":"%s","loss":%s,"cut":%s,' "$2" "$(loss_of "$1" "$T/word.txt")" "${3:-0}"
    [ -n "${3:-}" ] || printf '"heads":"%s",' "$(microgpt heads "$1" --tsv -- "$2" | json_text)"
    printf '"views":"%s"}' "$(microgpt heads "$1" -q --data "$T/word.txt" --tsv | json_text)"
}

# A model that the page could only show wrongly: it says so instead.
sed 's/"activation":"relu"/"activation":"leaky"/' "$page" >"$T/leaky.html"
same "an activation that the page does not know" "This page does not know the activation leaky." \
    "$(opened "file://$T/leaky.html" | sed -n "s/^<body>//p")"

# A copy of a page with the checks in it: PAGE COPY EXPECTED.
with_checks()
{
    {
        sed '/^<\/body>$/,$d' "$1"
        printf '<script type="application/json" id="expected">%s</script>\n<script>\n' "$3"
        cat tests/page/checks.js
        echo '</script></body></html>'
    } >"$2"
}

# The names, as most people will see them.
words=$(word_of "$names" maria),$(word_of "$names" x),$(word_of "$names" abcdefghijklmno)
words=$words,$(word_of "$names" bartholomewsmith 16),$(word_of "$names" bartholomewsmithandsons 16)
with_checks "$page" "$T/use.html" "{\"name\":\"names\",\"use\":true,\"words\":[$words],\"config\":{\"n_layer\":1,
    \"n_embd\":16,\"n_head\":4,\"block_size\":16,\"activation\":\"relu\",\"vocab\":\"abcdefghijklmnopqrstuvwxyz\",
    \"step\":2000}}"
opened --virtual-time-budget=60000 "file://$T/use.html" | reported >"$T/use.log"
judge "names" 60 "$T/use.log"

# In real time: how fast it is. On a busy machine, the best of a few.
with_checks "$page" "$T/speed.html" '{"name":"speed","speed":true}'
for _ in 1 2 3 4 5; do
    opened "file://$T/speed.html" | reported >"$T/speed.log"
    grep -q '^not ok' "$T/speed.log" || break
done
judge "speed" 2 "$T/speed.log"

# The reference gradients, of the first document of each recipe; models of other shapes; models that mean harm. All at
# once, each in a frame of its own: frame MODEL EXPECTED [WORD].
: >"$T/frames"
width=1280
frame()
{
    microgpt page "$T/$1.safetensors" ${3:+-- "$3"} >"$T/$1.page" || not_ok "$1" "a page" "none"
    with_checks "$T/$1.page" "$T/$1.html" "{\"name\":\"$1\",$2}"
    echo "<iframe src=\"$1.html\" width=\"$width\" height=\"900\"></iframe>" >>"$T/frames"
}
for recipe in microgpt lesson; do
    model $recipe --recipe $recipe --steps 0
    frame $recipe "\"words\":[$(word_of "$T/$recipe.safetensors" myliah)],\"config\":{\"step\":0},\"gradients\":[{
        \"word\":\"myliah\",\"grads\":[$(paste -s -d , tests/reference/$recipe-names2018.grads-step1)]}]"
done

# The losses of the next three steps on one document, as JSON: MODEL DATA OPTION...
steps_of()
{
    of=$1 data=$2
    shift 2
    rm -f "$T/steps.csv"
    microgpt train -q --samples 0 --resume "$of" --data "$data" --log "$T/steps.csv" "$@" >"$T/train.log" 2>&1
    printf '"steps":[{"word":"%s","losses":[%s]}]' "$(cat "$data")" \
        "$(sed -n '2,4p' "$T/steps.csv" | cut -d , -f 2 | paste -s -d , -)"
}

# shape NAME DATA WORD OPTION...: a model of another shape, used and compared. Then on one document, so that it is known
# which one a step takes: the steps of a run that is over, and of one that is not.
shape()
{
    name=$1 data=$2 word=$3
    shift 3
    printf '%s\n' "$word" >"$T/one.txt"
    cat "$T/one.txt" "$data" >"$T/many.txt"
    model "$name" --data "$T/many.txt" --steps 30 "$@"
    model "$name.one" --data "$T/one.txt" --steps 10 "$@"
    LC_ALL=C sed 's/"train.steps":"10"/"train.steps":"30"/' "$T/$name.one.safetensors" >"$T/$name.open.safetensors"
    frame "$name" "\"use\":${use:-true},\"words\":[$(word_of "$T/$name.safetensors" "$word")],\"config\":{\"step\":30}"
    frame "$name.one" "\"words\":[$(word_of "$T/$name.one.safetensors" "$word")],\"config\":{\"step\":10},
        $(steps_of "$T/$name.one.safetensors" "$T/one.txt" --steps 20)"
    frame "$name.open" "\"words\":[$(word_of "$T/$name.open.safetensors" "$word")],\"config\":{\"step\":10},
        $(steps_of "$T/$name.open.safetensors" "$T/one.txt")"
}
head -n 200 data/names.txt >"$T/some.txt"
shape one-head "$T/some.txt" maria --n-head 1
width=360
shape sixteen-heads "$T/some.txt" charlotte --n-head 16
shape relu2 "$T/some.txt" maria --recipe lesson
width=1280
shape two-layers "$T/some.txt" amelia --n-layer 2 --n-head 2 --n-embd 8
printf '%s\n' 'zoë' 'josé' '山本太郎' 'ana maria' 'z€😀' '한국' 'שלום' >"$T/foreign.txt"
printf 'jose\314\201\nx\342\200\256y\n' >>"$T/foreign.txt"
shape unicode "$T/foreign.txt" '山zש😀' --n-embd 12 --n-head 3
use=false            # too large for every product to be a line of its own, and for sections that nobody looks at
shape fused "$T/some.txt" maria --n-embd 64 --n-layer 6

# A vocabulary that spells the end of the script, in a file with a name that would be markup; a tensor with one, too.
echo '</script>' >"$T/script.txt"
model script --data "$T/script.txt" --steps 5
evil=$T/'<img src=x onerror=pwned=1>"<!--<script>.safetensors'
LC_ALL=C sed 's|"vocab":"/<>ciprst"|"vocab":"</script>"|; s|"train.random"|"train.<b>x<i"|' \
    "$T/script.safetensors" >"$evil"
microgpt page "$evil" '</script>' >"$T/evil.page"
same "as many scripts as the page has" "$(grep -c '<script' data/page.html)" "$(grep -c '<script' "$T/evil.page")"
with_checks "$T/evil.page" "$T/evil.html" "{\"name\":\"markup\",\"use\":true,\"words\":[{\"word\":\"\\u003c/script>\",
    \"loss\":$(loss_of "$evil" "$T/script.txt"),\"views\":\"\"}],\"config\":{\"vocab\":\"\\u003c/script>\"}}"
echo '<iframe src="evil.html" width="1280" height="900"></iframe>' >>"$T/frames"

# Quotes, backslashes, control characters, marks that turn the text around, separators of lines.
# shellcheck disable=SC2016
printf '%sab\001\033\177\302\205i\342\200\250j\342\200\256k\342\200\217l\357\273\277m\n' \
    'q"\d`e&f<g>${h}'\' >"$T/marks.txt"
model marks --data "$T/marks.txt" --steps 5 --block-size 64
echo a >"$T/a.txt"
frame marks "\"use\":true,\"words\":[{\"word\":\"a\",\"loss\":$(loss_of "$T/marks.safetensors" "$T/a.txt"),
    \"views\":\"\"}],\"config\":{\"step\":5}" "$(cat "$T/marks.txt")"
same "the model is ASCII without < > & '" "" "$(sed -n '/id="model"/,/<\/script>/p' "$T/marks.page" |
    sed '1s/.*json">//; $s/<.script>//' | LC_ALL=C tr -d '\n -%(-;=?-~')"

{
    cat <<'END'
<pre id="report"></pre>
<script>
onmessage = (e) => { document.querySelector("pre").textContent += `\n${e.data}\n`; };
</script>
END
    cat "$T/frames"
} >"$T/all.html"
opened --virtual-time-budget=60000 "file://$T/all.html" | reported >"$T/all.log"
judge "all shapes" 300 "$T/all.log"
same "a report from every page" "$(wc -l <"$T/frames" | tr -d ' ')" \
    "$(sed 's/^.*ok - \([^:]*\):.*/\1/' "$T/all.log" | sort -u | wc -l | tr -d ' ')"

# What would be seen if the page did ask for something, or said something: the checks above could fail.
sed '/^<\/body>$/,$d' "$page" >"$T/control.html"
cat >>"$T/control.html" <<'END'
<script>
fetch("http://127.0.0.1:1/").catch(() => { document.title = "refused"; });
console.log("control");
</script></body></html>
END
opened --virtual-time-budget=2000 "file://$T/control.html" >"$T/control.dom"
check "a request is refused" grep -q '<title>refused</title>' "$T/control.dom"
check "by the policy, which says so on the console" grep -q 'Content Security Policy' "$T/console"
check "a message on the console is seen" grep -q control "$T/console"
finish
