# Large models: losses and gradients within 1e-9 of those of plain C11, where every line of the tape is computed by the
# loops of autograd.c. (test_model.c holds these lines against single additions and multiplications.)
# The documents fill the block. With ALL=1, the largest models and both compilers; else a smaller one.
# takes long
# shellcheck disable=SC2016,SC2086
. tests/lib.sh

tr '\n' ' ' <data/names.txt | fold -w 140 | head -n 60 >"$T/docs"       # longer than any block here
plain='-O0'
[ -z "$ALL" ] || plain='-O2'
$CC -std=c11 $plain -DAUTOGRAD_LANES -DAUTOGRAD_PLAIN -pthread -o "$T/plain" $SOURCES -lm || exit 1
$CC $WARN -O1 -o "$T/gradients" tests/program/gradients.c -lm || exit 1

# losses_apart N: how far the losses in the two logs are apart; fails if they are too far, or not N.
losses_apart()
{
    paste -d , "$T/plain.csv" "$T/fast.csv" | awk -F , -v want="$1" '
        NR > 1 { d = $2 / $5 - 1; d = d < 0 ? -d : d; if (!(d <= most)) most = d; n++ }
        END { printf "%d losses %.0e\n", n, most; exit !(n == want && most <= 1e-9) }'
}

# sizes STEPS N_EMBD HEADS LAYERS BLOCK BATCH: the same steps in every build.
sizes()
{
    options="-q --data $T/docs --samples 0 --beta1 0 --steps $1 --n-embd $2 --n-head $3 --n-layer $4"
    options="$options --block-size $5 --batch $6"
    "$T/plain" $options --log "$T/plain.csv" --save "$T/plain.model" >"$T/out" 2>"$T/errors"
    for program in $programs; do
        rm -f "$T/fast.csv" "$T/fast.model"
        $MICROGPT_WRAPPER $program $options --log "$T/fast.csv" --save "$T/fast.model" >"$T/out" 2>"$T/errors"
        what="n_embd $2, heads $3, layers $4, block $5, batch $6, ${program##*/}: how far apart"
        gradients=none
        if losses=$(losses_apart "$1") && gradients=$("$T/gradients" $(($2 * $2)) "$T/plain.model" "$T/fast.model"); then
            ok "$what: $losses, $gradients"
        else
            not_ok "$what" "$1 losses and all gradients at most 1e-9" "$losses, gradients: $gradients"
        fi
    done
}

programs=./microgpt
if [ -z "$ALL" ]; then
    sizes 2 64 4 2 128 1
    sizes 2 64 4 1 128 4
    finish
fi

# The other compiler, too, as make builds with it.
case $($CC --version 2>/dev/null) in *clang*) other=gcc ;; *) other=clang ;; esac
if command -v $other >/dev/null 2>&1; then
    mkdir "$T/source"
    cp -R Makefile microgpt.c autograd.c autograd.h support data "$T/source"
    check "a build with $other" sh -c 'unset CFLAGS; make -s -C "$1" CC="$2" LDFLAGS=' sh "$T/source" $other
    mv "$T/source/microgpt" "$T/microgpt-$other" && programs="$programs $T/microgpt-$other"
else
    skip "a build with $other" 'it is not here'
fi
for batch in 1 4; do
    steps=$((6 - batch))                            # fewer of the larger
    sizes $steps 64 4 2 128 $batch
    sizes $steps 128 4 4 128 $batch
    sizes $((steps > 3 ? 3 : steps)) 256 8 4 128 $batch
done
rm -f "$T"/*.model
finish
