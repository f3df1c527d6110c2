#!/bin/sh
# python_tests.sh FOLDER [ARGUMENTS...]: the tests of the Python package that was
# built into FOLDER, by the first python3 that has pytest and NumPy. Exit status 77:
# there is none, or the package was not built. An extension with the sanitizers runs
# with theirs loaded first, and without Python's own allocator, so that each object is
# watched; leaks are counted by a test, as CPython frees not all at its end.
set -eu
folder=${1:?usage: tools/python_tests.sh FOLDER}
shift
cd "$(dirname "$0")/.."
if [ ! -e "$folder/tenon/_tenon.abi3.so" ]; then
	echo "skipped: the headers of CPython 3.11 or newer are not installed"
	exit 77
fi
asan=$(ldd "$folder/tenon/_tenon.abi3.so" | awk '/libasan/ { print $3 }')
if [ -n "$asan" ]; then
	export ASAN_OPTIONS=detect_leaks=0:allocator_may_return_null=1:malloc_context_size=5
	export UBSAN_OPTIONS=print_stacktrace=1:halt_on_error=1
	export PYTHONMALLOC=malloc
fi
for python in python3 /usr/bin/python3; do
	if "$python" -c 'import sys, numpy, pytest; assert sys.version_info >= (3, 11)' \
		2>/dev/null; then
		[ -z "$asan" ] || export LD_PRELOAD="$asan"
		PYTHONDONTWRITEBYTECODE=1 PYTHONPATH=$folder exec "$python" -m pytest -q \
			-p no:cacheprovider --no-header --tb=short "$@" python/tests
	fi
done
echo "skipped: there is no python3 with pytest and numpy"
exit 77
