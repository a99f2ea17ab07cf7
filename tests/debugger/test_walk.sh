#!/bin/sh
# The guided walk, with and without a terminal, and after straying from it; how many steps it is from a line of gpt() to
# the arithmetic; and the way back.
# this file only with ALL=1
# needs microgpt-debug
. tests/debugger/helpers.sh

if [ ! "$have_gdb" ]; then
    skip "the walk, the table of steps, the way back" "no gdb that can run a program"
    finish
fi
figures 1 16 4

# --- The walk, unattended: the same into a pipe and without a keyboard, all of it on standard output.

make -s tour >"$T/tour" 2>"$T/tour.err" </dev/null
same "make tour runs to its end" 0 $?
same "all of it is on standard output" "" "$(cat "$T/tour.err")"
same "with all stops, each with its line of the source" "$(seq 18)" \
     "$(sed -n 's/^==== \([0-9]*\) of 18 ==== microgpt.c:[0-9]*, in [a-z_]*()$/\1/p' "$T/tour")"
same "no line has more than 79 columns" "" "$(awk 'length($0) > 79' "$T/tour")"
same "no stop went wrong" "" "$(grep -i 'error\|undefined\|no symbol\|not being run\|none yet\|elsewhere' "$T/tour")"
last_loss=$(sed -n 's/^ *loss \([0-9.]*\)$/\1/p' "$T/tour" | tail -n 1)
near "its loss is the engine's" "$(figure loss)" "$last_loss"
near "and the Python program's first" 3.487362926026387 "$last_loss"
has "its name is the program's first sample" "as gpt() has seen it: $(./microgpt | sed -n 's/^sample  1: //p')" "$T/tour"
if command -v script >/dev/null 2>&1 && script -qec true "$T/typed" </dev/null >/dev/null 2>&1; then
    have_terminal=1
    printf 'a key\n' | script -qec 'make -s tour | cat; read -r key; echo "left: $key"' "$T/typed" >/dev/null 2>&1
    has "into a pipe it reads no keys" "left: a key" "$T/typed"
    tr -d '\r' <"$T/typed" | sed -n '/^A walk/,/^left:/p' | grep -v '^left:\|^num \|^vocab \|^sample \|^--- ' >"$T/piped"
    sed -n '/^A walk/,$p' "$T/tour" | grep -v '^num \|^vocab \|^sample \|^--- ' >"$T/expected"
    same_file "and prints the same" "$T/expected" "$T/piped"
else
    have_terminal=
    skip "the walk with a terminal" "no script(1)"
fi

# --- With somebody at the keyboard.

# tour <COMMANDS: the walk with gdb's prompt. block FILE N: what its N-th stop shows, up to the prompt.
tour() { gdb -nx -q -x .gdbinit -x tests/debugger/tour.gdb --args ./microgpt-debug --quiet --samples 1 2>&1; }
block() { awk -v n="$2" '/^==== / { i++; on = 1 } /^\([0-9]+ of 18/ { on = 0 } on && i == n' "$1"; }

{ yes go | head -n 18; echo quit; } | tour >"$T/walked"
same "a stop has at most 23 lines" "" "$(awk '
    /^==== / { stop = $2; n = 0 } /^\([0-9]+ of 18/ { if (n > 23) print "stop " stop ": " n; n = 0 } { n++ }' "$T/walked")"
same "every stop says what more there is" "$(grep -c '^set \$more = 1\|^  set \$more = 1' tests/debugger/tour.gdb)" \
     "$(grep -c '^([0-9]* of 18.*more' "$T/walked")"

# Wherever one strays, the next stop is where it always is: after stop N, these commands.
strays='finish|next|step|until|finish|tbreak gpt if pos_id == 5;continue|finish|kill|up|next 3|break gpt;continue;continue'
strays="$strays|finish|delete|finish|next|finish"
stop=0
echo "$strays" | tr '|' '\n' | while read -r commands; do
    stop=$((stop + 1))
    printf '%s\n' "go $stop" "$commands" go | tr ';' '\n'
done >"$T/strays"
tour <"$T/strays" >"$T/strayed"
for stop in $(seq 16); do
    same "stop $((stop + 1)) is at its place after: $(echo "$strays" | cut -d '|' -f "$stop")" \
         "$(block "$T/walked" $((stop + 1)))" "$(block "$T/strayed" $((2 * stop)))"
done

# The prompt is gdb's own: what is mistyped is said so, and Enter repeats go.
if [ "$have_terminal" ]; then
    printf '%s\n' go '' nonsense 'print pos_id' go q | TERM=dumb script -qec 'make -s tour' "$T/typed" >/dev/null 2>&1
    tr -d '\r' <"$T/typed" >"$T/typed.txt"
    same "with a terminal: go, Enter, other commands, go" "1 2 3 4" \
         "$(echo $(sed -n 's/^==== \([0-9]*\) of 18 ====.*/\1/p' "$T/typed.txt"))"
    has "a mistyped command is said so" 'Undefined command: "nonsense"' "$T/typed.txt"
    same "and in gdb's own words" 0 "$(grep -c 'sourced command file' "$T/typed.txt")"
    has "another command is gdb's" ' = 3' "$T/typed.txt"
fi

# --- What `step` passes by and goes through is there under these names.

for name in $(sed -n -e 's/^pipe .*skip -rfu ^(\(.*\))\$ @.*/\1/p' -e "s/.*grep -Eq '^(\(.*\)) '/\1/p" .gdbinit | tr '|' '\n' |
    grep -v '[.*]\|^mem\|^exp$\|^log$\|^pow$\|^sqrt$\|^cos$'); do
    check ".gdbinit: there is a function $name()" \
        grep -q "[ *]$name(" microgpt.c autograd.c autograd.h tests/debugger/views.c
done

# --- From a line of the algorithm to the arithmetic: steps FUNCTION TEXT TARGET GOAL ROW, as in the table of the guide.

steps()
{
    {
        printf 'begin\neval "tbreak microgpt.c:%%d", line_of("%s", "%s")\ncontinue\n' "$1" "$2"
        for i in $(seq 40); do printf 'echo @%s \\n\nstep\n' "$i"; done
    } | ask --quiet
    n=$(awk -v target="$3" '/^@/ { n = substr($1, 2) } /^[0-9]+\t/ && index($0, target) { print n; exit }' "$T/session")
    what=$(printf 'steps from %-13s to %-28s %3s, goal %s' "${2% =*}" "$3" "${n:-none}" "$4")
    if [ "${n:-99}" -le "$4" ]; then ok "$what"; else not_ok "$what" "$4 or fewer" "${n:-more than 40}"; fi
    # clang's lines begin elsewhere: there a step or two more.
    $CC --version 2>/dev/null | grep -q clang || same "as the guide says" "$(sed -n "s/^| \`$5\` | the .* | \([0-9]*\) |\$/\1/p" tests/debugger/README.md)" "$n"
}
steps gpt 'attn_weights =' 'exp(l->a[i])' 20 'softmax('
steps gpt 'layer->attn_wq' 'l->a[i] * l->b[i]' 8 'linear('
steps gpt 'rmsnorm(' 'l->a[i] * l->b[i]' 10 'rmsnorm('
steps gpt 'ag_row_dots(' 'l->a[i] * l->b[i]' 8 'ag_row_dots('
steps train_step 'backward(' '+=' 12 'backward('
steps train_step 'adam(' 'm[i] = ' 8 'adam('

# --- The way back, where gdb can record.

ask '' <<'EOF'
rewind 1 3
eval "tbreak microgpt.c:%d", line_of("gpt", "head_out =")
continue
echo @there\n
print attn_weights[0]
echo @back\n
eval "tbreak microgpt.c:%d", line_of("gpt", "ag_row_dots(")
reverse-continue
reverse-next
print h
echo @in\n
reverse-step
echo @forth\n
eval "tbreak microgpt.c:%d", line_of("gpt", "head_out =")
continue
print attn_weights[0]
EOF
if ! grep -q '^Recording' "$T/session" || grep -q 'does not support\|failed to record' "$T/session"; then
    skip "the way back" "this gdb cannot record here"
else
    part back >"$T/back"
    has "reverse-continue goes back to a breakpoint" 'ag_row_dots(' "$T/back"
    has "reverse-next to the line before" 'double *v_h = ' "$T/back"
    part in >"$T/in"
    has "reverse-step one more" 'double *k_h = ' "$T/in"
    has "in the same head" '= 1' "$T/back"
    same "forth again, the weight is what it was" "$(part there | sed -n 's/.* = //p')" "$(part forth | sed -n 's/.* = //p' | tail -n 1)"
    near "and what the engine says" "$(figure attn_weights:1:0:3 | rows 1)" "$(part there | sed -n 's/.* = //p')"
fi
finish
