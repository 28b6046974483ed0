/* Stand-in for the rest of Chapel's runtime: chplrt.h in this folder. */
#include "chplrt.h"

#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>

#include "standin.h"

atomic_long standin_events[3];
int standin_callbacks;

int chpl_task_have_callbacks(chpl_task_cb_event_kind_t event) {
  (void)event;
  return standin_callbacks;
}
void chpl_task_do_callbacks(chpl_task_cb_event_kind_t event, chpl_fn_int_t fid, int32_t filename, int lineno,
                            uint64_t id, int is_executeOn) {
  (void)fid;
  (void)filename;
  (void)lineno;
  (void)is_executeOn;
  if (id != 0) atomic_fetch_add(&standin_events[event], 1);
}

static int number_from(const char* name) {
  const char* text = getenv(name);
  return text != NULL ? atoi(text) : 0;
}

int32_t chpl_task_getenvNumThreadsPerLocale(void) { return number_from("CHPL_RT_NUM_THREADS_PER_LOCALE"); }
size_t chpl_task_getEnvCallStackSize(void) { return (size_t)number_from("CHPL_RT_CALL_STACK_SIZE"); }
size_t chpl_task_getDefaultCallStackSize(void) { return 8 << 20; }
int32_t chpl_comm_getMaxThreads(void) { return 0; }
int chpl_topo_getNumCPUsPhysical(chpl_bool accessible_only) {
  (void)accessible_only;
  return 2;
}
int chpl_topo_bindCPU(int cpu) {
  (void)cpu;
  return 0;
}

c_string chpl_lookupFilename(const int32_t file) {
  switch (file) {
    case 7:
      return "program.chpl";
    case CHPL_FILE_IDX_MAIN_TASK:
      return "<main task>";
    case CHPL_FILE_IDX_ON_BODY_TASK:
      return "<on-body task>";
    default:
      return "<unknown>";
  }
}

void chpl_exit_any(int status) {
  fflush(stdout);
  exit(status);
}
void chpl_error(const char* message, int32_t lineno, int32_t filename) {
  fprintf(stderr, "%s:%d: error: %s\n", chpl_lookupFilename(filename), lineno, message);
  chpl_exit_any(1);
}
void chpl_warning(const char* message, int32_t lineno, int32_t filename) {
  fprintf(stderr, "%s:%d: warning: %s\n", chpl_lookupFilename(filename), lineno, message);
}
