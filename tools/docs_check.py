#!/usr/bin/env python3
"""docs_check.py [ROOT]: the documents are whole.

Every name that include/*.h offers - functions, types, constants, macros -
stands in docs/api.md (the functions of operations: in docs/ops.md); every
document can be reached by links from README.md; no link leads nowhere; each
file of the sources that a document names exists.
"""
import glob
import os
import re
import sys

ROOT = sys.argv[1] if len(sys.argv) > 1 else \
    os.path.join(os.path.dirname(os.path.abspath(__file__)), "..")
# What makes a header compile.
PLUMBING = re.compile(r"TN_API|TN_MUST_USE|TN_PRINTF|TENON_\w*H")


def read(path):
    with open(path, encoding="utf-8") as f:
        return f.read()


def names_of(header):
    """What a program may use of a header."""
    text = re.sub(r"/\*.*?\*/", " ", header, flags=re.S)
    found = re.findall(r"^#define (\w+)", text, re.M)
    flat = re.sub(r"^#.*(\\\n.*)*$", "", text, flags=re.M)
    found += [("tn_" + n[6:]) if n.startswith("tn_at_") else n for n in
              re.findall(r"^TN_API[^;(]*?\b(tn_\w+)\(", flat, re.M)]
    found += re.findall(r"^}\s*(\w+);", flat, re.M)
    found += re.findall(r"^typedef [^;{(]*?(\w+)[;(]", flat, re.M)
    for values in re.findall(r"\benum\s*\w*\s*{([^}]*)}", flat):
        found += re.findall(r"\bTN_\w+", values)
    return [n for n in dict.fromkeys(found) if not PLUMBING.fullmatch(n)]


def check_api():
    wrong = n = 0
    for path in sorted(glob.glob(os.path.join(ROOT, "include", "*.h"))):
        rows = os.path.basename(path) == "tenon_ops.h"
        page = "docs/ops.md" if rows else "docs/api.md"
        words = set(re.findall(r"\w+", read(os.path.join(ROOT, page))))
        for name in names_of(read(path)):
            # a row's function is called as the row is
            known = name in words or rows and \
                any(n in words for n in (name[3:], name[3:].rstrip("_")))
            n += 1
            if not known:
                print("%s is not in %s" % (name, page))
                wrong += 1
    return n, wrong


def check_files():
    """Source files in `code` of documents, by their name or the end of their path."""
    have = set()
    for folder in ("src", "include", "tests", "tools", "examples", "bench", "python"):
        for at, _, files in os.walk(os.path.join(ROOT, folder)):
            parts = os.path.relpath(at, ROOT).split(os.sep)
            for f in files:
                for i in range(len(parts) + 1):
                    have.add("/".join(parts[i:] + [f]))
    wrong = n = 0
    for path in sorted(glob.glob(os.path.join(ROOT, "docs", "*.md"))) + \
            [os.path.join(ROOT, "README.md")]:
        for i, line in enumerate(read(path).split("\n")):
            for name in re.findall(r"`([a-z_0-9]+(?:/[a-z_0-9]+)*\.(?:c|h|def|sh|py))`", line):
                n += 1
                if name not in have:
                    print("%s:%d: there is no file %s" % (os.path.relpath(path, ROOT), i + 1, name))
                    wrong += 1
    return n, wrong


def links_of(path):
    """Files that a document links to, each with its line."""
    fence = False
    for i, line in enumerate(read(path).split("\n")):
        if line.startswith("```"):
            fence = not fence
        if fence:
            continue
        for target in re.findall(r"\]\(([^)#\s]+)(?:#[^)\s]*)?\)", line):
            if "://" not in target:
                yield i + 1, os.path.normpath(
                    os.path.join(os.path.dirname(path), target))


def check_links():
    wrong = 0
    reached, todo = set(), [os.path.normpath(os.path.join(ROOT, "README.md"))]
    while todo:
        path = todo.pop()
        if path in reached:
            continue
        reached.add(path)
        for line, target in links_of(path):
            if not os.path.exists(target):
                print("%s:%d: there is no %s" % (
                    os.path.relpath(path, ROOT), line,
                    os.path.relpath(target, ROOT)))
                wrong += 1
            elif target.endswith(".md"):
                todo.append(target)
    documents = [os.path.normpath(d) for d in
                 glob.glob(os.path.join(ROOT, "docs", "*.md"))]
    for path in sorted(set(documents) - reached):
        print("%s: no link leads there from README.md" %
              os.path.relpath(path, ROOT))
        wrong += 1
    return len(documents), wrong


def main():
    n_names, no_name = check_api()
    n_documents, no_link = check_links()
    n_files, no_file = check_files()
    if no_name + no_link + no_file:
        sys.exit("docs_check: %d names are missing, %d links are wrong, "
                 "%d named files do not exist" % (no_name, no_link, no_file))
    print("docs_check: %d names, %d documents and %d named files are there" %
          (n_names, n_documents, n_files))


if __name__ == "__main__":
    main()
