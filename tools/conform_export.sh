#!/usr/bin/env bash
# conform_export.sh [--parts K,N] [BUILD] [DIR]: ONNX's node tests as exported C:
# each model is exported with the inputs of its test, compiled as C99 with all
# warnings, by gcc and by clang in turn, and run: on plain memory, in slices, with
# guards; its results are compared with the interpreter, which tenon check compares
# with ONNX, and with the bits of compiled kernels. The functions that the C calls
# must be those that it names. Of the tests, those whose number is K modulo N.
# Without DIR: Debian's libonnx-testdata, or the folder that TN_ONNX_TESTS names.
#   FLAGS    for the compilers, beside those of the Makefile (default -O1)
#   EXPORT   options of tenon export --c
# Exit status 0: none failed; 1: some did; 77: there are no tests or no compiler.
set -u
part=0 parts=1
if [ "${1:-}" = --parts ]; then
	part=${2%,*} parts=${2#*,}
	shift 2
fi
cd "$(dirname "$0")/.." || exit 1
build=$(realpath "${1:-build}")
data=${2:-${TN_ONNX_TESTS:-/usr/share/libonnx-testdata/data/node}}
[ -d "$data" ] || { echo "skipped: $data is not there: install libonnx-testdata"; exit 77; }
compilers=()
for cc in gcc clang; do
	command -v $cc >/dev/null && compilers+=($cc)
done
[ ${#compilers[@]} -gt 0 ] || { echo "skipped: neither gcc nor clang is there"; exit 77; }
tmp=$(mktemp -d) || exit 1
trap 'rm -rf "$tmp"' EXIT
passed=0 refused=0 failed=0 n=0
flags=${FLAGS:--O1}

names_of() { # names_of MODEL: of its inputs, a line each
	"$build/tenon" info --json "$1" 2>/dev/null | python3 -c \
		'import json,sys; [print(x["name"]) for x in json.load(sys.stdin)["inputs"]]' \
		2>/dev/null
}

one() { # one DIR COMPILER
	local dir=$1 out=$tmp/out inputs=() names=() i rule
	mapfile -t names < <(names_of "$dir/model.onnx")
	for i in "${!names[@]}"; do
		[ ! -f "$dir/test_data_set_0/input_$i.pb" ] ||
			inputs+=(--input "${names[i]}=$dir/test_data_set_0/input_$i.pb")
	done
	rm -rf "$out"
	# shellcheck disable=SC2086 # options are words
	if ! "$build/tenon" export --c "$out" --name net ${EXPORT:-} \
		"$dir/model.onnx" "${inputs[@]}" >"$tmp/log" 2>&1; then
		rule=$(grep -o 'error\[[a-z_.]*\][^;]*' "$tmp/log" | head -n 1)
		echo "refused ${dir##*/}: ${rule:-$(head -n 1 "$tmp/log")}"
		refused=$((refused + 1))
		return
	fi
	if ! make -s -C "$out" CC="$2" \
		CFLAGS="-std=c99 -pedantic -Wall -Wextra -Werror $flags" check \
		>"$tmp/log" 2>&1; then
		echo "FAILED ${dir##*/} ($2): $(head -n 3 "$tmp/log" | tr '\n' ' ')"
		failed=$((failed + 1))
		return
	fi
	python3 - "$out" <<'END' >"$tmp/log" 2>&1 || { echo "FAILED ${dir##*/}: $(cat "$tmp/log")"; failed=$((failed + 1)); return; }
import json, subprocess, sys
may = {"memcpy", "memset"} | set(json.load(open(sys.argv[1] + "/net.json"))["libm"])
uses = subprocess.run(["nm", "-u", sys.argv[1] + "/net.o"], capture_output=True, text=True).stdout.split()
other = [s for s in uses if s not in may and s != "U" and "san_" not in s]
sys.exit("it calls " + ", ".join(other) if other else 0)
END
	passed=$((passed + 1))
}

while read -r dir; do
	n=$((n + 1))
	[ $((n % parts)) -eq "$part" ] || continue
	one "$dir" "${compilers[$((n / parts % ${#compilers[@]}))]}"
done < <(find "$data" -name model.onnx -printf '%h\n' | LC_ALL=C sort)
echo "$passed passed, $failed failed, $refused refused"
[ $failed -eq 0 ] && [ $passed -gt 0 ]
