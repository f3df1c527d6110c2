#!/usr/bin/env bash
# demo.sh: the main job in about a minute: a small GPT learns the sources and
# documents of this project, writes a few lines, and a page shows how it went.
set -eu
cd "$(dirname "$0")/.."
steps=${STEPS:-350}

show() {
	printf '\n$ %s\n' "$*"
	"$@"
}

rm -rf demo/model demo/report.html
mkdir -p demo
show build/tenon train --out demo/model --steps "$steps" --every 50 \
	--sample 300 --report demo/report.html
show build/tenon generate --model demo/model --prompt '/* ' --tokens 200
printf '\nThe report, for any browser: %s/demo/report.html\n' "$PWD"
