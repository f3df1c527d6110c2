#!/usr/bin/env bash
# conform_export.sh [--parts K,N] [BUILD] [DIR]
# conform_export.sh --net NAME [BUILD]
# conform_export.sh --models FOLDER [BUILD]
#
# ONNX's node tests as exported C:
# each model is exported with the inputs of its test, compiled as C99 with all
# warnings, by gcc and by clang in turn, and run: on plain memory, in slices, with
# guards; its results are compared with the interpreter, which tenon check compares
# with ONNX, and with the bits of compiled kernels. The functions that the C calls
# must be those that it names. Of the tests, those whose number is K modulo N.
# Without DIR: Debian's libonnx-testdata, or the folder that TN_ONNX_TESTS names.
# --net: one of the nine nets that the ONNX project publishes (light_NAME.onnx) by
# all compilers, with the bits of compiled kernels, with vectors and as C99, as C99 for
# 32 bits, too, and with sanitizers; TN_ONNX_NETS names the folder, as for
# conform_nets.sh. --models: the same with all models FOLDER/*.onnx, such as those that
# bench/peers/zoo.py writes; inputs are taken from NAME.INPUT.npy beside NAME.onnx.
#   FLAGS    for the compilers, beside those of the Makefile (default -O1)
#   EXPORT   options of tenon export --c
# Exit status 0: none failed; 1: some did; 77: there are no tests or no compiler.
set -u
part=0 parts=1 net='' models=''
if [ "${1:-}" = --net ]; then
	net=$2
	shift 2
fi
if [ "${1:-}" = --models ]; then
	models=$(realpath "$2") || exit 77
	shift 2
fi
if [ "${1:-}" = --parts ]; then
	part=${2%,*} parts=${2#*,}
	shift 2
fi
cd "$(dirname "$0")/.." || exit 1
build=$(realpath "${1:-build}")
data=${2:-${TN_ONNX_TESTS:-/usr/share/libonnx-testdata/data/node}}
[ -n "$net$models" ] || [ -d "$data" ] || { echo "skipped: $data is not there: install libonnx-testdata"; exit 77; }
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

export_as() { # export_as NAME MODEL OPTION...
	local name=$1 model=$2 rule
	shift 2
	rm -rf "$tmp/out"
	# shellcheck disable=SC2086 # options are words
	"$build/tenon" export --c "$tmp/out" --name net ${EXPORT:-} "$model" "$@" \
		>"$tmp/log" 2>&1 && return
	rule=$(grep -o 'error\[[a-z_.]*\][^;]*' "$tmp/log" | head -n 1)
	echo "refused $name: ${rule:-$(head -n 1 "$tmp/log")}"
	refused=$((refused + 1))
	return 1
}

compile() { # compile NAME COMPILER [FLAGS [ARCH]]: and run its test
	local name=$1 out=$tmp/out arch=()
	[ $# -lt 4 ] || arch=(ARCH="$4")
	make -s -C "$out" clean
	if ! make -s -C "$out" CC="$2" "${arch[@]}" \
		CFLAGS="-std=c99 -pedantic -Wall -Wextra -Werror ${3:-$flags}" check \
		>"$tmp/log" 2>&1; then
		echo "FAILED $name ($2 ${3:-}): $(head -n 3 "$tmp/log" | tr '\n' ' ')"
		failed=$((failed + 1))
		return
	fi
	python3 - "$out" "$2" ${4:-} <<'END' >"$tmp/log" 2>&1 || { echo "FAILED $name ($2 ${4:-}): $(cat "$tmp/log")"; failed=$((failed + 1)); return; }
import json, subprocess, sys

def run(*command):
    return subprocess.run(command, capture_output=True, text=True).stdout
out, cc, arch = sys.argv[1], sys.argv[2], sys.argv[3:]
may = {"memcpy", "memset"} | set(json.load(open(out + "/net.json"))["libm"])
if "-m32" in arch:
    # of the compiler itself, for integers of 64 bits; and the linker's
    own = run(cc, "-m32", "-print-libgcc-file-name").strip()
    may |= {s.split()[-1] for s in run("nm", "--defined-only", own).splitlines() if " T " in s}
    may.add("_GLOBAL_OFFSET_TABLE_")
uses = [s.split()[-1] for s in run("nm", "-u", out + "/net.o").splitlines()]
other = [s for s in uses if s not in may and "san_" not in s]
sys.exit("it calls " + ", ".join(other) if other else 0)
END
	passed=$((passed + 1))
}

one() { # one DIR COMPILER
	local dir=$1 inputs=() names=() i
	mapfile -t names < <(names_of "$dir/model.onnx")
	for i in "${!names[@]}"; do
		[ ! -f "$dir/test_data_set_0/input_$i.pb" ] ||
			inputs+=(--input "${names[i]}=$dir/test_data_set_0/input_$i.pb")
	done
	export_as "${dir##*/}" "$dir/model.onnx" "${inputs[@]}" &&
		compile "${dir##*/}" "$2"
}

sanitizers="-O1 -fsanitize=address,undefined -fno-sanitize-recover=all"
# Code for 32 bits, if the compiler and its library can.
has_32_bits() {
	echo 'int main(void) { return 0; }' >"$tmp/empty.c"
	gcc -m32 -msse2 "$tmp/empty.c" -o "$tmp/empty" 2>/dev/null && "$tmp/empty"
}

all_ways() { # all_ways NAME MODEL OPTION...: every dialect, by every compiler
	local name=$1 model=$2 cc dialect
	shift 2
	for dialect in gnu c99; do
		export_as "$name" "$model" --test kernels --dialect $dialect "$@" ||
			continue
		for cc in "${compilers[@]}"; do
			compile "$name, $dialect" "$cc"
		done
		compile "$name, $dialect" "${compilers[0]}" "$sanitizers"
		[ $dialect = gnu ] || ! has_32_bits ||
			compile "$name, $dialect" gcc "$flags" \
				"-m32 -msse2 -mfpmath=sse"
	done
}

finish() {
	echo "$passed passed, $failed failed, $refused refused"
	[ $((failed + refused)) -eq 0 ] && [ $passed -gt 0 ]
	exit
}

if [ -n "$models" ]; then
	for model in "$models"/*.onnx; do
		[ -f "$model" ] || { echo "skipped: no models in $models"; exit 77; }
		given=()
		for file in "${model%.onnx}".*.npy; do
			input=${file#"${model%.onnx}".}
			[ ! -f "$file" ] || given+=(--input "${input%.npy}=$file")
		done
		name=${model##*/}
		all_ways "${name%.onnx}" "$model" "${given[@]}"
	done
	finish
fi

if [ -n "$net" ]; then
	dirs=("${TN_ONNX_NETS:-}")
	case $net in
	squeezenet | shufflenet) dirs+=(../*/data/onnx-light) ;;
	esac
	for dir in "${dirs[@]}"; do
		[ -z "$dir" ] || [ ! -f "$dir/light_$net.onnx" ] ||
			{ all_ways "$net" "$dir/light_$net.onnx"; finish; }
	done
	echo "skipped: TN_ONNX_NETS names no folder with light_$net.onnx"
	exit 77
fi
while read -r dir; do
	n=$((n + 1))
	[ $((n % parts)) -eq "$part" ] || continue
	one "$dir" "${compilers[$((n / parts % ${#compilers[@]}))]}"
done < <(find "$data" -name model.onnx -printf '%h\n' | LC_ALL=C sort)
echo "$passed passed, $failed failed, $refused refused"
[ $failed -eq 0 ] && [ $passed -gt 0 ]
