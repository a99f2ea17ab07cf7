# The program is there to be changed. Single changes of gpt(), of the loss and of the heads work in a copy without a word
# anywhere else. Then "How to change it" in CONTRIBUTING, followed to the letter: an operation of the engine, an activation
# that uses it, an option, a command, and a file in support/. The copy builds without a warning and passes `make test`.
# shellcheck disable=SC2086
# this file only with ALL=1
# takes long
. tests/lib.sh

# The copy is a clone of its own, outside of this one.
work=$(mktemp -d) || exit 1
trap 'rm -rf "$work"' EXIT
S=$work/microgpt
mkdir "$S"
if files=$(git ls-files 2>/dev/null) && [ -n "$files" ]; then
    (git ls-files; git ls-files --others --exclude-standard) | while IFS= read -r file; do [ ! -e "$file" ] || echo "$file"; done
else
    find . -type f ! -path './.build/*' ! -path './tests/build/*' ! -path './.git/*'
fi >"$T/files"
tar cf - -T "$T/files" 2>"$T/tar.log" | (cd "$S" && tar xf -)
git_here() { (cd "$S" && git -c user.name=n -c user.email=e "$@") >"$T/git.log" 2>&1; }
git_here init -q && git_here add -A && git_here commit -q -m copy

build() { make -s -C "$S" CC="$CC" CFLAGS="$CFLAGS -Werror" LDFLAGS="$LDFLAGS"; }

# replace FILE SCRIPT: every line of the script for sed has an effect.
replace()
{
    printf '%s\n' "$2" | while IFS= read -r line; do
        sed "$line" "$S/$1" >"$T/next"
        ! cmp -s "$T/next" "$S/$1" || echo "$line"
        cat "$T/next" >"$S/$1"
    done >"$T/idle"
    same "$1 has a place for $(printf '%s' "$2" | head -n 1 | cut -c 1-60)" "" "$(cat "$T/idle")"
}

# changed NAME [FILE SCRIPT]...: a program of its own, after these scripts.
changed()
{
    name=$1
    shift
    (cd "$S" && git checkout -q .)
    while [ $# -gt 1 ]; do
        replace "$1" "$2"
        shift 2
    done
    check "$name: builds without a warning" build
    cp "$S/microgpt" "$S/$name"
}

# works NAME [OPTION]: models of several sizes train and sample, otherwise than without the change, and one that was saved
# goes on as if nothing had happened.
works()
{
    P="$MICROGPT_WRAPPER $S/$1"
    name="$*"
    for sizes in '' '--n-layer 2 --n-embd 5 --n-head 5 --block-size 3 --batch 7' '--n-embd 64 --block-size 40 --batch 3'; do
        microgpt --steps 4 --samples 5 --temperature 2 $sizes >"$T/unchanged" 2>&1
        $P --steps 4 --samples 5 --temperature 2 $sizes $2 >"$T/stdout" 2>"$T/stderr"
        same "$name ${sizes:---n-layer 1}: its status, errors and samples; the output is another" "0:5::1" \
            "$?:$(grep -c '^sample' "$T/stdout"):$(grep -v ': note: ' "$T/stderr"):$(cmp -s "$T/unchanged" "$T/stdout"; echo $?)"
    done
    rm -f "$T/whole" "$T/whole.csv"
    $P -q --n-layer 2 --n-embd 24 --batch 2 --steps 40 --log "$T/whole.csv" --save "$T/whole" $2 >"$T/whole.out" 2>"$T/stderr"
    same "$name: it learns: the last losses are lower than the first" 1 "$(awk -F, 'NR > 1 && NR <= 11 { first += $2 }
        NR > 31 { last += $2 } END { print last < first }' "$T/whole.csv")"
    $P sample "$T/whole" $2 >"$T/names" 2>&1
    sed -n 's/^sample ..: //p' "$T/whole.out" >"$T/want"
    same_file "$name: a saved model gives the same names" "$T/want" "$T/names"
    check "$name: a saved model is trained on" $P -q --resume "$T/whole" --steps 45 --samples 0 $2
    same "$name: a saved model is judged" "docs 20" "$($P eval "$T/whole" --docs 20 $2 2>&1 | head -n 1)"
}

# --- Operations and matrices in gpt(), another loss. With --scalar, far more entries than there was room for at first.
fc2='\( *x = linear(tape, x, layer->mlp_fc2);\).*'         # one line of gpt(), without the comment that follows it
squeeze='x = ag_mul(tape, x, ag_exp(tape, ag_mul_const(tape, x, -0.01, n_embd), n_embd), n_embd);'
changed more_operations microgpt.c "s|^$fc2|\1 for (int i = 0; i < 5; i++) { $squeeze } x = linear(tape, x, layer->attn_wo);|
s|^\( *return linear(tape, x, model->lm_head);\).*|x = rmsnorm(tape, x, n_embd); \1|"
works more_operations
works more_operations --scalar

changed more_matrices support/run/model.h 's|^ *Matrix \*mlp_fc2;|& Matrix *mlp_fc3;|
s|^ *Matrix \*lm_head;|& Matrix *mixer;|' \
    microgpt.c "s|^ *layer->mlp_fc2 = add_matrix.*|& layer->mlp_fc3 = add_matrix(model, pre, \"mlp_fc3\", n_embd, n_embd);|
s|^$fc2|\1 x = linear(tape, ag_relu(tape, x, n_embd), layer->mlp_fc3);|
s|^ *model->lm_head = add_matrix.*|& model->mixer = add_matrix(model, \"\", \"mixer\", n_embd, n_embd);|
s|^\( *return linear(tape, x, model->lm_head);\).*|x = linear(tape, x, model->mixer); \1|"
works more_matrices
same "new matrices are in the file" "1 1" "$(head -c 4000 "$T/whole" | grep -ac '"layer1.mlp_fc3":{"dtype":"F64","shape":\[24,24\]') $(
    head -c 4000 "$T/whole" | grep -ac '"mixer":{"dtype":"F64","shape":\[24,24\]')"

surprise='double *all = ag_exp(tape, ag_log(tape, probs, model->vocab_size), model->vocab_size);'
surprise="$surprise loss_t = ag_mul(tape, loss_t, ag_sum(tape, ag_pow(tape, all, 2, model->vocab_size), model->vocab_size), 1);"
changed another_loss microgpt.c "s|^\( *double \*loss_t = .*;\)|\1 $surprise|"
works another_loss

# --- Other heads: `microgpt heads` finds them by what they read and write, or says that it cannot.
other_heads() # NAME SCRIPT
{
    changed "$1" microgpt.c "$2"
    "$S/$1" -q --samples 0 --steps 100 --save "$T/$1" >"$T/stdout"
}
from='(pos_id > 3 ? pos_id - 3 : 0)'
other_heads sliding "s/seen = pos_id + 1;/seen = pos_id < 3 ? pos_id + 1 : 4;/
s/keys\[li\] + hs;/keys[li] + $from * n_embd + hs;/
s/values\[li\] + hs;/values[li] + $from * n_embd + hs;/"
"$S/sliding" heads "$T/sliding" alexandra --tsv >"$T/seen"
same "a window of four: what is outside of it, and the sums" "0 40" "$(awk -F '\t' '
    NR > 1 { sum[$2, $3] += $5; outside += $4 + 3 < $3 && $5 != 0 }
    END { for (row in sum) n += sum[row] > 0.999999 && sum[row] < 1.000001; print outside + 0, n }' "$T/seen")"
check "and its votes add up to the logits" "$S/sliding" heads "$T/sliding" alexandra --votes --tsv
other_heads reversed 's/size_t hs = h \* head_dim; /size_t hs = (n_head - 1 - h) * head_dim; /'
for program in "$S/reversed" ./microgpt; do
    $program heads "$T/reversed" maria --tsv | awk 'NR > 1 { $5 = sprintf("%.10f", $5) } 1' >"$T/seen.${program##*/}"
done
same_file "heads made in another order are labeled by their places" "$T/seen.microgpt" "$T/seen.reversed"
other_heads scaled 's/values\[li\] + hs;/ag_mul_const(tape, values[li], 1, seen * n_embd) + hs;/'
fails 1 '*: gpt() has no head in some place: *' "$S/scaled" heads "$T/scaled" maria
other_heads halved 's/x = linear(tape, x, layer->mlp_fc2);/x = ag_mul_const(tape, linear(tape, x, layer->mlp_fc2), 0.5, n_embd);/'
fails 1 '*: the votes do not add up to the logits: *' "$S/halved" heads "$T/halved" maria --votes
other_heads tied 's/linear(tape, x, model->lm_head)/linear(tape, x, model->wte)/'
fails 1 '*: the votes do not add up to the logits: *' "$S/tied" heads "$T/tied" maria --votes --tsv
(cd "$S" && git checkout -q . && git clean -fdqx)

# --- To the letter. after FILE TEXT, before FILE TEXT: standard input becomes lines after, or before, the first line of FILE
# that has TEXT.
insert()
{
    cat >"$T/insert"
    if awk -v way="$1" -v text="$3" -v insert="$T/insert" '
        function put() { while ((getline line <insert) > 0) print line; done = 1 }
        !done && way == "before" && index($0, text) { put() }
        { print }
        !done && way == "after" && index($0, text) { put() }
        END { exit !done }' "$S/$2" >"$T/next"; then
        cat "$T/next" >"$S/$2"
        ok "$2 has a place: $1 $3"
    else
        not_ok "$2 has a place: $1 $3" "a line with it" "none"
    fi
}
after() { insert after "$@"; }
before() { insert before "$@"; }

# --- An operation of the engine: tanh.
after autograd.h 'OP_RELU,' <<'END'
    OP_TANH,
END
after autograd.h '*ag_relu(' <<'END'
double *ag_tanh(Tape *t, double *a, size_t n);            // tanh a[i]
END
before autograd.c '// a + c. Local derivative' <<'END'
// tanh a. Local derivative: 1 - out^2.
double *ag_tanh(Tape *t, double *a, size_t n)
{
    return atoms(t, OP_TANH, NULL, a, NULL, 0, n);
}
static void tanh_forward(Entry *e)
{
    for (size_t i = 0; i < e->n; i++)
        e->out[i] = tanh(e->a[i]);
}
static void tanh_backward(const Tape *t, const Entry *e)
{
    double *g = grad(t, e->out), *ga = grad(t, e->a);
    for (size_t i = 0; i < e->n; i++)
        ga[i] += (1 - e->out[i] * e->out[i]) * g[i];
}

END
before autograd.c '[OP_ADD_CONST] = {"add const"' <<'END'
    [OP_TANH] = {"tanh", N_VALUES, N_VALUES, NO_VALUES, tanh_forward, tanh_backward},
END

# --- An activation that uses it.
replace support/run/options.h 's/enum { RELU, RELU2 };/enum { RELU, RELU2, TANH };/'
replace support/run/options.c 's/"relu|relu2"/"relu|relu2|tanh"/'
after microgpt.c 'x = ag_relu(tape, x,' <<'END'
        }
END
before microgpt.c 'x = ag_relu(tape, x,' <<'END'
        if (model->activation == TANH) {
            x = ag_tanh(tape, x, layer->mlp_fc1->rows);  // act: between -1 and 1
        } else {
END

# --- An option: the learning rate rises over the first steps.
after support/run/options.h 'uint64_t holdout;' <<'END'
    uint64_t warmup;          // steps over which the learning rate rises
END
before support/run/options.c '{"beta1", "X"' <<'END'
    {"warmup", "N", 0, TRAIN, COUNT, OF_RUN | OPTIONAL, CONFIG(warmup),
     "steps over which the learning rate rises"},
END
before microgpt.c 'if (config->schedule == COSINE)' <<'END'
    if (step < config->warmup) {
        return config->lr * (double)(step + 1) / (double)config->warmup;
    }
END

# --- A command, in a file of its own: how many parameters a model has.
cat >"$S/support/run/count.h" <<'END'
/* count.h: the command that counts the parameters of a model. */
#ifndef COUNT_H
#define COUNT_H

#include "model.h"

void say_count(const Model *model);

#endif
END
cat >"$S/support/run/count.c" <<'END'
/* count.c: how many parameters a model has. */
#include "count.h"

#include <inttypes.h>

void say_count(const Model *model) { say("parameters %" PRIu64 "\n", model->num_params); }
END
replace support/run/options.h 's/CHECK = 32 };/CHECK = 32, PARAMS = 64 };/'
after support/run/command_line.c '{"page", "MODEL' <<'END'
    {"params", "MODEL [OPTION]...", "how many parameters a model has", PARAMS, 1, 1},
END
after support/run/commands.c '#include "command_line.h"' <<'END'
#include "count.h"
END
replace support/run/commands.c 's/\[PAGE\] = run_page,/[PAGE] = run_page, [PARAMS] = run_params,/'
before support/run/commands.c 'bool read_command_line(' <<'END'
static bool run_params(Job *job)
{
    if (!load_model(job, job->o.arguments[0])) return false;
    say_count(&job->run.model);
    return true;
}

END
if command -v clang-format >/dev/null 2>&1; then
    (cd "$S" && clang-format -i ./*.[ch] support/*/*.[ch])
fi

# --- It builds, both ways, and the new things work.
check "the copy builds without a warning" build
check "and so does its build for the debugger" make -s -C "$S" microgpt-debug CC="$CC -Werror" LDFLAGS="$LDFLAGS"
P=$S/microgpt
"$P" >"$T/stdout" 2>"$T/stderr"
same_file "without the new things, its output is what it was" tests/reference/microgpt-names2018.stdout "$T/stdout"
"$P" -q --activation tanh --warmup 50 --save "$S/m" --log "$S/log" >"$T/stdout" 2>"$T/stderr"
same "tanh and a warmup train: status and errors" "0 " "$? $(cat "$T/stderr")"
same "the learning rate rises, then falls" "0.0002 0.0100 lower" "$(awk -F, '$1 == 1 { a = $3 } $1 == 50 { b = $3 } $1 == 900 { c = $3 }
    END { print sprintf("%.4f %.4f", a, b), c < b ? "lower" : "higher" }' "$S/log")"
same "it learns" 1 "$(awk -F, 'NR > 1 && NR < 52 { a += $2 } NR > 951 { b += $2 } END { print b < a }' "$S/log")"
same "the model knows its activation, and its run the warmup" "1 1" \
    "$(head -c 3000 "$S/m" | grep -ac '"activation":"tanh"') $(head -c 3000 "$S/m" | grep -ac '"train.warmup":"50"')"
same "the new command" "parameters 4192" "$("$P" params "$S/m" 2>&1)"
same "help knows them" "1 1 1" "$("$P" --help | grep -c '^  microgpt params MODEL') $("$P" --help | grep -c -e '--warmup N') $(
    "$P" --help | grep -c 'relu|relu2|tanh')"
(cd "$S" && ./microgpt-debug -q --steps 3 --activation tanh) >"$T/debug" 2>&1
"$P" -q --steps 3 --activation tanh >"$T/stdout" 2>&1
same_file "the build for the debugger computes the same" "$T/stdout" "$T/debug"
make -s -C "$S" microgpt.1 CC="$CC" CFLAGS="$CFLAGS -Werror" LDFLAGS="$LDFLAGS" >"$T/make.log" 2>&1
same "the manual page knows them" "2 1 2" "$(grep -c '^.B microgpt params\|^.SH OPTIONS OF params' "$S/microgpt.1") $(
    grep -c '^.fB.-.-warmup.fR .fIN.fR' "$S/microgpt.1") $(grep -c '^.fB.-.-activation.fR .fIrelu|relu2|tanh.fR' "$S/microgpt.1")"

# --- All tests, as a user runs them.
rm -f "$S/m" "$S/log" "$S/microgpt.1"
git_here add -A && git_here commit -q -m changed
unset MICROGPT_WRAPPER VERBOSE BUILD TESTS
ALL='' make -s -C "$S" test CC="$CC" CFLAGS="$CFLAGS" LDFLAGS="$LDFLAGS" ${HOW_TO_CHANGE_TESTS:+TESTS="$HOW_TO_CHANGE_TESTS"} >"$T/test.log" 2>&1
status=$?
grep 'not ok - ' "$T/test.log" | head -n 20 | sed 's/^ *not ok - /in the copy: /'
same "make test in the copy: its exit status and last line" "0 0 failed" \
    "$status $(sed -n 's/^[0-9]* passed, \([0-9]* failed\).*/\1/p' "$T/test.log" | tail -n 1)"
finish
