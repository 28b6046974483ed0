// CHPL_TASKS=godwit: the types that chpl-tasks.h wants of a tasking layer. docs/chapel.md in Godwit.
#ifndef _chpl_tasks_impl_h_
#define _chpl_tasks_impl_h_

#include <pthread.h>  // files of the runtime count on it
#include <stdint.h>

#include "godwit-chapel.h"

#ifdef __cplusplus
extern "C" {
#endif

// Who waits for an answer of another node lets other tasks run.
#define CHPL_COMM_YIELD_TASK_WHILE_POLLING
void chpl_task_yield(void);

typedef uint64_t chpl_taskID_t;
#define chpl_nullTaskID 0
#ifndef CHPL_TASK_ID_STRING_MAX_LEN
#define CHPL_TASK_ID_STRING_MAX_LEN 21  // 2^64 - 1, and the end
#endif

typedef gwchpl_sync chpl_sync_aux_t;

#ifdef __cplusplus
}
#endif
#endif
