// See launcher.hpp. Sources: Open MPI's orterun(1), MPICH's Hydra and Slurm's mpi/pmi2 plugin (PMI_*), the
// PMIx standard (PMIX_*), srun(1) and sbatch(1), "output environment variables".
#include "base/launcher.hpp"

#include <unistd.h>

#include <charconv>
#include <cstdio>
#include <cstring>

namespace godwit::base {
namespace {

using kind = launcher::kind;

/// A number from 0 to @p high, or -1.
long number(const char* text, long high) noexcept {
  if (text == nullptr || *text == '\0') return -1;
  long value = -1;
  const char* end = text + std::strlen(text);
  const auto [rest, error] = std::from_chars(text, end, value);
  return error == std::errc{} && rest == end && value >= 0 && value <= high ? value : -1;
}

struct variables {
  const char* const* environment;

  int count(std::string_view name) const noexcept {
    return static_cast<int>(number(find_variable(environment, name), 1 << 30));
  }
  /// Slurm's numbers of steps that are none (the batch script, the interactive one) are just below 2^32.
  bool slurm_step() const noexcept {
    const char* id = find_variable(environment, "SLURM_STEP_ID");
    if (id == nullptr) id = find_variable(environment, "SLURM_STEPID");
    return number(id, 0xffff'0000) >= 0;
  }
};

bool is_place(int rank, int size) noexcept { return rank >= 0 && size > rank; }

/// Rank within the machine as srun says it, if it speaks of this rank.
int slurm_local_rank(const variables& v, int rank) noexcept {
  return v.slurm_step() && v.count("SLURM_PROCID") == rank ? v.count("SLURM_LOCALID") : -1;
}

/// FNV-1a over those variables that differ between jobs and between the ranks of one.
std::uint64_t job_of(const char* const* environment) noexcept {
  std::uint64_t h = 0xcbf29ce484222325u;
  for (const std::string_view name :
       {"OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE", "OMPI_MCA_ess_base_jobid", "PMIX_NAMESPACE",
        "PMIX_RANK", "PMIX_SERVER_URI2", "PMI_RANK", "PMI_SIZE", "PMI_FD", "PMI_PORT", "PMI_ID", "PMI_JOBID",
        "HYDI_CONTROL_FD", "SLURM_JOB_ID", "SLURM_STEP_ID", "SLURM_PROCID"}) {
    const char* value = find_variable(environment, name);
    for (const char c : std::string_view(value != nullptr ? value : ""))
      h = (h ^ static_cast<unsigned char>(c)) * 0x100000001b3u;
    h = (h ^ 0xffu) * 0x100000001b3u;
  }
  return h;
}

launcher captured_;
bool is_captured_ = false;  // first set before main, when there is one thread

}  // namespace

const char* find_variable(const char* const* environment, std::string_view name) noexcept {
  for (const char* const* e = environment; e != nullptr && *e != nullptr; ++e)
    if (std::strncmp(*e, name.data(), name.size()) == 0 && (*e)[name.size()] == '=')
      return *e + name.size() + 1;
  return nullptr;
}

launcher read_launcher(const char* const* environment) noexcept {
  const variables v{environment};
  // Open MPI's before PMIx, which it sets as well; and both launchers before Slurm, which may have started
  // their daemons.
  if (const int rank = v.count("OMPI_COMM_WORLD_RANK"), size = v.count("OMPI_COMM_WORLD_SIZE");
      is_place(rank, size)) {
    const int local_rank = v.count("OMPI_COMM_WORLD_LOCAL_RANK");
    const int local_size = v.count("OMPI_COMM_WORLD_LOCAL_SIZE");
    return {kind::open_mpi, rank, size, local_rank, local_size, "OMPI_COMM_WORLD_SIZE"};
  }
  if (const int rank = v.count("PMI_RANK"), size = v.count("PMI_SIZE"); is_place(rank, size)) {
    int local_rank = v.count("MPI_LOCALRANKID");
    if (local_rank < 0) local_rank = slurm_local_rank(v, rank);
    return {kind::mpich, rank, size, local_rank, v.count("MPI_LOCALNRANKS"), "PMI_SIZE"};
  }
  if (const int rank = v.count("PMIX_RANK"); rank >= 0) {
    int size = v.count("SLURM_STEP_NUM_TASKS");
    if (size < 0) size = v.count("SLURM_NTASKS");
    return {kind::pmix, rank, is_place(rank, size) ? size : -1, slurm_local_rank(v, rank), -1, "PMIX_RANK"};
  }
  // A batch script has SLURM_PROCID and SLURM_NTASKS, too, but is no step of several tasks.
  if (const int rank = v.count("SLURM_PROCID"), size = v.count("SLURM_STEP_NUM_TASKS");
      v.slurm_step() && size > 1 && is_place(rank, size))
    return {kind::slurm_without_mpi, rank, size, v.count("SLURM_LOCALID"), -1, "SLURM_STEP_NUM_TASKS"};
  return {};
}

const launcher& detect_launcher() noexcept {
  if (!is_captured_) {
    captured_ = read_launcher(environ);
    if (captured_.what != kind::none)
      if (const rank_mark mark = read_rank_mark(environ); mark.process != 0 && mark.process != getpid()) {
        captured_ = launcher{};
        captured_.evidence = "_GODWIT_RANK";
      }
    is_captured_ = true;
  }
  return captured_;
}

rank_mark read_rank_mark(const char* const* environment) noexcept {
  const char* value = find_variable(environment, rank_mark_name.substr(0, rank_mark_name.size() - 1));
  rank_mark mark;
  unsigned long long job = 0;
  if (value == nullptr || std::sscanf(value, "%ld.%llx.%lx", &mark.process, &job, &mark.personality) != 3 ||
      job != job_of(environment))
    return {};
  return mark;
}

void write_rank_mark(char* text, std::size_t bytes, const char* const* environment,
                     const rank_mark& mark) noexcept {
  std::snprintf(text, bytes, "%.*s%ld.%llx.%lx", static_cast<int>(rank_mark_name.size()),
                rank_mark_name.data(), mark.process, static_cast<unsigned long long>(job_of(environment)),
                mark.personality);
}

}  // namespace godwit::base
