# `microgpt heads` as people use it: words, files of documents, narrow screens, pipes and terminals; and the sweep.
# takes long
. tests/lib.sh
export LC_ALL=C.UTF-8 TERM=xterm
unset NO_COLOR COLUMNS
model=$T/names.safetensors
esc=$(printf '\033')
tab=$(printf '\t')

microgpt train -q --samples 0 --save "$model" >"$T/train.log" || not_ok "a model" "one" "none"
printf '%s\n' 'zoë' 'josé' '山田' '山本太郎' 'ana maria' 'z€😀' '한국' 'naïve' 'ab' >"$T/unicode.txt"
printf 'jose\314\201\ntab\tin\303\240\nab\302\233c\033d\nx\342\200\256y\n' >>"$T/unicode.txt"
unicode=$T/unicode.safetensors
microgpt train -q --samples 0 --steps 50 --block-size 12 --data "$T/unicode.txt" --save "$unicode" >"$T/train.log" ||
    not_ok "a Unicode model" "one" "none"

heads() { microgpt heads "$@" >"$T/seen" 2>"$T/stderr" </dev/null; }
has() { LC_ALL=C grep -a -q -e "$1" "$T/seen" && echo yes || echo no; }
# The widest line of $T/seen, in characters.
widest() {
    tr -d '\r' <"$T/seen" | LC_ALL=C sed "s/$esc\[[0-9;]*m//g; s/$(printf '[\200-\277]')//g" |
        LC_ALL=C awk '{ n = length($0); if (n > m) m = n } END { print m + 0 }'
}
# The first map of $T/seen, without the spaces at the ends of lines.
first_map() { awk '/^layer/ && NR > 1 || /^$/ { exit } { sub(/ *$/, ""); print }' "$T/seen"; }
entries() { tail -n +2 "$T/seen" | wc -l | tr -d ' '; }

# Words that cannot be shown.
# Characters that would turn or join the text around them, the first and the last of each kind, are not written; their
# neighbors are.
steers='\342\200\213 \342\200\217 \342\200\252 \342\200\256 \342\201\240 \342\201\257' beside='\342\200\220 \342\200\247'
for character in $steers $beside; do
    case $beside in *"$character"*) want=yes ;; *) want=no ;; esac
    # shellcheck disable=SC2059
    character=$(printf "$character")
    echo "a${character}b" >"$T/steers.txt"
    microgpt --data "$T/steers.txt" --steps 2 --samples 0 -q --save "$T/steers.safetensors" >"$T/out"
    LC_ALL=C.UTF-8 microgpt heads "$T/steers.safetensors" "a${character}b" >"$T/seen"
    same "$(printf %s "$character" | od -An -tx1) in a word: written" $want \
        "$(grep -q -F "$character" "$T/seen" && echo yes || echo no)"
done
fails 2 "the word 3lla: the model does not know the character 3" microgpt heads "$model" 3lla
fails 2 "the word Maria: the model does not know the character M" microgpt heads "$model" Maria
fails 2 "the word ana maria: the model does not know the character  " microgpt heads "$model" 'ana maria'
fails 2 "the word zoë: the model does not know the character ë" microgpt heads "$model" 'zoë'
what="a word that is not UTF-8"
fails 2 "the word: not valid UTF-8" microgpt heads "$model" "$(printf 'a\377b')"
what="a word with a newline: still one line"
fails 2 "the word *: the model does not know the character *" microgpt heads "$model" "$(printf 'a\nb')"
fails 2 "the word *: too long: the model's block has room for 15 characters" microgpt heads "$model" \
    abcdefghijklmnop
fails 2 "the word *: too long: the model's block has room for 11 characters" microgpt heads "$unicode" \
    '山山山山山山山山山山山山'
fails 2 "two: one argument too many; see microgpt heads --help" microgpt heads "$model" one two
fails 2 "heads: an argument is missing; see microgpt heads --help" microgpt heads
fails 1 "*nowhere: No such file or directory" microgpt heads "$T/nowhere"
fails 1 "*nowhere: No such file or directory" microgpt heads "$T/nowhere" maria
fails 1 "*names.txt: *" microgpt heads data/names.txt maria
fails 2 "--docs 0: out of range: 1 to *" microgpt heads "$model" --docs 0
fails 2 "--docs -1: *" microgpt heads "$model" --docs -1
fails 2 "--docs needs a value: N" microgpt heads "$model" --docs
fails 2 "--samples: no such option; see microgpt heads --help" microgpt heads "$model" --samples 3
fails 1 "*unicode.txt*the model does not know the character*" microgpt heads "$model" --data "$T/unicode.txt"
: >"$T/empty.txt"
fails 1 "*empty.txt: *" microgpt heads "$model" --data "$T/empty.txt"
if [ -w /dev/full ]; then
    full() { microgpt heads "$model" "$@" >/dev/full; }
    fails 1 "standard output: *" full maria
    fails 1 "standard output: *" full --docs 5
    fails 1 "standard output: *" full --docs 5 --tsv
fi

# Words that can.
heads "$model" abcdefghijklmno --tsv
same "a word that just fits: 4 maps of 16 positions" 544 "$(entries)"
heads "$model" "" --tsv
same "an empty word: the start alone, which looks at itself" "0${tab}0${tab}0${tab}0${tab}1" "$(sed -n 2p "$T/seen")"
same "an empty word: one entry a head" 4 "$(entries)"
heads "$model" ""
same "an empty word: its map" "layer 0 head 0 layer 0 head 1 layer 0 head 2 layer 0 head 3|^|^ 100 ^ 100 ^ 100 ^ 100" \
    "$(sed -n '1p;2p;3p' "$T/seen" | sed 's/  */ /g; s/^ //; s/ $//; s/^^ ^ ^ ^$/^/' | paste -s -d '|' -)"
heads "$model" --tsv -- maria
same "an option before the word, and --" 84 "$(entries)"

# Unicode: a character is one position, whatever its bytes and its width.
for word in 'zoë' '山田' '山本太郎' 'ana maria' 'z€😀' '한국' "$(printf 'jose\314\201')"; do
    heads "$unicode" "$word" --tsv
    n=$(($(printf %s "$word" | LC_ALL=C sed "s/$(printf '[\200-\277]')//g" | wc -c) + 1))
    same "$word: $n positions" "$((4 * n * (n + 1) / 2))" "$(entries)"
    heads "$unicode" "$word"
    first_map >"$T/map"
    same "$word: a row a position" $((n + 2)) "$(wc -l <"$T/map" | tr -d ' ')"
done
# The labels of the rows of the first map.
rows() { sed -n '3,$p' "$T/seen" | sed '/^$/,$d' | awk '{ printf "%s", $1 }'; }
heads "$unicode" 'ana maria'
same "a space is made visible" '^ana␣maria' "$(rows)"
heads "$unicode" "$(printf 'tab\tin')"
same "so is a tab" '^tab␣in' "$(rows)"
TERM=dumb heads "$unicode" 'ana maria'
same "in ASCII, where it must be" '^ana_maria' "$(rows)"
heads "$unicode" "$(printf 'jose\314\201')"
same "a combining mark has a place of its own" "^jose◌$(printf '\314\201')" "$(rows)"
heads "$unicode" "$(printf 'b\302\233c\033d')"
same "control characters do not reach the screen" '^b?c?d no no' "$(rows) $(has "$esc") $(has "$(printf '\302\233')")"
heads "$unicode" "$(printf 'x\342\200\256y')"
same "nor what turns the text around" no "$(has "$(printf '\342\200\256')")"
COLUMNS=200 heads "$unicode" '山田'
same "wide characters: every row of a map begins at the same column" "    ^ 山 田 ;^  100;山 ;田 " \
    "$(sed -n '2,5p' "$T/seen" | sed '1s/\(田 \).*/\1/; 2s/100.*/100/; 3,4s/ .*/ /' | paste -s -d ';' -)"

# The maps say what the figures say.
for word in maria alexandra o bartholomew; do
    heads "$model" "$word" --tsv
    awk -F '\t' 'NR > 1 && $2 == 0 { row[$3] = row[$3] > $5 ? row[$3] : $5; if ($3 > n) n = $3 }
        END { for (i = 0; i <= n; i++) printf row[i] < 0.995 ? "%.0f%%\n" : "100%%\n", 100 * row[i] }' "$T/seen" >"$T/want"
    TERM=dumb COLUMNS=34 heads "$model" "$word"
    first_map | tail -n +3 | grep -o ' 100%*\|[0-9][0-9]*%' | sed 's/^ 100.*/100%/' >"$T/saw"
    same_file "$word: the strongest of each row carries its percentage" "$T/want" "$T/saw"
    [ "$word" != o ] || continue
    TERM=dumb COLUMNS=18 heads "$model" "$word"
    first_map | tail -n +3 | sed 's/.* //' >"$T/saw"
    same_file "$word: on a narrow screen too" "$T/want" "$T/saw"
done
heads "$model" maria --tsv
awk -F '\t' 'NR > 1 && $2 == 0 { if ($3 != query) { printf "\n"; query = $3 }
    printf "%s", ($5 < 0.05 ? "." : $5 >= 0.95 ? 9 : int($5 * 10 + 0.5)) } END { printf "\n" }' "$T/seen" >"$T/want"
TERM=dumb COLUMNS=18 heads "$model" maria
first_map | tail -n +3 | sed 's/^[^ ]* *//; s/ .*//' >"$T/saw"
same_file "digits are tenths" "$T/want" "$T/saw"

# The votes, for people: those of the figures, a line for each head, for the two strongest units of a layer, for the rest.
two=$T/two.safetensors
microgpt train -q --samples 0 --n-layer 2 --save "$two" >"$T/train.log" || not_ok "two layers" "a model" "none"
for word in maria o ''; do
    heads "$two" "$word" --votes --tsv
    ids=$(printf %s "$word" | tr a-z '\001-\032' | od -An -v -tu1 | awk '{ for (i = 1; i <= NF; i++) print $i - 1 }')
    awk -F '\t' -v ids="$ids" '
        BEGIN { id[split(ids, id, "\n") + 1] = 26; position = layer = "none" }
        function size(x) { return x < 0 ? -x : x }
        function end_of_layer() { if (a != "") print a; if (b != "") print b; a = b = "" }
        function line() { if (head != "") print sum; head = ""; sum = 0 }
        function end_of_position() { if (position != "none") { line(); end_of_layer(); print rest } rest = 0 }
        NR == 1 || $2 != id[$1 + 1] { next }
        $1 != position { end_of_position(); position = $1; layer = "none" }
        $3 == "self" { print $7; next }
        $4 != layer { line(); end_of_layer(); layer = $4 }
        $3 == "head" { if ($5 != head) { line(); head = $5 } sum += $7; next }
        { line(); x = $7 }
        x == 0 { next }
        a == "" || size(x) > size(a) { y = a; a = x; x = y }
        x != "" && (b == "" || size(x) > size(b)) { y = b; b = x; x = y }
        { rest += x }
        END { end_of_position() }' "$T/seen" | awk '{ x = sprintf("%+.2f", $1); print x }' >"$T/want"
    heads "$two" "$word" --votes
    grep '^layer\|^the letter\|^everything' "$T/seen" | grep -o ' [+-][0-9]*\.[0-9][0-9]' | tr -d ' ' >"$T/saw"
    same_file "the votes in '$word': those of --tsv" "$T/want" "$T/saw"
done
heads "$model" maria --votes
same "the votes in maria: a title for each position" "^ m,^m a,^ma r,^mar i,^mari a,^maria the end" \
    "$(sed -n 's/^after \(.*\) comes \([^:]*\): [0-9]*%.*; votes for .*: [+-][0-9.]*$/\1 \2/p' "$T/seen" | paste -s -d , -)"
awk '/^after/ { if (n && (sum - want > 0.06 || want - sum > 0.06)) bad++; want = $NF; sum = 0; n++ }
    /^layer|^the letter|^everything/ { for (i = NF; i > 1; i--) if ($i ~ /^[+-][0-9.]+$/) { sum += $i; break } }
    END { exit bad || n != 6 }' "$T/seen"
same "and what is shown adds up to what the title says" 0 $?
same "the letters the heads look at most" "$(heads "$model" maria --tsv
    awk -F '\t' 'NR > 1 && $2 == 0 { if (!($3 in top) || $5 > top[$3]) { top[$3] = $5; at[$3] = $4 } }
        END { for (i = 0; i < 6; i++) printf "%s", substr("^maria", at[i] + 1, 1) }' "$T/seen")" \
    "$(heads "$model" maria --votes; awk '/^layer 0 head 0/ { printf "%s", $5 }' "$T/seen")"
for columns in 40 60 80; do
    COLUMNS=$columns heads "$two" abcdefghijklmno --votes
    check "$columns columns: the votes are within ($(widest))" [ "$(widest)" -le "$columns" ]
    COLUMNS=$columns heads "$unicode" '山本太郎' --votes
    check "$columns columns: the votes of wide characters are within ($(widest))" [ "$(widest)" -le "$columns" ]
done
TERM=dumb heads "$model" maria --votes
same "TERM=dumb: votes in ASCII alone" "no yes" "$(has "$(printf '[\200-\377]')") $(has '##')"
fails 2 "--votes needs a word" microgpt heads "$model" --votes

# A changed gpt(): heads that look at the last four positions, which are labeled as such; and one with something else.
# shellcheck disable=SC2086
changed() { # NAME SED-SCRIPT
    sed "$2" microgpt.c >"$T/microgpt.c"
    ! cmp -s microgpt.c "$T/microgpt.c" && $CC $WARN -I. -O1 -DAUTOGRAD_PLAIN $LDFLAGS -o "$T/$1" "$T/microgpt.c" \
        autograd.c support/[!d]*/*.c -lm 2>"$T/cc.log" && "$T/$1" -q --samples 0 --steps 100 --data data/names.txt \
        --save "$T/$1.safetensors" >"$T/train.log" || not_ok "gpt() $1" "to compile and run" "$(head -n 3 "$T/cc.log")"
}
from='(pos_id > 3 ? pos_id - 3 : 0)'
changed sliding "s/seen = pos_id + 1;/seen = pos_id < 3 ? pos_id + 1 : 4;/; s/keys\[li\] + hs;/keys[li] + $from * n_embd + hs;/
    s/values\[li\] + hs;/values[li] + $from * n_embd + hs;/"
"$T/sliding" heads "$T/sliding.safetensors" alexandra --tsv >"$T/seen"
same "a window of four: what is outside of it, and the sums" "0 40" "$(awk -F '\t' '
    NR > 1 { sum[$2, $3] += $5; outside += $4 + 3 < $3 && $5 != 0 }
    END { for (row in sum) n += sum[row] > 0.999999 && sum[row] < 1.000001; print outside + 0, n }' "$T/seen")"
"$T/sliding" heads "$T/sliding.safetensors" --docs 50 --tsv --data data/names.txt >"$T/seen"
same "and its shares add up to 1" 4 \
    "$(awk -F '\t' 'NR > 1 { sum = $3 + $4 + $5 + $6; n += sum > 0.999999 && sum < 1.000001 } END { print n }' "$T/seen")"
check "and its votes to the logits" "$T/sliding" heads "$T/sliding.safetensors" alexandra --votes --tsv
changed reversed 's/size_t hs = h \* head_dim; /size_t hs = (n_head - 1 - h) * head_dim; /'
rounded() { awk 'NR > 1 { $5 = sprintf("%.10f", $5) } 1'; }
"$T/reversed" heads "$T/reversed.safetensors" maria --tsv | rounded >"$T/want"
microgpt heads "$T/reversed.safetensors" maria --tsv | rounded >"$T/seen"
same_file "heads made in another order are labeled by their places" "$T/want" "$T/seen"
changed scaled 's/values\[li\] + hs;/ag_mul_const(tape, values[li], 1, seen * n_embd) + hs;/'
fails 1 '*: gpt() has no head in some place: *' "$T/scaled" heads "$T/scaled.safetensors" maria
fails 1 '*: gpt() has no head in some place: *' "$T/scaled" heads "$T/scaled.safetensors" --docs 3 --data data/names.txt
changed halved 's/x = linear(tape, x, layer->mlp_fc2);/x = ag_mul_const(tape, linear(tape, x, layer->mlp_fc2), 0.5, n_embd);/'
fails 1 '*: the votes do not add up to the logits: *' "$T/halved" heads "$T/halved.safetensors" maria --votes
fails 1 '*: the votes do not add up to the logits: *' "$T/halved" heads "$T/halved.safetensors" maria --votes --tsv
changed tied 's/linear(tape, x, model->lm_head)/linear(tape, x, model->wte)/'
fails 1 '*: the votes do not add up to the logits: *' "$T/tied" heads "$T/tied.safetensors" maria --votes

# The table.
heads "$model" --docs 1
same "one document: a row a head" 4 "$(grep -c '^ *0 *[0-3] .*%' "$T/seen")"
heads "$model" --docs 50 --tsv && cp "$T/seen" "$T/want"
awk 'NR <= 50' data/names.txt >"$T/fifty.txt"
heads "$model" --data "$T/fifty.txt" --docs 99999 --tsv
same_file "--docs 50 is the first 50, and more documents than there are is all" "$T/want" "$T/seen"
heads "$model" --data - --tsv
same "documents from an empty standard input fail" 1 "$?"
microgpt heads "$model" --data - --docs 50 --tsv <"$T/fifty.txt" >"$T/seen"
same_file "documents from standard input" "$T/want" "$T/seen"
heads "$model" --tsv && cp "$T/seen" "$T/want"
heads "$model" --tsv --seed 42
same_file "which documents if nothing is said: by the model's seed" "$T/want" "$T/seen"
heads "$model" --tsv --seed 43
check "another seed: others" [ "$(cut -f 8 "$T/want" | tail -n 1)" != "$(cut -f 8 "$T/seen" | tail -n 1)" ]
heads "$model"
same "1000 of them" 1 "$(grep -c '^Over 1000 documents that seed 42 draws$' "$T/seen")"
for i in 1 2 3 4 5 6 7 8 9; do cat "$T/fifty.txt"; done | sed 's/^/ /' >"$T/often.txt"
heads "$model" --data "$T/often.txt"
same "no document twice: $(grep '^Over' "$T/seen")" "$(sort -u "$T/fifty.txt" | wc -l)" "$(sed -n 's/^Over \([0-9]*\).*/\1/p' "$T/seen")"
sort -u "$T/fifty.txt" >"$T/once.txt"
microgpt eval "$model" --data "$T/once.txt" | awk '$1 == "loss" { printf "%.12f\n", $2 }' >"$T/want"
heads "$model" --data "$T/often.txt" --tsv
same "but each one" "$(cat "$T/want")" "$(awk -F '\t' 'NR == 2 { printf "%.12f\n", $8 }' "$T/seen")"
fails 2 "--docs takes the first documents, --seed draws: not both" microgpt heads "$model" --docs 3 --seed 4
# Those held out, if there are some.
awk 'NR % 1500 == 1' data/names.txt | head -n 16 >"$T/some.txt"
for n in 1 2 3 4; do
    microgpt train -q --samples 0 --steps 0 --seed $n --holdout 7 --data "$T/some.txt" --save "$T/held.safetensors" >"$T/out"
    same "held out, seed $n: $(tail -n 1 "$T/out")" "$(tail -n 1 "$T/out" | sed 's/.* //')" \
        "$(microgpt heads "$T/held.safetensors" --data "$T/some.txt" --tsv | awk -F '\t' 'NR == 2 { printf "%.4f", $8 }')"
done
cat "$T/some.txt" "$T/some.txt" >"$T/twice.txt"
microgpt train -q --samples 0 --steps 0 --holdout 12 --data "$T/twice.txt" --save "$T/held.safetensors" >"$T/out"
microgpt heads "$T/held.safetensors" --data "$T/twice.txt" >"$T/seen" 2>"$T/stderr"
left=$(sed -n 's/^microgpt: note: \([0-9]*\) of the 12 documents held out are also in the training data and are left out$/\1/p' "$T/stderr")
n=$(sed -n 's/^Over \([0-9]*\) documents that seed 42 draws from those held out of training$/\1/p' "$T/seen")
check "repeats of training names are left out: $left, and others taken: $n" [ "$left" -gt 0 ] && [ "$n" -gt 0 ] &&
    [ $((left + n)) -le 12 ]
heads "$T/held.safetensors" --data "$T/some.txt"
same "other documents than the model's: all of them" "Over 16 documents that seed 42 draws" "$(grep '^Over' "$T/seen")"
before=$(cksum <"$model")
heads "$model"
same "the model file is left as it was" "$before" "$(cksum <"$model")"

# Pipes, environments, widths.
heads "$model" maria
same "a pipe: blocks, no escapes" "yes no" "$(has '▒') $(has "$esc")"
TERM=dumb heads "$model" maria
same "TERM=dumb: ASCII alone" "no no" "$(has "$esc") $(has "$(printf '[\200-\377]')")"
TERM=dumb heads "$model"
same "TERM=dumb: the table in ASCII too" "no yes" "$(has "$(printf '[\200-\377]')") $(has '##')"
LC_ALL=C heads "$model" maria
same "another locale: ASCII alone" "no" "$(has "$(printf '[\200-\377]')")"
NO_COLOR=1 heads "$model" maria
same "NO_COLOR: no escapes" no "$(has "$esc")"
for columns in 20 40 75 78 79 80 200; do
    for word in maria alexandra ''; do
        COLUMNS=$columns heads "$model" "$word"
        check "$columns columns: maps of '$word' are within ($(widest))" [ "$(widest)" -le "$columns" ]
    done
    COLUMNS=$columns heads "$model"
    check "$columns columns: the table is within ($(widest))" [ "$(widest)" -le "$columns" ]
done
COLUMNS=40 heads "$model" abcdefghijklmno
check "40 columns, 16 positions ($(widest))" [ "$(widest)" -le 40 ]
COLUMNS=20 heads "$unicode" '山本太郎'
check "20 columns, wide characters ($(widest))" [ "$(widest)" -le 20 ]
for columns in 0 -5 x 99999999999999999999 ''; do
    COLUMNS=$columns heads "$model" maria
    same "COLUMNS='$columns' is no width: 80" 3 "$(sed -n 1p "$T/seen" | grep -o layer | wc -l | tr -d ' ')"
done
COLUMNS=200 heads "$model" maria
same "200 columns: all four side by side" 4 "$(sed -n 1p "$T/seen" | grep -o layer | wc -l | tr -d ' ')"

# The build for the debugger sees the same.
# shellcheck disable=SC2086
if $CC $WARN -O0 -DAUTOGRAD_PLAIN -DMICROGPT_DEBUG $LDFLAGS -o "$T/debug" $SOURCES support/debugger/*.c -lm 2>"$T/cc.log"; then
    heads "$model" maria && cp "$T/seen" "$T/want"
    "$T/debug" heads "$model" maria >"$T/seen" </dev/null
    same_file "the build for the debugger: the same maps" "$T/want" "$T/seen"
    heads "$model" maria --votes && cp "$T/seen" "$T/want"
    "$T/debug" heads "$model" maria --votes >"$T/seen" </dev/null
    same_file "the build for the debugger: the same votes" "$T/want" "$T/seen"
    heads "$model" --docs 20 && cp "$T/seen" "$T/want"
    "$T/debug" heads "$model" --docs 20 --data data/names.txt >"$T/seen" </dev/null
    same_file "the build for the debugger: the same table" "$T/want" "$T/seen"
else
    not_ok "the build for the debugger" "to compile" "$(head -n 3 "$T/cc.log")"
fi

# A terminal. Its standard input stays open and silent: script(1) would not end otherwise.
mkfifo "$T/silent"
exec 3<>"$T/silent"
on_terminal() { # COLUMNS ENVIRONMENT ARGUMENTS
    script -qec "stty cols $1 rows 24; env $2 ./microgpt heads $model $3" "$T/typescript" >"$T/seen" 2>&1 <&3
}
if command -v script >/dev/null && script -qec true "$T/typescript" >"$T/seen" 2>&1 <&3; then
    on_terminal 80 A=1 maria
    same "a terminal: colors, and the percentages in them" "yes yes" "$(has "$esc\[48;5;") $(has '68%\|[0-9][0-9]%')"
    check "a terminal of 80 columns: within ($(widest))" [ "$(widest)" -le 80 ]
    same "every color is switched off again" "$(LC_ALL=C grep -a -o "$esc\[48;5;[0-9]*;38;5;[0-9]*m" "$T/seen" | wc -l)" \
        "$(LC_ALL=C grep -a -o "$esc\[0m" "$T/seen" | wc -l)"
    on_terminal 40 COLUMNS=200 maria
    check "a terminal of 40 columns, whatever COLUMNS says ($(widest))" [ "$(widest)" -le 40 ]
    on_terminal 20 A=1 alexandra
    check "a terminal of 20 columns ($(widest))" [ "$(widest)" -le 20 ]
    on_terminal 80 NO_COLOR=1 maria
    same "a terminal, NO_COLOR: blocks, no escapes" "no yes" "$(has "$esc") $(has '▒')"
    on_terminal 80 NO_COLOR= maria
    same "a terminal, NO_COLOR empty: colors" yes "$(has "$esc\[48;5;")"
    on_terminal 80 TERM=dumb maria
    same "a terminal, TERM=dumb: digits, no escapes" "no no" "$(has "$esc") $(has "$(printf '[\200-\377]')")"
    on_terminal 80 '-u TERM' maria
    same "a terminal, no TERM: no escapes" no "$(has "$esc")"
    on_terminal 80 A=1 "maria --tsv"
    same "a terminal, --tsv: figures alone" "no yes" "$(has "$esc") $(has "^0${tab}0${tab}0${tab}0${tab}1")"
    on_terminal 80 A=1 "--docs 50"
    check "a terminal of 80 columns: the table is within ($(widest))" [ "$(widest)" -le 80 ]
else
    skip "heads on a terminal" "there is no script(1) that can make one"
fi
exec 3>&-

# The sweep.
sh tests/bench/sweep 2 50 >"$T/seen" 2>&1
same "the sweep ends well" 0 "$?"
same "the sweep: 1, 2, 4, 8 and 16 heads" "1:16 2:8 4:4 8:2 16:1" \
    "$(awk 'NF == 6 && $1 + 0 { printf "%s%d:%d", n++ ? " " : "", $1, $2 }' "$T/seen")"
check "the sweep: best <= mean <= worst, and an error" \
    awk 'NF == 6 && $1 + 0 { n++; bad += !($5 <= $3 && $3 <= $6 && $4 > 0 && $3 > 2 && $3 < 3.4) }
        END { exit !(n == 5 && !bad) }' "$T/seen"
same "the sweep says what it did" "Error: standard error over 2 seeds, 50 steps each; 2754 names held out." "$(tail -n 1 "$T/seen")"
for number in 0 x 1.5 -1; do
    sh tests/bench/sweep $number >"$T/stdout" 2>"$T/stderr"
    same "sweep $number: a line and status 2" "2 sweep: $number: not a number from 1 on" "$? $(cat "$T/stderr")"
done
if [ -n "$ALL" ]; then
    make -s sweep >"$T/seen" 2>&1
    same "make sweep: five rows of 10 seeds and 1000 steps" "5 Error: standard error over 10 seeds, 1000 steps each; 2754 names held out." \
        "$(awk 'NF == 6 && $1 + 0 && $3 > 2.2 && $3 < 2.5' "$T/seen" | wc -l | tr -d ' ') $(tail -n 1 "$T/seen")"
fi

# What the README types, where it types it.
mkdir "$T/readme"
cp microgpt "$T/readme/"
cp -R data "$T/readme/"
cd "$T/readme" || exit 1
{
    ./microgpt --steps 5000 --save names.safetensors -q --samples 0 &&
    ./microgpt heads names.safetensors maria &&
    ./microgpt heads names.safetensors &&
    ./microgpt heads names.safetensors maria --tsv &&
    ./microgpt heads names.safetensors --tsv --data data/names.txt --docs 100
} >"$T/seen" 2>"$T/stderr"
same "the README's commands: they work, without a word on standard error" "0 " "$? $(cat "$T/stderr")"
cd "$ROOT" || exit 1
same "and show maps and tables" "4 1 84 4" "$(grep -o 'layer 0 head [0-3]' "$T/seen" | sort -u | wc -l | tr -d ' ') $(
    grep -c '^layer head  *self previous' "$T/seen") $(awk -F '\t' 'NF == 5 && $1 == "0"' "$T/seen" | wc -l | tr -d ' ') $(
    awk -F '\t' 'NF == 9 && $1 == "0"' "$T/seen" | wc -l | tr -d ' ')"
for option in '--docs 3' '--data data/names.txt' '--seed 3'; do
    # shellcheck disable=SC2086
    fails 2 "--data, --docs and --seed do not apply to a single word" microgpt heads "$T/small" a $option
done
finish
