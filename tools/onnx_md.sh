#!/usr/bin/env bash
# onnx_md.sh [BUILD]: prints docs/onnx.md with its generated parts renewed: the
# table of operators, and the tests that are known to fail, by reason.
#
#     tools/onnx_md.sh >new && mv new docs/onnx.md
set -u
cd "$(dirname "$0")/.." || exit 1
build=${1:-build}

sed '/^<!-- generated below/q' docs/onnx.md
printf '\n## Operators\n\n'
"$build/tenon" info --operators || exit 1

# The tests of a file, by reason.
known() {
	sort -t ' ' -k 2 -k 1,1 "$1" | awk '
	{
		name = $1
		$1 = ""
		if ($0 != reason)
			printf("%s*%s:\n", (NR > 1 ? "\n" : ""), $0)
		reason = $0
		printf "  `%s`\n", name
	}'
}

printf '\n## Tests that are known to fail\n\n'
printf "Of the 1,072 tests of Debian's libonnx-testdata (ONNX 1.12):\n\n"
known tests/conform/onnx_known.txt
printf '\nOf the 1,884 node tests of ONNX 1.23:\n\n'
known tests/conform/onnx_known_newer.txt
