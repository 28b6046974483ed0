#!/usr/bin/env bash
# valgrind_test.sh PROGRAM THREADS_PROGRAM: memcheck runs both with the sizes that they have by default, on both substrates with
# forced steals, and reports nothing; of a thread's own mistake it reports just that. Status 77: no valgrind here.
set -u
program=$1 threads=$2
command -v valgrind >/dev/null || { echo "SKIPPED: valgrind is not installed"; exit 77; }
out=$(mktemp) || exit 1
trap 'rm -f "$out"' EXIT
failed=0

run() { timeout -s KILL 200 valgrind --error-exitcode=9 --num-callers=20 "$@" --godwit-workers=2 >"$out" 2>&1; }
fail() { echo "FAILED: $1"; cat "$out"; failed=1; }

# A worker's memcheck says what it found when the worker ends: all of them must say 0.
clean() {  # clean WHAT EXPECTED PROGRAM ARGUMENT...
  local what=$1 expected=$2
  shift 2
  run "$@" || { fail "$what: status $?"; return; }
  grep -qxF "$expected" "$out" || fail "$what: not '$expected'"
  if grep -E 'ERROR SUMMARY: [1-9]|Invalid |uninitialised|switching stacks|unhandled' "$out"; then fail "$what: memcheck reports"; fi
}

for substrate in processes threads; do
  clean "$substrate" "55 20 3000 0" "$program" --godwit-substrate=$substrate --godwit-private-heap=0 --godwit-force-steal=random
done
if run "$program" wrong; then fail "a read beyond a block passes for right"; fi
grep -q 'Invalid read of size 1' "$out" || fail "a read beyond a block is not reported"
clean "threads and a mutex" "2000" "$threads"
[ $failed = 0 ] && echo "all right"
exit $failed
