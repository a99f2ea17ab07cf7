# Helpers for the tests in sh. A test begins with `. tests/lib.sh` and ends with `finish`. It is started in the
# project's folder, by tests/run or by hand. $T is a folder of its own, empty at the start.

: "${BUILD:=tests/build}" "${CC:=cc}" "${CFLAGS=-O2}" "${LDFLAGS=}" "${MICROGPT_WRAPPER=}" "${ALL=}"
: "${WARN=-std=c11 -Wall -Wextra -Wpedantic -Wshadow -Wconversion}"
SANITIZE=
[ -z "$ALL" ] || SANITIZE='-fsanitize=address,undefined,float-cast-overflow -fno-sanitize-recover=all' # these builds take their time
. tests/link.sh
SOURCES='microgpt.c autograd.c support/[!d]*/*.c'
export LC_ALL=C
ROOT=$(pwd)
T=$ROOT/$BUILD/$(basename "$0" .sh).d
[ ! -d "$T" ] || chmod -R u+rwx "$T"
rm -rf "$T"
mkdir -p "$T" || exit 1
failures=0

ok() { echo "ok - $1"; }
skip() { echo "skip - $1: $2"; }

# not_ok WHAT EXPECTED SEEN
not_ok()
{
    echo "not ok - $1: expected $2, saw $3"
    failures=$((failures + 1))
}

finish()
{
    [ "$failures" -eq 0 ]
    exit
}

# check WHAT COMMAND...: the command succeeds.
check()
{
    check_what=$1
    shift
    if "$@" >"$T/check.log" 2>&1; then
        ok "$check_what"
    else
        not_ok "$check_what" "success of: $*" "status $?: $(head -c 300 "$T/check.log" | tr '\n' ' ')"
    fi
}

# same WHAT EXPECTED SEEN: two texts.
same()
{
    if [ "$2" = "$3" ]; then ok "$1"; else not_ok "$1" "'$2'" "'$3'"; fi
}

# same_file WHAT EXPECTED SEEN: two files, to the byte. What differs is shown from the first difference on.
same_file()
{
    if cmp -s "$2" "$3"; then
        ok "$1"
        return
    fi
    if [ ! -r "$3" ]; then
        not_ok "$1" "the bytes of $2" "no file"
        return
    fi
    at=$(cmp "$2" "$3" 2>&1 | sed -n 's/.*\(byte\|char\) \([0-9]*\),.*/\2/p')
    at=${at:-$(($(wc -c <"$3") + 1))}
    not_ok "$1 (byte $at)" "'$(part_of "$2" "$at")'" "'$(part_of "$3" "$at")'"
}
part_of() { tail -c "+$2" "$1" | head -c 60 | tr '\r\n' '<|'; }

# microgpt OPTION...: the program, as the tests run it.
microgpt()
{
    # shellcheck disable=SC2086
    $MICROGPT_WRAPPER ./microgpt "$@"
}

# Root may read and write everything, so what must be refused is tried as somebody else: $as COMMAND. In $open, a folder
# that anyone can enter, are the program and its names. Fails where no one else can run them.
as_somebody_else()
{
    as=
    [ "$(id -u)" -ne 0 ] || as='setpriv --reuid=65534 --regid=65534 --clear-groups'
    open=$(mktemp -d) || return
    trap 'chmod -R u+rwx "$open"; rm -rf "$open"' EXIT
    cp -R microgpt data "$open/" && chmod -R a+rX "$open" && $as "$open/microgpt" --version >"$T/version" 2>&1
}

# numbers FILE: the numbers of a model file, one a line: parameters, then both of Adam's means, then the random generator.
numbers() { tail -c +$((9 + $(od -An -t u8 -N 8 "$1"))) "$1" | od -An -v -t f8 | tr -s ' ' '\n' | grep .; }

# prints WHAT FILE OPTION...: microgpt with these options succeeds, says nothing on standard error, and prints FILE.
# Notes on standard error are allowed only if $notes_may is set.
prints()
{
    prints_what=$1 prints_file=$2
    shift 2
    microgpt "$@" >"$T/stdout" 2>"$T/stderr" </dev/null
    status=$?
    [ -z "${notes_may:-}" ] || sed -i.bak '/^microgpt: note: /d' "$T/stderr"
    if [ $status -ne 0 ] || [ -s "$T/stderr" ]; then
        not_ok "$prints_what" "status 0 and no word on standard error" "$status and '$(head -n 3 "$T/stderr")'"
    else
        same_file "$prints_what" "$prints_file" "$T/stdout"
    fi
}

# fails STATUS PATTERN COMMAND...: the command ends with this status; on standard error is one line, "microgpt: " and
# what the shell pattern allows; on standard output is nothing, unless $stdout_may is set. $what names it otherwise.
fails()
{
    want=$1 pattern=$2
    shift 2
    name="$(printf '%s ' "$@" | tr '\n\t' '  ' | cut -c 1-100)"
    "$@" >"$T/stdout" 2>"$T/stderr" </dev/null
    fails_as_said "${what:-$name}" $?
    what=
}

# The judgement of `fails`, on what is in $T/stdout and $T/stderr: WHAT STATUS.
fails_as_said()
{
    seen=$(cat "$T/stderr")
    if [ "$2" -ne "$want" ]; then
        not_ok "$1" "status $want" "$2 and '$seen'"
        return
    fi
    if [ "$(wc -l <"$T/stderr")" -ne 1 ]; then
        not_ok "$1" "one line on standard error" "$(wc -l <"$T/stderr"): '$seen'"
        return
    fi
    # shellcheck disable=SC2254
    case $seen in
    "microgpt: "$pattern) ;;
    *)
        not_ok "$1" "'microgpt: $pattern'" "'$seen'"
        return
        ;;
    esac
    if [ -z "${stdout_may:-}" ] && [ -s "$T/stdout" ]; then
        not_ok "$1" "nothing on standard output" "'$(head -c 60 "$T/stdout")'"
        return
    fi
    ok "$1: $seen"
}
