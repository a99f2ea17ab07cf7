# The page itself, opened from a file in Chromium and compared with the program. browser.js drives it by real input:
# presses, touches and keys. It needs node, Chromium, and from npm puppeteer-core and axe-core, which NODE_PATH may have.
# this file only with ALL=1
. tests/lib.sh
. tests/page/lib.sh

# The statements of C on the page are in microgpt.c.
cat ./*.c support/[!d]*/*.c 2>/dev/null | tr -s ' \n' '  ' >"$T/microgpt.c"
sed -n '/^const KINDS/,/^};/p' data/page/gpt.js | tr -s ' \n' '  ' | sed 's/" + "//g' | grep -o 'code: "[^"]*;"' |
    sed 's/^code: "//; s/"$//' | sort -u >"$T/statements"
same "statements on the page: at least 20" yes "$([ "$(wc -l <"$T/statements")" -ge 20 ] && echo yes)"
while IFS= read -r statement; do
    check "in the program: $statement" grep -qF -- "$statement" "$T/microgpt.c"
done <"$T/statements"

browser=$(command -v chromium || command -v chromium-browser || command -v google-chrome || command -v chrome)
for tool in node npm "${browser:-Chromium}"; do
    if ! command -v "$tool" >/dev/null 2>&1; then
        skip "the page in a browser" "no $tool here"
        finish
    fi
done
modules=$ROOT/$BUILD/node
export NODE_PATH="${NODE_PATH:+$NODE_PATH:}$modules/node_modules"
has_modules() { node -e 'require("puppeteer-core"); require.resolve("axe-core/axe.min.js")' >"$T/node.log" 2>&1; }
if ! has_modules; then
    mkdir -p "$modules"
    npm install --silent --no-audit --no-fund --prefix "$modules" puppeteer-core axe-core >"$T/npm.log" 2>&1
fi
if ! has_modules; then
    skip "the page in a browser" "no puppeteer-core and axe-core from npm"
    finish
fi

# What the program says of a word, as JSON: MODEL WORD [POSITIONS, if it is cut].
word_of()
{
    printf '{"word":"%s","loss":%s,"cut":%s,' "$2" "$(loss_of "$1" "$2")" "${3:-0}"
    [ -n "${3:-}" ] || printf '"heads":"%s",' "$(microgpt heads "$1" --tsv -- "$2" | json_text)"
    printf '"views":"%s"}' "$(microgpt heads "$1" -q --data "$T/word.txt" --tsv | json_text)"
}

# One page of the plan: NAME MORE.
: >"$T/figures"
figures()
{
    [ ! -s "$T/figures" ] || printf ',\n' >>"$T/figures"
    printf '{"name":"%s","file":"%s",%s}' "$1" "$T/$1.html" "$2" >>"$T/figures"
}

model names --steps 2000
page names --log "$T/names.csv" --data data/names.txt maria
names=$T/names.safetensors
words=$(word_of "$names" maria),$(word_of "$names" x),$(word_of "$names" abcdefghijklmno)
words=$words,$(word_of "$names" bartholomewsmith 16),$(word_of "$names" bartholomewsmithandsons 16)
figures names "\"words\":[$words],\"run\":[$(losses_of "$T/names.csv" 200)],\"config\":{\"n_layer\":1,\"n_embd\":16,
    \"n_head\":4,\"block_size\":16,\"activation\":\"relu\",\"vocab\":\"abcdefghijklmnopqrstuvwxyz\",\"step\":2000}"

# shape NAME DATA WORD OPTION...: a model of another shape, compared; then on one document, the steps of a run that goes on.
shape()
{
    shaped=$1 data=$2 word=$3
    shift 3
    printf '%s\n' "$word" >"$T/one.txt"
    cat "$T/one.txt" "$data" >"$T/$shaped.txt"
    model "$shaped" --data "$T/$shaped.txt" --steps 30 "$@"
    page "$shaped" --data "$T/$shaped.txt" -- "$word"
    figures "$shaped" "\"words\":[$(word_of "$T/$shaped.safetensors" "$word")],\"config\":{\"step\":30},\"run\":[$(losses_of "$T/$shaped.csv" 30)]"
    model "$shaped-one" --data "$T/one.txt" --steps 10 "$@"
    page "$shaped-one" --data "$T/one.txt"
    model "$shaped-next" --data "$T/one.txt" --steps 20 --resume "$T/$shaped-one.safetensors"
    figures "$shaped-one" "\"config\":{\"step\":10},
        \"steps\":{\"word\":\"$word\",\"losses\":[$(losses_of "$T/$shaped-next.csv" 3)]}"
}
head -n 200 data/names.txt >"$T/some.txt"
shape sixteen-heads "$T/some.txt" charlotte --n-head 16
shape relu2 "$T/some.txt" maria --recipe lesson
shape two-layers "$T/some.txt" amelia --n-layer 2 --n-head 2 --n-embd 8
printf '%s\n' 'zoë' 'josé' '山本太郎' 'ana maria' 'z€😀' '한국' 'שלום' >"$T/foreign.txt"
printf 'jose\314\201\nx\342\200\256y\n' >>"$T/foreign.txt"
shape unicode "$T/foreign.txt" '山zש😀' --n-embd 12 --n-head 3

# A page with another model file in it, which the program itself would refuse: PAGE MODEL COPY.
# shellcheck disable=SC2016
with_model()
{
    node -e 'const fs = require("fs"), [from, model, to] = process.argv.slice(1), text = fs.readFileSync(from, "utf8");
        fs.writeFileSync(to, text.replace(/"model":"[^"]*"/, `"model":"${fs.readFileSync(model).toString("base64")}"`));' "$@"
}

# Without what a resume needs.
node -e 'const fs = require("fs"), [from, to] = process.argv.slice(1), data = fs.readFileSync(from), n = Number(data.readBigUInt64LE(0));
    const header = JSON.parse(data.subarray(8, 8 + n)), drop = (all, part) => Object.keys(all).filter((key) => key.startsWith(part)).forEach((key) => delete all[key]);
    drop(header.__metadata__, "train."); drop(header.__metadata__, "checksum"); drop(header, "train.");
    const text = Buffer.from(JSON.stringify(header)), length = Buffer.alloc(8), end = Math.max(...Object.values(header).map((w) => w.data_offsets?.[1] ?? 0));
    length.writeBigUInt64LE(BigInt(text.length));
    fs.writeFileSync(to, Buffer.concat([length, text, data.subarray(8 + n, 8 + n + end)]));' "$names" "$T/bare.safetensors"
page bare
figures bare "\"words\":[$(word_of "$T/bare.safetensors" maria)],\"config\":{\"step\":0}"

# A vocabulary that spells the end of the script, in a file with a name that would be markup; a tensor with one, too.
echo '</script>' >"$T/script.txt"
model script --data "$T/script.txt" --steps 5
evil=$T/'<img src=x onerror=pwned=1>"<!--<script>.safetensors'
LC_ALL=C sed 's|"vocab":"/<>ciprst"|"vocab":"</script>"|; s|"train.random"|"train.<b>x<i"|' "$T/script.safetensors" >"$evil"
microgpt page "$evil" --data "$T/script.txt" '</script>' >"$T/evil.html"
same "as many scripts as the page has" "$(grep -c '<script' data/page/index.html)" "$(grep -c '<script' "$T/evil.html")"
figures evil "\"words\":[{\"word\":\"\\u003c/script>\",\"loss\":$(loss_of "$evil" "</script>")}],
    \"config\":{\"vocab\":\"\\u003c/script>\"}"

# Quotes, backslashes, control characters, marks that turn the text around, separators of lines.
# shellcheck disable=SC2016
printf '%sab\001\033\177\302\205i\342\200\250j\342\200\256k\342\200\217l\357\273\277m\n' 'q"\d`e&f<g>${h}'\' >"$T/marks.txt"
model marks --data "$T/marks.txt" --steps 5 --block-size 64
page marks --data "$T/marks.txt" -- "$(cat "$T/marks.txt")"
figures marks "\"words\":[{\"word\":\"a\",\"loss\":$(loss_of "$T/marks.safetensors" a)}],\"config\":{\"step\":5}"

# A model that the page could only show wrongly: it says so instead.
LC_ALL=C sed 's/"activation":"relu"/"activation":"leaky"/' "$names" >"$T/leaky.safetensors"
with_model "$T/names.html" "$T/leaky.safetensors" "$T/leaky.html"

# One that the page computes otherwise than the program: a loss is changed in its eighth digit.
sed '/^"losses":/s/\(\["[a-z]*",[0-9.]\{8\}\)[0-9]/\1x/; /^"losses":/s/x[0-9]*/91234567/' "$T/names.html" >"$T/another.html"

# The parts as they are: with a model beside them, and with none.
rm -rf "$T/door" "$T/beside"
cp -r data/page "$T/door"
: >"$T/door/model.js"
cp -r data/page "$T/beside"
sed -n '/^const FROM_PROGRAM/,/};$/p' "$T/names.html" >"$T/beside/model.js"

model large --n-embd 64 --n-layer 4 --n-head 8 --steps 20
page large --data data/names.txt
cat >"$T/plan.json" <<END
{"chromium": "$browser", "page": "$T/names.html", "large": "$T/large.html", "figures": [$(cat "$T/figures")],
"refused": [{"name": "leaky", "file": "$T/leaky.html", "line": "does not know the activation"},
{"name": "another model", "file": "$T/another.html", "line": "another model than the program", "where": "#disagrees"}],
"door": {"template": "$T/door/index.html", "beside": "$T/beside/index.html", "model": "$names", "junk": "$T/some.txt"}}
END
# PARTS=story,keys runs some of it.
in_node "$([ -z "${PARTS:-}" ] && echo 200 || echo 1)" "the page in a browser" \
    tests/page/browser.js "$T/plan.json" ${PARTS:+"$PARTS"}
finish
