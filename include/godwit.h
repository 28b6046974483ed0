/* The C interface of Godwit: threads of one process, from C99 programs. Substrate threads always.
 *
 * Functions that can fail give back 0 or a GW_E... number; gw_error_string says what it means. All but
 * gw_run must be called from inside a run. Objects are opaque and live on the heap. What a C++ exception
 * would be does not exist: a thread's function gives back a pointer. docs/c-api.md. Code:
 * src/c_api/c_api.cpp. Examples: examples/c_fib.c, examples/c_queue.c. Test: tests/c_api. */
#ifndef GODWIT_H
#define GODWIT_H

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct gw_thread gw_thread; /**< a thread that has not been joined or detached */
typedef struct gw_mutex gw_mutex;   /**< a mutex */
typedef struct gw_cond gw_cond;     /**< a condition variable */

/** What functions give back. */
enum gw_error {
  GW_OK = 0,
  GW_E_NO_MEMORY = 1, /**< the heap is full */
  GW_E_BUSY = 2,      /**< gw_mutex_trylock: somebody has it */
  GW_E_TIMED_OUT = 3, /**< gw_cond_timedwait: the time was over first */
  GW_E_INVALID = 4    /**< a null pointer, or called outside a run */
};
/** What error means: one line, never null. */
const char* gw_error_string(int error);

/** Start the workers, run main_function(arg) as the first thread, wait for it and all threads it made.
 * Gives back what it gave back, or the status of a run that failed (the reason is printed). argc and argv
 * may be 0 and null; --godwit-* flags are obeyed. */
int gw_run(int argc, char** argv, int (*main_function)(void*), void* arg);

/** Start a thread that runs function(arg) some time later. GW_E_NO_MEMORY, GW_E_INVALID. */
int gw_spawn(gw_thread** thread, void* (*function)(void*), void* arg);
/** Wait for its end; *result (if result is not null) becomes what its function gave back. The handle is
 * gone afterwards. */
int gw_join(gw_thread* thread, void** result);
/** It runs on; the handle is gone. */
int gw_detach(gw_thread* thread);
/** Let other threads run. */
void gw_yield(void);
/** Suspend the calling thread for so long; its worker runs others. */
int gw_sleep_ns(uint64_t ns);

/** Make a mutex. GW_E_NO_MEMORY, GW_E_INVALID. */
int gw_mutex_create(gw_mutex** mutex);
/** Free it. Nobody may hold it or wait for it. */
void gw_mutex_destroy(gw_mutex* mutex);
/** Take it. A thread that has to wait is suspended. */
int gw_mutex_lock(gw_mutex* mutex);
/** Take it if it is free, else GW_E_BUSY. */
int gw_mutex_trylock(gw_mutex* mutex);
/** Give it back. The caller holds it. */
int gw_mutex_unlock(gw_mutex* mutex);

/** Make a condition variable. GW_E_NO_MEMORY, GW_E_INVALID. */
int gw_cond_create(gw_cond** cond);
/** Free it. Nobody may wait for it. */
void gw_cond_destroy(gw_cond* cond);
/** Wait for a signal. The calling thread holds mutex; it does again afterwards. */
int gw_cond_wait(gw_cond* cond, gw_mutex* mutex);
/** The same for ns nanoseconds at most: GW_E_TIMED_OUT. */
int gw_cond_timedwait(gw_cond* cond, gw_mutex* mutex, uint64_t ns);
/** Wake one thread that waits. */
int gw_cond_signal(gw_cond* cond);
/** Wake all threads that wait. */
int gw_cond_broadcast(gw_cond* cond);

/** Number of the worker that runs the caller. It may change whenever the thread waits. */
uint32_t gw_worker_id(void);
/** Number of workers; 0 outside a run. */
uint32_t gw_worker_count(void);

#ifdef __cplusplus
}
#endif
#endif
