#!/bin/sh
# embed_text.sh FILE...: the lines of the files as C strings, a NULL behind
# each file and another one at the end: what tenon train learns by default.
set -eu
echo '#include "apps/gpt/train.h"'
echo
echo 'const char *const train_default_text[] = {'
for file in "$@"; do
	LC_ALL=C sed 's/[\\"?]/\\&/g; s/.*/"&\\n",/' "$file"
	echo '0,'
done
echo '0};'
