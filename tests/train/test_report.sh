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
train() { # train OUT OPTION...
	"$tenon" train --text text --layers 1 --heads 2 --width 16 \
		--context 16 --batch 2 --steps 6 --warmup 2 --every 3 \
		--sample 20 --json --out "$@" || fails=1
}
losses() { sed 's/"tokens_per_second.*//' "$1"; }
train model --report report.html --trace trace.json >said
train plain >said_plain
if [ "$(losses said)" != "$(losses said_plain)" ]; then
	echo "FAILED: a report changes what is learned"
	fails=$((fails + 1))
fi
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
	has $f '"about": {"date": "20' '"version": "0.' '"cpus": ' \
		'"command": "' '"producer_kernel":' '"why":' '"programs":' '"kernels":[' '"reasons":[' '"loops":' '"c":'
	[ "$(grep -c '</script>' $f)" -eq 2 ] || {
		echo "FAILED: text ends a script in $f"
		fails=$((fails + 1))
	}
	! grep -qE '(src|href)=|https?://[^w]' $f || {
		echo "FAILED: $f asks for something else"
		fails=$((fails + 1))
	}
done
has report.html 'train --text text' '"samples": [[3,'
has page.html 'explain p.tn --html page.html' '{"runs":5,' '"softmax_0.'
python3 - report.html page.html <<'P' || fails=$((fails + 1))
"""Each kernel has a time that was measured, and they are those of the runs."""
import json
import re
import sys

for path in sys.argv[1:]:
    page = open(path, encoding="utf-8").read()
    data = json.loads(
        re.search(r'id="data">(.*?)</script>', page, re.S).group(1))
    for p in data["profile"]["programs"]:
        times = [k["seconds"] for k in p["kernels"]]
        assert all(t > 0 for t in times), path
        assert abs(sum(times) - p["seconds"]) <= 1e-6 * p["seconds"], path
        names = [k["name"] for k in p["kernels"]]
        assert len(set(names)) == len(names), "%s: a name twice" % path
        for r in p["reasons"]:
            for end in ("producer", "consumer"):
                k = r[end + "_kernel"]
                assert k < 0 or r[end] in p["kernels"][k]["equations"], r
P
has trace.json '"traceEvents"' '"cat":"kernel"' '"cat":"compile"' '"ph":"C"'
if command -v python3 >/dev/null; then
	python3 -c 'import json; json.load(open("trace.json"))' || fails=1
fi

if ! chromium=$(command -v chromium); then
	echo "skipped: the browser's part: chromium is not installed"
	[ $fails -eq 0 ]
	exit
fi
browse() { # browse WIDTH URL: what the page is when its script has run
	timeout 100 "$chromium" --headless --no-sandbox --disable-gpu \
		--user-data-dir="$tmp/profile" --window-size="$1,900" \
		--virtual-time-budget=2000 --dump-dom "$2" 2>/dev/null
}
dom() { # the same without its script and its data
	browse 1400 "$1" | sed '/type="application\/json"/d; /"use strict"/,$d'
}
dom "file://$tmp/report.html" >report.dom
dom "file://$tmp/page.html" >page.dom
if [ ! -s report.dom ]; then
	echo "the browser's part skipped: chromium does not start here"
	[ $fails -eq 0 ]
	exit
fi
has report.dom 'id="loss"' '<polyline class="a"' '<polyline class="b"' \
	'id="throughput"' 'id="sample"' 'after step 3' 'table class="kernels"' \
	'Why not one kernel' 'class="reasons"' 'validation loss' \
	'aria-label="Training loss from' 'aria-label="contents"' \
	'aria-label="filter kernels' 'aria-sort="descending"' 'href="#p0-k' \
	'href="#p0"' 'id="p0-r' 'loss, nats a token' 'Tenon 0.' ' UTC '
has page.dom 'table class="kernels"' 'Why not one kernel' 'id="roofline0"' \
	'run 5 times' 'flops a byte'
# A link to a kernel opens it, and there is a way back to its row.
dom "file://$tmp/page.html#p0-k0" >kernel.dom
has kernel.dom 'class="loops"' 'MapStmt' 'class="c"' '<span class="kw">void' \
	'made of: ' 'href="#p0-r0"'
# Before anything is opened the page is no more than some screens high.
sed 's|</body>|<script>document.title = "high " + document.documentElement.scrollHeight + " over " + (document.documentElement.scrollWidth - innerWidth)</script>&|' \
	report.html >measured.html
for width in 1400 500; do
	read -r high over < <(browse $width "file://$tmp/measured.html" |
		sed -n 's|.*<title>high \([0-9]*\) over \(-*[0-9]*\)</title>.*|\1 \2|p')
	if [ -z "${high:-}" ] || [ "$high" -ge 3000 ] || [ "$over" -gt 0 ]; then
		echo "FAILED: at $width the page is $high high, $over too wide"
		fails=$((fails + 1))
	fi
done
[ $fails -eq 0 ] && echo "all as it should be"
exit $((fails > 0))
