# The page's model, tape, training and votes in node, without a browser, against the program's figures.
# this file only with ALL=1
. tests/lib.sh

if ! command -v node >/dev/null 2>&1; then
    skip "the page's model in node" "no node here"
    finish
fi

# The losses of a log, as JSON: CSV N.
losses_of() { sed -n "2,$(($2 + 1))p" "$1" | cut -d , -f 2 | paste -s -d , -; }
json_text() { awk '{ gsub(/\t/, "\\t"); printf "%s\\n", $0 }'; }
has_votes() { microgpt heads --help | grep -q -- --votes; }

# of NAME MORE OPTION...: trains a model; what the program says of it goes into the plan.
: >"$T/models"
of()
{
    name=$1 more=$2
    shift 2
    microgpt train -q --samples 0 --save "$T/$name.safetensors" --log "$T/$name.csv" "$@" >"$T/train.log" 2>&1 ||
        not_ok "$name" "a model" "$(cat "$T/train.log")"
    words='' votes=''
    for word in maria x elyanah; do
        echo "$word" >"$T/word.txt"
        loss=$(microgpt eval "$T/$name.safetensors" -q --data "$T/word.txt" | sed -n 's/^loss //p')
        words="$words${words:+,}{\"word\":\"$word\",\"loss\":$loss}"
        has_votes && votes="$votes${votes:+,}\"$word\":\"$(microgpt heads "$T/$name.safetensors" --votes --tsv "$word" | json_text)\""
    done
    [ ! -s "$T/models" ] || echo , >>"$T/models"
    printf '{"name":"%s","file":"%s","words":[%s],"votes":{%s}%s}\n' "$name" "$T/$name.safetensors" "$words" "$votes" \
        "$more" >>"$T/models"
}

# The documents of the page, and how many there are.
documents()
{
    microgpt page "$T/$1.safetensors" >"$T/$1.html" 2>"$T/page.log" || not_ok "$1" "a page" "$(cat "$T/page.log")"
    sed -n 's/^"documents":"\(.*\)",$/"\1"/p' "$T/$1.html" | sed 's/\\n/","/g'
}

# run NAME STEPS OPTION...: a model with the losses of its run.
run()
{
    name=$1 steps=$2
    shift 2
    microgpt train -q --samples 0 --steps "$steps" --save "$T/$name.safetensors" --log "$T/$name.csv" "$@" >"$T/train.log" 2>&1
    of "$name" ",\"run\":{\"documents\":[$(documents "$name")],\"n_documents\":$(grep -c . data/names.txt),
        \"losses\":[$(losses_of "$T/$name.csv" 1000)]}" --steps "$steps" "$@"
}
run names 1000
run lesson 500 --recipe lesson
run batch 60 --batch 3 --seed 18446744073709551615 --holdout 1000
run two-layers 60 --n-layer 2 --n-head 2 --n-embd 8
! microgpt --help train | grep -q weight-decay || run decay 200 --weight-decay 0.1
of one-head "" --n-head 1 --steps 30
of relu2 "" --recipe lesson --n-layer 2 --steps 60
for recipe in microgpt lesson; do
    of "$recipe-0" ",\"gradients\":{\"word\":\"myliah\",
        \"grads\":[$(paste -s -d , tests/reference/$recipe-names2018.grads-step1)]}" --recipe $recipe --steps 0
done
printf '{"models":[%s]}\n' "$(cat "$T/models")" >"$T/plan.json"
node tests/page/core.js "$T/plan.json" >"$T/core.out" 2>"$T/core.log"
cat "$T/core.out"
failures=$((failures + $(grep -c '^not ok' "$T/core.out")))
[ "$(wc -l <"$T/core.out")" -ge 50 ] || not_ok "the page's model in node" "50 checks or more" "$(wc -l <"$T/core.out"): $(tail -n 5 "$T/core.log" | tr '\n' ' ')"
finish
