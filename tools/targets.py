#!/usr/bin/env python3
"""targets.py BUILD SUITE [WITHOUT]: what ninja must build so that the tests of
suite SUITE in BUILD can run, in one line: the command, and the programs of the
tests that are not in suite WITHOUT besides.
"""
import json
import os
import subprocess
import sys

build, suite = sys.argv[1:3]
without = sys.argv[3] if len(sys.argv) > 3 else None


def introspect(what):
    text = subprocess.run(["meson", "introspect", what, build], check=True,
                          stdout=subprocess.PIPE).stdout
    return json.loads(text)


files = {t["id"]: t["filename"] for t in introspect("--targets")}
needed = {f for t in introspect("--targets") if t["name"] == "tenon"
          for f in t["filename"]}
for test in introspect("--tests"):
    suites = [s.split(":")[-1] for s in test["suite"]]
    if suite in suites and without not in suites:
        for target in test["depends"]:
            needed.update(files[target])
root = os.path.realpath(build)
print(*sorted(os.path.relpath(os.path.realpath(f), root) for f in needed))
