#!/bin/sh
# static.sh OUT.a ARCHIVE...: one static library of all objects in the archives
# in which nothing but the interface (tn_*) is visible: what is hidden in the
# shared library cannot clash with a name of the program here either.
set -eu
out=$1
shift
${LD:-ld} -r -o "$out.o" --whole-archive "$@"
${OBJCOPY:-objcopy} --localize-hidden "$out.o"
rm -f "$out"
${AR:-ar} rcs "$out" "$out.o"
rm -f "$out.o"
