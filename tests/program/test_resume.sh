# A run that was stopped goes on as if nothing had happened: the same model file, log and output, after any step, for all
# kinds of runs. What is resumed must be a run, with its documents and its log.
# shellcheck disable=SC2086
. tests/lib.sh
M=$ROOT/microgpt
S=$T/stop_at
before_exit=
case $CFLAGS in *--coverage*) before_exit=-DBEFORE_EXIT=__gcov_dump ;; esac
# shellcheck disable=SC2046
$CC $CFLAGS -O1 $before_exit -o "$S" tests/faults/stop_at.c $(rest_of "$BUILD/objects" tests/faults/stop_at.c) -lm || exit 1
ln -s "$ROOT/data" "$T/data"
cd "$T" || exit 1
head -n 100 data/names.txt >100.txt
head -n 270 data/names.txt >list
head -n 30 data/names.txt >>list                # some lines held out are also training lines

# run COMMAND...: its exit status in $status, its standard error, without notes, in $said.
run()
{
    "$@" >stdout 2>stderr
    status=$?
    said=$(grep -v '^microgpt: note: ' stderr)
}
rows() { tail -n 1 "$1" | cut -d, -f1; }
# What a run prints that has so many steps behind it.
remaining() { tr '\r' '\n' <"$1" | awk -v done="$2" '!/^step/ || $2 > done'; }

# goes_on 'STEP...' 'DATA OPTION' OPTION...: a run, stopped after each of these steps and resumed; twice, with a stop between.
goes_on()
{
    steps=$1 data=$2
    shift 2
    rm -f whole whole.csv
    "$S" $data "$@" --save whole --log whole.csv >whole.out 2>stderr
    for step in $steps; do
        rm -f part part.csv
        STOP_AT=$step run "$S" $data "$@" --save part --log part.csv
        same "$*: stopped after step $step: status, message, rows of the log" \
            "130:microgpt: interrupted after step $step of $(rows whole.csv); saved in part; to continue: \
$S${data:+ $data} $* --save part --log part.csv --resume part:$step" "$status:$said:$(rows part.csv)"
        STOP_AT=$((step + 1)) run "$S" $data --resume part --save part --log part.csv
        done=$(rows part.csv)
        run "$S" $data --resume part --save part --log part.csv
        remaining whole.out "$done" >want
        tr '\r' '\n' <stdout >saw
        differ=
        cmp -s whole part || differ="model "
        cmp -s whole.csv part.csv || differ="${differ}log "
        cmp -s want saw || differ="${differ}output "
        same "and resumed: status, message, what differs" "0::" "$status:$said:$differ"
    done
}
goes_on '1 137 999 1000' '' --seed 42
goes_on '123' '--data 100.txt' --recipe lesson --steps 300 --seed 18446744073709551615 --n-layer 2 --n-embd 12 --n-head 3 \
    --block-size 5 --lr 0.0123456789 --beta1 0.8 --activation relu
for batch in 2 5 9; do
    goes_on '1 23 60' '' --steps 60 --n-layer 2 --block-size 9 --batch $batch
done
goes_on '1 5 37 95 99 100' '--data list' --holdout 60 --steps 100
# An odd number of parameters leaves the second of a pair of random numbers for later: it is kept, too.
goes_on 4 '--data 100.txt' --n-embd 1 --n-head 1 --block-size 3 --lr 0.30000000000000004 --steps 9
same "an odd number of parameters" 1 "$(($(sed -n 's/^num params: //p' whole.out) % 2))"
same "a number of 17 digits is kept to the last one" 1 "$(grep -a -c '"train.lr":"0.30000000000000004"' whole)"

# --- signals at other moments
"$M" --save a >a.out
"$M" -q --steps 20 --save e >stdout
STOP_BY_TERM=1 STOP_AT=9 run "$S" -q --save d
saved="130:microgpt: interrupted after step 9 of 1000; saved in d"
same "SIGTERM does the same" "$saved" "$status:${said%; to continue: *}"
STOP_AT=9 run "$S" -q
same "without --save, an interrupt says that nothing was saved" "130:1" "$status:$(grep -c 'not saved' stderr)"
# Two signals: within a second they are one wish; a later one ends the run at once, unless it comes again by itself.
again="130:microgpt: interrupted again, after more than a second: ended"
for case in "STOP_TWICE=1|$saved" "STOP_TWICE=1 STOP_LATER=1|$again" "STOP_TWICE=1 STOP_LATER=1 STOP_BY_XCPU=1|$saved"; do
    rm -f d
    run env STOP_AT=9 ${case%%|*} "$S" -q --save d
    same "${case%%|*}" "${case#*|}" "$status:${said%; to continue: *}"
done
cp e d
STOP_IN_SAVE=2 STOP_LATER=1 run "$S" -q --steps 30 --save d
same "two signals during a save, more than a second apart" "$again" "$status:$said"
same_file "leave the file that was there" e d
same "and nothing beside it" "" "$(find . -name '*.part')"

# --- every N steps
"$M" -q --save b --save-every 300 >stdout
same_file "saves on the way do not change the last one" a b
rm -f b
"$M" -q --samples 0 --save b --log b.csv --steps 500 >stdout
"$M" --resume b --steps 550 --save b2 --log b.csv >stdout
same "--steps goes on to another end, and the log with it, each step once; the schedule is over the new total" \
    "550 550 $(awk 'BEGIN { printf "%.10g", 0.01 * (1 - 549 / 550) }')" \
    "$(tr '\r' '\n' <stdout | sed -n 's/^step *\([0-9]*\) .*/\1/p' | tail -n 1) $(
    sed 1d b.csv | cut -d, -f1 | sort -n | uniq | wc -l | tr -d ' ') $(tail -n 1 b.csv | awk -F, '{ printf "%.10g", $3 }')"
"$M" -q --steps 0 --save zero >stdout
"$M" -q --resume zero --steps 1000 --save zero >stdout
same_file "a run of no steps can be resumed, too" a zero

# --- a log that is continued: rows of steps that are done again are cut off, and so is a row that is not whole
printf 'anna\nbob\ncara\n' >three.txt
set -- --data three.txt --samples 0 -q
"$M" "$@" --n-embd 4 --n-head 2 --block-size 8 --steps 4 --save m4 --log log4 >stdout
"$M" "$@" --resume m4 --steps 9 --log later >stdout
{ cat log4; sed 1d later; } >want
for behind in '5,1.5,0.01|6,1.25,0.01|' '5,1.5,0.' '5' ''; do
    { cat log4; printf %s "$behind" | tr '|' '\n'; } >log
    "$M" "$@" --resume m4 --steps 9 --log log >stdout
    same_file "a log continued behind '$behind'" want log
done
: >log
"$M" "$@" --resume m4 --steps 9 --log log >stdout
same_file "an empty log" later log
run "$M" -q --resume a --log /dev/null --steps 1002 --samples 0
same "a log that is no file" "0:" "$status:$said"

# --- resumes that are refused
stdout_may=yes
printf 'step,loss' >log
fails 1 "log: not a log of a run: *" "$M" "$@" --resume m4 --steps 9 --log log
same "what is no log is left alone" 'step,loss' "$(cat log)"
cp m4 kept
for option in "--n-embd 32" "--n-layer 2" "--n-head 4" "--block-size 16" "--activation relu2" "--seed 1" "--init-std 1" \
    "--recipe lesson" "--batch 4" "--holdout 1" "--steps 1"; do
    fails 2 "$option: *m4*" "$M" --data three.txt --resume m4 $option --save m4
done
fails 2 "--n-embd 10: *" "$M" --resume m4 --data three.txt --n-embd 10
sort -r three.txt >reversed.txt
fails 1 "reversed.txt: not the documents that m4 was trained on: three.txt" "$M" --resume m4 --data reversed.txt --save m4
fails 1 "the shipped names: not the documents that m4 was trained on: three.txt" "$M" --resume m4
fails 1 "*plain: a model that cannot be resumed: it has no *" "$M" "$@" --resume "$ROOT/tests/fuzz/corpus/model_file/plain"
fails 1 "100.txt: *" "$M" --resume a --log 100.txt
fails 2 "--save-every*" "$M" --save-every 5
fails 2 "--save-every 0*" "$M" --save-every 0 --save m4
same "a log that is none, and a model: as they were" "100 same" \
    "$(wc -l <100.txt | tr -d ' ') $(cmp -s kept m4 && echo same)"
check "options that are as they were may be given" "$M" --resume a --n-embd 16 --seed 42 --recipe microgpt --batch 1
finish
