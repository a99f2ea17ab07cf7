# Helpers for the tests of the page, beside those of tests/lib.sh.

# model NAME OPTION...: trains $T/NAME.safetensors, with the log of the run beside it.
model()
{
    file=$T/$1
    shift
    microgpt train -q --samples 0 --save "$file.safetensors" --log "$file.csv" "$@" >"$T/train.log" 2>&1 ||
        not_ok "$file" "a model" "$(cat "$T/train.log")"
}

# page NAME OPTION...: writes $T/NAME.html.
page()
{
    name=$1
    shift
    microgpt page "$T/$name.safetensors" "$@" >"$T/$name.html" 2>"$T/page.log" ||
        not_ok "$name" "a page" "$(cat "$T/page.log")"
}

# loss_of MODEL WORD, as the program says it.
loss_of()
{
    printf '%s\n' "$2" >"$T/word.txt"
    microgpt eval "$1" -q --data "$T/word.txt" | sed -n 's/^loss //p'
}

# As JSON: the first N losses of a log, CSV N; and a text.
losses_of() { sed -n "2,$(($2 + 1))p" "$1" | cut -d , -f 2 | paste -s -d , -; }
json_text() { awk '{ gsub(/\t/, "\\t"); printf "%s\\n", $0 }'; }

# in_node LEAST WHAT SCRIPT ARGUMENT...: a script whose checks count as ours, LEAST or more of them.
in_node()
{
    least=$1 what=$2
    shift 2
    timeout 600 node "$@" >"$T/node.out" 2>"$T/node.log"
    cat "$T/node.out"
    failures=$((failures + $(grep -c '^not ok' "$T/node.out")))
    [ "$(wc -l <"$T/node.out")" -ge "$least" ] ||
        not_ok "$what" "$least checks or more" "$(wc -l <"$T/node.out"): $(tail -n 5 "$T/node.log" | tr '\n' ' ')"
}
