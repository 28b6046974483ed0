#!/bin/sh
# A deadlock ends the program with a status that is not 0, what was printed before, and a line that names the places.
#   deadlock.sh PROGRAM CASE PATTERN...     each pattern must be on standard error
set -u
program=$1 case=$2
shift 2
err=$(mktemp)
trap 'rm -f "$err"' EXIT
out=$(CHPL_RT_GODWIT_DEADLOCK_SECONDS=0.5 "$program" "$case" 2> "$err")
status=$?
cat "$err"
[ $status != 0 ] || { echo "status 0"; exit 1; }
[ "$out" = before ] || { echo "standard output: $out"; exit 1; }
for pattern; do
  grep -q -- "$pattern" "$err" || { echo "not said: $pattern"; exit 1; }
done
echo "all right"
