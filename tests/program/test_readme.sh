# What the READMEs show can be typed: their commands run as written, print what is shown, and leave nothing that git would
# call untracked. The first screen has what it should have, its code is the program's, and links lead somewhere.
# takes long
. tests/lib.sh
READMES="README.md tests/README.md data/README.md support/debugger/README.md .github/CONTRIBUTING.md .github/CHANGELOG.md"

# A folder that looks like a clone of the project, to type in.
S=$T/project
mkdir -p "$S/data"
cp microgpt README.md LICENSE .gitignore "$S"
cp -r data/names.txt data/page "$S/data"
tail -n 300 data/names.txt >"$S/words.txt"
git_there=
(cd "$S" && git init -q && git add -A && git -c user.name=n -c user.email=e commit -q -m .) >"$T/git" 2>&1 && git_there=yes

# commands FILE: those that are indented, or follow a $, one per line, without remarks.
# A loop over several lines becomes one.
commands() { sed '/^```c$/,/^```$/d' "$1" | sed -e '/^\$ for .* do$/{N;N;N;s/; do\n/; do /;s/\n/; /g;}' |
    sed -n -e 's/^    \([a-z.].*\)/\1/p' -e 's/^\$ \(.*\)/\1/p' | sed 's/  *#.*//'; }
for readme in $READMES; do
    [ -r "$readme" ] || continue
    commands "$readme"
done | awk '!seen[$0]++' >"$T/commands"
n=0
while IFS= read -r command; do
    case $command in *makemore*) continue ;; esac            # it would have to be fetched
    case $command in
    './microgpt '* | 'sort '* | 'fold '* | 'for '* | gnuplot*)
        if [ "${command#gnuplot}" != "$command" ] && ! command -v gnuplot >/dev/null 2>&1; then
            skip "typed: $command" "there is no gnuplot"
            continue
        fi
        n=$((n + 1))
        if (cd "$S" && GNUTERM=dumb sh -c "$command") >"$T/out" 2>"$T/err" </dev/null; then
            ok "typed: $command"
        else
            not_ok "typed: $command" "exit status 0" "$? and '$(head -n 1 "$T/err")'"
        fi
        case $command in gnuplot*) check "gnuplot drew something" grep -q 'loss' "$T/out" ;; esac
        ;;
    esac
done <"$T/commands"
check "that were two dozen commands or more: $n" [ "$n" -ge 24 ]
if [ -n "$git_there" ]; then
    same "what git calls untracked or changed after them" "" "$(cd "$S" && git status --porcelain --untracked-files=all)"
else
    skip "what git calls untracked" "there is no git"
fi

# What make is asked for is there: on lines of their own, and in the text.
for readme in $READMES; do
    [ -r "$readme" ] || continue
    commands "$readme" | grep '^make'
    grep -o '`make[^`]*`' "$readme" | tr -d '`'
done | sort -u >"$T/makes"
while IFS= read -r command; do
    missing=
    eval "set -- ${command%% | *}"
    for word in "$@"; do
        case $word in
        make | *=* | -*) ;;
        *) grep -q "^\([^#]* \)*$word\( .*\)*:" Makefile || missing="$missing $word" ;;
        esac
    done
    same "make knows: $command" "" "$missing"
done <"$T/makes"

# Links within a file, and to other files.
anchors() { sed -n 's/^##* //p' "$1" | tr 'A-Z ' 'a-z-' | tr -cd 'a-z0-9_\n-'; }
for readme in $READMES; do
    [ -r "$readme" ] || continue
    for link in $(grep -o '](\([^)]*\))' "$readme" | sed 's/^](//; s/)$//' | grep -v '^http'); do
        file=$(dirname "$readme")/${link%%#*} anchor=
        [ -n "${link%%#*}" ] || file=$readme
        [ "${link#*#}" = "$link" ] || anchor=${link#*#}
        if [ ! -e "$file" ]; then
            not_ok "$readme: $link" "a file" "none"
        elif [ -n "$anchor" ] && ! anchors "$file" | grep -qx -e "$anchor"; then
            not_ok "$readme: $link" "a heading" "none"
        else
            ok "$readme: $link leads somewhere"
        fi
    done
done
head -n 40 README.md >"$T/first"
for what in 'gist.github.com/karpathy' 'Andrej Karpathy' '](.github/page.png)' '    make run ' \
    'microgpt-course/03-the-architecture/06-multi-head-attention' 'C11 compiler, GNU make' 'WSL' 'plain C11' \
    '| | microgpt.py | this program |' 'the same bytes' '--save' 'microgpt sample' '--resume' 'microgpt eval' \
    'microgpt heads' 'microgpt page' 'make tour' 'make bench'; do
    check "the first forty lines have: $what" grep -qF -e "$what" "$T/first"
done
same "every section is in the contents" "$(sed -n 's/^## //p' README.md)" \
    "$(sed -n '/^\*\*Contents/,/^$/p' README.md | grep -o '\[[^]]*\]' | tr -d '[]')"
same "the workflow's steps are the two commands" "$(commands README.md | grep '^make run\|^make test')" \
    "$(sed -n 's/^ *- run: //p' .github/workflows/test.yml)"
same "and it runs on Linux and macOS" "ubuntu-latest, macos-latest" \
    "$(sed -n 's/^ *os: \[\(.*\)\]$/\1/p' .github/workflows/test.yml)"

# What is shown. Figures of evaluation are compared in their first digits: the last ones differ by machine.
shown()
{
    awk -v start="$1" '$0 == start { on = 1; next } on && (/^```/ || /^\$ /) { exit } on' README.md
}
first_digits() { awk '$NF ~ /^[0-9]+\.[0-9]+$/ { $NF = sprintf("%.6g", $NF) } 1'; }
(cd "$S" && ./microgpt --quiet --save names.safetensors >/dev/null)
for command in './microgpt sample names.safetensors --prompt jo --samples 4' './microgpt eval names.safetensors'; do
    (cd "$S" && sh -c "$command") | first_digits >"$T/out"
    shown "\$ $command" | first_digits >"$T/expected"
    same_file "shown: $command" "$T/expected" "$T/out"
done
loop=$(commands README.md | grep '^for steps in')
(cd "$S" && sh -c "$loop") 2>&1 | first_digits >"$T/out"
sed -n '/^\$ for steps/,/^```/p' README.md | grep '^[0-9]* steps: held out' | first_digits >"$T/expected"
same_file "shown: the losses held out" "$T/expected" "$T/out"
# One run: its names, in columns; how many are in the list; the losses in the text.
text=$(tr '\n' ' ' <README.md)
in_text() { echo "$text" | sed -n "s/.*$1.*/\\1/p"; }
(cd "$S" && ./microgpt -q --log first.csv) | sed -n 's/^sample *\([0-9]*\): /\1 /p' >"$T/expected"
sed -n '/^--- inference (new/,/^samples that/p' README.md | grep '^ *[0-9]* [a-z]' |
    awk '{ for (i = 1; i < NF; i += 2) print $i, $(i + 1) }' >"$T/out"
same_file "shown: the names" "$T/expected" "$T/out"
same "shown: how many of them are in the list" "$(in_text ': \([a-z]*\) of these twenty are in the list')" \
    "$(cut -d ' ' -f 2 "$T/expected" | grep -c -x -F -f data/names.txt | sed 's/^6$/six/')"
same "shown: the loss at the start, and the mean of the last 100 steps" \
    "$(awk -F , 'NR == 2 { printf "%.2f ", $2 } NR > 901 { sum += $2 } END { printf "%.4f", sum / 100 }' "$S/first.csv")" \
    "$(in_text 'Training starts at \([0-9.]*[0-9]\)') $(in_text 'mean loss of the last 100 steps: \([0-9.]*[0-9]\)')"
same "shown: the documents held out" "$(in_text 'it is `\(held out: [^`]*\)`')" \
    "$(cd "$S" && ./microgpt --holdout 3000 --quiet --samples 0 | tail -n 1)"
lines() { cat "$@" | wc -l; }
for figure in "| \\([0-9,]*\\) to read: $(lines microgpt.c autograd.c autograd.h)" \
    "; \\([0-9,]*\\) in .support: $(lines support/*/*.[ch])"; do
    said=$(in_text "${figure%: *}" | tr -d ,)
    check "shown: lines of code: $said, there are ${figure##*: }" [ $((said - ${figure##*: })) -le 150 -a $((${figure##*: } - said)) -le 150 ]
done

# Heads: what a model of 5000 steps prints, whose digits are the same everywhere. block FILE START: the block that begins so.
block() { awk -v start="$2" '/^```/ { on = 0; first = 1; next } first && index($0, start) == 1 { on = 1 } { first = 0 } on' "$1"; }
heads() { (cd "$S" && LC_ALL=C.UTF-8 ./microgpt heads five.safetensors "$@") | sed 's/ *$//'; }
(cd "$S" && ./microgpt --steps 5000 --save five.safetensors -q --samples 0 >/dev/null)
same "the heads shown are those of 5000 steps" 2 \
    "$(cat README.md tests/README.md | grep -c '/microgpt --steps 5000 --save names.safetensors -q --samples 0')"
block README.md 'layer 0 head 0 ' >"$T/expected"
heads maria | head -n 8 >"$T/out"
same_file "shown: the maps of a name" "$T/expected" "$T/out"
block README.md 'after ^maria comes' >"$T/expected"
heads maria --votes | awk 'BEGIN { RS = "" } /^after .maria comes/' >"$T/out"
same_file "shown: the votes for the end of a name" "$T/expected" "$T/out"
block tests/README.md 'layer head ' >"$T/expected"
heads >"$T/out"
same_file "shown: the table of heads" "$T/expected" "$T/out"
# The advice for one's own data is what tests/bench/own_data measures, on lists without a line twice.
sh tests/bench/own_data -l "$T/lists" >"$T/out" 2>&1
same "own_data: ten lists, no line twice" "10 0" \
    "$(ls "$T/lists" | wc -l | tr -d ' ') $(for list in "$T"/lists/*; do sort "$list" | uniq -d; done | wc -l | tr -d ' ')"
sed -n '/^| your lines/,/^$/s/^|[^|]*| `\(--[^`]*\)` |.*/\1/p' README.md | sed 's/ W$//' >"$T/advised"
same "rows of advice" "3 3" "$(wc -l <"$T/advised" | tr -d ' ') $(while read -r settings; do
    grep -F -e "echo \"$settings " tests/bench/own_data; done <"$T/advised" | wc -l | tr -d ' ')"
sh tests/bench/own_data none >"$T/out" 2>&1
same "own_data of a list that is not there" "2 own_data: none: no such list" "$? $(tail -n 1 "$T/out")"

# The programs that use the engine: each compiled by the line that is shown, in a folder with nothing but the engine's two
# files, without a warning, prints what is shown.
mkdir -p "$T/example"
cp autograd.c autograd.h "$T/example"
n=0
for name in example learn; do
    n=$((n + 1))
    awk -v n=$n '/^```c$/ { block++; next } /^```/ { block = block == n ? 99 : block } block == n' README.md >"$T/example/$name.c"
    compile=$(sed -n "s/^\$ \(cc .*$name\.c.*\)/\1/p" README.md)
    # shellcheck disable=SC2086
    (cd "$T/example" && $CC $WARN -Werror $LDFLAGS ${compile#cc }) >"$T/out" 2>&1
    same "$name.c: its compiler's status and words" "0 " "$? $(head -n 3 "$T/out")"
    (cd "$T/example" && ./a.out) >"$T/out" 2>&1
    awk -v name=$name '/^\$ cc / { on = index($0, name ".c") } /^```/ { on = 0 } on && !/^\$/' README.md >"$T/expected"
    same_file "shown: what $name.c prints" "$T/expected" "$T/out"
done

# Attention, line by line: every row of the guide's table is a statement of gpt(), in the order of the lesson's lines.
plain() { sed 's|//.*||' | tr -s ' \n' ' ' | sed 's/( /(/g'; }
sed -n '/^double \*gpt(/,/^}/p' microgpt.c | plain >"$T/gpt"
sed -n 's/^| 1[23][0-9] | .* | `\(.*\)` |$/\1/p' support/debugger/README.md >"$T/statements"
same "lines 123 to 133 are in the table" "$(seq 123 133 | tr '\n' ' ')" \
    "$(sed -n 's/^| \(1[23][0-9]\) | .* | `.*` |$/\1/p' support/debugger/README.md | tr '\n' ' ')"
rest=$(cat "$T/gpt") lost=
while IFS= read -r statement; do
    case $rest in
    *"$statement"*) rest=${rest#*"$statement"} ;;
    *) lost="$lost $statement" ;;
    esac
done <"$T/statements"
same "statements in the table that gpt() does not have, or has in another order" "" "$lost"

# The lines of Python, where there is NumPy to run them.
sed -n '/^```python/,/^```$/p' data/README.md | sed '/^```/d' >"$S/logits.py"
for python in python3 /usr/bin/python3; do
    command -v $python >/dev/null 2>&1 && $python -c 'import numpy' 2>/dev/null && break
    python=
done
if [ -z "$python" ]; then
    skip "the lines of Python" "there is no NumPy"
else
    figures=$(sed -n 's/.*it prints \([0-9.]*\) for `a`, \([0-9.]*\) for `b`.*/\1 \2/p' data/README.md)
    same "the lines of Python: the first logits" "$figures" \
        "$(cd "$S" && $python logits.py | sed -n 1p | tr -d '[]' | awk '{ print $1, $2 }')"
fi

# The comparison with microgpt.py, with programs that print what it prints, and something else.
if command -v python3 >/dev/null 2>&1; then
    printf 'import os\nassert os.path.getsize("input.txt") == 229201\nprint(end=open("%s", newline="").read())\n' \
        "$ROOT/tests/reference/microgpt-names2018.stdout" >"$T/same.py"
    echo 'print("something else")' >"$T/other.py"
    python3 tests/bench/compare.py "$T/same.py" >"$T/out" 2>&1
    same "compare.py: the same bytes" "0 1" "$? $(grep -c 'standard output .* the same bytes$' "$T/out")"
    same "compare.py: lines" "3 $(cat microgpt.c autograd.h autograd.c | wc -l | tr -d ' ')" \
        "$(awk '/^lines/ { print $4, $5 }' "$T/out")"
    python3 tests/bench/compare.py "$T/other.py" >"$T/out" 2>&1
    same "compare.py: other bytes" "1 1" "$? $(grep -c 'standard output .* DIFFERENT$' "$T/out")"
    python3 tests/bench/compare.py >"$T/out" 2>&1
    same "compare.py without a file says where to get it" "1 1" "$? $(grep -c 'microgpt.py is at https://gist.github.com/karpathy/' "$T/out")"
else
    skip "the comparison with microgpt.py" "there is no Python"
fi
finish
