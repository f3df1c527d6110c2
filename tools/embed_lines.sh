#!/bin/sh
# embed_lines.sh NAME FILE: the lines of a text as C strings, and a NULL at the
# end, in an array of this name.
set -eu
echo "extern const char *const $1[];"
echo "const char *const $1[] = {"
LC_ALL=C sed 's/[\\"?]/\\&/g; s/.*/"&\\n",/' "$2"
echo '0};'
