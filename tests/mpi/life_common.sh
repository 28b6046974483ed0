# What tests/mpi/life_test.sh and scripts/stress_mpi share; sourced by bash. Starts programs under an MPI with a
# time limit, dumps the stacks of those that hang, and finds what they leave behind. Nothing here waits for ever.
#
# The program is copied to a folder of its own: whoever runs it from there is ours, and only they are killed.
#   life_begin PROGRAM     sets $work and $program; traps the end
#   life_family NAME       sets $launcher (an array); status 1: that MPI has no launcher here
#   life_start CMD...      in the background, in a session of its own: $started, files $out $err
#   life_wait SECONDS      until it ends: $status; 124 and stacks in $err if it does not
#   life_left SECONDS      what is still there after this long, one line each. An MPI that was killed leaves
#                          files in /dev/shm; they do not count where $mpi_files is "ignore"

life_begin() {
  work=$(mktemp -d "${TMPDIR:-/tmp}/godwit-life.XXXXXX")
  shm=$(mktemp -d /dev/shm/godwit-life.XXXXXX 2>/dev/null || mktemp -d "$work/shm.XXXX")
  mkdir "$work/mpi"
  program=$work/${1##*/}
  # A link would show the original's name in /proc/PID/exe.
  cp "$1" "$program"
  out=$work/out err=$work/err started= mpi_files=count
  trap life_end EXIT
  trap 'exit 130' INT TERM HUP
  export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
  export PRTE_ALLOW_RUN_AS_ROOT=1 PRTE_ALLOW_RUN_AS_ROOT_CONFIRM=1
  export OMPI_MCA_mpi_yield_when_idle=1 I_MPI_PIN=0
  # Open MPI's own files, where they are told from those of other jobs.
  export OMPI_MCA_btl_vader_backing_directory=$shm OMPI_MCA_btl_sm_backing_directory=$shm
  export OMPI_MCA_osc_sm_backing_directory=$shm OMPI_MCA_osc_rdma_backing_directory=$shm
  local name
  for name in $(compgen -e GODWIT_); do unset "$name"; done
  export GODWIT_QUIET=1
}

life_end() {
  life_kill
  rm -rf "$work" "$shm"
}

life_family() {
  local candidate
  launcher=()
  case $1 in
    openmpi)
      for candidate in mpirun.openmpi mpirun; do
        if "$candidate" --version 2>/dev/null </dev/null | grep -q 'Open MPI'; then
          launcher=("$candidate" --oversubscribe --bind-to none)
          return 0
        fi
      done ;;
    mpich)
      for candidate in mpirun.mpich mpiexec.hydra mpirun; do
        if "$candidate" --version 2>/dev/null </dev/null | grep -q HYDRA; then
          launcher=("$candidate")
          return 0
        fi
      done ;;
  esac
  return 1
}

# Processes that run the program, without zombies.
life_processes() {
  local exe
  for exe in $(find /proc/[0-9]*/exe -prune -lname "$work/*" 2>/dev/null); do
    exe=${exe#/proc/}
    echo "${exe%/exe}"
  done
}

life_stacks() {
  local pid
  for pid in "$started" $(life_processes); do
    [ -d "/proc/$pid" ] || continue
    echo "--- process $pid of $(sed -n 's/^PPid:[[:space:]]*//p' "/proc/$pid/status"): $(tr '\0' ' ' <"/proc/$pid/cmdline")"
    sed -n '/^State/p' "/proc/$pid/status"
    cat "/proc/$pid/wchan" 2>/dev/null && echo
    if command -v gdb >/dev/null; then timeout -k 1 30 gdb -p "$pid" -batch -ex 'thread apply all bt 30' 2>/dev/null | grep '^[#T]'; fi
  done
}

life_kill() {
  local pid
  if [ -n "$started" ]; then
    kill -KILL -- "-$started" 2>/dev/null
    wait "$started" 2>/dev/null
  fi
  for pid in $(life_processes); do kill -KILL "$pid" 2>/dev/null; done
  started=
}

life_start() {
  : >"$out"
  : >"$err"
  setsid "$@" >"$out" 2>"$err" </dev/null &
  started=$!
}

life_wait() {
  local ticks=$(($1 * 50)) i
  for ((i = 0; i < ticks; ++i)); do
    kill -0 "$started" 2>/dev/null || break
    sleep 0.02
  done
  if kill -0 "$started" 2>/dev/null; then
    { echo "HANG: not done after $1 s; stacks:"; life_stacks; } >>"$err" 2>&1
    life_kill
    status=124
    return
  fi
  wait "$started" 2>/dev/null
  status=$?
}

life_left() {
  local left i
  for ((i = 0; i <= $1 * 10; ++i)); do
    left=$(
      life_processes | sed 's/^/process /'
      [ "$mpi_files" = ignore ] || find "$shm" -mindepth 1 | sed 's/^/file /'
      find /dev/shm -maxdepth 1 -name '*godwit*' ! -name 'godwit-life.*'
    )
    [ -n "$left" ] || return 0
    sleep 0.1
  done
  echo "$left"
}
