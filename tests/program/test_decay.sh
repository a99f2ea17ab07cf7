# Weight decay: what it does to a parameter that gets no gradient, what a run keeps of it, and that 0 changes nothing.
. tests/lib.sh
for letter in a b c d e f; do echo $letter; done >"$T/letters"
sizes="--data $T/letters --n-embd 4 --n-head 2 --block-size 4 --samples 0 -q"

# In a model, wte is first: seven rows of four; then wpe: four rows, of which documents of one letter use the first two.
microgpt $sizes --steps 0 --save "$T/first" >"$T/out"
for x in 0 0.3 2; do
    microgpt $sizes --steps 50 --weight-decay $x --save "$T/x$x" >"$T/out"
    same "--weight-decay $x: parameters without gradients shrink by 1 - rate * $x, step by step" "8 8" \
        "$(numbers "$T/first" >"$T/a"; numbers "$T/x$x" >"$T/b"
        paste "$T/a" "$T/b" | awk -v x=$x '
            BEGIN { keep = 1; for (s = 0; s < 50; s++) keep *= 1 - 0.01 * (1 - s / 50) * x }
            NR > 36 && NR <= 44 { n++; off = $2 / $1 - keep; ok += off < 1e-12 && off > -1e-12 }
            END { print n, ok }')"
done
microgpt $sizes --steps 50 --save "$T/none" >"$T/out"
same_file "0 is the default" "$T/none" "$T/x0"
microgpt --steps 300 -q --samples 0 --save "$T/plain" >"$T/out"
microgpt --steps 300 -q --samples 0 --weight-decay 0.3 --save "$T/decayed" >"$T/out"
same "with 0.3, the shipped names' parameters are smaller" yes "$(numbers "$T/plain" | head -n 4192 >"$T/a"
    numbers "$T/decayed" | head -n 4192 | paste "$T/a" - | awk '{ a += $1 * $1; b += $2 * $2 } END { print b < a ? "yes" : "no" }')"

# It belongs to the run; a resumed one keeps it, and may be given another.
microgpt --steps 100 -q --samples 0 --weight-decay 0.3 --save "$T/part" >"$T/out"
microgpt --resume "$T/part" --steps 300 -q --samples 0 --save "$T/part2" --log "$T/a.csv" >"$T/out"
microgpt --resume "$T/part" --steps 300 -q --samples 0 --weight-decay 0.3 --save "$T/part3" >"$T/out"
same_file "a resumed run keeps it" "$T/part2" "$T/part3"
microgpt --resume "$T/part" --steps 300 -q --samples 0 --weight-decay 0 --save "$T/part4" >"$T/out"
check "and may be given another" sh -c "! cmp -s '$T/part2' '$T/part4'"
finish
