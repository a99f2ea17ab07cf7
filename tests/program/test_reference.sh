# The figures of the Python program: the initial parameters to the last bit, the gradients of the first step and the loss of
# every step within 1e-12, in both recipes. What is printed is compared in test_output.sh.
# shellcheck disable=SC2086
. tests/lib.sh

# near WHAT FILE TOLERANCE: the numbers in $T/seen are those of the file.
near()
{
    paste "$2" "$T/seen" | awk -v most="$3" '
        { d = $1 - $2; if (d < 0) d = -d; size = $1 < -1 ? -$1 : $1 > 1 ? $1 : 1; apart += !(NF == 2 && d <= most * size) }
        END { print NR, apart + 0 }' >"$T/apart"
    same "$1: how many, and how many further apart than $3" "$(wc -l <"$2" | tr -d ' ') 0" "$(cat "$T/apart")"
}

for recipe in microgpt lesson; do
    R=tests/reference/$recipe-names2018
    n=$(wc -l <"$R.grads-step1")
    run="--recipe $recipe -q --samples 0"
    microgpt $run --steps 0 --save "$T/$recipe.0" >"$T/out" 2>&1
    same "$recipe: the parameters of step 0" "$(sed -n 's/^cksum //p' "$R.params-step0")" \
        "$(tail -c +$((9 + $(od -An -t u8 -N 8 "$T/$recipe.0"))) "$T/$recipe.0" | head -c $((8 * n)) | cksum)"
    sed 1d "$R.params-step0" >"$T/want"
    numbers "$T/$recipe.0" | head -n "$n" >"$T/params"
    { head -n 16 "$T/params"; tail -n 16 "$T/params"; } >"$T/seen"
    near "$recipe: the first 16 and the last" "$T/want" 1e-15
    # Where beta1 is 0, Adam's mean is the gradient.
    microgpt $run --steps 1 --beta1 0 --save "$T/$recipe.1" >"$T/out" 2>&1
    numbers "$T/$recipe.1" | sed -n "$((n + 1)),$((2 * n))p" >"$T/seen"
    near "$recipe: gradients of step 1" "$R.grads-step1" 1e-12
    microgpt $run --log "$T/$recipe.csv" >"$T/out" 2>&1
    sed 1d "$T/$recipe.csv" | cut -d , -f 2 >"$T/seen"
    near "$recipe: losses" "$R.losses" 1e-12
done
finish
