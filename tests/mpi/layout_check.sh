#!/bin/sh
# layout_check.sh PROGRAM LAUNCHER [OPTION...]: are all things at the same addresses in three ranks whose
# environments differ, and does main's output appear once? PROGRAM is layout_check. LAUNCHER: an mpirun, or
# "plain": then a start without launcher must leave everything as it is. 77: cannot be tried here.
set -u
program=$1
launcher=$2
shift 2
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
export PRTE_ALLOW_RUN_AS_ROOT=1 PRTE_ALLOW_RUN_AS_ROOT_CONFIRM=1
unset GODWIT_RANDOMIZE GODWIT_OUTPUT

failed=0
expect() { # WHAT EXPECTED FOUND
  if [ "$2" != "$3" ]; then
    echo "$1: expected $2, found $3, in:"
    printf '%s\n' "$output"
    failed=1
  fi
}
lines() { printf '%s\n' "$output" | grep -c "^$1"; }
layouts() { printf '%s\n' "$output" | tr -d '\r' | grep '^layout' | sort -u | grep -c .; }
random=$(cat /proc/sys/kernel/randomize_va_space 2>/dev/null || echo 0)
[ "$(cat /proc/self/personality 2>/dev/null || echo 0)" = 00000000 ] || random=0

if [ "$launcher" = plain ]; then
  output=$("$program"; "$program")
  [ "$random" != 2 ] || expect "different layouts of two starts" 2 "$(layouts)"
  expect "starts that did nothing" 2 "$(lines '.* state 0 ')"
  expect "lines of main" 6 "$(lines main)"
  output=$(OMPI_COMM_WORLD_SIZE=1 OMPI_COMM_WORLD_RANK=0 "$program")
  expect "a single rank that did nothing" 1 "$(lines '.* state 0 ')"
  exit $failed
fi

# Each rank has strings and variables of its own. MPICH's mpirun (4.0) dies of SIGPIPE, status 141, without a word in one
# of 160 launches of programs this short (`sh -c "echo hi"`, too): then once more.
in_three() {
  for launch in 1 2 3 4; do
    output=$("$launcher" "$@" -n 3 sh -c '
      rank=${OMPI_COMM_WORLD_RANK:-$PMI_RANK}
      export GOOSE_LENGTH=$((10 + rank * 7001))
      export GOOSE="$(printf "%${GOOSE_LENGTH}s" "")"
      i=0
      while [ $i -lt $((rank * 13)) ]; do export V$i=$rank; i=$((i + 1)); done
      exec "$0"' "$program" 2>&1)
    [ $? = 141 ] || break
  done
}

in_three "$@"
case $output in
  *"state 3 personality"*) echo "address randomisation cannot be switched off here"; exit 77 ;;
esac
expect "ranks" 3 "$(lines layout)"
expect "different layouts" 1 "$(layouts)"
expect "ranks with a fixed layout" 3 "$(lines '.* dummies 0 environment whole .* state 1 ')"
expect "lines of main" 3 "$(lines main)"

export GODWIT_OUTPUT=all
in_three "$@"
expect "lines of main with GODWIT_OUTPUT=all" 9 "$(lines main)"
expect "different layouts" 1 "$(layouts)"
export GODWIT_OUTPUT=first GODWIT_RANDOMIZE=1
in_three "$@"
expect "lines of main with GODWIT_OUTPUT=first" 3 "$(lines main)"
[ "$random" != 2 ] || expect "different layouts with GODWIT_RANDOMIZE=1" 3 "$(layouts)"
exit $failed
