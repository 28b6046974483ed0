#!/usr/bin/env bash
# A trace of hosts whose clocks differ: trace_test.sh FIB [openmpi|mpich]   (some seconds)
# Two hosts of scripts/hosts; the second one's CLOCK_MONOTONIC is 5,000 s ahead (a time namespace). In the trace all
# times must be the first host's again: the run fits into its few seconds, and effects do not come before causes.
# Status 77, and a line saying why, where there are no such namespaces, no MPI, or no Perfetto classes.
set -u
root=$(cd "$(dirname "$0")/../.." && pwd)
fib=$(readlink -f "$1") mpi=${2:-openmpi}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
skip() { echo "trace_test: SKIPPED: $*"; exit 77; }
fail() { echo "trace_test: FAILED: $*"; cat "$work/err"; exit 1; }

why=$("$root/scripts/hosts" --check --mpi "$mpi" 2>&1) || skip "$why"
ahead=$(unshare --time --monotonic 5000 --fork python3 -c 'import time; print(int(time.monotonic()))' 2>&1) ||
  skip "no time namespaces here: $ahead"
here=$(python3 -c 'import time; print(int(time.monotonic()))')
[ $((ahead - here)) -ge 4900 ] || skip "a time namespace does not change CLOCK_MONOTONIC here"

cat >"$work/rank" <<SH
#!/bin/bash
if [ "\$(hostname)" = host2 ]; then exec unshare --time --monotonic 5000 --fork "$fib" "\$@"; fi
exec "$fib" "\$@"
SH
chmod +x "$work/rank"
python=$root/build/tools/perfetto/bin/python3
[ -x "$python" ] || python=python3

GODWIT_TRACE=$work/trace GODWIT_STATS_JSON=$work/stats.json "$root/scripts/hosts" --hosts 2 --mpi "$mpi" --timeout 100 -- \
  "$work/rank" 40 >"$work/out" 2>"$work/err" || fail "the run ended with status $?"
grep -q "fib(40) = 102334155" "$work/out" || fail "wrong result: $(cat "$work/out")"
python3 - "$work/stats.json" <<'PY' || fail "the counters"
import json, sys
s = json.load(open(sys.argv[1]))
assert len(s["worker_stats"]) == s["workers"] == 2 and [h["name"] for h in s["hosts"]] == ["host1", "host2"], s
PY
"$python" "$root/tests/trace/perfetto_check.py" --causal --within-seconds 60 "$work/trace"
status=$?
[ $status = 77 ] && skip "no Perfetto classes here: scripts/setup test"
[ $status = 0 ] || fail "the trace"
echo "trace_test: ok ($mpi)"
