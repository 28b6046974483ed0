#!/usr/bin/env bash
# Self test of scripts/hosts: tests/mpi/hosts_test.sh [openmpi|mpich ...]   (about 20 s)
# Status 77, and a line saying why, where there are no rights to make namespaces or no MPI with its compiler wrapper.
set -u
root=$(cd "$(dirname "$0")/../.." && pwd)
hosts=$root/scripts/hosts
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
failed=0 tested=0
skip() { echo "hosts_test: SKIPPED: $*"; exit 77; }
check() {  # check NAME WANTED FOUND
  if [ "$2" = "$3" ]; then echo "ok: $1"; else echo "FAILED: $1: wanted '$2', found '$3'"; failed=1; fi
}
# What a rig could leave behind: network namespaces, interfaces, mounts, files. (Not those of tests that run meanwhile.)
traces() {
  ip netns list; ip -o link | sed 's/@.*//; s/: <.*//' | cut -d: -f2-; cut -d' ' -f5 /proc/self/mountinfo
  ls -A /dev/shm | grep -v -e '^godwit-life\.' -e '^sem\.'
}
alive() { cat /proc/[0-9]*/cmdline 2>/dev/null | tr '\0' ' ' | grep -c "[s]leep $1"; }

why=$("$hosts" --check 2>&1) || skip "$why"

cat >"$work/apart.cpp" <<'CPP'
#include <mpi.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>
#include <cerrno>
#include <cstddef>
#include <cstdio>
#include <cstdlib>
#include <cstring>
// Every rank listens on an abstract unix socket and tries to reach those of all others: only ranks with the same host name may.
static sockaddr_un address(int rank, socklen_t& length) {
  sockaddr_un a{};
  a.sun_family = AF_UNIX;
  length = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + 1 +
                                  static_cast<std::size_t>(std::snprintf(a.sun_path + 1, 90, "godwit-hosts-test-%d", rank)));
  return a;
}
int main(int argc, char** argv) {
  int rank, size, bad = 0;
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  char name[64] = {}, names[64][64] = {};
  gethostname(name, sizeof name - 1);
  MPI_Allgather(name, 64, MPI_CHAR, names, 64, MPI_CHAR, MPI_COMM_WORLD);
  socklen_t length;
  sockaddr_un a = address(rank, length);
  const int listener = socket(AF_UNIX, SOCK_STREAM, 0);
  if (bind(listener, reinterpret_cast<sockaddr*>(&a), length) != 0 || listen(listener, 64) != 0) bad = 1;
  MPI_Barrier(MPI_COMM_WORLD);
  for (int other = 0; other < size; ++other) {
    a = address(other, length);
    const int s = socket(AF_UNIX, SOCK_STREAM, 0);
    const bool reached = connect(s, reinterpret_cast<sockaddr*>(&a), length) == 0;
    if (reached != (std::strcmp(name, names[other]) == 0)) bad = 1;
    close(s);
  }
  MPI_Barrier(MPI_COMM_WORLD);
  const char* const variable = std::getenv("GODWIT_TEST_VARIABLE");
  std::printf("%d %s %s %s\n", rank, name, bad ? "NOT-APART" : "apart", variable ? variable : "-");
  std::fflush(stdout);
  MPI_Finalize();
  return argc > 1 ? std::atoi(argv[1]) : bad;
}
CPP

before=$(traces)
for mpi in ${*:-openmpi mpich}; do
  why=$("$hosts" --check --mpi "$mpi" 2>&1) || { echo "hosts_test: SKIPPED for $mpi: $why"; continue; }
  command -v "mpicxx.$mpi" >/dev/null || { echo "hosts_test: SKIPPED for $mpi: no mpicxx.$mpi"; continue; }
  "mpicxx.$mpi" -std=c++20 "$work/apart.cpp" -o "$work/apart.$mpi" || { failed=1; continue; }
  tested=$((tested + 1))
  run=("$hosts" --mpi "$mpi")
  out=$(GODWIT_TEST_VARIABLE="a b" "${run[@]}" --timeout 60 -- "$work/apart.$mpi" 2>"$work/err")
  check "$mpi: status" 0 $?
  check "$mpi: 2 hosts" $'0 host1 apart a b\n1 host2 apart a b' "$(sort <<<"$out")"
  out=$("${run[@]}" --hosts 3 --ranks-per-host 2 --timeout 60 -- "$work/apart.$mpi" 2>"$work/err")
  check "$mpi: 3 hosts of 2 ranks" "0 host1 apart -,1 host1 apart -,2 host2 apart -,3 host2 apart -,4 host3 apart -,5 host3 apart -" \
    "$(sort <<<"$out" | paste -sd,)"
  "${run[@]}" --timeout 60 -- "$work/apart.$mpi" 7 >/dev/null 2>&1
  check "$mpi: exit status passed through" 7 $?
  check "$mpi: standard input" "to rank 0" "$(echo "to rank 0" | "${run[@]}" --timeout 60 -- \
    sh -c 'if [ "${PMI_RANK:-$OMPI_COMM_WORLD_RANK}" = 0 ]; then cat; fi' 2>/dev/null)"
  mkdir -p "$work/it's a folder"
  check "$mpi: a folder with an apostrophe" "$work/it's a folder" "$(cd "$work/it's a folder" && "${run[@]}" --timeout 60 -- \
    pwd 2>/dev/null | sort -u)"
  start=$SECONDS
  "${run[@]}" --timeout 2 -- sleep 4711 >/dev/null 2>&1
  check "$mpi: timeout status" 124 $?
  check "$mpi: timeout in time" yes "$([ $((SECONDS - start)) -le 50 ] && echo yes)"
  check "$mpi: nothing alive after the timeout" 0 "$(alive 4711)"
  for signal in TERM KILL; do
    "${run[@]}" --timeout 60 -- sleep 4712 >/dev/null 2>&1 &
    rig=$!
    for _ in {1..100}; do [ "$(alive 4712)" -ge 2 ] && break; sleep 0.1; done
    kill -$signal $rig
    wait $rig 2>/dev/null
    status=$?
    # After SIGKILL nobody can wait for the rest.
    [ $signal = KILL ] && for _ in {1..200}; do [ "$(alive 4712)" = 0 ] && break; sleep 0.1; done
    check "$mpi: status after SIG$signal" "$([ $signal = TERM ] && echo 143 || echo 137)" $status
    check "$mpi: nothing alive after SIG$signal" 0 "$(alive 4712)"
  done
  # two at once
  "${run[@]}" --timeout 60 -- "$work/apart.$mpi" >"$work/first" 2>/dev/null &
  "${run[@]}" --timeout 60 -- "$work/apart.$mpi" >"$work/second" 2>/dev/null
  wait $!
  check "$mpi: two rigs at once" 4 "$(cat "$work/first" "$work/second" | grep -c ' apart ')"
done
[ $tested -gt 0 ] || skip "no MPI to test with"
check "nothing left behind" "$before" "$(traces)"
exit $failed
