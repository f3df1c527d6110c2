#!/usr/bin/env python3
"""skips.py BUILD: what the last `meson test` in BUILD did not try, one line
each: NAME: REASON. A test, or a part of one, that cannot run here says so by a
line "skipped: REASON"; cmocka's own "[  SKIPPED ] NAME" alone is no reason.
"""
import json
import sys

with open(sys.argv[1] + "/meson-logs/testlog.json") as log:
    for line in log:
        test = json.loads(line)
        name = test["name"].split(" / ")[-1]
        out = (test.get("stdout") or "").splitlines()
        reasons = [s[9:] for s in out if s.startswith("skipped: ")]
        if test["result"] == "SKIP" and not reasons:
            reasons = ["it says no reason"]
        for reason in reasons:
            whole = "" if test["result"] == "SKIP" else "a part: "
            print(f"{name}: {whole}{reason}")
