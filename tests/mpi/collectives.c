/* Counts MPI's collective operations of a rank, and the bytes that it brings to each, by MPI's profiling
 * interface. Preloaded by collectives_test.sh. Each rank prints a line for each kind in MPI_Finalize. */
#include <mpi.h>
#include <stdio.h>

enum kind { dup, allgather, allreduce, bcast, gather, ibarrier, other, kinds };
static const char* const names[kinds] = {"Comm_dup", "Allgather", "Allreduce", "Bcast",
                                         "Gather",   "Ibarrier",  "other"};
static unsigned long calls[kinds], bytes[kinds];

static void count(enum kind k, int n, MPI_Datatype type) {
  int size = 0;
  if (n != 0) PMPI_Type_size(type, &size);
  ++calls[k];
  bytes[k] += (unsigned long)n * (unsigned long)size;
}

int MPI_Comm_dup(MPI_Comm comm, MPI_Comm* copy) {
  count(dup, 0, MPI_BYTE);
  return PMPI_Comm_dup(comm, copy);
}
int MPI_Allgather(const void* mine, int n, MPI_Datatype type, void* all, int m, MPI_Datatype their_type,
                  MPI_Comm comm) {
  count(allgather, n, type);
  return PMPI_Allgather(mine, n, type, all, m, their_type, comm);
}
int MPI_Allreduce(const void* mine, void* all, int n, MPI_Datatype type, MPI_Op op, MPI_Comm comm) {
  count(allreduce, n, type);
  return PMPI_Allreduce(mine, all, n, type, op, comm);
}
int MPI_Bcast(void* data, int n, MPI_Datatype type, int root, MPI_Comm comm) {
  count(bcast, n, type);
  return PMPI_Bcast(data, n, type, root, comm);
}
int MPI_Gather(const void* mine, int n, MPI_Datatype type, void* all, int m, MPI_Datatype their_type,
               int root, MPI_Comm comm) {
  count(gather, n, type);
  return PMPI_Gather(mine, n, type, all, m, their_type, root, comm);
}
int MPI_Ibarrier(MPI_Comm comm, MPI_Request* request) {
  count(ibarrier, 0, MPI_BYTE);
  return PMPI_Ibarrier(comm, request);
}
int MPI_Barrier(MPI_Comm comm) {
  count(other, 0, MPI_BYTE);
  return PMPI_Barrier(comm);
}
int MPI_Reduce(const void* mine, void* all, int n, MPI_Datatype type, MPI_Op op, int root, MPI_Comm comm) {
  count(other, n, type);
  return PMPI_Reduce(mine, all, n, type, op, root, comm);
}
int MPI_Alltoall(const void* mine, int n, MPI_Datatype type, void* all, int m, MPI_Datatype their_type,
                 MPI_Comm comm) {
  count(other, n, type);
  return PMPI_Alltoall(mine, n, type, all, m, their_type, comm);
}
int MPI_Finalize(void) {
  for (int k = 0; k < kinds; ++k)
    if (calls[k] != 0) fprintf(stderr, "collective: %s %lu %lu\n", names[k], calls[k], bytes[k]);
  return PMPI_Finalize();
}
