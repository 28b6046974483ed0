#!/bin/sh
# Chapel's own tests of tasks and sync variables, on this layer, in the tree that CHPL_HOME names: installs the layer, makes the runtime
# and runs Chapel's start_test. Writes into that tree.   own_tests.sh LIBRARY [FOLDER...]     FOLDER: below $CHPL_HOME/test
# Without a tree that has a compiler and tests: says so and ends with status 77.
set -eu
here=$(cd "$(dirname "$0")" && pwd)
library=$1
shift
[ $# != 0 ] || set -- parallel/begin parallel/cobegin parallel/coforall parallel/sync parallel/syncStmt parallel/single parallel/taskPar \
  parallel/serial parallel/taskCount types/sync

skip() {
  echo "skipped: $1, so Chapel's own tests were not run"
  exit 77
}
[ -n "${CHPL_HOME-}" ] || skip "CHPL_HOME is not set"
[ -x "$CHPL_HOME/util/start_test" ] || skip "$CHPL_HOME has no util/start_test"
[ -d "$CHPL_HOME/test/parallel" ] || skip "$CHPL_HOME has no folder test (releases leave it out)"
set -- $(for folder; do [ ! -d "$CHPL_HOME/test/$folder" ] || echo "$CHPL_HOME/test/$folder"; done)
ls "$CHPL_HOME"/bin/*/chpl > /dev/null 2>&1 || skip "$CHPL_HOME has no compiler (make -C $CHPL_HOME compiler)"

export CHPL_TASKS=godwit CHPL_COMM=none
"$here/../../integrations/chapel/install.sh" "$CHPL_HOME" "$library"
make -C "$CHPL_HOME/runtime" > "${TMPDIR-/tmp}/godwit-chapel-runtime.log" 2>&1 ||
  { tail -n 20 "${TMPDIR-/tmp}/godwit-chapel-runtime.log" && exit 1; }
log=$(mktemp)
trap 'rm -f "$log"' EXIT
"$CHPL_HOME/util/start_test" "$@" > "$log" 2>&1 || true
grep -E '^\[Error|^\[Summary|^\[Warning' "$log" || tail -n 30 "$log"
grep -q '^\[Summary: #Successes = [1-9][0-9]* | #Failures = 0 ' "$log"
