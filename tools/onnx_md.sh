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
printf '\n## Tests that are known to fail\n\n'
sort -t ' ' -k 2 -k 1,1 tests/conform/onnx_known.txt | awk '
	{
		name = $1
		$1 = ""
		if ($0 != reason)
			printf("%s*%s:\n", (NR > 1 ? "\n" : ""), $0)
		reason = $0
		printf "  `%s`\n", name
	}'
