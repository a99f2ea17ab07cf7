# What people see on a terminal, and that nothing of it is seen elsewhere. A terminal is made by script(1).
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
    tr '\r' '\n' <"$dir/seen" | grep -a "$esc\[K" | sed "s/$esc\[[0-9;]*[mK]//g" |
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
for columns in 5 10 20 40 80 200; do
    on_terminal $columns "" "$long"
    same "$columns columns: progress is drawn" yes "$([ "$(drawn)" -gt 0 ] && echo yes || echo "no: $(cat "$dir/seen")")"
    same "$columns columns: it stays one line" yes \
        "$([ "$(widest)" -lt $columns ] && echo yes || echo "no: $(widest) columns")"
done
on_terminal 80 "" "$long"
same "a bar" yes "$(has '━')"
same "steps a second" yes "$(has ' steps/s')"
same "the time left" yes "$(has ':[0-9][0-9] left')"
same "colors" yes "$(has "$esc\[36m")"
same "no step lines beside it" no "$(has '^step\|.step *1 /')"
same "a picture of the loss, six lines high" 6 "$(LC_ALL=C grep -a -c '^ *[0-9.]* *[┤│]' "$dir/seen")"
same "the samples" yes "$(has 'sample  2: ')"
$long | tr '\r' '\n' | grep -v '^step' >"$dir/want"
tr -d '\r' <"$dir/seen" | grep -a '^num\|^vocab\|^sample\|^---' >"$dir/saw"
grep '^num\|^vocab\|^sample\|^---' "$dir/want" >"$dir/want2"
same "the samples that a pipe gets, too" yes "$(cmp -s "$dir/want2" "$dir/saw" && echo yes || cat "$dir/saw")"
on_terminal 80 NO_COLOR=1 "$long"
same "NO_COLOR: no colors, but a bar" "no yes" "$(has "$esc\[[0-9;]*m") $(has '━')"
on_terminal 80 LC_ALL=C "$long"
same "another locale: ASCII alone" "no yes" "$(has "$(printf '[\200-\377]')") $(has '##')"
on_terminal 80 TERM=dumb "./microgpt --steps 50 --samples 2"
same "TERM=dumb: no escapes, but step lines" "no yes" "$(has "$esc") $(has 'step *50 / *50')"
for term in TERM= 'env -u TERM'; do
    on_terminal 80 "$term" "./microgpt --steps 50 --samples 2"
    same "$term: no escapes, but step lines" "no yes" "$(has "$esc") $(has 'step *50 / *50')"
done
on_terminal 0 "" "$long"
same "a terminal that does not know its width: progress is drawn, for 80 columns" "yes yes" \
    "$([ "$(drawn)" -gt 0 ] && echo yes) $([ "$(widest)" -lt 80 ] && echo yes)"
on_terminal 80 "" "./microgpt --steps 10 --samples 0"
same "ten steps: a picture of ten dots across" "yes 6" \
    "$(has '^ *1 *10') $(LC_ALL=C grep -a -c '^ *[0-9.]* *[┤│]' "$dir/seen")"
on_terminal 80 "" "./microgpt --steps 1 --samples 0"
same "one step: no picture" no "$(has '┤')"
echo anna >"$dir/one"
on_terminal 80 LC_ALL=C "./microgpt --data $dir/one --steps 100 --lr 0 --samples 0"
same "a loss that stays: a level line" yes "$(has '\.\{64\}')"
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
finish
