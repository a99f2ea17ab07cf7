# The tests themselves, where a test could go wrong for no fault of the program: in folders with odd names, and with odd
# settings of the shell. A small part of them.
# this file only with ALL=1
. tests/lib.sh
parts='errors notes resume files output terminal'

# passes WHAT FOLDER COMMAND...: make test, from a copy of the project in FOLDER, started by COMMAND.
passes()
{
    passes_what=$1 S=$2
    shift 2
    copy_project "$S"
    (unset ALL JOBS VERBOSE BUILD && cd "$S" && "$@" make -s test TESTS="$parts" CC="$CC" CFLAGS='-O1 -DAUTOGRAD_LANES') >"$T/said" 2>&1
    status=$?
    same "$passes_what" "0 0 failed" "$status $(sed -n 's/^[0-9]* passed, \([0-9]* failed\).*/\1/p' "$T/said" | tail -n 1)"
    [ $status -eq 0 ] || grep 'not ok' "$T/said" | head -n 3 | sed 's/^/#/'
    rm -rf "$S"
}
passes 'a folder with a space and an umlaut' "$T/o d ü" env
passes 'a folder with quotes and dollars' "$T/it's \"a\" \$HOME \`id\` *" env
mkdir "$T/t m p"
# shellcheck disable=SC2016
passes 'a mask, a screen, a language, a time, a terminal, a shell' "$T/plain" env TMPDIR="$T/t m p" COLUMNS=60 \
    LANG=tr_TR.UTF-8 LC_ALL=tr_TR.UTF-8 TZ=Asia/Kathmandu TERM=vt52 POSIXLY_CORRECT=1 NO_COLOR=1 \
    sh -c 'umask 077; exec "$@"' sh
if unshare -m sh -c 'mount -t tmpfs none /proc' 2>"$T/why"; then
    # shellcheck disable=SC2016
    passes 'no /proc' "$T/plain" unshare -m sh -c 'mount -t tmpfs none /proc && exec "$@"' sh
else
    skip 'no /proc' 'it cannot be hidden here'
fi
finish
