# The front door. Every target sets up what is missing on a Debian 12 machine
# (tools/setup.sh says what and why), configures, builds, and does its work.
#
#   make build     build/tenon and the library
#   make demo      trains a small GPT for a minute or two, lets it write, and
#                  makes a report of it
#   make levels    takes a program through every level, then runs it
#   make check     everything that can fail; last line: N passed, N failed, N skipped
#   make check-long  the same with all parts of the longest runs
#   make bench     generated kernels against hand-written loops
#   make wheel     the Python package, into dist/ (needs PyPI, for meson-python)
#   make install   PREFIX=/usr/local DESTDIR=
#   make clean

PREFIX ?= /usr/local
BUILD = build

.PHONY: configure build tenon demo levels check check-long bench wheel install clean

configure:
	@tools/setup.sh build
	@test -f $(BUILD)/build.ninja || meson setup $(BUILD) >/dev/null

build: configure
	@ninja -C $(BUILD)

# The command alone, without tests and examples.
tenon: configure
	@ninja -C $(BUILD) tenon

demo: tenon
	@tools/demo.sh

levels: tenon
	@tools/levels.sh

check:
	@tools/setup.sh check
	@tools/check.sh

check-long:
	@tools/setup.sh check
	@tools/check.sh --long

bench: tenon
	$(BUILD)/tenon bench fused

wheel:
	@tools/wheel.sh

install: build
	meson configure $(BUILD) -Dprefix=$(abspath $(PREFIX))
	meson install -C $(BUILD)

clean:
	rm -rf build build-asan dist
