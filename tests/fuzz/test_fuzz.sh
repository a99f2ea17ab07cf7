# The fuzz targets as ordinary tests: every input of the corpus, cut short at every place and with every byte changed,
# under the sanitizers where the compiler has them. Without ALL=1 it is 50 places of each, and no sanitizers. `make fuzz`
# searches for more.
# takes long
. tests/lib.sh

ASAN_OPTIONS=abort_on_error=1:handle_abort=0:detect_leaks=1 UBSAN_OPTIONS=abort_on_error=1
export ASAN_OPTIONS UBSAN_OPTIONS
flags='-O1 -g'
places=50
[ -z "$ALL" ] || places=512
case $CFLAGS in *--coverage*) flags=$CFLAGS SANITIZE= ;; esac
objects() { make -s objects OBJECTS="$BUILD/fuzz" CC="$CC" CFLAGS="$flags $1 -Dmain=microgpt_main"; }
objects "$SANITIZE" >"$T/objects.log" 2>&1 || { SANITIZE=; objects '' >"$T/objects.log" 2>&1; } || exit 1
for source in tests/fuzz/fuzz_*.c; do
    target=$(basename "$source" .c | sed 's/^fuzz_//')
    [ -d "tests/fuzz/corpus/$target" ] || continue              # fuzz_main.c is no target
    # shellcheck disable=SC2086,SC2046
    if ! $CC $WARN -Wno-unused-function $flags $SANITIZE -DFUZZ_MAIN -o "$T/$target" "$source" \
        $(rest_of "$BUILD/fuzz" "$source") -lm >"$T/$target.log" 2>&1; then
        not_ok "fuzz target $target" 'a build' "$(head -n 3 "$T/$target.log" | tr '\n' ' ')"
        continue
    fi
    if [ -s "$T/$target.log" ]; then
        not_ok "fuzz target $target" 'a build without warnings' "$(head -n 3 "$T/$target.log" | tr '\n' ' ')"
    fi
    if (cd "$T" && "./$target" "$T/$target.input" $places "$ROOT/tests/fuzz/corpus/$target"/*) >"$T/$target.out" 2>&1; then
        ok "fuzz target $target: $(tail -n 1 "$T/$target.out")"
    else
        not_ok "fuzz target $target" 'every promise kept' \
            "status $?, $T/$target.input: $(grep -m 1 -E 'promise|ERROR|runtime error' "$T/$target.out")"
    fi
done
finish
