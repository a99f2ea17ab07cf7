# Large models: the losses and gradients of the fast build within 1e-9 of those of plain C11, where every line of the tape is
# computed by the loops of autograd.c; and those within 1e-9 of --scalar, where each + and * is an entry.
# The documents fill the block. With ALL=1, the largest models and both compilers; else smaller ones.
# takes long
# shellcheck disable=SC2016,SC2086
. tests/lib.sh

tr '\n' ' ' <data/names.txt | fold -w 140 | head -n 60 >"$T/docs"       # longer than any block here
plain='-O0'
[ -z "$ALL" ] || plain='-O2'
$CC -std=c11 $plain -DAUTOGRAD_LANES -DAUTOGRAD_PLAIN -pthread -o "$T/plain" $SOURCES -lm || exit 1

# losses_apart N: how far the losses in the two logs are apart; fails if they are too far, or not N.
losses_apart()
{
    paste -d , "$T/plain.csv" "$T/fast.csv" | awk -F , -v want="$1" '
        NR > 1 { d = $2 / $5 - 1; d = d < 0 ? -d : d; if (!(d <= most)) most = d; n++ }
        END { printf "%d losses %.0e\n", n, most; exit !(n == want && most <= 1e-9) }'
}

# gradients_apart N: the same of the gradients of the last step: with --beta1 0, Adam's mean is the gradient itself. Losses
# alone would not show a matrix whose gradients are all scaled alike: Adam divides that out. Each is compared as a part of
# the largest of the N that it is among: of a matrix, because rows of 1e-13 in one of tenths are rounding.
gradients_apart()
{
    numbers "$T/fast.model" >"$T/fast.numbers"
    numbers "$T/plain.model" | paste - "$T/fast.numbers" | awk -v among="$1" -v n="$(sed -n 's/^num params: //p' "$T/plain.out")" '
        function end_of_part() { if (!(apart <= most * largest)) most = apart / largest; apart = largest = 0 }
        NR <= n || NR > 2 * n { next }
        { d = $1 - $2; d = d < 0 ? -d : d; if (!(d <= apart)) apart = d
          x = $1 < 0 ? -$1 : $1; if (x > largest) largest = x }
        (NR - n) % among == 0 || NR == 2 * n { end_of_part() }
        END { printf "%d gradients %.0e\n", n, most; exit !(NR > 3 * n && most <= 1e-9) }'
}

# sizes STEPS N_EMBD HEADS LAYERS BLOCK BATCH: the same steps in every build.
sizes()
{
    options="-q --data $T/docs --samples 0 --beta1 0 --steps $1 --n-embd $2 --n-head $3 --n-layer $4"
    options="$options --block-size $5 --batch $6"
    "$T/plain" $options --log "$T/plain.csv" --save "$T/plain.model" >"$T/plain.out" 2>"$T/errors"
    for way in $ways; do
        rm -f "$T/fast.csv" "$T/fast.model"
        program=$way
        [ "$way" != --scalar ] || program="./microgpt --scalar"
        $MICROGPT_WRAPPER $program $options --log "$T/fast.csv" --save "$T/fast.model" >"$T/out" 2>"$T/errors"
        what="n_embd $2, heads $3, layers $4, block $5, batch $6, ${way##*/}: how far apart"
        gradients=none
        if losses=$(losses_apart "$1") && gradients=$(gradients_apart $(($2 * $2))); then
            ok "$what: $losses, $gradients"
        else
            not_ok "$what" "$1 losses and all gradients at most 1e-9" "$losses, gradients: $gradients"
        fi
    done
}

ways=--scalar
sizes 3 64 4 1 16 1
sizes 3 128 4 1 5 3
if [ -n "$ALL" ]; then                          # up to 1.4 GB each
    for case in '64 4 2 80 1' '64 4 1 128 1' '64 4 2 20 4' '128 4 1 40 1' '128 4 4 10 1' '128 4 1 10 4' '256 8 1 11 1' \
        '256 8 4 3 1' '256 8 1 3 4'; do
        sizes 3 $case
    done
fi

ways=./microgpt
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
    mv "$T/source/microgpt" "$T/microgpt-$other" && ways="$ways $T/microgpt-$other"
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
