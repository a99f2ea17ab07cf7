# The model is there to be changed: operations and matrices that are added to gpt() and to the loss in a copy of microgpt.c
# train, sample, save and load without a word anywhere else, because memory is counted and not predicted.
# shellcheck disable=SC2086
# this file only with ALL=1
. tests/lib.sh
S=$T/source
mkdir -p "$S"
cp autograd.c autograd.h "$S"
ln -s "$ROOT/data" "$S/data"

# changed NAME SCRIPT: a program from microgpt.c after this script for sed, of which every line has an effect.
changed()
{
    cp microgpt.c "$S/$1.c"
    printf '%s\n' "$2" | while read -r line; do
        sed "$line" "$S/$1.c" >"$S/next.c"
        ! cmp -s "$S/$1.c" "$S/next.c" || echo "$line"
        mv "$S/next.c" "$S/$1.c"
    done >"$T/idle"
    same "$1: changes without effect" "" "$(cat "$T/idle")"
    check "$1: compiles without a warning" $CC $WARN -Werror $CFLAGS -O1 $LDFLAGS -o "$S/$1" "$S/$1.c" "$ENGINE" -lm
}

# works NAME: models of several sizes train and sample, and one that was saved goes on as if nothing had happened.
works()
{
    P="$MICROGPT_WRAPPER $S/$1"
    for sizes in '' '--n-layer 3 --n-embd 48 --n-head 3' '--n-layer 2 --n-embd 5 --n-head 5 --block-size 3 --batch 7' \
        '--n-embd 64 --block-size 40 --batch 3' '--recipe lesson --n-layer 4 --n-embd 6 --n-head 1 --block-size 1'; do
        $P -q --steps 4 --samples 5 --temperature 2 $sizes >"$T/stdout" 2>"$T/stderr"
        same "$1 ${sizes:---n-layer 1}: its status, errors and samples" "0:5:" \
            "$?:$(grep -c '^sample' "$T/stdout"):$(cat "$T/stderr")"
    done
    $P -q --n-layer 2 --n-embd 24 --batch 2 --steps 40 --log "$T/whole.csv" --save "$T/whole" >"$T/whole.out" 2>"$T/stderr"
    same "it learns: the last losses are lower than the first" 1 "$(awk -F, 'NR > 1 && NR <= 11 { first += $2 }
        NR > 31 { last += $2 } END { print last < first }' "$T/whole.csv")"
    $P sample "$T/whole" >"$T/names" 2>&1
    sed -n 's/^sample ..: //p' "$T/whole.out" >"$T/want"
    same_file "a saved model gives the same names" "$T/want" "$T/names"
    $P -q --resume "$T/whole" --steps 45 --samples 0 >"$T/stdout" 2>&1
    same "a saved model is trained on" 0 $?
    $P eval "$T/whole" --docs 20 >"$T/stdout" 2>&1
    same "a saved model is judged" "docs 20" "$(head -n 1 "$T/stdout")"
}

microgpt -q --steps 12 >"$T/unchanged.out"
other() # NAME: its names are not those of the unchanged program.
{
    "$S/$1" -q --steps 12 >"$T/stdout"
    same "$1: its names" other "$(cmp -s "$T/unchanged.out" "$T/stdout" && echo "as before" || echo other)"
}

# One line of gpt() and one of lay_out_parameters(), without the comments that follow them.
fc2='\( *x = linear(tape, x, layer->mlp_fc2);\).*'
squeeze='x = ag_mul(tape, x, ag_exp(tape, ag_mul_const(tape, x, -0.01, n_embd), n_embd), n_embd);'

changed more_operations "s|^$fc2|\1 for (int i = 0; i < 5; i++) { $squeeze }|
s|^\( *return linear(tape, x, model->lm_head);\).*|x = rmsnorm(tape, x, n_embd); \1|"
other more_operations
works more_operations

changed more_products "s|^$fc2|\1 x = linear(tape, x, layer->attn_wo); x = linear(tape, linear(tape, x, layer->mlp_fc1), layer->mlp_fc2);|"
other more_products
works more_products

changed more_matrices "s|^\( *Matrix \*mlp_fc2;\).*|\1 Matrix *mlp_fc3;|
s|^ *layer->mlp_fc2 = matrix.*|& layer->mlp_fc3 = matrix(model, pre, \"mlp_fc3\", n_embd, n_embd);|
s|^$fc2|\1 x = linear(tape, ag_relu(tape, x, n_embd), layer->mlp_fc3);|"
other more_matrices
works more_matrices
same "a new matrix is in the file" 1 \
    "$(head -c 4000 "$T/whole" | grep -ac '"layer1.mlp_fc3":{"dtype":"F64","shape":\[24,24\]')"

surprise='double *all = ag_exp(tape, ag_log(tape, probs, model->vocab_size), model->vocab_size);'
surprise="$surprise loss_t = ag_mul(tape, loss_t, ag_sum(tape, ag_pow(tape, all, 2, model->vocab_size), model->vocab_size), 1);"
changed another_loss "s|^\( *double \*loss_t = .*;\)|\1 $surprise|"
other another_loss
works another_loss

# Atom by atom, as in the build for the debugger: far more lines, and as many as were counted.
changed more_atoms "s|^enum { FUSED_TAPE = true };|enum { FUSED_TAPE = false };|
s|^$fc2|\1 $squeeze x = linear(tape, ag_relu(tape, x, n_embd), layer->attn_wo);|"
other more_atoms
works more_atoms

# An option of the run that is a flag, here one that says a word at every step: the model file remembers
# whether it was given, and a file of the unchanged program can still be resumed.
changed a_flag 's|^    double temperature;$|& bool talk;|
s|^    {"holdout", "N".*|    {"talk", NULL, 0, TRAIN, FLAG, OF_RUN_OPTIONAL, CONFIG(talk), "a word at every step"},\n&|
s|^    return \*loss;|    if (config->talk) say("talking\\n");\n&|'
microgpt -q --steps 2 --samples 0 --save "$T/old" >"$T/stdout"
for flag in '' --talk; do
    "$S/a_flag" -q --steps 2 --samples 0 --save "$T/model" $flag >"$T/stdout" 2>&1
    "$S/a_flag" -q --steps 5 --samples 0 --resume "$T/model" >"$T/stdout" 2>&1
    same "a run with ${flag:-no flag}, resumed: exit status and words" "0 ${flag:+3}" \
        "$? $(grep -c talking "$T/stdout" | grep -v '^0')"
done
"$S/a_flag" -q --steps 5 --samples 0 --resume "$T/old" >"$T/stdout" 2>&1
same "a run of the unchanged program, resumed: exit status and words" "0 0" "$? $(grep -c talking "$T/stdout")"
finish
