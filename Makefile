# The front door. Every target sets up what is missing on a Debian 12 machine
# (tools/setup.sh says what and why), configures, builds, and does its work.
#
#   make build     build/tenon and the library
#   make demo      a GPT learns this project for a minute, writes, and reports
#   make levels    a real program through every level, then run
#   make check     everything that can fail; last line: N passed, N failed, N skipped
#   make bench     generated kernels against hand-written loops
#   make install   PREFIX=/usr/local DESTDIR=
#   make clean

PREFIX ?= /usr/local
BUILD = build

.PHONY: build demo levels check bench install clean

build:
	@tools/setup.sh build
	@test -f $(BUILD)/build.ninja || meson setup $(BUILD) >/dev/null
	@ninja -C $(BUILD)

demo: build
	@tools/demo.sh

levels: build
	@tools/levels.sh

check:
	@tools/setup.sh check
	@tools/check.sh

bench: build
	$(BUILD)/tenon bench fused

install: build
	meson configure $(BUILD) -Dprefix=$(abspath $(PREFIX))
	meson install -C $(BUILD)

clean:
	rm -rf build build-asan
