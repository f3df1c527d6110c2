#!/usr/bin/env bash
# setup.sh build|check: installs, with apt-get, what the build (or also the
# tests) need and this machine lacks. Says what and why; silent if all is there.
set -u

what=${1:-}
case $what in
build | check) ;;
*)
	echo "usage: tools/setup.sh build|check" >&2
	exit 2
	;;
esac

missing=()
need() { # need PACKAGE WHY CHECK...: CHECK fails without the package
	local package=$1 why=$2
	shift 2
	"$@" >/dev/null 2>&1 && return
	missing+=("$package")
	[ ${#missing[@]} -eq 1 ] && echo "Tenon needs what is not installed here:"
	printf '  %-15s %s\n' "$package" "$why"
}
headers() { # all these headers can be included, in this order
	printf '#include <%s>\n' "$@" | cc -E -x c - -o /dev/null
}

python_headers() {
	headers "$(/usr/bin/python3 -c \
		'import sysconfig; print(sysconfig.get_paths()["include"])')/Python.h"
}

need gcc "C compiler, for Tenon and for the kernels it generates" command -v cc
need libc6-dev "headers of the C library" headers stdio.h pthread.h
need meson "configures the build" command -v meson
need ninja-build "runs the build" command -v ninja
if [ "$what" = check ]; then
	need g++ "sees that tenon.h is C++ as well" command -v c++
	need pkg-config "finds the libraries of the tests" command -v pkg-config
	need libcmocka-dev "framework of the unit tests" \
		headers stdarg.h stddef.h stdint.h setjmp.h cmocka.h
	need libisl-dev "what the index algebra is compared with, in tests" \
		headers isl/map.h
	need libgmp-dev "what libisl is linked with" headers gmp.h
	need locales "a language that writes 1,5 for 1.5, in tests" \
		test -e /usr/share/i18n/locales/de_DE
	need libonnx-testdata "the tests of the ONNX project" \
		test -d "${TN_ONNX_TESTS:-/usr/share/libonnx-testdata/data}"
	need openmpi-bin "starts the processes of the tests on several processes" \
		command -v mpirun
	need python3 "writes the data of some tests" command -v python3
	need python3-dev "headers, for the Python package" python_headers
	need python3-pytest "runs the tests of the Python package" \
		/usr/bin/python3 -c 'import pytest'
	need python3-numpy "what the Python package is compared with" \
		/usr/bin/python3 -c 'import numpy'
fi
# Optional: with them the test `export` runs exported C on other processors, too (and
# says what it skips without them): gcc-aarch64-linux-gnu, gcc-arm-linux-gnueabihf
# and qemu-user; gcc-arm-none-eabi, libnewlib-arm-none-eabi and qemu-system-arm;
# libc6-dev-i386 and lib32gcc-12-dev for 32 bits; clang.
[ ${#missing[@]} -eq 0 ] && exit 0

if ! command -v apt-get >/dev/null; then
	echo "There is no apt-get on this system: install them (or what they are" \
		"called here) and run this again." >&2
	exit 1
fi
sudo=
if [ "$(id -u)" -ne 0 ]; then
	sudo=sudo
	if ! command -v sudo >/dev/null; then
		echo "Not root, and there is no sudo. As root:" \
			"apt-get install ${missing[*]}" >&2
		exit 1
	fi
fi

# Another apt-get may be at work: wait for it.
apt() {
	echo "+ $sudo apt-get $*"
	$sudo env DEBIAN_FRONTEND=noninteractive apt-get -q \
		-o DPkg::Lock::Timeout=300 "$@"
}
log=$(mktemp) || exit 1
trap 'rm -f "$log"' EXIT
apt update >"$log" 2>&1 || echo "apt-get update failed; trying with what is known"
if ! apt install -y --no-install-recommends "${missing[@]}" >>"$log" 2>&1; then
	tail -n 20 "$log" >&2
	echo "apt-get could not install: ${missing[*]}" >&2
	exit 1
fi
echo "Installed: ${missing[*]}"
