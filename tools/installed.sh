#!/usr/bin/env bash
# installed.sh BUILD: installs what BUILD holds under a temporary prefix and
# builds and runs examples/*.c against that, as a user would: with the flags
# that pkg-config gives, and by CMake where it is installed.
set -eu
cd "$(dirname "$0")/.."
build=${1:-build}
tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT
DESTDIR=$tmp/root meson install -C "$build" --no-rebuild >"$tmp/log" 2>&1 ||
	{ cat "$tmp/log"; exit 1; }
prefix=$(find "$tmp/root" -path '*/lib/pkgconfig/tenon.pc' | head -n 1)
prefix=${prefix%/lib/pkgconfig/tenon.pc}
[ -n "$prefix" ] || { echo "no tenon.pc was installed"; exit 1; }
export PKG_CONFIG_PATH=$prefix/lib/pkgconfig LD_LIBRARY_PATH=$prefix/lib
export XDG_CACHE_HOME=$tmp/cache
# the prefix that was configured is not where it stands now
pc="pkg-config --define-variable=prefix=$prefix tenon"
n=0
for c in examples/*.c; do
	# shellcheck disable=SC2046
	${CC:-cc} -std=c11 -O2 -Wall -Wextra -Werror "$c" -o "$tmp/example" \
		$($pc --cflags --libs) -lm
	name=$(basename "$c" .c)
	"$tmp/example" >"$tmp/log" || { echo "$name failed"; cat "$tmp/log"; exit 1; }
	n=$((n + 1))
done
if command -v cmake >/dev/null; then
	mkdir "$tmp/cm"
	cat >"$tmp/cm/CMakeLists.txt" <<'CM'
cmake_minimum_required(VERSION 3.16)
project(user C)
find_package(tenon REQUIRED)
add_executable(user user.c)
target_link_libraries(user tenon::tenon m)
CM
	cp examples/custom_op.c "$tmp/cm/user.c"
	cmake -S "$tmp/cm" -B "$tmp/cm/b" -DCMAKE_PREFIX_PATH="$prefix" \
		>"$tmp/log" 2>&1 && cmake --build "$tmp/cm/b" >>"$tmp/log" 2>&1 &&
		"$tmp/cm/b/user" >>"$tmp/log" || { cat "$tmp/log"; exit 1; }
	echo "$n examples by pkg-config, one by CMake"
else
	echo "$n examples by pkg-config; CMake is not installed"
fi
