# `microgpt check`: all definitions, fast versions and derivatives agree, in this build, at several sizes.
. tests/lib.sh
for options in '' '--scalar' '--activation relu2 --n-layer 2' '--n-embd 64 --n-layer 2 --n-head 8' '--n-embd 60 --n-head 3 --block-size 5'; do
    # shellcheck disable=SC2086
    microgpt check $options >"$T/out" 2>"$T/stderr"
    same "check $options: status, rows that differ, words on standard error" "0 0 " "$? $(grep -c ' differs$' "$T/out") $(cat "$T/stderr")"
    check "check $options: every operation's derivative has its rows" [ "$(grep -c 'backward and differences, operand' "$T/out")" -ge 30 ]
done
case $CFLAGS in
*-DAUTOGRAD_LANES*) check "fast versions have rows" grep -q '^softmax_forward and ' "$T/out" ;;
*) skip "fast versions have rows" "this build has none" ;;
esac
fails 2 "*" microgpt check --steps 5
fails 2 "*" microgpt check names.safetensors
finish
