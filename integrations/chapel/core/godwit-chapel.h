/* Chapel's tasks on Godwit, as the C file in Chapel's runtime (tasks-godwit.c) sees them.
 *
 * Knows nothing of Chapel's headers, so that one library serves all versions of Chapel. A task is a pointer
 * to data that belongs to the caller. Files are numbers, as in Chapel; a function of the caller knows their
 * names. Functions may be called by any OS thread unless stated. docs/chapel.md; code: integrations/chapel/
 * core; test: tests/chapel. */
#ifndef GODWIT_CHAPEL_H
#define GODWIT_CHAPEL_H

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* A place in a Chapel program. */
typedef struct gwchpl_place {
  int32_t line;
  int32_t file;
} gwchpl_place;

typedef struct gwchpl_setup {
  uint32_t workers;     /* 0: one for each CPU, or GODWIT_WORKERS */
  uint64_t stack_bytes; /* of each task, rounded up to a power of two; 0: 256 KiB */
  /* Runs a task; afterwards lets go of its data. */
  void (*body)(void* data);
  void (*release)(void* data);
  /* Where the task was begun, and the name of a file. For messages. */
  gwchpl_place (*begun_at)(const void* data);
  const char* (*file_name)(int32_t file);
} gwchpl_setup;

/* Once, before anything else. */
void gwchpl_init(const gwchpl_setup* setup);
/* From now on OS threads that are no workers may begin tasks and wake them at any time. Then a run cannot
 * tell when it is deadlocked. Before gwchpl_run. */
void gwchpl_outside(void);

/* Start the workers, run data as the main task, wait until it and all others are done, stop the workers.
 * Can be called again. A run that fails (deadlock, stack overflow) is reported, and the status is not 0. */
int gwchpl_run(void* data);
/* One more task. It may run before this comes back, and the caller go on at another worker. Outside a run it
 * begins when the next one starts. */
void gwchpl_begin(void* data);
/* The calling task's data; null: the caller is no task. */
void* gwchpl_data(void);
/* Others run meanwhile. A task that has waited so for long sleeps now and then. */
void gwchpl_yield(void);
void gwchpl_sleep(double seconds);

/* Workers, in a run and outside of it. */
uint32_t gwchpl_workers(void);
/* The caller is a worker. */
int gwchpl_is_worker(void);
uint64_t gwchpl_stack_bytes(void);
/* Tasks that have not begun; that have begun and not ended; of these, those that wait for a sync variable. */
typedef struct gwchpl_counts {
  uint64_t queued;
  uint64_t running;
  uint64_t blocked;
} gwchpl_counts;
gwchpl_counts gwchpl_count(void);

/* What a sync variable has besides its value: a lock that is taken when the variable is full, when it is
 * empty, or in any case, first come, first served. All zero: empty, and nobody holds it. */
typedef struct gwchpl_sync {
  uint32_t word;
  uint32_t tickets;
  void* waiting[3][2];
} gwchpl_sync;

enum gwchpl_when { GWCHPL_ANY = 0, GWCHPL_FULL = 1, GWCHPL_EMPTY = 2 };
void gwchpl_sync_lock(gwchpl_sync* sync, enum gwchpl_when when, gwchpl_place where);
/* now: GWCHPL_FULL or GWCHPL_EMPTY; GWCHPL_ANY: as it was. */
void gwchpl_sync_unlock(gwchpl_sync* sync, enum gwchpl_when now);
int gwchpl_sync_is_full(const gwchpl_sync* sync);

#ifdef __cplusplus
}
#endif
#endif
