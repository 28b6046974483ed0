#!/bin/sh
# Puts Godwit's tasking layer into a tree of Chapel's sources, so that CHPL_TASKS=godwit can be chosen there. docs/chapel.md
#   install.sh CHPL_HOME [LIBRARY]     LIBRARY: libgodwit-chapel.so, if it is not where the preset release builds it
#   install.sh --form CHPL_HOME        prints the header that says which form of the interface the tree has, and does nothing
# Nothing of Chapel's own files is changed. Status 2: it cannot be done, and a line says why.
case ${1:-} in -h | --help) sed -n '2,/^[^#]/s/^# \{0,1\}//p' "$0" && exit ;; esac
set -eu

here=$(cd "$(dirname "$0")" && pwd)
refuse() {
  echo "install.sh: $1" >&2
  exit 2
}

only_form=no
if [ "${1-}" = --form ]; then
  only_form=yes
  shift
fi
home=${1-${CHPL_HOME-}}
[ -n "$home" ] || refuse "which Chapel tree? usage: install.sh CHPL_HOME [LIBRARY]"
[ -d "$home" ] || refuse "$home: no such folder"
home=$(cd "$home" && pwd)
tasks=$home/runtime/include/chpl-tasks.h
[ -f "$tasks" ] && [ -d "$home/runtime/src/tasks" ] ||
  refuse "$home is not a Chapel tree: it has no runtime/include/chpl-tasks.h. Give the folder of Chapel's sources (a package without them will not do)"

has() { grep -Eq "$1" "$tasks"; }
yes_if() { if has "$1"; then echo 1; else echo 0; fi; }

has 'infoChapel' ||
  refuse "$home is too old: its tasks have no chpl_task_infoChapel_t. Chapel 1.24 is the first that this layer is for"
if has 'chpl_task_addToTaskList *\('; then
  lists=1
elif has 'chpl_task_addTask *\(' && has 'chpl_task_callMain *\('; then
  lists=0
else
  refuse "$home is too new: it has neither chpl_task_addTask nor chpl_task_addToTaskList (Chapel's main branch of 2026 has chpl_rt_task_add_task). Take an earlier release, or adapt runtime/src/tasks/godwit/tasks-godwit.c"
fi
form="// Written by Godwit's install.sh: the form of the interface in runtime/include/chpl-tasks.h.
#define GODWIT_CHAPEL_LISTS $lists
#define GODWIT_CHAPEL_COMM_CPU $(yes_if 'chpl_task_createCommTask *\([^)]*,[^)]*,')
#define GODWIT_CHAPEL_COUNTS $(yes_if 'chpl_task_getNumQueuedTasks *\(')"
if [ $only_form = yes ]; then
  echo "$form"
  exit 0
fi

library=${2-$here/../../build/release/integrations/chapel/libgodwit-chapel.so}
[ -f "$library" ] ||
  refuse "$library is not there. Build it first (cmake --preset release && cmake --build build/release --target godwit_chapel), or name it as the second argument"

cp -R "$here/runtime" "$here/make" "$home/"
cp "$here/core/godwit-chapel.h" "$home/runtime/include/tasks/godwit/"
echo "$form" > "$home/runtime/include/tasks/godwit/godwit-chapel-version.h"
mkdir -p "$home/third-party/godwit/lib"
# In one step: programs may be running with the one before.
cp "$library" "$home/third-party/godwit/lib/new.so"
mv -f "$home/third-party/godwit/lib/new.so" "$home/third-party/godwit/lib/libgodwit-chapel.so"

cat << END
Installed into $home. Next:
  export CHPL_HOME=$home CHPL_TASKS=godwit
  make -C \$CHPL_HOME runtime
Programs compiled by way of C are linked with it as they are. Where chpl generates code by LLVM, add
  --ldflags "-L$home/third-party/godwit/lib -Wl,-rpath,$home/third-party/godwit/lib -lgodwit-chapel"
END
