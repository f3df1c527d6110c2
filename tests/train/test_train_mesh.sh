#!/usr/bin/env bash
# test_train_mesh.sh BUILD: tenon train by several processes: the losses of one
# process, one voice, checkpoints that any mesh goes on from, and errors.
set -u
root=$(cd "$(dirname "$0")/../.." && pwd) || exit 1
tenon=$(cd "$1" && pwd)/tenon
tmp=$(mktemp -d) || exit 1
trap 'rm -rf "$tmp"' EXIT
cd "$tmp" || exit 1
head -c 20000 "$root/docs/notation.md" >text

fail() {
	echo "$*"
	exit 1
}
mpi() { # mpi N ARGUMENT...
	timeout 200 mpirun --allow-run-as-root --oversubscribe -n "$1" \
		"$tenon" "${@:2}"
}
small=(train --text text --layers 1 --heads 2 --width 8 --context 8 --batch 6
	--steps 4 --every 2 --sample 5 --threads 1 --interp --json)
losses() { # the loss of each step
	sed -n 's/.*"event": "step".*"loss": \([^,]*\), "validation": \([^,]*\),.*/\1 \2/p' "$1"
}
same() { # same FILE LINES: these losses are those of one process
	losses "$1" >got
	[ "$(wc -l <got)" = "$2" ] || fail "$1: $(cat "$1")"
	losses one | tail -n "$2" | paste - got | awk '
		function differ(a, b) { return a != b && (a - b > 1e-4 || b - a > 1e-4) }
		differ($1, $3) || differ($2, $4) { print; bad = 1 }
		END { exit bad }' || fail "$1: other losses than one process"
}

"$tenon" "${small[@]}" --out alone >one || fail "one process: $(cat one)"
[ "$(losses one | wc -l)" = 4 ] || fail "no losses: $(cat one)"
for mesh in "2 data=2" "2 model=2" "2 sequence=2" "4 data=2,model=2"; do
	n=${mesh%% *} name=${mesh#* }
	mpi "$n" "${small[@]}" --out "$name" --mesh "$name" \
		--report report.html >"log $name" 2>err ||
		fail "$name: $(cat "log $name" err)"
	same "log $name" 4
	[ "$(grep -c '"start"' "log $name")" = 1 ] ||
		fail "$name: not one voice: $(cat "log $name")"
	[ -s report.html ] || fail "$name: no report"
	rm report.html
done

# a run that stops on one mesh goes on on another, or without any
mpi 4 "${small[@]}" --out part --mesh states=2,model=2 --until 2 >log 2>err ||
	fail "states=2,model=2: $(cat log err)"
cp -r part part2
"$tenon" "${small[@]}" --out part --resume >resumed || fail "$(cat resumed)"
same resumed 2
mpi 2 "${small[@]}" --out part2 --resume --mesh states=2 >resumed 2>err ||
	fail "resumed: $(cat resumed err)"
same resumed 2

# On devices (tests/fake), which are connected or not: the same bits
fake=${tenon%/*}/tests/fake
on_devices() { # on_devices OUT NCCL
	TENON_DEVICE=cuda TENON_CUDA_DRIVER=$fake/libfake_cuda.so \
		TENON_NVRTC=$fake/libfake_nvrtc.so TENON_NCCL=$2 \
		mpi 2 train --text text --layers 1 --heads 2 --width 8 \
		--context 8 --batch 6 --steps 3 --every 3 --sample 0 \
		--threads 1 --out "$1" --mesh data=2 >log 2>err ||
		fail "on devices: $(cat log err)"
}
if [ -e "$fake/libfake_nccl.so" ]; then
	on_devices by_devices "$fake/libfake_nccl.so"
	[ ! -s err ] || fail "by devices: $(cat err)"
	on_devices by_hosts /nowhere
	[ "$(grep -c 'exchange tensors through the memory of the hosts: process 0: NCCL is not found' err)" = 1 ] ||
		fail "by hosts: $(cat err)"
	for file in by_devices/*.safetensors; do
		cmp "$file" "by_hosts/${file#*/}" || fail "other bits: $file"
	done
	[ -e "$file" ] || fail "nothing was written"
fi

# errors, on each process
wrong() { # wrong TEXT N ARGUMENT...
	mpi "${@:2}" >log 2>&1 && fail "no error: $(cat log)"
	grep -q -- "$1" log || fail "no \"$1\": $(cat log)"
}
wrong 'shard.mesh.*4 processes, but 2 are running' 2 "${small[@]}" --out e --mesh data=4
wrong 'shard.mesh.*form is' 2 "${small[@]}" --out e --mesh data
wrong 'train.mesh.*no mesh axis rows' 2 "${small[@]}" --out e --mesh rows=2
wrong 'train.exists' 2 "${small[@]}" --out part --mesh data=2
"$tenon" "${small[@]}" --out e --mesh data=2 >log 2>&1 && fail "no error"
grep -q 'mpirun -n 2' log || fail "$(cat log)"

# ranks that are told different things: no step is made, each says what differs
head -c 19000 "$root/docs/notation.md" >other
differ() { # differ TEXT ARGUMENT...: those of the second process alone
	timeout 200 mpirun --allow-run-as-root --oversubscribe \
		-n 1 "$tenon" "${small[@]}" --out differ --mesh data=2 : \
		-n 1 "$tenon" "${small[@]}" --out differ --mesh data=2 \
		"${@:2}" >log 2>&1 && fail "$*: no error: $(cat log)"
	[ "$(grep -c -e "shard.differ.*$1" log)" = 2 ] ||
		fail "$*: not on both: $(cat log)"
	[ ! -e differ/step-1.safetensors ] && ! grep -q '"step"' log ||
		fail "$*: it went on"
}
differ '--lr is not the same.*0.002.* on 0; 0.01.* on 1' --lr 0.01
differ '--seed is not the same.*: 0 on 0; 7 on 1' --seed 7
differ '--batch is not the same.*: 6 on 0; 4 on 1' --batch 4
differ '--text is not the same.*20000 bytes.* on 0; 39000 bytes.* on 1' --text other
differ '--until is not the same' --until 3
differ 'the mesh is not the same.*data=2 on 0; model=2 on 1' --mesh model=2
echo "train on meshes: all as one process"
