#!/bin/sh
# The first sentence of the report names the program's fault and its line: faults_test.sh REPORT SOURCE FAULT
# SENTENCE COMMAND... (ctest: report.fault.*). In SENTENCE, PLACE stands for the line of SOURCE with the comment
# "fault: FAULT", and END for that with "end: FAULT". The command writes its trace to the file in GODWIT_TRACE.
report=$1 source=$2 fault=$3 sentence=$4
shift 4
folder=$(mktemp -d) || exit 1
trap 'rm -rf "$folder"' EXIT
line_of() { grep -n "// $1: $fault\$" "$source" | cut -d: -f1; }
expected=$(echo "$sentence" |
  sed "s/PLACE/$(basename "$source"):$(line_of fault)/; s/END/$(basename "$source"):$(line_of end)/")
export GODWIT_TRACE="$folder/run.trace"
# A worker that the system puts aside counts as busy with what it has, and thieves come late: on a busy machine the
# fault may be hidden, and nothing is judged where it is very busy.
for try in 1 2 3 4 5; do
  "$@" >"$folder/out" 2>&1 || { echo "FAILED: $*"; cat "$folder/out"; exit 1; }
  "$report" --text "$GODWIT_TRACE" >"$folder/text" || exit 1
  head -1 "$folder/text" | grep -q "$expected" && exit 0
done
echo "FAILED: the report of $* begins not with: $expected"
cat "$folder/text"
read -r load _ </proc/loadavg
[ "${load%.*}" -ge $((3 * $(nproc))) ] && echo "skipped: the load of this machine is $load on $(nproc) CPUs" && exit 77
exit 1
