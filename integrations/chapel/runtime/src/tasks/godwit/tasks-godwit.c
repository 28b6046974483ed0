// CHPL_TASKS=godwit: the functions of chpl-tasks.h, on the library libgodwit-chapel. docs/chapel.md in
// Godwit.
//
// Everything that depends on Chapel's headers is here: bundles of arguments, ids, names of files. Tasks, sync
// variables and waiting are the library's (godwit-chapel.h). godwit-chapel-version.h says which of several
// forms of the interface this tree has; install.sh wrote it.
#include "chplrt.h"

#include "chpl-arg-bundle.h"
#include "chpl-comm.h"
#include "chpl-linefile-support.h"
#include "chpl-mem.h"
#include "chpl-tasks-callbacks-internal.h"
#include "chpl-tasks.h"
#include "chpl-topo.h"
#include "chplcgfns.h"
#include "chplexit.h"
#include "chpltypes.h"
#include "error.h"

#include <assert.h>
#include <errno.h>
#include <inttypes.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "godwit-chapel-version.h"

// Chapel 2 has no "any sublocale" any more, it says "none".
#ifdef c_sublocid_any_val
#define anywhere c_sublocid_any_val
#else
#define anywhere c_sublocid_none_val
#endif

// A task, from its creation to its end. Its arguments follow: the compiler's functions read them there.
typedef struct task_s {
  chpl_task_infoRuntime_t infoRuntime;
  chpl_task_bundle_t* bundle;
  _Alignas(16) unsigned char arg[];
} task;

// What OS threads that run no task have in its place: the initial one, and those that communicate.
static __thread struct {
  chpl_task_infoRuntime_t infoRuntime;
  chpl_task_bundle_t bundle;
} outside;

static atomic_uint_least64_t last_id;

static chpl_taskID_t id_of(chpl_task_bundle_t* bundle) {
  if (bundle->id == chpl_nullTaskID)
    bundle->id = atomic_fetch_add_explicit(&last_id, 1, memory_order_relaxed) + 1;
  return bundle->id;
}

static chpl_task_bundle_t* my_bundle(void) {
  const task* me = gwchpl_data();
  return me != NULL ? me->bundle : &outside.bundle;
}

static void tell(chpl_task_cb_event_kind_t event, chpl_task_bundle_t* bundle) {
  if (chpl_task_have_callbacks(event))
    chpl_task_do_callbacks(event, bundle->requested_fid, bundle->filename, bundle->lineno, id_of(bundle),
                           bundle->is_executeOn);
}

// Called back by the library.

static void run_task(void* data) {
  task* me = data;
  tell(chpl_task_cb_event_kind_begin, me->bundle);
  me->bundle->requested_fn(me->arg);
  tell(chpl_task_cb_event_kind_end, me->bundle);
}

static gwchpl_place begun_at(const void* data) {
  const task* t = data;
  return (gwchpl_place){t->bundle->lineno, t->bundle->filename};
}

static const char* name_of_file(int32_t file) { return chpl_lookupFilename(file); }

// A task with its own copy of the arguments.
static task* make_task(void* arg, size_t arg_size) {
  task* t = malloc(sizeof(task) + arg_size);
  if (t == NULL) chpl_error("out of memory for another task", 0, 0);
  memset(&t->infoRuntime, 0, sizeof t->infoRuntime);
  memcpy(t->arg, arg, arg_size);
  t->bundle = chpl_argBundleTaskArgBundle(t->arg);
  return t;
}

static void begin(void* arg, size_t arg_size, chpl_fn_int_t fid, chpl_fn_p fn, chpl_bool is_on,
                  c_sublocid_t subloc, int line, int32_t file) {
  task* t = make_task(arg, arg_size);
  chpl_task_bundle_t* b = t->bundle;  // its kind and infoChapel are the caller's
  b->is_executeOn = is_on;
  b->lineno = line;
  b->filename = file;
  b->requestedSubloc = subloc;
  b->requested_fid = fid;
  b->requested_fn = fn;
  b->id = chpl_nullTaskID;
  tell(chpl_task_cb_event_kind_create, b);
  gwchpl_begin(t);
}

// Start and end

void chpl_task_init(void) {
  int32_t workers = chpl_task_getenvNumThreadsPerLocale();
  const int32_t most = (int32_t)chpl_comm_getMaxThreads();
  if (workers == 0) workers = chpl_topo_getNumCPUsPhysical(true);
  if (most > 0 && workers > most) workers = most;
  const size_t asked = chpl_task_getEnvCallStackSize();
  gwchpl_init(&(gwchpl_setup){
      .workers = workers > 0 ? (uint32_t)workers : 0,
      .stack_bytes = asked != 0 ? asked : chpl_task_getDefaultCallStackSize(),
      .body = run_task,
      .release = free,
      .begun_at = begun_at,
      .file_name = name_of_file,
  });
}

// The workers have ended with chpl_task_callMain, or the caller is a task, and the process ends in its midst.
void chpl_task_exit(void) {}

// Called several times: for the standard modules first.
void chpl_task_callMain(void (*chpl_main)(void)) {
  chpl_task_bundle_t arg;
  memset(&arg, 0, sizeof arg);
  arg.kind = CHPL_ARG_BUNDLE_KIND_TASK;
  arg.filename = CHPL_FILE_IDX_MAIN_TASK;
  arg.requestedSubloc = anywhere;
  arg.requested_fid = FID_NONE;
  arg.requested_fn = (chpl_fn_p)chpl_main;
  task* t = make_task(&arg, sizeof arg);
  tell(chpl_task_cb_event_kind_create, t->bundle);
  const int status = gwchpl_run(t);
  if (status != 0) chpl_exit_any(status);
}

typedef struct {
  chpl_fn_p fn;
  void* arg;
  int cpu;
} comm_task;

static void* run_comm_task(void* data) {
  const comm_task me = *(comm_task*)data;
  free(data);
  outside.bundle.kind = CHPL_ARG_BUNDLE_KIND_TASK;
  outside.bundle.filename = CHPL_FILE_IDX_COMM_TASK;
  outside.bundle.requestedSubloc = anywhere;
  outside.bundle.requested_fid = FID_NONE;
#if GODWIT_CHAPEL_COMM_CPU
  if (me.cpu >= 0 && chpl_topo_bindCPU(me.cpu) != 0)
    chpl_warning("cannot bind the communication task to its CPU", 0, 0);
#endif
  me.fn(me.arg);
  return NULL;
}

static int create_comm_task(chpl_fn_p fn, void* arg, int cpu) {
  comm_task* t = malloc(sizeof *t);
  if (t == NULL) return ENOMEM;
  *t = (comm_task){fn, arg, cpu};
  gwchpl_outside();
  pthread_t thread;
  const int error = pthread_create(&thread, NULL, run_comm_task, t);
  if (error == 0)
    pthread_detach(thread);
  else
    free(t);
  return error;
}

#if GODWIT_CHAPEL_COMM_CPU
int chpl_task_createCommTask(chpl_fn_p fn, void* arg, int cpu) { return create_comm_task(fn, arg, cpu); }
#else
int chpl_task_createCommTask(chpl_fn_p fn, void* arg) { return create_comm_task(fn, arg, -1); }
#endif

// Tasks

#if GODWIT_CHAPEL_LISTS
void chpl_task_addToTaskList(chpl_fn_int_t fid, chpl_task_bundle_t* arg, size_t arg_size, c_sublocid_t subloc,
                             void** list, c_nodeid_t list_node, chpl_bool is_begin, int lineno,
                             int32_t filename) {
  (void)list;  // all begin at once
  (void)list_node;
  (void)is_begin;
  arg->kind = CHPL_ARG_BUNDLE_KIND_TASK;
  begin(arg, arg_size, fid, chpl_ftable[fid], false, subloc, lineno, filename);
}

void chpl_task_executeTasksInList(void** list) { (void)list; }
#else
void chpl_task_addTask(chpl_fn_int_t fid, chpl_task_bundle_t* arg, size_t arg_size, c_sublocid_t subloc,
                       int lineno, int32_t filename) {
  arg->kind = CHPL_ARG_BUNDLE_KIND_TASK;
  begin(arg, arg_size, fid, chpl_ftable[fid], false, subloc, lineno, filename);
}
#endif

void chpl_task_taskCallFTable(chpl_fn_int_t fid, void* arg, size_t arg_size, c_sublocid_t subloc, int lineno,
                              int32_t filename) {
  begin(arg, arg_size, fid, chpl_ftable[fid], true, subloc, lineno, filename);
}

void chpl_task_startMovedTask(chpl_fn_int_t fid, chpl_fn_p fn, void* arg, size_t arg_size,
                              c_sublocid_t subloc, chpl_taskID_t id) {
  assert(id == chpl_nullTaskID);  // ids are of one node
  (void)id;
  begin(arg, arg_size, fid, fn != NULL ? fn : chpl_ftable[fid], true, subloc, 0, CHPL_FILE_IDX_ON_BODY_TASK);
}

void chpl_task_yield(void) { gwchpl_yield(); }
void chpl_task_sleep(double seconds) { gwchpl_sleep(seconds); }

chpl_taskID_t chpl_task_getId(void) { return id_of(my_bundle()); }
chpl_bool chpl_task_idEquals(chpl_taskID_t a, chpl_taskID_t b) { return a == b; }
char* chpl_task_idToString(char* buffer, size_t size, chpl_taskID_t id) {
  const int length = snprintf(buffer, size, "%" PRIu64, id);
  return length > 0 && (size_t)length < size ? buffer : NULL;
}

chpl_task_infoRuntime_t* chpl_task_getInfoRuntime(void) {
  task* me = gwchpl_data();
  return me != NULL ? &me->infoRuntime : &outside.infoRuntime;
}
chpl_task_infoChapel_t* chpl_task_getInfoChapel(void) { return &my_bundle()->infoChapel; }

c_sublocid_t chpl_task_getRequestedSubloc(void) {
  const task* me = gwchpl_data();
  return me != NULL ? me->bundle->requestedSubloc : anywhere;
}
void chpl_task_setSubloc(c_sublocid_t subloc) {
  const task* me = gwchpl_data();
  if (me != NULL) me->bundle->requestedSubloc = subloc;
}

// Sync variables

void chpl_sync_initAux(chpl_sync_aux_t* s) { memset(s, 0, sizeof *s); }
void chpl_sync_destroyAux(chpl_sync_aux_t* s) { (void)s; }

void chpl_sync_lock(chpl_sync_aux_t* s) {
  gwchpl_sync_lock(s, GWCHPL_ANY, (gwchpl_place){0, CHPL_FILE_IDX_UNKNOWN});
}
void chpl_sync_unlock(chpl_sync_aux_t* s) { gwchpl_sync_unlock(s, GWCHPL_ANY); }
void chpl_sync_waitFullAndLock(chpl_sync_aux_t* s, int32_t lineno, int32_t filename) {
  gwchpl_sync_lock(s, GWCHPL_FULL, (gwchpl_place){lineno, filename});
}
void chpl_sync_waitEmptyAndLock(chpl_sync_aux_t* s, int32_t lineno, int32_t filename) {
  gwchpl_sync_lock(s, GWCHPL_EMPTY, (gwchpl_place){lineno, filename});
}
void chpl_sync_markAndSignalFull(chpl_sync_aux_t* s) { gwchpl_sync_unlock(s, GWCHPL_FULL); }
void chpl_sync_markAndSignalEmpty(chpl_sync_aux_t* s) { gwchpl_sync_unlock(s, GWCHPL_EMPTY); }
chpl_bool chpl_sync_isFull(void* value, chpl_sync_aux_t* s) {
  (void)value;
  return gwchpl_sync_is_full(s) != 0;
}

// What there is of everything

uint32_t chpl_task_getMaxPar(void) { return gwchpl_workers(); }
size_t chpl_task_getCallStackSize(void) { return gwchpl_stack_bytes(); }
chpl_bool chpl_task_guardPagesInUse(void) { return true; }
uint32_t chpl_task_impl_getFixedNumThreads(void) { return gwchpl_workers(); }

#if GODWIT_CHAPEL_COUNTS
uint32_t chpl_task_getNumQueuedTasks(void) { return (uint32_t)gwchpl_count().queued; }
int32_t chpl_task_getNumBlockedTasks(void) { return (int32_t)gwchpl_count().blocked; }
uint32_t chpl_task_getNumThreads(void) { return gwchpl_workers(); }
uint32_t chpl_task_getNumIdleThreads(void) {
  const gwchpl_counts n = gwchpl_count();
  const uint64_t busy = n.queued + n.running - n.blocked;
  return busy < gwchpl_workers() ? gwchpl_workers() - (uint32_t)busy : 0;
}
#endif
