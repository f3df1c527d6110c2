#!/usr/bin/env bash
# levels.sh: one program through every level, then each example compiled and run.
set -eu
cd "$(dirname "$0")/.."
PATH="$PWD/build:$PATH"

show() {
	printf '\n$ %s\n' "$*"
	"$@"
}

first=examples/add_reduce.tn
show cat "$first"
for level in program system groups loops schedule kern plan c; do
	show tenon explain "$first" --level=$level
done
for example in examples/*.tn; do
	show tenon run "$example"
done
