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
M=$D/microgpt
# shellcheck disable=SC2086
$CC $WARN -O1 -o "$D/lose" tests/faults/lose.c || exit 1
LOSE=$D/lose

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
    part=${said##* }
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
    echo old >"$D/sticky/m"
    chmod 666 "$D/sticky/m"
    run $someone "$M" -q --steps 9 --save "$D/sticky/m"
    stays_whole "1. a sticky folder over another user's file"
    same '1. the old file is untouched' old "$(cat "$D/sticky/m")"
    chown 65534 "$D/unlisted"
    chmod 300 "$D/unlisted"
    run $someone "$M" -q --steps 9 --save "$D/unlisted/m"
    ends '1. a folder that cannot be listed' 0 ''
    mkdir "$D/bind"
    : >"$D/bind/m"
    if mount --bind "$D/names" "$D/bind/m" 2>/dev/null; then
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
    "microgpt: standard output: No space left on device; interrupted after step * of 20000; saved in $D/full"
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
ends '3. a signal while a write waits' 130 "microgpt: interrupted after step * of 100000000; saved in $D/blocked"
resumable '3. the model is saved' "$D/blocked"
kill $sleeper 2>/dev/null
wait $sleeper 2>/dev/null

# --- 4. Ctrl-C, and the reader of the pipe goes first
run "$LOSE" leave "$M" --steps 100000000 --save "$D/tee"
ends '4. an interrupt that ends the reader, too' 130 \
    "microgpt: interrupted after step * of 100000000; saved in $D/tee"
resumable '4. the model is saved' "$D/tee"

# --- 5. A limit on the size of files
mkdir "$D/limit"
run "$LOSE" default sh -c "ulimit -f 8; exec '$M' -q --steps 9 --save '$D/limit/m'"
ends '5. a limit on the size of files' 1 "microgpt: $D/limit/m: not saved: File too large"
same '5. nothing is left behind' '' "$(ls "$D/limit")"

# --- 6, 7. SIGHUP; signals that were ignored stay ignored
for signal in HUP INT TERM; do
    "$LOSE" default "$M" -q --steps 100000000 --save-every 100 --save "$D/$signal" >"$D/out" 2>"$D/err" &
    pid=$!
    until_saved "$D/$signal"
    kill -$signal $pid
    in_time 9 $pid
    said=$(cat "$D/err")
    ends "6. SIG$signal" 130 "microgpt: interrupted after step * of 100000000; saved in $D/$signal"
    resumable '6. the model is saved' "$D/$signal"
    rm "$D/$signal"
    "$LOSE" default sh -c "trap '' $signal; exec '$M' -q --steps 100000000 --save-every 100 --save '$D/$signal'" \
        >"$D/out" 2>"$D/err" &
    pid=$!
    until_saved "$D/$signal"
    kill -$signal $pid
    sleep 0.3
    step=$(step_of "$D/$signal")
    sleep 0.3
    [ "$(step_of "$D/$signal")" -gt "$step" ] && status=on || status=stopped
    same "7. SIG$signal, ignored from the start, stays ignored" on "$status"
    if [ $signal = TERM ]; then kill -HUP $pid; else kill -TERM $pid; fi
    in_time 9 $pid
    same '7. and another signal ends it' 130 "$status"
done

# --- 8. Two signals at any moment
mkdir "$D/twice"
n=50
[ -z "$ALL" ] || n=1000
"$LOSE" twice $n "$D/twice" "$M" -q --n-embd 32 --steps 8 --samples 100 --save "$D/twice/m" --save-every 1 ||
    failures=$((failures + 1))

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

# --- 10. Few descriptors
run env ASAN_OPTIONS=detect_leaks=0 sh -c "ulimit -n 4; exec '$M' --steps 100000000 --save-every 10 --save '$D/few' --log '$D/few.csv'"
ends '10. a descriptor too few, found before the first step' 1 "microgpt: $D/few.csv: Too many open files"
same '10. and nothing is printed or written' ':' "$(cat "$D/out"):$(ls "$D" | grep '^few')"
run env ASAN_OPTIONS=detect_leaks=0 sh -c "ulimit -n 5; exec '$M' -q --steps 50 --save-every 10 --save '$D/few' --log '$D/few.csv'"
ends '10. as many as it takes' 0 ''
run env ASAN_OPTIONS=detect_leaks=0 sh -c "ulimit -n 4; exec '$M' -q --steps 50 --save-every 10 --save '$D/few'"
ends '10. without a log, one less' 0 ''

# --- 11. Two things at once
twice="*it cannot be two things at once*"
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
for file in autograd.c support/kernels.c; do
    run $CC -std=c11 -Ofast -c -o "$D/fast.o" $file
    case $status:$said in
    0:*) not_ok "16. -Ofast of $file" 'an error' 'none' ;;
    *'drops checks for infinities'*) ok "16. -Ofast of $file is refused with a sentence" ;;
    *) not_ok "16. -Ofast of $file" 'a sentence' "$(head -n 3 "$D/err")" ;;
    esac
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
same 'nothing unfinished is left' 0 "$(parts_in "$D")"
finish
