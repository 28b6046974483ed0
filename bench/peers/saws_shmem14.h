/* SAWS says its reductions in the words of OpenSHMEM 1.5; Open MPI 4 has those of 1.4. Included before its
   sources by peers.cmake (-include). Only what SAWS calls: all PEs, few elements. */
#ifndef GODWIT_BENCH_SAWS_SHMEM14_H
#define GODWIT_BENCH_SAWS_SHMEM14_H
#include <shmem.h>
#include <stddef.h>

#ifndef SHMEM_TEAM_WORLD
#define SHMEM_TEAM_WORLD 0

enum { saws_most_elements = 64 };

static inline long* saws_sync(void) {
  static long sync[SHMEM_REDUCE_SYNC_SIZE];
  static int begun;
  if (!begun) {
    for (int i = 0; i < SHMEM_REDUCE_SYNC_SIZE; ++i) sync[i] = SHMEM_SYNC_VALUE;
    begun = 1;
  }
  shmem_barrier_all(); /* everybody has it, and nobody uses it any more */
  return sync;
}

#define SAWS_REDUCE(TYPE, NAME, OP)                                                                \
  static inline int saws_##NAME##_##OP(int team, TYPE* to, const TYPE* from, size_t n) {           \
    static TYPE work[saws_most_elements / 2 + 1 > SHMEM_REDUCE_MIN_WRKDATA_SIZE                    \
                         ? saws_most_elements / 2 + 1                                              \
                         : SHMEM_REDUCE_MIN_WRKDATA_SIZE];                                         \
    (void)team;                                                                                    \
    if (n > saws_most_elements) shmem_global_exit(9);                                              \
    shmem_##NAME##_##OP##_to_all(to, (TYPE*)from, (int)n, 0, 0, shmem_n_pes(), work, saws_sync()); \
    shmem_barrier_all();                                                                           \
    return 0;                                                                                      \
  }
#define SAWS_REDUCTIONS(TYPE, NAME) \
  SAWS_REDUCE(TYPE, NAME, min) SAWS_REDUCE(TYPE, NAME, max) SAWS_REDUCE(TYPE, NAME, sum)
SAWS_REDUCTIONS(double, double)
SAWS_REDUCTIONS(int, int)
SAWS_REDUCTIONS(long, long)

#ifdef __cplusplus
#define SAWS_OVERLOADS(OP)                                                                                  \
  static inline int saws_##OP(double* to, const double* from, size_t n) {                                   \
    return saws_double_##OP(0, to, from, n);                                                                \
  }                                                                                                         \
  static inline int saws_##OP(int* to, const int* from, size_t n) { return saws_int_##OP(0, to, from, n); } \
  static inline int saws_##OP(unsigned long* to, const unsigned long* from, size_t n) {                     \
    return saws_long_##OP(0, (long*)to, (const long*)from, n);                                              \
  }                                                                                                         \
  static inline int saws_##OP(long* to, const long* from, size_t n) { return saws_long_##OP(0, to, from, n); }
SAWS_OVERLOADS(min) SAWS_OVERLOADS(max) SAWS_OVERLOADS(sum)
#define SAWS_OF(OP, team, to, from, n) saws_##OP(to, from, n)
#else
#define SAWS_OF(OP, team, to, from, n)     \
  _Generic(*(to), double                   \
           : saws_double_##OP, int         \
           : saws_int_##OP, long           \
           : saws_long_##OP, unsigned long \
           : saws_long_##OP)(team, (void*)(to), (const void*)(from), n)
#endif
#define shmem_min_reduce(team, to, from, n) SAWS_OF(min, team, to, from, n)
#define shmem_max_reduce(team, to, from, n) SAWS_OF(max, team, to, from, n)
#define shmem_sum_reduce(team, to, from, n) SAWS_OF(sum, team, to, from, n)
#endif
#endif
