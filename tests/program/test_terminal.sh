# What people see on a terminal, and that nothing of it is seen elsewhere. A terminal is made by script(1).
# takes long
. tests/lib.sh
dir=$T
: >"$dir/empty"
esc=$(printf '\033')

if ! script -qec true "$dir/typescript" >"$dir/out" 2>&1 <"$dir/empty"; then
    skip "progress on a terminal" "there is no script(1) that can make one"
    finish
fi
on_terminal() { # COLUMNS ENVIRONMENT COMMAND: what the terminal gets, in $dir/seen
    script -qec "stty cols $1 rows 24; env LC_ALL=C.UTF-8 TERM=xterm NO_COLOR= $2 $3" "$dir/typescript" \
        >"$dir/seen" 2>&1 <"$dir/empty"
}
# How often progress was drawn, and how wide the widest of these lines was, in characters.
drawn() {
    tr '\r' '\n' <"$dir/seen" | grep -c "steps/s\|% *loss\|[0-9]/[0-9]* *loss\|^[0-9]*%"
}
widest() {
    tr '\r' '\n' <"$dir/seen" | grep -a "$esc\[J\$" | sed "s/$esc\[[0-9;]*[mJ]//g" |
        LC_ALL=C sed "s/$(printf '[\200-\277]')//g" |
        LC_ALL=C awk '{ n = length($0); if (n > m) m = n } END { print m + 0 }'
}
has() { # PATTERN
    LC_ALL=C grep -a -q "$1" "$dir/seen" && echo yes || echo no
}

# A run of some tenths of a second, so that progress is drawn. Built to count what is reached, it is much slower.
steps=20000
case ${CFLAGS:-} in *--coverage*) steps=1000 ;; *-fsanitize*) steps=4000 ;; esac      # these take their time anyway
long="./microgpt --steps $steps --samples 2"
for columns in 5 20 200 80; do
    on_terminal "$columns" "" "$long"
    same "$columns columns: progress is drawn" yes "$([ "$(drawn)" -gt 0 ] && echo yes || echo "no: $(cat "$dir/seen")")"
    same "$columns columns: it stays one line" yes \
        "$([ "$(widest)" -gt 0 ] && [ "$(widest)" -lt "$columns" ] && echo yes || echo "no: $(widest) columns")"
done
same "80 columns: the bar takes the rest of the line" 79 "$(widest)"
same "a bar, steps a second, the time left, colors" "yes yes yes yes" \
    "$(has '━') $(has ' steps/s') $(has ':[0-9][0-9] left') $(has "$esc\[36m")"
same "no step lines beside it" no "$(has '^step\|.step *1 /')"
same "a picture of the loss, six lines high" 6 "$(LC_ALL=C grep -a -c '^ *[0-9.]* *[┤│]' "$dir/seen")"
# Samples side by side: of each line, the cells of 19 columns.
names() { # FILE: "1 anir", one per line
    tr -d '\r' <"$1" | sed '1,/^---/d' | grep -a '^ *[0-9][0-9]* ' | awk '{
        for (i = 1; i <= length($0); i += 19) { cell = substr($0, i, 19); gsub(/^ *| *$/, "", cell); print cell } }'
}
for columns in 80 40 19; do
    on_terminal $columns "" "./microgpt"
    ./microgpt -q | sed -n 's/^sample *\([0-9]*\): /\1 /p' >"$dir/want"
    names "$dir/seen" >"$dir/saw"
    same_file "$columns columns: the samples that a pipe gets, too" "$dir/want" "$dir/saw"
    same "they are as many lines as it takes" "$(((20 + columns / 19 - 1) / (columns / 19)))" \
        "$(tr -d '\r' <"$dir/seen" | sed '1,/^---/d' | grep -c '^ *[0-9][0-9]* [a-z]')"
done
printf 'a somewhat longer line\n' >"$dir/longer"
on_terminal 80 "" "./microgpt --data $dir/longer --block-size 32 --steps 300 --temperature 0 --samples 3"
same "samples that are wider take two cells" \
    " 1 a somewhat longer line              2 a somewhat longer line| 3 a somewhat longer line" \
    "$(tr -d '\r' <"$dir/seen" | grep -a '^ [1-3] ' | paste -s -d '|' -)"
on_terminal 80 "" "./microgpt --log $dir/log.csv"
same "the mean loss of the last steps" "$(tail -n 100 "$dir/log.csv" | awk -F , '{ sum += $2 } END { printf "%.4f", sum / 100 }')" \
    "$(tr -d '\r' <"$dir/seen" | sed -n 's/^mean loss of the last 100 steps: //p')"
same "six of the twenty samples are in the training data" yes "$(has '^samples that are in the training data: 6 of 20')"
on_terminal 80 "" "./microgpt --steps 7 --samples 0 --log $dir/log.csv"
same "the mean loss of seven steps; no samples, so not a word about them" \
    "$(tail -n 7 "$dir/log.csv" | awk -F , '{ sum += $2 } END { printf "%.4f", sum / 7 }') no" \
    "$(tr -d '\r' <"$dir/seen" | sed -n 's/^mean loss of the last 7 steps: //p') $(has 'training data')"
on_terminal 80 "" "./microgpt --steps 0 --samples 1"
same "no steps: no loss" "no no" "$(has 'mean loss') $(has nan)"

head -n 60 data/names.txt >"$dir/small"
on_terminal 80 "" "./microgpt --data $dir/small --holdout 20 --steps 1000 --samples 0"
same "the loss held out: in the title, and some of twenty letters o" "yes yes" "$(has 's; o: held out') \
$(tr -d '\r' <"$dir/seen" | sed "s/$esc\[[0-9;]*m//g" | grep -a '┤\|│' | tr -cd o | wc -c | awk '{ print ($1 > 9 && $1 < 21 ? "yes" : $1) }')"
same "and how often each line is seen" yes "$(has '^1000 steps: each of the 40 documents about 25 times')"
on_terminal 80 "" "./microgpt --steps 1000 --samples 0"
same "or how many are" yes "$(has '^1000 steps: 1000 of 32178 documents')"
on_terminal 80 "" "sh -c './microgpt --steps 100000000 --samples 0 --save $dir/stopped & sleep 0.5; kill -TERM \$!; wait'"
same "an interrupt: the command that goes on stands on a line of its own" \
    "./microgpt --steps 100000000 --samples 0 --save $dir/stopped --resume $dir/stopped" \
    "$(tr -d '\r' <"$dir/seen" | sed -n '/; to continue:$/{n;p;}')"

# A run that is resumed: its picture begins where its log does.
flat="--lr 0 --samples 0 --log $dir/log.csv"
on_terminal 80 "" "./microgpt --steps 500 $flat"
tr -d '\r' <"$dir/seen" | grep -a '┤\|│\|^mean loss' >"$dir/want"
./microgpt --steps 300 $flat -q --save "$dir/model" >"$dir/out"
on_terminal 80 "" "./microgpt --resume $dir/model --steps 500 $flat"
same "a resumed run with its log: the whole curve" "yes yes" "$(has 'loss over 500 steps, the last 200 in ') $(has '^ *1 *500')"
tr -d '\r' <"$dir/seen" | grep -a '┤\|│\|^mean loss' >"$dir/saw"
same_file "its picture is that of the run in one piece" "$dir/want" "$dir/saw"
on_terminal 80 "" "./microgpt --resume $dir/model --steps 500 --samples 0"
same "without it: the rest" "yes yes" "$(has 'loss over 200 steps, in ') $(has '^ *301 *500')"
./microgpt --steps 300 $flat -q --save "$dir/model" >"$dir/out"
{ head -n 1 "$dir/log.csv"; sed -n '101,$p' "$dir/log.csv"; } >"$dir/late.csv"
on_terminal 80 "" "./microgpt --resume $dir/model --steps 500 --samples 0 --log $dir/late.csv"
same "a log that begins later: its part of the curve" yes "$(has 'loss over 401 steps, the last 200 in ')"
if [ -e /dev/stdout ]; then
    on_terminal 80 "" "./microgpt --steps 3 --samples 0 --log /dev/stdout"
    same "a log on the terminal: rows alone" "no yes" "$(has "$esc") $(has '^3,[0-9.]*,0.00')"
else
    skip "a log on the terminal" "there is no /dev/stdout"
fi

# A terminal that shrinks. What is on its screen is known to tmux.
screen() { tmux -L "microgpt-$$" "$@"; }
if command -v tmux >/dev/null 2>&1 && screen -f /dev/null new-session -d -x 100 -y 10 \
    "LC_ALL=C.UTF-8 NO_COLOR=1 ./microgpt --steps 100000000 --samples 0" 2>"$dir/err"; then
    shown() { screen capture-pane -p | grep -c 'loss\|#\|━\|─\|left'; }
    for columns in 60 33 100 20; do
        for i in 1 2 3 4 5 6 7 8 9; do sleep 0.2; [ "$(shown)" -eq 0 ] || break; done
        screen resize-window -x $columns -y 10
        for i in $(seq 40); do sleep 0.2; [ "$(shown)" -ne 1 ] || break; done
        same "resized to $columns columns: one line of progress, and no piece of another" 1 "$(shown)"
    done
    screen kill-server
else
    skip "a terminal that shrinks" "there is no tmux"
fi
on_terminal 80 NO_COLOR=1 "$long"
same "NO_COLOR: no colors, but a bar" "no yes" "$(has "$esc\[[0-9;]*m") $(has '━')"
on_terminal 80 LC_ALL=C "$long"
same "another locale: ASCII alone" "no yes" "$(has "$(printf '[\200-\377]')") $(has '##')"
for term in TERM=dumb TERM= 'env -u TERM'; do
    on_terminal 80 "$term" "./microgpt --steps 50 --samples 2"
    same "$term: no escapes, but step lines" "no yes" "$(has "$esc") $(has 'step *50 / *50')"
done
on_terminal 0 "" "$long"
same "a terminal that does not know its width: progress is drawn, for 80 columns" "yes yes" \
    "$([ "$(drawn)" -gt 0 ] && echo yes) $([ "$(widest)" -lt 80 ] && echo yes)"
on_terminal 80 "" "$long -q"
same "--quiet: no progress and no picture" "no no" "$(has "$esc") $(has '┤')"
on_terminal 80 "" "$long | cat"
same "standard output into a pipe: nothing beside it" "no no" "$(has "$esc") $(has '┤')"
on_terminal 80 "" "./microgpt 2>$dir/err"
same "standard error into a file: nothing in it" "no 0" "$(has "$esc") $(wc -c <"$dir/err" | tr -d ' ')"
./microgpt >"$dir/want" 2>"$dir/err"
on_terminal 80 "" "./microgpt >$dir/saw"
same "standard output into a file: its bytes are those of a pipe" yes "$(cmp -s "$dir/want" "$dir/saw" && echo yes)"
same "and progress is drawn" yes "$(has '┤')"
on_terminal 80 "" "sh -c './microgpt --steps 100000000 --lr 1e300; echo status \$?'"
same "a failure's line stands alone" "yes yes" "$(has 'microgpt: step [0-9]*: the loss is not finite') $(has 'status 1')"

# Few digits for people, all of them for programs.
microgpt -q --steps 5 --samples 0 --save "$dir/eval.safetensors" >"$dir/out" 2>&1
on_terminal 80 "" "./microgpt eval $dir/eval.safetensors --docs 20"
microgpt eval "$dir/eval.safetensors" --docs 20 >"$dir/all" 2>&1
same "eval on a terminal: the figures of a pipe, with six digits" "$(awk 'NR > 2 { $NF = sprintf("%.6g", $NF) } 1' "$dir/all")" \
    "$(tr -d '\r' <"$dir/seen")"
same "eval in a pipe: 17 digits" 3 "$(grep -c '\.[0-9]\{14,\}$' "$dir/all")"
finish
