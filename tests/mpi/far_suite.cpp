// Runs the suite of far_checks.hpp on every transport.
//
//   far_suite near WORKERS          forked workers, shared memory only; no MPI
//   far_suite WAY [apart|pairs]...  under an MPI launcher: rma, server, assist, am, rma_atomics; one worker
//   per rank.
//                                   apart: each rank is a host; pairs: two ranks are one, and share memory.
//                                   Default: apart, and pairs if there are more than two ranks
// Each pass is a run of its own, of a new epoch, as in src/runtime/run_mpi.cpp: every rank forks its worker,
// which runs the suite, and is its companion. rma_atomics: rma with atomics by RMA too, on words that no CPU
// writes; always apart. Prints "far_suite ok" on rank 0. A check that fails says its name, way and rank, and
// ends the job. FAR_SUITE_SEED=n, FAR_SUITE_TIMES=1.
#include "far_checks.hpp"

#include "transport/far/fabric.hpp"
#include "transport/mpi/companion.hpp"
#include "transport/mpi/load.hpp"

#include <bit>
#include <csignal>
#include <cstdlib>
#include <ctime>
#include <exception>
#include <functional>
#include <memory>
#include <new>
#include <optional>
#include <string_view>
#include <sys/prctl.h>
#include <sys/wait.h>

namespace {

using namespace far_checks;
namespace mpi = godwit::transport::mpi;

constexpr unsigned give_up_after_s = 300;  // seconds, but on a busy machine or in an emulator

shm::layout plan_segment() { return shm::plan(4096, sizeof(far::words), 0, MiB, sizeof(area) + 64 * KiB); }
area* common_area(const shm::segment& s) { return reinterpret_cast<area*>(s.common() + s.where().heap); }
far::words* common_words(const shm::segment& s) {
  return reinterpret_cast<far::words*>(s.common() + s.where().words);
}

/// A place by any transport that meets the concept.
template <one_sided T>
class one_sided_place : public place {
 public:
  explicit one_sided_place(const T& t) : t_(t) {}
  uint64_t load(worker_no w, const word* at) override {
    return t_.remote_load(w, at, std::memory_order_acquire);
  }
  void store(worker_no w, word* at, uint64_t v) override {
    t_.remote_store(w, at, v, std::memory_order_release);
  }
  uint64_t exchange(worker_no w, word* at, uint64_t v) override { return t_.remote_exchange(w, at, v); }
  bool compare_exchange(worker_no w, word* at, uint64_t& expected, uint64_t v) override {
    return t_.remote_compare_exchange(w, at, expected, v);
  }
  uint64_t fetch_add(worker_no w, word* at, uint64_t v) override { return t_.remote_fetch_add(w, at, v); }
  void get(worker_no w, void* to, const void* from, size_t n) override { t_.remote_get(w, to, from, n); }
  void put(worker_no w, void* to, const void* from, size_t n) override { t_.remote_put(w, to, from, n); }
  void fence(worker_no) override { t_.remote_fence(); }
  const far::entry& call(worker_no, uint64_t, uint64_t, uint64_t) override { std::abort(); }
  void cast(worker_no, uint64_t, uint64_t) override { std::abort(); }

 protected:
  const T& t_;
};

class far_place final : public one_sided_place<fabric> {
 public:
  far_place(const fabric& f, const shm::segment& memory, bool serves_itself)
      : one_sided_place(f), memory_(memory), serves_itself_(serves_itself) {}
  void fence(worker_no w) override {
    t_.remote_fence();
    if (!t_.is_near(w)) t_.far().fence(w);
  }
  bool calls(worker_no w) const override { return !t_.is_near(w); }
  const far::entry& call(worker_no w, uint64_t number, uint64_t a, uint64_t b) override {
    return t_.far().call(w, number, a, b);
  }
  void cast(worker_no w, uint64_t number, uint64_t a) override { t_.far().cast(w, number, a); }

  /// As sched::far_inbox.
  void poll() override {
    if (!serves_itself_) return;
    for (;;) {
      far::entry& e = common_words(memory_)->inbox[next_ % far::inbox_entries];
      if (e.now.load(std::memory_order_acquire) != far::state::posted) return;  // FA1
      ++next_;
      if (e.head.what == far::op::call || e.head.what == far::op::cast) {
        byte* big = carry_out(memory_, common_area(memory_), e, [&](size_t) { return free_room(); });
        e.head.address = reinterpret_cast<uint64_t>(big);
        e.head.more[0] = big != nullptr ? 1 : 0;
      } else {
        far::execute_on(memory_, e.head, e.data);
      }
      e.now.store(far::state::done, std::memory_order_release);  // FA2
    }
  }
  bool asked_for(const word* at) const override {
    for (auto& e : common_words(memory_)->inbox)
      if (e.now.load(std::memory_order_acquire) == far::state::posted &&
          e.head.address == reinterpret_cast<uint64_t>(at))
        return true;
    return false;
  }

 private:
  byte* free_room() {
    for (room& r : common_area(memory_)->rooms)
      if (r.used.load(std::memory_order_acquire) == 0) {
        r.used.store(1, std::memory_order_relaxed);
        return r.bytes;
      }
    std::fprintf(stderr, "far_suite: no room left: answers that have left are not released\n");
    _exit(1);
  }
  const shm::segment& memory_;
  const bool serves_itself_;
  uint32_t next_ = 0;
};

// ---------------------------------------------------------------- a worker's process

setting set;

void too_long(int) {
  char text[256];
  const int n =
      std::snprintf(text, sizeof text, "far_suite: no end of check '%s', way %s, rank %u, seed %llu\n",
                    now_checking, set.name.c_str(), set.me, static_cast<unsigned long long>(set.seed));
  [[maybe_unused]] const auto written = write(2, text, static_cast<size_t>(n));
  _exit(1);
}

pid_t fork_worker(shm::segment& memory, const std::function<void(place&)>& with,
                  const std::function<std::unique_ptr<place>()>& make) {
  std::fflush(nullptr);
  const pid_t child = fork();
  if (child != 0) return child;
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  std::signal(SIGALRM, too_long);
  alarm(give_up_after_s);
  memory.adopt(worker_no{set.me});
  with(*make());
  _exit(0);
}

void run_suite(place& p, const shm::segment& memory) { suite(p, *common_area(memory), set).run(); }

int near(uint32_t workers) {
  shm::segment memory;
  memory.create(workers, plan_segment());
  set.name = "near";
  set.workers = workers;
  set.rounds_percent = 2000;
  for (set.me = 0; set.me < workers; ++set.me)
    fork_worker(
        memory, [&](place& p) { run_suite(p, memory); },
        [&] { return std::make_unique<one_sided_place<shm::segment>>(memory); });
  int bad = 0;
  for (uint32_t i = 0; i < workers; ++i) {
    int status = 0;
    wait(&status);
    if (status != 0) bad = 1;  // the others may wait for it: their parent's end is theirs
    if (bad != 0) break;
  }
  if (bad == 0) std::puts("far_suite ok");
  return bad;
}

// ---------------------------------------------------------------- a rank: companion of its worker

const mpi::component* port = nullptr;
mpi::world world;

[[noreturn]] void fail(const std::string& text) {
  std::fprintf(stderr, "far_suite: way %s, rank %d: %s\n", set.name.c_str(), world.rank, text.c_str());
  std::fflush(nullptr);
  port->abort(1);
  _exit(1);
}
void ok(int code, const char* what) {
  if (code == 0) return;
  char text[512];
  port->error_text(code, text, sizeof text);
  fail(std::string(what) + ": " + text);
}

class services final : public mpi::host_services {
 public:
  services(const shm::segment& memory, const bool& alive) : memory_(memory), alive_(alive) {}
  byte* carry_out(far::entry& e, std::unique_ptr<byte[]>& room) noexcept override {
    return far_checks::carry_out(memory_, common_area(memory_), e, [&](size_t n) {
      room.reset(new byte[n]);
      return room.get();
    });
  }
  bool runs(worker_no) noexcept override { return alive_; }
  void alert(worker_no w) noexcept override {
    far::words& words = *memory_.at(w, common_words(memory_));
    std::atomic_thread_fence(std::memory_order_seq_cst);
    if (words.waiting.load(std::memory_order_relaxed) == 0) return;
    words.answers.fetch_add(1, std::memory_order_release);
    far::wake_sleepers(words.answers);
  }
  void release_room(worker_no, byte* bytes) noexcept override {
    reinterpret_cast<room*>(bytes - offsetof(room, bytes))->used.store(0, std::memory_order_release);
  }

 private:
  const shm::segment& memory_;
  const bool& alive_;
};

/// One pass: what src/runtime/run_mpi.cpp does for a run.
class pass {
 public:
  pass(mpi::way how, uint32_t ranks_per_host, bool atomics, uint32_t epoch)
      : how_(how), per_host_(ranks_per_host), atomics_(atomics), epoch_(epoch) {
    set.name =
        std::string(name_of(how)) + (atomics ? " with atomics" : "") + (per_host_ == 1 ? " apart" : " pairs");
    set.me = me();
    set.workers = n();
    set.step = n() > per_host_ ? per_host_ : 1;
    set.serves_itself = how == mpi::way::am;
    set.no_near_atomics = atomics;
    set.rounds_percent = how == mpi::way::rma ? 40 : 100;  // a store is a round trip there
  }
  void operator()() {
    share_memory();
    if (how_ == mpi::way::rma)
      ok(port->win_create(memory_.at(worker_no{me()}, memory_.common()), memory_.where().span, &window_),
         "window");
    const worker_no bell_of{how_ == mpi::way::server ? near().first : me()};
    child_ = fork_worker(
        memory_, [&](place& p) { run_suite(p, memory_); },
        [&] {
          auto* words = common_words(memory_);
          fabric_.init(memory_);
          auto p = std::make_unique<far_place>(fabric_, memory_, how_ == mpi::way::am);
          fabric_.far().init(
              memory_, worker_no{me()}, words, memory_.at(bell_of, words),
              [](void* place) { static_cast<far_place*>(place)->poll(); }, p.get(), me() % 2 == 1);
          return std::unique_ptr<place>(std::move(p));
        });
    if (child_ < 0) fail("cannot fork");
    supervise();
    for (room& r : memory_.at(worker_no{me()}, common_area(memory_))->rooms)
      if (r.used.load() != 0) fail("the room of an answer was not released");
    if (how_ == mpi::way::rma) ok(port->win_free(&window_), "free the window");
    memory_.destroy();
  }

 private:
  uint32_t me() const { return static_cast<uint32_t>(world.rank); }
  uint32_t n() const { return static_cast<uint32_t>(world.size); }
  uint32_t leader_of(uint32_t rank) const { return rank / per_host_ * per_host_; }
  shm::near_range near() const {
    const uint32_t first = leader_of(me());
    return {first, std::min(per_host_, n() - first)};
  }

  void share_memory() {
    const auto l = plan_segment();
    struct {
      char path[64];
      uint32_t free_bases;
    } info{{}, 0};
    if (leader_of(me()) == me()) {
      memory_.make_file(near(), l);
      std::snprintf(info.path, sizeof info.path, "%s", memory_.file_path().c_str());
    }
    info.free_bases = shm::segment::free_bases(shm::segment::total_bytes(near().count, l));
    std::vector<decltype(info)> all(n());
    ok(port->allgather(&info, all.data(), sizeof info), "gather");
    uint32_t free = ~0u;
    for (const auto& i : all) free &= i.free_bases;
    if (free == 0) fail("no range of addresses is free in all ranks");
    if (leader_of(me()) != me()) memory_.open_file(near(), l, all[leader_of(me())].path);
    memory_.map(static_cast<unsigned>(std::countr_zero(free)));
    new (memory_.at(worker_no{me()}, common_words(memory_))) far::words;
    ok(port->allgather(&info, all.data(), sizeof info),
       "gather");  // everybody's words are valid from here on
  }

  mpi::companion_setup companion_setup() {
    mpi::companion_setup c;
    c.mpi = port;
    c.rank = world.rank;
    c.size = world.size;
    c.epoch = epoch_;
    c.how = how_;
    c.rma_atomics = atomics_;
    c.memory = &memory_;
    c.words = common_words(memory_);
    c.services = &services_;
    if (how_ != mpi::way::server)
      c.served = {me(), 1};
    else if (leader_of(me()) == me())
      c.served = near();
    for (uint32_t r = 0; r < n(); ++r) {
      answers_for_.push_back(static_cast<int>(how_ == mpi::way::server ? leader_of(r) : r));
      first_worker_.push_back(r);
    }
    c.answers_for = answers_for_;
    c.first_worker = first_worker_;
    c.window = window_;
    return c;
  }

  void look_at_child() {
    int status = 0;
    if (!alive_ || waitpid(child_, &status, WNOHANG) != child_) return;
    alive_ = false;
    if (status != 0) fail("its worker ended with status " + std::to_string(status));
  }

  void supervise() {
    mpi::companion c(companion_setup());
    constexpr uint32_t shortest_sleep_us = 20, longest_sleep_us = 1000;
    uint32_t pause = shortest_sleep_us;
    uint64_t looked = 0;
    while (alive_) {
      const bool any = c.turn();
      if (c.told().status != 0) fail("told of a failure: " + c.told().message);
      const uint64_t now = now_ns();
      if (!any || now - looked > 500'000) {
        looked = now;
        look_at_child();
      }
      if (any) {
        pause = shortest_sleep_us;
      } else if (c.waiting() || c.sending()) {
        sched_yield();
      } else {
        c.sleep(pause);
        pause = std::min(pause * 2, longest_sleep_us);
      }
    }
    mpi::operation barrier;
    ok(port->barrier_begin(&barrier), "begin a barrier");
    for (bool done = false; !done || c.sending();) {
      const bool any = c.turn();
      if (!done) ok(port->test(&barrier, &done, nullptr, nullptr, nullptr), "complete a barrier");
      if (!any && !done) c.sleep(shortest_sleep_us);
    }
  }

  const mpi::way how_;
  const uint32_t per_host_;
  const bool atomics_;
  const uint32_t epoch_;
  shm::segment memory_;
  fabric fabric_;
  mpi::rma_window window_{};
  std::vector<int> answers_for_;
  std::vector<uint32_t> first_worker_;
  pid_t child_ = -1;
  bool alive_ = true;
  services services_{memory_, alive_};
};

std::optional<mpi::way> way_of(std::string_view name) {
  for (const auto w : {mpi::way::rma, mpi::way::server, mpi::way::assist, mpi::way::am})
    if (name == name_of(w)) return w;
  return std::nullopt;
}

int far_away(mpi::way how, bool atomics, bool apart, bool pairs) {
  setenv("OMPI_MCA_osc", "pt2pt", 0);  // what the library does where there is no RDMA network
  std::string error;
  const auto hint = getenv("OMPI_COMM_WORLD_SIZE") != nullptr ? mpi::family_hint::openmpi
                    : getenv("PMI_SIZE") != nullptr           ? mpi::family_hint::mpich
                                                              : mpi::family_hint::none;
  const char* family = getenv("GODWIT_MPI");
  port = mpi::load_component(family != nullptr ? family : "", hint, error);
  if (port == nullptr) {
    std::fprintf(stderr, "far_suite: %s\n", error.c_str());
    return 1;
  }
  ok(port->init(&world), "init");
  if (world.size < 2 || world.size > static_cast<int>(most_workers)) fail("wants 2 to 8 ranks");
  ok(port->bcast(&set.seed, sizeof set.seed, 0), "broadcast");
  uint32_t epoch = 0;
  try {
    if (apart || atomics) pass(how, 1, atomics, ++epoch)();
    if (pairs && !atomics && world.size > 2) pass(how, 2, false, ++epoch)();
  } catch (const std::exception& e) {
    fail(e.what());
  }
  ok(port->finalize(), "finalize");
  if (world.rank == 0) std::puts("far_suite ok");
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  const std::string_view first = argc > 1 ? argv[1] : "";
  const char* seed = getenv("FAR_SUITE_SEED");
  set.seed = seed != nullptr ? std::strtoull(seed, nullptr, 0) : now_ns() % 1'000'000;
  if (first == "near" && argc == 3) return near(static_cast<uint32_t>(std::atoi(argv[2])));
  bool apart = argc < 3, pairs = argc < 3;
  const bool atomics = first == "rma_atomics";
  const auto how = way_of(atomics ? "rma" : first);
  bool good = how.has_value();
  for (int i = 2; i < argc; ++i) {
    const std::string_view mode = argv[i];
    apart = apart || mode == "apart";
    pairs = pairs || mode == "pairs";
    good = good && (mode == "apart" || mode == "pairs");
  }
  if (good) return far_away(*how, atomics, apart, pairs);
  std::fprintf(stderr, "usage: far_suite near WORKERS | rma|rma_atomics|server|assist|am [apart] [pairs]\n");
  return 2;
}
