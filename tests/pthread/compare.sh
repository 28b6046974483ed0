#!/usr/bin/env bash
# Runs a program plainly and by godwit-pthread, and compares standard output and exit status: compare.sh LAUNCHER WORKERS PROGRAM [ARGUMENT...]
# WORKERS: numbers of workers to try, such as 1,2,4. EXPECTED: status that it must have plainly, if given. Status 77: PROGRAM is not there.
launcher=$1 workers=$2
shift 2
command -v "$1" >/dev/null || { echo "skipped: $1 is not installed (scripts/setup)"; exit 77; }
dir=$(mktemp -d) || exit 1
trap 'rm -rf "$dir"' EXIT
limit=${TEST_SECONDS:-60}
# Plainly it may take longer: 40,000 OS threads are 4 s of a quiet machine, and a minute of a busy one.
timeout -k 2 "$((4 * limit))" "$@" >"$dir/plain" 2>"$dir/plain.err"
expected=$?
[ "$expected" = "${EXPECTED:-$expected}" ] || { echo "plainly: status $expected"; head -c 2000 "$dir/plain.err"; exit 1; }
failed=0
for n in ${workers//,/ }; do
  GODWIT_WORKERS=$n timeout -k 2 "$limit" "$launcher" "$@" >"$dir/ours" 2>"$dir/ours.err"
  status=$?
  if [ "$status" != "$expected" ] || ! cmp -s "$dir/plain" "$dir/ours"; then
    echo "with $n workers: status $status, not $expected; standard output:"
    diff <(head -c 4000 "$dir/plain" | cat -v) <(head -c 4000 "$dir/ours" | cat -v) | head -20
    head -c 2000 "$dir/ours.err"
    failed=1
  else
    echo "with $n workers: the same, status $status"
  fi
done
exit $failed
