# What a user can get wrong: the exit status, one line on standard error that says what and where, and nothing else.
. tests/lib.sh
B=./microgpt
file() { printf "$2" >"$T/$1"; }       # writes a file with the escapes of printf

# Files.
fails 1 "$T/none.txt: No such file or directory" $B --data "$T/none.txt"
fails 1 ": No such file or directory" $B --data ''
fails 1 "$T: Is a directory" $B --data "$T"
fails 1 "$T/none/names.txt: No such file or directory" $B --data "$T/none/names.txt"
file file.txt 'anna\n'
fails 1 "$T/file.txt/names.txt: Not a directory" $B --data "$T/file.txt/names.txt"
file empty.txt ''
fails 1 "$T/empty.txt: no documents: the file is empty" $B --data "$T/empty.txt"
file blank.txt '\n  \n\t\r\n\302\240\n\343\200\200'
fails 1 "$T/blank.txt: no documents: every line is blank" $B --data "$T/blank.txt"
: | ./microgpt --data - >"$T/stdout" 2>"$T/stderr"
want=1 pattern="standard input: no documents: the file is empty" fails_as_said "nothing on standard input" $?
sh -c './microgpt --data - <&-' >"$T/stdout" 2>"$T/stderr"
want=1 pattern="standard input: *" fails_as_said "standard input closed" $?
long=$(printf '%0300d' 0)
what="a name too long for the system" fails 1 "*: File name too long" $B --data "$T/$long"
deep=$T/$(printf '%0200d/%0200d/%0200d/%0200d' 0 0 0 0)
what="a long path: the reason is not cut off" fails 1 "*: No such file or directory" $B --data "$deep/$deep"
what="a name with a line feed" fails 1 "*: No such file or directory" $B --data "$T/a
b"
what="a name that is not UTF-8" fails 1 "*: No such file or directory" $B --data "$T/a$(printf '\302')b"
if as_somebody_else; then
    echo anna >"$open/secret.txt"
    chmod 000 "$open/secret.txt"
    what="a file without permission" fails 1 "$open/secret.txt: Permission denied" \
        $as "$open/microgpt" --data "$open/secret.txt"
else
    skip "a file without permission" "this is the superuser, who may read everything, and no one else can run the program"
fi

# The names gone from where the program stands.
mkdir -p "$T/alone"
cp microgpt "$T/alone/microgpt"
what="the shipped names missing"
fails 1 "*/alone/*names.txt: No such file or directory; to use other documents: --data FILE" "$T/alone/microgpt"

# What is not text, with the number of its line.
utf8()
{
    file utf8.txt "$3"
    what="invalid UTF-8: $1" fails 1 "$T/utf8.txt:$2: not valid UTF-8; to convert from Latin-1: iconv -f ISO-8859-1 -t UTF-8" $B --data "$T/utf8.txt"
}
# Of all that is not UTF-8, which tests/program/test_text.c knows, one of each kind.
utf8 "Latin-1, in the third line" 3 'anna\nemma\nzo\353\n'
utf8 "overlong" 2 'anna\n\300\257\n'
utf8 "a surrogate" 2 'anna\n\355\240\200\n'
utf8 "beyond U+10FFFF" 1 '\364\220\200\200\n'
utf8 "cut by the end" 2 'anna\n\342\202'
utf8 "behind CR LF, LF, CR" 4 'a\r\nb\nc\r\377\n'
utf8 "behind blank lines" 5 '\n\n  \n\r\377'
utf8 "in a line's end that would be cut off" 1 'anna  \240\n'
file random.bin 'a\377\001\200'
fails 1 "$T/random.bin:1: not valid UTF-8: this is not a text file" $B --data "$T/random.bin"
file zero.txt 'anna\nem\000ma\n'
fails 1 "$T/zero.txt:2: a zero byte*" $B --data "$T/zero.txt"
what="a program as data" fails 1 "./microgpt:1: *" $B --data ./microgpt
file utf16.txt '\377\376a\000n\000'
fails 1 "$T/utf16.txt:1: not valid UTF-8; to convert from UTF-16: iconv -f UTF-16 -t UTF-8" $B --data "$T/utf16.txt"

# Numbers that are none.
for option in steps seed n-layer n-embd n-head block-size batch threads samples; do
    for value in '' 10x - -- -1x 1-1 1e3 1.5 ' 5' '5 ' +5 0x10 ten '１'; do
        what="--$option '$value'" fails 2 "--$option $value: not a whole number" $B --$option="$value"
    done
    fails 2 "--$option -1: out of range: [01] to *" $B --$option -1
    fails 2 "--$option -99999999999999999999: out of range: *" $B --$option -99999999999999999999
    fails 2 "--$option 99999999999999999999: out of range: *" $B --$option 99999999999999999999
done
for option in lr beta1 beta2 init-std weight-decay temperature; do
    for value in '' 1x nan inf -inf 0x1p3 1e . - + 1,5 ' 1' '1 ' 1e5e5 1.2.3 --1; do
        what="--$option '$value'" fails 2 "--$option $value: not a number" $B --$option="$value"
    done
    for value in -1 -1e-300 1e301 1e999; do
        what="--$option $value" fails 2 "--$option $value: out of range: 0 to *" $B --$option $value
    done
done

# Numbers out of range: the nearest that is in it works, or fails for another reason.
for option in n-layer n-embd n-head block-size batch; do
    fails 2 "--$option 0: out of range: 1 to 1048576" $B --$option 0
    fails 2 "--$option 1048577: out of range: 1 to 1048576" $B --$option 1048577
done
for option in beta1 beta2; do
    fails 2 "--$option 1: out of range: 0 to 0.9999999999999999" $B --$option 1
    check "--$option 0.9999999999999999" microgpt --$option 0.9999999999999999 --steps 2 --samples 0
done

# Sizes that go together, or not.
fails 2 "--n-embd 10 is not a multiple of --n-head 4" $B --n-embd 10
fails 2 "--n-embd 16 is not a multiple of --n-head 3" $B --n-head 3
fails 2 "--n-embd 2 is not a multiple of --n-head 4" $B --n-embd=2 --recipe lesson
fails 1 "not enough memory: a model of 13194212933632 parameters needs 4222??.? GB, most of it for the layers: --n-embd, --n-layer" \
    $B --n-embd 1048576 --n-head 1      # 32 bytes for a parameter, and a little more
head -c 1000000 /dev/zero | tr '\0' x >"$T/x.txt"
fails 1 "not enough memory: *, most of it for the documents of a step: --batch, --block-size" $B --data "$T/x.txt" \
    --block-size 1000000
fails 1 "not enough memory: a model of *, most of it for the block: --block-size" $B --block-size 1048576 --n-embd 65536 --n-head 1
fails 1 "not enough memory: *, most of it for the documents of a step: --batch, --block-size" $B --batch 1048576 --n-layer 64
awk 'BEGIN { for (i = 65536; i < 1000000; i++)
    printf "%c%c%c%c", 240 + int(i / 262144), 128 + int(i / 4096) % 64, 128 + int(i / 64) % 64, 128 + i % 64 }' >"$T/long.txt"
fails 1 "not enough memory: *, most of it for the different characters: --n-embd" $B --data "$T/long.txt" --n-embd 16384
case "$CFLAGS $LDFLAGS $MICROGPT_WRAPPER" in
*sanitize* | *valgrind*) skip "no memory from the system" "sanitizers need much of it themselves" ;;
*)
    what="no memory from the system" fails 1 "not enough memory" sh -c 'ulimit -v 60000; ./microgpt --n-embd 512'
    ;;
esac

# Names of options, recipes, commands.
fails 2 "--stepz: no such option; did you mean --steps? See microgpt train --help" $B --stepz 5
for none in --stepz=5 --steps5 --STEPS --=5 --manual -Q -q1; do
    fails 2 "${none%=5}: no such option; *" $B $none
done
fails 2 "--elephant: no such option; see microgpt train --help" $B --elephant
fails 2 "--n: ambiguous option; *" $B --n 5
fails 2 "--s: ambiguous option; *" $B --s=5
what="an unknown option with a line feed" fails 2 "--a*b: no such option; *" $B "--a
b"
fails 2 "-x: no such option; see microgpt train --help" $B -x
fails 2 "--recipe nonsense: not one of microgpt|lesson" $B --recipe nonsense
fails 2 "--recipe micro: not one of microgpt|lesson" $B --recipe micro
fails 2 "--recipe microgpt|lesson: not one of microgpt|lesson" $B --recipe 'microgpt|lesson'
fails 2 "--activation gelu: not one of relu|relu2*" $B --activation gelu
fails 2 "--schedule step: not one of linear|cosine" $B --schedule step
fails 2 "nonsense: no such command; see microgpt --help" $B nonsense
fails 2 ": no such command; see microgpt --help" $B ''
fails 2 "names.txt: one argument too many; to train on it: --data names.txt" $B train names.txt
fails 2 "names.txt: one argument too many; to train on it: --data names.txt" $B --steps 3 names.txt
fails 2 "--steps: one argument too many; *" $B -- --steps
fails 2 "--steps needs a value: N" $B --steps
fails 2 "--data needs a value: FILE" $B --steps 3 --data
fails 2 "--recipe needs a value: microgpt|lesson" $B --recipe
fails 2 "--quiet takes no value" $B --quiet=1
fails 2 "--help takes no value" $B --help=
fails 2 "--version takes no value" $B train --version=2
fails 2 "--recipe x: *" $B --steps y --recipe x
fails 2 "--steps y: *" $B --help --steps y

# Prompts.
fails 2 "--prompt Anna: the model does not know the character A" $B --prompt Anna
fails 2 "--prompt a 😀: the model does not know the character  " $B --prompt 'a 😀'
what="a prompt with a line feed" fails 2 "--prompt a*b: the model does not know the character *" $B --prompt 'a
b'
fails 2 "--prompt: not valid UTF-8" $B --prompt "$(printf 'a\377')"
fails 2 "--prompt abcdefghijklmnop: too long: *block has room for 15 characters" $B --prompt abcdefghijklmnop
fails 2 "--prompt abcdefgh: too long: *block has room for 7 characters" $B --prompt abcdefgh --recipe lesson
fails 2 "--prompt a: too long: *block has room for 0 characters" $B --prompt a --block-size 1
check "the longest prompt there can be" microgpt --prompt abcdefghijklmno --steps 1

# Work that fails on the way. The lines before it stay printed; names are not.
stdout_may=yes
fails 1 "step 2: the loss is not finite *" $B --lr 1e9
same "--lr 1e9: no names" 0 "$(grep -c 'sample' "$T/stdout")"
fails 1 "step 2: the loss is not finite *" $B --lr 1e9 --recipe lesson -q
fails 1 "a parameter is no longer finite" $B --lr 1e300 --steps 2
fails 1 "sample 1: the scores are not finite*" $B --lr 1e300 --steps 1
same "--lr 1e300: no names" 0 "$(grep -c 'sample' "$T/stdout")"

# Where a long output cannot be written, the run ends at once, and not only at its end.
if [ -w /dev/full ]; then
    microgpt -q --steps 9 --samples 0 --save "$T/model" >"$T/stdout"
    for command in '--steps 1000000000' "sample $T/model --samples 1000000000"; do
        what="a full disk in the middle: $command" fails 1 'standard output: *' sh -c "./microgpt $command >/dev/full"
    done
    fails 1 '/dev/full: *' $B --steps 1000000000 -q --log /dev/full
else
    skip 'a full disk in the middle' 'there is no /dev/full'
fi
stdout_may=

# Standard output that takes nothing.
for options in '' --help '-q --steps 1' '--samples 100000 --steps 1'; do
    if [ -c /dev/full ]; then
        what="microgpt $options >/dev/full" fails 1 "standard output: No space left on device" \
            sh -c "./microgpt $options >/dev/full"
    else
        skip "microgpt $options on a full disk" "there is no /dev/full"
    fi
    what="microgpt $options, standard output closed" fails 1 "standard output: *" sh -c "./microgpt $options >&-"
done
# The shortest header there is, and one that is shorter.
printf '\002\0\0\0\0\0\0\0{}' >"$T/shortest"
fails 1 "*shortest: it holds no tensors" microgpt sample "$T/shortest"
printf '\001\0\0\0\0\0\0\0{}' >"$T/shorter"
fails 1 "*shorter: not a model file: the length of its header is impossible" microgpt sample "$T/shorter"
if [ -e /dev/stdin ]; then              # of a pipe nobody knows how long it is
    printf '\001\341\365\005\0\0\0\0{}' | ./microgpt sample /dev/stdin >"$T/stdout" 2>"$T/stderr"
    want=1 pattern="/dev/stdin: not a model file: the length of its header is impossible" fails_as_said "a header over the limit" $?
    printf '\000\341\365\005\0\0\0\0{}' | ./microgpt sample /dev/stdin >"$T/stdout" 2>"$T/stderr"
    want=1 pattern="/dev/stdin: it ends within the header" fails_as_said "a header within the limit" $?
fi
finish
