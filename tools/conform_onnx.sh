#!/usr/bin/env bash
# conform_onnx.sh [--simt] [--known FILE] [BUILD] [DIR]: ONNX's own tests, through
# the interpreter and through compiled code. DIR is a folder of tests, such as
# the node tests of ONNX's newest release; without it, those of Debian's
# libonnx-testdata, or of the folder that TN_ONNX_TESTS names, are run.
#   --simt         compiled for emulated warps of a GPU, of PARTS parts the one
#                  that TN_PART says, or all without it
#   --known FILE   tests that may fail, in lines NAME REASON; of Debian's:
#                  tests/conform/onnx_known.txt
# Each failure is printed with its reason, then a count for each code: operators
# that are missing (onnx.operator), element types (onnx.elem), wrong values
# (check.values), shapes and types (check.type). Exit status 0: none failed; 1:
# some did; 77: the tests are not there. TN_ONNX_JOBS: how many run at a time.
set -u
PARTS=40
arguments=()
build=
data=
known=
while [ $# -gt 0 ]; do
	case $1 in
	--simt)
		export TENON_DEVICE=simt
		arguments=(--mode=compiled)
		;;
	--known)
		[ $# -gt 1 ] || { echo "conform_onnx.sh: --known needs a file" >&2; exit 2; }
		known=$(realpath "$2") || exit 2
		shift
		;;
	-*) sed -n '2,4s/^# //p' "$0" >&2; exit 2 ;;
	*)
		if [ -x "$1/tenon" ] && [ -z "$build" ]; then
			build=$(realpath "$1")
		elif [ -z "$data" ]; then
			data=$(realpath -m "$1")
		else
			sed -n '2,4s/^# //p' "$0" >&2
			exit 2
		fi
		;;
	esac
	shift
done
cd "$(dirname "$0")/.." || exit 1
build=${build:-$PWD/build}
if [ -z "$data" ]; then
	data=${TN_ONNX_TESTS:-/usr/share/libonnx-testdata/data}
	known=${known:-tests/conform/onnx_known.txt}
fi
if [ ! -d "$data" ]; then
	echo "$data is not there: install libonnx-testdata"
	exit 77
fi
[ -z "$known" ] || arguments+=(--known "$known")
tests=("$data")
[ "${TENON_DEVICE:-}" = simt ] && [ -n "${TN_PART:-}" ] &&
	mapfile -t tests < <(find "$data" -name model.onnx -printf '%h\n' | sort |
		awk -v n=$PARTS -v k="$TN_PART" 'NR % n == k % n')
exec "$build/tenon" check --summary --jobs "${TN_ONNX_JOBS:-$(nproc)}" \
	"${arguments[@]}" "${tests[@]}"
