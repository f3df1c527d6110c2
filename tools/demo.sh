#!/usr/bin/env bash
# demo.sh: the main job in one to two minutes on two cores, behind a minute of
# building: a small GPT learns the prose of this project's documents as byte
# pairs, writes a few lines, and a page shows how it went. STEPS says how long it
# learns.
set -eu
cd "$(dirname "$0")/.."
steps=${STEPS:-500}
began=$SECONDS

show() {
	printf '\n$ %s\n' "$*"
	"$@"
}

# Sentences: programs, tables, headings, lines with a path, and the lists of
# operations and functions are no text to learn words from.
prose() { # prose FILE...
	sed -e '/^```/,/^```/d' -e '/^    /d' -e '/^[|#!<]/d' -e '/[a-z]\/[a-z]/d' \
		-e 's/\[\([^]]*\)\]([^)]*)/\1/g' -e 's/[`*]//g' "$@" | cat -s
}
texts=()
for text in README.md docs/*.md; do
	case $text in
	docs/api.md | docs/ops.md | docs/onnx.md | docs/performance.md) ;;
	*) texts+=("$text") ;;
	esac
done

rm -rf demo/model demo/report.html
mkdir -p demo
prose "${texts[@]}" >demo/prose.txt
show build/tenon train --text demo/prose.txt --vocab 1500 --out demo/model \
	--steps "$steps" --every 100 --sample 300 --report demo/report.html
show build/tenon generate --model demo/model --prompt 'A kernel' --tokens 120 \
	--temperature 0.5
printf '\nIt took %d seconds. The report, for any browser:\n  %s\n' \
	$((SECONDS - began)) "file://$PWD/demo/report.html"
