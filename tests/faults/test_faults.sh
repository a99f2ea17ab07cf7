# Everything that can fail is made to fail: each allocation, read, write, open, flush and rename of a small
# train-save-load-sample run, one at a time. The program must end with status 1 and one line that names what failed,
# without a leak, a crash or a damaged file; short and interrupted calls it must survive with the right result.
# Without ALL=1: in fewer runs, the first and the last call of each kind, and without the sanitizers.
# takes long
. tests/lib.sh

. tests/faults/helpers.sh

injected=0
flags='-O1 -g'
case $CFLAGS in *--coverage*) flags=$CFLAGS SANITIZE= ;; esac
# shellcheck disable=SC2086
if ! build_with_faults $flags $SANITIZE && ! build_with_faults $flags; then
    skip 'fault injection' "$CC cannot link with --wrap: $(head -n 1 "$T/build.log")"
    finish
fi

mkdir "$T/data"
cp -r data/names.txt data/page "$T/data/"           # where the program looks for what it comes with
printf 'anna\nbob\n\nc\303\251line\ndora\n' >"$T/names.txt"
printf 'an\nbo\nc\303\251\nli\ned\nra\n' >"$T/short.txt"          # the same characters
SIZES='--n-embd 4 --n-head 2 --block-size 7 --steps 3'          # none of the names is cut

# scenario NAME: the command line of one run of the program, in $W, where nothing else is.
W=$T/work
scenario()
{
    scenario=$1 FAULT_TERMINAL=
    case $1 in *' by line') FAULT_TERMINAL=yes ;; esac
    case ${1% by line} in
    train) set -- --data "$T/names.txt" $SIZES --samples 2 ;;
    stdin) set -- --data - $SIZES --samples 2 --recipe lesson ;;
    shipped) set -- --steps 0 --samples 1 ;;
    save) set -- --data "$T/names.txt" $SIZES --samples 2 --save "$W/new" --save-every 2 --log "$W/log" -q ;;
    keep) set -- --data "$T/names.txt" $SIZES --samples 2 --save "$W/model" -q ;;
    resume) set -- --data "$T/names.txt" --steps 5 --samples 2 --resume "$W/model" --save "$W/model" --log "$W/log" ;;
    new) set -- --data "$T/names.txt" $SIZES --samples 0 --save "$W/new" ;;
    # The buffer of the file is full within the header; within the parameters, Adam's memory, and the last tensor.
    layers) set -- --data "$T/names.txt" --n-layer 50 --n-embd 1 --n-head 1 --steps 1 --samples 0 --save "$W/new" ;;
    large) set -- --data "$T/short.txt" --n-embd 44 --n-head 1 --block-size 3 --steps 1 --samples 0 --save "$W/new" ;;
    sample) set -- sample "$W/model" --samples 3 --prompt a ;;
    fresh) set -- sample "$W/model" --new --data "$T/names.txt" --samples 3 --temperature 9 ;;
    holdout) set -- --data "$T/names.txt" $SIZES --samples 1 --holdout 2 --log "$W/log" -q ;;
    eval) set -- eval "$W/model" --data "$T/names.txt" ;;
    heads) set -- heads "$W/model" --data "$T/names.txt" ;;
    heads-tsv) set -- heads "$W/model" --data "$T/names.txt" --tsv ;;
    word) set -- heads "$W/model" anna ;;
    word-tsv) set -- heads "$W/model" anna --tsv ;;
    page) set -- page "$W/model" --log "$W/log" anna ;;
    help) set -- --help ;;
    esac
    (cd "$W" && exec "$T/microgpt" "$@" <"$T/names.txt" >"$T/stdout" 2>"$T/stderr")
    status=$?
}

# The state before a scenario: an old model file and its log, if the program has them.
prepare()
{
    rm -rf "$W" "$T/happened"
    mkdir "$W"
    [ ! -f "$T/old.model" ] || cp -p "$T/old.model" "$W/model"
    [ ! -f "$T/old.log" ] || cp -p "$T/old.log" "$W/log"
}

# What is wrong with the run just made, if anything; with it must have $1: survived, failed or either.
verdict()
{
    trouble=
    lines=$(wc -l <"$T/stderr")
    if [ "$status" -gt 1 ]; then
        trouble="status $status: $(head -n 3 "$T/stderr" | tr '\n' ' ')"
    elif [ ! -f "$T/happened" ]; then
        trouble='no fault injected'
    elif [ "$status" -eq 0 ] && [ "$1" = failed ]; then
        trouble='status 0'
    elif [ "$status" -eq 1 ] && [ "$1" = survived ]; then
        trouble="status 1: $(cat "$T/stderr")"
    elif [ "$status" -eq 1 ] && [ "$lines" -ne 1 ]; then
        trouble="$lines lines on standard error: $(head -n 3 "$T/stderr" | tr '\n' ' ')"
    elif [ "$status" -eq 0 ] && ! cmp -s "$T/right.stdout" "$T/stdout"; then
        trouble='another output than without the fault'
    elif [ "$status" -eq 0 ] && ! diff -r "$T/right" "$W" >"$T/diff" 2>&1; then
        trouble="other files than without the fault: $(head -n 1 "$T/diff")"
    elif [ "$status" -eq 1 ]; then
        named_and_undamaged
    fi
}

# The line says what failed; the model file is whole, an old or a new one; nothing is left beside it.
named_and_undamaged()
{
    # shellcheck disable=SC2254
    case "$call $(cat "$T/stderr")" in
    *alloc' microgpt: '*'not enough memory'*) [ "$(cat "$T/happened")" -eq 0 ] || saved_as_far_as_it_came ;;
    *alloc' '*) trouble="a line that does not name memory: $(cat "$T/stderr")" ;;
    *' microgpt: '*names.txt': '* | *' microgpt: '*page/*': '* | *' microgpt: '*"$W/"*': '* | *' microgpt: standard '*'put: '*) ;;
    *) trouble="a line that does not name the file: $(cat "$T/stderr")" ;;
    esac
    for found in "$W"/*; do
        case $found in
        "$W/model" | "$W/new" | "$W/log" | "$W/*") ;;
        "$W/model~") cmp -s "$found" "$T/old.model" || trouble="$found is damaged" ;;
        "$W/log~") cmp -s "$found" "$T/old.log" || trouble="$found is damaged" ;;
        *.part) stays_whole "$found" ;;
        *) trouble="$found is left over" ;;
        esac
    done
    for found in "$W/model" "$W/new"; do
        if [ -f "$found" ] && ! cmp -s "$found" "$T/old.model"; then
            FAULT='' "$T/microgpt" sample "$found" --samples 1 >/dev/null 2>&1 || trouble='a damaged model file'
        fi
    done
    [ ! -f "$T/old.model" ] || [ -f "$W/model" ] || trouble='no model file'
    [ "$call" != rename ] || [ ! -e "$W/model~" ] || trouble='a model is kept that is still there'
    if [ -f "$T/old.log" ] && [ ! -f "$W/log" ]; then
        [ -n "$FAULT_STAYS" ] && [ -f "$W/log~" ] || trouble='no log'
    fi
}

# Memory ran out after some steps: with --save, all of them are in the model file.
saved_as_far_as_it_came()
{
    case ${scenario% by line} in
    save | new | layers | large) found=$W/new ;;
    keep | resume) found=$W/model ;;
    *) return ;;
    esac
    step=$(step_of "$found")
    [ "${step:-0}" -ge "$(cat "$T/happened")" ] ||
        trouble="a model of step ${step:-none}, after step $(cat "$T/happened"): $(cat "$T/stderr")"
}

# A file that could not take its name, or found no room there, is whole, and the line says where; no other is left.
stays_whole()
{
    if ! grep -q "the model is in .*/${1##*/}\$" "$T/stderr"; then
        trouble="$1 is left over"
    elif ! FAULT='' "$T/microgpt" sample "$1" --samples 1 >/dev/null 2>&1; then
        trouble="$1 is damaged"
    fi
}

# fault SCENARIO CALL ERROR WHAT-MUST-HAPPEN N: every one of N calls in turn, or the first and the last.
fault()
{
    call=$2
    i=1 stride=1 which="each of $5"
    if [ -z "$ALL" ] && [ "$5" -gt 2 ]; then
        stride=$(($5 - 1)) which="the first and the last of $5"
        [ "$5" -lt 300 ] || stride=$(($5 / 9)) which="nine of $5"
    fi
    while [ $i -le "$5" ]; do
        prepare
        FAULT="$2 $i $3"
        scenario "$1"
        FAULT=
        injected=$((injected + 1))
        verdict "$4"
        if [ -n "$trouble" ]; then
            not_ok "$1: $2 $i of $5 with $3" "$4" "$trouble"
            return
        fi
        i=$((i + stride))
    done
    ok "$1: $2 with $3, $which: $4"
}

FAULT='' FAULT_TERMINAL='' FAULT_STAYS='' FAULT_NO_LINKS='' FAULT_HAPPENED=$T/happened
"$T/microgpt" --data "$T/names.txt" $SIZES --steps 2 -q --samples 0 --save "$T/old.model" --log "$T/old.log" \
    >/dev/null || not_ok 'a model file to begin with' 'status 0' $?
scenarios='train save keep resume sample fresh holdout eval heads page'
[ -z "$ALL" ] || scenarios="$scenarios help stdin shipped word heads-tsv word-tsv"

# count SCENARIO: the run without a fault, its result and its calls.
count()
{
    prepare
    FAULT_COUNTS=$T/counts
    export FAULT_COUNTS
    scenario "$1"
    unset FAULT_COUNTS
    cp "$T/stdout" "$T/right.stdout"
    rm -rf "$T/right"
    cp -r "$W" "$T/right"
    [ "$status" -eq 0 ] || not_ok "$1" 'status 0 without a fault' "$status: $(head -n 1 "$T/stderr")"
    return "$status"
}

calls_of() { sed -n "s/^$1 //p" "$T/counts"; }

# try SCENARIO CALL VERDICT KIND...: each of these faults. With a +, it stays.
try()
{
    tried=$1 faulty=$2 verdict=$3 n=$(calls_of "$2")
    shift 3
    for kind; do
        FAULT_STAYS=${kind##*[!+]} times=$n
        [ "$kind" != DRIBBLE ] || [ "$n" -eq 0 ] || times=1
        [ "$times" -eq 0 ] || fault "$tried" "$faulty" "${kind%+}" "$verdict" "$times"
    done
    FAULT_STAYS=
}

# What is tried with each call, and how the program must take it.
cat >"$T/faults" <<'END'
malloc failed ENOMEM ENOMEM+
calloc failed ENOMEM ENOMEM+
realloc failed ENOMEM ENOMEM+
vsnprintf either ENOMEM
pthread_create failed EIO
open failed EMFILE
open survived EINTR
read failed EIO
read survived EINTR EAGAIN SHORT DRIBBLE
write failed ENOSPC EIO
write survived EINTR EAGAIN SHORT DRIBBLE
close either EIO
fsync failed EIO
fsync survived EINTR
rename failed EBUSY EPERM
link survived EPERM
ftruncate failed EIO
lseek failed EIO
fchmod survived EPERM
fchown survived EPERM
poll survived EINTR ENOMEM
sigprocmask survived EINVAL
open_folder survived EACCES
fsync_folder survived EIO
END
for s in $scenarios; do
    count "$s" || continue
    while read -r call verdict kinds; do
        # shellcheck disable=SC2086
        try "$s" "$call" "$verdict" $kinds
    done <"$T/faults"
done
same 'every call that is counted is tried' \
    "$(sed 1d "$T/counts" | cut -d ' ' -f 1 | sort)" "$(cut -d ' ' -f 1 "$T/faults" | sort -u)"

# Once more where every line is a write of its own, so that each thing said is one that fails.
for s in $scenarios; do
    case $s in stdin | shipped | save | keep | resume | page) continue ;; esac
    count "$s by line" && try "$s by line" write failed EIO
done

# Where a model is saved: a name that is new, numbers that cross the end of the buffer in all places, a folder that
# cannot be flushed, names that are taken; a disk that is gone from some call on; and one without hard links.
for s in new layers large; do
    count "$s" && try "$s" write failed ENOSPC
done
if count save; then
    try save fsync_folder survived EINVAL
    try save open either EEXIST
    try save open failed EEXIST+
    for call in write fsync rename; do try save $call failed EIO+; done
fi
FAULT_NO_LINKS=yes
for s in keep save; do
    if count $s; then
        try $s rename failed EBUSY
        try $s fsync_folder survived EIO
    fi
done
ok "$injected faults injected, one at a time"
finish
