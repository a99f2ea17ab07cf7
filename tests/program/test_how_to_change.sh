# "How to change it" in the README, followed to the letter on a copy of the project: an operation of the engine, an activation
# that uses it, an option, a command, and a file in support/. The copy builds without a warning and passes `make test`.
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

# after FILE TEXT, before FILE TEXT: standard input becomes lines after, or before, the first line of FILE that has TEXT.
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

# replace FILE SCRIPT: the script for sed has an effect.
replace()
{
    sed "$2" "$S/$1" >"$T/next"
    if cmp -s "$T/next" "$S/$1"; then
        not_ok "$1: $2" "a change" "none"
    else
        cat "$T/next" >"$S/$1"
        ok "$1 has a place: $2"
    fi
}

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
check "the copy builds without a warning" make -s -C "$S" CC="$CC" CFLAGS="$CFLAGS -Werror" LDFLAGS="$LDFLAGS"
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
