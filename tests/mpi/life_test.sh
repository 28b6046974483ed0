#!/usr/bin/env bash
# How programs begin and end under MPI: life_test.sh PROGRAM FAMILY GROUP [HOSTS [WAY]]
# PROGRAM is that of life.cpp; FAMILY openmpi or mpich; GROUP one of the functions group_* below; HOSTS auto or
# ranks (every rank a host of its own), WAY to the others. 77: that MPI has no mpirun here.
# Compared with the plain start: exit status, standard output, what standard error says; and nothing may stay
# behind, neither processes nor shared memory. Everything has a time limit; what hangs is shown with its stacks.
# LIFE_ALL=1: signals to every rank in every situation, not only each of both once.
set -u
. "$(dirname "$0")/life_common.sh"
[ $# -ge 3 ] || { sed -n '2,4s/^# //p' "$0"; exit 2; }
life_begin "$1"
life_family "$2" || { echo "life_test: no mpirun of $2 here"; exit 77; }
original=$1 family=$2 group=$3
hosts=${4:-auto} way=${5:-auto}
failed=0 tested=0 limit=100
settings=()
export LIFE_PIDS=$work/pids

# ---- one program -------------------------------------------------------------------------------------------

bad() {
  failed=$((failed + 1))
  echo "FAILED: $what: $*"
  echo "  repeat: LIFE_PIDS=\$(mktemp -d) env ${repeat//"$program"/$original}"  # the copy is gone by then
  [ "$#" = 0 ] || { sed 's/^/  stdout: /' "$out" | cut -c1-300 | head -20; sed 's/^/  stderr: /' "$err" | cut -c1-400 | head -80; }
}
# plain RANKS COMMAND...: what it does on one machine, into $wanted (status) and $work/plain.{out,err}
plain() {
  local n=$1; shift
  GODWIT_WORKERS=$n timeout -k 1 30 env ${settings[@]+"${settings[@]}"} "$program" "$@" >"$work/plain.out" 2>"$work/plain.err" </dev/null
  wanted=$?
}
# under RANKS COMMAND...: starts it in the background
under() {
  ranks=$1; shift
  what="$* on $ranks ranks of $family, hosts=$hosts way=$way ${settings[*]-}"
  repeat="GODWIT_HOSTS=$hosts GODWIT_WAY=$way ${settings[*]-} ${launcher[*]} -n $ranks $program $*"
  rm -rf "$LIFE_PIDS"; mkdir -p "$LIFE_PIDS"
  tested=$((tested + 1))
  life_start env GODWIT_HOSTS="$hosts" GODWIT_WAY="$way" ${settings[@]+"${settings[@]}"} "${launcher[@]}" -n "$ranks" "$program" "$@"
}
# ended STATUS: waits for the end, looks at status (any: some failure; whatever) and what stays behind
ended() {
  life_wait "$limit"
  if [ "$status" = 124 ]; then bad "hangs"; return 1; fi
  if [ "$1" = any ]; then [ "$status" != 0 ] || bad "exit status 0"
  elif [ "$1" != whatever ] && [ "$status" != "$1" ]; then bad "exit status $status, not $1"; fi
  local left
  left=$(life_left 5)
  [ -z "$left" ] || { bad "left behind: $left"; life_kill; find "$shm" -mindepth 1 -delete; }
}
# Lines of godwit about the end of a run, without those of a deadlock's list.
messages() { grep '^godwit: ' "$1" | grep -v '^godwit: seed'; }
# says PATTERN: one message, and it matches
says() {
  local n; n=$(messages "$err" | wc -l)
  [ "$n" = 1 ] || bad "$n messages of godwit, not one"
  messages "$err" | grep -Eq -- "$1" || bad "no message like '$1'"
}
silent() { [ "$(messages "$err" | wc -l)" = 0 ] || bad "godwit complains"; }
prints() { [ "$(cat "$out")" = "$1" ] || bad "stdout is not '$1'"; }
# as_plain [sorted] RANKS COMMAND...: the same status and output
as_plain() {
  local order=cat
  [ "$1" != sorted ] || { order=sort; shift; }
  plain "$@"
  under "$@"
  ended "$wanted" || return
  cmp -s <($order "$out") <($order "$work/plain.out") || { bad "another output than on one machine"; diff <($order "$work/plain.out") <($order "$out") | head -20; }
}
# all_here N: the workers have written their process numbers
all_here() {
  local i
  for ((i = 0; i < limit * 50; ++i)); do
    [ "$(find "$LIFE_PIDS" -type f ! -name '*.new' | wc -l)" != "$1" ] || return 0
    sleep 0.02
  done
  bad "not all are there after $limit s"
  life_stacks
  return 1
}
worker_pid() { cut -d' ' -f1 "$LIFE_PIDS/$1"; }
rank_pid() { cut -d' ' -f2 "$LIFE_PIDS/$1"; }

# ---- groups ------------------------------------------------------------------------------------------------

group_ends() {
  as_plain 2 status 0; silent
  as_plain 3 status 3; silent
  as_plain 2 status_without_a_word; silent
  as_plain 2 value; silent
  as_plain 1 value; silent
  as_plain 1 shared_object; silent  # no MPI
  under 2 shared_object; ended 2; says '^godwit: rank [01] .* made objects in a shared_scope .*, and under MPI each process'
  as_plain 2 exception known; says 'ended with an exception: the water is too cold$'
  as_plain 2 exception odd; says 'ended with an exception: .*strange'
  as_plain 2 exception_into_main; silent
  as_plain 2 write_to_main; says 'rank [01] \(.*worker [01]: .*local variable'
  as_plain 2 bad_release twice; says 'worker 0: .* was freed twice, the second time at .*life.cpp:'
  as_plain 2 bad_release size; says 'worker 0: .* was allocated as 8 bytes, but freed as 16 at .*life.cpp:'
  as_plain 3 deadlock; says 'deadlock: all 3 workers'
  [ "$(grep -c 'waits at .*life.cpp:[0-9]* ' "$err")" = 2 ] || bad "does not list two waiting threads"
}
group_deaths() {
  local how who
  for how in segv kill abort exit exit0; do  # no overflow: an idle worker does it on the scheduler's stack
    for who in 0 2; do
      as_plain 3 death $how $who
      says "^godwit: rank $who \(.*worker $who"
    done
  done
  for how in segv kill; do
    as_plain 2 death_in_a_step $how
    says '^godwit: rank 0 \(.*worker 0'
  done
  settings=(GODWIT_FORCE_STEAL=random)
  for how in segv kill exit overflow; do
    as_plain 2 death $how  # in a thread, wherever that is
    says '^godwit: rank [01] \(.*worker [01]'
  done
  settings=()
}
group_again() {
  for how in kill segv exit overflow; do as_plain 2 failed_run_in_main $how; silent; done
  settings=(GODWIT_WORKERS=)
  unset 'settings[0]'
  under 2 two_runs; ended 0; silent
  prints $'233 with 2 workers, 2 counters\n233 with 5 workers, 5 counters\n233 with 2 workers, 2 counters'
  as_plain 2 many $([ "$hosts" = auto ] && echo 200 || echo 80); silent
}
group_threads() {
  local force
  for force in none random; do
    settings=(GODWIT_FORCE_STEAL=$force GODWIT_SEED=7)
    as_plain sorted 3 each; silent
    as_plain 3 shared; silent
    as_plain 3 big; silent
    as_plain sorted 3 print 90; silent
    head -3 "$out" | cmp -s - <(head -3 "$work/plain.out") || bad "what main prints before the run does not come first"
    tail -2 "$out" | cmp -s - <(tail -2 "$work/plain.out") || bad "what main prints after the run does not come last"
    # So much that buffers fill up in the middle of lines, which then mix, on one machine too: nothing lost or twice.
    plain 3 print 3000
    under 3 print 3000; ended 0; silent
    cmp -s <(od -An -v -tu1 -w1 "$out" | sort | uniq -c) <(od -An -v -tu1 -w1 "$work/plain.out" | sort | uniq -c) ||
      bad "output was lost or doubled: $(wc -c <"$out") bytes, not $(wc -c <"$work/plain.out")"
    as_plain 3 inherit; silent
  done
  settings=(GODWIT_STACK_BYTES=64M GODWIT_FORCE_STEAL=parents)
  as_plain 2 inherit; silent
  settings=(GODWIT_FORCE_STEAL=children GODWIT_DELAY_US=20)
  as_plain 2 shared; silent
  settings=()
}
# Ended from outside.
group_signals() {
  local signal how who
  mpi_files=ignore
  # Who is told to end has time to say so. (Open MPI's mpirun sleeps for all of it, before it kills: else a second.)
  export OMPI_MCA_odls_base_sigkill_timeout=5 PRTE_MCA_odls_base_sigkill_timeout=5
  for signal in INT TERM; do
    for how in busy asleep; do
      under 2 endless $how; all_here 2 || { life_kill; continue; }
      kill -$signal "$started"
      # Hydra's own status is then now that of the ranks, now 0, for any program.
      if [ "$family" = mpich ]; then ended whatever; else ended any; fi
      grep -Eq '^status (130|143)$' "$out" || bad "run does not come back with 130 or 143"
      says 'interrupted by signal (2|15)'
    done
  done
  unset OMPI_MCA_odls_base_sigkill_timeout PRTE_MCA_odls_base_sigkill_timeout
  for how in busy asleep; do
    for who in 0 1; do
      [ "${LIFE_ALL:-0}" = 1 ] || [ "$how$who" = busy0 ] || [ "$how$who" = asleep1 ] || continue
      under 2 endless $how; all_here 2 || { life_kill; continue; }
      kill -KILL "$(worker_pid $who)"; ended 137
      says "^godwit: rank $who \(.*worker $who .*signal 9"
      under 2 endless $how; all_here 2 || { life_kill; continue; }
      kill -KILL "$(rank_pid $who)"; ended any
      under 2 endless $how; all_here 2 || { life_kill; continue; }
      kill -TERM "$(rank_pid $who)"; ended 143
      says "^godwit: rank $who \(.*interrupted by signal 15"
    done
  done
  settings=(GODWIT_WORKERS=1)  # rank 1 has none: it is where others come when their workers have ended
  under 2 endless busy
  if all_here 1; then
    kill -INT "$(life_processes | grep -vxE "$(worker_pid 0)|$(rank_pid 0)")"; ended 130
    says '^godwit: rank 1 \(.*interrupted by signal 2'
  else
    life_kill
  fi
  settings=()
  under 3 endless busy; if all_here 3; then kill -KILL "$started"; ended 137; else life_kill; fi
  # In main. What the status is then is the launcher's business.
  for how in 0 1; do
    under 2 endless_main $how; all_here $((2 + 2 * how)) || { life_kill; continue; }
    kill -TERM "$started"; ended whatever
    under 2 endless_main $how; all_here $((2 + 2 * how)) || { life_kill; continue; }
    kill -KILL "$(cat "$LIFE_PIDS/main1")"; ended whatever
  done
}
# The process that the first rank starts with directory=relay: it ends with the run, and the run with it.
group_relay() {
  local how pid
  settings=(GODWIT_DIRECTORY=relay)
  as_plain 3 value; silent
  as_plain 3 death kill 2; says "^godwit: rank 2 \(.*worker 2"
  for how in busy asleep; do
    under 2 endless $how; all_here 2 || { life_kill; continue; }
    for pid in $(life_processes); do
      if [ "$(cat "/proc/$pid/comm" 2>/dev/null)" = godwit-relay ]; then kill -KILL "$pid"; fi
    done
    ended any; says 'the relay of directory=relay has been killed'
  done
  settings=()
}
# Ranks that differ.
group_ranks() {
  under 2 different_status 9; ended 9; silent
  under 2 absent -1 0; ended 0; silent; prints ""
  under 2 absent -1 4; ended 4; silent
  under 2 nested 0; ended 0; silent; prints $'before\nvalue 987\nbefore\nvalue 987'
  under 2 nested 1; ended 0; silent; prints ""
  what='maps, plain' repeat="$program maps"; plain 1 maps; [ "$(cat "$work/plain.out")" = "MPI before run: no, after: no" ] || bad "a plain start loads MPI"
  under 2 maps; ended 0; prints "MPI before run: no, after: loaded"
  # The others wait in run for one that has left.
  for who in 0 1; do
    under 2 leaves_early $who 0; ended any
    under 2 leaves_early $who 4; ended any
    under 3 leaves_early $who 4 1; ended any
    grep -q "rank $who .*has ended without calling run" "$err" || bad "nobody says who has left"
  done
  mpi_files=ignore
  # MPICH: the others wait in MPI_Init, Hydra does not mind, and nobody can tell.
  [ "$family" = mpich ] || { under 2 absent 1 4; ended any; }
  mpi_files=count
}
group_options() {
  local setting
  for setting in GODWIT_WORKERS=-3 GODWIT_WORKERS=abc GODWIT_WORKRS=2 GODWIT_STACK_BYTES=1 GODWIT_WAY=bird GODWIT_SEED=; do
    settings=("$setting")
    under 2 status 0; ended 2; says "${setting%%=*}"; prints ""
  done
  settings=()
  under 2 status 0 --godwit-nonsense; ended 2; says nonsense
  under 2 status 0 --godwit-help; ended 0; silent; [ "$(grep -c 'godwit-workers=N' "$out")" = 1 ] || bad "the help is not there once"
  settings=(GODWIT_MPI=nonsense); under 2 status 0; ended 70; messages "$err" | grep -q nonsense || bad "no message about it"
  settings=(GODWIT_MPI=/does/not/exist.so); under 2 status 0; ended 70; messages "$err" | grep -q /does/not/exist || bad "no message about it"
  settings=(GODWIT_RANDOMIZE=1); under 2 status 0; ended 70; says 'GODWIT_RANDOMIZE'
  settings=(GODWIT_SUBSTRATE=processes GODWIT_WORKERS=2); under 2 status 3; ended 3; silent
  for setting in 1 3 5; do
    settings=(GODWIT_WORKERS=$setting)
    under 2 each; ended 0; silent
    [ "$(sort -u "$out" | grep -c "of $setting\$")" = "$setting" ] || bad "not $setting workers"
    under 2 value; ended 0; silent; prints $'before\nvalue 987'
    [ "$setting" = 1 ] || { under 2 death kill $((setting - 1)); ended 137; says "worker $((setting - 1)) .*signal 9"; }
    under 3 big; ended 0; silent
  done
  settings=()
  # Rank 1 has options of its own: those of rank 0 count. And another environment.
  cat >"$work/own_options" <<'END'
#!/bin/sh
if [ "${OMPI_COMM_WORLD_RANK:-$PMI_RANK}" = 1 ]; then
  export GODWIT_WORKERS=7 GODWIT_HEAP_BYTES=64M GODWIT_FORCE_STEAL=random GODWIT_SEED=3 MUCH=$(seq 1000 | tr '\n' ' ')
  cd /
fi
exec "$@"
END
  chmod +x "$work/own_options"
  local real=("${launcher[@]}")
  tested=$((tested + 1)) what="options that differ" repeat="${real[*]} -n 2 $work/own_options $program each"
  life_start env GODWIT_HOSTS="$hosts" GODWIT_WAY="$way" GODWIT_WORKERS=3 "${real[@]}" -n 2 "$work/own_options" "$program" each
  ended 0; silent; [ "$(sort -u "$out" | grep -c 'of 3$')" = 3 ] || bad "not the options of rank 0"
  # Such that main's frames cannot be at the same address.
  printf '#!/bin/sh\n[ "${OMPI_COMM_WORLD_RANK:-$PMI_RANK}" != 1 ] || export MUCH=%s\nexec "$@"\n' \
    "$(head -c 70000 /dev/zero | tr '\0' x)" >"$work/own_options"
  tested=$((tested + 1)) what="a large environment in rank 1"
  life_start "${real[@]}" -n 2 "$work/own_options" "$program" value
  ended 0; says "main's locals lie elsewhere in rank 1 .*equal length"; prints $'before\nvalue 987'
  # Bad ones in rank 1 only.
  printf '#!/bin/sh\n[ "${OMPI_COMM_WORLD_RANK:-$PMI_RANK}" != 1 ] || export GODWIT_WORKRS=7\nexec "$@"\n' >"$work/own_options"
  tested=$((tested + 1)) what="an unknown variable in rank 1"
  life_start "${real[@]}" -n 2 "$work/own_options" "$program" status 0
  ended 2; says 'GODWIT_WORKRS'
  # Another binary, another build-id or another name of the same.
  cp "$program" "$work/other"; printf '\0' >>"$work/other"
  tested=$((tested + 1)) what="the same program in another file" repeat="${real[*]} -n 1 $program value : -n 1 $work/other value"
  life_start "${real[@]}" -n 1 "$program" value : -n 1 "$work/other" value
  ended 0; silent; prints $'before\nvalue 987'
  if command -v objcopy >/dev/null && objcopy --dump-section .note.gnu.build-id="$work/id" "$program" 2>/dev/null; then
    tr '\0-\377' '\1-\377\0' <"$work/id" | tail -c 4 >"$work/tail"
    { head -c -4 "$work/id"; cat "$work/tail"; } >"$work/other_id"
    objcopy --update-section .note.gnu.build-id="$work/other_id" "$program" "$work/other"
    tested=$((tested + 1)) what="another program in rank 1" repeat="${real[*]} -n 1 $program status 0 : -n 1 $work/other status 0"
    life_start "${real[@]}" -n 1 "$program" status 0 : -n 1 "$work/other" status 0
    ended 70; says 'rank 1 .*another binary'
  fi
}

declare -F "group_$group" >/dev/null || { echo "life_test: no group $group"; exit 2; }
"group_$group"
echo "$group: $tested starts, $failed failures"
exit $((failed != 0))
