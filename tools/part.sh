#!/bin/sh
# part.sh N PROGRAM ARGUMENTS...: a run of --count C programs, from --first F
# (0), in N parts. TN_PART, a number, says which of them runs, modulo N; without
# it the whole run does. All parts together are the whole run, each program once.
set -eu
parts=$1
shift
if [ -z "${TN_PART:-}" ]; then
	exec "$@"
fi
count= first=0 last=
for a in "$@"; do
	case $last in
	--count) count=$a ;;
	--first) first=$a ;;
	esac
	last=$a
done
[ -n "$count" ] || { echo "part: no --count in: $*" >&2; exit 2; }
k=$((TN_PART % parts))
from=$((count * k / parts)) to=$((count * (k + 1) / parts))
echo "part $((k + 1)) of $parts: programs $((first + from)) to $((first + to - 1))"
# of an option that is given twice the last one counts
exec "$@" --first $((first + from)) --count $((to - from))
