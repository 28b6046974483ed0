// See mpi_session.hpp.
#include "runtime/mpi_session.hpp"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <set>
#include <stdexcept>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>
#include <utility>

#include "base/fixed_layout.hpp"
#include "base/launcher.hpp"
#include "base/clock.hpp"
#include "base/text.hpp"
#include "base/world.hpp"
#include "heap/heap.hpp"
#include "transport/mpi/load.hpp"

namespace godwit::runtime {

namespace {

bool speaks_for_first = false;

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
  const std::uint64_t mains_bytes = heap::c_library_bytes();
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
  if (world_.initialised_here) mains_bytes_ = mains_bytes;
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
  const std::uint64_t machine = machine_hash(mine.data());
  std::vector<std::uint64_t> machines(static_cast<std::size_t>(size()));
  check(mpi_->allgather(&machine, machines.data(), sizeof machine), "gather");
  machines_ = machine_table(machines);
  const std::vector<name> of_ranks = gather(mine);
  for (const int first : machines_.first_rank)
    host_names_.push_back(rank() == 0 ? of_ranks[static_cast<std::size_t>(first)] : name{});
  check(mpi_->bcast(host_names_.data(), host_names_.size() * sizeof mine, 0), "broadcast");
}

void mpi_session::tell_unequal_mains() {
  // Names of hosts, paths and what streams keep differ in programs that do the same in all ranks.
  constexpr std::uint64_t tolerance = 16 << 10;
  const std::vector<std::uint64_t> all = gather(std::exchange(mains_bytes_, 0));
  const auto other = std::find_if(all.begin(), all.end(), [&](std::uint64_t bytes) {
    return std::max(bytes, all[0]) - std::min(bytes, all[0]) > tolerance;
  });
  if (other == all.end()) return;
  std::fprintf(
      stderr,
      "godwit: heap: before the first run main had allocated %llu bytes in rank 0, and %llu in %s: a "
      "thread reads the copy of the rank where it is, so make what threads read alike in all ranks "
      "(docs/heap.md)\n",
      static_cast<unsigned long long>(all[0]), static_cast<unsigned long long>(*other),
      who(static_cast<int>(other - all.begin())).c_str());
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
  if (left_) throw_left();
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
  const std::uint64_t of_zero = share(root);
  const auto [gone, other, still_here] = first_where<3>({leaving, !leaving && root != of_zero, !leaving});
  if (leaving) return;
  if (gone < size()) {
    left_ = gone;
    speaks_for_first = still_here == rank();
    throw_left();
  }
  if (other < size())
    throw std::runtime_error("godwit: " + who(other) +
                             " calls run with another root thread than rank 0: every rank must make the same "
                             "calls of run in the same order");
}

bool speaks_instead_of_first_rank() noexcept { return speaks_for_first; }

void mpi_session::throw_left() const {
  throw std::runtime_error("godwit: " + who(*left_) +
                           " has ended without calling run here: every rank must call run equally often");
}

/// Spins at first, so that answers are quick; then lets others have the CPU.
void mpi_session::finish(transport::mpi::operation op, const char* what) const {
  const std::uint64_t start = base::now_ns();
  for (bool done = false; !done;) {
    check(mpi_->test(&op, &done, nullptr, nullptr, nullptr), what);
    if (done || base::now_ns() - start < 20'000) continue;
    base::give_way();
    if (base::now_ns() - start < 5'000'000) continue;
    base::nap(50'000);
  }
}

void mpi_session::send(const void* data, std::size_t bytes, int to, int tag) const {
  transport::mpi::operation op;
  check(mpi_->isend(data, bytes, to, tag, &op), "send");
  finish(op, "send");
}

void mpi_session::receive(void* data, std::size_t bytes, int from, int tag) const {
  transport::mpi::operation op;
  check(mpi_->irecv(data, bytes, from, tag, &op), "receive");
  finish(op, "receive");
}

std::string mpi_session::who(int rank) const {
  return "rank " + std::to_string(rank) + " (" + host_name(rank) + ")";
}

std::string mpi_session::said_by(int rank, std::string_view text) const {
  constexpr std::string_view prefix = "godwit: ";
  if (text.starts_with(prefix)) text.remove_prefix(prefix.size());
  return "godwit: " + who(rank) + ": " + std::string(text);
}

void mpi_session::together(const std::function<void()>& step) const {
  std::string problem;
  bool of_options = false;
  try {
    step();
  } catch (const std::invalid_argument& e) {
    problem = e.what();
    of_options = true;
  } catch (const std::exception& e) {  // all of them: the others wait for this rank's answer
    problem = e.what();
  }
  agree(problem, of_options);
}

void mpi_session::agree(const std::string& problem, bool of_options) const {
  const auto [r, wrong] = first_where<2>({!problem.empty(), of_options && !problem.empty()});
  if (r == size()) return;
  const std::string text = said_by(r, share_bytes(problem, r));
  if (r == wrong) throw std::invalid_argument(text);
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
    s->meet(true);
  } catch (const std::runtime_error&) {
  }
  s->mpi_->finalize();
}

}  // namespace godwit::runtime
