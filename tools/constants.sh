#!/usr/bin/env bash
# constants.sh: what a cost or a schedule depends on beside sizes stands in
# src/target/machine.c alone. Here: no floating-point literal, no named number
# (#define NAME 8, enum { NAME = 8 }), and no number above 2 that something is
# multiplied with, divided by or compared with, in the folders that decide, but
# those of tools/constants.txt, each with its reason; and none there that is
# gone. constants.sh [ROOT]: of another tree. constants.sh --planted: plants
# constants in a copy of these folders, each of which has to be found.
set -u
cd "$(dirname "$0")/.." || exit 1
export LC_ALL=C
folders="src/fuse src/schedule src/loop src/kern src/plan"
tmp=$(mktemp -d) || exit 1
trap 'rm -rf "$tmp"' EXIT

# FILE NAME of each constant in a tree: the name, or the literal as it stands.
constants() { # constants ROOT
	(cd "$1" && find $folders -name '*.[ch]' | sort | xargs awk '
	# the line without comments, strings and characters
	function code(s,   out, c, d, i, n) {
		n = length(s)
		for (i = 1; i <= n; i++) {
			c = substr(s, i, 1)
			d = substr(s, i, 2)
			if (inside) {
				if (d == "*/") { inside = 0; i++ }
			} else if (d == "/*") {
				inside = 1
				i++
			} else if (d == "//") {
				break
			} else if (c == "\"" || c == "\047") {
				for (i++; i <= n && substr(s, i, 1) != c; i++)
					if (substr(s, i, 1) == "\\")
						i++
				out = out " "
			} else {
				out = out c
			}
		}
		return out
	}
	function literals(s,   t) {
		while (match(s, /(^|[^A-Za-z0-9_.])([0-9]+\.[0-9]*([eE][-+]?[0-9]+)?|\.[0-9]+([eE][-+]?[0-9]+)?|[0-9]+[eE][-+]?[0-9]+)/)) {
			t = substr(s, RSTART, RLENGTH)
			sub(/^[^0-9.]/, "", t)
			s = substr(s, RSTART + RLENGTH)
			if (t + 0 != 0 && t + 0 != 1 && t + 0 != 0.5 && t + 0 != 2)
				print FILENAME, t
		}
	}
	# plain numbers that something is multiplied with, divided by or compared with
	function plain(s,   t) {
		gsub(/[0-9.]+[eE][-+]?[0-9]+/, " ", s)
		gsub(/<<=?|>>=?|->/, " ", s)
		while (match(s, /([*\/%]|[<>]=?)[ \t]*[0-9]+([^A-Za-z0-9_.]|$)|(^|[^A-Za-z0-9_.])[0-9]+[ \t]*([*\/%]|[<>]=?)/)) {
			t = substr(s, RSTART, RLENGTH)
			s = substr(s, RSTART + RLENGTH - 1)
			gsub(/[^0-9*\/%<>=]/, "", t)
			if (t ~ /^[^0-9]/)
				sub(/[^0-9]*$/, "", t)
			else
				sub(/^[^0-9]*/, "", t)
			if (t !~ /^[^0-9]*[012][^0-9]*$/)
				print FILENAME, t
		}
	}
	FNR == 1 { inside = 0; enums = 0 }
	{
		line = code($0)
		literals(line)
		plain(line)
		if (line ~ /^[ \t]*#[ \t]*define[ \t]+[A-Z_0-9]+[ \t]+[(]?[0-9.]/) {
			split(line, word, /[ \t]+/)
			print FILENAME, (word[1] == "#" ? word[3] : word[2])
		}
		if (line ~ /(^|[^A-Za-z0-9_])enum([ \t]+[a-z_0-9]+)?[ \t]*{/)
			enums = 1
		rest = line
		while (enums && match(rest, /[A-Z][A-Z_0-9]*[ \t]*=[ \t]*[0-9][0-9A-Fa-fxX]*([ \t]*<<)?/)) {
			t = substr(rest, RSTART, RLENGTH)
			rest = substr(rest, RSTART + RLENGTH)
			name = t
			sub(/[ \t]*=.*/, "", name)
			sub(/.*=[ \t]*/, "", t)
			if (t != "0" && t != "1")
				print FILENAME, name
		}
		if (enums && line ~ /}/)
			enums = 0
	}') | sort -u
}

check() { # check ROOT
	local fails=0
	constants "$1" >"$tmp/found"
	awk 'NF > 2 && $1 !~ /^#/ { print $1, $2 }' tools/constants.txt | sort -u >"$tmp/allowed"
	awk 'NF > 0 && NF < 3 && $1 !~ /^#/ { print "constants: no reason: " $0; n++ }
		END { exit n > 0 }' tools/constants.txt || fails=1
	if comm -23 "$tmp/found" "$tmp/allowed" | grep . >"$tmp/new"; then
		sed 's/^/constants: belongs into src\/target\/machine.c: /' "$tmp/new"
		fails=1
	fi
	if comm -13 "$tmp/found" "$tmp/allowed" | grep . >"$tmp/gone"; then
		sed 's/^/constants: allowed, and not there: /' "$tmp/gone"
		fails=1
	fi
	[ $fails -eq 0 ] && echo "constants: $(wc -l <"$tmp/allowed") that are no costs, no other"
	return $fails
}

planted() {
	local n=0 text
	while IFS= read -r text; do
		rm -rf "$tmp/tree"
		mkdir -p "$tmp/tree/src"
		cp -r $folders "$tmp/tree/src" || return 1
		printf '%s\n' "$text" >>"$tmp/tree/src/fuse/cost.c"
		if check "$tmp/tree" >/dev/null; then
			echo "constants: not found: $text"
			return 1
		fi
		n=$((n + 1))
	done <<-'END'
		#define STRIDED 1.3
		#define BLOCK_ROWS (128)
		enum { BLOCK_ROWS = 128 };
		enum block { NO_ROWS, BLOCK_ROWS = 1 << 7 };
		static double seconds(double bytes) { return bytes / 13e9; }
		static double hidden = .25;
		static int64_t work(int64_t bytes) { return bytes / 9; }
		static int64_t share(int64_t bytes) { return bytes/2 * 5; }
		static int64_t most(int64_t rows) { return 12 * rows; }
		static bool few(int64_t rows) { return rows <= 24; }
		static bool many(int64_t rows) { return 24 < rows; }
	END
	check . >/dev/null || { check .; return 1; }
	echo "constants: $n planted, all found"
}

case ${1-} in
--planted) planted ;;
*) check "${1-.}" ;;
esac
