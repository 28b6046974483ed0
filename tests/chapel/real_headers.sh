#!/bin/sh
# Compiles the tasking layer against the real headers of a Chapel tree: the prototypes agree. The tree is only read, and need not
# be built.   real_headers.sh CHPL_HOME [CC]     Without a tree: says so and ends with status 77.
set -eu
here=$(cd "$(dirname "$0")" && pwd)
layer=$here/../../integrations/chapel
home=${1-${CHPL_HOME-}}
if [ -z "$home" ]; then
  echo "skipped: CHPL_HOME is not set, so the layer was not compared with Chapel's headers"
  exit 77
fi
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
"$layer/install.sh" --form "$home" > "$work/godwit-chapel-version.h"
cat "$work/godwit-chapel-version.h"
rt=$home/runtime/include
includes="-I$work -I$layer/core -I$layer/runtime/include/tasks/godwit -I$rt/localeModels/flat -I$rt/localeModels -I$rt/comm/none
  -I$rt/comm -I$rt -I$rt/qio -I$rt/atomics/cstdlib -I$rt/mem/cstdlib"
cc=${2-cc}
# What the tree declares otherwise, or not at all, is an error.
# shellcheck disable=SC2086
$cc -std=gnu11 -O2 -Wall -Werror=implicit-function-declaration -Werror=incompatible-pointer-types -Werror=missing-prototypes $includes \
  -c "$layer/runtime/src/tasks/godwit/tasks-godwit.c" -o "$work/layer.o"
# What it declares and does not inline must be here, but for what is the same for all layers (runtime/src/chpl-tasks*.c).
# shellcheck disable=SC2086
$cc -std=gnu11 -E -P $includes "$layer/runtime/src/tasks/godwit/tasks-godwit.c" | tr '\n' ' ' |
  grep -oE '[a-zA-Z_0-9]+[ *]+chpl_(task|sync)_[A-Za-z_]+ *\([^;{()]*\) *;' | grep -v '^return' | sed 's/ *(.*//; s/.*[ *]//' | sort -u > "$work/declared"
for part in tasks tasks-callbacks; do grep -oE 'chpl_task_[A-Za-z_]+ *\(' "$home/runtime/src/chpl-$part.c" || true; done |
  tr -d ' (' | sort -u > "$work/common"
nm -g --defined-only "$work/layer.o" | sed 's/.* //' | sort -u > "$work/defined"
missing=$(comm -23 "$work/declared" "$work/defined" | comm -23 - "$work/common")
if [ -n "$missing" ]; then
  echo "declared in $rt/chpl-tasks.h, and not in the layer: $missing"
  exit 1
fi
echo "all $(wc -l < "$work/declared") functions that $home declares: the layer compiles against them"
