# rest_of FOLDER FILE: the objects in FOLDER that FILE is to be linked with, which are all of the program but the sources
# that FILE includes itself, to reach what is static there or to change what they call.
rest_of()
{
    for part in microgpt.c autograd.c support/[!d]*/*.c; do
        grep -q "^#include \".*/$part\"" "$2" || echo "$1/${part%.c}.o"
    done
}
