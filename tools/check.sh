#!/usr/bin/env bash
# check.sh [--long]: every stage that can fail, with its time. Of the longest runs
# (whole spaces, thousands of random programs) one part runs, which the tree that
# is checked out chooses, so that other parts run after every change: TN_PART in
# tools/part.sh. With --long all parts run. What cannot run here is
# skipped, with its reason. Stages that use one core run beside the tests, and
# are printed after them. What failed is named again at the end, each in a line. It builds in folders of its own, build-check and
# build-asan, and leaves build/ as it is; both have one cache of kernels, empty
# at the start. On a terminal the running test is shown. Last line: N passed,
# N failed, N skipped; exit status 0 if none failed.
set -u
cd "$(dirname "$0")/.." || exit 1
build=build-check
export BUILD=$PWD/$build
tmp=$(mktemp -d) || exit 1
log=$tmp/log
trap 'rm -rf "$tmp"' EXIT
passed=0 failed=0 skipped=0
# What is checked out says the seed: other programs and parts after every change,
# the same ones when the same files are checked again.
seed=$(git rev-parse --verify -q 'HEAD^{tree}' | cut -c1-7)
seed=$(($([ -n "$seed" ] && echo "0x$seed" || od -An -N4 -tu4 /dev/urandom)))
case ${1:-} in
'') export TN_PART=$seed ;;
--long) unset TN_PART ;;
*) echo "usage: tools/check.sh [--long]" >&2; exit 2 ;;
esac

add() { # add PASSED FAILED SKIPPED
	passed=$((passed + $1)) failed=$((failed + $2)) skipped=$((skipped + $3))
}
# What the end names; of a command, the lines that say it.
failing() { # failing STAGE [LOG PATTERN]
	local lines
	lines=$([ $# -eq 1 ] || grep -aE "$3" "$2" | sort -u | sed "s/^[- ]*/failed: $1: /")
	printf '%s\n' "${lines:-failed: $1}" >>"$tmp/failing"
}
begin() {
	printf '== %s\n' "$1"
	began=$SECONDS
}
end() {
	printf '   %s (%d s)\n' "$1" $((SECONDS - began))
}
skip() { # skip STAGE REASON
	printf '== %s\n   skipped: %s\n' "$1" "$2"
	add 0 0 1
}
# A function of stages, run beside those that follow; and its end: what it
# printed and counted.
beside() { # beside FUNCTION
	(
		log=$tmp/$1.log passed=0 failed=0 skipped=0
		"$1"
		echo $passed $failed $skipped >"$tmp/$1.counts"
	) >"$tmp/$1.out" 2>&1 &
	last_beside=$!
}
join() { # join FUNCTION
	local ok=0 bad=1 skips=0
	wait $last_beside
	cat "$tmp/$1.out"
	read -r ok bad skips <"$tmp/$1.counts"
	add "${ok:-0}" "${bad:-1}" "${skips:-0}"
}
finish() {
	[ ! -f "$tmp/failing" ] || cat "$tmp/failing"
	echo "$passed passed, $failed failed, $skipped skipped"
	[ "$failed" -eq 0 ]
	exit
}

# One command is one test; its output is shown if it fails.
stage() { # stage NAME COMMAND...
	local name=$1
	shift
	begin "$name"
	if "$@" >"$log" 2>&1; then
		tail -n 1 "$log" | sed 's/^/   /'
		add 1 0 0
		end passed
	else
		tail -n 200 "$log"
		failing "$name"
		add 0 1 0
		end FAILED
		return 1
	fi
}

# While process PID writes meson's lines to $log: the last of them, in place.
watch() { # watch PID
	local last
	[ -t 1 ] && [ "${TERM:-dumb}" != dumb ] || return
	while kill -0 "$1" 2>/dev/null; do
		last=$(grep -aE '^ *[0-9]+/[0-9]+ ' "$log" | tail -n 1)
		printf '\r   %.70s\033[K' "$last"
		sleep 1
	done
	printf '\r\033[K'
}
# meson counts its tests, golden.sh its files.
meson_tests() { # meson_tests NAME BUILD ARGUMENTS...
	local name=$1 build=$2 ok bad skips
	shift 2
	begin "$name"
	# Limits of time find runs that hang, not machines that are slow.
	meson test -C "$build" --no-rebuild --print-errorlogs \
		--timeout-multiplier 4 "$@" >"$log" 2>&1 &
	watch $!
	wait $!
	count() {
		awk -F: -v what="^($1)\$" '$1 ~ what { n += $2 } END { print n + 0 }' "$log"
	}
	ok=$(count 'Ok|Expected Fail')
	bad=$(count 'Fail|Unexpected Pass|Timeout')
	skips=$(count 'Skipped')
	if [ $((ok + bad + skips)) -eq 0 ]; then
		tail -n 20 "$log"
		bad=1
	fi
	[ "$bad" -eq 0 ] || {
		cat "$log"
		failing "$name" "$log" '^ *[0-9]+/[0-9]+ .* (FAIL|TIMEOUT|UNEXPECTEDPASS) '
	}
	tools/skips.py "$build" | sed 's/^/   skipped: /'
	add "$ok" "$bad" "$skips"
	end "$ok passed, $bad failed, $skips skipped"
}
golden() { # golden NAME BUILD [PARTS]: of so many parts one, or all
	local ok bad parts=1 files title=$1
	if [ -z "$(find tests/golden -name data -prune -o -type f -print \
		2>/dev/null | head -n 1)" ]; then
		skip "$1" "there are no files in tests/golden"
		return
	fi
	[ -z "${TN_PART:-}" ] || parts=${3:-1}
	mapfile -t files < <(find tests/golden -name data -prune -o -type f -print |
		sort | awk -v n="$parts" -v k="${TN_PART:-0}" 'NR % n == k % n')
	begin "$1"
	[ "$parts" -eq 1 ] || echo "   one of $parts parts"
	BUILD=$2 tools/golden.sh "${files[@]}" >"$log" 2>&1
	read -r ok bad < <(sed -n 's/^golden: \([0-9]*\) passed, \([0-9]*\) failed$/\1 \2/p' "$log")
	[ -n "${bad:-}" ] || { ok=0 bad=1; }
	[ "$bad" -eq 0 ] || {
		cat "$log"
		failing "$title" "$log" '^--- '
	}
	add "$ok" "$bad" 0
	end "$ok passed, $bad failed"
}
# "N passed, N failed, N skipped" is the last line of the command; equal reasons
# of "NAME: skipped: REASON" are counted.
counts() { # counts NAME COMMAND...
	local name=$1 ok bad skips
	shift
	begin "$name"
	"$@" >"$log" 2>&1
	read -r ok bad skips < <(sed -n \
		's/^\([0-9]*\) passed, \([0-9]*\) failed, \([0-9]*\) skipped$/\1 \2 \3/p' "$log")
	[ -n "${skips:-}" ] || { ok=0 bad=1 skips=0; }
	[ "$bad" -eq 0 ] || {
		tail -n 200 "$log"
		failing "$name"
	}
	sed -n 's/^[^:]*: skipped: //p' "$log" | sort | uniq -c |
		sed 's/^ *\([0-9]*\) /   skipped, \1 times: /'
	add "$ok" "$bad" "$skips"
	end "$ok passed, $bad failed, $skips skipped"
}
configure() { # configure BUILD OPTIONS...
	local build=$1
	shift
	if [ -f "$build/build.ninja" ]; then
		meson configure "$build" "$@"
	else
		meson setup "$build" "$@"
	fi
}

stage "layers" tools/layers.sh
stage "numbers as text" tools/numbers.sh
stage "constants" tools/constants.sh
stage "constants that are planted" tools/constants.sh --planted
stage "words" tools/words.sh
stage "tenon.h as C11" "${CC:-cc}" -std=c11 -Wall -Wextra -Wpedantic \
	-Wstrict-prototypes -Werror -fsyntax-only -x c include/tenon.h
if command -v c++ >/dev/null; then
	stage "tenon.h as C++11" c++ -std=c++11 -Wall -Wextra -Wpedantic -Werror \
		-fsyntax-only -x c++ include/tenon.h
else
	skip "tenon.h as C++11" "no C++ compiler is installed"
fi

# -g1: backtraces have their lines, and compiling takes a quarter less.
stage "configure" configure $build -Dwerror=true -Dc_args=-g1 || finish
rm -rf $build/cache build-asan/cache
mkdir $build/cache
stage "build, warnings are errors" ninja -C $build || finish
stage "sizes and circles of files" tools/house.py $build
stage "symbols of the library" tools/symbols.sh "$build"/libtenon.so
# What a later clang-tidy knows besides is no reason to fail.
if clang-tidy --version 2>/dev/null | grep -q 'LLVM version 14'; then
	stage "clang-tidy" tools/tidy.sh $build
else
	skip "clang-tidy" "clang-tidy 14 is not installed"
fi
one_core() {
	if command -v pkg-config >/dev/null; then
		stage "examples against the installed package" tools/installed.sh $build
	else
		skip "examples against the installed package" "pkg-config is not installed"
	fi
	if command -v valgrind >/dev/null; then
		# example_gpt takes two minutes there, and does what tenon train does
		local valgrind_gpt=()
		[ -n "${TN_PART:-}" ] || valgrind_gpt=("gpt 2")
		# it does not know the newest vectors; 2: what it finds, 1: not learned yet
		stage "examples under valgrind" sh -c '
			for e in "custom_op" "mlp 5" "$@"; do
				TENON_TARGET=x86-64-v3 valgrind -q --leak-check=full \
					--error-exitcode=2 "$BUILD"/examples/example_$e
				[ $? -lt 2 ] || exit 1
			done' sh "${valgrind_gpt[@]}"
		stage "tenon train under valgrind" sh -c '
			d=$(mktemp -d) && TENON_TARGET=x86-64-v3 valgrind -q \
				--leak-check=full --error-exitcode=2 "$BUILD"/tenon train \
				--text README.md --layers 1 --heads 2 --width 16 \
				--context 16 --batch 2 --steps 3 --every 2 --sample 4 \
				--vocab 260 --out "$d/model" \
				--report "$d/report.html" &&
				TENON_TARGET=x86-64-v3 valgrind -q --leak-check=full \
				--error-exitcode=2 "$BUILD"/tenon generate \
				--model "$d/model" --tokens 20 >/dev/null
			code=$?
			rm -rf "$d"
			exit $code'
	else
		skip "examples under valgrind" "valgrind is not installed"
	fi
	stage "every name and every document can be found" tools/docs_check.py
	stage "examples in documents and headers compile" tools/examples.py
	stage "docs/api.md is what the header says" \
		sh -c 'tools/api_md.py | diff docs/api.md - && echo the same'
	stage "listings in documents" tools/listings.sh README.md docs/tour.md docs/schedule.md docs/kern.md docs/gpu.md docs/targets.md docs/export.md
	stage "docs/onnx.md is what the table says" \
		sh -c 'tools/onnx_md.sh "$BUILD" | diff docs/onnx.md - && echo the same'
	stage "man/tenon.1 is what tenon --help says" tools/man.sh $build
}
beside one_core
[ -n "${TN_PART:-}" ] &&
	echo "== part $TN_PART of the long runs (make check-long runs all parts)"
meson_tests "tests" $build
golden "golden files" $build
join one_core
if [ -d "${TN_ONNX_TESTS:-/usr/share/libonnx-testdata/data}" ]; then
	counts "tests of ONNX" tools/conform_onnx.sh $build
	counts "tests of ONNX on emulated warps" tools/conform_onnx.sh --simt $build
	# a sample of them is in the tests
	[ -n "${TN_PART:-}" ] ||
		stage "tests of ONNX as exported C" tools/conform_export.sh $build
else
	skip "tests of ONNX" "libonnx-testdata is not installed"
	skip "tests of ONNX on emulated warps" "libonnx-testdata is not installed"
fi
if [ -x tools/proptest ]; then
	stage "random programs, --seed $seed --count 500" \
		tools/proptest --seed $seed --count 500
else
	skip "random programs" "there is no tools/proptest"
fi

# The same with the sanitizers: every finding ends the test. They make gcc
# warn of what cannot be, so here warnings are no errors. Of who allocated what
# is found wrong, the 5 innermost functions are told: all 30 take a sixth of
# the time of a test. They find in the cache what the tests above compiled.
export ASAN_OPTIONS=detect_leaks=1:allocator_may_return_null=1:malloc_context_size=5
export UBSAN_OPTIONS=print_stacktrace=1:halt_on_error=1
if stage "configure for ASan and UBSan" configure build-asan -Dwerror=false \
	-Db_sanitize=address,undefined -Db_lundef=false -Doptimization=1 \
	"-Dc_args=-fno-sanitize-recover=all -g1" &&
	ln -sfn ../$build/cache build-asan/cache &&
	targets=$(tools/targets.py build-asan quick planted) &&
	# shellcheck disable=SC2086
	stage "build for ASan and UBSan" ninja -C build-asan $targets; then
	meson_tests "tests under ASan and UBSan" build-asan --suite quick \
		--no-suite planted
	package=$(tools/targets.py build-asan slow | tr ' ' '\n' | grep '^python/')
	# shellcheck disable=SC2086
	if [ -z "$package" ]; then
		skip "Python package under ASan and UBSan" "there are no headers of CPython"
	elif stage "Python package, build for ASan and UBSan" ninja -C build-asan $package; then
		meson_tests "Python package under ASan and UBSan" build-asan python
	fi
	golden "golden files under ASan and UBSan" build-asan 2
fi
finish
