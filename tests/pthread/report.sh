#!/bin/bash
# report.sh LAUNCHER GODWIT_REPORT ONE_LOCK WITHOUT_DEBUG_INFO SOURCE STUCK: what an ordinary program leaves behind with
# GODWIT_TRACE, GODWIT_STATS and GODWIT_STATS_JSON, however it ends. Both programs are SOURCE.
set -u
launcher=$1 report=$2 program=$3 plain=$4 source=$5 stuck=$6
folder=$(mktemp -d) && trap 'rm -rf "$folder"' EXIT
cd "$folder" || exit 1
at() { echo "$(basename "$source"):$(grep -n "// line: $1\$" "$source" | cut -d: -f1)"; }
fail() {
  echo "$*"
  cat said
  exit 1
}

# run STATUS PROGRAM HOW: most threads wait for the lock, more than there are workers
run() {
  rm -f trace stats.json said
  GODWIT_WORKERS=2 GODWIT_SPARE_WORKERS=0 GODWIT_TRACE=trace GODWIT_STATS=1 GODWIT_STATS_JSON=stats.json \
    "$launcher" env "$2" 8 "$3" >said 2>&1
  local status=$?
  [ $status -eq "$1" ] || fail "$3: status $status, not $1"
}

for end in "0 return" "3 exit_in_thread" "0 fork" "0 system"; do
  read -r status how <<<"$end"
  run "$status" "$program" "$how"
  [ "$(grep -c 'events of 2 workers' said)" = 1 ] || fail "$how: one process writes one trace"
  grep -n . said | awk -F: '/own handler/ {h = $1} /godwit: busy, %/ {t = $1} END {exit !(h && t && h < t)}' ||
    fail "$how: the table comes after the program's handlers"
  grep -Eq 'godwit: suspensions .* [1-9][0-9]*$' said || fail "$how: threads were suspended"
  python3 -c 'import json; s = json.load(open("stats.json")); assert len(s["worker_stats"]) == 2, s' ||
    fail "$how: stats.json is not as it should be"
  first=$("$report" --text trace | head -n 1)
  [[ $first == "Speed-up "*" threads waited at once for a mutex at $(at lock), held by work_under_lock at $(at unlock)."* ]] || fail "$how: says: $first"
  [ "$(grep -ao "$(at barrier)" trace | wc -l)" -ge 7 ] || fail "$how: seven threads waited at $(at barrier)"
done

run 0 "$plain" return
first=$("$report" --text trace | head -n 1)
[[ $first =~ at\ (worker|work_under_lock)\ \+\ 0x ]] || fail "without debug information: $first"

for how in _exit _Exit quick_exit; do
  run 0 "$program" $how
  grep -q godwit: said && fail "$how ends at once"
  [ ! -e trace ] && [ ! -e stats.json ] || fail "$how leaves nothing"
done

# What goes to standard output and to pipes gets there even if the program closes its descriptors.
GODWIT_STATS_JSON=- "$launcher" "$program" 2 closed >stats.json 2>said || fail "closed: status $?"
python3 -c 'import json; json.load(open("stats.json"))' || fail "closed: standard output has no counters"
mkfifo pipe
timeout 60 cat pipe >stats.json &
reader=$!
GODWIT_TRACE=trace GODWIT_STATS=1 GODWIT_STATS_JSON=pipe timeout 60 "$launcher" "$program" 2 closed >said 2>&1 ||
  fail "a pipe: status $?"
wait $reader
python3 -c 'import json; json.load(open("stats.json"))' || fail "a pipe has no counters"
"$report" --text trace >said || fail "closed: no trace"

# Spare workers have rows in the trace, and are no columns of the table: 2 workers are 2.
GODWIT_WORKERS=2 GODWIT_TRACE=trace GODWIT_STATS=1 GODWIT_STATS_JSON=stats.json "$launcher" "$stuck" stdio >said 2>&1 ||
  fail "stuck: status $?"
grep -Eq 'events of 2 workers and [1-9][0-9]* spare' said || fail "stuck: spare workers are told apart"
grep -q 'godwit: 2 workers on' said || fail "stuck: the table is of 2 workers"
python3 -c 'import json; s = json.load(open("stats.json")); assert len(s["worker_stats"]) == s["workers"] == 2, s' ||
  fail "stuck: stats.json is not as it should be"
first=$("$report" --text trace | head -n 1)
[[ $first =~ ^Speed-up\ [0-9.]+\ on\ 2\ workers: ]] || fail "stuck: $first"

# The thread that ends the program holds a lock that writing needs.
GODWIT_STATS_JSON=- "$launcher" "$program" 2 locked >out 2>said || fail "locked: status $?"
grep -q 'incomplete: the thread that ended the program holds a lock' said || fail "locked: it is not said"

# A folder that is gone when the program ends.
mkdir gone
GODWIT_TRACE=gone/trace "$launcher" bash -c 'rm -r gone; :' >said 2>&1 || fail "gone: status $?"
grep -q 'cannot write .*gone/trace' said || fail "gone: it is not said"

GODWIT_TRACE=/no/such/folder/trace "$launcher" "$program" 2 return >said 2>&1
[ $? -eq 70 ] && grep -q 'cannot write /no/such/folder/trace' said || fail "a name that is no good"
echo "as it should be"
