# The page's model, tape, training and votes in node, without a browser, against the program's figures.
# this file only with ALL=1
. tests/lib.sh
. tests/page/lib.sh

if ! command -v node >/dev/null 2>&1; then
    skip "the page's model in node" "no node here"
    finish
fi

# of NAME [MORE]: what the program says of a model goes into the plan.
: >"$T/models"
of()
{
    words='' votes=''
    for word in maria x elyanah; do
        words="$words${words:+,}{\"word\":\"$word\",\"loss\":$(loss_of "$T/$1.safetensors" "$word")}"
        votes="$votes${votes:+,}\"$word\":\"$(microgpt heads "$T/$1.safetensors" --votes --tsv "$word" | json_text)\""
    done
    [ ! -s "$T/models" ] || echo , >>"$T/models"
    printf '{"name":"%s","file":"%s","words":[%s],"votes":{%s}%s}\n' "$1" "$T/$1.safetensors" "$words" "$votes" \
        "${2:-}" >>"$T/models"
}

# run NAME OPTION...: a model, with the documents of its page and the losses of its run.
run()
{
    model "$@"
    page "$1"
    documents=$(sed -n 's/^"documents":"\(.*\)",$/"\1"/p' "$T/$1.html" | sed 's/\\n/","/g')
    of "$1" ",\"run\":{\"documents\":[$documents],\"n_documents\":$(grep -c . data/names.txt),
        \"losses\":[$(losses_of "$T/$1.csv" 1000)]}"
}
run names --steps 1000
run lesson --steps 500 --recipe lesson
run batch --steps 60 --batch 3 --seed 18446744073709551615 --holdout 1000
run two-layers --steps 60 --n-layer 2 --n-head 2 --n-embd 8
run decay --steps 200 --weight-decay 0.1
model one-head --n-head 1 --steps 30
of one-head
model relu2 --recipe lesson --n-layer 2 --steps 60
of relu2
for recipe in microgpt lesson; do
    model "$recipe-0" --recipe $recipe --steps 0
    of "$recipe-0" ",\"gradients\":{\"word\":\"myliah\",
        \"grads\":[$(paste -s -d , tests/reference/$recipe-names2018.grads-step1)]}"
done
printf '{"models":[%s]}\n' "$(cat "$T/models")" >"$T/plan.json"
in_node 50 "the page's model in node" tests/page/core.js "$T/plan.json"
finish
