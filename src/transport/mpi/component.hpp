// What godwit needs of an MPI library, as a table of functions.
//
// <mpi.h> means another ABI in every MPI, so the one file that includes it (plugin/plugin.cpp) is compiled
// once per MPI found, into a component godwit-mpi-NAME.so that is loaded only in a program that an MPI
// launcher started (load.hpp). All protocol code is written against this table: it is compiled once, and
// tests can give it another table. Called from one thread only, the one that calls run: MPI_THREAD_FUNNELED
// is enough.
// No function here throws; status 0 is success, everything else is MPI's error code (error_text).
#pragma once

#include <cstddef>
#include <cstdint>

namespace godwit::transport::mpi {

/// Changes when the table does: a component of another version is refused.
inline constexpr std::uint32_t component_abi = 5;

/// A non-blocking operation (an MPI_Request). Zero is none.
struct operation {
  std::uint64_t value = 0;
};
/// A window (an MPI_Win).
struct rma_window {
  std::uint64_t value = 0;
};

/// What init found out.
struct world {
  int rank = 0;
  int size = 1;
  int thread_level = 0;           ///< 0 single, 1 funneled, 2 serialized, 3 multiple
  bool initialised_here = false;  ///< else the program called MPI_Init itself, and will finalize itself
  int largest_tag = 32767;        ///< of a message; MPI guarantees that one
  char library[256] = {};         ///< first line of MPI_Get_library_version
  char processor[128] = {};       ///< MPI_Get_processor_name
};

inline constexpr int any_source = -1;
inline constexpr int any_tag = -1;

enum class rma_op : std::uint32_t { add, replace, no_op };
enum class reduction : std::uint32_t { least, most, sum, common_bits };

struct component {
  std::uint32_t abi;
  const char* name;  ///< of the component: "openmpi", "mpich"

  // Collective.
  int (*init)(world* out);  ///< MPI_Init_thread unless done; own duplicate of MPI_COMM_WORLD, errors return
  /// frees what init made; MPI_Finalize only if init called MPI_Init and nobody finalized
  int (*finalize)();
  int (*allgather)(const void* mine, void* all, std::size_t bytes);
  int (*gather)(const void* mine, void* all, std::size_t bytes, int root);  ///< all: used at the root only
  /// each of @p count words becomes what it is in all ranks together
  int (*allreduce)(std::uint64_t* words, std::size_t count, reduction how);
  int (*bcast)(void* data, std::size_t bytes, int root);
  int (*barrier_begin)(operation* out);

  // Point to point, bytes. At most 1 GiB each.
  int (*isend)(const void* data, std::size_t bytes, int to, int tag, operation* out);
  int (*irecv)(void* data, std::size_t bytes, int from, int tag, operation* out);
  /// Also makes MPI progress. When *done: the operation is gone; source, tag, bytes (each may be null) are
  /// set for receives.
  int (*test)(operation* op, bool* done, int* source, int* tag, std::size_t* bytes);
  /// Cancel a receive that will not be matched, and wait until it is gone.
  int (*cancel)(operation* op);

  // One-sided (MPI-3 RMA), passive target, the window locked for all from creation to free. Collective:
  // create, free. Get and put: any length.
  int (*win_create)(void* base, std::size_t bytes, rma_window* out);
  int (*win_free)(rma_window* w);
  int (*get)(const rma_window* w, void* to, std::size_t bytes, int target, std::uint64_t displacement);
  int (*put)(const rma_window* w, const void* from, std::size_t bytes, int target,
             std::uint64_t displacement);
  int (*fetch_op)(const rma_window* w, rma_op op, const std::uint64_t* operand, std::uint64_t* result,
                  int target, std::uint64_t displacement);
  int (*compare_swap)(const rma_window* w, const std::uint64_t* value, const std::uint64_t* expected,
                      std::uint64_t* result, int target, std::uint64_t displacement);
  int (*flush)(const rma_window* w, int target);  ///< all of the above to target are complete at both ends

  void (*error_text)(int code, char* text, std::size_t bytes);
  void (*abort)(int status);  ///< ends the job; does not come back
};

/// The one symbol of a component. Null: it does not speak this version.
using component_function = const component*(std::uint32_t abi);
inline constexpr const char* component_symbol = "godwit_mpi_component";

}  // namespace godwit::transport::mpi
