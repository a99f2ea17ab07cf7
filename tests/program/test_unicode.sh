# Other sizes, seeds, options and texts: the runs of tests/reference/figures.txt, to the byte.
. tests/lib.sh
F=tests/reference/figures.txt
notes_may=yes                           # many of these documents are cut, on purpose

sed -n 's/^text //p' $F | while read -r name bytes; do
    # shellcheck disable=SC2059
    printf "$bytes" >"$T/$name"
done
# What the run of this name prints.
printed() { awk -v name="$1" '/^== / { on = $2 == name; next } on && sub(/\\r$/, "") { printf "%s\r", $0; next } on' $F; }
sed -n 's/^== //p' $F >"$T/runs"
while IFS='|' read -r name data options; do
    name=${name% } data=${data# } data=${data% }
    case $data in data/*) ;; *) data=$T/$data ;; esac
    printed "$name" >"$T/want"
    # shellcheck disable=SC2086
    prints "$name" "$T/want" --data "$data" $options
done <"$T/runs"

# The locale has no part in it.
printed accents >"$T/want"
(
    LC_ALL=de_DE.UTF-8
    microgpt --data "$T/accents" --n-embd 8 --n-head 2 --steps 30
) >"$T/locale" 2>&1
same_file "in another locale" "$T/want" "$T/locale"

# Characters of one to four bytes, the first and the last of each length: learned by heart, and written again.
printf 'a~\302\241\337\277\340\240\200\357\277\275\360\220\200\200\363\257\277\275\364\200\200\200\n' >"$T/edges.txt"
same "characters of each length" "vocab size: 10, sample  1: $(cat "$T/edges.txt")" \
    "$(microgpt --data "$T/edges.txt" --steps 300 --temperature 0 --samples 1 | sed -n '2p; $p' | sed 'N; s/\n/, /')"

# The largest vocabulary: every character there is, in one line, but for zero, white space at its ends, line ends, surrogates.
LC_ALL=C awk 'BEGIN {
    for (i = 33; i < 1114112; i++) {
        if (i < 128) printf "%c", i
        else if (i < 2048) printf "%c%c", 192 + int(i / 64), 128 + i % 64
        else if (i < 65536) { if (i < 55296 || i > 57343) printf "%c%c%c", 224 + int(i / 4096), 128 + int(i / 64) % 64, 128 + i % 64 }
        else printf "%c%c%c%c", 240 + int(i / 262144), 128 + int(i / 4096) % 64, 128 + int(i / 64) % 64, 128 + i % 64
    } print "" }' >"$T/all.txt"
same "all characters: the vocabulary" "vocab size: $((1114112 - 33 - 2048 + 1))" \
    "$(microgpt --data "$T/all.txt" --n-embd 1 --n-head 1 --steps 0 --samples 0 2>"$T/stderr" | sed -n 2p)"
finish
