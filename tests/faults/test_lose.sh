# Never lose a model: what a user, a disk, a pipe or a terminal may do to a run that saves. The numbers are those of the
# list in tests/README.md. With ALL=1, a thousand double signals instead of fifty.
# takes long
# shellcheck disable=SC2010,SC2012,SC2086,SC2217
. tests/lib.sh

# The program beside names of its own, in a folder that everyone can enter: nothing that is shipped is at risk.
D=$(mktemp -d "${TMPDIR:-/tmp}/microgpt-lose.XXXXXX") && chmod 755 "$D" || exit 1
trap 'chmod -R u+rwx "$D"; rm -rf "$D"' EXIT
mkdir "$D/data"
head -n 100 data/names.txt >"$D/data/names.txt"
cp "$D/data/names.txt" "$D/names"
cp microgpt "$D/"
chmod -R a+rX "$D"
M=$D/microgpt
# shellcheck disable=SC2086
$CC $WARN -O1 -o "$D/lose" tests/faults/lose.c || exit 1
LOSE=$D/lose
# shellcheck disable=SC2046
$CC -O1 -o "$D/stop_at" tests/faults/stop_at.c $(rest_of "$BUILD/objects" tests/faults/stop_at.c) -lm || exit 1

run() # COMMAND...: its status in $status, its standard error in $said
{
    "$@" >"$D/out" 2>"$D/err" </dev/null
    status=$?
    said=$(sed "/^profiling:/d" "$D/err")    # without what gcov says, in a build that counts lines
}

# ends WHAT STATUS PATTERN: what run() saw.
ends()
{
    # shellcheck disable=SC2254
    case "$status:$said" in
    $2:$3) ok "$1" ;;
    *) not_ok "$1" "$2 and '$3'" "$status and '$said'" ;;
    esac
}

step_of() { tr ',' '\n' <"$1" | sed -n 's/^"train.step":"\([0-9]*\)"$/\1/p' | head -n 1; }
parts_in() { find "$1" -name '*.part' | wc -l | tr -d ' '; }

# resumable WHAT MODEL: a whole model of at least one step, from which a run goes on.
resumable()
{
    step=$(step_of "$2" 2>/dev/null)
    run "$M" -q --resume "$2" --steps $((${step:-0} + 2)) --samples 0
    if [ "${step:-0}" -gt 0 ] && [ "$status" -eq 0 ]; then
        ok "$1"
    else
        not_ok "$1" 'a model that can be resumed' "step ${step:-none}, status $status: $said"
    fi
}

# stays_whole WHAT: run() saw a model that could not take its name, and a message that says where it is.
stays_whole()
{
    part=${said##*the model is in }
    ends "$1" 1 'microgpt: *: not saved under this name: *; the model is in *.part'
    resumable '1. the finished file is where the message says' "$part"
    rm -f "$part"
}

# until_saved FILE: waits, ten seconds at most.
until_saved()
{
    tries=0
    while [ ! -s "$1" ] && [ $tries -lt 100 ]; do
        sleep 0.1
        tries=$((tries + 1))
    done
}

# in_time SECONDS PID: the status of a child, or 99 if it does not end in so many seconds.
in_time()
{
    (sleep "$1" && kill -KILL "$2") 2>/dev/null &
    watchdog=$!
    wait "$2" 2>/dev/null
    status=$?
    kill $watchdog 2>/dev/null || status="none within $1 s"
    wait $watchdog 2>/dev/null
}

# --- 1. A save that cannot take its final name
someone='setpriv --reuid=65534 --regid=65534 --clear-groups'
if [ "$(id -u)" = 0 ] && $someone "$M" --version >"$D/out" 2>&1; then
    mkdir "$D/sticky" "$D/unlisted"
    chmod 1777 "$D/sticky"
    "$M" -q --steps 3 --save "$D/sticky/m" >"$D/out"
    cp "$D/sticky/m" "$D/sticky.old"
    chmod 666 "$D/sticky/m"
    run $someone "$M" -q --steps 9 --save "$D/sticky/m"
    stays_whole "1. a sticky folder over another user's file"
    same_file '1. the old file is untouched' "$D/sticky.old" "$D/sticky/m"
    chown 65534 "$D/unlisted"
    chmod 300 "$D/unlisted"
    run $someone "$M" -q --steps 9 --save "$D/unlisted/m"
    ends '1. a folder that cannot be listed' 0 ''
    mkdir "$D/bind"
    : >"$D/bind/m"
    if mount --bind "$D/sticky.old" "$D/bind/m" 2>/dev/null; then
        run "$M" -q --steps 9 --save "$D/bind/m"
        umount "$D/bind/m"
        stays_whole '1. a file that is mounted'
    else
        skip '1. a file that is mounted' 'nothing can be mounted here'
    fi
    : >"$D/append"
    if chattr +a "$D/append" 2>/dev/null; then
        run "$M" -q --steps 9 --save "$D/append"
        chattr -a "$D/append"
        stays_whole '1. a file that only grows'
    else
        skip '1. a file that only grows' 'no such files here'
    fi
else
    skip "1. a sticky folder over another user's file" 'it takes root, who can be someone else'
fi
run timeout 60 "$M" -q --n-layer 70000 --n-embd 1 --n-head 1 --block-size 1 --steps 100000000 --save "$D/deep"
ends '1. a header over the limit of the format is refused before the first step' 1 \
    "microgpt: $D/deep: too many layers for a model file"
same '1. and nothing is printed' '' "$(cat "$D/out")"

# --- 2. Trouble with standard output or the log
run sh -c "exec '$M' --steps 20000 --save '$D/full' >/dev/full"
ends '2. standard output on a full disk' 1 \
    "microgpt: standard output: No space left on device; interrupted after step * of 20000; saved in $D/full;*"
resumable '2. the model is saved' "$D/full"
run "$M" -q --steps 300000 --save "$D/log-full" --log /dev/full
ends '2. a log on a full disk' 1 "microgpt: /dev/full: No space left on device; interrupted after step *; saved in *"
resumable '2. the model is saved' "$D/log-full"
run "$M" -q --steps 9 --samples 0 --save "$D/log-late" --log /dev/full
ends '2. a log that fails at the end' 1 'microgpt: /dev/full: No space left on device'
resumable '2. the model is saved' "$D/log-late"
set -- --n-embd 4 --n-head 1 --steps 9000
"$M" "$@" >"$D/plain"
{ "$LOSE" nonblock "$M" "$@" --save "$D/slow"; echo $? >"$D/status"; } | { sleep 1; cat >"$D/slow.out"; }
same '2. a slow reader of a pipe that does not wait' 0 "$(cat "$D/status")"
same_file '2. gets every byte' "$D/plain" "$D/slow.out"
{ "$LOSE" default "$M" --steps 300000 --save "$D/head" 2>"$D/err"; echo $? >"$D/status"; } | head -n 1 >"$D/out"
same '2. a reader that leaves' 141 "$(cat "$D/status")"
resumable '2. the model is saved' "$D/head"
{ "$LOSE" default "$M" --steps 300000 2>"$D/err"; echo $? >"$D/status"; } | head -n 1 >"$D/out"
same '2. the same without --save, quietly' 141: "$(cat "$D/status"):$(cat "$D/err")"
{ sh -c "trap '' PIPE; exec '$M' --steps 300000 --save '$D/epipe'" 2>"$D/err"; echo $? >"$D/status"; } |
    head -n 1 >"$D/out"
same '2. where SIGPIPE is ignored it is an error' '1:microgpt: standard output: Broken pipe' \
    "$(cat "$D/status"):$(sed 's/;.*//' "$D/err")"

# --- 3. A signal while a write waits
mkfifo "$D/fifo"
sleep 9 <"$D/fifo" &
sleeper=$!
"$M" --steps 100000000 --save "$D/blocked" >"$D/fifo" 2>"$D/err" &
pid=$!
sleep 1
kill -TERM $pid
in_time 6 $pid
said=$(cat "$D/err")
ends '3. a signal while a write waits' 130 "microgpt: interrupted after step * of 100000000; saved in $D/blocked;*"
resumable '3. the model is saved' "$D/blocked"
"$LOSE" default sh -c "trap '' ALRM; exec '$M' --steps 100000000 --save '$D/no-alarm'" >"$D/fifo" 2>"$D/err" &
pid=$!
sleep 1
kill -TERM $pid
in_time 6 $pid
said=$(cat "$D/err")
ends '3. the same where SIGALRM is ignored' 130 "microgpt: interrupted after step * of 100000000; saved in $D/no-alarm;*"
resumable '3. the model is saved' "$D/no-alarm"
kill $sleeper 2>/dev/null
wait $sleeper 2>/dev/null

# --- 4. Ctrl-C, and the reader of the pipe goes first
run "$LOSE" leave "$M" --steps 100000000 --save "$D/tee"
ends '4. an interrupt that ends the reader, too' 130 \
    "microgpt: interrupted after step * of 100000000; saved in $D/tee;*"
resumable '4. the model is saved' "$D/tee"

# --- 5. A limit on the size of files
mkdir "$D/limit"
run "$LOSE" default sh -c "ulimit -f 8; exec '$M' -q --steps 9 --save '$D/limit/m'"
ends '5. a limit on the size of files' 1 "microgpt: $D/limit/m: not saved: File too large"
same '5. nothing is left behind' '' "$(ls "$D/limit")"

# --- 6, 7. Signals that ask to end; signals that were ignored stay ignored
for signal in HUP INT TERM QUIT USR1 USR2 XCPU ALRM; do
    "$LOSE" default "$M" -q --steps 100000000 --save-every 100 --save "$D/$signal" >"$D/out" 2>"$D/err" &
    pid=$!
    until_saved "$D/$signal"
    kill -$signal $pid
    in_time 9 $pid
    said=$(cat "$D/err")
    ends "6. SIG$signal" 130 "microgpt: interrupted after step * of 100000000; saved in $D/$signal;*"
    resumable '6. the model is saved' "$D/$signal"
    rm "$D/$signal"
    "$LOSE" default sh -c "trap '' $signal; exec '$M' -q --steps 100000000 --save-every 100 --save '$D/$signal'" \
        >"$D/out" 2>"$D/err" &
    pid=$!
    until_saved "$D/$signal"
    kill -$signal $pid
    sleep 0.3
    step=$(step_of "$D/$signal") status=stopped tries=0
    while [ $status = stopped ] && [ $tries -lt 100 ]; do        # a busy machine takes its time
        sleep 0.1
        [ "$(step_of "$D/$signal")" -le "$step" ] || status=on
        tries=$((tries + 1))
    done
    same "7. SIG$signal, ignored from the start, stays ignored" on "$status"
    if [ $signal = TERM ]; then kill -HUP $pid; else kill -TERM $pid; fi
    in_time 9 $pid
    same '7. and another signal ends it' 130 "$status"
done

# --- 8. Two signals at any moment
mkdir "$D/twice"
n=50
[ -z "$ALL" ] || n=1000
"$LOSE" twice $n "$D/twice" "$M" -q --n-embd 32 --steps 8 --samples 100 --save "$D/twice/m" --save-every 1 \
    --log "$D/twice/log" ||
    failures=$((failures + 1))

# timeout(1) sends its signal twice within milliseconds: to the program, then to its group.
n=2 saved=0 i=0
[ -z "$ALL" ] || n=20
if command -v timeout >/dev/null 2>&1; then
    sleep 99 <"$D/fifo" &
    sleeper=$!
    exec 3>"$D/fifo"
    while [ $i -lt $n ]; do
        i=$((i + 1))
        rm -f "$D/timed"
        "$LOSE" default timeout 0.3 "$M" --steps 100000000 --save "$D/timed" >&3 2>"$D/err"
        ! grep -q "saved in $D/timed;" "$D/err" || [ "$(step_of "$D/timed")" -eq 0 ] || saved=$((saved + 1))
    done
    exec 3>&-
    kill $sleeper 2>/dev/null
    wait $sleeper 2>/dev/null
    same "8. $n runs under timeout, with a reader that is stuck" $n $saved
else
    skip '8. a run under timeout' 'there is no timeout(1)'
fi

# --- 9. Little stack
case $CFLAGS in
*-fsanitize* | *--coverage* | *-O0*) skip '9. 64 KB of stack' 'this build takes more' ;;
*)
    set -- "-q --steps 9 --save $D/stack --log $D/stack.csv" "-q --resume $D/stack --steps 12 --save $D/stack" \
        "sample $D/stack" "eval $D/stack" "heads $D/stack" "heads $D/stack anna" "heads $D/stack anna --tsv" \
        "--help" "sample $D/none"
    for arguments; do
        want=0
        [ "$arguments" != "sample $D/none" ] || want=1
        # shellcheck disable=SC2086
        run env -i sh -c 'ulimit -s 64; exec "$@"' sh "$M" $arguments
        same "9. 64 KB of stack: microgpt ${arguments%% "$D"*}" $want "$status"
    done
    ;;
esac

# --- 10. Few descriptors. Whatever is open where the tests run, three are open here.
exec 3<&- 4<&- 5<&- 6<&- 7<&- 8<&- 9<&-
run env ASAN_OPTIONS=detect_leaks=0 sh -c "ulimit -n 4; exec '$M' --steps 100000000 --save-every 10 --save '$D/few' --log '$D/few.csv'"
ends '10. a descriptor too few, found before the first step' 1 "microgpt: $D/few.csv: Too many open files"
same '10. and nothing is printed or written' ':' "$(cat "$D/out"):$(ls "$D" | grep '^few')"
run env ASAN_OPTIONS=detect_leaks=0 sh -c "ulimit -n 5; exec '$M' -q --steps 50 --save-every 10 --save '$D/few' --log '$D/few.csv'"
ends '10. as many as it takes' 0 ''
run env ASAN_OPTIONS=detect_leaks=0 sh -c "ulimit -n 4; exec '$M' -q --steps 50 --save-every 10 --save '$D/few'"
ends '10. without a log, one less' 0 ''

# --- 11. Two things at once
twice="*: one file cannot be two of *"
run "$M" -q --steps 1 --log "$D/data/names.txt"
same_file '11. the names are what they were' "$D/names" "$D/data/names.txt"
ends '11. the shipped names as the log' 2 "$twice"
cp "$D/names" "$D/data/names.txt"
run "$M" -q --steps 1 --save "$D/data/names.txt"
ends '11. the shipped names as the model' 2 "$twice"
cp "$D/names" "$D/data/names.txt"
(cd "$D" && exec "$M" -q --steps 1 --save ./x --log x) >"$D/out" 2>"$D/err"
status=$? said=$(cat "$D/err")
ends '11. a model and a log that are not there yet' 2 "$twice"
same '11. they are still not there' '' "$(ls "$D" | grep '^x')"
echo old >"$D/both"
run "$M" -q --steps 1 --save "$D/both" --log "$D/./both"
ends '11. one file as both' 2 "$twice"
same '11. it is what it was' old "$(cat "$D/both")"
ln -s link-to "$D/link"
run "$M" -q --steps 1 --save "$D/link-to" --log "$D/link"
ends '11. a log that is a link to the model, which is not there yet' 2 "$twice"
same '11. it is still not there' 'link' "$(ls "$D" | grep '^link')"
run sh -c "'$M' -q --steps 1 --data - --save '$D/data/names.txt' <'$D/data/names.txt'"
ends '11. standard input as the model' 2 "$twice"
cp "$D/names" "$D/data/names.txt"
run sh -c "'$M' -q --steps 1 --data - --log '$D/data/names.txt' <'$D/data/names.txt'"
ends '11. standard input as the log' 2 "$twice"
same_file '11. the names are what they were' "$D/names" "$D/data/names.txt"
cp "$D/names" "$D/data/names.txt"

for option in "--log $D/kept~" "--data $D/kept~" "--resume $D/kept~"; do
    "$M" -q --steps 2 --samples 0 --save "$D/kept~" >"$D/out"
    cp "$D/kept~" "$D/kept.old"
    [ "${option%% *}" != --data ] || cp "$D/names" "$D/kept~"
    cp "$D/kept~" "$D/kept.old"
    run "$M" -q --steps 5 --samples 0 --save "$D/kept" $option
    ends "11. FILE~ of the model as ${option%% *}" 2 "$twice"
    same_file '11. it is what it was' "$D/kept.old" "$D/kept~"
    rm -f "$D/kept~"
done
run "$M" -q --steps 5 --samples 0 --save "$D/kept" --log "$D/./kept~"
ends '11. FILE~ of the model as the log, neither of which is there' 2 "$twice"
run "$M" -q --steps 5 --samples 0 --log "$D/kept" --save "$D/kept~"
ends '11. FILE~ of the log as the model' 2 "$twice"
ln -s kept~ "$D/to-kept"
run "$M" -q --steps 5 --samples 0 --save "$D/kept" --log "$D/to-kept"
ends '11. FILE~ of the model, to which a link leads, as the log' 2 "$twice"
run sh -c "'$M' -q --steps 5 --save '$D/kept' >'$D/kept~'"
ends '11. standard output as FILE~ of the model' 2 "$twice"
run sh -c "'$M' -q --steps 5 --save '$D/kept' 2>'$D/kept~'"
same '11. standard error as FILE~ of the model' "2 1" "$status $(grep -c 'cannot be two of' "$D/kept~")"
rm -f "$D/kept~" "$D/to-kept"
same '11. none of their models is there' '' "$(ls "$D" | grep '^kept$')"

# --- 12. Scores that overflow when they are scaled
run "$M" -q --lr 1e60 --steps 1 --temperature 1e-150 --samples 2
ends '12. scores that overflow when they are scaled' 1 'microgpt: *the scores are not finite*'

# --- 13. A flipped bit
"$M" -q --steps 9 --samples 0 --save "$D/whole" >"$D/out"
n=20 refused=0
[ -z "$ALL" ] || n=1000
awk -v n=$n 'BEGIN { srand(); for (i = 0; i < n; i++) print int(rand() * 2147483647) }' >"$D/bits"
while read -r bit; do
    "$LOSE" flip "$D/whole" "$bit" "$D/flipped"
    run "$M" -q --resume "$D/flipped" --steps 10 --samples 0
    case $status:$said in
    1:"microgpt: $D/flipped: "*) refused=$((refused + 1)) ;;
    *) echo "bit $bit: $status: $said" >&2 ;;
    esac
done <"$D/bits"
same "13. each of $n flipped bits is found" $n $refused
"$LOSE" flip "$D/whole" 1 "$D/flipped"
run "$M" sample "$D/flipped"
ends '13. and the message says what to do if it was on purpose' 1 '*checksum*on purpose*remove checksum from the metadata'
"$LOSE" forget "$D/flipped" "$D/forgotten"
run "$M" -q --resume "$D/forgotten" --steps 12
ends '13. a file without a checksum loads as before' 0 ''

# --- 14. Private while it is written; mode, owner and group of the file that it replaces
# shellcheck disable=SC2086
$CC $WARN -Wno-unused-function -O0 -o "$D/watched" tests/faults/watched.c microgpt.c \
    $(rest_of "$BUILD/objects" tests/faults/watched.c | grep -v /microgpt.o) -lm ||
    not_ok '14. a program that is watched' 'a build' 'none'
umask 022
rm -f "$D/private"
run "$D/watched" -q --steps 3 --save "$D/private" --data "$D/names"
ends '14. a new file is private while it is written' 0 'while it is written: 600'
# shellcheck disable=SC2012
same '14. and gets the mode of a new file' '-rw-r--r--' "$(ls -l "$D/private" | cut -c1-10)"
chmod 640 "$D/private"
[ "$(id -u)" != 0 ] || chown 65534:65534 "$D/private"
owner=$(ls -ln "$D/private" | awk '{ print $1, $3, $4 }')
run "$D/watched" -q --steps 3 --save "$D/private" --data "$D/names"
ends '14. so is a file that replaces another' 0 'while it is written: 600'
same '14. and gets its mode, owner and group' "$owner" "$(ls -ln "$D/private" | awk '{ print $1, $3, $4 }')"
if [ "$(id -u)" = 0 ] && $someone "$M" --version >"$D/out" 2>&1; then
    mkdir "$D/group"
    "$M" -q --steps 1 --save "$D/group/m" >"$D/out"
    chown 65534:0 "$D/group" "$D/group/m"
    chmod 660 "$D/group/m"
    run $someone "$M" -q --steps 3 --save "$D/group/m"
    # shellcheck disable=SC2012
    same '14. a group that cannot be kept is not replaced by another' '0:-rw-------' \
        "$status:$(ls -l "$D/group/m" | cut -c1-10)"
fi

# --- 15. Control characters of a hostile vocabulary
printf 'a\033[31mb\033]0;x\007c\302\233d\n' >"$D/hostile"
"$M" -q --data "$D/hostile" --steps 200 --samples 0 --save "$D/hostile.model" >"$D/out"
"$M" sample "$D/hostile.model" --samples 50 >"$D/piped"
same '15. into a pipe they stay bytes' yes "$(grep -q "$(printf '\033')" "$D/piped" && echo yes)"
if script -qec true "$D/typescript" >"$D/out" 2>&1 </dev/null; then
    script -qec "'$M' sample '$D/hostile.model' --samples 50" "$D/typescript" >"$D/terminal" 2>&1 </dev/null
    tr -d '\r' <"$D/terminal" >"$D/seen"
    sed "s/$(printf '[\001-\010\013-\037\177]')/?/g; s/$(printf '\302')$(printf '[\200-\237]')/?/g" "$D/piped" >"$D/want"
    same_file '15. on a terminal they are made visible' "$D/want" "$D/seen"
else
    skip '15. on a terminal they are made visible' 'there is no script(1) that can make one'
fi

# --- 16. The rest
for file in autograd.c support/engine/softmax.c; do
    run $CC -std=c11 -Ofast -c -o "$D/fast.o" $file
    case $status:$said in
    0:*) not_ok "16. -Ofast of $file" 'an error' 'none' ;;
    *'drops checks for infinities'*) ok "16. -Ofast of $file is refused with a sentence" ;;
    *) not_ok "16. -Ofast of $file" 'a sentence' "$(head -n 3 "$D/err")" ;;
    esac
done

# Compilers that do not say what they were told: the fast exponential finds out by itself.
for flags in -funsafe-math-optimizations '-ffast-math -fno-finite-math-only'; do
    for compiler in gcc clang; do
        if ! command -v $compiler >/dev/null 2>&1; then
            skip "16. $compiler $flags" "there is no $compiler"
        elif $compiler -std=c11 -O2 $flags -DAUTOGRAD_LANES -o "$D/unsafe" $SOURCES -lm 2>"$D/err"; then
            "$D/unsafe" --data data/names.txt >"$D/out"
            same_file "16. $compiler $flags: the output is right" tests/reference/microgpt-names2018.stdout "$D/out"
        else
            same "16. $compiler $flags: the compiler stops with a sentence" yes \
                "$(grep -q 'changes sums and drops checks' "$D/err" && echo yes || head -n 3 "$D/err")"
        fi
    done
done
echo a >"$D/a"                                        # one token, with a loss between 709 and 745
"$M" -q --data "$D/a" --block-size 1 --n-embd 1 --n-head 1 --init-std 8 --seed 84 --steps 0 --save "$D/wild" >"$D/out"
run "$M" eval "$D/wild" --data "$D/a"
ends '16. eval prints no inf' 1 'microgpt: *: the perplexity is not finite'
same '16. but nothing' '' "$(cat "$D/out")"
long=$(awk 'BEGIN { for (i = 0; i < 900; i++) printf "1234567890" }')
run "$M" --steps "${long}x"
ends '16. an argument of 9 KB leaves room for the reason' 2 'microgpt: --steps 1234567890* ... *: not a whole number'
run "$M" "$(printf 'a\302\233\033b')"
ends '16. an argument with control characters' 2 'microgpt: a???b: no such command*'
run "$M" sample "$D/$long"
ends '16. a file name of 9 KB, too' 1 'microgpt: *: File name too long'
name=$(echo "$long" | cut -c 1-250)
run "$M" -q --steps 9 --save "$D/$name"
ends '16. a file name of 250 bytes' 0 ''
resumable '16. it is a model' "$D/$name"
name=$(awk 'BEGIN { for (i = 0; i < 83; i++) printf "\342\202\254" }')
run "$M" -q --steps 9 --save "$D/$name"
ends '16. and one of 83 characters of 3 bytes' 0 ''

# --- 17. A loss that is not finite
run "$M" -q --lr 1e9 --steps 9 --samples 0 --save "$D/inf"
ends '17. a loss that is not finite' 1 "microgpt: step 2: the loss is not finite *; saved in $D/inf, after step 1 of 9"
run "$M" eval "$D/inf"
same '17. the model of the step before is saved' 1 "$(step_of "$D/inf")"
run "$M" -q --resume "$D/inf" --steps 9
ends '17. it can be resumed, and that fails as before' 1 'microgpt: step 2: the loss is not finite *help'
run "$M" -q --lr 1e9 --steps 9 --samples 0
ends '17. without --save, not a word of it' 1 'microgpt: step 2: the loss is not finite *help'

# --- 18. Standard error that is stuck
sleep 9 <"$D/fifo" &
sleeper=$!
"$M" --steps 100000000 --save "$D/stuck" >"$D/fifo" 2>&1 &
pid=$!
sleep 1
kill -TERM $pid
in_time 6 $pid
same '18. a signal while standard output and standard error are stuck' 130 "$status"
resumable '18. the model is saved' "$D/stuck"
kill $sleeper 2>/dev/null
wait $sleeper 2>/dev/null

# --- 19. A limit on the time of the processor, which sends its signal every second
run "$LOSE" default sh -c "ulimit -St 1; exec '$M' -q --steps 100000000 --save '$D/time'"
ends '19. a limit on time' 130 "microgpt: interrupted after step * of 100000000; saved in $D/time;*"
resumable '19. the model is saved' "$D/time"

# --- 20. Names that others foresee
mkdir "$D/planted"
run sh -c "i=0; while [ \$i -lt 100 ]; do : >'$D/planted/m.'\$\$-\$i.part; i=\$((i + 1)); done; exec '$M' -q --steps 9 --save '$D/planted/m'"
ends '20. a hundred files that others left there' 0 ''
resumable '20. the model is saved' "$D/planted/m"
rm -r "$D/planted"

# --- 21. No room for the model: it goes elsewhere
mkdir "$D/disk" "$D/here" "$D/tmp"
cd "$D/here" || exit 1
if [ "$(id -u)" = 0 ] && mount -t tmpfs -o size=128k tmpfs "$D/disk" 2>/dev/null; then
    run "$M" -q --steps 300 --save "$D/disk/m"
    cp "$D/disk/m" "$D/disk.old"
    run env TMPDIR="$D/tmp" "$M" -q --resume "$D/disk/m" --steps 600 --save "$D/disk/m"
    ends '21. a full disk' 1 "microgpt: $D/disk/m: not saved: No space left on device; the model is in ./m.*.part"
    resumable '21. the model is in the working directory' "${said##*the model is in }"
    same_file '21. the old one is untouched' "$D/disk.old" "$D/disk/m"
    rm -f "$D/here"/*
    chmod 555 "$D/here"
    chmod 777 "$D/disk" "$D/tmp" && chmod 666 "$D/disk/m" && chown -R 65534 "$D/disk" "$D/tmp"
    if $someone "$M" --version >"$D/out" 2>&1; then
        run $someone env TMPDIR="$D/tmp" "$M" -q --resume "$D/disk/m" --steps 600 --save "$D/disk/m"
        ends '21. and a folder that takes nothing' 1 "microgpt: $D/disk/m: not saved: No space left on device; the model is in $D/tmp/m.*.part"
        resumable '21. the model is in TMPDIR' "${said##*the model is in }"
    fi
    for folder in '' "$D/none"; do
        run sh -c "cd '$D/disk' && TMPDIR='$folder' exec '$M' -q --resume '$D/disk/m' --steps 600 --save '$D/disk/m'"
        ends "21. and TMPDIR is '$folder'" 1 \
            "microgpt: $D/disk/m: not saved: No space left on device; the model is in /tmp/m.*.part"
        part=${said##*the model is in }
        resumable '21. the model is in /tmp' "$part"
        rm -f "$part"
    done
    umount "$D/disk"
    rm -rf "$D/tmp"
else
    skip '21. a full disk' 'no file system can be mounted here'
fi
cd "$ROOT" || exit 1

# --- 22. What is there is not lost
echo thesis >"$D/thesis.md"
run "$M" -q --steps 9 --save "$D/thesis.md"
ends '22. a text in place of the model' 1 "microgpt: $D/thesis.md: not a model file: *; --save replaces only models"
run "$M" -q --steps 9 --log "$D/thesis.md"
ends '22. a text in place of the log' 1 "microgpt: $D/thesis.md: not a log of a run: *"
same '22. it is still there' 'thesis' "$(cat "$D/thesis.md")"
"$M" -q --steps 7 --samples 0 --save "$D/best" >"$D/out"
cp "$D/best" "$D/best.7"
run "$M" --steps 3 --samples 0 --save "$D/best"
ends '22. the model of another run' 0 "microgpt: note: $D/best: replacing another run's model, kept as $D/best~"
same_file '22. it is kept' "$D/best.7" "$D/best~"
same '22. and replaced' 3 "$(step_of "$D/best")"
run "$M" --resume "$D/best" --steps 5 --samples 0 --save "$D/best" --save-every 1
ends '22. a run that goes on replaces its own' 0 ''
same_file '22. and keeps no other' "$D/best.7" "$D/best~"
run "$M" --resume "$D/best" --steps 9 --samples 0 --save "$D/best.7" -q
ends '22. a run that goes on under another name' 0 ''
same '22. keeps what was there' 7 "$(step_of "$D/best.7~")"
echo mine >"$D/best~"
run "$M" -q --steps 3 --save "$D/best"
ends '22. a text in the place where it would be kept' 1 "microgpt: $D/best~: not a model file: *"
same '22. both are still there' '5 mine' "$(step_of "$D/best") $(cat "$D/best~")"
rm "$D/best~"
mkdir "$D/best~"
run "$M" -q --steps 3 --save "$D/best"
ends '22. a folder in the place where it would be kept' 1 "microgpt: $D/best~: not a regular file"
rmdir "$D/best~"
ln -s best.7 "$D/best~"
run "$M" -q --steps 3 --save "$D/best"
ends '22. a link in the place where it would be kept' 1 "microgpt: $D/best~: a symbolic link"
rm "$D/best~"
run "$LOSE" default sh -c "ulimit -f 8; exec '$M' -q --steps 9 --save '$D/best'"
same '22. a save that fails leaves the old one where it is' '1 5 none' \
    "$status $(step_of "$D/best") $([ -e "$D/best~" ] && echo some || echo none)"
name=$D/$(echo "$long" | cut -c 1-255)
"$M" -q --steps 3 --samples 0 --save "$name" >"$D/out"
run "$M" -q --steps 5 --save "$name"
ends "22. a name of 255 bytes, where another run's model cannot be kept" 1 "microgpt: $name~: File name too long"
same '22. and nothing is printed' '3 ' "$(step_of "$name") $(cat "$D/out")"
run sh -c "'$M' -q --steps 3 --save '$D/stream' >'$D/stream'"
ends '22. standard output as the model' 2 "$twice"
run sh -c "'$M' -q --steps 3 --save '$D/stream' 2>'$D/stream'"
same '22. standard error as the model' "2 1" "$status $(grep -c 'cannot be two of' "$D/stream")"
run sh -c "'$M' -q --steps 3 --log '$D/stream.csv' 2>'$D/stream.csv'"
same '22. standard error as the log' "2 1" "$status $(grep -c 'cannot be two of' "$D/stream.csv")"

# --- 23. The command that goes on
odd="$D/it's a model"
"$LOSE" default "$M" --steps 100000000 --save-every 100 --data "$D/names" -q --save "$odd" >"$D/out" 2>"$D/err" &
pid=$!
until_saved "$odd"
kill -INT $pid
in_time 9 $pid
step=$(step_of "$odd")
command=$(sed -n 's/.*; to continue: //p' "$D/err")
run sh -c "$command --steps $((step + 5)) --samples 0"
same '23. the command of the message goes on' "0 $((step + 5))" "$status $(step_of "$odd")"
run "$M" --resume "$odd" --samples 0 --data "$D/names"
ends '23. a run that is over says which steps continue it' 0 \
    "microgpt: note: $odd: this run has finished its $((step + 5)) steps; --steps $((step + 1005)) continues it"
newline=$(printf "a\n%%'\\\\\033 \342\200\256b\n.")
newline=$D/${newline%.}
run env STOP_AT=3 "$D/stop_at" -q --steps 20 --data "$D/names" --save "$newline"
command=$(sed -n 's/.*; to continue: //p' "$D/err")
run sh -c "$command --steps 7 --samples 0"
same '23. the same for a name with newlines' "0 7" "$status $(step_of "$newline")"

# --- 24. A log belongs to its run
"$M" -q --steps 10 --samples 0 --save "$D/l" --log "$D/l.csv" >"$D/out"
"$M" -q --steps 10 --samples 0 --seed 7 --save "$D/l7" --log "$D/l7.csv" >"$D/out"
cp "$D/l.csv" "$D/l10.csv"
refused="microgpt: $D/*.csv: not the log of the run in $D/l, up to step *"
run "$M" -q --resume "$D/l" --steps 20 --save "$D/l" --log "$D/l7.csv"
ends '24. the log of another run' 1 "$refused"
run "$M" -q --resume "$D/l" --steps 20 --samples 0 --save "$D/l20"
run "$M" -q --resume "$D/l20" --steps 30 --log "$D/l.csv"
ends '24. a log with a gap' 1 'microgpt: *l.csv: not the log of the run in *l20, up to step 20*'
sed '5d' "$D/l10.csv" >"$D/hole.csv"
run "$M" -q --resume "$D/l" --steps 20 --log "$D/hole.csv"
ends '24. a log with a hole' 1 "microgpt: $D/hole.csv:5: not the step,loss,lr of the next step"
same_file '24. the log is what it was' "$D/l10.csv" "$D/l.csv"
run "$M" -q --resume "$D/l20" --steps 30 --samples 0 --save "$D/l30" --log "$D/later.csv"
run "$M" -q --resume "$D/l30" --steps 40 --samples 0 --log "$D/later.csv"
same '24. a log that begins later goes on' '0 21 40' "$status $(sed -n '2p;$p' "$D/later.csv" | cut -d, -f1 | tr '\n' ' ' | sed 's/ $//')"
"$LOSE" default "$M" -q --steps 100000000 --save-every 100 --save "$D/lock" --log "$D/lock.csv" >"$D/out" 2>"$D/err" &
pid=$!
until_saved "$D/lock"
run "$M" -q --steps 9 --log "$D/lock.csv"
ends '24. a log that another run writes' 1 "microgpt: $D/lock.csv: another run is writing to it"
kill -TERM $pid
in_time 9 $pid
step=$(step_of "$D/lock")
same '24. which has a row for each step of its model' "$step" "$(sed 1d "$D/lock.csv" | wc -l | tr -d ' ')"
run "$M" -q --steps 9 --log "$D/lock.csv"
ends '24. and no other writes now' 0 ''

# --- 25. A signal during a save on the way: no further step
run env STOP_IN_SAVE=1 "$D/stop_at" -q --steps 20 --save "$D/way" --save-every 5
ends '25. a signal during a save on the way' 130 'microgpt: interrupted after step 5 of 20; saved in *'
resumable '25. the model is saved' "$D/way"

# --- 26. What comes during the run is not lost
mkdir "$D/come"
m=$D/come/m
set -- --samples 0 --data "$D/names" --save "$m"
beside="microgpt: $m: not saved under this name: File exists; the model is in $m.*.part"
run env APPEARS="$m" "$D/stop_at" "$@" --steps 5
ends '26. a text that comes while the model is written' 0 "microgpt: note: $m: another file was there at the end, kept as $m~"
same '26. both are there' '5 text 1' "$(step_of "$m") $(cat "$m~")"
run env APPEARS="$m" "$D/stop_at" -q "$@" --steps 7 --resume "$m"
ends '26. FILE~ is not replaced by what nobody has been told of' 1 "$beside"
resumable '26. the model is beside them' "${said##*the model is in }"
same '26. both texts are there' 'text 1 text 1 ' "$(cat "$m" "$m~" | tr '\n' ' ')"
rm -f "$D/come"/*
run env APPEARS="$m" "$D/stop_at" -q "$@" --steps 9 --save-every 3
ends '26. a FILE~ of the same run is not replaced' 1 "$beside"
same '26. both texts and the model are there' 'text 2 text 1 6' \
    "$(cat "$m" "$m~" | tr '\n' ' ')$(step_of "${said##*the model is in }")"
rm -f "$D/come"/*
"$M" -q "$@" --steps 3 >"$D/out"
cp "$m" "$m~"
run env APPEARS="$m" "$D/stop_at" "$@" --steps 4
ends "26. another run's model, which a text replaces meanwhile" 0 "microgpt: note: $m: replacing another run's model, kept as $m~"
same '26. the text is kept' '4 text 1' "$(step_of "$m") $(cat "$m~")"
i=0 lost=
while [ $i -lt 20 ]; do
    i=$((i + 1))
    rm -f "$D/come"/*
    "$M" -q "$@" --steps 20 >"$D/out" 2>&1 &
    "$M" -q "$@" --steps 21 >"$D/out" 2>&1 &
    wait
    there=$(for file in "$D/come"/*; do step_of "$file"; done | sort | tr '\n' ' ')
    [ "$there" = '20 21 ' ] || lost="$lost $there;"
done
same '26. two runs at the same time: no model is lost' '' "$lost"
rm -rf "$D/come"

# --- 27. No memory is left: no finished step is lost
tried=0 begun=0 lost=
case $CFLAGS in *-fsanitize*) limits= ;; *) limits=$(awk 'BEGIN { for (k = 22000; k < 42000; k += 1000) print k }') ;; esac
for limit in $limits; do
    rm -f "$D/memory"
    run sh -c "ulimit -v $limit; exec '$M' --n-layer 100 --steps 3 --samples 1 --save '$D/memory'"
    tried=$((tried + 1))
    grep -q step "$D/out" || continue
    begun=$((begun + 1))
    [ "$(step_of "$D/memory" 2>/dev/null)" -gt 0 ] 2>/dev/null || lost="$lost $limit: $said;"
done
same "27. $tried limits on memory: no run that has begun is lost" ' yes' "$lost $([ $begun -gt 0 ] || [ $tried -eq 0 ] && echo yes)"
same 'nothing unfinished is left' 0 "$(parts_in "$D")"
finish
