#!/bin/sh
# install.sh: what it puts where, which form of the interface it finds, and what it says where it cannot.
#   install_test.sh LIBRARY
set -eu
here=$(cd "$(dirname "$0")" && pwd)
install=$here/../../integrations/chapel/install.sh
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

refused() {
  expected=$1
  shift
  if said=$("$install" "$@" 2>&1); then
    echo "not refused: $*"
    exit 1
  fi
  case $said in
    *"$expected"*) ;;
    *) echo "refused for another reason: $said" && exit 1 ;;
  esac
}
# tree NAME DECLARATION...: as much of a Chapel tree as matters
tree() {
  mkdir -p "$work/$1/runtime/include/tasks" "$work/$1/runtime/src/tasks" "$work/$1/runtime/etc" "$work/$1/make/tasks" "$work/$1/third-party"
  name=$1
  shift
  printf '%s\n' "$@" > "$work/$name/runtime/include/chpl-tasks.h"
}

refused "no such folder" "$work/nowhere"
refused "is not a Chapel tree" "$work"
tree old "void chpl_task_addToTaskList("
refused "is too old" "$work/old" "$1"
tree new "chpl_task_infoChapel_t infoChapel;" "void chpl_rt_task_add_task("
refused "is too new" "$work/new" "$1"

tree 1 "chpl_task_infoChapel_t infoChapel;" "void chpl_task_addToTaskList(" "int chpl_task_createCommTask(chpl_fn_p fn, void* arg);" \
  "uint32_t chpl_task_getNumQueuedTasks(void);"
tree 2 "chpl_task_infoChapel_t infoChapel;" "void chpl_task_addTask(" "void chpl_task_callMain(" "int chpl_task_createCommTask(chpl_fn_p fn, void* arg, int cpu);"
refused "is not there" "$work/1" "$work/libnone.so"
for form in 1 2; do
  "$install" "$work/$form" "$1" > "$work/said"
  grep -q 'CHPL_TASKS=godwit' "$work/said"
  for file in runtime/include/tasks/godwit/chpl-tasks-impl.h runtime/include/tasks/godwit/chpl-tasks-impl-fns.h \
    runtime/include/tasks/godwit/godwit-chapel.h runtime/include/tasks/godwit/godwit-chapel-version.h runtime/src/tasks/godwit/tasks-godwit.c \
    runtime/src/tasks/godwit/Makefile runtime/src/tasks/godwit/Makefile.include runtime/src/tasks/godwit/Makefile.share \
    runtime/etc/Makefile.tasks-godwit make/tasks/Makefile.godwit third-party/godwit/lib/libgodwit-chapel.so; do
    [ -f "$work/$form/$file" ] || { echo "$file is missing"; exit 1; }
  done
done
values() { sed -n 's/^#define [A-Z_]* //p' "$work/$1/runtime/include/tasks/godwit/godwit-chapel-version.h" | tr '\n' ' '; }
[ "$(values 1)" = "1 0 1 " ] && [ "$(values 2)" = "0 1 0 " ] || { echo "forms: $(values 1), $(values 2)"; exit 1; }
echo "all right"
