#!/usr/bin/env bash
# bare.sh [DIR [COMMAND]...]: the README's commands as a new user gives them: on
# a bare Debian 12 (debootstrap's smallest, with make, git and ca-certificates
# alone), in a fresh clone of what is committed here. Run it, as root, before
# set-up files change on main. DIR (default: a temporary folder) keeps the bare
# system, DIR/base, for the next time; each run gets a new copy, DIR/system.
# Each COMMAND is one argument; without any: "make demo" and "make check".
# Exit status 0 if all passed; 77 if this machine cannot try it.
set -u
cd "$(dirname "$0")/.." || exit 1
root=$PWD

cannot() { # cannot WHY
	echo "skipped: $*"
	exit 77
}
[ "$(id -u)" -eq 0 ] || cannot "chroot needs root"
command -v debootstrap >/dev/null || cannot "debootstrap is not installed"
dir=${1:-$(mktemp -d)}
[ $# -gt 0 ] && shift
[ $# -gt 0 ] || set -- "make demo" "make check"
mkdir -p "$dir" && dir=$(cd "$dir" && pwd) || exit 1
mirror=${BARE_MIRROR:-http://deb.debian.org/debian}

if [ ! -e "$dir/base/.whole" ]; then
	echo "== a bare Debian 12 in $dir/base"
	rm -rf "$dir/base"
	debootstrap --variant=minbase --include=make,git,ca-certificates \
		bookworm "$dir/base" "$mirror" >"$dir/debootstrap.log" 2>&1 || {
		tail -n 20 "$dir/debootstrap.log"
		echo "bare: debootstrap failed"
		exit 1
	}
	touch "$dir/base/.whole"
fi

system=$dir/system
release() {
	umount -l "$system/proc" "$system/dev/shm" "$system/dev/pts" \
		"$system/dev" 2>/dev/null
}
trap release EXIT
release
rm -rf "$system"
cp -a "$dir/base" "$system" || exit 1
cp -L /etc/resolv.conf "$system/etc/resolv.conf"
mount -t proc proc "$system/proc" &&
	mount --bind /dev "$system/dev" &&
	mount --bind /dev/pts "$system/dev/pts" &&
	mount -t tmpfs shm "$system/dev/shm" || cannot "nothing can be mounted here"
git clone -q --no-hardlinks "$root" "$system/root/tenon" || exit 1

failed=0
for command; do
	echo "== $command"
	began=$SECONDS
	# an environment of nothing but what a login has, and the way to the network
	env -i HOME=/root PATH=/usr/sbin:/usr/bin:/sbin:/bin TERM=dumb \
		${http_proxy:+http_proxy="$http_proxy"} \
		${https_proxy:+https_proxy="$https_proxy"} \
		chroot "$system" sh -c "cd /root/tenon && $command" </dev/null
	status=$?
	echo "== $command: status $status ($((SECONDS - began)) s)"
	[ $status -eq 0 ] || failed=$((failed + 1))
done
echo "bare: $(($# - failed)) of $# commands passed"
[ $failed -eq 0 ]
