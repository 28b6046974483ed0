/* What Chapel's compiler and its module code make of begin, coforall, cobegin and sync: bundles of arguments,
 * a counter of tasks that the parent reads between yields, sync variables with a value beside the lock. */
#ifndef SHAPES_H
#define SHAPES_H

#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "chpl-tasks.h"

enum { file_of_program = 7 }; /* "program.chpl" (standin.c) */

#define CHECK(condition)                                                      \
  do {                                                                        \
    if (!(condition)) {                                                       \
      fprintf(stderr, "%s:%d: not so: %s\n", __FILE__, __LINE__, #condition); \
      exit(1);                                                                \
    }                                                                         \
  } while (0)

/* Of a coforall, cobegin or sync block: tasks that have not ended. */
typedef struct {
  atomic_long left;
} end_count;

typedef struct {
  chpl_task_bundle_t header;
  end_count* ends;
  long index;
  void* shared;
} arguments;

/* One task, of the source line. The task's arguments are copied. */
static inline void add_task(chpl_fn_int_t fid, end_count* ends, long index, void* shared, int line) {
  arguments a;
  memset(&a, 0, sizeof a);
  memcpy(&a.header.infoChapel, chpl_task_getInfoChapel(), sizeof a.header.infoChapel);
  a.ends = ends;
  a.index = index;
  a.shared = shared;
  if (ends != NULL) atomic_fetch_add(&ends->left, 1);
#if GODWIT_CHAPEL_LISTS
  void* list = NULL;
  chpl_task_addToTaskList(fid, &a.header, sizeof a, c_sublocid_any_val, &list, 0, false, line,
                          file_of_program);
  chpl_task_executeTasksInList(&list);
#else
  chpl_task_addTask(fid, &a.header, sizeof a, c_sublocid_none_val, line, file_of_program);
#endif
}
static inline void task_ends(const arguments* a) {
  if (a->ends != NULL) atomic_fetch_sub(&a->ends->left, 1);
}
static inline void wait_for_end(end_count* ends) {
  while (atomic_load(&ends->left) != 0) chpl_task_yield();
}
static inline void coforall(chpl_fn_int_t fid, long n, void* shared, int line) {
  end_count ends = {0};
  for (long i = 0; i < n; ++i) add_task(fid, &ends, i, shared, line);
  wait_for_end(&ends);
}

/* sync int */
typedef struct {
  long value;
  chpl_sync_aux_t aux;
} sync_int;

static inline void init(sync_int* s) {
  s->value = 0;
  chpl_sync_initAux(&s->aux);
}
static inline void writeEF(sync_int* s, long value, int line) {
  chpl_sync_waitEmptyAndLock(&s->aux, line, file_of_program);
  s->value = value;
  chpl_sync_markAndSignalFull(&s->aux);
}
static inline long readFE(sync_int* s, int line) {
  chpl_sync_waitFullAndLock(&s->aux, line, file_of_program);
  const long value = s->value;
  chpl_sync_markAndSignalEmpty(&s->aux);
  return value;
}
static inline long readFF(sync_int* s, int line) {
  chpl_sync_waitFullAndLock(&s->aux, line, file_of_program);
  const long value = s->value;
  chpl_sync_unlock(&s->aux);
  return value;
}
static inline void writeXF(sync_int* s, long value) {
  chpl_sync_lock(&s->aux);
  s->value = value;
  chpl_sync_markAndSignalFull(&s->aux);
}
static inline void reset(sync_int* s) {
  chpl_sync_lock(&s->aux);
  chpl_sync_markAndSignalEmpty(&s->aux);
}

#endif
