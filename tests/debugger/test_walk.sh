#!/bin/sh
# The guided walk, in gdb and without any debugger, with and without a terminal, and after straying from it; how many
# steps it is from a line of gpt() to the arithmetic; and the way back.
# this file only with ALL=1
# needs microgpt-debug
. tests/debugger/helpers.sh
figures 1 16 4

# --- The walk that the program takes by itself.

make -s tour >"$T/tour" 2>"$T/tour.err" </dev/null
same "make tour runs to its end" 0 $?
same "all of it is on standard output" "" "$(cat "$T/tour.err")"
n=$(sed -n 's/^A walk .* in \([0-9]*\) stops\.$/\1/p' "$T/tour")
same "with all stops, each with its line of the source" "$(seq "${n:-0}")" \
     "$(sed -n "s/^==== \([0-9]*\) of $n ==== microgpt.c:[0-9]*, in [a-z_]*().*/\1/p" "$T/tour")"
same "the guide has their number" "$n" "$(sed -n 's/.*make tour .* in \([0-9]*\) stops$/\1/p' support/debugger/README.md)"
same "no line has more than 79 columns" "" "$(awk 'length($0) > 79' "$T/tour")"
same "no stop went wrong" "" "$(grep -i 'error\|no symbol\|not there\|no line of\|elsewhere\|DIFFER\|ANOTHER' "$T/tour")"
last_loss=$(sed -n 's/^ *their mean, the loss: \([0-9.]*\)$/\1/p' "$T/tour")
near "its loss is the engine's" "$(figure loss)" "$last_loss"
near "and the Python program's first" 3.487362926026387 "$last_loss"
same "it has the loss of every position" "$(figure token | wc -l)" \
     "$(awk '/^==== 15 /,/^==== 16 /' "$T/tour" | awk '/^ +[0-9]+ +[0-9]+ / { n += $6 > 0 } END { print n }')"
name=$(./microgpt --quiet --samples 1 | sed -n 's/^sample  1: //p')
has "its name is the program's first sample" "as gpt() has seen it: $name" "$T/tour"
same "and each token drawn is a letter of it, or its end" "$(echo "$name" | cut -c 1)$(echo "$name" | cut -c 4)BOS" \
     "$(sed -n 's/^ *[0-9]* \([^ ]*\) .*<- drawn$/\1/p' "$T/tour" | tr -d '\n')"

# --- The same in gdb, with somebody at the keyboard.

if [ ! "$have_gdb" ]; then
    skip "the walk in gdb, the table of steps, the way back" "no gdb that can run a program"
    finish
fi

# tour <COMMANDS: the walk with gdb's prompt. block FILE N: what its N-th stop shows, up to the prompt or to more.
tour() { gdb -nx -q -x support/debugger/commands.gdb -x support/debugger/tour.gdb --args ./microgpt-debug --quiet --samples 1 2>&1; }
block() { awk -v n="$2" '/^==== / { i++; on = 1 } /^\([0-9]+ of / { on = 0 } on && i == n' "$1"; }

{ yes go | head -n "$n"; echo quit; } | tour >"$T/walked"
for stop in $(seq "$n"); do
    block "$T/walked" "$stop" >"$T/block"
    awk -v n="$stop" '/^==== / { i++ } i == n' "$T/tour" | head -n "$(wc -l <"$T/block")" >"$T/expected"
    check "stop $stop shows something" [ -s "$T/block" ]
    same_file "stop $stop is the same in gdb and without it" "$T/expected" "$T/block"
done
same "a stop has at most 22 lines" "" "$(awk '
    /^==== / { stop = $2; n = 0 } /^\([0-9]+ of / { if (n > 22) print "stop " stop ": " n; n = 0 } { n++ }' "$T/walked")"
{ for i in $(seq "$n"); do echo go; echo more; done; echo quit; } | tour >"$T/more"
same "and so has a page of more" "" "$(awk '
    /^==== / { n = 0 } /^\([0-9]+ of / { if (n > 22) print $1 ": " n; n = 0 } { n++ }' "$T/more")"

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

# A stop that there is not leaves the walk where it is.
printf '%s\n' go 'go 99' go 'go 0' more more 'go 18' go quit | tour >"$T/typed"
same "go 99 and go 0 lose nothing" "1 2 3 18 19" "$(echo $(sed -n 's/^==== \([0-9]*\) of .*/\1/p' "$T/typed"))"
same "and no command is undefined" 0 "$(grep -c Undefined "$T/typed")"

# Ctrl-C on the way: the stop is not shown. The program is the child of this gdb.
mkfifo "$T/keys"
gdb -nx -q -x support/debugger/commands.gdb -x support/debugger/tour.gdb --args ./microgpt-debug --quiet --samples 1 <"$T/keys" >"$T/typed" 2>&1 &
gdb=$!
exec 3>"$T/keys"
printf 'go 17\ngo\n' >&3
for i in $(seq 100); do
    ! grep -q 'without a stop' "$T/typed" || break
    sleep 0.1
done
sleep 0.3
program=$(pgrep -P $gdb -x microgpt-debug)
[ -z "$program" ] || kill -INT "$program"
printf 'quit\n' >&3
exec 3>&-
wait $gdb
same "Ctrl-C on the way to stop 18 shows no stop" "17" "$(echo $(sed -n 's/^==== \([0-9]*\) of .*/\1/p' "$T/typed"))"
has "but says so" "(Interrupted on the way to stop 18" "$T/typed"

# With a terminal: Enter goes on, from the first stop on, and after more; what is mistyped is said so.
if command -v script >/dev/null 2>&1 && script -qec true "$T/typed" </dev/null >/dev/null 2>&1; then
    { sleep 2; for key in '' '' more '' nonsense go '' more '' q; do echo "$key"; sleep 0.7; done; } |
        TERM=dumb script -qec 'make -s tour DEBUGGER=gdb' "$T/typed" >/dev/null 2>&1
    tr -d '\r' <"$T/typed" >"$T/typed.txt"
    same "with a terminal: Enter, more, Enter, other commands, go, Enter" "1 2 3 4 5 6 7" \
         "$(echo $(sed -n 's/^==== \([0-9]*\) of .*/\1/p' "$T/typed.txt"))"
    has "a mistyped command is said so" 'Undefined command: "nonsense"' "$T/typed.txt"
    { sleep 1; for key in '' m '' q; do echo "$key"; sleep 0.5; done; } |
        TERM=dumb script -qec 'make -s tour DEBUGGER=none' "$T/typed" >/dev/null 2>&1
    tr -d '\r' <"$T/typed" >"$T/typed.txt"
    same "without gdb: Enter, m, Enter, q" "1 2 3" "$(echo $(sed -n 's/^==== \([0-9]*\) of .*/\1/p' "$T/typed.txt"))"
    has "m shows more" "made by  entry" "$T/typed.txt"
else
    skip "the walk with a terminal" "no script(1)"
fi

# --- From a line of the algorithm to the arithmetic: steps FUNCTION TEXT TARGET ROW, as in the table of the guide.

steps()
{
    goal=$(sed -n "s/^| \`$4\` | the .* | \([0-9]*\) |\$/\1/p" support/debugger/README.md)
    {
        printf 'begin\nat %s %s\ncontinue\n' "$1" "$2"
        for i in $(seq 15); do printf 'echo @%s \\n\nstep\n' "$i"; done
    } | ask --quiet
    steps=$(awk -v target="$3" '/^@/ { n = substr($1, 2) } /^[0-9]+\t/ && index($0, target) { print n; exit }' "$T/session")
    # clang's lines begin elsewhere: there a step or two more.
    if $CC --version 2>/dev/null | grep -q clang; then
        check "steps from $4 to $3: ${steps:-none}, at most $goal and two more" [ "${steps:-99}" -le $((goal + 2)) ]
    else
        same "steps from $4 to $3, as the guide says" "$goal" "$steps"
    fi
}
steps gpt attn_weights 'exp(e->a[i])' 'softmax('
steps gpt 'layer->attn_wq' 'e->a[i] * e->b[i]' 'linear('
steps gpt rmsnorm 'e->a[i] * e->b[i]' 'rmsnorm('
steps gpt ag_row_dots 'e->a[i] * e->b[i]' 'ag_row_dots('
steps train backward '+=' 'backward('
steps train adam 'm[i] = ' 'adam('

# --- The way back, where gdb can record.

ask '' <<'END'
rewind 1 3
eval "tbreak microgpt.c:%d", line_of("gpt", "head_out =")
continue
echo @there\n
print attn_weights[0]
echo @view\n
doc
here
explain q 0
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
record stop
echo @after\n
doc
END
if ! grep -q '^Recording' "$T/session" || grep -q 'does not support\|failed to record' "$T/session"; then
    skip "the way back" "this gdb cannot record here"
else
    part back >"$T/back"
    has "reverse-continue goes back to a breakpoint" 'ag_row_dots(' "$T/back"
    has "reverse-next to the line before" 'double *v_h = ' "$T/back"
    part in >"$T/in"
    has "reverse-step one more" 'double *k_h = ' "$T/in"
    has "in the same head" '= 1' "$T/back"
    same "forth again, the weight is what it was" "$(part there | sed -n 's/.* = //p')" \
         "$(part forth | sed -n 's/^\$[0-9]* = //p' | tail -n 1)"
    near "and what the engine says" "$(figure attn_weights:1:0:3 | rows 1)" "$(part there | sed -n 's/.* = //p')"
    same "a view refuses while gdb records" 3 "$(part view | grep -c 'gdb is recording')"
    part after >"$T/after"
    has "and works after record stop" "The document: myliah" "$T/after"
fi
finish
