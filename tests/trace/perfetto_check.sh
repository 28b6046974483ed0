#!/usr/bin/env bash
# perfetto_check.sh PROGRAM ARGS... FILE: the program writes the trace FILE, then perfetto_check.py reads it with the
# python that has Perfetto's classes. Status 77 (and why, from perfetto_check.py) where there is none.
set -eu
here=$(cd "$(dirname "$0")" && pwd)
file=${!#}
rm -f "$file"
"$@" || { echo "perfetto_check.sh: $1 ended with status $?"; exit 1; }
python=$here/../../build/tools/perfetto/bin/python3
[ -x "$python" ] || python=python3
status=0
"$python" "$here/perfetto_check.py" "$file" || status=$?
rm -f "$file"
exit $status
