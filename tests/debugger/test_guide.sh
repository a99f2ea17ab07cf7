#!/bin/sh
# What README.md beside this file says and shows is so: its map, its tables, and every command in it, typed.
# this file only with ALL=1
# needs microgpt-debug
. tests/debugger/helpers.sh
guide=tests/debugger/README.md

# --- The map and the tables.

sh tests/debugger/map >"$T/map" 2>&1
sed -n '/^<!-- map -->/,/^<!-- end/p' $guide | grep -v '^<!--' >"$T/shown"
same "the stop that the guide shows is at its line" \
    "$(awk '/double \*attn_weights = softmax/ { print NR }' microgpt.c)" \
    "$(sed -n 's/^==== 8 of 18 ==== microgpt.c:\([0-9]*\),.*/\1/p' tests/debugger/README.md)"
same_file "the map of the Python program (sh tests/debugger/map --write brings it up to date)" "$T/map" "$T/shown"
same "has every line of it, from 9 to 200, in order" "" "$(
    sed -n 's/^| \([0-9]*\)\(–\([0-9]*\)\)\{0,1\} |.*/\1 \3/p' "$T/shown" | awk '
        NF == 1 { $2 = $1 } $1 <= last || last && $1 > last + 5 || $2 < $1 { print } { last = $2 }
        END { if (last != 200) print last }')"
grep '^| 1[23][0-9] |' $guide | sed 's/.*| `\(.*\)` |$/\1/' >"$T/lines"
same "the lesson's lines 123 to 133" "$(seq 123 133)" "$(sed -n 's/^| \(1[23][0-9]\) |.*/\1/p' $guide)"
same "ours beside them are in microgpt.c" "" \
     "$(while IFS= read -r line; do grep -qF -e "$line" microgpt.c || echo "$line"; done <"$T/lines")"
for name in $(sed -n 's/^define \([a-z0-9]*\)$/\1/p' .gdbinit); do
    case $name in begin | rewind | passing) continue ;; esac
    has "the table of commands has $name" "| \`$name" $guide
done
for file in views.c names.h map; do
    check "there is $file" [ -r tests/debugger/$file ]
done

# --- What can be typed. typed TITLE: the commands below this heading, after `begin`, into $T/session.

commands()
{
    awk -v title="$1" '/^#/ { on = index($0, title) } on && /^```$/ { show = 0 } on && show
        on && /^```gdb/ { show = 1 }' $guide
}
typed()
{
    { echo begin; commands "$1"; } | ask "${2:-}"
    [ "$(commands "$1")" ] || not_ok "typed: $1" "commands" "none"
    same "typed: $1: no command failed" "" "$(grep -i 'error\|undefined\|no symbol\|cannot' "$T/session")"
}
if [ ! "$have_gdb" ]; then
    skip "what can be typed" "no gdb that can run a program"
    finish
fi
figures 1 16 4
typed '# Step through it'
has "the beginning: attn 0 2" "layer 0, head 0 at position 2 (y) looks at" "$T/session"
has "the beginning: top5" "after position 3 (l), the likeliest next" "$T/session"
has "the beginning: explain" "lm_head[5][0] * x_out[0] at 3" "$T/session"
typed '### How a gradient grows'
has "how a gradient grows" "as use 2 of 7" "$T/session"
typed '### Going back'
if grep -q 'does not support\|failed to record' "$T/session"; then
    skip "going back" "this gdb cannot record here"
else
    same "going back: the line before, after reverse-next" "$(sed -n 's/.*\(double \*v_h = .*\)/\1/p' microgpt.c | head -n 1)" \
         "$(grep -E '^[0-9]+	' "$T/session" | tail -n 2 | sed -n 's/^[0-9]*	 *\(double \*v_h = .*\)/\1/p' | head -n 1)"
fi
make -s tour >"$T/tour" 2>&1 </dev/null
awk '/^==== / { on = 1 } /^```/ { on = 0 } on' $guide | sed 's/microgpt.c:[0-9]*/microgpt.c/' >"$T/shown"
sed 's/microgpt.c:[0-9]*/microgpt.c/' "$T/tour" >"$T/tour.plain"
same "the walk looks as it is shown" "" \
     "$(while IFS= read -r line; do grep -qxF -e "$line" "$T/tour.plain" || echo "$line"; done <"$T/shown")"
check "a stop of it is shown" [ -s "$T/shown" ]

# --- The exercises.

typed '### 1.'
has "1: the loss" "3.48736" "$T/session"
typed '### 2.'
near "2: the weights follow from the logits" "$(figure attn_logits:2:0:3 | awk '{ e[NR] = exp($1); s += e[NR] }
    END { for (i = 1; i <= NR; i++) printf "%.6g\n", e[i] / s }')" "$(columns 4 <"$T/session" | tail -n 4)"
typed '### 3.'
same "3: b has no gradient, y has; position 7 has none; every row of lm_head has one" "0 1 0 1" \
     "$(echo $(awk '$1 == "gradient" { print $2 != 0 }' "$T/session"))"
typed '### 4.'
near "4: Adam's second step, by hand" "$(awk '
    $1 == "value" && $2 != "before" && $2 != "after" { p = $2 } $1 == "gradient" { g = $2 }
    $1 == "Adam'"'"'s" && $2 == "m" { m = $3 } $1 == "Adam'"'"'s" && $2 == "v" { v = $3 }
    / at step 1, / { m = 0.85 * m + 0.15 * g; v = 0.99 * v + 0.01 * g * g
        printf "%.4f", p - 0.01 * 0.999 * m / (1 - 0.85 ^ 2) / (sqrt(v / (1 - 0.99 ^ 2)) + 1e-8); exit }' "$T/session")" \
     "$(awk '/value after/ { printf "%.4f", $3 }' "$T/session")"
typed '### 5.' '--quiet --samples 1'
same "5: the ratio of two shares is e to the difference of their scores" "" "$(awk '$1 == "1." { a = $3; p = $5 }
    $1 == "2." { r = exp((a - $3) / 0.5) * $5 / p } END { if (r < 0.9999 || r > 1.0001) print "the ratio is " r }' \
    "$T/session")"
typed '### 6.'
same "6: four elements of x_attn are zero" "0 0 0 0" "$(echo $(awk '$1 == "head" && $4 == "->" { print $6 }' "$T/session"))"
same "6: and the guess is another" another "$(awk '$1 == "1." { print $4 == 0.0610924 ? "the same" : "another" }' "$T/session")"
for n in $(seq 7); do
    commands '### 7.' | make -s broken BREAK="$n" >"$T/session" 2>&1
    same "7: derivative $n is broken in one line" 1 "$(diff autograd.c tests/build/broken/autograd.c | grep -c '^>')"
    same "7: and nudge finds it" "They agree. THEY DIFFER." \
         "$(echo $(grep -o 'They agree\.\|THEY DIFFER\.' "$T/session" | sed -n '1p;3p'))"
done
check "7: an eighth there is not" sh -c '! sh tests/debugger/break 8'
rm -rf tests/build/broken

# changed NAME SCRIPT: a debug build of a copy that sed has changed, in $T/NAME.
changed()
{
    mkdir -p "$T/$1/tests"
    cp -r microgpt.c autograd.c autograd.h Makefile .gdbinit "$T/$1"
    cp -r tests/debugger "$T/$1/tests"
    ln -s "$ROOT/data" "$T/$1/data"
    sed "$2" microgpt.c >"$T/$1/microgpt.c"
    check "$1: a line of microgpt.c is changed" sh -c "! cmp -s microgpt.c '$T/$1/microgpt.c'"
    (cd "$T/$1" && make -s CC="$CC" microgpt-debug) || not_ok "$1" "a program" "an error"
}
n=n_hidden
changed softplus "s/x = ag_relu(tape, x, n_hidden);/x = ag_log(tape, ag_add_const(tape, ag_exp(tape, x, $n), 1, $n), $n);/"
{ echo begin; commands '### 8.'; } >"$T/commands"
(cd "$T/softplus" &&
    gdb -nx -q -batch -x .gdbinit -x "$T/commands" ./microgpt-debug >"$T/session" 2>&1 </dev/null)
has "8: the activation has its name and its operation" "act[0] at 3" "$T/session"
has "8: a logarithm" "(log)" "$T/session"
same "8: its derivative is right" "They agree. They agree." "$(echo $(grep -o 'They agree\.\|THEY DIFFER\.' "$T/session"))"
cp "$T/session" "$T/known"
sed '/case OP_LOG: return 1/d' tests/debugger/views.c >"$T/softplus/tests/debugger/views.c"
(cd "$T/softplus" && make -s CC="$CC" microgpt-debug &&
    gdb -nx -q -batch -x .gdbinit -x "$T/commands" ./microgpt-debug >"$T/session" 2>&1 </dev/null)
has "8: a local derivative is shown" "local derivative 0." "$T/session"
same_file "8: of an operation that the views do not know, too" "$T/known" "$T/session"
changed shared 's/double \*k_h = keys\[li\] + hs;/double *k_h = keys[li] + h \/ 2 * 2 * head_dim;/'
{ echo begin; commands '### 9.'; } >"$T/commands"
(cd "$T/shared" &&
    gdb -nx -q -batch -x .gdbinit -x "$T/commands" ./microgpt-debug >"$T/session" 2>&1 </dev/null)
has "9: head 1 looks for the keys of head 0" "q[4] at 3 * k[0] at 2" "$T/session"
same "9: the other keys have no gradient" 0 "$(awk '$1 == "gradient" { print $2; exit }' "$T/session")"
has "9: and its derivative is right" "They agree." "$T/session"

# --- The main README.

for command in debug tour; do
    has "README.md: make $command" "    make $command " README.md
    check "make $command can be typed" make -n "$command"
done
has "README.md leads to the guide" "(tests/debugger/README.md)" README.md
finish
