#!/bin/sh
# The build to step through, and what a learner can ask of it, in gdb and in lldb alike; the questions of the guide; and
# the editor's files. The numbers are compared with those of the fast engine (figures.c).
# this file only with ALL=1
# needs microgpt-debug
. tests/debugger/helpers.sh

# --- The build.

for compiler in gcc clang; do
    if command -v $compiler >/dev/null 2>&1; then
        # shellcheck disable=SC2086
        sh support/debugger/note >"$T/noted.c"
        check "the debug build has no warnings with $compiler" $compiler $WARN -Werror -O0 -g -fno-inline -DAUTOGRAD_PLAIN \
            -DMICROGPT_DEBUG -I. -o "$T/debug-$compiler" "$T/noted.c" autograd.c support/[!d]*/*.c support/debugger/*.c -lm
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

# However the tape is spelled, a call is known from a definition. A new function and an operation that the views do not
# know (here the logarithm, which is taken out of their table) have their names at once.
copied spelled 's/softmax(tape, attn_logits, seen)/softmax(\&model->tape, attn_logits, seen)/
    s/x = linear(tape, x, layer->mlp_fc1)/x = linear((tape), x, layer->mlp_fc1)/
    s/x = ag_relu(tape, x, \([a-z_]*\));/x = twice(tape, ag_log(tape, ag_add_const(tape, ag_exp(tape, x, \1), 1, \1), \1), \1);/
    s|^// The model itself.*|static double *twice(Tape *tape, double *a, size_t n)\
{\
    double *half = ag_mul_const(tape, a, 1, n);\
    return ag_add(tape, half, a, n);\
}\
&|'
sed '/case OP_LOG: return/d' support/debugger/atoms.c >"$T/spelled/support/debugger/atoms.c"
check "the views know one operation less" sh -c "! cmp -s support/debugger/atoms.c '$T/spelled/support/debugger/atoms.c'"
(cd "$T/spelled" && make -s CC="$CC" microgpt-debug 2>&1) >"$T/log"
same "a new function compiles" "" "$(grep error "$T/log")"

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
    check "tasks.json: make $target" make -n "$target"
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
loss without head 1|the loss $(six loss 1) 3.48255
weights of head 2|$(six attn_weights:2:0:3 1)
sqrt(4) in attn_logits.1.|times the factor  0.5 $(six attn_logits:2:0:3 2)
output land|head_out[0] -> x_attn[8]
wo do to it|0 $(six around_attn_wo:0:3 1)
residual added|x = ag_add(tape, x, x_residual, n_embd);
say comes next|1.  m  $(six logits:0:3 13) $(six top_prob:0:3 1)
logit come from|$(six logits:0:3 6)
row of wte|[ 0] $(six wte_grad:0:24 1) $(six wte_grad:0:24 2)
Adam move it|value after $(six param_after 1)
first two steps|step 0 1
sampled, and why|<- drawn
first add to a gradient|ga[i] += e->c * g[i];
local derivative|They agree.
END
)
for debugger in gdb lldb; do
    has_debugger $debugger || { skip "the questions in $debugger" "no $debugger that can run a program"; continue; }
    while IFS='|' read -r _ question commands _; do
        { echo begin; echo "$commands" | grep -o '`[^`]*`' | tr -d '`'; } | session $debugger --quiet
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

# --- What is asked in one run, in both debuggers: of each command, words that it must say (COMMAND|TEXT), or its numbers
# (COMMAND|COLUMNS|FIGURES ROWS). A line without a bar is only typed.

cat >"$T/script" <<'END'
begin
tbreak gpt if pos_id == 4
continue
here|No vector has been made in this call yet
doc|  4      8  i          0  a      <- gpt() is here
explain logits 5|(Position 4 has not come to logits yet. This is position 3.)
tape|entries, from 4 positions
at gpt head_out pos_id==4&&h==1
continue
here|head1.q_h
row head1.attn_weights|head1.attn_weights at position 4 (i)
tbreak mul_backward
continue
users layer0.attn_wo 3 5|not added yet
param layer0.attn_wo 3 5|so far: backward() is under way
explain layer0.attn_wo 3 5|the gradient so far
row layer0.attn_wo 3|gradient so far
tbreak adam
continue
map|  head0.attn_weights      7  from attn_logits
vec|other names: sum losses
explain emb 0 2|wte[24][0] + wpe[2][0]
explain &model->params[0]|wte[0][0]
explain v6175|made by  entry 1760 (mul), microgpt.c:259
explain loss|used by  nothing: backward() starts here, with gradient 1
users &model->layers[0].attn_wo->data[53]|used by  7 entries of the tape
users probs.total 0 3|pow, v34178 (total ^ -1)
users wte 1 0|used by  nothing
explain head3.q_h 1 2|q[13]@2
vec head1.q_h 3|q[4]@3
vec document_loss|3.48736
look model->keys[0] 2|k[1]@0
around residual|before, x_wo; after, x_mid
silence 1 3|true: loss
nudge logits 5 3|They agree.
biggest gradients 2|2.  lm_head[12][11]
depth 2
graph loss|sum = 3.48736
doc|their mean, document_loss: 3.487362926026387
cache|+   48
digits 17
around emb_norm 2|2 4|rmsnorm:0:2 1,32
around mid_norm 2|2 4|rmsnorm:0:2 65,96
around x_wo 2|2 4|around_attn_wo:0:2 1,32
vec head1.attn_logits 3|2|attn_logits:1:0:3 1,4
attn 0 3|4|attn_weights:0:0:3 1,4
vec head1.head_out 3|2|head_out:1:0:3 1,4
cache 1|2|attn_wk:0:1 1,16
vec v 1|2|attn_wv:0:1 1,16
vec logits 3|2|logits:0:3 1,27
vec loss|2|loss 1
next
next
here|Adam's means
look g 2|the gradient of wte[0][1]
look m|Adam's m of wte[0][0]
finish
param layer0.attn_wo 3 4|before adam() cleared it
row wte 24|gradient, before adam() cleared it
nudge fc1 0 3|ask where adam() begins
silence 1|Adam has moved the parameters since
vec nonsense|nonsense: no line of microgpt.c makes a vector
vec wte 24|wte is a matrix: `row wte I`
vec q 99|q at position 99: not there yet
around nonsense|nonsense: no line of gpt() with this text
head 4|There are 4 heads
attn 0 99|attn_logits at position 99
cache 99|k at position 99
param layer0.attn_wo 3 16|16 rows and 16 columns
param logits 5 0|logits is no parameter. The matrices are wte
explain logits 27|logits has 27 elements, counted from 0: which one?
layer 1|layer takes a number from 0 to 0
digits 18|digits takes a number from 1 to 17
depth 99|depth takes a number from 1 to 20
draw|nothing to draw from here
row wte|wte has 27 rows
biggest q|biggest moves, biggest gradients: ask
explain|explain VALUE: what
attn|attn H [POS]: one head
moves|moves NAME ROW COL: how
row|row NAME [POS]: only
END
sed 's/|.*//' "$T/script" >"$T/typed"
for debugger in gdb lldb; do
    has_debugger $debugger || { skip "the commands in $debugger" "no $debugger that can run a program"; continue; }
    session $debugger '--quiet --steps 2' <"$T/typed"
    while IFS='|' read -r command text figures; do
        said "$command" >"$T/said"
        if [ "$figures" ]; then
            # shellcheck disable=SC2086
            near "$debugger: $command" "$(set -- $figures && figure "$1" | rows "$2")" "$(columns "$text" <"$T/said")"
        elif [ "$text" ]; then
            has "$debugger: $command: $text" "$text" "$T/said"
        fi
    done <"$T/script"
    same "$debugger: no number is -0, and no sum is wrong" "" "$(grep -E ' -0( |$)|ANOTHER|DIFFER' "$T/session")"
    same "$debugger: an entry is listed once" 1 "$(said 'explain emb 0 2' | grep -c 'emb_norm.sum_of_squares@2')"
    near "$debugger: names inside softmax" "$(figure attn_weights:1:0:3 | awk '{ a[NR] = $1; m = $1 > m ? $1 : m }
        END { for (i = 1; i <= NR; i++) printf "%.17g\n", a[i] / m }')" \
        "$(printf '%s\n' begin 'tbreak adam' continue 'digits 17' 'vec head1.attn_weights.exps 3' | session $debugger &&
            said 'vec head1.attn_weights.exps 3' | columns 2)"
    # A gradient as it grows: the uses of a parameter, from the last to the first, and then Adam.
    { printf '%s\n' begin 'digits 17' 'watchgrad layer0.attn_wo 3 5'; yes continue | head -n 8; } | session $debugger
    near "$debugger: watchgrad: what is added, and the sum so far, end in the gradient" "$(figure grad) $(figure grad)" "$(
        sed -n 's/^  adds \([^,]*\),.*/\1/p' "$T/session" | awk '{ s += $1 } END { printf "%.17g\n", s }'
        sed -n 's/.* and is now \(.*\)\.$/\1/p' "$T/session" | sed -n 7p)"
    same "$debugger: watchgrad: each use, with the statement" "6 5 4 3 2 1 0 7" "$(echo $(sed -n \
        's/^  entry [0-9]*: layer0.attn_wo\[3\]\[5\] \* x_attn\[5\]@\([0-9]\), a part of x_wo\[3\].*/\1/p' "$T/session"
        grep -c '^    x = linear(tape, x_attn, layer->attn_wo);' "$T/session"))"
    has "$debugger: watchgrad: in the end Adam clears it" "adam() has cleared it" "$T/session"
    # What hides a name: a variable of autograd.c.
    printf '%s\n' begin 'at gpt head_out pos_id==4&&h==1' continue 'tbreak sum_of_products' continue next next 'explain sum' | session $debugger
    said 'explain sum' >"$T/said"
    case $debugger in
    gdb) has "gdb: explain sum in sum_of_products is its own sum" "attn_weights[0]@4 * v[4]@0" "$T/said" ;;
    *) has "lldb: a variable that hides a name" '`explain &sum[0]` explains the variable sum' "$T/said" ;;
    esac
    # While sampling.
    printf '%s\n' begin 'tbreak choose_token' continue top5 'silence 1' doc map | session $debugger '--quiet --samples 1 --steps 20'
    same "$debugger: silence while sampling agrees with top5" "$(said top5 | awk '$1 == "1." { print $2, $5 }')" \
        "$(said 'silence 1' | awk '$1 == "1." { print $2, $3 }')"
    has "$debugger: the sample so far" "The sample so far" "$T/session"
    # More layers, and the lesson's activation.
    figures 2 12 3
    printf '%s\n' begin 'tbreak adam' continue 'digits 17' 'vec layer1.q 2' 'layer 1' 'attn 2 3' 'explain layer1.x_wo 0 2' |
        session $debugger '--n-layer 2 --n-embd 12 --n-head 3'
    near "$debugger: vec layer1.q 2" "$(figure attn_wq:1:2)" "$(said 'vec layer1.q 2' | columns 2)"
    near "$debugger: layer 1, attn 2 3" "$(figure attn_weights:2:1:3)" "$(said 'attn 2 3' | columns 4)"
    has "$debugger: names have their layer" "layer1.attn_wo[0][0] * layer1.x_attn[0]@2" "$T/session"
    figures 1 16 4
    printf '%s\n' begin 'tbreak adam' continue 'explain act2 0 1' | session $debugger '--recipe lesson --steps 2'
    has "$debugger: the lesson's recipe: the square of relu" "act[0]@1 ^ 2" "$T/session"
    # What people type, and F5 of an editor: its commands before the program is there, then the program.
    printf 'doc\nquit\n' | make -s debug DEBUGGER=$debugger ARGS='--recipe lesson' >"$T/session" 2>&1
    has "make debug DEBUGGER=$debugger stops in document_loss" "document_loss" "$T/session"
    has "and answers" "The document: myliah" "$T/session"
done

# --- The table of commands.

[ ! "$have_gdb" ] || printf 'begin\nviews\nviews 2\n' | session gdb
for name in $(sed -n 's/^    {"\([a-z0-9]*\).*/\1/p' support/debugger/commands.c); do
    check "$name is in gdb with its help, in lldb and in the guide" sh -c "grep -q '^define $name\$' .build/debug/commands.gdb &&
        grep -q '^document $name\$' .build/debug/commands.gdb && grep -q '^| .$name[ \`]' support/debugger/README.md &&
        grep -q '^command regex .* -- $name\$' .build/debug/commands.lldb"
    [ ! "$have_gdb" ] || has "and in the list" "  $name " "$T/session"
done
same "the guide's list is the table of commands" "$(awk -v to=guide -f support/debugger/commands.awk support/debugger/commands.c)" \
    "$(awk '/^\| command \| shows/ { on = 1; getline; next } !/^\|/ { on = 0 } on' support/debugger/README.md)"
if [ ! "$have_gdb" ]; then
    skip "gdb" "no gdb that can run a program"
    finish
fi
for view in views 'views 2' map 'around rmsnorm 2' 'graph head1.attn_weights 0 1' 'cache 1' 'biggest moves 30'; do
    lines=$(printf '%s\n' begin 'tbreak adam' continue 'depth 9' "$view" | session gdb && said "$view" | wc -l)
    check "$view fits a screen: $lines lines" [ "$lines" -gt 5 -a "$lines" -le 24 ]
done

# --- gdb: what a new operation and a new function made has its name; its derivative is right. A head that sees the last
# four positions only; an adam() that is not Adam.

printf '%s\n' begin 'tbreak adam' continue 'explain act 0 3' 'explain act.half 0 3' 'nudge fc1 0 3' | ask_in spelled
has "what a new function made has its name" "act.half[0]@3 + v" "$T/session"
has "what it made for itself, too" "act.half[0]@3" "$T/session"
has "an operation that is new to the views is right" "They agree." "$T/session"
changed window 's/size_t seen = pos_id + 1;/size_t start = pos_id > 3 ? pos_id - 3 : 0, seen = pos_id + 1 - start;/
    s/\(double \*[kv]_h = [a-z]*\[li\] + \)hs;/\1start * n_embd + hs;/'
printf '%s\n' begin 'tbreak adam' continue 'attn 0 6' | ask_in window
same "attn: the positions that a window looks at" "3 l 4 i 5 a 6 h" "$(echo $(awk '/looks at/ { on = 1 }
    on && NF > 3 && $1 ~ /^[0-9]+$/ { print $1, $2 }' "$T/session"))"
changed descent 's/p\[i\] -= lr \* m_hat .*/p[i] -= lr * g[i] + 0 * m_hat * v_hat * eps;/'
printf '%s\n' begin 'tbreak adam' continue 'digits 17' finish 'moves layer0.attn_wo 3 5' | ask_in descent
has "moves says that adam() is not Adam" "adam() is not Adam" "$T/session"
same "and shows none of its terms" 0 "$(grep -c '^  m_hat\|^  m = ' "$T/session")"
near "but what was, and what came of it" "$(figure param_before) $(figure grad) $(awk -v p="$(figure param_before)" -v g="$(figure grad)" \
    'BEGIN { printf "%.17g", p - 0.01 * g }')" "$(awk '/^  value before/ { b = $3 } /^  gradient/ { g = $2 } /^  value after/ { print b, g, $3 }' "$T/session")"

# --- Editors and terminals.

{
    sed -n 's/.*{ "text": "\(.*\)" }.*/\1/p' .vscode/launch.json | sed "s|\${workspaceFolder}|$ROOT|" |
        sed 's/.*/-interpreter-exec console "&"/'
    printf '%s\n' "-environment-cd $ROOT" "-file-exec-and-symbols $ROOT/microgpt-debug" -exec-run
    sleep 3
    printf '%s\n' '-interpreter-exec console "doc"' -gdb-exit
} | (cd / && gdb -nx -q --interpreter=mi) >"$T/session" 2>&1
has "F5 with gdb: stops in document_loss" 'func="document_loss"' "$T/session"
has "F5 with gdb: -exec doc answers" "The document: myliah" "$T/session"
printf 'break document_loss\nrun\nsource .build/debug/commands.gdb\ndoc\nquit\n' | gdb -nx -q ./microgpt-debug >"$T/session" 2>&1
has "a breakpoint, then source .build/debug/commands.gdb, as in CLion and Vim" "The document: myliah" "$T/session"
printf 'doc\n-gdb-exit\n' | gdb -nx -i=mi -x .build/debug/commands.gdb -ex begin ./microgpt-debug >"$T/session" 2>&1
has "gdb -i=mi, as Emacs starts it" "The document: myliah" "$T/session"
if command -v script >/dev/null 2>&1 && script -qec true "$T/typed" </dev/null >/dev/null 2>&1; then
    printf '%s\n' 'tbreak after_step if step == 100' continue kill quit |
        TERM=xterm script -qec 'make -s debug' "$T/typed" >/dev/null 2>&1
    has "make debug comes to step 100" "=100," "$T/typed"
    same "and draws no progress among the debugger's lines" 0 "$(grep -c '%\|█\|steps/s' "$T/typed")"
else
    skip "no progress bar in the debugger" "no script(1)"
fi
if [ "$have_lldb" ]; then
    {
        sed -n 's/.*"initCommands": \["\(.*\)"\].*/\1/p' .vscode/launch.json | sed "s|\${workspaceFolder}|$ROOT|"
        echo "target create $ROOT/microgpt-debug"
        sed -n 's/.*"preRunCommands": \["\(.*\)"\].*/\1/p' .vscode/launch.json
        printf '%s\n' "process launch" doc
    } | ask_lldb
    has "F5 with lldb: doc answers" "The document: myliah" "$T/session"
fi
finish
