#!/bin/sh
# embed_lines.sh NAME FILE..: the lines of texts as C strings, and a NULL at the
# end, in an array of this name.
set -eu
name=$1
shift
echo "extern const char *const $name[];"
echo "const char *const $name[] = {"
LC_ALL=C sed 's/[\\"?]/\\&/g; s/.*/"&\\n",/' "$@"
echo '0};'
