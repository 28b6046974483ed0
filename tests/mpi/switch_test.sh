#!/usr/bin/env bash
# Small accesses to movable memory through a switch in the kernel, between network namespaces (docs/switch.md):
#   tests/mpi/switch_test.sh PROGRAM [HOSTS (3)] [MPI (openmpi)] [xdp|ovs (xdp)]
# PROGRAM is tests/global/routed_test.cpp. Status 77, and a line saying why, where the switch cannot be: needs root,
# clang, bpftool, libbpf's headers and a kernel with BPF. Once as it is, once with a switch that loses packets. ovs: the
# same with Open vSwitch, told by OpenFlow, which loses nothing; needs root, openvswitch-switch and ethtool.
set -euo pipefail
root=$(cd "$(dirname "$0")/../.." && pwd)
program=$1 hosts=${2:-3} mpi=${3:-openmpi} which=${4:-xdp} all_faults="0 10"
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
skip() { echo "switch_test: SKIPPED: $*"; exit 77; }

[ "$(id -u)" = 0 ] || skip "switches are started by root only"
if [ "$which" = ovs ]; then
  object=ovs all_faults=0
else
  object=$work/switch.o
  command -v clang >/dev/null || skip "no clang, which compiles for BPF: apt-get install clang"
  why=$(clang -O2 -g -target bpf -I"/usr/include/$(uname -m)-linux-gnu" -Wall -Werror -c "$root/src/transport/net/switch_xdp.c" \
    -o "$object" 2>&1) || {
    if [ -e /usr/include/bpf/bpf_helpers.h ]; then echo "$why"; exit 1; fi
    skip "no headers of libbpf: apt-get install libbpf-dev"
  }
fi
why=$("$root/scripts/hosts" --switch "$object" --mpi "$mpi" --check 2>&1) || {
  status=$?
  [ $status = 77 ] || { echo "$why"; exit 1; }
  skip "$why"
}
export GODWIT_QUIET=1 GODWIT_OUTPUT=first STRESS_SEED=11
for faults in $all_faults; do
  echo "switch_test: $hosts hosts, $faults % lost"
  if [ $faults != 0 ]; then export GODWIT_SWITCH_FAULTS=$faults; fi
  "$root/scripts/hosts" --switch "$object" --hosts "$hosts" --mpi "$mpi" --timeout 110 -- "$program" --gtest_brief=1 \
    --gtest_filter=-*WhateverIsLost:*WhereAccessesMove*
done
echo "switch_test ok"
