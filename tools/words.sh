#!/usr/bin/env bash
# words.sh [ROOT]: finds banned uses of words. The table is tools/words.txt; the
# meanings of words are in docs/glossary.md. Documents are docs/*.md and
# README.md, without listings and `code`; docs/ops.md and docs/api.md are made
# from texts that are read here. Messages are the strings with blanks in src/,
# without the C text that emit/ writes; public comments are those of include/*.h,
# header comments those of src/*/*.h.
# A paragraph, a comment and adjacent strings are each one line to search.
set -u
table=$(cd "$(dirname "$0")" && pwd)/words.txt || exit 1
cd "${1:-$(dirname "$0")/..}" || exit 1
tmp=$(mktemp -d) || exit 1
trap 'rm -rf "$tmp"' EXIT
export LC_ALL=C.UTF-8

# FILE:LINE, a tab, the text of a paragraph without listings
paragraphs='
function out() { if (text != "") print file ":" at "\t" text; text = "" }
FNR == 1 { out(); file = FILENAME; fence = 0 }
/^```/ { out(); fence = !fence; next }
fence || /^(    |\t)/ && text == "" || /^ *$/ || /^<!--/ { out(); next }
/^(\||#|\* |- |[0-9]+\. )/ { out() }
{
	line = $0
	gsub(/`[^`]*`/, "`", line)
	gsub(/\]\([^)]*\)/, "]", line)
	if (text == "") at = FNR
	text = text (text == "" ? "" : " ") line
}
END { out() }'

# The same of the comments (kind c) or the strings (kind s) of a C file
strings='
function out() { if (kind == "s" && str ~ /[a-z] [a-z]/) print file ":" at "\t" str; str = "" }
function feed(line,   m) {
	while (line != "") {
		if (inside) {
			m = index(line, "*/")
			if (!m) { com = com " " line; return }
			com = com " " substr(line, 1, m - 1)
			line = substr(line, m + 2)
			inside = 0
			gsub(/[ \t]+(\*[ \t])?/, " ", com)
			sub(/^[* ]+/, "", com)
			if (kind == "c") print file ":" from "\t" com
			continue
		}
		if (!match(line, /\/\*|"|\047/)) {
			if (line ~ /[^ \t]/) out()
			return
		}
		if (substr(line, 1, RSTART - 1) ~ /[^ \t]/) out()
		m = substr(line, RSTART, RLENGTH)
		line = substr(line, RSTART + RLENGTH)
		if (m == "/*") {
			inside = 1
			com = ""
			from = FNR
		} else if (m == "\047") {
			if (!match(line, /^(\\.[0-9a-fx]*|[^\\\047])\047/)) return
			line = substr(line, RLENGTH + 1)
		} else {
			match(line, /^([^"\\]|\\.)*/)
			if (str == "") at = FNR
			str = str substr(line, 1, RLENGTH)
			line = substr(line, RLENGTH + 2)
		}
	}
}
FNR == 1 { out(); inside = 0; file = FILENAME }
{ feed($0) }
END { out() }'

files() { find "$@" 2>/dev/null | sort; }
files README.md docs -name '*.md' ! -name ops.md ! -name api.md >"$tmp/d.files"
files src -name '*.[ch]' ! -path 'src/emit/*' ! -path 'src/cli/bench*' >"$tmp/m.files"
files include -name '*.h' ! -name tenon_ops.h >"$tmp/p.files"
files src -name '*.h' >"$tmp/h.files"
files src -name '*.c' >"$tmp/c.files"
xargs awk "$paragraphs" <"$tmp/d.files" >"$tmp/d"
xargs awk -v kind=s "$strings" <"$tmp/m.files" >"$tmp/m"
xargs awk -v kind=c "$strings" <"$tmp/p.files" >"$tmp/p"
xargs awk -v kind=c "$strings" <"$tmp/h.files" >"$tmp/h"
xargs awk -v kind=c "$strings" <"$tmp/c.files" >"$tmp/c"

n=0 rules=0
while IFS=$'\t' read -r where pattern why say; do
	case $where in '' | '#'*) continue ;; esac
	rules=$((rules + 1))
	for kind in d m p h c; do
		case $where in *$kind*) ;; *) continue ;; esac
		cut -f2- "$tmp/$kind" | grep -niPo -- ".{0,30}($pattern).{0,30}" \
			>"$tmp/found"
		case $? in
		0)
			while IFS=: read -r line text; do
				echo "$(sed -n "${line}s/\t.*//p" "$tmp/$kind"): ...$text...: $why; say $say"
				n=$((n + 1))
			done <"$tmp/found"
			;;
		1) ;;
		*)
			echo "words: grep -P cannot search for $pattern"
			exit 1
			;;
		esac
	done
done <"$table"
echo "words: $rules rules, $(cat "$tmp"/[dmphc] | wc -l) texts, $n banned uses"
[ $n -eq 0 ]
