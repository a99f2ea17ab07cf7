# Every signal at every moment of a run, with standard output and standard error free, full and stuck: it ends as it
# should, within seconds, and its model is whole. VERBOSE=1 shows the table.
# this file only with ALL=1
# takes long
. tests/lib.sh

flags="$CFLAGS -Wno-unused-function"
# shellcheck disable=SC2046,SC2086
$CC $WARN $flags -I. -o "$T/microgpt" tests/faults/signal_at.c $(rest_of "$BUILD/objects" tests/faults/signal_at.c) -lm &&
    $CC $WARN -O1 -o "$T/signals" tests/faults/signals.c || exit 1
mkdir "$T/data" "$T/work"
head -n 1000 data/names.txt >"$T/data/names.txt"
"$T/signals" "$T/microgpt" "$T/work" || failures=1
finish
