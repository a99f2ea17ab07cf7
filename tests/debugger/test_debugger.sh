#!/bin/sh
# The build to step through, and what a learner can ask of it, in gdb and in lldb; the questions of the guide; and the
# editor's files. The numbers are compared with those of the fast engine (figures.c).
# this file only with ALL=1
# needs microgpt-debug
. tests/debugger/helpers.sh

# --- The build.

for compiler in gcc clang; do
    if command -v $compiler >/dev/null 2>&1; then
        # shellcheck disable=SC2086
        sh support/debugger/note >"$T/noted.c"
        log=$($compiler $WARN -Werror -O0 -g -fno-inline -DAUTOGRAD_PLAIN -DMICROGPT_DEBUG -I. -o "$T/debug-$compiler" \
            "$T/noted.c" autograd.c support/[!d]*/*.c support/debugger/*.c -lm 2>&1) &&
            ok "the debug build has no warnings with $compiler" ||
            not_ok "the debug build has no warnings with $compiler" "none" "$log"
    else
        skip "the debug build has no warnings with $compiler" "no $compiler"
    fi
done
for arguments in '' '--recipe lesson --steps 40 --samples 4' '--n-layer 2 --n-embd 12 --n-head 3 --steps 20' \
    '--batch 3 --steps 5'; do
    # shellcheck disable=SC2086
    ./microgpt $arguments >"$T/fast" 2>&1
    # shellcheck disable=SC2086
    ./microgpt-debug $arguments >"$T/slow" 2>&1
    what="the debug build prints what the fast one prints: ${arguments:-the whole run}"
    if [ -s "$T/fast" ] && cmp -s "$T/fast" "$T/slow"; then ok "$what"; else
        not_ok "$what" "the same bytes" "$(cmp "$T/fast" "$T/slow" 2>&1)"; fi
done

# However the tape is spelled, a call is known from a definition. A function and an operation that are new have
# their names at once, and no file of the debugger changes for them.
copied spelled 's/softmax(tape, attn_logits, seen)/softmax(\&model->tape, attn_logits, seen)/
    s/x = linear(tape, x, layer->mlp_fc1)/x = linear((tape), x, layer->mlp_fc1)/
    s/x = ag_relu(tape, x, \([a-z_]*\));/x = twice(tape, ag_cube(tape, x, \1), \1);/
    s|^// The model itself.*|static double *twice(Tape *tape, double *a, size_t n)\
{\
    double *half = ag_mul_const(tape, a, 1, n);\
    return ag_add(tape, half, a, n);\
}\
&|'
sed -i.bak 's/OP_COPY,/OP_COPY, OP_CUBE,/; s/^double \*ag_relu(.*/&\
double *ag_cube(Tape *t, double *a, size_t n);/' "$T/spelled/autograd.h"
sed -i.bak 's|^// max(a, 0).*|double *ag_cube(Tape *t, double *a, size_t n)\
{\
    return atoms(t, OP_CUBE, NULL, a, NULL, 0, n);\
}\
static void cube_forward(Entry *e)\
{\
    for (size_t i = 0; i < e->n; i++)\
        e->out[i] = e->a[i] * e->a[i] * e->a[i];\
}\
static void cube_backward(const Tape *t, const Entry *e)\
{\
    double *g = grad(t, e->out), *ga = grad(t, e->a);\
    for (size_t i = 0; i < e->n; i++)\
        ga[i] += 3 * e->a[i] * e->a[i] * g[i];\
}\
&|; s/^    \[OP_COPY\].*/&\
    [OP_CUBE] = {"cube", cube_forward, cube_backward},/' "$T/spelled/autograd.c"
check "gpt() calls them" grep -q 'twice(tape, ag_cube(tape, x,' "$T/spelled/microgpt.c"
(cd "$T/spelled" && make -s CC="$CC" microgpt-debug 2>&1) >"$T/log"
same "a new operation and a new function compile" "" "$(grep error "$T/log")"

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

# --- The questions of the guide, in both debuggers: at most three commands each. answers DEBUGGER COMMANDS <TESTS: each
# test is QUESTION|WHAT IT MUST SAY, as text.

figures 1 16 4
sed -n '/^| question | commands/,/^$/p' support/debugger/README.md | sed '1,2d' | grep '^|' >"$T/questions"
check "the guide has the questions" [ "$(wc -l <"$T/questions")" -ge 20 ]
same "each takes at most three commands" "" "$(awk -F'|' '{ n = gsub(/`[^`]*`/, "&", $3); if (n < 1 || n > 3) print }' "$T/questions")"
six() { figure "$1" | rows "$2" | awk '{ printf "%.6g", $1 }'; }
answers=$(cat <<END
tokens of the document|     3     11  l          8  i
rmsnorm do to x|0 $(six rmsnorm:0:2 1)
head 2 read|q_h   3 l  $(six attn_wq:0:3 9)
cache hold|position 2 (y)
How full is the cache|layer 0: 7 positions in the cache
move most in the first step|1.  lm_head[24][6] 0.01 -0.444995
relu that is off|relu, act[1]@3 0 0.00454222 0
head 3, by which paths|the sum, its gradient -1.42386e-05
not pushed down|8 $(six logits:0:3 9) -0.138347 i
loss without head 1|the loss $(six loss 1) 3.48255
weights of head 2|$(six attn_weights:2:0:3 1)
sqrt(4) in attn_logits.1.|times the factor  0.5 $(six attn_logits:2:0:3 2)
output land|head_out[0] -> x_attn[8]
wo do to it|0 $(six around_attn_wo:0:3 1)
residual added|x = ag_add(tape, x, x_residual, n_embd);
say comes next|1.  m  $(six logits:0:3 13) $(six top_prob:3 1)
logit come from|$(six logits:0:3 6)
row of wte|[ 0] $(six wte_grad:0:24 1) $(six wte_grad:0:24 2)
uses made it|emb[0]@2  1 $(six wte_grad:0:24 1)
parameter's gradient|gradient $(six grad 1)
Adam move it|value after $(six param_after 1)
first two steps|step 0 1
sampled, and why|<- drawn
first add to a gradient|ga[i] += e->c * g[i];
head 1 is silent|the loss $(six loss 1)
local derivative|They agree.
END
)
for debugger in gdb lldb; do
    case $debugger in
    gdb) have=$have_gdb ;;
    *) have=$have_lldb ;;
    esac
    [ "$have" ] || { skip "the questions in $debugger" "no $debugger that can run a program"; continue; }
    while IFS='|' read -r _ question commands _; do
        { echo begin; echo "$commands" | grep -o '`[^`]*`' | tr -d '`'; } >"$T/asked"
        if [ $debugger = lldb ]; then ask_lldb --quiet <"$T/asked"; else ask --quiet <"$T/asked"; fi
        answer=$(echo "$answers" | while IFS='|' read -r key text; do
            ! echo "$question" | grep -q -e "$key" || echo "$text"
        done)
        if [ "$answer" ] && tr -s ' ' <"$T/session" | grep -qF -e "$(echo "$answer" | tr -s ' ')"; then
            ok "$debugger:$question"
        else
            not_ok "$debugger:$question" "'$answer'" "$(tail -n 12 "$T/session")"
        fi
    done <"$T/questions"
done

# --- gdb.

if [ "$have_gdb" ]; then
    ask '--steps 2' <<'END'
begin
break gpt if pos_id == 4
continue
digits 17
echo @empty\n
here
echo @rmsnorm\n
around emb_norm 2
around x_norm 2
around mid_norm 2
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
echo @top\n
top5
echo @logit\n
explain logits 5
echo @word\n
explain logits[5]@3
echo @row\n
row q
echo @inner\n
vec head1.attn_weights.exps 3
vec emb_norm.scale 3
echo @marked\n
doc
delete
at gpt head_out pos_id==4&&h==1
continue
echo @here\n
here
digits 6
echo @locals\n
info locals
echo @all\n
bt full
tbreak sum_of_products
continue
next
next
echo @sum\n
explain sum
tbreak mul_backward if e->a==watched.model->layers[0].attn_wo->data+53
continue
up
echo @under\n
users layer0.attn_wo 3 5
explain x_wo 3 6
param layer0.attn_wo 3 5
row layer0.attn_wo 3
tbreak adam
continue
echo @twice\n
explain emb 0 2
echo @gradient\n
digits 17
row wte 24
users layer0.attn_wo 3 5
echo @pointer\n
explain &model->params[0]
explain loss
eval "explain v%d", value_number(model->tape.entries[17].out)
users &model->layers[0].attn_wo->data[53]
echo @names\n
vec
finish
echo @moved\n
param layer0.attn_wo 3 5
users x_attn 5 3
nudge logits 5 3
silence 1 3
echo @wrong\n
vec nonsense
vec wte 24
vec q 99
around nonsense
head 4
attn 0 99
cache 99
param layer0.attn_wo 3 16
param nonsense 0 0
param logits 5 0
explain logits 27
explain logits
look &model->n_embd
layer 1
digits 18
depth 99
draw
at gpt nonsense
row wte
explain
users
around
head
attn
lands
silence
look
graph
param layer0.attn_wo 3
moves
layer
digits
depth
row
nudge
at gpt
END
    printf 'begin\nbreak document_loss if pos_id == 3\n' >"$T/commands"
    near "x before and after rmsnorm at position 2" "$(figure rmsnorm:0:2)" "$(part rmsnorm | columns '2 3')"
    near "head 2's slice of q" "$(figure attn_wq:0:3 | rows 9,12)" \
         "$(part head | awk '$1 == "q_h" { print $4, $5, $6, $7 }')"
    same "how many positions are cached" "layer 0: 4 positions in the cache" "$(part cache | head -n 1)"
    near "key 1" "$(figure attn_wk:0:1)" "$(part key | columns 2)"
    near "head 0's weights at position 3" "$(figure attn_weights:0:0:3)" "$(part attn | columns 4)"
    near "and its logits" "$(figure attn_logits:0:0:3)" "$(part attn | columns 3)"
    same "and their characters" "BOS m y l" "$(echo $(part attn | columns 2))"
    near "head 1's output" "$(figure head_out:1:0:3)" "$(part lands | awk '$1 == "head" { print $6 }')"
    near "the likeliest: their probabilities" "$(figure top_prob:3)" "$(part top | awk '$1 ~ /^[1-5]\.$/ { print $4 }')"
    near "the true token, its probability and its loss" "$(figure probs:0:3 | rows 9)
        $(figure probs:0:3 | rows 9 | awk '{ printf "%.17g", -log($1) }')" "$(part top | awk '/true: loss/ { print $4, $7 }')"
    near "a logit, from a row of lm_head" "$(figure lm_head:0:5)" "$(part logit | awk '$2 == "*" && NF == 6 { print $4 }')"
    near "and the vector that left the layer" "$(figure x_out:0:3)" "$(part logit | awk '$2 == "*" && NF == 6 { print $5 }')"
    near "as the sum of their products" "$(figure logits:0:3 | rows 6)" \
         "$(part logit | awk '$2 == "*" && NF == 6 { s += $6 } END { printf "%.17g", s }')"
    part word >"$T/word"
    part logit | grep -v '^(' >"$T/logit"
    same_file "logits[5]@3 is the same" "$T/logit" "$T/word"
    near "row: a vector in few lines" "$(figure attn_wq:0:3)" "$(part row | sed -n 's/^ *\[ *[0-9]*\]//p')"
    near "names inside softmax" "$(figure attn_logits:1:0:3 | awk '{ a[NR] = $1; m = NR == 1 || $1 > m ? $1 : m }
        END { for (i = 1; i <= NR; i++) printf "%.17g\n", exp(a[i] - m) }')" "$(part inner | columns 2 | head -n 4)"
    near "and inside rmsnorm" "$(figure emb:0:3 | awk '{ s += $1 * $1 } END { printf "%.17g", (s / NR + 1e-5) ^ -0.5 }')" \
         "$(part inner | columns 2 | tail -n 1)"
    same "doc marks the position that gpt() is called for" 4 "$(part marked | awk '/<-/ { print $1 }')"
    part empty >"$T/empty"
    has "here, where nothing is yet" "No vector has been made in this call yet" "$T/empty"
    near "here: a slice, by name" "$(figure attn_wq:0:4 | rows 5,7)" "$(part here | awk '$1 == "head1.q_h" { print $2, $3, $4 }')"
    near "here: the weights" "$(figure attn_weights:1:0:4 | rows 1,3)" \
         "$(part here | awk '$1 == "head1.attn_weights" { print $2, $3, $4 }')"
    part all >"$T/all"
    same "nothing is optimized out" 0 "$(grep -c 'optimized out' "$T/all")"
    has "the stack leads to main" "in main (" "$T/all"
    part locals >"$T/locals"
    has "locals print" "n_embd = 16" "$T/locals"
    part sum >"$T/sum"
    has "explain sum in sum_of_products is its own sum" "attn_weights[0]@4 * v[4]@0" "$T/sum"
    part under >"$T/under"
    has "during backward, uses that are still to come are not added" "not added yet" "$T/under"
    same "and the sum of the others is the gradient so far" "" "$(grep ANOTHER "$T/under")"
    same "explain, param and row say that backward is under way" 4 "$(grep -c 'under way' "$T/under")"
    same "an entry is listed once" 1 "$(part twice | grep -c 'emb_norm.sum_of_squares@2')"
    near "the gradients of a row" "$(figure wte_grad:0:24)" \
         "$(part gradient | awk '/gradient/ { on = 1; next } /^layer0/ { on = 0 } on' | sed -n 's/^ *\[ *[0-9]*\]//p')"
    near "what each use adds is the gradient in the end" "$(figure grad)" \
         "$(part gradient | awk '$2 == "mul," { s += $NF } END { printf "%.17g", s }')"
    part pointer >"$T/pointer"
    has "explain takes an expression of C" "wte[0][0]" "$T/pointer"
    has "explain loss" "(mul const)" "$T/pointer"
    has "explain v123: a value without a name" "made by  entry 17 " "$T/pointer"
    has "users takes an expression of C" "used by  7 entries of the tape" "$T/pointer"
    part names >"$T/names"
    has "vec lists the names" "  head0.attn_weights      7  from attn_logits" "$T/names"
    part moved >"$T/moved"
    near "after adam(), the gradient is still known" "$(figure grad)" "$(awk '$1 == "gradient" { print $2 }' "$T/moved")"
    same "and sums are those of backward" "" "$(grep ANOTHER "$T/moved")"
    has "nudge says where to ask" "ask where adam() begins" "$T/moved"
    part wrong >"$T/wrong"
    for text in 'nonsense: no line of microgpt.c makes a vector' \
        'wte is a matrix: `row wte I`' 'q at position 99: not there yet' \
        'nonsense: no line of gpt() with this text' 'There are 4 heads' 'attn_logits at position 99' 'k at position 99' \
        '16 rows and 16 columns' 'logits is no parameter' 'logits has 27 elements, counted' 'which one?' \
        'no value of the tape' 'layer takes a number from 0 to 0' 'digits takes a number from 1 to 17' \
        'depth takes a number from 1 to 20' 'nothing to draw from here' 'gpt() has no line with this text' 'wte has 27 rows' \
        'explain VALUE: what' 'users VALUE: every' 'around OP [POS]:' 'head H [POS]:' 'attn H [POS]:' 'lands H [POS]:' \
        'silence H [POS]:' 'look EXPR [N]:' 'graph VALUE:' 'param NAME ROW COL:' 'moves NAME ROW COL:' 'layer L:' \
        'digits N:' 'depth N:' 'row NAME [POS]:' 'nudge VALUE [B]:' 'at FUNCTION TEXT'; do
        has "a wrong question is answered in words: $text" "$text" "$T/wrong"
    done
    printf 'begin\nviews\nviews 2\n' | ask ''
    same "a page of views fits a screen" "" "$(printf 'begin\nviews\nviews 2\n' | sed 's/views.*/echo @&\\n\n&/' | ask ''
        awk '/^@/ { n = 0 } ++n > 24 { print }' "$T/session")"
    for name in $(sed -n 's/^    {"\([a-z0-9]*\).*/\1/p' support/debugger/commands.c); do
        if grep -q "^define $name\$" .build/debug/commands.gdb && grep -q "^document $name\$" .build/debug/commands.gdb &&
            grep -q "^command regex .* -- $name\$" .build/debug/commands.lldb && grep -q "^  $name" "$T/session"; then
            ok "$name is in gdb with its help, in lldb and in the list"
        else
            not_ok "$name is in gdb with its help, in lldb and in the list" "all" "fewer"
        fi
    done
    same "the guide's list is the table of commands" "$(awk -v to=guide -f support/debugger/commands.awk support/debugger/commands.c)" \
        "$(awk '/^\| command \| shows/ { on = 1; getline; next } !/^\|/ { on = 0 } on' support/debugger/README.md)"
    printf 'begin\nbreak document_loss if pos_id == 3\n' | ask ''
    has "a condition on what is not there is refused" 'No symbol "pos_id" in current context' "$T/session"

    # What a new operation and a new function made has its name; its derivative is right.
    printf '%s\n' begin 'tbreak adam' continue 'explain act 0 3' 'explain act.half 0 3' 'nudge fc1 0 3' >"$T/commands"
    (cd "$T/spelled" && gdb -nx -q -batch -x .build/debug/commands.gdb -x "$T/commands" ./microgpt-debug >"$T/session" 2>&1 </dev/null)
    has "what a new function made has its name" "act.half[0]@3 + v" "$T/session"
    has "what it made for itself, too" "act.half[0]@3" "$T/session"
    has "an operation that is new to the views is right" "They agree." "$T/session"

    # A gradient as it grows: the uses of a parameter, from the last to the first, and then Adam.
    printf '%s\n' begin 'digits 17' 'watchgrad layer0.attn_wo 3 5' continue continue continue continue continue continue \
        continue continue 'watchgrad nonsense 1 2' | ask ''
    near "watchgrad: the sums so far end in the gradient" "$(figure grad)" \
         "$(sed -n 's/.* and is now \(.*\)\.$/\1/p' "$T/session" | sed -n 7p)"
    near "watchgrad: and so does the sum of what was added" "$(figure grad)" \
         "$(sed -n 's/^  adds \([^,]*\),.*/\1/p' "$T/session" | awk '{ s += $1 } END { printf "%.17g", s }')"
    same "watchgrad: each use with its entry" "6 5 4 3 2 1 0" "$(echo $(sed -n \
        's/^  entry [0-9]*: layer0.attn_wo\[3\]\[5\] \* x_attn\[5\]@\([0-9]\), a part of x_wo\[3\].*/\1/p' "$T/session"))"
    same "watchgrad: and with the statement" 7 "$(grep -c 'x = linear(tape, x_attn, layer->attn_wo);' "$T/session")"
    has "watchgrad: in the end Adam clears it" "adam() has cleared it" "$T/session"
    has "watchgrad: what is no parameter" "nonsense is no parameter. The matrices are wte wpe lm_head" "$T/session"

    # No progress bar in the debugger's terminal.
    if command -v script >/dev/null 2>&1 && script -qec true "$T/typed" </dev/null >/dev/null 2>&1; then
        printf '%s\n' 'tbreak after_step if step == 100' continue kill quit |
            TERM=xterm script -qec 'make -s debug' "$T/typed" >/dev/null 2>&1
        has "make debug comes to step 100" "=100," "$T/typed"
        same "and draws no progress" 0 "$(grep -c '%\|█\|steps/s' "$T/typed")"
    else
        skip "no progress bar in the debugger" "no script(1)"
    fi

    # More layers, other sizes, and the lesson's activation.
    figures 2 12 3
    ask '--n-layer 2 --n-embd 12 --n-head 3' <<'END'
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
END
    near "layer 1, head 1 2" "$(figure attn_wq:1:2 | rows 5,8)" \
         "$(part head | awk '$1 == "q_h" { print $4, $5, $6, $7 }')"
    near "layer 1, lands 1 2" "$(figure head_out:1:1:2)" "$(part lands | awk '$1 == "head" { print $6 }')"
    near "top5 2" "$(figure top_prob:2)" "$(part top | awk '$1 ~ /^[1-5]\.$/ { print $4 }')"
    near "vec layer1.q 2" "$(figure attn_wq:1:2)" "$(part q | columns 2)"
    near "layer 1, attn 2 3" "$(figure attn_weights:2:1:3)" "$(part attn | columns 4)"
    near "layer 1, around wo 2" "$(figure around_attn_wo:1:2)" "$(part wo | columns '2 4')"
    part name >"$T/name"
    has "names have their layer" "layer1.attn_wo[0][0] * layer1.x_attn[0]@2" "$T/name"

    printf '%s\n' begin 'tbreak document_loss' continue 'tbreak adam' continue 'explain act2 0 1' 'explain act 0 1' |
        ask '--recipe lesson --steps 2'
    has "the lesson's recipe: relu and its square have two names" "act[0]@1 ^ 2" "$T/session"
    has "act is the relu" "relu fc1[0]@1" "$T/session"

    # What a learner met: names that fit, a screen that is long enough, nothing that is not so.
    figures 1 16 4
    ask '' <<'END'
begin
tbreak adam
continue
echo @doc\n
doc
echo @total\n
users probs.total 0 3
echo @slice\n
explain head3.q_h 1 2
vec head3.v_h 2
echo @unread\n
users wte 1 0
echo @around\n
around rmsnorm 2
echo @silence\n
silence 1 3
echo @named\n
vec document_loss
echo @biggest\n
biggest gradients 2
digits 17
biggest moves 4
echo @adam\n
next 4
here
look g 2
look m
END
    same "doc marks no position where none is being read" 0 "$(part doc | grep -c '<-')"
    near "doc has the mean of the losses" "$(figure loss)" "$(part doc | sed -n 's/.*, document_loss: //p')"
    same "a use is named after what it is a term of" "total ^ -1" "$(part total | sed -n 's/.*pow, v[0-9]* (\(.*\)).*/\1/p')"
    part slice >"$T/slice"
    has "explain head3.q_h 1 2: an element of q" "q[13]@2" "$T/slice"
    near "vec head3.v_h 2: three rows of the cache" "$(for t in 0 1 2; do figure attn_wv:0:$t | rows 13,16; done | awk '{ printf "%.6g\n", $1 }')" \
        "$(awk '$1 == "v_h" { print $4, $5, $6, $7 }' "$T/slice")"
    same "what is never used is used by nothing, with no word of later" "used by  nothing" "$(part unread | grep 'used by')"
    same "around rmsnorm 2 fits a screen, with its three lines" "3 yes" \
        "$(part around | awk '/^microgpt.c/ { n++ } END { print n, NR <= 23 ? "yes" : "no" }')"
    same "silence has the true token" 1 "$(part silence | grep -c 'true: loss')"
    near "the document's loss has a name" "$(figure loss | awk '{ printf "%.6g", $1 }')" "$(part named | columns 2)"
    same "no number is -0" 0 "$(grep -cE ' -0( |$)' "$T/session")"
    same "biggest gradients: lm_head is on top, in order" "lm_head[24][6] lm_head[12][11]" "$(echo $(part biggest | awk '$1 ~ /^[12]\.$/ && !done[$1]++ { print $2 }'))"
    same "biggest moves: none is larger than the one above it" "" "$(part biggest | awk '/biggest moves/ { on = 1; last = 1; next }
        on && /^ *[0-9]*\./ { x = $3 < 0 ? -$3 : $3; if (x > last) print; last = x }')"
    part adam >"$T/adam"
    has "here, in adam()" "  m  " "$T/adam"
    has "look g" "the gradient of wte[0][1]" "$T/adam"
    has "look m" "Adam's m of wte[0][0]" "$T/adam"
    printf '%s\n' begin 'tbreak choose_token' continue top5 'echo @silent\n' 'silence 1' | ask '--quiet --samples 1 --steps 20'
    same "silence while sampling agrees with top5" "$(sed -n 's/^  1\. .* \([0-9.e-]*\)$/\1/p' "$T/session" | head -n 1)" \
        "$(part silent | awk '$1 == "1." { print $3 }')"

    # A head that sees the last four positions only; an adam() that is not Adam.
    changed window 's/size_t seen = pos_id + 1;/size_t start = pos_id > 3 ? pos_id - 3 : 0, seen = pos_id + 1 - start;/
        s/\(double \*[kv]_h = [a-z]*\[li\] + \)hs;/\1start * n_embd + hs;/'
    printf '%s\n' begin 'tbreak adam' continue 'attn 0 6' 'vec head0.attn_weights 6' >"$T/commands"
    (cd "$T/window" && gdb -nx -q -batch -x .build/debug/commands.gdb -x "$T/commands" ./microgpt-debug >"$T/session" 2>&1 </dev/null)
    same "attn: the positions that a window looks at" "3 l 4 i 5 a 6 h" "$(echo $(awk '/looks at/ { on = 1 } /^head0/ { on = 0 }
        on && NF > 3 && $1 ~ /^[0-9]+$/ { print $1, $2 }' "$T/session"))"
    changed descent 's/p\[i\] -= lr \* m_hat .*/p[i] -= lr * g[i] + 0 * m_hat * v_hat * eps;/'
    printf '%s\n' begin 'tbreak adam' continue 'digits 17' finish 'moves layer0.attn_wo 3 5' >"$T/commands"
    (cd "$T/descent" && gdb -nx -q -batch -x .build/debug/commands.gdb -x "$T/commands" ./microgpt-debug >"$T/session" 2>&1 </dev/null)
    has "moves says that adam() is not Adam" "adam() is not Adam" "$T/session"
    same "and shows none of its terms" 0 "$(grep -c '^  m_hat\|^  m = ' "$T/session")"
    near "but what was, and what came of it" "$(figure param_before) $(figure grad) $(awk -v p="$(figure param_before)" -v g="$(figure grad)" \
        'BEGIN { printf "%.17g", p - 0.01 * g }')" "$(awk '/^  value before/ { b = $3 } /^  gradient/ { g = $2 } /^  value after/ { print b, g, $3 }' "$T/session")"

    # What people type.
    printf '%s\n' doc 'call show_attention(0, 3)' quit | make -s debug ARGS='--recipe lesson' DEBUGGER=gdb >"$T/session" 2>&1
    has "make debug stops in document_loss" "document_loss (model=" "$T/session"
    has "make debug ARGS=..." "The document: myliah" "$T/session"

    # The editor, as the C/C++ extension does it: the set-up commands before the program is loaded.
    {
        sed -n 's/.*{ "text": "\(.*\)" }.*/\1/p' .vscode/launch.json | sed "s|\${workspaceFolder}|$ROOT|" |
            sed 's/.*/-interpreter-exec console "&"/'
        printf '%s\n' "-environment-cd $ROOT" "-file-exec-and-symbols $ROOT/microgpt-debug" -exec-run
        sleep 3
        printf '%s\n' '-interpreter-exec console "doc"' -gdb-exit
    } | (cd / && gdb -nx -q --interpreter=mi) >"$T/session" 2>&1
    has "F5 with gdb: stops in document_loss" 'func="document_loss"' "$T/session"
    has "F5 with gdb: -exec doc answers" "The document: myliah" "$T/session"

    # Other editors: a gdb of their own, which is told to read the commands.
    printf 'source .build/debug/commands.gdb\nbegin\ndoc\nquit\n' | gdb -nx -q ./microgpt-debug >"$T/session" 2>&1
    has "source .build/debug/commands.gdb, then begin" "The document: myliah" "$T/session"
    printf 'break document_loss\nrun\nsource .build/debug/commands.gdb\ndoc\nquit\n' | gdb -nx -q ./microgpt-debug >"$T/session" 2>&1
    has "a breakpoint, then source .build/debug/commands.gdb" "The document: myliah" "$T/session"
    printf 'doc\n-gdb-exit\n' | gdb -nx -i=mi -x .build/debug/commands.gdb -ex begin ./microgpt-debug >"$T/session" 2>&1
    has "gdb -i=mi, as Emacs starts it" "The document: myliah" "$T/session"
else
    skip "gdb" "no gdb that can run a program"
fi

# --- lldb: what the questions do not ask.

if [ ! "$have_lldb" ]; then
    skip "the commands in lldb" "no lldb that can run a program"
    finish
fi
figures 1 16 4
printf '%s\n' begin views 'break gpt if pos_id == 4' continue 'digits 17' cache 'cache 1' 'look model->keys[0] 2' vec \
    'vec q' 'vec q 1' 'row q' tape 'layer 0' map 'at gpt ag_copy pos_id==4&&h==1' continue here 'break delete -f' \
    'tbreak sum_of_products' continue 'explain sum' 'explain &a[0]' 'tbreak adam' continue 'explain loss' \
    'explain &model->params[0]' 'users &model->params[0]' 'nudge fc1 0 3' 'depth 2' 'graph loss' picture rewind finish |
    ask_lldb ''
has "lldb stops in document_loss" 'document_loss(model=' "$T/session"
has "lldb says what to type" 'views lists the commands' "$T/session"
near "lldb: cache 1" "$(figure attn_wk:0:1)" "$(lldb_part 'cache 1' | columns 2)"
near "lldb: look model->keys[0] 2" "$(figure attn_wk:0:0 | rows 1,2)" \
     "$(lldb_part 'look model->keys[0] 2' | awk '{ print $1 }')"
near "lldb: vec q" "$(figure attn_wq:0:3)" "$(lldb_part 'vec q' | columns 2)"
near "lldb: vec q 1" "$(figure attn_wq:0:1)" "$(lldb_part 'vec q 1' | columns 2)"
near "lldb: row q" "$(figure attn_wq:0:3)" "$(lldb_part 'row q' | sed -n 's/^ *\[ *[0-9]*\]//p')"
near "lldb: here" "$(figure attn_weights:1:0:4 | rows 1,3)" \
     "$(lldb_part here | awk '$1 == "head1.attn_weights" { print $2, $3, $4 }')"
lldb_part 'explain sum' >"$T/sum"
has "lldb: a variable that hides a name" '`explain &sum[0]` explains the variable sum' "$T/sum"
has "lldb: at, and a pointer" "q[8]@4" "$T/session"
has "lldb: nudge" "They agree." "$T/session"
has "lldb: users" "of the tape" "$T/session"
has "lldb: an expression of C" "wte[0][0]" "$T/session"
has "lldb: explain loss" "(mul const)" "$T/session"
has "lldb: graph" "sum = " "$T/session"
has "lldb: tape" "entries, from 4 positions" "$T/session"
has "lldb: map" "4 heads of 4" "$T/session"
has "lldb: views" "  doc                     the document" "$T/session"
has "lldb: rewind says that it cannot" "lldb cannot go back" "$T/session"
has "lldb: finish goes back to train" "train(run=" "$T/session"
same "lldb: no command failed" "" "$(grep 'error:' "$T/session")"

printf '%s\n' begin 'digits 17' 'watchgrad layer0.attn_wo 3 5' continue continue continue continue continue continue \
    continue continue | ask_lldb ''
near "lldb: watchgrad: the sums so far end in the gradient" "$(figure grad)" \
     "$(sed -n 's/.* and is now \(.*\)\.$/\1/p' "$T/session" | sed -n 7p)"
has "lldb: watchgrad: in the end Adam clears it" "adam() has cleared it" "$T/session"

# Stepping goes past what takes notes, into the operation.
printf '%s\n' begin 'at gpt rmsnorm' continue 'thread step-in' 'thread step-in' | ask_lldb ''
same "lldb: step goes into rmsnorm, and past what is no lesson" "gpt rmsnorm rmsnorm" \
     "$(echo $(sed -n 's/^ *frame #0: .*`\([a-z_]*\)(.*/\1/p' "$T/session" | tail -n 3))"

# make debug DEBUGGER=lldb, and F5 with CodeLLDB: its commands before the program is there, then the program.
printf 'doc\nquit\n' | make -s debug DEBUGGER=lldb >"$T/session" 2>&1
has "make debug DEBUGGER=lldb" "The document: myliah" "$T/session"
{
    sed -n 's/.*"initCommands": \["\(.*\)"\].*/\1/p' .vscode/launch.json | sed "s|\${workspaceFolder}|$ROOT|"
    echo "target create $ROOT/microgpt-debug"
    sed -n 's/.*"preRunCommands": \["\(.*\)"\].*/\1/p' .vscode/launch.json
    printf '%s\n' "process launch" doc
} >"$T/commands"
lldb --no-lldbinit -b -s "$T/commands" >"$T/session" 2>&1 </dev/null
has "F5 with lldb: stops in document_loss" 'document_loss(model=' "$T/session"
has "F5 with lldb: doc answers" "The document: myliah" "$T/session"
finish
