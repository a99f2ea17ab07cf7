# The model is there to be changed: operations and matrices that are added to gpt() and to the loss, in a copy, train, sample,
# save and load without a word anywhere else, because the tape grows as it needs to.
# shellcheck disable=SC2086
# this file only with ALL=1
. tests/lib.sh
S=$T/source
mkdir -p "$S"
cp -R Makefile microgpt.c autograd.c autograd.h support "$S"
ln -s "$ROOT/data" "$S/data"

# The sources as they were; make builds again only what had changed.
restore()
{
    for file in microgpt.c autograd.c autograd.h support/[!d]*/*.[ch]; do
        cmp -s "$file" "$S/$file" || cp "$file" "$S/$file"
    done
}

# changed NAME [FILE SCRIPT]...: a program of its own, after these scripts for sed. Every line of a script has an effect.
changed()
{
    name=$1
    shift
    restore
    while [ $# -gt 1 ]; do
        printf '%s\n' "$2" | while read -r line; do
            sed "$line" "$S/$1" >"$S/next"
            ! cmp -s "$S/$1" "$S/next" || echo "$1: $line"
            cat "$S/next" >"$S/$1"
        done
        shift 2
    done >"$T/idle"
    same "$name: changes without effect" "" "$(cat "$T/idle")"
    check "$name: builds without a warning" make -s -C "$S" CC="$CC" CFLAGS="$CFLAGS -O1 -Werror" LDFLAGS="$LDFLAGS"
    cp "$S/microgpt" "$S/$name"
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
    rm -f "$T/whole" "$T/whole.csv"
    $P -q --n-layer 2 --n-embd 24 --batch 2 --steps 40 --log "$T/whole.csv" --save "$T/whole" >"$T/whole.out" 2>"$T/stderr"
    same "$1: it learns: the last losses are lower than the first" 1 "$(awk -F, 'NR > 1 && NR <= 11 { first += $2 }
        NR > 31 { last += $2 } END { print last < first }' "$T/whole.csv")"
    $P sample "$T/whole" >"$T/names" 2>&1
    sed -n 's/^sample ..: //p' "$T/whole.out" >"$T/want"
    same_file "$1: a saved model gives the same names" "$T/want" "$T/names"
    $P -q --resume "$T/whole" --steps 45 --samples 0 >"$T/stdout" 2>&1
    same "$1: a saved model is trained on" 0 $?
    $P eval "$T/whole" --docs 20 >"$T/stdout" 2>&1
    same "$1: a saved model is judged" "docs 20" "$(head -n 1 "$T/stdout")"
}

microgpt -q --steps 12 >"$T/unchanged.out"
other() # NAME: its names are not those of the unchanged program.
{
    "$S/$1" -q --steps 12 >"$T/stdout"
    same "$1: its names" other "$(cmp -s "$T/unchanged.out" "$T/stdout" && echo "as before" || echo other)"
}

# One line of gpt(), without the comment that follows it.
fc2='\( *x = linear(tape, x, layer->mlp_fc2);\).*'
squeeze='x = ag_mul(tape, x, ag_exp(tape, ag_mul_const(tape, x, -0.01, n_embd), n_embd), n_embd);'

changed more_operations microgpt.c "s|^$fc2|\1 for (int i = 0; i < 5; i++) { $squeeze }|
s|^\( *return linear(tape, x, model->lm_head);\).*|x = rmsnorm(tape, x, n_embd); \1|"
other more_operations
works more_operations

changed more_products microgpt.c \
    "s|^$fc2|\1 x = linear(tape, x, layer->attn_wo); x = linear(tape, linear(tape, x, layer->mlp_fc1), layer->mlp_fc2);|"
other more_products
works more_products

changed more_matrices support/run/model.h 's|^ *Matrix \*mlp_fc2;|& Matrix *mlp_fc3;|' \
    microgpt.c "s|^ *layer->mlp_fc2 = add_matrix.*|& layer->mlp_fc3 = add_matrix(model, pre, \"mlp_fc3\", n_embd, n_embd);|
s|^$fc2|\1 x = linear(tape, ag_relu(tape, x, n_embd), layer->mlp_fc3);|"
other more_matrices
works more_matrices
same "a new matrix is in the file" 1 \
    "$(head -c 4000 "$T/whole" | grep -ac '"layer1.mlp_fc3":{"dtype":"F64","shape":\[24,24\]')"

changed a_matrix_of_the_model support/run/model.h 's|^ *Matrix \*lm_head;|& Matrix *mixer;|' \
    microgpt.c 's|^ *model->lm_head = add_matrix.*|& model->mixer = add_matrix(model, "", "mixer", n_embd, n_embd);|
s|^\( *return linear(tape, x, model->lm_head);\).*|x = linear(tape, x, model->mixer); \1|'
other a_matrix_of_the_model
works a_matrix_of_the_model

surprise='double *all = ag_exp(tape, ag_log(tape, probs, model->vocab_size), model->vocab_size);'
surprise="$surprise loss_t = ag_mul(tape, loss_t, ag_sum(tape, ag_pow(tape, all, 2, model->vocab_size), model->vocab_size), 1);"
changed another_loss microgpt.c "s|^\( *double \*loss_t = .*;\)|\1 $surprise|"
other another_loss
works another_loss

# Atom by atom, as with --scalar: far more entries than there was room for at first.
changed more_atoms support/run/options.c 's|\.scalar = !have_faster|.scalar = true|' \
    microgpt.c "s|^$fc2|\1 $squeeze x = linear(tape, ag_relu(tape, x, n_embd), layer->attn_wo);|"
other more_atoms
works more_atoms

# An option of the run that is a flag, here one that says a word at every step: the model file remembers whether it was given,
# and a file of the unchanged program can still be resumed.
changed a_flag support/run/options.h 's|^    double temperature;|    bool talk; &|' \
    support/run/options.c 's|^    {"holdout", "N".*|    {"talk", NULL, 0, TRAIN, FLAG, OF_RUN \| OPTIONAL, CONFIG(talk), "a word per step"}, &|' \
    microgpt.c 's|^        backward(&model->tape, loss);|        { if (config->talk) say("talking\\n"); } &|'
rm -f "$T/old" "$T/model"
microgpt -q --steps 2 --samples 0 --save "$T/old" >"$T/stdout"
for flag in '' --talk; do
    rm -f "$T/model"
    "$S/a_flag" -q --steps 2 --samples 0 --save "$T/model" $flag >"$T/stdout" 2>&1
    "$S/a_flag" -q --steps 5 --samples 0 --resume "$T/model" >"$T/stdout" 2>&1
    same "a run with ${flag:-no flag}, resumed: exit status and words" "0 ${flag:+3}" \
        "$? $(grep -c talking "$T/stdout" | grep -v '^0')"
done
"$S/a_flag" -q --steps 5 --samples 0 --resume "$T/old" >"$T/stdout" 2>&1
same "a run of the unchanged program, resumed: exit status and words" "0 0" "$? $(grep -c talking "$T/stdout")"
finish
