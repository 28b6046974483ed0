/* Stand-in for Chapel's runtime: what tasks-godwit.c uses of it, with the same names and prototypes, as of
 * Chapel 2 (of 1.24 with GODWIT_CHAPEL_LISTS). In the place of the real headers in tests only. All in one
 * file: the others include it. */
#ifndef STANDIN_CHPLRT_H
#define STANDIN_CHPLRT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "godwit-chapel-version.h"

/* chpltypes.h */
typedef _Bool chpl_bool;
typedef int32_t c_nodeid_t;
typedef int32_t c_sublocid_t;
#define c_sublocid_none_val -1
#if GODWIT_CHAPEL_LISTS
#define c_sublocid_any_val -2
#endif
typedef void (*chpl_fn_p)(void*);
typedef int16_t chpl_fn_int_t;
typedef const char* c_string;
typedef int8_t chpl_arg_bundle_kind_t;
#define CHPL_ARG_BUNDLE_KIND_TASK 0
#define CHPL_ARG_BUNDLE_KIND_COMM 1

/* chplcgfns.h: of the program */
extern chpl_fn_p chpl_ftable[];

/* chpl-tasks.h */
#include "chpl-tasks-impl.h"

typedef struct {
  void* comm_data;
} chpl_task_infoRuntime_t;
typedef struct {
  unsigned char data[32];
} chpl_task_infoChapel_t;
typedef struct chpl_task_bundle {
  chpl_arg_bundle_kind_t kind;
  chpl_bool is_executeOn;
  int lineno;
  int filename;
  c_sublocid_t requestedSubloc;
  chpl_fn_int_t requested_fid;
  chpl_fn_p requested_fn;
  chpl_taskID_t id;
  chpl_task_infoChapel_t infoChapel;
} chpl_task_bundle_t;

#include "chpl-tasks-impl-fns.h"

void chpl_sync_lock(chpl_sync_aux_t*);
void chpl_sync_unlock(chpl_sync_aux_t*);
void chpl_sync_waitFullAndLock(chpl_sync_aux_t*, int32_t, int32_t);
void chpl_sync_waitEmptyAndLock(chpl_sync_aux_t*, int32_t, int32_t);
void chpl_sync_markAndSignalFull(chpl_sync_aux_t*);
void chpl_sync_markAndSignalEmpty(chpl_sync_aux_t*);
chpl_bool chpl_sync_isFull(void*, chpl_sync_aux_t*);
void chpl_sync_initAux(chpl_sync_aux_t*);
void chpl_sync_destroyAux(chpl_sync_aux_t*);

void chpl_task_init(void);
void chpl_task_exit(void);
void chpl_task_callMain(void (*)(void));
#if GODWIT_CHAPEL_COMM_CPU
int chpl_task_createCommTask(chpl_fn_p, void*, int);
#else
int chpl_task_createCommTask(chpl_fn_p, void*);
#endif
#if GODWIT_CHAPEL_LISTS
void chpl_task_addToTaskList(chpl_fn_int_t, chpl_task_bundle_t*, size_t, c_sublocid_t, void**, c_nodeid_t,
                             chpl_bool, int, int32_t);
void chpl_task_executeTasksInList(void**);
#else
void chpl_task_addTask(chpl_fn_int_t, chpl_task_bundle_t*, size_t, c_sublocid_t, int, int32_t);
#endif
#define FID_NONE -1
void chpl_task_taskCallFTable(chpl_fn_int_t, void*, size_t, c_sublocid_t, int, int32_t);
void chpl_task_startMovedTask(chpl_fn_int_t, chpl_fn_p, void*, size_t, c_sublocid_t, chpl_taskID_t);
void chpl_task_setSubloc(c_sublocid_t);
c_sublocid_t chpl_task_getRequestedSubloc(void);
chpl_taskID_t chpl_task_getId(void);
chpl_bool chpl_task_idEquals(chpl_taskID_t, chpl_taskID_t);
char* chpl_task_idToString(char*, size_t, chpl_taskID_t);
void chpl_task_sleep(double);
chpl_task_infoRuntime_t* chpl_task_getInfoRuntime(void);
chpl_task_infoChapel_t* chpl_task_getInfoChapel(void);
uint32_t chpl_task_getMaxPar(void);
size_t chpl_task_getCallStackSize(void);
chpl_bool chpl_task_guardPagesInUse(void);
#if GODWIT_CHAPEL_COUNTS
uint32_t chpl_task_getNumQueuedTasks(void);
int32_t chpl_task_getNumBlockedTasks(void);
uint32_t chpl_task_getNumThreads(void);
uint32_t chpl_task_getNumIdleThreads(void);
#endif
int32_t chpl_task_getenvNumThreadsPerLocale(void);
size_t chpl_task_getEnvCallStackSize(void);
size_t chpl_task_getDefaultCallStackSize(void);

/* chpl-comm.h, chpl-arg-bundle.h */
typedef struct {
  chpl_arg_bundle_kind_t kind;
  uint64_t of_the_layer[3];
  chpl_task_bundle_t task_bundle;
} chpl_comm_on_bundle_t;
int32_t chpl_comm_getMaxThreads(void);
static inline chpl_task_bundle_t* chpl_argBundleTaskArgBundle(void* arg) {
  return *(chpl_arg_bundle_kind_t*)arg == CHPL_ARG_BUNDLE_KIND_TASK
             ? (chpl_task_bundle_t*)arg
             : &((chpl_comm_on_bundle_t*)arg)->task_bundle;
}

/* chpl-tasks-callbacks-internal.h */
typedef enum {
  chpl_task_cb_event_kind_create,
  chpl_task_cb_event_kind_begin,
  chpl_task_cb_event_kind_end
} chpl_task_cb_event_kind_t;
int chpl_task_have_callbacks(chpl_task_cb_event_kind_t);
void chpl_task_do_callbacks(chpl_task_cb_event_kind_t, chpl_fn_int_t fid, int32_t filename, int lineno,
                            uint64_t id, int is_executeOn);

/* chpl-linefile-support.h */
#define CHPL_FILE_IDX_UNKNOWN -5
#define CHPL_FILE_IDX_COMM_TASK -7
#define CHPL_FILE_IDX_MAIN_TASK -8
#define CHPL_FILE_IDX_ON_BODY_TASK -9
c_string chpl_lookupFilename(const int32_t);

/* chpl-topo.h, chplexit.h, error.h */
int chpl_topo_getNumCPUsPhysical(chpl_bool accessible_only);
int chpl_topo_bindCPU(int);
void chpl_exit_any(int status);
void chpl_error(const char* message, int32_t lineno, int32_t filename);
void chpl_warning(const char* message, int32_t lineno, int32_t filename);

#endif
