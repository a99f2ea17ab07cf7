# `microgpt heads` as people use it: words, files of documents, narrow screens, pipes and terminals.
# takes long
. tests/lib.sh
export LC_ALL=C.UTF-8 TERM=xterm
unset NO_COLOR COLUMNS
model=$T/names.safetensors
unicode=$T/unicode.safetensors
esc=$(printf '\033')
tab=$(printf '\t')
printf '%s\n' 'zoë' 'josé' '山田' '山本太郎' 'ana maria' 'z€😀' 'naïve' >"$T/unicode.txt"
printf 'jose\314\201\ntab\tin\303\240\nab\302\233c\033d\nx\342\200\256y\n' >>"$T/unicode.txt"

train() { microgpt train -q --samples 0 "$@" >"$T/train.log" || not_ok "train $*" "a model" "none"; }
train --save "$model"
train --steps 50 --block-size 12 --data "$T/unicode.txt" --save "$unicode"

heads() { microgpt heads "$@" >"$T/seen" 2>"$T/stderr" </dev/null; }
has() { LC_ALL=C grep -a -q -e "$1" "$T/seen" && echo yes || echo no; }
# The widest line of $T/seen, in characters.
widest() {
    tr -d '\r' <"$T/seen" | LC_ALL=C sed "s/$esc\[[0-9;]*m//g; s/$(printf '[\200-\277]')//g" |
        LC_ALL=C awk '{ n = length($0); if (n > m) m = n } END { print m + 0 }'
}
# The first map of $T/seen, without the spaces at the ends of lines; the labels of its rows.
first_map() { awk '/^layer/ && NR > 1 || /^$/ { exit } { sub(/ *$/, ""); print }' "$T/seen"; }
rows() { first_map | sed -n '3,$p' | awk '{ printf "%s", $1 }'; }

# Words that cannot be shown.
fails 2 "the word Maria: the model does not know the character M" microgpt heads "$model" Maria
fails 2 "the word zoë: the model does not know the character ë" microgpt heads "$model" 'zoë'
what="a word that is not UTF-8" fails 2 "the word: not valid UTF-8" microgpt heads "$model" "$(printf 'a\377b')"
what="a word with a newline: still one line" \
    fails 2 "the word *: the model does not know the character *" microgpt heads "$model" "$(printf 'a\nb')"
fails 2 "the word *: too long: the model's block has room for 15 characters" microgpt heads "$model" abcdefghijklmnop
fails 2 "the word *: too long: the model's block has room for 11 characters" microgpt heads "$unicode" '山山山山山山山山山山山山'
fails 2 "two: one argument too many; see microgpt heads --help" microgpt heads "$model" one two
fails 2 "heads: an argument is missing; see microgpt heads --help" microgpt heads
fails 1 "*nowhere: No such file or directory" microgpt heads "$T/nowhere" maria
fails 2 "--docs 0: out of range: 1 to *" microgpt heads "$model" --docs 0
fails 2 "--docs takes the first documents, --seed draws: not both" microgpt heads "$model" --docs 3 --seed 4
fails 2 "--votes needs a word" microgpt heads "$model" --votes
for option in '--docs 3' '--data data/names.txt' '--seed 3'; do
    # shellcheck disable=SC2086
    fails 2 "--data, --docs and --seed do not apply to a single word" microgpt heads "$model" a $option
done
fails 1 "*unicode.txt*the model does not know the character*" microgpt heads "$model" --data "$T/unicode.txt"
if [ -w /dev/full ]; then
    full() { microgpt heads "$model" "$@" >/dev/full; }
    fails 1 "standard output: *" full maria
    fails 1 "standard output: *" full --docs 5 --tsv
fi

# Words that can. A character is one position, whatever its bytes and its width.
heads "$model" --tsv -- maria
same "an option before the word, and --" 84 "$(tail -n +2 "$T/seen" | wc -l | tr -d ' ')"
for case in 'zoë ^zoë' '山本太郎 ^山本太郎' 'z€😀 ^z€😀' "$(printf 'jose\314\201 ^jose◌\314\201')" "$(printf 'x\342\200\256y ^x?y')" \
    "$(printf 'b\302\233c\033d ^b?c?d')"; do
    heads "$unicode" "${case% *}"
    same "${case#* }: the rows, and nothing that a terminal would obey" "${case#* } no" "$(rows) $(has "$esc")"
done
heads "$unicode" 'ana maria'
same "a space is made visible" '^ana␣maria' "$(rows)"
TERM=dumb heads "$unicode" 'ana maria'
same "in ASCII, where it must be" '^ana_maria' "$(rows)"
COLUMNS=200 heads "$unicode" '山田'
same "wide characters: every row of a map begins at the same column" "    ^ 山 田 ;^  100;山 ;田 " \
    "$(sed -n '2,5p' "$T/seen" | sed '1s/\(田 \).*/\1/; 2s/100.*/100/; 3,4s/ .*/ /' | paste -s -d ';' -)"

# The votes, for people. (README.md shows those for the end of maria.)
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

# The table: documents in the file's order, all of them, those that a seed draws, those held out.
heads "$model" --docs 50 --tsv && cp "$T/seen" "$T/want"
head -n 50 data/names.txt >"$T/fifty.txt"
heads "$model" --data "$T/fifty.txt" --docs 99999 --tsv
same_file "--docs 50 is the first 50, and more documents than there are is all" "$T/want" "$T/seen"
microgpt heads "$model" --data - --docs 50 --tsv <"$T/fifty.txt" >"$T/seen"
same_file "documents from standard input" "$T/want" "$T/seen"
heads "$model" --tsv && cp "$T/seen" "$T/want"
heads "$model" --tsv --seed 42
same_file "which documents if nothing is said: by the model's seed" "$T/want" "$T/seen"
heads "$model" --tsv --seed 43
check "another seed: others" [ "$(cut -f 8 "$T/want" | tail -n 1)" != "$(cut -f 8 "$T/seen" | tail -n 1)" ]
before=$(cksum <"$model")
heads "$model"
same "1000 of them; the model file is left as it was" "1 $before" \
    "$(grep -c '^Over 1000 documents that seed 42 draws$' "$T/seen") $(cksum <"$model")"
for i in 1 2 3 4 5 6 7 8 9; do cat "$T/fifty.txt"; done | sed 's/^/ /' >"$T/often.txt"
sort -u "$T/fifty.txt" >"$T/once.txt"
heads "$model" --data "$T/often.txt" --tsv
same "no document twice, but each one" "$(microgpt eval "$model" --data "$T/once.txt" | awk '$1 == "loss" { printf "%.12f\n", $2 }')" \
    "$(awk -F '\t' 'NR == 2 { printf "%.12f\n", $8 }' "$T/seen")"
awk 'NR % 1500 == 1' data/names.txt | head -n 16 >"$T/some.txt"
for n in 1 2; do
    microgpt train -q --samples 0 --steps 0 --seed $n --holdout 7 --data "$T/some.txt" --save "$T/held" >"$T/out"
    same "held out, seed $n: $(tail -n 1 "$T/out")" "$(tail -n 1 "$T/out" | sed 's/.* //')" \
        "$(microgpt heads "$T/held" --data "$T/some.txt" --tsv | awk -F '\t' 'NR == 2 { printf "%.4f", $8 }')"
done
cat "$T/some.txt" "$T/some.txt" >"$T/twice.txt"
microgpt train -q --samples 0 --steps 0 --holdout 12 --data "$T/twice.txt" --save "$T/held" >"$T/out"
heads "$T/held" --data "$T/twice.txt"
left=$(sed -n 's/^microgpt: note: \([0-9]*\) of the 12 documents held out are also in the training data and are left out$/\1/p' "$T/stderr")
n=$(sed -n 's/^Over \([0-9]*\) documents that seed 42 draws from those held out of training$/\1/p' "$T/seen")
check "repeats of training names are left out: $left, and others taken: $n" [ $((left > 0 && n > 0 && left + n <= 12)) = 1 ]
heads "$T/held" --data "$T/some.txt"
same "other documents than the model's: all of them" "Over 16 documents that seed 42 draws" "$(grep '^Over' "$T/seen")"

# Pipes, environments, widths.
for case in 'TERM=xterm yes no' 'TERM=dumb no no' 'LC_ALL=C no no' 'NO_COLOR=1 yes no'; do
    for arguments in maria 'maria --votes' '--docs 9'; do
        # shellcheck disable=SC2086
        env ${case%% *} $MICROGPT_WRAPPER ./microgpt heads "$model" $arguments >"$T/seen"
        same "heads $arguments in a pipe, ${case%% *}: more than ASCII? escapes?" "${case#* }" \
            "$(has "$(printf '[\200-\377]')") $(has "$esc")"
    done
done
for columns in 20 40 79 80 200; do
    wide=
    for arguments in maria alexandra 'maria --votes' '--docs 9'; do
        # shellcheck disable=SC2086
        COLUMNS=$columns heads "$model" $arguments
        case $columns$arguments in 20*votes) ;; *) [ "$(widest)" -le $columns ] || wide="$wide $arguments" ;; esac
    done
    same "$columns columns: what is wider" "" "$wide"
done
for columns in 0:3 x:3 :3 200:4; do
    COLUMNS=${columns%:*} heads "$model" maria
    same "COLUMNS=${columns%:*}: maps side by side" "${columns#*:}" "$(sed -n 1p "$T/seen" | grep -o layer | wc -l | tr -d ' ')"
done

# A terminal. Its standard input stays open and silent: script(1) would not end otherwise.
mkfifo "$T/silent"
exec 3<>"$T/silent"
on_terminal() { # COLUMNS ENVIRONMENT ARGUMENTS
    script -qec "stty cols $1 rows 24; env $2 ./microgpt heads $model $3" "$T/typescript" >"$T/seen" 2>&1 <&3
}
if command -v script >/dev/null && script -qec true "$T/typescript" >"$T/seen" 2>&1 <&3; then
    on_terminal 80 NO_COLOR= maria
    same "a terminal: colors, and the percentages in them" "yes yes" "$(has "$esc\[48;5;") $(has '[0-9][0-9]%')"
    same "every color is switched off again" "$(LC_ALL=C grep -a -o "$esc\[48;5;[0-9]*;38;5;[0-9]*m" "$T/seen" | wc -l)" \
        "$(LC_ALL=C grep -a -o "$esc\[0m" "$T/seen" | wc -l)"
    on_terminal 40 COLUMNS=200 maria
    check "a terminal of 40 columns, whatever COLUMNS says ($(widest))" [ "$(widest)" -le 40 ]
    on_terminal 80 A=1 "maria --tsv"
    same "a terminal, --tsv: figures alone" "no yes" "$(has "$esc") $(has "^0${tab}0${tab}0${tab}0${tab}1")"
else
    skip "heads on a terminal" "there is no script(1) that can make one"
fi
exec 3>&-

finish
