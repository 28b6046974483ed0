// CHPL_TASKS=godwit: what of the interface of chpl-tasks.h is a macro or inlined. docs/chapel.md in Godwit.
//
// Sublocales are what the program makes of them: any worker runs any task.
#ifndef _chpl_tasks_impl_fns_h_
#define _chpl_tasks_impl_fns_h_

#include <stdint.h>

#include "chpltypes.h"
#include "godwit-chapel.h"

#ifdef __cplusplus
extern "C" {
#endif

#define CHPL_TASK_GETSUBLOC_IMPL_DECL 1
static inline c_sublocid_t chpl_task_getSubloc(void) { return 0; }

uint32_t chpl_task_impl_getFixedNumThreads(void);
#define CHPL_TASK_IMPL_GET_FIXED_NUM_THREADS() chpl_task_impl_getFixedNumThreads()
#define CHPL_TASK_IMPL_HAS_FIXED_NUM_THREADS() true
#define CHPL_TASK_IMPL_IS_FIXED_THREAD() ((uint32_t)gwchpl_is_worker())
// A task that was suspended may go on at another worker.
#define CHPL_TASK_IMPL_CAN_MIGRATE_THREADS() 1

#ifdef __cplusplus
}
#endif
#endif
