# Never lose a model: what a user, a disk, a pipe or a terminal may do to a run that saves. The numbers are those of the
# table in tests/README.md. With ALL=1: all signals instead of two, and more of what is tried at random.
# takes long
# shellcheck disable=SC2010,SC2012,SC2086,SC2217
. tests/lib.sh
. tests/faults/helpers.sh

# The program beside names of its own, in a folder that everyone can enter: nothing that is shipped is at risk.
D=$(mktemp -d "${TMPDIR:-/tmp}/microgpt-lose.XXXXXX") && chmod 755 "$D" || exit 1
trap 'chmod -R u+rwx "$D"; rm -rf "$D"' EXIT
mkdir "$D/data"
head -n 100 data/names.txt >"$D/data/names.txt"
cp "$D/data/names.txt" "$D/names"
cp microgpt "$D/"
chmod -R a+rX "$D"
M=$D/microgpt
build_lose && build_stop_at -O1 && mv "$T/stop_at" "$D/" || exit 1
S=$D/stop_at
NEVER=100000000                                # steps that no run here comes to
long=$(awk 'BEGIN { for (i = 0; i < 900; i++) printf "1234567890" }')

# ends WHAT STATUS PATTERN COMMAND...: the command's status, and all that it says on standard error.
ends()
{
    ends_what=$1 ends_status=$2 ends_pattern=$3
    shift 3
    "$@" >"$D/out" 2>"$D/err" </dev/null
    ended "$ends_what" $? "$ends_status" "$ends_pattern"
}

# ended WHAT STATUS STATUS-EXPECTED PATTERN: the same of a command that is over.
ended()
{
    status=$2 said=$(sed "/^profiling:/d" "$D/err")    # without what gcov says, in a build that counts lines
    # shellcheck disable=SC2254
    case "$status:$said" in
    $3:$4) ok "$1" ;;
    *) not_ok "$1" "$3 and '$4'" "$status and '$said'" ;;
    esac
}

# resumable ROW MODEL: a whole model of at least one step, from which a run goes on.
resumable()
{
    step=$(step_of "$2")
    "$M" -q --resume "$2" --steps $((${step:-0} + 2)) --samples 0 >"$D/resumed" 2>&1
    resumed=$?
    if [ "${step:-0}" -gt 0 ] && [ $resumed -eq 0 ]; then
        ok "$1. the model can be resumed"
    else
        not_ok "$1. $2" 'a model that can be resumed' "step ${step:-none}, status $resumed: $(cat "$D/resumed")"
    fi
}

# saves MODEL WHAT STATUS PATTERN COMMAND...: so it ends, and leaves a model.
saves()
{
    saves_model=$1
    shift
    ends "$@"
    resumable "${1%%.*}" "$saves_model"
}

# stays_beside ROW: the message says where a whole model is, which could not take its name.
stays_beside()
{
    part=${said##*the model is in }
    resumable "$1" "$part"
    rm -f "$part"
}

# starts FILE COMMAND...: in the background, as $pid, with signals at their default; it has begun once FILE is there.
starts()
{
    begun=$1 tries=0
    shift
    rm -f "$begun"
    "$LOSE" default "$@" >"$D/out" 2>"$D/err" </dev/null &
    pid=$!
    while [ ! -e "$begun" ] && [ $tries -lt 1000 ]; do
        sleep 0.01
        tries=$((tries + 1))
    done
}

# stops SIGNAL WHAT STATUS PATTERN: a signal to $pid, which then ends in nine seconds.
stops()
{
    kill -"$1" $pid
    in_time 9
    ended "$2" "$status" "$3" "$4"
}

# in_time SECONDS: the status of $pid, or 137 if it does not end in so many seconds.
in_time()
{
    (sleep "$1" && kill -KILL $pid) 2>/dev/null &
    watchdog=$!
    wait $pid 2>/dev/null
    status=$?
    kill $watchdog 2>/dev/null
    wait $watchdog 2>/dev/null
}

# A pipe that is open for reading, and that nobody reads.
mkfifo "$D/fifo"
sleep 999 <"$D/fifo" &
sleeper=$!
exec 3>"$D/fifo"

# --- 1. A save that cannot take its final name
someone='setpriv --reuid=65534 --regid=65534 --clear-groups'
beside='microgpt: *: not saved under this name: *; the model is in *.part'
if [ "$(id -u)" = 0 ] && $someone "$M" --version >"$D/out" 2>&1; then
    mkdir "$D/sticky" "$D/unlisted" "$D/bind"
    chmod 1777 "$D/sticky"
    "$M" -q --steps 3 --save "$D/sticky/m" >"$D/out"
    cp "$D/sticky/m" "$D/sticky.old"
    chmod 666 "$D/sticky/m"
    ends "1. a sticky folder over another user's file" 1 "$beside" $someone "$M" -q --steps 9 --save "$D/sticky/m"
    stays_beside 1
    same_file '1. the old file is untouched' "$D/sticky.old" "$D/sticky/m"
    chown 65534 "$D/unlisted"
    chmod 300 "$D/unlisted"
    ends '1. a folder that cannot be listed' 0 '' $someone "$M" -q --steps 9 --save "$D/unlisted/m"
    : >"$D/bind/m"
    if mount --bind "$D/sticky.old" "$D/bind/m" 2>/dev/null; then
        ends '1. a file that is mounted' 1 "$beside" "$M" -q --steps 9 --save "$D/bind/m"
        umount "$D/bind/m"
        stays_beside 1
    else
        skip '1. a file that is mounted' 'nothing can be mounted here'
    fi
    : >"$D/append"
    if chattr +a "$D/append" 2>/dev/null; then
        ends '1. a file that only grows' 1 "$beside" "$M" -q --steps 9 --save "$D/append"
        chattr -a "$D/append"
        stays_beside 1
    else
        skip '1. a file that only grows' 'no such files here'
    fi
else
    someone=
    skip "1. a sticky folder over another user's file" 'it takes root, who can be someone else'
fi
ends '1. a header over the limit of the format' 1 "microgpt: $D/deep: too many layers for a model file" \
    timeout 60 "$M" -q --n-layer 70000 --n-embd 1 --n-head 1 --block-size 1 --steps $NEVER --save "$D/deep"
same '1. is refused before the first step' '' "$(cat "$D/out")"

# --- 2. Trouble with standard output or the log
no_space='No space left on device'
saves "$D/full" '2. standard output on a full disk' 1 \
    "microgpt: standard output: $no_space; interrupted after step * of 20000; saved in $D/full;*" \
    sh -c "exec '$M' --steps 20000 --save '$D/full' >/dev/full"
saves "$D/log-full" '2. a log on a full disk' 1 "microgpt: /dev/full: $no_space; interrupted after step *; saved in *" \
    "$M" -q --steps 300000 --save "$D/log-full" --log /dev/full
saves "$D/log-late" '2. a log that fails at the end' 1 "microgpt: /dev/full: $no_space" \
    "$M" -q --steps 9 --samples 0 --save "$D/log-late" --log /dev/full
set -- --n-embd 4 --n-head 1 --steps 9000
"$M" "$@" >"$D/plain"
{ "$LOSE" nonblock "$M" "$@" --save "$D/slow"; echo $? >"$D/status"; } | { sleep 1; cat >"$D/slow.out"; }
same '2. a slow reader of a pipe that does not wait' 0 "$(cat "$D/status")"
same_file '2. gets every byte' "$D/plain" "$D/slow.out"
# left COMMAND...: its reader leaves after a line.
left() { { "$LOSE" default "$@" 2>"$D/err"; echo $? >"$D/status"; } | head -n 1 >"$D/out"; }
left "$M" --steps 300000 --save "$D/head"
ended '2. a reader that leaves' "$(cat "$D/status")" 141 '*'
resumable 2 "$D/head"
left "$M" --steps 300000
ended '2. the same without --save, quietly' "$(cat "$D/status")" 141 ''
left sh -c "trap '' PIPE; exec '$M' --steps 300000 --save '$D/epipe'"
ended '2. where SIGPIPE is ignored it is an error' "$(cat "$D/status")" 1 'microgpt: standard output: Broken pipe;*'

# --- 3, 18. A signal while a write waits: to standard output, with SIGALRM ignored, and to standard error, too
stuck() # WHAT PATTERN STANDARD-ERROR COMMAND...
{
    stuck_what=$1 pattern=$2 file=$3
    shift 3
    : >"$D/err"
    "$LOSE" default "$@" --steps $NEVER --save "$D/stuck" >&3 2>"$file" &
    pid=$!
    sleep 1
    kill -TERM $pid
    in_time 6
    ended "$stuck_what" "$status" 130 "$pattern"
    resumable "${stuck_what%%.*}" "$D/stuck"
    rm -f "$D/stuck"
}
interrupted="microgpt: interrupted after step * of $NEVER; saved in $D"
stuck '3. a signal while a write waits' "$interrupted/stuck;*" "$D/err" "$M"
stuck '3. the same where SIGALRM is ignored' "$interrupted/stuck;*" "$D/err" sh -c "trap '' ALRM; exec '$M' \"\$@\"" sh
stuck '18. a signal while standard output and standard error are stuck' '' "$D/fifo" "$M"

# --- 4. Ctrl-C, and the reader of the pipe goes first
mkfifo "$D/tee"
"$LOSE" default "$M" --steps $NEVER --save "$D/teed" >"$D/tee" 2>"$D/err" &
pid=$!
{ head -c 1; kill -INT $pid; } <"$D/tee" >"$D/out"
in_time 9
ended '4. an interrupt that ends the reader, too' "$status" 130 "$interrupted/teed;*"
resumable 4 "$D/teed"

# --- 5. A limit on the size of files
mkdir "$D/limit"
ends '5. a limit on the size of files' 1 "microgpt: $D/limit/m: not saved: File too large" \
    "$LOSE" default sh -c "ulimit -f 8; exec '$M' -q --steps 9 --save '$D/limit/m'"
same '5. nothing is left behind' '' "$(ls "$D/limit")"

# --- 6, 7. Signals that ask to end; signals that were ignored stay ignored
m=$D/signaled
set -- -q --steps $NEVER --save-every 100 --save "$m"
for signal in INT TERM ${ALL:+HUP QUIT USR1 USR2 XCPU ALRM}; do
    starts "$m" "$M" "$@"
    stops $signal "6. SIG$signal" 130 "$interrupted/signaled;*"
    resumable 6 "$m"
    starts "$m" sh -c "trap '' $signal; exec '$M' \"\$@\"" sh "$@"
    kill -$signal $pid
    sleep 0.3
    step=$(step_of "$m") goes=stopped tries=0
    while [ $goes = stopped ] && [ $tries -lt 100 ]; do        # a busy machine takes its time
        sleep 0.1
        [ "$(step_of "$m")" -le "$step" ] || goes=on
        tries=$((tries + 1))
    done
    same "7. SIG$signal, ignored from the start, stays ignored" on $goes
    stops "$([ $signal = TERM ] && echo HUP || echo TERM)" '7. and another signal ends it' 130 '*'
done

# --- 8. Two signals at random moments of a run that saves after every step: each line of the list has two and two pauses
mkdir "$D/twice"
n=$([ -n "$ALL" ] && echo 1000 || echo 50)
awk -v n="$n" 'BEGIN { srand(); split("INT TERM HUP", name, " ")
    for (i = 0; i < n; i++) printf "%.3f %s %.3f %s\n", rand() / 10, name[1 + int(rand() * 3)],
        rand() < 0.3 ? 0 : rand() / 250, name[1 + int(rand() * 3)] }' >"$D/moments"
bad=
while read -r pause first between second; do
    starts "$D/twice/log" "$M" -q --n-embd 32 --steps 8 --samples 100 --save-every 1 --save "$D/twice/m" \
        --log "$D/twice/log"
    sleep "$pause"
    kill -"$first" $pid 2>/dev/null
    [ "$between" = 0.000 ] || sleep "$between"
    kill -"$second" $pid 2>/dev/null
    wait $pid
    status=$?
    case $status in 0 | 130) ;; *) bad="$bad status $status;" ;; esac
    [ ! -e "$D/twice/m" ] || "$M" sample "$D/twice/m" --samples 0 >"$D/out" 2>&1 || bad="$bad $(cat "$D/out");"
    for part in "$D/twice"/*.part; do
        [ ! -e "$part" ] || bad="$bad $part is left;"
    done
done <"$D/moments"
same "8. $n double signals: status 0 or 130, a whole file, nothing beside it" '' "$bad"

# timeout(1) sends its signal twice within milliseconds: to the program, then to its group.
n=$([ -n "$ALL" ] && echo 20 || echo 2) saved=0 i=0
if command -v timeout >/dev/null 2>&1; then
    while [ $i -lt "$n" ]; do
        i=$((i + 1))
        rm -f "$D/timed"
        "$LOSE" default timeout 0.3 "$M" --steps $NEVER --save "$D/timed" >&3 2>"$D/err"
        ! grep -q "saved in $D/timed;" "$D/err" || [ "$(step_of "$D/timed")" -eq 0 ] || saved=$((saved + 1))
    done
    same "8. $n runs under timeout, with a reader that is stuck" "$n" $saved
else
    skip '8. a run under timeout' 'there is no timeout(1)'
fi

# --- 9. Little stack
case $CFLAGS in
*-fsanitize* | *--coverage* | *-O0*) skip '9. 64 KB of stack' 'this build takes more' ;;
*)
    for arguments in "-q --steps 9 --save $D/stack --log $D/stack.csv" "-q --resume $D/stack --steps 12 --save $D/stack" \
        "sample $D/stack" "eval $D/stack" "heads $D/stack" "heads $D/stack anna" "heads $D/stack anna --tsv" --help; do
        ends "9. 64 KB of stack: microgpt ${arguments%% "$D"*}" 0 '*' \
            env -i sh -c 'ulimit -s 64; exec "$@"' sh "$M" $arguments
    done
    ;;
esac

# --- 10. Few descriptors. Whatever is open where the tests run, three are open here.
few() # N COMMAND...
{
    few_n=$1
    shift
    env ASAN_OPTIONS=detect_leaks=0 sh -c "ulimit -n $few_n; exec \"\$@\"" sh "$@" 3<&- 4<&- 5<&- 6<&- 7<&- 8<&- 9<&-
}
set -- "$M" -q --steps 50 --save-every 10 --save "$D/few"
ends '10. a descriptor too few' 1 "microgpt: $D/few.csv: Too many open files" \
    few 4 "$M" --steps $NEVER --save "$D/few" --log "$D/few.csv"
same '10. is found before the first step' ':' "$(cat "$D/out"):$(ls "$D" | grep '^few')"
ends '10. as many as it takes' 0 '' few 5 "$@" --log "$D/few.csv"
ends '10. without a log, one less' 0 '' few 4 "$@"

# --- 11. Two things at once. twice WHAT COMMAND...: is refused, and no file has changed.
twice()
{
    twice_what="11. $1"
    shift
    before=$(state)
    cd "$D/two" || exit 1
    ends "$twice_what" 2 '*: one file cannot be two of *' "$@"
    cd "$ROOT" || exit 1
    same "11. nothing is touched" "$before" "$(state)"
}
state()
{
    (cd "$D/two" && ls -l . data | awk '{ print $1, $5, $9, $10, $11 }' && cat x* data/*) 2>&1 | cksum
}
mkdir -p "$D/two/data"
cp "$D/names" "$D/two/data/names.txt"
cp "$M" "$D/two/"
m=./microgpt
twice 'the shipped names as the log' $m -q --steps 1 --log data/names.txt
twice 'the shipped names as the model' $m -q --steps 1 --save data/names.txt
twice 'standard input as the model' sh -c "$m -q --steps 1 --data - --save data/names.txt <data/names.txt"
twice 'standard input as the log' sh -c "$m -q --steps 1 --data - --log data/names.txt <data/names.txt"
twice 'a model and a log that are not there yet' $m -q --steps 1 --save ./x --log x
twice 'FILE~ of the model as the log, neither of which is there' $m -q --steps 5 --save x --log ./x~
twice 'FILE~ of the log as the model' $m -q --steps 5 --log x --save x~
ln -s x "$D/two/link"
twice 'a log that is a link to the model, which is not there yet' $m -q --steps 1 --save x --log link
ln -sf x~ "$D/two/link"
twice 'FILE~ of the model, to which a link leads, as the log' $m -q --steps 5 --save x --log link
rm "$D/two/link"
"$M" -q --steps 2 --samples 0 --save "$D/two/x~" >"$D/out"
for option in --log --resume --data; do
    [ $option != --data ] || cp "$D/names" "$D/two/x~"
    twice "FILE~ of the model as $option" $m -q --steps 5 --samples 0 --save x $option x~
done
echo old >"$D/two/x"
twice 'one file as both' $m -q --steps 1 --save x --log ./x
: >"$D/two/x"
twice 'standard output as the model' sh -c "$m -q --steps 3 --save x >x"
rm "$D/two/x"
: >"$D/two/x~"
twice 'standard output as FILE~ of the model' sh -c "$m -q --steps 5 --save x >x~"
for file in '--save x 2>x' '--log x 2>x' '--save x 2>x~'; do
    (cd "$D/two" && eval "$m -q --steps 3 $file")
    same "11. standard error: $file" "2 1" "$? $(cat "$D/two/${file##*>}" | grep -c 'cannot be two of')"
    rm -f "$D/two/x"
done

# --- 12. Scores that overflow when they are scaled
ends '12. scores that overflow when they are scaled' 1 'microgpt: *the scores are not finite*' \
    "$M" -q --lr 1e60 --steps 1 --temperature 1e-150 --samples 2

# --- 13. A flipped bit. The numbers of a file are behind eight bytes, which say how long its header is, and that.
"$M" -q --steps 9 --samples 0 --save "$D/whole" >"$D/out"
header=$(od -A n -t u8 -N 8 "$D/whole" | tr -d ' ')
flip() # BIT: $D/flipped
{
    at=$((8 + header + $1 / 8))
    byte=$(od -A n -t u1 -j $at -N 1 "$D/whole")
    cp "$D/whole" "$D/flipped"
    printf "\\$(printf %03o $((byte ^ 1 << $1 % 8)))" | dd of="$D/flipped" bs=1 seek=$at conv=notrunc 2>/dev/null
}
n=$([ -n "$ALL" ] && echo 1000 || echo 20) missed=
awk -v n="$n" -v bits=$((8 * ($(wc -c <"$D/whole") - 8 - header))) '
    BEGIN { srand(); for (i = 0; i < n; i++) print int(rand() * bits) }' >"$D/bits"
while read -r bit; do
    flip "$bit"
    "$M" -q --resume "$D/flipped" --steps 10 --samples 0 >"$D/out" 2>&1
    case $?:$(cat "$D/out") in
    1:"microgpt: $D/flipped: "*) ;;
    *) missed="$missed $bit" ;;
    esac
done <"$D/bits"
same "13. each of $n flipped bits is found" '' "$missed"
flip 1
ends '13. and the message says what to do if it was on purpose' 1 '*checksum*on purpose*remove checksum from the metadata' \
    "$M" sample "$D/flipped"
before=$(dd if="$D/flipped" bs=1 skip=8 count="$header" 2>/dev/null | sed 's/"checksum":.*//')
printf '"unknown_":' | dd of="$D/flipped" bs=1 seek=$((8 + ${#before})) conv=notrunc 2>/dev/null
ends '13. a file without a checksum loads as before' 0 '' "$M" -q --resume "$D/flipped" --steps 12

# --- 14. Mode, owner and group of the file that it replaces. (That it is private before, tests/faults/faults.c looks at.)
"$M" -q --steps 3 --save "$D/private" --data "$D/names" >"$D/out"
same '14. a new file gets the mode of a new file' '-rw-r--r--' "$(ls -l "$D/private" | cut -c1-10)"
chmod 640 "$D/private"
[ "$(id -u)" != 0 ] || chown 65534:65534 "$D/private"
owner=$(ls -ln "$D/private" | awk '{ print $1, $3, $4 }')
"$M" -q --steps 3 --save "$D/private" --data "$D/names" >"$D/out" 2>&1
same '14. another gets its mode, owner and group' "$owner" "$(ls -ln "$D/private" | awk '{ print $1, $3, $4 }')"
if [ -n "$someone" ]; then
    mkdir "$D/group"
    "$M" -q --steps 1 --save "$D/group/m" >"$D/out"
    chown 65534:0 "$D/group" "$D/group/m"
    chmod 660 "$D/group/m"
    ends '14. a group that cannot be kept' 0 '*' $someone "$M" -q --steps 3 --save "$D/group/m"
    same '14. is not replaced by another' '-rw-------' "$(ls -l "$D/group/m" | cut -c1-10)"
fi

# --- 15. Control characters of a hostile vocabulary, and one that turns the text round
printf 'a\033[31mb\033]0;x\007c\302\233\342\200\256d\n' >"$D/hostile"
"$M" -q --data "$D/hostile" --block-size 20 --steps 200 --samples 0 --save "$D/hostile.model" >"$D/out"
"$M" sample "$D/hostile.model" --samples 50 >"$D/piped"
same '15. into a pipe they stay bytes' yes "$(grep -q "$(printf '\033')" "$D/piped" && echo yes)"
if script -qec true "$D/typescript" >"$D/out" 2>&1 </dev/null; then
    script -qec "'$M' sample '$D/hostile.model' --samples 50" "$D/typescript" >"$D/terminal" 2>&1 </dev/null
    tr -d '\r' <"$D/terminal" >"$D/seen"
    turn=$(printf '\342\200\256')
    check '15. all of them came' grep -q "$turn" "$D/piped"
    sed "s/$(printf '[\001-\010\013-\037\177]')/?/g; s/$(printf '\302')$(printf '[\200-\237]')/?/g; s/$turn/?/g" \
        "$D/piped" >"$D/want"
    same_file '15. on a terminal they are made visible' "$D/want" "$D/seen"
else
    skip '15. on a terminal they are made visible' 'there is no script(1) that can make one'
fi

# --- 16. Fast math, an endless loss, long arguments and names
for file in autograd.c support/engine/softmax.c; do
    ends "16. -Ofast of $file is refused with a sentence" '*[!0]' '*drops checks for infinities*' \
        $CC -std=c11 -Ofast -c -o "$D/fast.o" $file
done
# Compilers that do not say what they were told: the fast exponential finds out by itself.
for flags in -funsafe-math-optimizations '-ffast-math -fno-finite-math-only'; do
    for compiler in ${ALL:+gcc clang}; do
        if ! command -v $compiler >/dev/null 2>&1; then
            skip "16. $compiler $flags" "there is no $compiler"
        elif $compiler -std=c11 -O2 $flags -DAUTOGRAD_LANES -o "$D/unsafe" $SOURCES -lm 2>"$D/err"; then
            "$D/unsafe" --data data/names.txt >"$D/out"
            same_file "16. $compiler $flags: the output is right" tests/reference/microgpt-names2018.stdout "$D/out"
        else
            check "16. $compiler $flags: the compiler stops with a sentence" grep 'changes sums and drops checks' "$D/err"
        fi
    done
done
echo a >"$D/a"                                        # one token, with a loss between 709 and 745
"$M" -q --data "$D/a" --block-size 1 --n-embd 1 --n-head 1 --init-std 8 --seed 84 --steps 0 --save "$D/wild" >"$D/out"
ends '16. eval prints no inf' 1 'microgpt: *: the perplexity is not finite' "$M" eval "$D/wild" --data "$D/a"
same '16. but nothing' '' "$(cat "$D/out")"
ends '16. an argument of 9 KB leaves room for the reason' 2 'microgpt: --steps 1234567890* ... *: not a whole number' \
    "$M" --steps "${long}x"
ends '16. an argument with control characters' 2 'microgpt: a???b: no such command*' "$M" "$(printf 'a\302\233\033b')"
ends '16. a file name of 9 KB, too' 1 'microgpt: *: File name too long' "$M" sample "$D/$long"
for name in "$(echo "$long" | cut -c 1-250)" "$(awk 'BEGIN { for (i = 0; i < 83; i++) printf "\342\202\254" }')"; do
    saves "$D/$name" "16. a file name of 250 bytes: $(echo "$name" | cut -c 1-9)..." 0 '' \
        "$M" -q --steps 9 --save "$D/$name"
done

# --- 17. A loss that is not finite
not_finite='microgpt: step 2: the loss is not finite *'
set -- "$M" -q --lr 1e9 --steps 9 --samples 0
ends '17. a loss that is not finite' 1 "$not_finite; saved in $D/inf, after step 1 of 9" "$@" --save "$D/inf"
same '17. the model of the step before is saved' 1 "$(step_of "$D/inf")"
ends '17. it can be resumed, and that fails as before' 1 "$not_finite*help" "$M" -q --resume "$D/inf" --steps 9
ends '17. without --save, not a word of it' 1 "$not_finite*help" "$@"

# --- 19. A limit on the time of the processor, which sends its signal every second
saves "$D/time" '19. a limit on time' 130 "$interrupted/time;*" \
    "$LOSE" default sh -c "ulimit -St 1; exec '$M' -q --steps $NEVER --save '$D/time'"

# --- 20. Names that others foresee
mkdir "$D/planted"
saves "$D/planted/m" '20. a hundred files that others left there' 0 '' sh -c "i=0
    while [ \$i -lt 100 ]; do : >'$D/planted/m.'\$\$-\$i.part; i=\$((i + 1)); done
    exec '$M' -q --steps 9 --save '$D/planted/m'"
rm -r "$D/planted"

# --- 21. No room for the model: it goes elsewhere
mkdir "$D/disk" "$D/here" "$D/tmp"
if [ "$(id -u)" = 0 ] && mount -t tmpfs -o size=128k tmpfs "$D/disk" 2>/dev/null; then
    "$M" -q --steps 300 --save "$D/disk/m" >"$D/out"
    cp "$D/disk/m" "$D/disk.old"
    # elsewhere WHAT PLACE FOLDER COMMAND...: the model is in PLACE, where the run starts in FOLDER.
    elsewhere()
    {
        elsewhere_what=$1 place=$2
        cd "$3" || exit 1
        shift 3
        ends "21. $elsewhere_what" 1 "microgpt: $D/disk/m: not saved: $no_space; the model is in $place/m.*.part" \
            "$@" "$M" -q --resume "$D/disk/m" --steps 600 --save "$D/disk/m"
        stays_beside 21
        cd "$ROOT" || exit 1
    }
    elsewhere 'a full disk: the model is in the working directory' . "$D/here" env TMPDIR="$D/tmp"
    same_file '21. the old one is untouched' "$D/disk.old" "$D/disk/m"
    if [ -n "$someone" ]; then
        chmod 777 "$D/disk" "$D/tmp" && chmod 666 "$D/disk/m" && chown -R 65534 "$D/disk" "$D/tmp"
        elsewhere 'and a folder that takes nothing: in TMPDIR' "$D/tmp" "$D/here" $someone env TMPDIR="$D/tmp"
    fi
    for folder in '' "$D/none"; do
        elsewhere "and TMPDIR is '$folder': in /tmp" /tmp "$D/disk" env TMPDIR="$folder"
    done
    umount "$D/disk"
else
    skip '21. a full disk' 'no file system can be mounted here'
fi

# --- 22. What is there is not lost
echo thesis >"$D/thesis.md"
ends '22. a text in place of the model' 1 "microgpt: $D/thesis.md: not a model file: *; --save replaces only models" \
    "$M" -q --steps 9 --save "$D/thesis.md"
ends '22. a text in place of the log' 1 "microgpt: $D/thesis.md: not a log of a run: *" \
    "$M" -q --steps 9 --log "$D/thesis.md"
same '22. it is still there' 'thesis' "$(cat "$D/thesis.md")"
best=$D/best
"$M" -q --steps 7 --samples 0 --save "$best" >"$D/out"
cp "$best" "$best.7"
ends '22. the model of another run' 0 "microgpt: note: $best: replacing another run's model, kept as $best~" \
    "$M" --steps 3 --samples 0 --save "$best"
same_file '22. it is kept' "$best.7" "$best~"
same '22. and replaced' 3 "$(step_of "$best")"
ends '22. a run that goes on replaces its own' 0 '' \
    "$M" --resume "$best" --steps 5 --samples 0 --save "$best" --save-every 1
same_file '22. and keeps no other' "$best.7" "$best~"
ends '22. a run that goes on under another name' 0 '' "$M" --resume "$best" --steps 9 --samples 0 --save "$best.7" -q
same '22. keeps what was there' 7 "$(step_of "$best.7~")"
echo mine >"$best~"
ends '22. a text in the place where it would be kept' 1 "microgpt: $best~: not a model file: *" \
    "$M" -q --steps 3 --save "$best"
same '22. both are still there' '5 mine' "$(step_of "$best") $(cat "$best~")"
rm "$best~" && mkdir "$best~"
ends '22. a folder in the place where it would be kept' 1 "microgpt: $best~: not a regular file" \
    "$M" -q --steps 3 --save "$best"
rmdir "$best~" && ln -s best.7 "$best~"
ends '22. a link in the place where it would be kept' 1 "microgpt: $best~: a symbolic link" "$M" -q --steps 3 --save "$best"
rm "$best~"
ends '22. a save that fails' 1 '*' "$LOSE" default sh -c "ulimit -f 8; exec '$M' -q --steps 9 --save '$best'"
same '22. leaves the old one where it is' '5 none' "$(step_of "$best") $([ -e "$best~" ] && echo some || echo none)"
name=$D/$(echo "$long" | cut -c 1-255)
"$M" -q --steps 3 --samples 0 --save "$name" >"$D/out"
ends "22. a name of 255 bytes, where another run's model cannot be kept" 1 "microgpt: $name~: File name too long" \
    "$M" -q --steps 5 --save "$name"
same '22. and nothing is printed' '3 ' "$(step_of "$name") $(cat "$D/out")"

# --- 23. The command that goes on, as the message has it
# goes_on WHAT MODEL STEPS
goes_on()
{
    command=$(sed -n 's/.*; to continue: //p' "$D/err")
    sh -c "$command --steps $3 --samples 0" >"$D/out" 2>&1
    same "$1" "0 $3" "$? $(step_of "$2")"
}
odd="$D/it's a model"
starts "$odd" "$M" --steps $NEVER --save-every 100 --data "$D/names" -q --save "$odd"
stops INT '23. an interrupted run' 130 '*; to continue: *'
step=$(step_of "$odd")
goes_on '23. the command of the message goes on' "$odd" $((step + 5))
ends '23. a run that is over says which steps continue it' 0 \
    "microgpt: note: $odd: this run has finished its $((step + 5)) steps; --steps $((step + 1005)) continues it" \
    "$M" --resume "$odd" --samples 0 --data "$D/names"
newline=$(printf "a\n%%'\\\\\033 \342\200\256b\n.")
newline=$D/${newline%.}
ends '23. a name with newlines' 130 '*; to continue: *' env STOP_AT=3 "$S" -q --steps 20 --data "$D/names" --save "$newline"
goes_on '23. the command of the message goes on' "$newline" 7

# --- 24. A log belongs to its run
log=$D/l.csv
"$M" -q --steps 10 --samples 0 --save "$D/l" --log "$log" >"$D/out"
"$M" -q --steps 10 --samples 0 --seed 7 --log "$D/l7.csv" >"$D/out"
cp "$log" "$D/l10.csv"
refused="microgpt: $D/*.csv: not the log of the run in $D/l*, up to step *"
ends '24. the log of another run' 1 "$refused" "$M" -q --resume "$D/l" --steps 20 --save "$D/l" --log "$D/l7.csv"
"$M" -q --resume "$D/l" --steps 20 --samples 0 --save "$D/l20" >"$D/out"
ends '24. a log with a gap' 1 "$refused" "$M" -q --resume "$D/l20" --steps 30 --log "$log"
sed '5d' "$D/l10.csv" >"$D/hole.csv"
ends '24. a log with a hole' 1 "microgpt: $D/hole.csv:5: not the step,loss,lr of the next step" \
    "$M" -q --resume "$D/l" --steps 20 --log "$D/hole.csv"
same_file '24. the log is what it was' "$D/l10.csv" "$log"
"$M" -q --resume "$D/l20" --steps 30 --samples 0 --save "$D/l30" --log "$D/later.csv" >"$D/out"
ends '24. a log that begins later goes on' 0 '' "$M" -q --resume "$D/l30" --steps 40 --samples 0 --log "$D/later.csv"
same '24. up to its end' '21 40' "$(sed -n '2p;$p' "$D/later.csv" | cut -d, -f1 | paste -s -d ' ' -)"
starts "$D/lock" "$M" -q --steps $NEVER --save-every 100 --save "$D/lock" --log "$D/lock.csv"
"$M" -q --steps 9 --log "$D/lock.csv" >"$D/second" 2>&1
same '24. a log that another run writes' "1 microgpt: $D/lock.csv: another run is writing to it" "$? $(cat "$D/second")"
stops TERM '24. a run with a log' 130 '*'
same '24. which has a row for each step of its model' "$(step_of "$D/lock")" "$(sed 1d "$D/lock.csv" | wc -l | tr -d ' ')"
ends '24. and no other writes now' 0 '' "$M" -q --steps 9 --log "$D/lock.csv"

# --- 25. A signal during a save on the way: no further step
saves "$D/way" '25. a signal during a save on the way' 130 'microgpt: interrupted after step 5 of 20; saved in *' \
    env STOP_IN_SAVE=1 "$S" -q --steps 20 --save "$D/way" --save-every 5

# --- 26. What comes during the run is not lost
mkdir "$D/come"
m=$D/come/m
set -- --samples 0 --data "$D/names" --save "$m"
ends '26. a text that comes while the model is written' 0 \
    "microgpt: note: $m: another file was there at the end, kept as $m~" \
    env APPEARS="$m" "$S" "$@" --steps 5
same '26. both are there' '5 text 1' "$(step_of "$m") $(cat "$m~")"
ends '26. FILE~ is not replaced by what nobody has been told of' 1 "$beside" \
    env APPEARS="$m" "$S" -q "$@" --steps 7 --resume "$m"
stays_beside 26
same '26. both texts are there' 'text 1 text 1 ' "$(cat "$m" "$m~" | tr '\n' ' ')"
rm -f "$D/come"/*
ends '26. a FILE~ of the same run is not replaced' 1 "$beside" env APPEARS="$m" "$S" -q "$@" --steps 9 --save-every 3
same '26. both texts and the model are there' 'text 2 text 1 6' \
    "$(cat "$m" "$m~" | tr '\n' ' ')$(step_of "${said##*the model is in }")"
rm -f "$D/come"/*
"$M" -q "$@" --steps 3 >"$D/out"
cp "$m" "$m~"
ends "26. another run's model, which a text replaces meanwhile" 0 \
    "microgpt: note: $m: replacing another run's model, kept as $m~" \
    env APPEARS="$m" "$S" "$@" --steps 4
same '26. the text is kept' '4 text 1' "$(step_of "$m") $(cat "$m~")"
i=0 lost=
while [ $i -lt 20 ]; do
    i=$((i + 1))
    rm -f "$D/come"/*
    "$M" -q "$@" --steps 20 >"$D/out" 2>&1 &
    pid=$!
    "$M" -q "$@" --steps 21 >"$D/out" 2>&1
    wait $pid
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
    sh -c "ulimit -v $limit; exec '$M' --n-layer 100 --steps 3 --samples 1 --save '$D/memory'" >"$D/out" 2>"$D/err"
    tried=$((tried + 1))
    grep -q step "$D/out" || continue
    begun=$((begun + 1))
    [ "$(step_of "$D/memory")" -gt 0 ] 2>/dev/null || lost="$lost $limit: $(cat "$D/err");"
done
same "27. $tried limits on memory: no run that has begun is lost" ' yes' \
    "$lost $([ $begun -gt 0 ] || [ $tried -eq 0 ] && echo yes)"
kill $sleeper 2>/dev/null
same 'nothing unfinished is left' '' "$(find "$D" -name '*.part')"
finish
