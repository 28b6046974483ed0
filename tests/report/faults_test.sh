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
# fault may be hidden. A run is not judged if others had the CPUs for long.
judged=0
for try in 1 2 3 4 5; do
  "$@" >"$folder/out" 2>&1 || { echo "FAILED: $*"; cat "$folder/out"; exit 1; }
  "$report" --text "$GODWIT_TRACE" >"$folder/text" || exit 1
  head -1 "$folder/text" | grep -q "$expected" && exit 0
  grep -q "thers had the CPUs for" "$folder/text" || judged=$((judged + 1))
done
echo "FAILED: the report of $* begins not with: $expected"
cat "$folder/text"
[ $judged = 0 ] && echo "skipped: others had this machine's CPUs each time" && exit 77
exit 1
