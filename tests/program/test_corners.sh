# Ways through the program that few inputs take: odd characters, logs that are continued, models from a pipe, screens of
# several kinds.
. tests/lib.sh

SIZES='--n-embd 4 --n-head 2 --block-size 8 --samples 0 -q'
printf 'anna\nbob\ncara\n' >"$T/names"
printf 'ab\nba\n' >"$T/names2"

# A log that is continued: rows of steps that will be done again are cut off, and so is a row that is not whole.
microgpt --data "$T/names" $SIZES --steps 4 --save "$T/m4" --log "$T/log4" >/dev/null
microgpt --data "$T/names" --resume "$T/m4" --steps 9 --samples 0 -q --log "$T/whole" --save "$T/m9" >/dev/null
tail -n +2 "$T/whole" >"$T/later"                       # steps 5 to 9, without the heading
cat "$T/log4" "$T/later" >"$T/expected"
for behind in '5,1.5,0.01
6,1.25,0.01
' '5,1.5,0.' '5' ''; do
    cp "$T/log4" "$T/log"
    printf '%s' "$behind" >>"$T/log"
    microgpt --data "$T/names" --resume "$T/m4" --steps 9 --samples 0 -q --log "$T/log" >/dev/null
    same_file "a log continued behind '$(echo "$behind" | tr '\n' ' ')'" "$T/expected" "$T/log"
done
printf 'step,loss' >"$T/log"
fails 1 '*log: not a log of a run: *' ./microgpt --data "$T/names" --resume "$T/m4" --steps 9 --log "$T/log"
same 'and what is no log is left alone' 'step,loss' "$(cat "$T/log")"
fails 1 '*plain: a model that cannot be resumed: it has no *' ./microgpt --resume tests/fuzz/corpus/model_file/plain --data "$T/names"

# Odd characters, from the text to the file and back, and as labels of a map.
printf 'a\001b\nc d\n\346\235\216e\314\201\nx\342\200\213y\n\302\205z\177\n"\\\n\342\202\254\342\201\240\342\200\252\n' >"$T/odd"
microgpt --data "$T/odd" $SIZES --steps 3 --save "$T/odd.model" >/dev/null
check 'a model of odd characters is saved and evaluated' microgpt eval "$T/odd.model" --data "$T/odd"
microgpt sample "$T/odd.model" --samples 9 --seed 3 >"$T/a" && microgpt sample "$T/odd.model" --samples 9 --seed 3 >"$T/b"
same_file 'and sampled' "$T/a" "$T/b"
for c in '\033' '\302\206' '\303\251' 'q'; do
    printf "a$c\\n" >"$T/unknown"
    fails 1 '*unknown:1: the model does not know the character *U+00*' ./microgpt eval "$T/odd.model" --data "$T/unknown"
done

# A model file that is no file but a pipe.
microgpt sample "$T/m9" --samples 5 >"$T/a"
if [ -e /dev/stdin ]; then
    cat "$T/m9" | microgpt sample /dev/stdin --samples 5 >"$T/b"
    same_file 'a model from a pipe' "$T/a" "$T/b"
    head -c 900 "$T/m9" | microgpt sample /dev/stdin >"$T/stdout" 2>"$T/stderr"
    same 'half a model from a pipe' 1 $?
    head -c "$(($(wc -c <"$T/m9") - 9))" "$T/m9" | microgpt sample /dev/stdin >"$T/stdout" 2>"$T/stderr"
    want=1 pattern='/dev/stdin: it ends within the data' fails_as_said 'a model from a pipe, without its last bytes' $?
    { cat "$T/m9" && echo; } | microgpt sample /dev/stdin >"$T/stdout" 2>"$T/stderr"
    want=1 pattern='/dev/stdin: extra bytes after the data' fails_as_said 'a model from a pipe, and more' $?
else
    skip 'a model from a pipe' 'there is no /dev/stdin'
fi
same 'a whole evaluation in so many documents' 'docs 2' "$(microgpt eval "$T/m9" --data "$T/names" --docs 2 | head -n 1)"

same 'and in fewer than were asked for' 'docs 3' "$(microgpt eval "$T/m9" --data "$T/names" --docs 9 | head -n 1)"
fails 1 '*huge: the loss is not finite' ./microgpt eval tests/fuzz/corpus/model_file/huge --data "$T/names2"
fails 2 '--n-embd 10: *' ./microgpt --resume "$T/m4" --data "$T/names" --n-embd 10

# Where a long output cannot be written, the run ends at once, and not only at its end. A log is full of rows, or it is
# time that they are written, whichever comes first.
if [ -w /dev/full ]; then
    for command in '--steps 1000000000' "sample $T/m9 --samples 1000000000" "--steps 1000000000 -q --log /dev/full" \
        "--steps 1000000000 -q --log /dev/full --n-embd 64 --n-layer 4"; do
        case $command in *log*) out=/dev/null pattern='/dev/full: *' ;; *) out=/dev/full pattern='standard output: *' ;; esac
        # shellcheck disable=SC2086
        $MICROGPT_WRAPPER ./microgpt $command >$out 2>"$T/stderr" </dev/null
        status=$? want=1 stdout_may=yes
        fails_as_said "a full disk in the middle: $command" $status
    done
else
    skip 'a full disk in the middle' 'there is no /dev/full'
fi
# Maps of attention on screens of every kind. Each must have a line for each position, and no line too wide.
for word in 'anna' 'a'; do
    for screen in 'TERM=dumb LC_ALL=C' 'TERM=xterm LC_ALL=C' 'TERM=xterm LC_ALL=C.UTF-8' 'COLUMNS=20 LC_ALL=C.UTF-8' \
        'COLUMNS=1000000' 'COLUMNS=x' 'TERM=linux LANG=en.utf8 LC_ALL=' 'TERM= LC_ALL=' 'LC_ALL= LC_CTYPE= LANG=' \
        'LC_ALL=en_US.utf-8' 'LC_ALL=en_US.UTF8' '-u TERM LC_ALL=C.UTF-8'; do
        # shellcheck disable=SC2086
        check "heads $word with $screen" env $screen $MICROGPT_WRAPPER ./microgpt heads "$T/m9" $word
    done
done
for word in 'c d' "$(printf 'a\001b')" "$(printf '\346\235\216e\314\201')" "$(printf 'x\342\200\213y')" "$(printf 'z\177')" \
    "$(printf '\342\202\254\342\201\240\342\200\252')"; do
    for screen in LC_ALL=C LC_ALL=C.UTF-8; do
        env $screen $MICROGPT_WRAPPER ./microgpt heads "$T/odd.model" "$word" >"$T/out" 2>&1
        same "heads, odd characters, $screen: nothing that a terminal would obey" '0 0' \
            "$? $(LC_ALL=C tr -d '\n -~\200-\377' <"$T/out" | wc -c | tr -d ' ')"
    done
done
: >"$T/empty"                                           # a terminal is made from what has an end, but is not /dev/null
if script -qec true "$T/typescript" >/dev/null 2>&1 <"$T/empty"; then
    for screen in 'TERM=xterm' 'TERM=xterm NO_COLOR=1' 'TERM=xterm NO_COLOR=' 'TERM=dumb' 'TERM=' '-u TERM' \
        'TERM=xterm COLUMNS=30'; do
        script -qec "env $screen LC_ALL=C.UTF-8 ./microgpt heads $T/m9 anna" "$T/typescript" >"$T/out" 2>&1 <"$T/empty"
        same "heads on a terminal with $screen" 0 $?
        script -qec "env $screen LC_ALL=C.UTF-8 ./microgpt heads $T/m9 --data $T/names" "$T/typescript" >"$T/out" 2>&1 <"$T/empty"
        same "heads of all documents on a terminal with $screen" 0 $?
    done
    # A run that would take hours, and one of days, shown as such and stopped.
    for steps in 300000000 9007199254740992; do
        for seconds in 0.5 2 8; do                      # a busy machine takes its time to draw
            script -qec "stty cols 100; env LC_ALL=C TERM=xterm timeout -s INT $seconds ./microgpt --steps $steps" \
                "$T/typescript" >"$T/out" 2>&1 <"$T/empty"
            drawn=$(tr '\r' '\n' <"$T/out" | grep -a -q -E '[0-9]+:[0-9]+:[0-9]+ left|[0-9]+ days left' && echo yes)
            [ -z "$drawn" ] || break
        done
        same "$steps steps on a terminal: the time left" yes "$drawn"
    done
else
    skip 'heads on a terminal' 'there is no script(1) that can make one'
fi
finish
