# What README.md shows can be typed: its commands run as they stand there, and print what it says.
. tests/lib.sh

# A folder that looks like the project's, to type in.
S=$T/project
mkdir -p "$S/data"
cp microgpt "$S/microgpt"
cp data/names.txt "$S/data/names.txt"
tail -n 300 data/names.txt >"$S/words.txt"

# The commands, one a line, without the prompts and remarks around them.
sed -n -e 's/^    \(\.\/microgpt .*\)/\1/p' -e 's/^    \(sort .*\)/\1/p' -e 's/^\$ \(\.\/microgpt .*\)/\1/p' \
    -e 's/^\(\.\/microgpt .*\)/\1/p' README.md | sed 's/  *#.*//' | grep -v makemore >"$T/commands"
[ "$(wc -l <"$T/commands")" -ge 12 ] || not_ok "README.md: commands" "a dozen or more" "$(wc -l <"$T/commands")"
while IFS= read -r command; do
    if (cd "$S" && sh -c "$command") >"$T/out" 2>"$T/err" </dev/null; then
        ok "typed: $command"
    else
        not_ok "typed: $command" "exit status 0" "$? and '$(head -n 1 "$T/err")'"
    fi
done <"$T/commands"

# What it shows of them. Figures of evaluation are compared in their first digits: the last ones differ by machine.
shown()
{
    awk -v start="$1" '$0 == start { on = 1; next } on && (/^```/ || /^\$ /) { exit } on' README.md
}
first_digits() { awk '$NF ~ /^[0-9]+\.[0-9]+$/ { $NF = sprintf("%.9f", $NF) } 1'; }
(cd "$S" && ./microgpt --quiet --save names.safetensors >/dev/null)
for command in './microgpt sample names.safetensors --prompt jo --samples 4' './microgpt eval names.safetensors'; do
    (cd "$S" && sh -c "$command") | first_digits >"$T/out"
    shown "\$ $command" | first_digits >"$T/expected"
    same_file "shown: $command" "$T/expected" "$T/out"
done
(cd "$S" && ./microgpt -q) | sed -n '/^---/,/^sample  5/p' >"$T/out"
sed -n '/^--- inference (new/,/^sample  5/{p;/^sample  5/q;}' README.md >"$T/expected"
same_file "shown: the first names" "$T/expected" "$T/out"

# The lines of Python, where there is NumPy to run them.
sed -n '/^```python/,/^```$/p' README.md | sed '/^```/d' >"$S/logits.py"
(cd "$S" && ./microgpt --save names.safetensors -q --samples 0 >/dev/null)
for python in python3 /usr/bin/python3; do
    command -v $python >/dev/null 2>&1 && $python -c 'import numpy' 2>/dev/null && break
    python=
done
if [ -z "$python" ]; then
    skip "the lines of Python" "there is no NumPy"
else
    figures=$(sed -n 's/.*it prints \([0-9.]*\) for `a`, \([0-9.]*\) for `b`.*/\1 \2/p' README.md)
    same "the lines of Python: the first logits" "$figures" \
        "$(cd "$S" && $python logits.py | head -n 1 | tr -d '[]' | awk '{ print $1, $2 }')"
fi
finish
