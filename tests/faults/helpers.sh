# What the tests of faults share. Sourced after tests/lib.sh.

# The last step of a model file.
step_of() { tr ',' '\n' 2>/dev/null <"$1" | sed -n 's/^"train.step":"\([0-9]*\)"$/\1/p' | head -n 1; }

# build_with_faults FLAG...: $T/microgpt, the program with tests/faults/faults.c between it and the C library.
build_with_faults()
{
    wraps=$(sed -n 's/^\(WRAP\|REAL\)([a-z_ *]*, \([a-z_]*\),.*/,--wrap=\2/p' tests/faults/faults.c | tr -d '\n')
    # shellcheck disable=SC2086
    $CC -std=c11 -D_XOPEN_SOURCE=700 "$@" "-Wl$wraps" -o "$T/microgpt" $SOURCES tests/faults/faults.c -lm \
        >"$T/build.log" 2>&1
}

ASAN_OPTIONS=detect_leaks=1:exitcode=98:allocator_may_return_null=1 UBSAN_OPTIONS=halt_on_error=1:exitcode=97
export ASAN_OPTIONS UBSAN_OPTIONS FAULT FAULT_TERMINAL FAULT_STAYS FAULT_NO_LINKS FAULT_HAPPENED

# Builds tests/faults/lose.c, which runs a command with signals at their default: $LOSE default COMMAND...
build_lose() { $CC $WARN -O1 -o "$T/lose" tests/faults/lose.c && LOSE=$T/lose; }

# build_stop_at FLAG...: $T/stop_at, the program to which signals come at exact moments.
build_stop_at()
{
    # shellcheck disable=SC2046
    $CC "$@" -I. -o "$T/stop_at" tests/faults/stop_at.c $(rest_of "$BUILD/objects" tests/faults/stop_at.c) -lm
}
