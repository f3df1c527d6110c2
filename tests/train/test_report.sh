#!/usr/bin/env bash
# test_report.sh BUILD: the page that --report and --html write, its data, and
# what a browser makes of it.
set -u
tenon=$1/tenon
tmp=$(mktemp -d) || exit 1
trap 'rm -rf "$tmp"' EXIT
cd "$tmp" || exit 1
fails=0

has() { # has FILE TEXT...
	local file=$1 text
	shift
	for text in "$@"; do
		grep -qF -- "$text" "$file" || {
			printf 'FAILED: no %s in %s\n' "$text" "$file"
			fails=$((fails + 1))
		}
	done
}

for i in {1..120}; do
	echo "line $i: </script> & <b> $((i * i % 97))"
done >text
"$tenon" train --text text --layers 1 --heads 2 --width 16 --context 16 \
	--batch 2 --steps 6 --warmup 2 --every 3 --sample 20 --out model \
	--report report.html --trace trace.json >/dev/null || fails=1
cat >p.tn <<'P'
program {
  x: f32[64,64]
  y = softmax(x, axis=1)
  t = transpose(y, perm=[1,0])
  z = matmul(t, y)
  s = softmax(z, axis=0)
  return s
}
P
"$tenon" explain p.tn --html page.html || fails=1
for f in report.html page.html; do
	has $f '"programs":' '"kernels":[' '"reasons":[' '"loops":' '"c":'
	[ "$(grep -c '</script>' $f)" -eq 2 ] || {
		echo "FAILED: text ends a script in $f"
		fails=$((fails + 1))
	}
	! grep -qE '(src|href)=|https?://[^w]' $f || {
		echo "FAILED: $f asks for something else"
		fails=$((fails + 1))
	}
done
has trace.json '"traceEvents"' '"cat":"kernel"' '"cat":"compile"' '"ph":"C"'
if command -v python3 >/dev/null; then
	python3 -c 'import json; json.load(open("trace.json"))' || fails=1
fi

if ! chromium=$(command -v chromium); then
	echo "skipped: the browser's part: chromium is not installed"
	[ $fails -eq 0 ]
	exit
fi
dom() { # what the page is when its script has run
	timeout 100 "$chromium" --headless --no-sandbox --disable-gpu \
		--user-data-dir="$tmp/profile" --dump-dom "$1" 2>/dev/null |
		sed '/type="application\/json"/d; /"use strict"/,$d'
}
dom "file://$tmp/report.html" >report.dom
dom "file://$tmp/page.html" >page.dom
if [ ! -s report.dom ]; then
	echo "skipped: the browser's part: chromium does not start here"
	[ $fails -eq 0 ]
	exit
fi
has report.dom 'id="loss"' '<polyline class="a"' '<polyline class="b"' \
	'id="throughput"' 'id="sample"' 'table class="kernels"' 'id="roofline0"' \
	'class="loops">' 'MapStmt(' 'class="c">' 'void k_' 'made of: ' \
	'Why not one kernel' 'class="reason"' 'validation loss'
has page.dom 'table class="kernels"' 'class="loops">' 'Why not one kernel' \
	'class="reason"'
[ $fails -eq 0 ] && echo "all as it should be"
exit $((fails > 0))
