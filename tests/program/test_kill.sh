# Saves that SIGKILL cuts short at random moments: the file is always whole. KILLS=1000 is the long run.
. tests/lib.sh
: "${KILLS:=$([ -n "$ALL" ] && echo 60 || echo 20)}"
head -n 50 data/names.txt >"$T/names"
set -- --data "$T/names" --n-embd 32 -q --samples 0

# On a busy machine it may take more kills until one of them comes within a write.
./microgpt "$@" --steps 0 --save "$T/m" >"$T/out" || exit 1
broken=0 cut=0 i=0
awk -v n=$((10 * KILLS)) 'BEGIN { srand(); for (i = 0; i < n; i++) printf "%.3f\n", 0.005 + rand() * 0.05 }' >"$T/moments"
while [ $i -lt "$KILLS" ] || [ $cut -eq 0 ]; do
    read -r moment || break
    i=$((i + 1))
    ./microgpt "$@" --resume "$T/m" --save "$T/m" --save-every 1 --steps 100000000 >"$T/out" 2>"$T/err" &
    pid=$!
    sleep "$moment"
    kill -KILL $pid
    wait $pid 2>"$T/wait"
    if ! ./microgpt sample "$T/m" --samples 1 >"$T/out" 2>"$T/why"; then
        broken=$((broken + 1))
        not_ok "kill $i after $moment s" "a whole file" "$(cat "$T/why")"
        cp "$T/m" "$T/broken$i"
    fi
    for part in "$T"/m.*.part; do
        [ -e "$part" ] && cut=$((cut + 1)) && rm -f "$part"
    done
done <"$T/moments"
[ $broken -ne 0 ] || ok "after each of $i kills the file is whole ($cut of them came within a write)"
steps=$(tr ',' '\n' <"$T/m" | sed -n 's/^"train.step":"\([0-9]*\)"$/\1/p' | head -n 1)
if [ "${steps:-0}" -gt 0 ] && [ "$cut" -gt 0 ]; then
    ok "in the meantime $steps steps were saved"
else
    not_ok "the run goes on in the meantime" "steps, and writes cut short" "step $steps, $cut writes"
fi
finish
