#!/usr/bin/env python3
"""house.py [BUILD]: proves what tools/house.txt says of the sources: no
function over 70 lines, no file over 800, no circle of files inside a folder
of src/ but those that are listed there, each with its reason. A listed thing
that is in order now is refused too, so the list only shrinks.

Files A and B of one folder form a circle if A calls (or reads) something that
B defines and B, perhaps through other files of the folder, something of A.
nm says so of the objects in BUILD (default: build), which must be built."""

import collections
import glob
import os
import re
import subprocess
import sys

FUNCTION_LINES = 70
FILE_LINES = 800
GENERATED = {'include/tenon_ops.h'}
LIST = 'tools/house.txt'


def sources():
    out = subprocess.run(['git', 'ls-files', '--cached', '--others',
                          '--exclude-standard'], capture_output=True,
                         text=True)
    names = out.stdout.split('\n') if out.returncode == 0 else [
        os.path.relpath(os.path.join(at, name))
        for at, dirs, files in os.walk('.') for name in files
        if not at.startswith('./build')]
    return sorted(name for name in names
                  if re.search(r'\.(c|h|def|py|sh|html)$', name)
                  and name not in GENERATED and os.path.exists(name))


def read_list(bad):
    """{(kind, key): limit or set of files}; every row ends with a reason."""
    rows = {}
    with open(LIST) as stream:
        text = re.sub('#.*', '', stream.read())
    # A row goes on in the lines below it that begin with space.
    for row in re.split(r'\n(?=\S)', text):
        if row.strip():
            head, _, reason = ' '.join(row.split()).partition(': ')
            word = head.split()
            if len(reason.split()) < 3:
                bad(f'{LIST}: no reason: {head}')
            if word[0] == 'file' and len(word) == 3:
                rows['file', word[1]] = int(word[2])
            elif word[0] == 'function' and len(word) == 4:
                rows['function', word[1], word[2]] = int(word[3])
            elif word[0] == 'circle' and len(word) > 3:
                rows['circle', word[1], word[2]] = set(word[2:])
            else:
                bad(f'{LIST}: neither "file NAME LINES", "function FILE NAME '
                    f'LINES" nor "circle FOLDER FILE FILE...": {head}')
    return rows


def function_name(lines, opening):
    """The name before the brace at column 0: the last word before a '(' of
    the lines that begin at column 0."""
    for line in reversed(lines[max(0, opening - 12):opening]):
        found = re.match(r'(?=[A-Za-z_]).*?(\w+)\(', line)
        if found:
            return found.group(1)
    return '?'


def check_sizes(names, rows, used, bad):
    n_functions = 0

    def over(key, what, n, limit):
        if n <= limit:
            return
        if key not in rows:
            bad(f'{what}: {n} lines, over {limit}')
            return
        used.add(key)
        if n > rows[key]:
            bad(f'{what}: {n} lines, over the {rows[key]} of {LIST}')

    for name in names:
        with open(name, errors='replace') as stream:
            lines = stream.read().split('\n')
        over(('file', name), name, len(lines) - 1, FILE_LINES)
        if not name.endswith(('.c', '.h')):
            continue
        opening = None
        for at, line in enumerate(lines):
            if line.startswith('{'):
                opening = at
            elif line.startswith('}') and opening is not None:
                n_functions += 1
                function = function_name(lines, opening)
                over(('function', name, function),
                     f'{name}:{opening + 1}: {function}()',
                     at - opening + 1, FUNCTION_LINES)
                opening = None
    return n_functions


def folder_of(name, folders):
    """The deepest folder of tools/layers.txt that holds the file."""
    at = name
    while '/' in at:
        at = at.rpartition('/')[0]
        if at in folders:
            return at
    return name.split('/')[0]


def calls(build, names):
    """{file: {file of the same folder that defines what it uses: names}}"""
    with open('tools/layers.txt') as stream:
        folders = {line.split(':')[0] for line in stream
                   if re.match(r'[a-z/]+:', line)}
    of_object = {name.replace('/', '_') + '.o': name for name in names
                 if name.startswith('src/')}
    needs = collections.defaultdict(set)
    defines = collections.defaultdict(list)
    objects = [path for path in glob.glob(f'{build}/*.p/src_*.o')
               if os.path.basename(path) in of_object]
    out = subprocess.run(['nm', '-A', *objects], capture_output=True,
                         text=True) if objects else None
    for line in out.stdout.splitlines() if out else []:
        path, _, symbol = line.partition(':')
        name = of_object[os.path.basename(path)][len('src/'):]
        kind, symbol = symbol.split()[-2:]
        if kind == 'U':
            needs[name].add(symbol)
        elif kind in 'TDBRCV':
            defines[symbol].append(name)
    graph = collections.defaultdict(lambda: collections.defaultdict(set))
    for name, used in needs.items():
        for symbol in used:
            for other in defines[symbol]:
                if other != name and folder_of(name, folders) == \
                        folder_of(other, folders):
                    graph[name][other].add(symbol)
    return graph, folders, len(objects)


def circles(graph):
    """Strongly connected components of more than one file."""
    number, low, stack, found = {}, {}, [], []

    def visit(name):
        number[name] = low[name] = len(number)
        stack.append(name)
        for other in list(graph[name]):
            if other not in number:
                visit(other)
            if other in stack:
                low[name] = min(low[name], low[other])
        if low[name] == number[name]:
            at = stack.index(name)
            if len(stack) - at > 1:
                found.append(sorted(stack[at:]))
            del stack[at:]

    for name in sorted(graph):
        if name not in number:
            visit(name)
    return sorted(found)


def why(graph, circle, which):
    """One line for each call inside the circle that touches `which`."""
    return [f'    {a} -> {b}: {", ".join(sorted(graph[a][b])[:6])}'
            for a in circle for b in sorted(graph[a])
            if b in circle and (a in which or b in which)]


def check_circles(build, names, rows, used, bad):
    graph, folders, n_objects = calls(build, names)
    if n_objects == 0:
        bad(f'no objects in {build}: build it first')
    for circle in circles(graph):
        folder = folder_of(circle[0], folders)
        short = {name: name[len(folder) + 1:].removesuffix('.c')
                 for name in circle}
        here = set(short.values())
        key = next((key for key, files in rows.items()
                    if key[0] == 'circle' and key[1] == folder
                    and files & here), None)
        known = rows[key] if key else set()
        new = {name for name in circle if short[name] not in known}
        if new:
            bad('\n'.join([f'src/{folder}: a circle of files: '
                           + ' '.join(sorted(here))]
                          + why(graph, circle, new)))
        if key and here & known:
            rows[key] = known - here
            used.add(key)
    for key, files in rows.items():
        if key[0] == 'circle' and key in used and files:
            bad(f'{LIST}: in no circle any more, strike out: {key[1]} '
                + ' '.join(sorted(files)))
    return n_objects


def main():
    os.chdir(os.path.join(os.path.dirname(__file__), '..'))
    build = sys.argv[1] if len(sys.argv) > 1 else os.environ.get('BUILD',
                                                                'build')
    wrong = []
    names = sources()
    rows = read_list(wrong.append)
    used = set()
    n_functions = check_sizes(names, rows, used, wrong.append)
    n_objects = check_circles(build, names, rows, used, wrong.append)
    for key in rows:
        if key not in used:
            wrong.append(f'{LIST}: in order now, strike out: '
                         + ' '.join(key))
    print(*wrong, sep='\n', end='\n' if wrong else '')
    print(f'house: {len(names)} files, {n_functions} functions, {n_objects} '
          f'objects, {len(rows)} exceptions, {len(wrong)} wrong')
    return bool(wrong)


sys.exit(main())
