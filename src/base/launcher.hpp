// Who started this process: nobody in particular, or an MPI launcher that started one of it per rank.
//
// Read from the environment, once, before main: MPI libraries and programs change these variables later. Not
// a use of MPI: nothing is loaded or contacted. Open MPI's mpirun, MPICH's and Intel's (Hydra), srun with
// pmi2 or pmix; srun without either is told apart, so that its user can be told.
// A rank leaves a mark in the environment, the variable _GODWIT_RANK. By it a program that a rank starts (by
// system, say), which inherits the launcher's variables, knows that it is no rank. A rank that replaces
// itself by exec is one still. So is a Godwit program below a rank that is a shell or another program: those
// leave no mark, and `mpirun sh -c ./program` is usual.
// Called by base/fixed_layout.cpp (constructor) and src/runtime. Test: tests/base/launcher_test.cpp.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

namespace godwit::base {

struct launcher {
  enum class kind : std::uint8_t {
    none,              ///< a plain start
    open_mpi,          ///< Open MPI's mpirun (also of PRRTE): OMPI_COMM_WORLD_*
    mpich,             ///< PMI-1 or PMI-2: mpiexec of MPICH and Intel MPI, srun --mpi=pmi2: PMI_*
    pmix,              ///< PMIx without Open MPI's mpirun: srun --mpi=pmix
    slurm_without_mpi  ///< srun started several tasks that cannot find each other (srun --mpi=none)
  };
  kind what = kind::none;
  int rank = 0;
  int size = 1;               ///< -1: unknown (PMIx outside Slurm)
  int local_rank = -1;        ///< among the ranks on this machine; -1: unknown
  int local_size = -1;        ///< -1: unknown
  const char* evidence = "";  ///< the variable that told; static text

  /// One of several ranks of an MPI program (an unknown number counts as several).
  bool one_of_several() const noexcept {
    return what != kind::none && what != kind::slurm_without_mpi && size != 1;
  }
};

/// What the variables say, without regard to the mark. @p environment ends with a null pointer. Local.
launcher read_launcher(const char* const* environment) noexcept;

/// What read_launcher says of the environment that this process was started with; none in a program that a
/// rank started. One load after the first call.
const launcher& detect_launcher() noexcept;

/// The mark: _GODWIT_RANK=PROCESS.JOB.PERSONALITY
inline constexpr std::string_view rank_mark_name = "_GODWIT_RANK=";
struct rank_mark {
  long process = 0;               ///< whose environment it was put into; 0: there is none of this job
  unsigned long personality = 0;  ///< that process's before it started itself anew
};
/// A mark of another job (a launcher started by a rank) does not count.
rank_mark read_rank_mark(const char* const* environment) noexcept;
/// Write "_GODWIT_RANK=..." for a process of the job that @p environment belongs to.
void write_rank_mark(char* text, std::size_t bytes, const char* const* environment,
                     const rank_mark& mark) noexcept;

/// Value of a variable, or null. @p name without "=".
const char* find_variable(const char* const* environment, std::string_view name) noexcept;

}  // namespace godwit::base
