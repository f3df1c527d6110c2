#!/usr/bin/env bash
# test_tools.sh ROOT BUILD: the gates of make check do fail. Each case is wrong
# in one way; layers.sh, house.py, symbols.sh, golden.sh, man.sh, words.sh,
# examples.py and docs_check.py must say so, and must pass what is right.
set -u
root=$1
export BUILD=$2
tmp=$(mktemp -d) || exit 1
trap 'rm -rf "$tmp"' EXIT
fails=0

expect() { # expect STATUS TEXT COMMAND...: the output has TEXT in it
	local status=$1 text=$2 out rc
	shift 2
	out=$("$@" 2>&1)
	rc=$?
	if [ $rc -ne "$status" ] || [[ "$out" != *"$text"* ]]; then
		printf 'expected %s and "%s", got %s from %s:\n%s\n' \
			"$status" "$text" $rc "$*" "$out"
		fails=$((fails + 1))
	fi
}

include() { # include FILE LINE STATUS TEXT: a tree with this one include
	rm -rf "$tmp/src"
	mkdir -p "$tmp/src/$(dirname "$1")"
	echo "$2" >"$tmp/src/$1"
	expect "$3" "$4" "$root/tools/layers.sh" "$tmp/src"
}
include ix/a.c '#include "base/base.h"' 0 '1 includes, 0 wrong'
include ix/a.c '#include "ix/private.h"' 0 '0 wrong'
include ix/a.c '#include "base/random.h"' 0 '0 wrong'
include ix/a.c '#include "notation/notation.h"' 1 'a.c:1: ix may not include notation/notation.h'
include ix/a.h '  #  include  "notation/notation.h"' 1 'ix may not include notation/notation.h'
include ix/a.c '#include "base/env.h"' 1 'base/env.h is private to base'
include ix/a.c '#include "ix.h"' 1 'not folder/file.h'
include ix/a.c '#include "../system/system.h"' 1 'not folder/file.h'
include ix/a.c '#include <notation/notation.h>' 1 'should be "notation/notation.h"'
include ix/a.c '#include DOOR' 1 'what a macro says'
include run/a.c '#include "notation/notation.h"' 1 'run may not include'
include new/a.c '#include "base/base.h"' 1 'not in layers.txt'
include bench/a.c '#include "cli/cli.h"' 0 '0 wrong'
include cli/a.c '#include "bench.h"' 1 'not folder/file.h'
include cli/a.c '#include "base/base.h"' 1 'cli may not include'
include tape/a.c '#include "value/node.h"' 0 '0 wrong'
include api/a.c '#include "value/value.h"' 0 '0 wrong'
include api/a.c '#include "value/node.h"' 1 'value/node.h is private to value'
include a.c '#include "kern/kern.h"' 1 'a file of no folder'

# the parts of a run: each number once, whatever their number
for n in 1 3 4 7; do
	: >"$tmp/numbers"
	for ((k = 0; k < n; k++)); do
		read -r first count < <(TN_PART=$((k + 5 * n)) \
			"$root/tools/part.sh" "$n" echo --first 20 --count 10 |
			sed -n 's/.*--first \([0-9]*\) --count \([0-9]*\)$/\1 \2/p')
		seq "$first" $((first + count - 1)) >>"$tmp/numbers"
	done
	[ "$(sort -n "$tmp/numbers")" = "$(seq 20 29)" ] || {
		echo "$n parts of 20 to 29: $(tr '\n' ' ' <"$tmp/numbers")"
		fails=$((fails + 1))
	}
done
TN_PART='' expect 0 '--count 10' "$root/tools/part.sh" 3 echo --count 10
TN_PART=1 expect 2 'no --count' "$root/tools/part.sh" 3 echo --seed 10

house() { # house STATUS TEXT LIST: the files below $tmp/h, and tools/house.txt
	mkdir -p "$tmp/h/tools" "$tmp/h/build/lib.p"
	cp "$root/tools/house.py" "$tmp/h/tools"
	printf 'ix:\nrun: ix\n' >"$tmp/h/tools/layers.txt"
	printf '%s\n' "$3" >"$tmp/h/tools/house.txt"
	rm -f "$tmp/h/build/lib.p/"*
	(cd "$tmp/h" && find src -name '*.c' | while read -r f; do
		cc -c -o "build/lib.p/${f//\//_}.o" "$f"
	done)
	expect "$1" "$2" "$tmp/h/tools/house.py" build
}
mkdir -p "$tmp/h/src/ix" "$tmp/h/src/run"
echo 'int b(void); int a(void) { return b(); }' >"$tmp/h/src/ix/a.c"
echo 'int b(void) { return 1; }' >"$tmp/h/src/ix/b.c"
house 0 ' 0 wrong' ''
echo 'int c(void); int b(void) { return c(); }' >"$tmp/h/src/ix/b.c"
echo 'int a(void); int c(void) { return a(); }' >"$tmp/h/src/run/c.c"
house 0 ' 0 wrong' '' # of two folders: layers.sh
mv "$tmp/h/src/run/c.c" "$tmp/h/src/ix/c.c"
house 1 'src/ix: a circle of files: a b c' ''
house 1 'ix/c.c -> ix/a.c: a' ''
house 1 'a circle of files: a b c' 'circle ix a b: reads and writes'
house 0 ' 0 wrong' 'circle ix a b c: each needs the next'
house 1 'strike out: ix d' 'circle ix a b c d: each needs the next'
house 1 'no reason' 'circle ix a b c: why'
rm "$tmp/h/src/ix/c.c"
house 1 'in order now, strike out: circle ix a' 'circle ix a b: each needs the other'
printf 'int\nb(void)\n{\n%070d\n}\n' 0 | sed 's/0/\t;\n/g' >"$tmp/h/src/ix/b.c"
sed -i 's/^\t;$/\ta();/;1i int a(void);' "$tmp/h/src/ix/b.c"
sed -i 's/b();/0;/' "$tmp/h/src/ix/a.c"
house 1 'b.c:4: b(): 73 lines, over 70' ''
house 0 ' 0 wrong' 'function src/ix/b.c b 73: one table of cases'
house 1 'over the 72' 'function src/ix/b.c b 72: one table of cases'
yes '/* */' | head -n 801 >"$tmp/h/src/ix/b.c"
house 1 'b.c: 801 lines, over 800' ''
house 0 ' 0 wrong' 'file src/ix/b.c 801: one table of cases'

library() { # library TEXT STATUS MESSAGE
	echo "$1" >"$tmp/a.c"
	cc -shared -fPIC -o "$tmp/a.so" "$tmp/a.c" || fails=$((fails + 1))
	expect "$2" "$3" "$root/tools/symbols.sh" "$tmp/a.so"
}
library '#include <string.h>
	size_t tn_a(char *s) { return strlen(s); }' 0 'none ends or prints'
library '#include <stdio.h>
	void tn_a(int i) { printf("%d", i); }' 1 'calls printf'
library '#include <stdio.h>
	void tn_a(int i) { fprintf(stderr, "%d", i); }' 1 'stderr'
library '#include <stdlib.h>
	void tn_a(void) { exit(1); }' 1 'calls exit'
library '#include <assert.h>
	void tn_a(int i) { assert(i); }' 1 '__assert_fail'
library '#include <string.h>
	size_t a(char *s) { return strlen(s); }' 1 'exports a'

golden() { # golden STATUS TEXT < FILE
	cat >"$tmp/case.tn"
	expect "$1" "$2" "$root/tools/golden.sh" "$tmp/case.tn"
}
golden 0 '1 passed, 0 failed' <<-'END'
	# run: cat %s; echo warning >&2; exit 3
	# exit: 3
	input
	# >>>
	# run: cat %s; echo warning >&2; exit 3
	# exit: 3
	input
	warning
END
golden 1 '-expected' <<-'END'
	# run: echo printed
	# >>>
	expected
END
golden 1 'exit status 2, expected 0' <<-'END'
	# run: exit 2
	# >>>
END
golden 1 'exit status 0, expected 1' <<-'END'
	# run: exit 0
	# exit: 1
	# >>>
END
golden 1 'no '"'# run:'" <<-'END'
	echo no command
	# >>>
END
golden 1 'or no '"'# >>>'" <<-'END'
	# run: echo no expected output
END
printf '# run: echo printed\n# >>>\nold\n' >"$tmp/case.tn"
expect 0 'updated' "$root/tools/golden.sh" --update "$tmp/case.tn"
expect 0 '1 passed' "$root/tools/golden.sh" "$tmp/case.tn"
expect 0 'printed' cat "$tmp/case.tn"
mkdir "$tmp/empty"
expect 1 "no tests" "$root/tools/golden.sh" "$tmp/empty"

man() { # man SED STATUS TEXT: the manual page, changed so
	mkdir -p "$tmp/t/tools" "$tmp/t/man"
	cp "$root/tools/man.sh" "$tmp/t/tools/man.sh"
	sed "$1" "$root/man/tenon.1" >"$tmp/t/man/tenon.1"
	expect "$2" "$3" "$tmp/t/tools/man.sh" "$BUILD"
}
man '' 0 'commands'
man 's/TENON EXPORT/TENON EXPERT/' 1 'lacks, commands: export'
man '/top.-k/d' 1 'lacks, tenon generate: --top-k'
man 's/until/till/' 1 'only man/tenon.1 has, tenon train: --till'
man 's/^.B nets$//' 1 'lacks, tenon bench: name nets'

example() { # example NAME STATUS TEXT < FILE
	cat >"$tmp/$1"
	expect "$2" "$3" "$root/tools/examples.py" "$tmp/$1"
}
example a.md 0 '1 compile' <<'END'
```c
y = tn_reduce_sum(x, (int64_t[]){0, 1}, 2, false);
tn_shard(x, tn_mesh_parse(c, "data=2"), (tn_placement[]){TN_SHARDED(0)});
```
END
example a.md 1 '1 of 1 do not compile' <<'END'
```c
y = tn_nothing(x);
```
END
example a.md 1 'stands in a ```c block' <<'END'
    y = tn_relu(x);
END
example a.md 0 '1 compile' <<'END'
<!-- with: struct model { int n; }; -->
```c
static int n_of(const struct model *m)
{
	return m->n;
}
```
END
example a.h 1 'a.h:4' <<'END'
/*
 * a.h
 *
 *     y = tn_relu(x, y);
 */
END

documents() { # documents SED FILE STATUS TEXT: the tree with one file changed
	rm -rf "$tmp/d"
	mkdir -p "$tmp/d/docs"
	cp -R "$root/include" "$root/docs" "$root/README.md" "$root/LICENSE" \
		"$root/src" "$root/examples" "$root/tools" "$root/python" "$tmp/d/"
	ln -s "$root/tests" "$root/bench" "$tmp/d/"
	sed -i "$1" "$tmp/d/$2"
	expect "$3" "$4" "$root/tools/docs_check.py" "$tmp/d"
}
documents '' README.md 0 'are there'
documents 's/tn_fail//' docs/api.md 1 'tn_fail is not in docs/api.md'
documents 's/TN_BF16/TN_BF61/' docs/api.md 1 'TN_BF16 is not in docs/api.md'
documents 's/TN_OPTIONS_INIT//' docs/api.md 1 'TN_OPTIONS_INIT is not in'
documents 's/docs.train.md/docs\/nn.md/g' README.md 1 'docs/train.md: no link'
documents 's/write_prop/write_porp/' docs/aliasing.md 1 'no file write_porp.c'
documents 's/(docs.tour.md/(docs\/detour.md/' README.md 1 'there is no docs/detour.md'

# A tree with one document, one header and one source of these lines
words() { # words FILE LINE STATUS TEXT
	rm -rf "$tmp/words"
	mkdir -p "$tmp/words/docs" "$tmp/words/include" "$tmp/words/src/a"
	echo 'This is a sentence.' >"$tmp/words/README.md"
	printf '%s\n' "$2" >"$tmp/words/$1"
	expect "$3" "$4" "$root/tools/words.sh" "$tmp/words"
}
words docs/a.md 'A sliding window is in place; this is not a tile.' 0 ' 0 banned uses'
words docs/a.md 'The window is wide.' 1 'docs/a.md:1: ...The window is wide'
words docs/a.md 'The value goes to its place.' 1 'say "placement" on a mesh'
words docs/a.md '    listing: the window' 0 ' 0 banned uses'
words docs/a.md 'In `code` the `window`.' 0 ' 0 banned uses'
words docs/a.md $'The loop\n\nis written\nanew.' 1 'docs/a.md:3'
words src/a/a.c 'f("%s is no "' 0 ' 0 banned uses'
words src/a/a.c $'f("%s is no "\n"number");' 1 'src/a/a.c:1: ...%s is no number...: inverted'
words src/a/a.c $'char c = \'"\'; /* "x is no y" */ f("one integer is wanted");' 1 'is wanted'
words src/a/a.c '/* x is no y */' 0 ' 0 banned uses'
words include/a.h $'/**\n * Who reads it gets\n * a copy. */' 1 'include/a.h:1'
words include/a.h 'int door; /* a number */' 0 ' 0 banned uses'
words src/a/a.h '/* The value at hand. */' 1 'src/a/a.h:1: ...The value at hand'
words src/a/a.h 'f("text"); /* The current value. */' 0 ' 0 banned uses'
# a folder of ONNX's tests: its failures by code
data=$root/tests/golden/cli/data/onnx
conform() { # conform STATUS TEXT ARGUMENT...
	expect "$1" "$2" env TN_ONNX_JOBS=1 "$root/tools/conform_onnx.sh" "${@:3}"
}
conform 1 $'check.values: 1 failed\nonnx.operator: 1 failed\n1 passed, 2 failed' \
	"$BUILD" "$data"
conform 0 '1 passed, 0 failed' "$BUILD" "$data/mul"
printf 'wrong it is wrong\nunknown it has no operator\n' >"$tmp/known"
conform 0 '1 passed, 0 failed, 3 skipped' --known "$tmp/known" "$BUILD" "$data"
conform 77 'is not there' "$BUILD" "$tmp/none"
conform 2 'conform_onnx.sh [--simt]' "$BUILD" "$data" "$data"
conform 2 'conform_onnx.sh [--simt]' --sim "$BUILD"

exit $fails
