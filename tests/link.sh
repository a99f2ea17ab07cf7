# rest_of FOLDER FILE: the objects in FOLDER that FILE is to be linked with, which are all of the program but the sources
# that FILE includes itself, to reach what is static there or to change what they call.
rest_of()
{
    for part in microgpt.c autograd.c support/[!d]*/*.c; do
        grep -q "^#include \".*/$part\"" "$2" || echo "$1/${part%.c}.o"
    done
}

# copy_project FOLDER: all that it takes to build the program and to test it.
copy_project()
{
    mkdir -p "$1/tests"
    cp -R Makefile LICENSE README.md microgpt.c autograd.c autograd.h support data .clang-format .github "$1/"
    for part in tests/*; do
        [ "$part" = tests/build ] || cp -R "$part" "$1/tests/"
    done
}
