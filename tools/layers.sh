#!/usr/bin/env bash
# layers.sh [SRC]: proves that the includes below SRC (default: src/) follow
# tools/layers.txt, and that each row there names only rows above it.
# No file stands in src/ itself.
set -u
cd "$(dirname "$0")/.." || exit 1
src=${1:-src}

find "$src" -name '*.[ch]' -o -name '*.def' | LC_ALL=C sort |
	xargs grep -nH '^[[:space:]]*#[[:space:]]*include' |
	awk -v src="$src/" '
	function bad(text) { print text; n_bad++ }
	# The deepest folder of the path that layers.txt has; else the first.
	function folder_of(path, at) {
		at = path
		while (sub(/\/[^\/]*$/, "", at))
			if (at in known)
				return at
		sub(/\/.*/, "", path)
		return path
	}
	FILENAME == "tools/layers.txt" {
		if (/^#/ || NF == 0)
			next
		if ($1 == "door") {
			door[$2] = 1
			for (i = 3; i <= NF; i++) {
				if (!($i in known))
					bad("layers.txt: " $2 " is a door " \
						"for " $i ", which is no row")
				door_for[$2, $i] = 1
				door[$2] = 2
			}
			next
		}
		folder = $1
		sub(/:$/, "", folder)
		for (i = 2; i <= NF; i++) {
			if (!($i in known))
				bad("layers.txt: " folder " names " $i \
					", which does not stand above it")
			may[folder, $i] = 1
		}
		known[folder] = 1
		last = folder
		sub(/.*\//, "", last)
		door[folder "/" last ".h"] = 1
		next
	}
	{
		n_seen++
		split($0, part, ":")
		place = part[1] ":" part[2]
		folder = folder_of(substr(part[1], length(src) + 1))
		if (substr(part[1], length(src) + 1) !~ /\//) {
			bad(place ": a file of no folder")
			next
		}
		if (!match($0, /[<"][^>"]*[>"]/)) {
			bad(place ": include of what a macro says")
			next
		}
		name = substr($0, RSTART + 1, RLENGTH - 2)
		is_system = substr($0, RSTART, 1) == "<"
		if (is_system) {
			if (name == "tenon.h")
				next
			first = name
			sub(/\/.*/, "", first)
			if (first in known)
				bad(place ": <" name "> should be \"" name "\"")
			next
		}
		if (!(folder in known)) {
			bad(place ": folder " folder " is not in layers.txt")
			next
		}
		if (name !~ /^[a-z]+(\/[a-z0-9_]+)+\.(h|def)$/) {
			bad(place ": \"" name "\" is not folder/file.h")
			next
		}
		to = folder_of(name)
		if (to == folder)
			next
		if (!((folder, to) in may))
			bad(place ": " folder " may not include " name)
		else if (!(name in door) ||
			(door[name] == 2 && !((name, folder) in door_for)))
			bad(place ": " name " is private to " to)
	}
	END {
		if (n_seen == 0)
			bad("no includes found")
		printf "layers: %d includes, %d wrong\n", n_seen, n_bad
		exit n_bad > 0
	}' tools/layers.txt -
