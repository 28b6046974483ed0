#!/bin/sh
# The number of CPUs in what a run writes is that of all ranks, not of the first: cpus_test.sh "PROGRAM ARGUMENT..."
# LAUNCHER [OPTION...]. Each of two ranks gets one CPU. Status 77, and a line saying why, where there are not two.
program=$1
shift
cpus=$(taskset -pc $$ | sed 's/.*: //' | tr ',' '\n' | sed 's/-/ /' | while read -r a b; do seq "$a" "${b:-$a}"; done)
# shellcheck disable=SC2086
set -- $(echo $cpus | cut -d' ' -f1,2) "$@"
case $2 in
*[!0-9]* | '') echo "cpus_test: SKIPPED: one CPU only"; exit 77 ;;
esac
one=$1 two=$2
shift 2
case $(cat /sys/fs/cgroup/cpu.max 2>/dev/null) in
'' | max*) ;;
*) echo "cpus_test: SKIPPED: a limit on CPU time (cgroup)"; exit 77 ;;
esac
# shellcheck disable=SC2086
out=$(GODWIT_STATS_JSON=- "$@" -n 1 taskset -c "$one" $program : -n 1 taskset -c "$two" $program 2>&1)
echo "$out" | grep -q '"cpus": *2,' && exit 0
echo "FAILED: not 2 CPUs:"
echo "$out" | head -20
exit 1
