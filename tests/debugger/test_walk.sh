#!/bin/sh
# The guided walk, in gdb and without any debugger, with and without a terminal, and after straying from it; stepping into
# the operations; and the way back.
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
same "no stop went wrong" "" "$(grep 'rror\|o symbol\|not there\|no line of\|DIFFER\|GRADIENT IS ANOTHER' "$T/tour")"
last_loss=$(sed -n 's/^ *their mean, document_loss: \([0-9.]*\)$/\1/p' "$T/tour")
near "its loss is the engine's" "$(figure loss)" "$last_loss"
same "it has the loss of every position" "$(figure token | wc -l)" \
     "$(awk '/^==== 15 /,/^==== 16 /' "$T/tour" | awk '/^ +[0-9]+ +[0-9]+ / { n += $6 > 0 } END { print n }')"
name=$(./microgpt --quiet --samples 1 | sed -n 's/^sample  1: //p')
has "its name is the program's first sample" "as gpt() has seen it: $name" "$T/tour"
same "and each token drawn is a letter of it, or its end" "$(echo "$name" | cut -c 1)$(echo "$name" | cut -c 4)BOS" \
     "$(sed -n 's/^ *[0-9]* \([^ ]*\) .*<- drawn$/\1/p' "$T/tour" | tr -d '\n')"

# --- The same in gdb, with somebody at the keyboard.

if [ ! "$have_gdb" ]; then
    skip "the walk in gdb, the way back" "no gdb that can run a program"
    finish
fi

# walk COMMANDS: with gdb's prompt, after the first stop. block FILE N: what stop N shows, up to the next output of gdb.
walk() { { echo walk; printf '%s\n' "$@"; echo quit; } | gdb -nx -q -x .build/debug/commands.gdb --args ./microgpt-debug --quiet --samples 1 2>&1; }
block() { awk -v n="$2" '/^==== / { on = $2 == n } /^\([0-9]+ of |^\(gdb\)/ { on = 0 } on' "$1"; }
stops() { sed -n 's/^==== \([0-9]*\) of .*/\1/p' "$1" | tr '\n' ' '; }

# shellcheck disable=SC2046
walk $(yes go | head -n $((n - 1))) >"$T/walked"
sed 's/0x[0-9a-f]*/ADDRESS/g' "$T/tour" >"$T/by_itself"
sed 's/0x[0-9a-f]*/ADDRESS/g' "$T/walked" >"$T/in_gdb"
for stop in $(seq "$n"); do
    block "$T/in_gdb" "$stop" >"$T/block"
    awk -v n="$stop" '/^==== / { on = $2 == n } on' "$T/by_itself" | head -n "$(wc -l <"$T/block")" >"$T/expected"
    same_file "stop $stop is the same in gdb and without it" "$T/expected" "$T/block"
done
same "a stop has at most 22 lines" "" "$(for stop in $(seq "$n"); do
    lines=$(block "$T/walked" "$stop" | wc -l); [ "$lines" -le 22 ] || echo "stop $stop: $lines"; done)"
yes 'more|go' | head -n "$n" | tr '|' '\n' >"$T/keys_to_type"
{ echo walk; cat "$T/keys_to_type"; echo quit; } |
    gdb -nx -q -x .build/debug/commands.gdb --args ./microgpt-debug --quiet --samples 1 >"$T/more" 2>&1
same "and so has a page of more" "" "$(awk '/^==== / { n = 0 } /^\([0-9]+ of |^\(gdb\)/ { if (n > 22) print $0 ": " n; n = 0 } { n++ }' "$T/more")"

# Wherever one strays, the next stop comes, and shows what it always shows.
for commands in finish 'next 2' 'step 3' 'tbreak gpt if pos_id == 5' 'up'; do
    walk 'go 8' "$commands" continue | sed 's/0x[0-9a-f]*/ADDRESS/g' >"$T/strayed"
    same "stop 9 comes after: $commands" "$(block "$T/in_gdb" 9)" "$(block "$T/strayed" 9)"
done
walk 'go 9' back kill 'go 1' 'go 3' 'go 99' 'go 0' >"$T/typed"
same "go N, back, go after kill, go N again; stops that there are not" "1 9 8 1 3 " "$(stops "$T/typed")"
same "and no command is undefined" "" "$(grep 'Undefined\|Error' "$T/typed")"

# WHAT|TEXT|COMMANDS: what is in scope; the learner's own breakpoints and watchpoints, which stop on the way; a typo.
while IFS='|' read -r what text commands; do
    walk "go 8" "$(echo "$commands" | tr ';' '\n')" >"$T/typed"
    has "the walk in gdb: $what" "$text" "$T/typed"
done <<'END'
a mistyped command is gdb's own to answer|Undefined command: "nonsense".|nonsense
a watchpoint stops on the way to the next stop|New value = 0.0500619|watch -l x_attn[4];go;go
and so does a breakpoint|$1 = 4|break softmax if n == 4;go;go;go;print n
at stop 8, attn_weights is set|= 0.2392316|print attn_weights[2]
at stop 16, loss is|= 3.4873629|go 16;print *loss
END

# With a terminal: gdb's prompt from the first stop on; and without gdb, the same commands.
if command -v script >/dev/null 2>&1 && script -qec true "$T/typed" </dev/null >/dev/null 2>&1; then
    { sleep 3; for key in go '' more go nonsense 'attn 0 2' go back; do echo "$key"; sleep 1; done; sleep 1; echo quit; } |
        TERM=dumb script -qec 'make -s tour DEBUGGER=gdb' "$T/typed" >/dev/null 2>&1
    tr -d '\r' <"$T/typed" >"$T/typed.txt"
    same "with a terminal: go, Enter, more, go, go, back" "1 2 3 4 5 4 " "$(stops "$T/typed.txt")"
    has "the prompt says where one is" "(3 of $n: go, more, back, or any command)" "$T/typed.txt"
    has "a view is answered" "layer 0, head 0 at position 2 (y) looks at" "$T/typed.txt"
    { sleep 2; for key in '' more 'attn 0 2' nonsense 'go 7' back 'go 99' '' q; do echo "$key"; sleep 1; done; } |
        TERM=dumb script -qec 'make -s tour DEBUGGER=none' "$T/typed" >/dev/null 2>&1
    tr -d '\r' <"$T/typed" >"$T/typed.txt"
    same "without gdb: Enter, more, a view, a typo, go 7, back, go 99, Enter, q" "1 2 7 6 7 " "$(stops "$T/typed.txt")"
    has "more shows more" "made by  entry" "$T/typed.txt"
    has "a view is answered, without gdb" "layer 0, head 0 at position 2 (y) looks at" "$T/typed.txt"
    has "a mistyped command is said so" 'nonsense: no such command' "$T/typed.txt"
else
    skip "the walk with a terminal" "no script(1)"
fi

# --- Stepping, in a plain gdb and a plain lldb, which nobody has told anything: into softmax(), past the notes. What
# the learner stops at stops.

for into in softmax linear rmsnorm; do
    line=$(grep -n "double \*attn_weights = $into(\|double \*q = $into(\|x = $into(.*// x_norm" microgpt.c | cut -d : -f 1)
    printf 'break microgpt.c:%s\nrun\nstep\n' "$line" >"$T/plain"
    gdb -nx -q -batch -x "$T/plain" ./microgpt-debug >"$T/session" 2>&1 </dev/null
    has "a plain gdb: step goes into $into()" "$into (tape=" "$T/session"
    [ "$have_lldb" ] || continue
    lldb --no-lldbinit -b -o "breakpoint set -f microgpt.c -l $line" -o run -o step ./microgpt-debug >"$T/session" 2>&1 </dev/null
    has "a plain lldb: step goes into $into()" "\`$into(tape=" "$T/session"
done
printf '%s\n' begin 'at gpt ag_weighted_sum' continue 'watch -l x_attn[0]' 'next 2' 'echo @breakpoint\n' \
    'break each_atom' 'step 90' | ask --quiet
has "a watchpoint is shown while one steps" "Old value = " "$T/session"
has "step stops at a breakpoint inside" "Breakpoint 4, each_atom (t=" "$T/session"

# --- The way back, where gdb can record; the guide's commands for it are typed in test_guide.sh.

ask '' <<'END'
rewind 1 3
echo @view\n
doc
explain q 0
echo @there\n
print &k_h[0]
next 2
reverse-continue
print &k_h[0]
record stop
echo @after\n
doc
END
if ! grep -q '^Recording' "$T/session" || grep -q 'does not support\|failed to record' "$T/session"; then
    skip "the way back" "this gdb cannot record here"
else
    same "reverse-continue goes back to where recording began" 1 "$(part there | sed -n 's/^\$[0-9]* = .*) //p' | sort -u | wc -l)"
    same "a view refuses while gdb records" 2 "$(part view | grep -c 'gdb is recording')"
    part after >"$T/after"
    has "and works after record stop" "The document: myliah" "$T/after"
fi
finish
