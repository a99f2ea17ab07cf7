# What one reads is what runs: a definition is edited in a copy, one at a time. The default build and --scalar, where nothing
# but microgpt.c and autograd.c computes, then have the same losses, or a note names the function. Without ALL=1 a sample.
# takes long
. tests/lib.sh
C=$T/copy
mkdir -p "$C" "$T/objects"
cp -r microgpt.c autograd.c autograd.h support "$C"
flags="-O1 -march=native -ffp-contract=fast -fno-math-errno -DAUTOGRAD_LANES -DNDEBUG -pthread"
case $CC in *gcc* | *cc | *clang*) ;; *) flags='-O1 -DAUTOGRAD_LANES -DNDEBUG -pthread' ;; esac
# compile FILE: an object; the edited file is the only one that is compiled again.
# shellcheck disable=SC2086
compile() { $CC $flags -I"$C" -c -o "$T/objects/$(basename "$1" .c).o" "$C/$1" 2>"$T/cc.log"; }
for file in microgpt.c autograd.c support/[!d]*/*.c; do
    compile "$file" || not_ok "$file" "that it compiles" "$(head -n 2 "$T/cc.log")"
done

# losses FILE OPTION...: of 30 steps, as the log has them.
losses()
{
    rm -f "$1"
    "$T/edited" --data data/names.txt -q --samples 0 --steps 30 --log "$@" >/dev/null 2>"$T/notes"
}

# edit NAME FILE NOTE SCRIPT [OPTION...]: NOTE: a part of the note that is expected; "" means that nothing is noted.
edit()
{
    name=$1 file=$2 expected=$3
    perl -0pe "$4" "$file" >"$C/$file"
    shift 4
    if cmp -s "$file" "$C/$file"; then
        not_ok "$name" "an edit" "the same file"
        return
    fi
    # shellcheck disable=SC2086
    compile "$file" && $CC $flags -o "$T/edited" "$T"/objects/*.o -lm || not_ok "$name" "that it compiles" "$(head -n 2 "$T/cc.log")"
    losses "$T/scalar" --scalar "$@"
    losses "$T/default" "$@"
    far=$(paste -d , "$T/default" "$T/scalar" |
        awk -F , 'NR > 1 { d = $2 - $5; if (d < 0) d = -d; if (!(d <= far)) far = d; n++ } END { print n, far <= 1e-9 ? "near" : far }')
    same "$name: steps, and how far its losses are from those of --scalar" "30 near" "$far"
    case $expected in
    '') same "$name: no note" "" "$(cat "$T/notes")" ;;
    *) check "$name: a note says $expected" grep -qF -e "$expected" "$T/notes" ;;
    esac
    cp "$file" "$C/$file"
    case $file in support/*) compile "$file" ;; esac
    [ "$file" = microgpt.c ] || compile autograd.c
    compile microgpt.c
}

if ! command -v perl >/dev/null 2>&1; then
    skip "edits" "there is no perl"
    finish
fi
edit softmax microgpt.c 'softmax() in microgpt.c and softmax_forward() in autograd.c differ; running the atoms' \
    's/return ag_mul_scalar\(tape, exps, ag_pow\(tape, total, -1, 1\), n\);/return ag_mul_const(tape, ag_mul_scalar(tape, exps, ag_pow(tape, total, -1, 1), n), 0.9, n);/'
# The page carries the losses that the program computes, so they are the definition's, too.
"$T/edited" --data data/names.txt -q --samples 0 --steps 1 --save "$T/model" >/dev/null 2>&1
"$T/edited" page "$T/model" >/dev/null 2>"$T/notes"
check "softmax: a note when a page is made" grep -qF 'softmax() in microgpt.c' "$T/notes"
edit linear_backward autograd.c 'linear() in microgpt.c and linear_backward() in autograd.c differ; running the atoms' \
    's/add_scaled\(gx, g\[i\], row/add_scaled(gx, 2 * g[i], row/'
edit 'weight decay' microgpt.c 'adam() in microgpt.c and move_parameters() in support/engine/adam.c differ; running adam()' \
    's/p\[i\] -= lr \* m_hat/p[i] -= lr * 0.01 * p[i] + lr * m_hat/'
if [ -z "$ALL" ]; then
    finish
fi
edit 'the factor of the mean' microgpt.c '' 's/1 \/ \(double\)run->config->batch, 1\)/0.5 \/ (double)run->config->batch, 1)/' --batch 8
edit 'a recurrence' microgpt.c '' \
    's/(    x = rmsnorm\(tape, x, n_embd\);)( +\/\/ emb_norm)/$1\n    static double *last;\n    x = ag_add(tape, x, ag_mul_const(tape, pos_id > 0 ? last : x, 0.5, n_embd), n_embd);\n    last = x;$2/'
edit rmsnorm microgpt.c 'rmsnorm() in microgpt.c' 's/1 \/ \(double\)n, 1\)/1.5 \/ (double)n, 1)/'
edit linear microgpt.c 'linear() in microgpt.c' 's/w->data \+ i \* w->cols, x, w->cols\);/w->data + i * w->cols, x, w->cols - 1);/'
edit 'the mean, batch 7' microgpt.c '' 's/1 \/ \(double\)run->config->batch, 1\)/0.5 \/ (double)run->config->batch, 1)/' --batch 7
edit SGD microgpt.c 'adam() in microgpt.c' 's/p\[i\] -= lr \* m_hat \/ \(sqrt\(v_hat\) \+ eps\)/p[i] -= lr * g[i]/'
edit clipping microgpt.c 'adam() in microgpt.c' 's/        m\[i\] = beta1/        if (g[i] > 0.1) g[i] = 0.1;\n        m[i] = beta1/'
edit eps microgpt.c 'adam() in microgpt.c' 's/eps = 1e-8/eps = 1e-4/'
edit 'a window' microgpt.c '' 's/size_t seen = pos_id \+ 1;/size_t seen = pos_id + 1 < 4 ? pos_id + 1 : 4;/'
edit 'no residual' microgpt.c '' 's/x = ag_add\(tape, x, x_residual, n_embd\);   \/\/ x_mid/\/\/ x_mid/'
edit 'half the rate' microgpt.c '' 's/return config->lr \* \(1 - done\)/return config->lr * 0.5 * (1 - done)/'
for way in forward backward; do
    edit "softmax_$way" autograd.c "softmax() in microgpt.c and softmax_$way() in autograd.c differ" \
        's/out\[i\] = exp\(e->a\[i\] - max\);/out[i] = exp(0.9 * (e->a[i] - max));/ if "'$way'" eq "forward";
         s/ga\[i\] \+= e->out\[i\] \* \(g\[i\] - mean\);/ga[i] += e->out[i] * g[i];/ if "'$way'" eq "backward"'
done
edit linear_forward autograd.c 'linear_forward() in autograd.c differ' 's/e->out\[i\] = dot\(e->a, e->b \+ i \* e->stride, e->length\);/e->out[i] = 1.1 * dot(e->a, e->b + i * e->stride, e->length);/'
edit row_dots_forward autograd.c 'row_dots_forward() in autograd.c differ' 's/e->length\) \* e->c;/e->length) * e->c * 1.01;/'
edit row_dots_backward autograd.c 'row_dots_backward() in autograd.c' 's/add_scaled\(grad\(t, key\), g\[i\] \* e->c/add_scaled(grad(t, key), g[i]/'
edit weighted_sum_forward autograd.c 'weighted_sum_forward() in autograd.c' 's/add_scaled\(e->out, e->a\[i\]/add_scaled(e->out, 0.9 * e->a[i]/'
edit weighted_sum_backward autograd.c 'weighted_sum_backward() in autograd.c' 's/ga\[i\] \+= dot\(g, row, e->length\);/ga[i] += 0.5 * dot(g, row, e->length);/'
edit rmsnorm_backward autograd.c 'rmsnorm_backward() in autograd.c' 's/scale \* \(g\[i\] - mean \* e->out\[i\]\)/scale * g[i]/'
edit mul_backward autograd.c 'mul_backward() in autograd.c is not the derivative' 's/ga\[i\] \+= e->b\[i\] \* g\[i\];/ga[i] += 2 * e->b[i] * g[i];/'
edit add_backward autograd.c 'add_backward() in autograd.c is not the derivative' 's/        gb\[i\] \+= g\[i\];/        gb[i] += 0.5 * g[i];/'
edit relu_backward autograd.c 'relu_backward() in autograd.c is not the derivative' 's/ga\[i\] \+= e->a\[i\] > 0 \? g\[i\] : 0;/ga[i] += g[i];/'
edit exp_forward autograd.c 'exp_backward() in autograd.c is not the derivative' 's/e->out\[i\] = exp\(e->a\[i\]\);/e->out[i] = exp(1.1 * e->a[i]);/'
edit log_backward autograd.c 'log_backward() in autograd.c is not the derivative' 's/1 \/ e->a\[i\] \* g\[i\]/0.9 \/ e->a[i] * g[i]/'
edit 'the fast softmax' support/engine/softmax.c 'in support/engine/softmax.c differ; running softmax_forward()' 's/share = 1 \/ total;/share = 1.001 \/ total;/'
edit 'the fast Adam' support/engine/adam.c 'move_parameters() in support/engine/adam.c differ' 's/without_traces\(vj \+ weight2/without_traces(vj + 1.01 * weight2/'
edit 'the parts of a batch' support/run/batch.c 'fast_batch() in support/run/batch.c differ' 's/g\[k\] \+= more\[k\];/g[k] += 1.01 * more[k];/' --batch 8

# `check` prints a row for each comparison, and ends with 1 if one differs.
cp autograd.c "$C/autograd.c"
perl -0pe 's/ga\[i\] \+= e->out\[i\] \* \(g\[i\] - mean\);/ga[i] += e->out[i] * g[i];/' autograd.c >"$C/autograd.c"
# shellcheck disable=SC2086
compile autograd.c && $CC $flags -o "$T/edited" "$T"/objects/*.o -lm
"$T/edited" check >"$T/out" 2>"$T/stderr"
same "check of a wrong derivative: its status" 1 $?
check "its rows name the function" grep -q '^softmax_backward and differences.* differs$' "$T/out"
finish
