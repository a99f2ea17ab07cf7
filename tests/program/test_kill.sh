# Saves that SIGKILL cuts short at random moments: the file is always whole. KILLS=1000 is the long run.
BUILD=${BUILD:-tests/build} KILLS=${KILLS:-60} failed=0
dir=$BUILD/kill
rm -rf "$dir"
mkdir -p "$dir"
head -n 50 data/names.txt >"$dir/names"
set -- --data "$dir/names" --n-embd 32 -q --samples 0
step_of() {
    tr ',' '\n' <"$1" | sed -n 's/^"train.step":"\([0-9]*\)"$/\1/p' | head -n 1
}

./microgpt "$@" --steps 0 --save "$dir/m" >"$dir/out" || exit 1
broken=0 cut=0 i=0
awk -v n="$KILLS" 'BEGIN { srand(); for (i = 0; i < n; i++) printf "%.3f\n", 0.005 + rand() * 0.05 }' >"$dir/moments"
while read -r moment; do
    i=$((i + 1))
    ./microgpt "$@" --resume "$dir/m" --save "$dir/m" --save-every 1 --steps 100000000 >"$dir/out" 2>"$dir/err" &
    pid=$!
    sleep "$moment"
    kill -KILL $pid
    wait $pid 2>"$dir/wait"
    if ! ./microgpt sample "$dir/m" --samples 1 >"$dir/out" 2>"$dir/why"; then
        broken=$((broken + 1))
        echo "not ok - kill $i after $moment s: expected a whole file, saw $(cat "$dir/why")"
        cp "$dir/m" "$dir/broken$i"
        failed=1
    fi
    for part in "$dir"/m.*.part; do
        [ -e "$part" ] && cut=$((cut + 1)) && rm -f "$part"
    done
done <"$dir/moments"
[ $failed = 0 ] && echo "ok - after each of $KILLS kills the file is whole ($cut of them came within a write)"
steps=$(step_of "$dir/m")
if [ "${steps:-0}" -gt 0 ] && [ "$cut" -gt 0 ]; then
    echo "ok - in the meantime $steps steps were saved"
else
    echo "not ok - the run goes on in the meantime: expected steps, and writes cut short, saw step $steps, $cut writes"
    failed=1
fi
exit $failed
