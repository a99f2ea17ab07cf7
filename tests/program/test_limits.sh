# The limits that the README states: up to them the program works, past them it says so in one line. With ALL=1, in 32
# bits, too.
. tests/lib.sh

printf 'anna\nbob\n' >"$T/two"
SMALL="--data $T/two --n-embd 4 --n-head 2 --block-size 4 --steps 1 --samples 1"

# Whole numbers are compared as whole numbers, to the last one. A model that no memory can hold ends the run early.
HUGE='--n-layer 1048576 --n-embd 1048576'
for option in steps samples; do
    fails 1 'not enough memory: *' microgpt $HUGE --$option 9007199254740992
    fails 2 "--$option 9007199254740993: out of range: 0 to 9007199254740992" microgpt $HUGE --$option 9007199254740993
done
fails 2 '--seed 18446744073709551616: out of range: 0 to 18446744073709551615' microgpt $SMALL --seed 18446744073709551616

# Little memory is made by a limit of the shell's. Sanitizers and valgrind need more than that themselves.
little=
case "$CFLAGS $LDFLAGS $MICROGPT_WRAPPER" in
*sanitize* | *valgrind*) ;;
*) little=yes ;;
esac

# Sizes: the largest of one kind where the others are small. It may need more memory than there is, and says so.
for sizes in '--n-layer 1048576 --n-embd 1 --n-head 1' '--n-embd 1048576' '--n-embd 1048576 --n-head 1048576' \
    '--block-size 1048576 --n-embd 1 --n-head 1'; do
    ([ -z "$little" ] || ulimit -v 2000000; microgpt --data "$T/two" $sizes --steps 0 --samples 0) >"$T/stdout" 2>"$T/stderr"
    status=$?
    case "$status $(cat "$T/stderr")" in
    '0 ' | '1 microgpt: not enough memory'*) ok "$sizes: it works, or one line about memory" ;;
    *) not_ok "$sizes" 'work, or one line about memory' "status $status: $(head -n 3 "$T/stderr")" ;;
    esac
done

# A line of five million characters is cut to the block, as any is.
head -c 5000000 /dev/zero | tr '\0' 'x' >"$T/long"
printf '\nanna\n' >>"$T/long"
microgpt $SMALL --data "$T/long" >"$T/out" 2>"$T/stderr"
same 'a line of five million characters' "num docs: 2 vocab size: 4" "$(head -n 2 "$T/out" | tr '\n' ' ' | sed 's/ $//')"

# Three million documents, in 27 megabytes.
yes abcdefgh | head -n 3000000 >"$T/many"
microgpt $SMALL --data "$T/many" >"$T/out" 2>"$T/stderr"
same 'three million documents' "num docs: 3000000 vocab size: 9" "$(head -n 2 "$T/out" | tr '\n' ' ' | sed 's/ $//')"
rm -f "$T/many"

# A file that is larger than the memory there is: one line.
if [ -n "$little" ]; then
    head -c 40000000 /dev/zero | tr '\0' 'y' >"$T/large" 2>/dev/null
    what='a file larger than memory' fails 1 'not enough memory' sh -c "ulimit -v 90000; ./microgpt $SMALL --data $T/large"
    rm -f "$T/large"
else
    skip 'a file larger than memory' 'sanitizers need much of it themselves'
fi

[ -n "$ALL" ] || finish

# On 32-bit machines sizes are computed without wrapping: a byte less than a gigabyte, four bytes of memory for each.
X86='-m32 -idirafter /usr/include/x86_64-linux-gnu'
# shellcheck disable=SC2086
if ${CC%% *} -std=c11 -O1 $X86 -o "$T/microgpt32" $SOURCES -lm >/dev/null 2>&1 &&
    "$T/microgpt32" --version >/dev/null 2>&1 && truncate -s 1073741823 "$T/sparse" 2>/dev/null; then
    what='32 bits, a file of one byte less than a gigabyte' \
        fails 1 'not enough memory' "$T/microgpt32" $SMALL --data "$T/sparse"
    fails 1 'not enough memory: *' "$T/microgpt32" $SMALL $HUGE
    rm -f "$T/sparse"
else
    skip '32 bits' "$CC makes no 32-bit programs here"
fi
finish
