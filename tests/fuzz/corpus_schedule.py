#!/usr/bin/env python3
"""corpus_schedule.py STAMP: writes programs with their schedules for
fuzz_schedule into the folder schedule beside STAMP, then STAMP: the golden
files of the level schedule."""
import os
import re
import sys

root = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..")
golden = os.path.join(root, "golden", "schedule")
MARK = "\n# >>>\n"

stamp = sys.argv[1]
out = os.path.join(os.path.dirname(stamp) or ".", "schedule")
os.makedirs(out, exist_ok=True)
for name in sorted(os.listdir(golden)):
    program, schedule = open(os.path.join(golden, name)).read().split(MARK)
    if not schedule.startswith("schedule "):
        continue
    other = re.search(r"%r/tests/(\S+\.tn)", program)
    if other:
        program = open(os.path.join(root, other[1])).read().split(MARK)[0]
    with open(os.path.join(out, name), "w") as f:
        f.write(program + "\n# pinned\n" + schedule)
open(stamp, "w").close()
