# Standard output, to the byte: both recipes, options in all their forms, from anywhere, and after an installation.
# takes long
. tests/lib.sh
R=tests/reference
short='--steps 5 --samples 3'

# The whole main job.
prints "microgpt" $R/microgpt-names2018.stdout
notes_may=yes
prints "microgpt --recipe lesson" $R/lesson-names2018.stdout --recipe lesson
notes_may=
make -s run >"$T/run" 2>"$T/run.err"
same_file "make run" $R/microgpt-names2018.stdout "$T/run"
same "make run: standard error" "" "$(cat "$T/run.err")"
microgpt --data - <data/names.txt >"$T/stdin" 2>&1
same_file "--data - FILE on standard input" $R/microgpt-names2018.stdout "$T/stdin"
# shellcheck disable=SC2002
cat data/names.txt | microgpt --data=- >"$T/stdin" 2>&1
same_file "--data=- a pipe on standard input" $R/microgpt-names2018.stdout "$T/stdin"

# Quiet: the same without the step lines.
{ head -n 3 $R/microgpt-names2018.stdout; tail -n +4 $R/microgpt-names2018.stdout | tr '\r' '\n' | grep -v '^step'; } >"$T/quiet"
prints "--quiet" "$T/quiet" --quiet
prints "--qui, a beginning" "$T/quiet" --qui
grep -v '^step' $R/lesson-names2018.stdout >"$T/quiet-lesson"
prints "-q --recipe lesson" "$T/quiet-lesson" -q --recipe lesson

# The log among it, in order.
microgpt --log "$T/log.csv" >"$T/stdout"
if [ -e /dev/stdout ]; then
    microgpt --log /dev/stdout | tr '\r' '\n' | grep '^[0-9]*,\|^step,' >"$T/rows"
    same_file "--log /dev/stdout: all rows, in a pipe" "$T/log.csv" "$T/rows"
    microgpt -q --samples 0 --log /dev/stdout | sed 1,3d >"$T/saw"
    same_file "with -q and without samples: a log, after three lines" "$T/log.csv" "$T/saw"
else
    skip "--log /dev/stdout" "there is no /dev/stdout"
fi

# Options in any order and form. Each of these lines is the same run.
notes_may=yes
microgpt --recipe lesson --steps 5 --samples 3 --lr 0.02 --temperature 0.9 >"$T/expected" 2>"$T/stderr"
prints "the recipe last" "$T/expected" --steps 5 --samples 3 --lr 0.02 --temperature 0.9 --recipe lesson
prints "the recipe in the middle" "$T/expected" --lr 0.02 --steps 5 --recipe lesson --temperature 0.9 --samples 3
prints "--name=value" "$T/expected" --steps=5 --recipe=lesson --samples=3 --lr=0.02 --temperature=0.9
prints "beginnings of names" "$T/expected" --st 5 --sam 3 --rec lesson --lr 0.02 --te=0.9
prints "an option given twice: the last one counts" "$T/expected" --steps 7 --recipe microgpt --lr 1 --samples 3 \
    --recipe lesson --lr 0.02 --temperature 0.9 --steps 5
prints "train, then --" "$T/expected" train --recipe lesson --steps 5 --samples 3 --lr 0.02 --temperature 0.9 --
prints "the defaults of the lesson, spelled out" "$T/expected" --steps 5 --samples 3 --lr 2e-2 --temperature .9 \
    --recipe lesson --block-size 8 --init-std 0.02 --activation relu2 --beta1 0.9 --beta2 0.95 --schedule cosine \
    --n-layer 1 --n-embd 16 --n-head 4 --seed 42 --data data/names.txt
prints "numbers in other forms" "$T/expected" --recipe lesson --steps 0005 --samples 03 --lr +20E-3 --temperature 9e-1
notes_may=
# shellcheck disable=SC2086
microgpt $short >"$T/expected" 2>&1
prints "the defaults of microgpt, spelled out" "$T/expected" $short --recipe microgpt --block-size 16 --init-std 0.08 \
    --activation relu --beta1 0.85 --beta2 0.99 --schedule linear --lr 0.01 --temperature 0.5 --seed 42
# Every sample begins with the prompt; the training before it is the same.
microgpt --steps 20 --samples 9 --prompt anna >"$T/prompt" 2>&1
same "--prompt: all samples begin with it" 9 "$(grep -c '^sample  [0-9]: anna' "$T/prompt")"
same "--prompt: the steps are those without it" "$(microgpt --steps 20 --samples 0)" "$(sed '/^sample/d' "$T/prompt")"
microgpt --steps 20 --samples 4 --temperature 0 >"$T/greedy" 2>&1
same "--temperature 0: all samples are the same" 1 "$(sed -n 's/^sample  [0-9]: //p' "$T/greedy" | sort -u | wc -l | tr -d ' ')"
for zero in -0 1e-308 1e-400; do
    prints "--temperature $zero is as good as 0" "$T/greedy" --steps 20 --samples 4 --temperature $zero
done
same "--samples 0" "0" "$(microgpt --steps 2 --samples 0 | grep -c '^sample')"
same "--samples 120: the last" "sample 120" "$(microgpt --steps 2 --samples 120 | tail -n 1 | cut -d : -f 1)"
same "--steps 12345: the width of the number" "step    1 / 12345 |" "$(microgpt --steps 12345 | sed -n 4p | cut -c 1-19)"

# From another folder, through a link, found on the PATH.
in_folder()
{
    what=$1 folder=$2
    shift 2
    (cd "$folder" && "$@" --steps 5 --samples 3) >"$T/stdout" 2>"$T/stderr" </dev/null
    same_file "$what" "$T/expected" "$T/stdout"
    what=
}
mkdir -p "$T/else where/bin"
in_folder "from another folder" "$T/else where" "$ROOT/microgpt"
ln -s "$ROOT/microgpt" "$T/else where/bin/link"
in_folder "through a link" / "$T/else where/bin/link"
in_folder "through a link on the PATH" / env PATH="$T/else where/bin:$PATH" link

# Installed from a copy of the sources, built quickly; and gone again.
D="$T/dest dir" P=$T/prefix
mkdir -p "$T/source" "$P/bin" "$P/share/man"
cp -R Makefile microgpt.c autograd.c autograd.h support data LICENSE "$T/source"
installed() { make -s -C "$T/source" "$@" CC="$CC" LDFLAGS="$LDFLAGS" CFLAGS="$flags"; }
flags=-O0
check "make install" installed install DESTDIR="$D" PREFIX=/opt/my
same "what make install puts there" "/opt/my/bin/microgpt /opt/my/share/microgpt/LICENSE /opt/my/share/microgpt/folders \
/opt/my/share/microgpt/names.txt $(printf '/opt/my/share/microgpt/%s ' $(cd data && ls page/*.* | grep -v model.js) | sed 's/ $//')" \
    "$(cd "$D" && find . -type f | sort | grep -v '/man/' | sed 's/^\.//' | tr '\n' ' ' | sed 's/ $//')"
mv "$D" "$T/moved"
in_folder "installed" / "$T/moved/opt/my/bin/microgpt"
mv "$T/moved" "$D"
check "make install, a second time" installed install DESTDIR="$D" PREFIX=/opt/my
check "make uninstall" installed uninstall DESTDIR="$D" PREFIX=/opt/my
same "what make uninstall leaves" "" "$(find "$D" 2>/dev/null)"

# Where others could not read what is installed, under a name that a shell would read, or without a program that runs.
odd="$T/it's \"my\" \$HOME \`id\`"
(umask 077 && installed install PREFIX="$(echo "$odd" | sed 's/\$/$$/g')") >"$T/check.log" 2>&1
in_folder "installed in a folder with an odd name" / "$odd/bin/microgpt"
# shellcheck disable=SC2012
same "with a umask of 077, everyone can read it" "-rwxr-xr-x -rw-r--r-- drwxr-xr-x -rw-r--r--" \
    "$(cd "$odd" && ls -ld bin/microgpt share/microgpt/names.txt share/man/man1/microgpt.1 share/microgpt | cut -c 1-10 | paste -s -d ' ' -)"
installed uninstall PREFIX="$(echo "$odd" | sed 's/\$/$$/g')" >"$T/check.log" 2>&1
same "and make uninstall takes it away" "" "$(find "$odd" 2>/dev/null)"
mkdir "$T/lame"
cp -R Makefile data "$T/lame"
printf '#!/bin/sh\nexit 1\n' >"$T/lame/microgpt"
make -s -C "$T/lame" -o microgpt microgpt.1 >"$T/check.log" 2>&1
same "a program that does not run: no manual page" "2 0" "$? $(find "$T/lame" -name 'microgpt.1*' | grep -v /data/ | wc -l | tr -d ' ')"
if command -v bmake >/dev/null 2>&1; then
    (cd "$T/lame" && bmake) >"$T/check.log" 2>&1
    same "BSD make: a sentence" "1 1" "$? $(grep -c 'needs GNU make' "$T/check.log")"
else
    skip "BSD make" "there is no bmake"
fi

# Without /proc, and started by its bare name, it is found along PATH. Folders that were there before stay there.
if [ -n "$ALL" ]; then
    printf '#include <unistd.h>\n#define readlink(path, text, room) ((void)(path), (void)(text), (ssize_t)-1)\n' >"$T/no_proc.h"
    flags="-O0 -D_GNU_SOURCE= -include $T/no_proc.h"
    check "make install without /proc" installed install PREFIX="$P"
    in_folder "without /proc, by its bare name" / env PATH="$P/bin:$PATH" microgpt
    in_folder "without /proc, by its path" / "$P/bin/microgpt"
    check "make uninstall" installed uninstall PREFIX="$P"
    same "the folders that were there are left" ". ./bin ./share ./share/man" "$(cd "$P" && find . | sort | paste -s -d ' ' -)"
fi

# Help and version.
microgpt --help >"$T/help" 2>"$T/stderr"
same "--help: status and standard error" "0 " "$? $(cat "$T/stderr")"
missing=
for option in data recipe steps seed n-layer n-embd n-head block-size lr beta1 beta2 init-std activation schedule \
    samples temperature prompt quiet help version; do
    grep -q -- " --$option[ =]\| --$option\$" "$T/help" || missing="$missing --$option"
done
same "--help: options that it leaves out" "" "$missing"
same "--version" "microgpt 1.2.0" "$(microgpt --version 2>&1)"
for command in $(microgpt --help | sed -n 's/^  microgpt \([a-z]*\).*/\1/p'); do
    same "microgpt $command --help: lines wider than 79" "" "$(microgpt "$command" --help | awk 'length > 79')"
    same "microgpt $command --help: letters" "-h, --help -q, --quiet" \
        "$(microgpt "$command" --help | sed -n 's/^  \(-[^ ]*, --[a-z]*\) .*/\1/p' | sort | paste -s -d ' ' -)"
done
same "--help: the recipes' defaults differ where they should" 7 "$(microgpt --help | grep -c 'lesson: ')"
same "a default of each recipe" "      --init-std X             standard deviation of the initial parameters
                               (0.08; lesson: 0.02)" "$(microgpt --help | sed -n '/init-std/ { N; p; }')"
same "--version among other options" "microgpt 1.2.0" "$(microgpt --steps 3 --version 2>&1)"
same "-q --help is help" "$(microgpt --help)" "$(microgpt -q --help 2>&1)"
same "-h is help" "$(microgpt sample --help)" "$(microgpt sample -h 2>&1)"

# A reader that goes away does not hang the program.
same "a closed pipe" "num docs: 32178" "$(microgpt | head -n 1)"

# One that is slow loses nothing: more than a pipe holds waits for it, for longer than a second.
same "a slow reader" 30000 "$(microgpt -q --steps 0 --samples 30000 | (sleep 1.3; grep -c '^sample'))"
finish
