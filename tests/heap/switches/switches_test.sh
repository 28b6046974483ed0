#!/usr/bin/env bash
# switches_test.sh REASON COMMAND...: where workers of COMMAND live (program.cpp, perhaps under a tool) if nobody chooses: they are
# threads, one line says so with REASON, and what owns memory is right. REASON none: processes, without a word. Chosen
# processes are right, or a line says what is wrong. ROUNDS=n: n seeds. SLOW=1: fewer schedules. REFUSES=1: several processes are refused.
# Status 77: COMMAND needs what is not installed.
set -u
reason=${1#none}
shift
command -v "$1" >/dev/null || { echo "SKIPPED: $1 is not installed"; exit 77; }
for setting in "$@"; do
  case $setting in LD_PRELOAD=*) [ -e "${setting#*=}" ] || { echo "SKIPPED: $setting is not installed"; exit 77; } ;; esac
done
unset GODWIT_SUBSTRATE GODWIT_HEAP GODWIT_PRIVATE_HEAP GODWIT_WORKERS GODWIT_FORCE_STEAL
where=threads
[ -n "$reason" ] || where=processes
out=$(mktemp) err=$(mktemp) || exit 1
trap 'rm -f "$out" "$err"' EXIT
failed=0
fail() { echo "FAILED: $what: $1"; tail -n 30 "$out" "$err"; failed=1; }

run() {  # run SETTING... -- ARGUMENT...: of $command
  local settings=()
  while [ "$1" != -- ]; do settings+=("$1"); shift; done
  shift
  what="${settings[*]} $*"
  timeout -s KILL 120 env "${settings[@]}" "${command[@]}" "$@" --godwit-seed="$seed" >"$out" 2>"$err"
  status=$?
}
right_in() { [ "$status" = 0 ] && [ "$(head -n 2 "$out")" = "$1: 0 wrong
$1: 0 wrong" ]; }
notices() { grep -c "^godwit: substrate threads: .*: $reason\. --godwit-substrate=threads" "$err"; }
silent() { [ ! -s "$err" ] || fail "says something"; }

command=("$@") most_workers=4 all_workers="1 2 4" all_forces="none parents children random"
[ -z "${SLOW:-}" ] || all_workers=2 all_forces=random most_workers=2
for seed in $(seq 1 "${ROUNDS:-1}"); do
  for workers in $all_workers; do
    for force in $all_forces; do
      run GODWIT_WORKERS=$workers GODWIT_FORCE_STEAL=$force --
      right_in $where || fail "status $status, not right on $where"
      if [ -z "$reason" ]; then silent
      else [ "$(notices)" = 1 ] && [ "$(wc -l <"$err")" = 1 ] || fail "not the one line"; fi
    done
  done
  # Chosen: no word.
  run GODWIT_WORKERS=2 -- --godwit-substrate=threads
  right_in threads || fail "status $status"
  silent
  run GODWIT_WORKERS=1 GODWIT_SUBSTRATE=processes --
  right_in processes || fail "status $status"
  silent
  run GODWIT_WORKERS=1 GODWIT_HEAP=private --
  right_in processes || fail "status $status"
  silent
  # Objects that all workers share.
  run GODWIT_WORKERS=2 GODWIT_FORCE_STEAL=random -- global
  right_in $where && [ "$(tail -n 1 "$out")" = "2 texts" ] || fail "status $status"
  # Never silently wrong.
  for force in $all_forces; do
    run GODWIT_WORKERS=$most_workers GODWIT_FORCE_STEAL=$force -- --godwit-substrate=processes
    if [ -n "${REFUSES:-}" ]; then
      [ "$status" != 0 ] && [ ! -s "$out" ] && [ "$(grep -c "^godwit: workers' heaps lie at equal addresses" "$err")" = 1 ] ||
        fail "status $status, not refused"
    else
      right_in processes || grep -q "heap memory of worker" "$err" ||
        [ "$(grep -c "^godwit: warning: workers' heaps lie at equal addresses" "$err")" = 1 ] || fail "status $status, and no word"
    fi
    run GODWIT_WORKERS=$most_workers GODWIT_FORCE_STEAL=$force GODWIT_PRIVATE_HEAP=0 -- --godwit-substrate=processes
    ! grep -q "equal addresses" "$err" || fail "speaks of what was chosen"
  done
done
[ $failed = 0 ] && echo "all right"
exit $failed
