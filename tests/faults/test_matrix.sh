# The engine under faults, in models of several sizes: threads that cannot be started, memory that fails at the n-th
# allocation, once or for good, and a signal at each system call; with --n-embd 16, 64 and 256, a document a step and
# batches, under AddressSanitizer. No step that was done is lost, and a run that goes on ends as without the fault.
#
#   SEED=N FAULTS=N sh tests/faults/test_matrix.sh      so many of them, chosen by the seed; FAULTS=all: each (make soak)
#
# this file only with ALL=1
# takes long
ALL=1
. tests/lib.sh
. tests/faults/helpers.sh
: "${FAULTS:=150}" "${SEED:=$(date +%Y%m%d)}"

fast='-O1 -g -ffp-contract=fast -fno-math-errno -DAUTOGRAD_LANES -pthread'
march=$($CC -march=native -E -x c /dev/null >/dev/null 2>&1 && echo -march=native)
# shellcheck disable=SC2086
if ! build_with_faults $fast $march $SANITIZE; then
    skip 'the engine under faults' "no such build with $CC: $(head -n 1 "$T/build.log")"
    finish
fi
ASAN_OPTIONS=detect_leaks=0:exitcode=98:allocator_may_return_null=1
mkdir "$T/data"
head -n 30 data/names.txt >"$T/data/names.txt"
W=$T/work

# run_with N_EMBD BATCH FAULT STAYS: in a folder of its own.
run_with()
{
    rm -rf "$W" "$T/happened"
    mkdir "$W"
    FAULT=$3 FAULT_STAYS=${4#-} FAULT_HAPPENED=$T/happened
    every=2
    [ "$1" -lt 256 ] || every=3        # a save of many writes, each with its signals, is enough
    "$T/microgpt" --n-embd "$1" --batch "$2" --threads 3 --steps 3 --samples 1 --save "$W/m" --save-every $every \
        --log "$W/log" >"$T/out" 2>"$T/err"
    status=$?
}

# One line for each fault: N_EMBD BATCH CALL N ERROR STAYS.
for n_embd in 16 64 256; do
    for batch in 1 8; do
        FAULT_COUNTS=$T/counts
        export FAULT_COUNTS
        run_with $n_embd $batch '' -
        unset FAULT_COUNTS
        same "--n-embd $n_embd --batch $batch, without a fault" '0 ' "$status $(cat "$T/err")"
        cp -R "$W" "$T/right-$n_embd-$batch"
        cp "$T/out" "$T/right-$n_embd-$batch.out"
        sed "s/^/$n_embd $batch /" "$T/counts" | awk '
            $3 ~ /alloc$/ { for (i = 1; i <= $4; i++) { print $1, $2, $3, i, "ENOMEM -"; print $1, $2, $3, i, "ENOMEM yes" } }
            $3 == "pthread_create" { for (i = 1; i <= $4; i++) { print $1, $2, $3, i, "EAGAIN -"; print $1, $2, $3, i, "EAGAIN yes" } }
            $3 == "any" { for (i = 1; i <= $4; i++) print $1, $2, $3, i, "SIGNAL -" }'
    done
done >"$T/all"
grep '^[no]' "$T/all"
grep '^[0-9]' "$T/all" | awk -v seed="$SEED" '
    BEGIN { srand(seed) }
    { print rand() * ($3 == "any" ? 6 : 1), $0 }    # signals are many
' | sort -n | cut -d ' ' -f 2- | if [ "$FAULTS" = all ]; then cat; else head -n "$FAULTS"; fi >"$T/chosen"

# Where the engine has no memory for lanes, it sums in another order: losses agree to nine digits.
same_losses()
{
    paste -d , "$1/log" "$2/log" |
        awk -F, 'NR > 1 { d = $2 / $5 - 1; bad += $1 != $4 || d * d > 1e-18 } END { exit bad > 0 || NR != 4 }'
}

# What is wrong with the run just made, which right-$1-$2 is without the fault.
trouble_with()
{
    done_before=$(cat "$T/happened" 2>/dev/null || echo none)
    step=$(step_of "$W/m")
    parts=$(find "$W" -name '*.part')
    case $3:$status in
    *alloc:0)
        cmp -s "$T/out" "$T/right-$1-$2.out" && same_losses "$W" "$T/right-$1-$2" || echo 'other results'
        FAULT='' "$T/microgpt" sample "$W/m" --samples 0 2>&1
        ;;
    *:0) cmp -s "$T/out" "$T/right-$1-$2.out" && diff -r "$W" "$T/right-$1-$2" >/dev/null || echo 'other results' ;;
    any:130 | *alloc:1)
        [ "$done_before" != none ] || echo 'no fault'
        [ "${step:-0}" -ge "$done_before" ] || echo "step $done_before was done, and the model has step ${step:-none}"
        [ -z "$parts" ] || echo "left over: $parts"
        [ "$3" = any ] || grep -q 'not enough memory' "$T/err" || echo 'not a word of memory'
        [ ! -f "$W/m" ] || FAULT='' "$T/microgpt" sample "$W/m" --samples 0 2>&1
        ;;
    *) echo "status $status: $(head -n 5 "$T/err" | tr '\n' ' ')" ;;
    esac
}

while read -r n_embd batch call n error stays; do
    run_with "$n_embd" "$batch" "$call $n $error" "$stays"
    trouble=$(trouble_with "$n_embd" "$batch" "$call")
    [ -z "$trouble" ] ||
        not_ok "--n-embd $n_embd --batch $batch: $call $n $error, for good: $stays" 'no step lost' "$trouble; $(tail -n 1 "$T/err")"
done <"$T/chosen"
ok "$(wc -l <"$T/chosen" | tr -d ' ') of $(grep -c '^[0-9]' "$T/all") faults in models of six sizes, SEED=$SEED"
finish
