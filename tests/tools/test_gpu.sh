#!/usr/bin/env bash
# test_gpu.sh BUILD: `tenon bench gpu` on the driver of tests/fake: every case runs,
# those that are bound by memory are compared with the driver's copy.
set -u
tenon=$1/tenon
export TENON_CUDA_DRIVER=$1/tests/fake/libfake_cuda.so
export TENON_NVRTC=$1/tests/fake/libfake_nvrtc.so
tmp=$(mktemp -d) || exit 1
trap 'rm -rf "$tmp"' EXIT
fails=0
fail() {
	printf 'FAILED: %s\n' "$*"
	fails=$((fails + 1))
}

"$tenon" bench gpu --small --repeat 1 --json >"$tmp/all" || fail "exit status $?"
[ "$(grep -c '"seconds":' "$tmp/all")" -eq 22 ] || fail "22 cases: $(cat "$tmp/all")"
[ "$(grep -c '"bytes_per_s":.*"reference":"copy"' "$tmp/all")" -eq 12 ] ||
	fail "12 cases are compared with a copy: $(cat "$tmp/all")"
[ "$(grep -c '"flops_per_s":' "$tmp/all")" -eq 10 ] || fail "10 count operations"
"$tenon" bench gpu --small --repeat 1 --device simt --case sum_rows >"$tmp/one" ||
	fail "simt: exit status $?"
grep -q '^sum_rows .* -  *- ' "$tmp/one" || fail "no reference: $(cat "$tmp/one")"
"$tenon" bench gpu --case nothing 2>"$tmp/err"
[ $? -eq 1 ] && grep -q 'no case contains "nothing"' "$tmp/err" || fail "a name that is none"
"$tenon" bench fused --small 2>"$tmp/err"
[ $? -eq 2 ] && grep -q 'are for gpu' "$tmp/err" || fail "--small of others"
FAKE_CUDA_BYTES=64 "$tenon" bench gpu --small --case sum_rows >"$tmp/out" 2>"$tmp/err"
[ $? -eq 1 ] && grep -q 'error\[device.memory\]' "$tmp/err" ||
	fail "a full device: $(cat "$tmp/err")"
exit $((fails > 0))
