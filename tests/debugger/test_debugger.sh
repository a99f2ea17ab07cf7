#!/bin/sh
# The build to step through, and what a learner can ask of it: twelve questions to gdb, the same commands in lldb, and
# the editor's files. The numbers are compared with those of the fast engine (figures.c).
# this file only with ALL=1
# needs microgpt-debug
. tests/debugger/helpers.sh

# --- The build.

for compiler in gcc clang; do
    if command -v $compiler >/dev/null 2>&1; then
        log=$($compiler $WARN -Werror -O0 -g -fno-inline -DAUTOGRAD_PLAIN -DMICROGPT_DEBUG -o "$T/debug-$compiler" \
              microgpt.c autograd.c -lm 2>&1) && ok "the debug build has no warnings with $compiler" ||
            not_ok "the debug build has no warnings with $compiler" "none" "$log"
    else
        skip "the debug build has no warnings with $compiler" "no $compiler"
    fi
done

for arguments in '' '--recipe lesson --steps 40 --samples 4' '--n-layer 2 --n-embd 12 --n-head 3 --steps 20'; do
    ./microgpt $arguments >"$T/fast" 2>&1
    ./microgpt-debug $arguments >"$T/slow" 2>&1
    what="the debug build prints what the fast one prints: ${arguments:-the whole run}"
    if [ -s "$T/fast" ] && cmp -s "$T/fast" "$T/slow"; then ok "$what"; else
        not_ok "$what" "the same bytes" "$(cmp "$T/fast" "$T/slow" 2>&1)"; fi
done

# --- The editor's files.

# Valid JSON shrinks to one value, from the inside out.
for file in .vscode/launch.json .vscode/tasks.json; do
    rest=$(awk '{ t = t $0 } END {
        gsub(/"([^"\\]|\\.)*"/, "s", t); gsub(/true|false|null|-?[0-9]+(\.[0-9]+)?/, "v", t); gsub(/[ \t\r]/, "", t)
        do {
            before = t
            gsub(/\[([sv](,[sv])*)?\]/, "v", t); gsub(/\{(s:[sv](,s:[sv])*)?\}/, "v", t)
        } while (t != before)
        print t }' $file)
    same "$file is JSON" v "$rest"
done
for target in $(sed -n 's/.*"command": "make \([^"]*\)".*/\1/p' .vscode/tasks.json); do
    if make -n "$target" >"$T/log" 2>&1; then ok "tasks.json: make $target"; else
        not_ok "tasks.json: make $target" "a target" "$(cat "$T/log")"; fi
done
for task in $(sed -n 's/.*"preLaunchTask": "\([^"]*\)".*/\1/p' .vscode/launch.json); do
    has "launch.json: there is a task $task" "\"label\": \"$task\"" .vscode/tasks.json
done
same "launch.json starts the debug build" 2 \
     "$(grep -c '"program": "${workspaceFolder}/microgpt-debug"' .vscode/launch.json)"

# --- gdb.

figures 1 16 4
[ "$have_gdb" ] || skip "twelve questions to gdb" "no gdb that can run a program"

if [ "$have_gdb" ]; then
    ask '' <<'EOF'
begin
echo @doc\n
doc
break gpt if pos_id == 4
continue
digits 17
echo @rmsnorm\n
around rmsnorm 2
echo @head\n
head 2
echo @cache\n
cache
echo @key\n
cache 1
echo @attn\n
attn 0 3
echo @lands\n
lands 1
echo @wo\n
around wo
echo @top\n
top5
echo @logit\n
explain logits 5
echo @row\n
row q
echo @marked\n
doc
delete
break adam
continue
echo @param\n
param layer0.attn_wo 3 5
echo @users\n
users layer0.attn_wo 3 5
echo @moves\n
moves layer0.attn_wo 3 5
finish
echo @moved\n
param layer0.attn_wo 3 5
EOF
    has "gdb starts where the loss of the first document begins" 'document_loss (model=' "$T/session"
    has "and shows the list of commands" '  doc                    the document' "$T/session"

    same "1. the tokens of the document" "$(figure token)" "$(part doc | columns 2)"
    near "2. x before and after rmsnorm at position 2" "$(figure rmsnorm:0:2)" "$(part rmsnorm | columns '2 3')"
    near "3. head 2's slice of q" "$(figure attn_wq:0:3 | rows 9,12)" \
         "$(part head | awk '$1 == "q_h" { print $4, $5, $6, $7 }')"
    same "4. how many positions are cached" "layer 0: 4 positions in the cache" "$(part cache | head -n 1)"
    near "4. key 1" "$(figure attn_wk:0:1)" "$(part key | columns 2)"
    near "5. head 0's weights at position 3" "$(figure attn_weights:0:0:3)" "$(part attn | columns 4)"
    near "5. and its logits" "$(figure attn_logits:0:0:3)" "$(part attn | columns 3)"
    same "5. and their characters" "BOS m y l" "$(echo $(part attn | columns 2))"
    same "6. where head 1's output lands" "x_attn[4] x_attn[5] x_attn[6] x_attn[7]" \
         "$(echo $(part lands | awk '$1 == "head" { print $5 }'))"
    near "6. head 1's output" "$(figure head_out:1:0:3)" "$(part lands | awk '$1 == "head" { print $6 }')"
    near "7. x before and after wo" "$(figure around_attn_wo:0:3)" "$(part wo | columns '2 3')"
    # the shipped names have the letters a to z: token 0 is a
    same "8. the five likeliest next characters" \
         "$(figure top_token:3 | awk '{ print substr("abcdefghijklmnopqrstuvwxyz", $1 + 1, 1) }')" \
         "$(part top | awk '$1 ~ /^[1-5]\.$/ { print $2 }')"
    near "8. and their probabilities" "$(figure top_prob:3)" "$(part top | awk '$1 ~ /^[1-5]\.$/ { print $4 }')"
    near "9. the gradient of layer0.attn_wo[3][5], as the engine has it" "$(figure grad)" \
         "$(part param | awk '$1 == "gradient" { print $2 }')"
    near "9. and as the Python program has it" -0.0036072376622873804 \
         "$(part param | awk '$1 == "gradient" { print $2 }')"
    use='layer0.attn_wo\[3\]\[5\] \* x_attn\[5\] at \([0-9]*\), a part of x_wo\[3\]'
    same "10. the operations that used it" "0 1 2 3 4 5 6" "$(echo $(part users | sed -n "s/.*: $use.*/\1/p"))"
    near "10. their local derivatives are x_attn[5] at each position" \
         "$(for p in 0 1 2 3 4 5 6; do figure head_out:1:0:$p | rows 2; done)" \
         "$(part users | sed -n 's/^ *local derivative \([^ ]*\) .*/\1/p')"
    near "10. and what each adds is the gradient in the end" "$(figure grad)" \
         "$(part users | sed -n 's/^ *local derivative.* is \(.*\)/\1/p' | awk '{ s += $1 } END { printf "%.17g", s }')"
    near "11. this logit" "$(figure logits:0:3 | rows 6)" "$(part logit | awk '$1 == "data" { print $2 }')"
    near "11. comes from a row of lm_head" "$(figure lm_head:0:5)" \
         "$(part logit | awk '$2 == "*" && $4 == "=" { print $1 }')"
    near "11. and the vector that left the layer" "$(figure x_out:0:3)" \
         "$(part logit | awk '$2 == "*" && $4 == "=" { print $3 }')"
    near "11. as the sum of their products" "$(figure logits:0:3 | rows 6)" \
         "$(part logit | awk '$2 == "*" && $4 == "=" { s += $5 } END { printf "%.17g", s }')"
    near "row: a vector in few lines" "$(figure attn_wq:0:3)" "$(part row | sed -n 's/^ *\[ *[0-9]*\]//p')"
    part marked >"$T/marked"
    same "doc marks the position that gpt() is called for" 4 "$(awk '/<-/ { print $1 }' "$T/marked")"
    part logit >"$T/logit"
    has "what is of an earlier position says so" "(Position 4 has not come to logits yet. This is position 3.)" "$T/logit"
    part attn >"$T/attn"
    has "attn names its layer" "layer 0, head 0 at position 3 (l)" "$T/attn"
    near "12. how Adam moves a parameter" "$(figure param_before) $(figure param_after)" \
         "$(part moves | awk '$1 == "value" { print $3 }')"
    near "12. and has moved it: value, m and v" "$(figure param_after) $(figure m) $(figure v)" \
         "$(part moved | awk '$1 == "value" { print $2 } $1 == "Adam'"'"'s" { print $3 }')"

    # Breakpoints by condition, locals, finish, up; and every other command.
    ask '--steps 2' <<'EOF'
begin
break gpt if pos_id == 3
continue
echo @where\n
print pos_id
break ag_row_dots
continue
up
echo @locals\n
info locals
echo @all\n
bt full
digits 17
echo @look\n
look q_h 4
down
echo @finish\n
finish
next
echo @next\n
vec head0.attn_logits
delete
tbreak backward
continue
up
digits 4
echo @stale\n
vec q 2
tape
echo @lines\n
print model->tape.n_lines
tbreak adam
continue
digits 17
echo @gradients\n
vec q 2
echo @leaf\n
explain layer0.attn_wo 3 5
up
echo @pointer\n
explain model->params
explain loss
eval "explain v%d", model->tape.lines[17].out - model->tape.data
users &model->layers[0].attn_wo->data[53]
users logits 5 0
echo @names\n
vec
echo @wrong\n
vec nonsense
vec q 99
around nonsense
head 4
attn 0 99
cache 99
param layer0.attn_wo 3 16
param nonsense 0 0
param logits 5 0
explain logits 27
look &model->n_embd
layer 1
digits 18
explain
users
around
head
attn
lands
look
param layer0.attn_wo 3
moves
layer
digits
echo @help\n
help doc
help vec
help around
help head
help cache
help attn
help lands
help top5
help param
help moves
help explain
help users
help look
help tape
help layer
help digits
help views
help begin
echo @sampling\n
break random_choice
continue
continue
digits 6
top5
attn 0
head 1
doc
EOF
    same "break gpt if pos_id == 3 holds" '$1 = 3' "$(part where | head -n 1)"
    part all >"$T/all"
    same "nothing is optimized out" 0 "$(grep -c 'optimized out' "$T/all")"
    has "the stack goes from autograd to main" "in main (" "$T/all"
    part locals >"$T/locals"
    has "locals print" "n_embd = 16" "$T/locals"
    near "look shows a slice with its data" "$(figure attn_wq:0:3 | rows 1,4)" \
         "$(part look | awk '$2 ~ /^q/ { print $1 }')"
    part look >"$T/look"
    has "and its name" "q[3] at 3" "$T/look"
    part finish >"$T/finish"
    has "finish goes back to gpt" "in gpt (" "$T/finish"
    near "and then the logits are there" "$(figure attn_logits:0:0:3)" "$(part next | columns 2)"
    same "no gradient is shown before backward" "" "$(part stale | grep grad)"
    same "tape counts every line" "$(part lines | awk 'NR == 1 { print $3 }')" \
         "$(part stale | awk '$1 == "all" { print $2 }')"
    same "and its counts add up" "$(part lines | awk 'NR == 1 { print $3 }')" \
         "$(part stale | awk '$1 ~ /^(add|mul|pow|log|exp|relu|copy)$/ { s += $NF } END { print s }')"
    same "after backward there is a gradient" 16 "$(part gradients | columns 3 | awk '$1 != 0' | wc -l | tr -d ' ')"
    part leaf >"$T/leaf"
    has "explain: a parameter has no maker" "no operation made it: it is a parameter" "$T/leaf"
    part pointer >"$T/pointer"
    has "explain takes an expression of C" "wte[0][0]" "$T/pointer"
    has "explain loss" "(mul const)" "$T/pointer"
    has "explain v123: a value without a name" "made by line 17 of the tape" "$T/pointer"
    has "users takes an expression of C" "used by 7 lines of the tape" "$T/pointer"
    has "users of a logit: softmax" "logits[5] at 0 +" "$T/pointer"
    part names >"$T/names"
    has "vec lists the names" "  head0.attn_weights  [7] at 6 " "$T/names"
    part wrong >"$T/wrong"
    for text in 'nonsense: there is none yet' 'q at position 99: there is none' 'nonsense: no line of gpt() with this text' \
        'There are 4 heads' 'attn_logits at position 99' 'k at position 99' '16 rows and 16 columns' \
        'logits is no parameter' 'logits has 27 elements' 'no value of the tape' \
        'Layers are counted from 0, and there is 1' 'shown with 1 to 17 digits' 'explain VALUE: the' 'users VALUE: the' \
        'around OP [POS]:' 'head H [POS]:' 'attn H [POS]:' 'lands H [POS]:' 'look EXPR [N]:' 'param NAME ROW COL:' \
        'moves NAME ROW COL:' 'layer L:' 'digits N:'; do
        has "a wrong question is answered in words: $text" "$text" "$T/wrong"
    done
    part help >"$T/help"
    same "every command has help" 0 "$(grep -c 'User-defined\|Undefined' "$T/help")"
    for name in doc vec row around head cache attn lands top5 param moves watchgrad explain users nudge look tape layer \
        views; do
        if grep -q "^define $name\$" .gdbinit && grep -q "^command regex .* -- $name\$" .lldbinit &&
            grep -q "^  $name " "$T/session"; then
            ok "$name is in .gdbinit, in .lldbinit and in the list"
        else
            not_ok "$name is in .gdbinit, in .lldbinit and in the list" "all three" "fewer"
        fi
    done
    part sampling >"$T/sampling"
    has "the views work while sampling: top5" "after position 1" "$T/sampling"
    has "the views work while sampling: attn" "head 0 at position 1" "$T/sampling"
    has "the views work while sampling: head" "k_h   0 BOS" "$T/sampling"
    has "the views work while sampling: doc" "The sample so far" "$T/sampling"

    # A gradient as it grows: the uses of a parameter, from the last to the first, and then Adam.
    printf '%s\n' begin 'digits 17' 'watchgrad layer0.attn_wo 3 5' continue continue continue continue continue continue \
        continue continue 'watchgrad nonsense 1 2' | ask ''
    near "watchgrad: the sums so far end in the gradient" "$(figure grad)" \
         "$(sed -n 's/.* and is now \(.*\)\.$/\1/p' "$T/session" | sed -n 7p)"
    near "watchgrad: and so does the sum of what was added" "$(figure grad)" \
         "$(sed -n 's/^  adds \([^,]*\),.*/\1/p' "$T/session" | awk '{ s += $1 } END { printf "%.17g", s }')"
    same "watchgrad: each use with its line of the tape" "6 5 4 3 2 1 0" "$(echo $(sed -n \
        's/^  line [0-9]*: layer0.attn_wo\[3\]\[5\] \* x_attn\[5\] at \([0-9]\), a part of x_wo\[3\].*/\1/p' "$T/session"))"
    same "watchgrad: and with its line of the source" 7 "$(grep -c 'gb\[i\] += l->a\[i\] \* g\[i\]' "$T/session")"
    has "watchgrad: in the end Adam clears it" "adam() has cleared it" "$T/session"
    has "watchgrad: what is no parameter" "nonsense is no parameter. The matrices are wte wpe lm_head" "$T/session"

    # No progress bar in the debugger's terminal.
    if command -v script >/dev/null 2>&1 && script -qec true "$T/typed" </dev/null >/dev/null 2>&1; then
        printf '%s\n' 'tbreak train_step if step == 100' continue kill quit |
            TERM=xterm script -qec 'make -s debug' "$T/typed" >/dev/null 2>&1
        has "make debug comes to step 100" "=100)" "$T/typed"
        same "and draws no progress" 0 "$(grep -c '%\|█\|steps/s' "$T/typed")"
    else
        skip "no progress bar in the debugger" "no script(1)"
    fi

    # More layers, other sizes, and the lesson's activation.
    figures 2 12 3
    ask '--n-layer 2 --n-embd 12 --n-head 3' <<'EOF'
begin
tbreak adam
continue
digits 17
echo @q\n
vec layer1.q 2
layer 1
echo @attn\n
attn 2 3
echo @wo\n
around wo 2
echo @name\n
explain layer1.x_wo 0 2
echo @head\n
head 1 2
echo @lands\n
lands 1 2
echo @top\n
top5 2
EOF
    near "layer 1, head 1 2" "$(figure attn_wq:1:2 | rows 5,8)" \
         "$(part head | awk '$1 == "q_h" { print $4, $5, $6, $7 }')"
    near "layer 1, lands 1 2" "$(figure head_out:1:1:2)" "$(part lands | awk '$1 == "head" { print $6 }')"
    near "top5 2" "$(figure top_prob:2)" "$(part top | awk '$1 ~ /^[1-5]\.$/ { print $4 }')"
    near "vec layer1.q 2" "$(figure attn_wq:1:2)" "$(part q | columns 2)"
    near "layer 1, attn 2 3" "$(figure attn_weights:2:1:3)" "$(part attn | columns 4)"
    near "layer 1, around wo 2" "$(figure around_attn_wo:1:2)" "$(part wo | columns '2 4')"
    part name >"$T/name"
    has "names have their layer" "layer1.attn_wo[0][0] * layer1.x_attn[0] at 2" "$T/name"

    ask '--recipe lesson --steps 2' <<'EOF'
begin
tbreak document_loss
continue
tbreak adam
continue
echo @act\n
explain act 0 1
vec loss
EOF
    part act >"$T/act"
    has "the lesson's activation is a square" "^ 2 (pow)" "$T/act"
    has "and the way leads on to the loss" "loss" "$T/act"

    # What people type.
    printf '%s\n' doc 'break gpt if pos_id == 3' continue 'attn 0 2' finish top5 'explain logits 5' \
        'call show_attention(0, 3)' quit | make -s debug >"$T/session" 2>&1
    has "make debug stops in document_loss" "document_loss (model=" "$T/session"
    has "make debug lists the commands" "views                  this list" "$T/session"
    has "make debug takes commands" "The document: myliah" "$T/session"
    has "make debug: the next stop" "pos_id=3" "$T/session"
    has "make debug: attn 0 2" "head 0 at position 2 (y) looks at" "$T/session"
    has "make debug: top5 after finish" "after position 3 (l), the likeliest next" "$T/session"
    has "make debug: explain logits 5" "lm_head[5][0] * x_out[0] at 3" "$T/session"
    has "make debug: a function can be called" "head 0 at position 3 (l) looks at" "$T/session"
    printf 'doc\nquit\n' | make -s debug ARGS='--recipe lesson' >"$T/session" 2>&1
    has "make debug ARGS=..." "The document: myliah" "$T/session"

    # The editor stops at the same place as make debug.
    sed -n 's/.*{ "text": "\(.*\)" }.*/\1/p' .vscode/launch.json |
        sed "s|\${workspaceFolder}|$(pwd)|" >"$T/editor"
    gdb -nx -q -batch -x "$T/editor" -ex run -ex doc ./microgpt-debug >"$T/session" 2>&1 </dev/null
    has "launch.json, gdb: stops in document_loss" "document_loss (model=" "$T/session"
    has "launch.json, gdb: knows the commands" "The document: myliah" "$T/session"

    # Other editors: a gdb of their own, which is told to read the commands.
    printf 'source .gdbinit\nbegin\ndoc\nquit\n' | gdb -nx -q ./microgpt-debug >"$T/session" 2>&1
    has "source .gdbinit, then begin" "The document: myliah" "$T/session"
    printf 'doc\n-gdb-exit\n' | gdb -nx -i=mi -x .gdbinit -ex begin ./microgpt-debug >"$T/session" 2>&1
    has "gdb -i=mi, as Emacs starts it" "The document: myliah" "$T/session"

fi

# --- lldb.

if [ ! "$have_lldb" ]; then
    skip "the commands in lldb" "no lldb that can run a program"
else
    figures 1 16 4
    lldb --no-lldbinit -b -o 'command source -s true .lldbinit' \
        -o 'breakpoint set -o true -n document_loss -c !model->tape.counting' -o run -o views -o doc \
        -o 'breakpoint set -n gpt -c "pos_id == 4"' -o continue -o 'digits 17' -o 'around rmsnorm 2' \
        -o 'head 2' -o cache -o 'cache 1' -o 'attn 0 3' -o 'lands 1' -o 'around wo' -o top5 -o 'top5 2' \
        -o 'explain logits 5' -o 'look model->keys[0] 2' -o vec -o 'vec q' -o 'vec q 1' -o 'row q' -o tape -o 'layer 0' \
        -o 'breakpoint delete -f' -o 'breakpoint set -n adam' -o continue -o 'param layer0.attn_wo 3 5' \
        -o 'users layer0.attn_wo 3 5' -o 'explain loss' -o 'explain &model->params[0]' -o 'users &model->params[0]' \
        -o 'moves layer0.attn_wo 3 5' -o 'nudge fc1 0 3' -o finish -- ./microgpt-debug 2>&1 </dev/null |
        tr -d '\r' >"$T/session"
    # what a command printed: from its echo to the next
    lldb_part() { awk -v name="(lldb) $1" 'index($0, "(lldb) ") == 1 { on = $0 == name; next } on' "$T/session"; }
    has "lldb stops in document_loss" 'document_loss(model=' "$T/session"
    same "lldb: doc" "$(figure token)" "$(lldb_part doc | columns 2)"
    near "lldb: around rmsnorm 2" "$(figure rmsnorm:0:2)" "$(lldb_part 'around rmsnorm 2' | columns '2 3')"
    near "lldb: head 2" "$(figure attn_wq:0:3 | rows 9,12)" \
         "$(lldb_part 'head 2' | awk '$1 == "q_h" { print $4, $5, $6, $7 }')"
    near "lldb: cache 1" "$(figure attn_wk:0:1)" "$(lldb_part 'cache 1' | columns 2)"
    near "lldb: attn 0 3" "$(figure attn_weights:0:0:3)" "$(lldb_part 'attn 0 3' | columns 4)"
    near "lldb: lands 1" "$(figure head_out:1:0:3)" "$(lldb_part 'lands 1' | awk '$1 == "head" { print $6 }')"
    near "lldb: around wo" "$(figure around_attn_wo:0:3)" "$(lldb_part 'around wo' | columns '2 3')"
    near "lldb: top5 2" "$(figure top_prob:2)" "$(lldb_part 'top5 2' | awk '$1 ~ /^[1-5]\.$/ { print $4 }')"
    near "lldb: explain logits 5" "$(figure logits:0:3 | rows 6)" \
         "$(lldb_part 'explain logits 5' | awk '$1 == "data" { print $2 }')"
    near "lldb: look model->keys[0] 2" "$(figure attn_wk:0:0 | rows 1,2)" \
         "$(lldb_part 'look model->keys[0] 2' | awk '{ print $1 }')"
    near "lldb: vec q" "$(figure attn_wq:0:3)" "$(lldb_part 'vec q' | columns 2)"
    near "lldb: vec q 1" "$(figure attn_wq:0:1)" "$(lldb_part 'vec q 1' | columns 2)"
    near "lldb: row q" "$(figure attn_wq:0:3)" "$(lldb_part 'row q' | sed -n 's/^ *\[ *[0-9]*\]//p')"
    has "lldb: nudge" "They agree." "$T/session"
    near "lldb: param" "$(figure grad)" "$(lldb_part 'param layer0.attn_wo 3 5' | awk '$1 == "gradient" { print $2 }')"
    near "lldb: moves" "$(figure param_before) $(figure param_after)" \
         "$(lldb_part 'moves layer0.attn_wo 3 5' | awk '$1 == "value" { print $3 }')"
    has "lldb: users" "used by 7 lines of the tape" "$T/session"
    has "lldb: an expression of C" "wte[0][0]" "$T/session"
    has "lldb: explain loss" "(mul const)" "$T/session"
    has "lldb: cache" "layer 0: 4 positions in the cache" "$T/session"
    has "lldb: tape" "lines, from 4 positions" "$T/session"
    has "lldb: views" "  doc                    the document" "$T/session"
    has "lldb: finish goes back to train_step" "train_step(model=" "$T/session"

    lldb --no-lldbinit -b -o 'command source -s true .lldbinit' \
        -o 'breakpoint set -o true -n document_loss -c !model->tape.counting' -o run -o 'digits 17' \
        -o 'watchgrad layer0.attn_wo 3 5' -o continue -o continue -o continue -o continue -o continue -o continue \
        -o continue -o continue -- ./microgpt-debug 2>&1 </dev/null | tr -d '\r' >"$T/session"
    near "lldb: watchgrad: the sums so far end in the gradient" "$(figure grad)" \
         "$(sed -n 's/.* and is now \(.*\)\.$/\1/p' "$T/session" | sed -n 7p)"
    has "lldb: watchgrad: in the end Adam clears it" "adam() has cleared it" "$T/session"
    lldb --no-lldbinit -b -o 'breakpoint set -o true -n train_step' -o run -o 'print nonsense' ./microgpt-debug 2>&1 \
        </dev/null | awk '/^\(lldb\) print nonsense/ { on = 1 } on' >"$T/session"
    same "lldb: a mistyped name costs few lines" few "$(awk 'END { print NR < 8 ? "few" : NR }' "$T/session")"

    # Stepping goes past what takes notes, into the operation.
    line=$(grep -n 'emb_norm' microgpt.c | head -n 1 | cut -d : -f 1)
    lldb --no-lldbinit -b -o 'command source -s true .lldbinit' -o 'breakpoint set -o true -n train_step' -o run \
        -o "breakpoint set -o true -f microgpt.c -l $line" -o continue -o 'thread step-in' -o 'thread step-in' \
        ./microgpt-debug 2>&1 </dev/null | tr -d '\r' >"$T/session"
    same "lldb: step goes into rmsnorm, and past what is no lesson" "gpt rmsnorm rmsnorm" \
         "$(echo $(sed -n 's/^ *frame #0: .*`\([a-z_]*\)(.*/\1/p' "$T/session" | tail -n 3))"

    # As in the editor, and as make debug starts it.
    init=$(sed -n 's/.*"initCommands": \["\(.*\)"\].*/\1/p' .vscode/launch.json | sed "s|\${workspaceFolder}|$(pwd)|")
    before=$(sed -n 's/.*"preRunCommands": \["\(.*\)"\].*/\1/p' .vscode/launch.json)
    lldb --no-lldbinit -b -o "$init" -o "$before" -o run -o doc ./microgpt-debug >"$T/session" 2>&1 </dev/null
    has "launch.json, lldb: stops in document_loss" 'document_loss(model=' "$T/session"
    has "launch.json, lldb: knows the commands" "The document: myliah" "$T/session"
    mkdir "$T/bin"
    for tool in sh make cc gcc "$CC" lldb env; do
        path=$(command -v "${tool%% *}") && ln -sf "$path" "$T/bin/$(basename "$path")"
    done
    make -q microgpt-debug && printf 'doc\nquit\n' | PATH="$T/bin" make -s debug >"$T/session" 2>&1
    has "make debug without gdb starts lldb" "The document: myliah" "$T/session"
    has "make debug without gdb lists the commands" "views                  this list" "$T/session"
fi
finish
