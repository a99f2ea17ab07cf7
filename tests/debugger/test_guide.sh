#!/bin/sh
# What the guide, support/debugger/README.md, says and shows is so: its tables, and every command in it, typed.
# this file only with ALL=1
# needs microgpt-debug
. tests/debugger/helpers.sh
guide=support/debugger/README.md

# --- The tables.

sed -n '/^| lines | what it does/,/^$/p' $guide | grep '^| [0-9]' >"$T/shown"
same "the table of the Python program has every line of it, from 9 to 200, in order" "" "$(
    sed -n 's/^| \([0-9]*\)\(–\([0-9]*\)\)\{0,1\} |.*/\1 \3/p' "$T/shown" | awk '
        NF == 1 { $2 = $1 } $1 <= last || last && $1 > last + 5 || $2 < $1 { print } { last = $2 }
        END { if (last != 200) print last }')"
# FILE NAME for each `name()` after "FILE:".
sed 's/.*|\([^|]*\)|$/\1/' "$T/shown" | tr ';' '\n' | awk -F: '{ gsub(/ /, "", $1); n = split($2, name, ",")
    for (i = 1; i <= n; i++) { gsub(/[ `()]/, "", name[i]); print $1, name[i] } }' | sort -u >"$T/places"
check "it names functions" [ "$(wc -l <"$T/places")" -gt 20 ]
same "all that it names is where it says" "" "$(while read -r file name; do
    [ -r "$file" ] || file=$(ls support/*/$file)
    grep -q "[ *]$name\((\|\[\|;\)" "$file" || echo "$file $name"
done <"$T/places")"
for file in $(grep -o '`[a-z]*\.[ch]`' $guide | tr -d '`' | sort -u) README.md; do
    check "there is $file" sh -c "ls $file support/*/$file 2>/dev/null | grep -q ."
done
for picture in toy graph; do
    has "the guide shows the picture $picture.svg" "(../../.github/$picture.svg)" $guide
done
same "the toy has six nodes, with their gradients" "relu 4 1 + 4 1 * -6 1 leaf 2 -3 leaf -3 2 leaf 10 1" \
    "$(sed -n 's/.*>\([^<]*\)<\/text>/\1/p' .github/toy.svg | grep -v '^[abc]\( \* b\)\{0,1\}$\|^sum$' | sed 's/^data //; s/^grad //; s/&#45;/-/' | paste -sd' ' -)"

# --- What can be typed. commands TITLE: what the paragraphs that begin with "Type" below this heading name, and the second
# column of its table. typed TITLE: all of these, after `begin`, into $T/session.

commands()
{
    awk -v title="$1" '/^#/ { on = index($0, title) } /^$/ { type = 0 } /^Type `/ { type = 1 }
        on && /^\| [0-9]+ \| `/ { split($0, cell, "|"); print cell[3] } on && type' $guide | grep -o '`[^`]*`' | tr -d '`'
}
typed()
{
    { echo begin; commands "$1"; } | ask "${2:-}"
    [ "$(commands "$1")" ] || not_ok "typed: $1" "commands" "none"
    same "typed: $1: no command failed" "" "$(grep -i 'error\|undefined\|no symbol\|cannot\|not there\|no line' "$T/session")"
}
if [ ! "$have_gdb" ]; then
    skip "what can be typed" "no gdb that can run a program"
    finish
fi
figures 1 16 4
typed '# Step through it'
has "the beginning: attn 0 2" "layer 0, head 0 at position 2 (y) looks at" "$T/session"
has "the beginning: top5" "after position 3 (l), the likeliest next" "$T/session"
# Three lessons: every command, and in each row what is to be seen.
for lesson in 1 2 3; do
    typed "### Lesson $lesson:"
    awk -v n="### Lesson $lesson:" '/^#/ { on = index($0, n) } on && /^\| [0-9]/' $guide >"$T/lesson"
    same "lesson $lesson is 45 minutes" 45 "$(awk -F'|' '{ n += $2 } END { print n }' "$T/lesson")"
    for number in $(awk -F'|' '{ print $5 }' "$T/lesson" | grep -o -e '-\{0,1\}[0-9]*\.[0-9][0-9][0-9][0-9]*'); do
        has "lesson $lesson: $number" " $number" "$T/session"
    done
done
typed '### Lesson 1:'
has "lesson 1: the heads' slice" "q[4]@3" "$T/session"
same "lesson 1: four keys" 4 "$(grep -c '^  k_h ' "$T/session")"
check "lesson 1: BOS gives most" sh -c "grep 'v\[4\]@' '$T/session' | sort -g -k 6 | tail -n 1 | grep -q '@0 '"
typed '### Lesson 2:'
has "lesson 2: backward() starts there" "backward() starts here, with gradient 1" "$T/session"
same "lesson 2: the row of b has no gradient" "0 0 0 0" "$(awk '/^row 1 of wte/ { on = 1 } on && /gradient/ { g = 1; next }
    g && /\[ 0\]/ { print $3, $4, $5, $6; exit }' "$T/session")"
typed '## The graph'
has "the graph: down to the parameters" "(parameter)" "$T/session"
same "the graph: each node once" "" "$(sed -n 's/^  \(v[0-9]*\) \[label.*/\1/p' .build/graph.dot | sort | uniq -d)"
if command -v dot >/dev/null 2>&1; then
    has "the graph: a picture" "As a picture: .build/graph.svg" "$T/session"
    cp .github/graph.svg .github/toy.svg "$T"
    make -s graph >"$T/log" 2>&1
    for picture in toy graph; do
        same "make graph draws the picture $picture.svg" "$(grep -c '<g id="node' "$T/$picture.svg")" \
             "$(grep -c '<g id="node' .github/$picture.svg)"
        cp "$T/$picture.svg" .github/
    done
else
    skip "the picture" "no Graphviz"
fi
typed '### How a gradient grows'
has "how a gradient grows" "as use 2 of 7" "$T/session"
has "with the statement" "x = linear(tape, x_attn, layer->attn_wo);" "$T/session"
typed '### Going back'
if grep -q 'does not support\|failed to record' "$T/session"; then
    skip "going back" "this gdb cannot record here"
else
    same "going back: the line before, after reverse-next" "$(sed -n 's/.*\(double \*v_h = .*\)/\1/p' microgpt.c | head -n 1)" \
         "$(grep -E '^[0-9]+	' "$T/session" | tail -n 2 | sed -n 's/^[0-9]*	 *\(double \*v_h = .*\)/\1/p' | head -n 1)"
fi

# --- The exercises.

typed '### 1.' '--quiet --samples 1'
same "1: the ratio of two shares is e to the difference of their scores" "" "$(awk '$1 == "1." { a = $3; p = $5 }
    $1 == "2." { r = exp((a - $3) / 0.5) * $5 / p } END { if (r < 0.9999 || r > 1.0001) print "the ratio is " r }' \
    "$T/session")"
typed '### 2.'
same "2: four elements of x_attn are zero" "0 0 0 0" "$(echo $(awk '$1 == "head" && $4 == "->" { print $6 }' "$T/session"))"
same "2: the guess is another, and the one that silence gives" "another, $(awk '/were silent/ { on = 1 }
    on && $1 == "1." { print $4; exit }' "$T/session")" "$(awk '/likeliest/ { n++ } $1 == "1." && n == 1 && a == "" { a = $4 }
    $1 == "1." && n == 2 { print ($4 == a ? "the same, " : "another, ") $4 }' "$T/session")"
for n in $(seq 7); do
    commands '### 3.' | make -s broken BREAK="$n" DEBUGGER=gdb >"$T/session" 2>&1
    same "3: derivative $n is broken in one line" 1 "$(diff autograd.c .build/broken/autograd.c | grep -c '^>')"
    same "3: and nudge finds it" "They agree. THEY DIFFER." \
         "$(echo $(grep -o 'They agree\.\|THEY DIFFER\.' "$T/session" | sed -n '1p;3p'))"
done
rm -rf .build/broken

# typed_in NAME TITLE: the same in a copy that is changed.
typed_in() { { echo begin; commands "$2"; } | ask_in "$1"; }
changed softplus 's/x = ag_relu(tape, x, \([a-z_]*\));/x = ag_log(tape, ag_add_const(tape, ag_exp(tape, x, \1), 1, \1), \1);/'
typed_in softplus '### 4.'
has "4: the activation has its name and its operation" "act[0]@3" "$T/session"
has "4: a logarithm" "(log)" "$T/session"
same "4: its derivative is right" "They agree. They agree." "$(echo $(grep -o 'They agree\.\|THEY DIFFER\.' "$T/session"))"
changed shared 's/double \*k_h = keys\[li\] + hs;/double *k_h = keys[li] + h \/ 2 * 2 * head_dim;/'
typed_in shared '### 5.'
has "5: head 1 looks for the keys of head 0" "q[4]@3 * k[0]@2" "$T/session"
same "5: and head says so" "k[0..3] k[0..3] k[0..3] k[0..3]" "$(echo $(awk '$1 == "k_h" { print $NF }' "$T/session"))"
same "5: the other keys have no gradient" 0 "$(awk '$1 == "gradient" { print $2; exit }' "$T/session")"
has "5: and its derivative is right" "They agree." "$T/session"

has "README.md leads to the guide" "(support/debugger/README.md)" README.md
finish
