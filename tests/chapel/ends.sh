#!/bin/sh
# A program that does not come to its end, by a deadlock or by halt: its status, what it printed before, and what is said on standard error.
#   ends.sh PROGRAM CASE STATUS PATTERN...     each pattern must be there
set -u
program=$1 case=$2 expected=$3
shift 3
err=$(mktemp)
trap 'rm -f "$err"' EXIT
# What a task has when another one ends the process is no leak.
out=$(ASAN_OPTIONS=${ASAN_OPTIONS-}:detect_leaks=0 CHPL_RT_GODWIT_DEADLOCK_SECONDS=0.5 "$program" "$case" 2> "$err")
status=$?
cat "$err"
[ $status = "$expected" ] || { echo "status $status, not $expected"; exit 1; }
[ "$out" = before ] || { echo "standard output: $out"; exit 1; }
for pattern; do
  grep -q -- "$pattern" "$err" || { echo "not said: $pattern"; exit 1; }
done
echo "all right"
