# Every signal at every moment of a run, with standard output and standard error free, full and stuck: it ends as it
# should, within seconds, and its model is whole. VERBOSE=1 shows the cells.
# this file only with ALL=1
# takes long
. tests/lib.sh
. tests/faults/helpers.sh
command -v timeout >/dev/null 2>&1 || { skip 'signals at every moment' 'there is no timeout(1)'; finish; }
# shellcheck disable=SC2086
build_lose && build_stop_at $WARN $CFLAGS -Wno-unused-function || exit 1
mkdir "$T/data" "$T/work"
head -n 1000 data/names.txt >"$T/data/names.txt"
model=$T/work/m

# The moments, and the step of the model that a run leaves which ends there.
cat >"$T/moments" <<'END'
step 1:1
step 5:5
save 1:7
save 3:20
evaluation 9:9
evaluation 20:20
sample:20
message:20
END

# Pipes that are full, and that nobody reads.
mkfifo "$T/stuck"
sleep 9999 <"$T/stuck" &
sleeper=$!
exec 3>"$T/stuck"
timeout 1 cat /dev/zero >&3

# cell NAME NUMBER MOMENT OUTPUT STATUS STEP: status 124 is that of a run that goes on, until timeout ends it.
cell()
{
    rm -f "$T/work"/*
    SIGNAL=$2 SIGNAL_AT=$3 "$LOSE" default timeout -k 4 4 "$T/stop_at" --n-embd 8 --n-head 2 --steps 20 --save "$model" \
        --save-every 7 --holdout 100 -q >"$4" 2>&1 </dev/null
    seen="status $?, step $(step_of "$model"), $(ls "$T/work")"
    "$T/stop_at" sample "$model" --samples 0 >"$T/out" 2>&1 || seen="$seen, which is damaged"
    same "SIG$1 at $3, output to ${4##*/}" "status $5, step $6, m" "$seen"
}

for name in INT TERM HUP QUIT USR1 USR2 XCPU ALRM XFSZ PIPE; do
    number=1
    while [ "$(kill -l $number)" != $name ]; do number=$((number + 1)); done
    while IFS=: read -r moment step; do
        case $name in
        XFSZ | PIPE)                    # do not ask it to end
            cell $name $number "$moment" /dev/null 0 20
            cell $name $number "$moment" /dev/full 1 20
            cell $name $number "$moment" "$T/stuck" 124 20
            ;;
        *)
            for output in /dev/null /dev/full "$T/stuck"; do
                cell $name $number "$moment" $output 130 "$step"
            done
            ;;
        esac
    done <"$T/moments"
done
kill $sleeper
finish
