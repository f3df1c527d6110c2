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
	# these are built against exported C, by tests/tools/test_export.sh
	case $c in examples/export_*) continue ;; esac
	# shellcheck disable=SC2046
	${CC:-cc} -std=c11 -O2 -Wall -Wextra -Werror "$c" -o "$tmp/example" \
		$($pc --cflags --libs) -lm
	name=$(basename "$c" .c)
	"$tmp/example" >"$tmp/log" || { echo "$name failed"; cat "$tmp/log"; exit 1; }
	n=$((n + 1))
done
# The static library, and nothing of it but the interface is visible.
# shellcheck disable=SC2046
${CC:-cc} -std=c11 examples/custom_op.c -o "$tmp/example" \
	$($pc --cflags) "$prefix/lib/libtenon.a" \
	$($pc --libs --static | sed 's/-ltenon\b//')
env -u LD_LIBRARY_PATH "$tmp/example" >"$tmp/log" ||
	{ echo "the static library failed"; cat "$tmp/log"; exit 1; }
if nm -g --defined-only "$prefix/lib/libtenon.a" | grep ' [A-Z] ' |
	grep -v ' tn_'; then
	echo "libtenon.a shows more than the interface"
	exit 1
fi
if command -v cmake >/dev/null; then
	mkdir "$tmp/cm"
	cat >"$tmp/cm/CMakeLists.txt" <<'CM'
cmake_minimum_required(VERSION 3.16)
project(user C)
find_package(tenon ${WANTED} REQUIRED)
foreach(kind tenon static)
  add_executable(user_${kind} user.c)
  target_link_libraries(user_${kind} tenon::${kind} m)
endforeach()
CM
	cp examples/custom_op.c "$tmp/cm/user.c"
	cmake_user() { # cmake_user VERSION: configures with it
		rm -rf "$tmp/cm/b"
		cmake -S "$tmp/cm" -B "$tmp/cm/b" -DCMAKE_PREFIX_PATH="$prefix" \
			-DWANTED="$1" >"$tmp/log" 2>&1
	}
	cmake_user 0.1 && cmake --build "$tmp/cm/b" >>"$tmp/log" 2>&1 &&
		"$tmp/cm/b/user_tenon" >>"$tmp/log" &&
		"$tmp/cm/b/user_static" >>"$tmp/log" ||
		{ cat "$tmp/log"; exit 1; }
	for version in 0.2 1 0.1.99; do
		! cmake_user $version ||
			{ echo "CMake takes this for version $version"; exit 1; }
	done
	echo "$n examples by pkg-config, the static library, two by CMake"
else
	echo "$n examples by pkg-config, the static library; CMake is not installed"
fi
