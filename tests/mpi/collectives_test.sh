#!/usr/bin/env bash
# The collective operations of a real run on several hosts are those that the simulator's estimate of its start and end
# counts (src/sim/collectives.hpp): tests/mpi/collectives_test.sh EXPECTED PROGRAM [ARGUMENT...]
# EXPECTED prints them. Status 77, and a line saying why, where several hosts cannot be had.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
hosts=$here/../../scripts/hosts
expected=$1
shift
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
why=$("$hosts" --mpi openmpi --check 2>&1) || { status=$?; echo "collectives_test: SKIPPED: $why"; exit $status; }
mpicc.openmpi -O2 -Wall -Werror -shared -fPIC "$here/collectives.c" -o "$work/count.so"
for n in 2 3; do
  for each in 1 2; do
    for _ in {1..20}; do  # on a busy machine RMA may look as if it went on while its target computes: then a window is made, too
      "$hosts" --hosts $n --ranks-per-host $each --mpi openmpi --timeout 60 -- env LD_PRELOAD="$work/count.so" "$@" > "$work/out" 2>&1 || { cat "$work/out"; exit 1; }
      if grep -q 'way: server' "$work/out"; then break; fi
    done
    grep -q 'way: server' "$work/out" || { echo "collectives_test: SKIPPED: this machine is so busy that RMA goes on while its target computes"; exit 77; }
    # Counters are as long as their values, in all ranks alike.
    grep '^collective:' "$work/out" | awk '$2 == "Gather" && $4 > 8 && $4 < 508 { $4 = "8 and counters" } { print }' |
      sort | uniq -c | sed 's/^ *//' > "$work/seen"
    "$expected" $n | sort | sed "s/^/$((n * each)) /" > "$work/wanted"
    if ! diff "$work/wanted" "$work/seen"; then
      echo "collectives_test: $n hosts of $each ranks: < is what src/sim/collectives.hpp says, > what happened: if that is as it has to be, say so there"
      exit 1
    fi
  done
done
echo "collectives_test ok"
