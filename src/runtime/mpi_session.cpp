// See mpi_session.hpp.
#include "runtime/mpi_session.hpp"

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <set>
#include <stdexcept>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/fixed_layout.hpp"
#include "base/launcher.hpp"
#include "base/clock.hpp"
#include "base/text.hpp"
#include "base/world.hpp"
#include "transport/mpi/load.hpp"

namespace godwit::runtime {

namespace {

mpi_session* session_ = nullptr;

/// Processes with equal values can open each other's memory: same kernel, same process numbers, same network.
std::uint64_t machine_hash(const char* host_name) {
  std::string all = host_name;
  if (const std::string id = base::first_line("/proc/sys/kernel/random/boot_id"); !id.empty())
    all += '/' + id;
  for (const char* space : {"/proc/self/ns/net", "/proc/self/ns/pid", "/proc/self/ns/uts"}) {
    struct stat s {};
    if (stat(space, &s) == 0) all += '/' + std::to_string(s.st_ino);
  }
  std::uint64_t h = 0xcbf29ce484222325ull;
  for (const char c : all) h = (h ^ static_cast<unsigned char>(c)) * 0x100000001b3ull;
  return h;
}

}  // namespace

mpi_session& mpi_session::get(const options& opts) {
  if (session_ == nullptr) {
    auto* s = new mpi_session;  // lives until the process ends
    try {
      s->start(opts);
    } catch (...) {
      if (s->mpi_ == nullptr) delete s;
      throw;
    }
  }
  return *session_;
}

void mpi_session::check(int code, const char* what) const {
  if (code == 0) return;
  char text[512];
  mpi_->error_text(code, text, sizeof text);
  throw std::runtime_error(std::string("godwit: MPI failed to ") + what + ": " + text);
}

void mpi_session::start(const options& opts) {
  const base::launcher& l = base::detect_launcher();
  using kind = base::launcher::kind;
  const auto hint = l.what == kind::open_mpi ? transport::mpi::family_hint::openmpi
                    : l.what == kind::mpich  ? transport::mpi::family_hint::mpich
                                             : transport::mpi::family_hint::none;
  std::string error;
  const auto* mpi = transport::mpi::load_component(opts.mpi, hint, error);
  if (mpi == nullptr) throw std::runtime_error("godwit: " + error);
  mpi_ = mpi;
  check(mpi->init(&world_), "start");
  if (l.what != kind::none && l.size > 1 && world_.size == 1)
    throw std::runtime_error("godwit: the launcher (" + std::string(l.evidence) + ") started " +
                             std::to_string(l.size) + " ranks, but " + world_.library +
                             " knows of one only: launcher and MPI library do not belong together. Start "
                             "with that library's own mpirun, or choose another component with GODWIT_MPI");
  // "Open MPI v4.1.4, package: ..., ident: ...": the first part says it.
  if (char* comma = std::strchr(world_.library, ','); comma != nullptr) *comma = '\0';
  session_ = this;
  on_exit(at_exit, this);

  pid_ = getpid();
  meet_machines();
  // MPI is used from the thread that calls run, only. One thread needs no level; another than main's does.
  constexpr int serialized = 2;
  const bool main_thread = getpid() == static_cast<pid_t>(syscall(SYS_gettid));
  agree(!world_.initialised_here && !main_thread && world_.thread_level < serialized
            ? "run was called in another thread than main's, and the program started MPI with less than "
              "MPI_THREAD_SERIALIZED: call run in the main thread, or MPI_Init_thread with that level"
            : "");
  compare_layouts();
}

/// A word per rank goes to all, a name per machine.
void mpi_session::meet_machines() {
  name mine{};
  gethostname(mine.data(), mine.size() - 1);
  machines_ = machine_table(gather(machine_hash(mine.data())));
  std::vector<name> of_ranks(rank() == 0 ? static_cast<std::size_t>(size()) : 0);
  check(mpi_->gather(mine.data(), of_ranks.data(), sizeof mine, 0), "gather");
  for (const int first : machines_.first_rank)
    host_names_.push_back(rank() == 0 ? of_ranks[static_cast<std::size_t>(first)] : name{});
  check(mpi_->bcast(host_names_.data(), host_names_.size() * sizeof mine, 0), "broadcast");
}

void mpi_session::reduce(std::span<std::uint64_t> words, transport::mpi::reduction how) const {
  check(mpi_->allreduce(words.data(), words.size(), how), "reduce");
}

/// As a rule all agree, which takes a few words; else those layouts are exchanged that the message names.
void mpi_session::compare_layouts() const {
  base::rank_layout mine{world_.rank, {}, base::own_layout()};
  std::strncpy(mine.host, host_name(world_.rank), sizeof mine.host);
  const auto words = base::words_to_compare(mine.is);
  const auto of_zero = share(words);
  const std::array<int, 5> named = first_where(base::reasons_to_name(mine.is, of_zero));
  if (named[0] == world_.size && named[1] == world_.size) return;  // neither layout nor main's stack differs
  std::set<int> ranks = {0};
  for (const int r : named)
    if (r < world_.size) ranks.insert(r);
  std::vector<base::rank_layout> some;
  for (const int r : ranks) some.push_back(share(mine, r));
  const std::string difference = base::compare_layouts(some);
  if (!difference.empty()) throw std::runtime_error("godwit: " + difference);
  // A warning, not an error: it does no harm to programs whose threads take values.
  const std::string stacks = base::compare_main_stacks(some);
  if (!stacks.empty() && world_.rank == 0) std::fprintf(stderr, "godwit: %s\n", stacks.c_str());
}

void mpi_session::meet(bool leaving, std::uintptr_t root) {
  transport::mpi::operation barrier;
  check(mpi_->barrier_begin(&barrier), "begin a barrier");
  const std::uint64_t start = base::now_ns();
  bool told = leaving;
  std::uint64_t pause_ns = 10'000;
  for (bool done = false; !done;) {
    check(mpi_->test(&barrier, &done, nullptr, nullptr, nullptr), "complete a barrier");
    if (done) break;
    const std::uint64_t waited = base::now_ns() - start;
    if (waited < 50'000) continue;
    base::nap(pause_ns);
    if (pause_ns < 1'000'000) pause_ns *= 2;
    if (!told && waited > 20'000'000'000) {
      told = true;
      std::fprintf(stderr,
                   "godwit: %s has waited in run for 20 s: every rank must call run equally often; "
                   "some rank is late or does not come\n",
                   who(world_.rank).c_str());
    }
  }
  struct intent {
    std::uint64_t leaving, root;
  };
  const intent mine{leaving ? 1u : 0u, root};
  const std::vector<intent> all = gather(mine);
  if (leaving) return;
  for (int r = 0; r < world_.size; ++r)
    if (all[static_cast<std::size_t>(r)].leaving != 0) {
      left_ = true;
      throw std::runtime_error("godwit: " + who(r) +
                               " has ended without calling run here: every rank must call run equally often");
    }
  for (int r = 1; r < world_.size; ++r)
    if (all[static_cast<std::size_t>(r)].root != all[0].root)
      throw std::runtime_error(
          "godwit: " + who(r) +
          " calls run with another root thread than rank 0: every rank must make the same calls "
          "of run in the same order");
}

std::string mpi_session::who(int rank) const {
  return "rank " + std::to_string(rank) + " (" + host_name(rank) + ")";
}

std::string mpi_session::said_by(int rank, std::string_view text) const {
  constexpr std::string_view prefix = "godwit: ";
  if (text.starts_with(prefix)) text.remove_prefix(prefix.size());
  return "godwit: " + who(rank) + ": " + std::string(text);
}

void mpi_session::agree(const std::string& problem, bool of_options) const {
  enum class answer : int { good, bad_options, bad };
  const std::vector<answer> all = gather(problem.empty() ? answer::good
                                         : of_options    ? answer::bad_options
                                                         : answer::bad);
  const auto first = std::find_if(all.begin(), all.end(), [](answer a) { return a != answer::good; });
  if (first == all.end()) return;
  const auto r = static_cast<int>(first - all.begin());
  const std::string text = said_by(r, share_bytes(problem, r));
  if (*first == answer::bad_options) throw std::invalid_argument(text);
  throw std::runtime_error(text);
}

const transport::mpi::link_quality& mpi_session::link(int partner, bool with_rma) {
  if (!link_ || (with_rma && !link_with_rma_)) {
    link_ = transport::mpi::measure_link(*mpi_, world_.rank, partner, with_rma);
    link_with_rma_ = with_rma;
  }
  return *link_;
}

// Ranks leave together, so that one which ends early meets those that wait for it in run.
void mpi_session::at_exit(int, void* self) {
  auto* s = static_cast<mpi_session*>(self);
  if (s->tainted_ || getpid() != s->pid_) return;
  try {
    if (!s->left_) s->meet(true);
  } catch (const std::runtime_error&) {
  }
  s->mpi_->finalize();
}

}  // namespace godwit::runtime
