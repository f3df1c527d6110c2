#!/usr/bin/env python3
"""examples.py [FILE]...: every example in C of a document or header compiles.

    tools/examples.py                      README.md, docs/*.md, include/*.h
    tools/examples.py docs/nn.md

In a document an example is a ```c block (one behind <!-- $ COMMAND --> is a
listing, see listings.sh); in a header, lines of a comment that are indented by
five places or more. Each is compiled as C11 against tenon.h with all warnings
as errors, as the body of a function, or, when it defines functions, on its own.
What it may use without a declaration stands in tests/tools/example_names.h; a
line <!-- with: C TEXT --> in front of a block adds to that.
"""
import glob
import os
import re
import subprocess
import sys

ROOT = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..")
NAMES = os.path.join(ROOT, "tests", "tools", "example_names.h")
MADE = {"api.md", "ops.md"}  # by api_md.py and from the table of operations
CC = [os.environ.get("CC", "cc"), "-std=c11", "-Wall", "-Wextra", "-Wpedantic",
      "-Wstrict-prototypes", "-Werror", "-Wno-unused-result", "-Wno-unused",
      "-fsyntax-only", "-I", os.path.join(ROOT, "include"), "-x", "c", "-"]
FUNCTION = re.compile(r"^(static |int |void |tn_status )[^;=]*\([^;]*\)\s*{?$",
                      re.M)


def of_document(lines):
    """(line, with, text) of each ```c block; what should be one is said."""
    found, wrong, i, more, listing = [], [], 0, "", False
    while i < len(lines):
        line = lines[i]
        if line.startswith("<!-- $ "):
            listing = True
        elif line.startswith("<!-- with: "):
            more = line[len("<!-- with: "):].rsplit(" -->", 1)[0]
        elif line.startswith("```"):
            first = i + 1
            i = lines.index("```", first)
            if line == "```c" and not listing:
                found.append((first + 1, more, "\n".join(lines[first:i])))
            more, listing = "", False
        elif re.match(r" {4}.*\btn_\w+\(.*;", line):
            wrong.append("%d: an example in C stands in a ```c block" % (i + 1))
        i += 1
    return found, wrong


def of_header(lines):
    """(line, "", text) of what is indented in comments of a header."""
    found, block = [], []
    in_comment = False
    for i, line in enumerate(lines + [""]):
        in_comment = line.startswith("/*") or (in_comment and
                                               line.startswith(" *"))
        # behind an empty line of the comment, not under a label such as errors
        if in_comment and line.startswith(" *     ") and \
                (block or lines[i - 1].strip() == "*"):
            block.append(line[7:])
        elif block:
            found.append((i + 1 - len(block), "", "\n".join(block)))
            block = []
    return found, []


def compiles(path, line, more, text):
    where = '#line %d "%s"\n' % (line, path)
    if FUNCTION.search(text):
        whole = more + "\n" + where + text + "\n"
    else:
        whole = "%s\nvoid example(void);\nvoid example(void)\n{\n%s%s\n}\n" % (
            more, where, text)
    whole = '#include "%s"\n%s' % (NAMES, whole)
    made = subprocess.run(CC, input=whole, text=True, stderr=subprocess.PIPE,
                          check=False)
    sys.stdout.write(made.stderr)
    return made.returncode == 0


def main():
    files = sys.argv[1:]
    os.chdir(ROOT)
    if not files:
        files = ["README.md"] + sorted(glob.glob("docs/*.md")) + \
            sorted(glob.glob("include/*.h"))
    n = n_wrong = 0
    for path in files:
        if os.path.basename(path) in MADE:
            continue
        with open(path, encoding="utf-8") as f:
            lines = f.read().split("\n")
        found, wrong = (of_header if path.endswith(".h") else
                        of_document)(lines)
        for text in wrong:
            print("%s:%s" % (path, text))
        n_wrong += len(wrong)
        for line, more, text in found:
            n += 1
            n_wrong += not compiles(path, line, more, text)
    if n_wrong:
        sys.exit("examples: %d of %d do not compile" % (n_wrong, n))
    print("examples: %d compile" % n)


if __name__ == "__main__":
    main()
