/* Counts what an MPI program hands to MPI for other ranks: bytes and calls of point-to-point and one-sided
 * operations by MPI's profiling interface. Collective operations are left out. Rank 0 prints the sum over all
 * ranks in MPI_Finalize:
 *
 *     moved: 123456 bytes in 789 operations
 *
 * Compiled and preloaded by bench/itoyori.py, for Itoyori's programs and ours alike. */
#include <mpi.h>
#include <stdatomic.h>
#include <stdio.h>

static _Atomic unsigned long long bytes, operations;

static void count(int n, MPI_Datatype type) {
  int size = 0;
  PMPI_Type_size(type, &size);
  bytes += (unsigned long long)n * (unsigned long long)size;
  ++operations;
}

int MPI_Send(const void* from, int n, MPI_Datatype type, int to, int tag, MPI_Comm comm) {
  count(n, type);
  return PMPI_Send(from, n, type, to, tag, comm);
}
int MPI_Isend(const void* from, int n, MPI_Datatype type, int to, int tag, MPI_Comm comm,
              MPI_Request* request) {
  count(n, type);
  return PMPI_Isend(from, n, type, to, tag, comm, request);
}
int MPI_Put(const void* from, int n, MPI_Datatype type, int target, MPI_Aint at, int m,
            MPI_Datatype their_type, MPI_Win win) {
  count(n, type);
  return PMPI_Put(from, n, type, target, at, m, their_type, win);
}
int MPI_Rput(const void* from, int n, MPI_Datatype type, int target, MPI_Aint at, int m,
             MPI_Datatype their_type, MPI_Win win, MPI_Request* request) {
  count(n, type);
  return PMPI_Rput(from, n, type, target, at, m, their_type, win, request);
}
int MPI_Get(void* to, int n, MPI_Datatype type, int target, MPI_Aint at, int m, MPI_Datatype their_type,
            MPI_Win win) {
  count(n, type);
  return PMPI_Get(to, n, type, target, at, m, their_type, win);
}
int MPI_Rget(void* to, int n, MPI_Datatype type, int target, MPI_Aint at, int m, MPI_Datatype their_type,
             MPI_Win win, MPI_Request* request) {
  count(n, type);
  return PMPI_Rget(to, n, type, target, at, m, their_type, win, request);
}
int MPI_Fetch_and_op(const void* from, void* to, MPI_Datatype type, int target, MPI_Aint at, MPI_Op op,
                     MPI_Win win) {
  count(1, type);
  return PMPI_Fetch_and_op(from, to, type, target, at, op, win);
}
int MPI_Compare_and_swap(const void* from, const void* expected, void* to, MPI_Datatype type, int target,
                         MPI_Aint at, MPI_Win win) {
  count(1, type);
  return PMPI_Compare_and_swap(from, expected, to, type, target, at, win);
}

int MPI_Finalize(void) {
  unsigned long long mine[2] = {bytes, operations}, all[2] = {0, 0};
  int rank = 0;
  PMPI_Comm_rank(MPI_COMM_WORLD, &rank);
  PMPI_Reduce(mine, all, 2, MPI_UNSIGNED_LONG_LONG, MPI_SUM, 0, MPI_COMM_WORLD);
  if (rank == 0) fprintf(stderr, "moved: %llu bytes in %llu operations\n", all[0], all[1]);
  return PMPI_Finalize();
}
