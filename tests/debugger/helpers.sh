# Helpers for the tests of the debugger: after those of all tests, what compares numbers, and what asks the debuggers.
. tests/lib.sh
unset MAKEFLAGS MFLAGS DEBUGINFOD_URLS

# near WHAT EXPECTED SEEN: two lists of numbers, as long as each other and not empty, equal to within 1e-12.
near()
{
    seen=$(printf '%s|%s\n' "$(echo $2)" "$(echo $3)" | awk -F'|' '{
        n = split($1, a, " "); m = split($2, b, " ")
        if (n == 0 || n != m) { print m " numbers instead of " n; exit }
        for (i = 1; i <= n; i++) {
            d = a[i] - b[i]
            if (b[i] !~ /^[-+.0-9e]+$/ || d > 1e-12 || d < -1e-12) {
                print "number " i ": " b[i] " instead of " a[i]
                exit
            }
        }
        print "equal" }')
    if [ "$seen" = equal ]; then ok "$1"; else not_ok "$1" "the engine's numbers" "$seen"; fi
}

# has WHAT TEXT FILE: a line of the file has the text.
has()
{
    if grep -qF -e "$2" "$3"; then ok "$1"; else not_ok "$1" "'$2'" "$(head -c 400 "$3" | tr '\n' '~')"; fi
}

figure() { awk -v key="$1" '$1 == key { print $2 }' "$T/figures"; }

# What a session printed after `echo @NAME\n` and before the next of these.
part() { awk -v name="@$1" '/^@/ { on = $0 == name; next } on' "$T/session"; }

# The numbers of a table: of the rows that begin with an index, these columns.
columns()
{
    awk -v list="$1" 'BEGIN { n = split(list, c, " ") } /^ +[0-9]+ / { for (i = 1; i <= n; i++) print $c[i] }'
}

rows() { sed -n "$1"p; }

[ -x microgpt ] || make -s CC="$CC" microgpt
make -s CC="$CC" microgpt-debug || { not_ok "make microgpt-debug" "a program" "an error"; finish; }

# Whether gdb and lldb are here, and can run a program: $have_gdb and $have_lldb.
have_gdb=
if command -v gdb >/dev/null 2>&1 && gdb -nx -q -batch -ex 'break main' -ex run -ex 'print 6*7' ./microgpt-debug 2>&1 \
        </dev/null | grep -q '= 42'; then
    have_gdb=1
fi
if [ -n "$have_gdb" ] && gdb -nx -q -batch -ex 'break main' -ex run -ex 'print abs(-42)' ./microgpt-debug 2>&1 </dev/null |
        grep -q "Couldn't write extended state"; then
    shim=$(mktemp -d)  # without a space in its name
    trap 'rm -rf "$shim"' EXIT
    check "what gdb needs on this processor" "$CC" -shared -fPIC -O1 -o "$shim/xstate.so" tests/debugger/xstate.c -ldl
    export LD_PRELOAD="$shim/xstate.so"
fi
have_lldb=
if command -v lldb >/dev/null 2>&1 && lldb --no-lldbinit -b -o 'breakpoint set -n main' -o run -o 'expression 6*7' \
        ./microgpt-debug 2>&1 </dev/null | grep -q '= 42'; then
    have_lldb=1
fi

has_debugger() { if [ "$1" = gdb ]; then [ "$have_gdb" ]; else [ "$have_lldb" ]; fi; }

# ask ARGUMENTS <COMMANDS: a gdb session into $T/session. ask_in NAME ARGUMENTS <COMMANDS: in a copy (see below). ask_lldb ARGUMENTS
# <COMMANDS: an lldb session.
ask()
{
    cat >"$T/commands"
    # shellcheck disable=SC2086
    gdb -nx -q -batch -x .build/debug/commands.gdb -x "$T/commands" --args ./microgpt-debug ${1:-} >"$T/session" 2>&1 </dev/null
}
ask_in()
{
    cat >"$T/commands"
    # shellcheck disable=SC2086
    (cd "$T/$1" && gdb -nx -q -batch -x .build/debug/commands.gdb -x "$T/commands" --args ./microgpt-debug ${2:-}) \
        >"$T/session" 2>&1 </dev/null
}
ask_lldb()
{
    cat >"$T/commands"
    # shellcheck disable=SC2086
    lldb --no-lldbinit -b -o 'command source -s true .build/debug/commands.lldb' -s "$T/commands" -- ./microgpt-debug ${1:-} 2>&1 \
        </dev/null | tr -d '\r' >"$T/session"
}

# session DEBUGGER ARGUMENTS <COMMANDS: the same in either. said COMMAND: what this command printed there.
session()
{
    if [ "$1" = lldb ]; then ask_lldb "${2:-}"; else sed 's/.*/echo @&\\n\n&/' | ask "${2:-}"; fi
}
said()
{
    awk -v name="$1" '/^@|^\(lldb\) / { on = $0 == "@" name || $0 == "(lldb) " name; next } on' "$T/session"
}

# copied NAME SCRIPT: a copy of the program in $T/NAME, with microgpt.c changed by sed. changed NAME SCRIPT builds it, too.
copied()
{
    mkdir -p "$T/$1"
    cp -r microgpt.c autograd.c autograd.h Makefile support "$T/$1"
    ln -s "$ROOT/data" "$T/$1/data"
    sed "$2" microgpt.c >"$T/$1/microgpt.c"
    check "$1: a line of microgpt.c is changed" sh -c "! cmp -s microgpt.c '$T/$1/microgpt.c'"
}
changed()
{
    copied "$1" "$2"
    (cd "$T/$1" && make -s CC="$CC" microgpt-debug) || not_ok "$1" "a program" "an error"
}

# figures N_LAYER N_EMBD N_HEAD: what the fast engine says, into $T/figures.
figures()
{
    if [ ! -x "$T/figures_of_the_engine" ]; then
        # shellcheck disable=SC2086
        $CC $WARN -Wno-unused-function -O2 -I. -o "$T/figures_of_the_engine" tests/debugger/figures.c autograd.c \
            support/[!d]*/*.c -lm || { not_ok "figures.c compiles" "a program" "an error"; finish; }
    fi
    "$T/figures_of_the_engine" "$@" >"$T/figures"
}
