// Entry points of libgomp that would find their threads unknown here: the program ends with a line that says
// what it wanted.
#include "entry.hpp"
#include "settings.hpp"

#define NOT_DONE(name, why) \
  OPENMP_ENTRY void name() { godwit::openmp::fail(#name " is not done: " why); }

#define ACC "OpenACC is not (run the program with libgomp)"
NOT_DONE(GOACC_parallel, ACC)
NOT_DONE(GOACC_parallel_keyed, ACC)
NOT_DONE(GOACC_data_start, ACC)
NOT_DONE(GOACC_data_end, ACC)
NOT_DONE(GOACC_enter_exit_data, ACC)
NOT_DONE(GOACC_enter_data, ACC)
NOT_DONE(GOACC_exit_data, ACC)
NOT_DONE(GOACC_update, ACC)
NOT_DONE(GOACC_wait, ACC)
NOT_DONE(GOACC_declare, ACC)
NOT_DONE(GOACC_get_thread_num, ACC)
NOT_DONE(GOACC_get_num_threads, ACC)

#define PLACE "threads are not bound to places (leave the call out, or run with libgomp)"
NOT_DONE(omp_display_affinity, PLACE)
NOT_DONE(omp_display_affinity_, PLACE)
NOT_DONE(omp_capture_affinity, PLACE)
NOT_DONE(omp_capture_affinity_, PLACE)
NOT_DONE(omp_set_affinity_format, PLACE)
NOT_DONE(omp_set_affinity_format_, PLACE)
NOT_DONE(omp_get_affinity_format, PLACE)
NOT_DONE(omp_get_affinity_format_, PLACE)
