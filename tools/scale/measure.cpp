// What a machine file of the simulator is fitted from: measures this machine, one kind of thing a call.
//
//   godwit-measure os|steal|yield|trip|network|rma [ROUNDS]
//
// Prints lines `name value`: nanoseconds, medians over ROUNDS. steal, yield and trip are programs on
// the library and run in the simulator as well (GODWIT_SUBSTRATE=sim): what cannot be measured alone is what
// makes the simulated time equal the real one. trip, network and rma want two hosts: mpirun -n 2, with
// GODWIT_HOSTS=ranks on one machine. Called by godwit-scale --fit, which does the arithmetic.
// Document: docs/scale.md, "A file for this machine". Test: tests/scale/fit_test.py.

#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <charconv>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <godwit/godwit.hpp>
#include <godwit/sim.hpp>
#include <memory>
#include <stdexcept>
#include <string>
#include <system_error>
#include <thread>
#include <vector>

#include "base/clock.hpp"
#include "base/launcher.hpp"
#include "base/world.hpp"
#include "runtime/companion_rest.hpp"
#include "sim/user_clock.hpp"
#include "transport/far/port.hpp"
#include "transport/mpi/load.hpp"

namespace {

namespace gw = godwit;
using godwit::base::fast_ns;
using words = std::vector<double>;

/// What the processes of a measurement share.
struct board {
  alignas(64) std::atomic<std::uint64_t> turn;
  alignas(64) gw::base::wait_word word;
  alignas(64) std::atomic<std::uint64_t> stamp;
  alignas(64) std::atomic<std::uint32_t> stop;
  alignas(64) std::atomic<std::uint32_t> samples;
  alignas(64) std::uint64_t ns[1 << 16];
};

board& shared() {
  static auto* const all = [] {
    void* at = mmap(nullptr, sizeof(board), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (at == MAP_FAILED) throw std::runtime_error("mmap of a shared page");
    return new (at) board();
  }();
  return *all;
}

double median(words v) {
  if (v.empty()) throw std::runtime_error("nothing was measured");
  std::ranges::sort(v);
  return v[v.size() / 2];
}
void print(const char* name, double value) { std::printf("%s %.2f\n", name, value); }

/// The caller's clock: virtual in the simulator.
std::uint64_t clock_ns() noexcept { return gw::detail::simulated ? gw::sim::now_ns() : fast_ns(); }
/// The caller computes for so long.
void compute_for(std::uint64_t ns) noexcept {
  if (gw::detail::simulated) return gw::sim::charge(ns);
  for (const std::uint64_t until = fast_ns() + ns; fast_ns() < until;) gw::base::pause();
}
/// The caller has looked in vain.
void look_again() noexcept {
  if (gw::detail::simulated)
    gw::sim::charge(20);
  else
    gw::base::pause();
}

/// Another process does f meanwhile.
class other_process {
 public:
  explicit other_process(const std::function<void()>& f) : pid_(fork()) {
    if (pid_ < 0) throw std::runtime_error("fork failed");
    if (pid_ > 0) return;
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    f();
    _exit(0);
  }
  other_process(const other_process&) = delete;
  other_process& operator=(const other_process&) = delete;
  ~other_process() {
    kill(pid_, SIGKILL);
    waitpid(pid_, nullptr, 0);
  }
  pid_t pid() const noexcept { return pid_; }

 private:
  const pid_t pid_;
};

// ---- the operating system and the caches ----

/// A cache line from one process to another that looks at it all the time, one way; and how long
/// who waits for an answer looks before it sleeps.
void measure_line(int rounds) {
  board& b = shared();
  const auto n = static_cast<std::uint64_t>(rounds) * 10;
  b.turn = 0;
  const auto wait_for = [&](std::uint64_t value) {
    while (b.turn.load(std::memory_order_acquire) != value) gw::base::pause();
  };
  const other_process partner([&] {
    for (std::uint64_t r = 0; r < n; ++r) {
      wait_for(2 * r + 1);
      b.turn.store(2 * r + 2, std::memory_order_release);
    }
  });
  words ns;
  for (std::uint64_t r = 0; r < n; ++r) {
    const std::uint64_t before = fast_ns();
    b.turn.store(2 * r + 1, std::memory_order_release);
    wait_for(2 * r + 2);
    ns.push_back(static_cast<double>(fast_ns() - before) / 2);
  }
  print("line_ns", median(ns));
  ns.clear();
  for (int r = 0; r < rounds; ++r) {
    const std::uint64_t before = fast_ns();
    for (int i = 0; i < gw::transport::far::spins_before_sleep; ++i) {
      static_cast<void>(b.turn.load(std::memory_order_acquire));
      gw::base::pause();
    }
    ns.push_back(static_cast<double>(fast_ns() - before));
  }
  print("spin_ns", median(ns));
}

/// Until a process that sleeps runs again.
void measure_wake(int rounds) {
  board& b = shared();
  b.word = 0;
  b.samples = 0;
  const auto n = static_cast<std::uint32_t>(rounds);
  const other_process sleeper([&] {
    for (std::uint32_t r = 0; r < n; ++r) {
      while (b.word.load() == r) gw::base::wait_on(b.word, r);
      b.ns[r] = fast_ns() - b.stamp.load();
      b.samples = r + 1;
    }
  });
  words ns;
  for (std::uint32_t r = 0; r < n; ++r) {
    compute_for(50'000);  // it sleeps by now
    b.stamp = fast_ns();
    b.word.store(r + 1);
    gw::base::wake(b.word, 1);
    while (b.samples.load() != r + 1) gw::base::pause();
    ns.push_back(static_cast<double>(b.ns[r]));
  }
  print("wake_ns", median(ns));
}

/// Until a process that computes is in its signal handler.
void measure_signal(int rounds) {
  board& b = shared();
  b.samples = 0;
  struct sigaction action {};
  action.sa_handler = [](int) {
    shared().ns[shared().samples.load()] = fast_ns() - shared().stamp.load();
    shared().samples.fetch_add(1);
  };
  action.sa_flags = SA_RESTART;
  sigaction(SIGURG, &action, nullptr);
  const other_process computes([] { compute_for(~std::uint64_t{0} / 2); });
  words ns;
  compute_for(1'000'000);  // it has begun by now
  for (std::uint32_t r = 0; r < static_cast<std::uint32_t>(rounds); ++r) {
    compute_for(20'000);
    b.stamp = fast_ns();
    gw::base::interrupt(computes.pid(), SIGURG);
    while (b.samples.load() != r + 1) gw::base::pause();
    ns.push_back(static_cast<double>(b.ns[r]));
  }
  signal(SIGURG, SIG_DFL);
  print("signal_ns", median(ns));
}

/// What a short sleep of a companion takes beyond its time, beside workers that compute on all CPUs.
void measure_nap(int rounds) {
  std::vector<std::unique_ptr<other_process>> workers;
  for (unsigned i = 0; i < std::max(1u, std::thread::hardware_concurrency()); ++i)
    workers.push_back(std::make_unique<other_process>([] { compute_for(~std::uint64_t{0} / 2); }));
  prctl(PR_SET_TIMERSLACK, 1000ul);
  const gw::runtime::short_turns turns;
  words ns;
  for (int r = 0; r < rounds; ++r) {
    constexpr std::uint64_t asked = gw::runtime::companion_rest::shortest_us * 1000;
    const std::uint64_t before = fast_ns();
    gw::base::wait_on(shared().word, shared().word.load(), asked);
    ns.push_back(static_cast<double>(fast_ns() - before) - asked);
  }
  prctl(PR_SET_TIMERSLACK, 0ul);
  print("nap_ns", median(ns));
}

[[gnu::noinline]] int fib(int n) { return n < 2 ? n : fib(n - 1) + fib(n - 2); }

/// Instructions of plain calls in a nanosecond; nothing if this process may not count them.
void measure_instructions(int rounds) {
  std::unique_ptr<gw::sim::perf_counter> counter;
  try {
    counter = gw::sim::instructions();
  } catch (const std::system_error&) {
    return;
  }
  words rates;
  for (int r = 0; r < rounds; ++r) {
    const std::uint64_t before = fast_ns(), retired = counter->read();
    const volatile int result = fib(18);
    static_cast<void>(result);
    rates.push_back(static_cast<double>(counter->read() - retired) / static_cast<double>(fast_ns() - before));
  }
  print("instructions_per_ns", median(rates));
}

void measure_os(int rounds) {
  gw::base::prepare_fast_clock();
  rounds = std::min(rounds, 1 << 16);
  measure_line(rounds);
  measure_wake(rounds);
  measure_signal(rounds);
  measure_nap(rounds);
  measure_instructions(rounds);
}

// ---- programs on the library: real, or in the simulator ----

/// As bench/micro/steal: the thread is stolen again and again, by the one of two workers that has nothing.
[[gnu::noinline]] void ping_pong(board* b, int rounds) {
  for (int i = 1; i <= rounds; ++i) {
    compute_for(5000 + static_cast<std::uint64_t>(i) * 2654435769 % 1024);  // the other one looks by now
    const std::uint64_t pushed = clock_ns();
    auto child = gw::spawn([b, i] {
      while (b->turn.load(std::memory_order_acquire) != static_cast<std::uint64_t>(i)) look_again();
    });
    b->ns[i - 1] = clock_ns() - pushed;
    b->turn.store(static_cast<std::uint64_t>(i), std::memory_order_release);
    while (!child.ready()) look_again();
    child.join();
  }
}

/// From a spawn to the first instruction of its continuation at the thief; and what the thief's counters say.
void measure_steal(int rounds) {
  board* const b = &shared();
  gw::run<int>([=] {
    gw::spawn([=] { ping_pong(b, rounds); }).join();
    return 0;
  });
  words ns;
  for (int i = rounds / 8; i < rounds; ++i) ns.push_back(static_cast<double>(b->ns[i]));
  std::uint64_t steals = 0, sum = 0;
  for (const gw::worker_stats& w : gw::last_run_stats()) steals += w.steals_timed, sum += w.steal_ns;
  if (steals == 0) throw std::runtime_error("nothing was stolen: are there two CPUs?");
  print("latency_ns", median(ns));
  print("steal_ns", static_cast<double>(sum) / static_cast<double>(steals));
}

/// Two threads of one worker go on by turns: each time one is suspended and one resumed.
void measure_yield(int rounds) {
  const auto yields = [=] {
    for (int i = 0; i < rounds; ++i) {
      gw::yield();
      gw::sim::charge(1);  // else who only yields looks less and less often there
    }
    return 0;
  };
  const auto time = gw::run<std::uint64_t>([=] {
    auto other = gw::spawn(yields);
    const std::uint64_t before = clock_ns();
    yields();
    const std::uint64_t ns = clock_ns() - before;
    other.join();
    return ns;
  });
  print("yield_ns", static_cast<double>(time) / rounds / 2);
}

/// Atomic additions to a word of global memory that lies with the last worker or with the first, where root
/// is: with two hosts that is the other host's memory, or the own one's by a call.
double median_addition(bool far, int rounds) {
  return gw::run<double>([=] {
    const std::uint64_t count = gw::worker_count() * (std::uint64_t{1} << 16);  // blocks are large
    const auto at = gw::allocate<std::uint64_t>(count, gw::distribution::blocked());
    const auto word = at + static_cast<std::ptrdiff_t>(far ? count - 1 : 0);
    const int times = far ? 1 : 64;
    words ns;
    for (int i = 0; i < rounds; ++i) {
      const std::uint64_t before = clock_ns();
      for (int k = 0; k < times; ++k) gw::atomic_fetch_add(word, std::uint64_t{1});
      ns.push_back(static_cast<double>(clock_ns() - before) / times);
    }
    gw::deallocate(at, count);
    return median(ns);
  });
}

void measure_trip(int rounds) {
  const double near = median_addition(false, rounds), far = median_addition(true, rounds);
  if (!gw::is_first_process()) return;
  print("access_ns", near);
  print("trip_ns", far);
}

// ---- MPI alone ----

/// The MPI of this process, which a run has started.
class network {
 public:
  static constexpr int data_tag = 6;
  network() {
    gw::run<int>([] { return 0; });
    using enum gw::base::launcher::kind;
    using hint = gw::transport::mpi::family_hint;
    const auto kind = gw::base::detect_launcher().what;
    const char* wanted = std::getenv("GODWIT_MPI");
    std::string error;
    mpi_ = gw::transport::mpi::load_component(wanted != nullptr ? wanted : "",
                                              kind == open_mpi ? hint::openmpi
                                              : kind == mpich  ? hint::mpich
                                                               : hint::none,
                                              error);
    if (mpi_ == nullptr || !gw::base::detect_launcher().one_of_several())
      throw std::runtime_error("start it by mpirun -n 2 " + error);
    rank_ = gw::base::detect_launcher().rank;
  }
  const gw::transport::mpi::component& mpi() const noexcept { return *mpi_; }
  bool first() const noexcept { return rank_ == 0; }
  bool takes_part() const noexcept { return rank_ < 2; }
  int other() const noexcept { return 1 - rank_; }

  void check(int code) const {
    if (code == 0) return;
    char text[256];
    mpi_->error_text(code, text, sizeof text);
    throw std::runtime_error(text);
  }
  void finish(gw::transport::mpi::operation& op) const {
    for (bool done = false; !done;) check(mpi_->test(&op, &done, nullptr, nullptr, nullptr));
  }
  /// Gives back how long the call of MPI took that began it.
  std::uint64_t send(const std::byte* data, std::size_t bytes, int tag = data_tag) const {
    gw::transport::mpi::operation op;
    const std::uint64_t before = fast_ns();
    check(mpi_->isend(data, bytes, other(), tag, &op));
    finish(op);
    return fast_ns() - before;
  }
  void receive(std::byte* data, std::size_t bytes, int tag = data_tag) const {
    gw::transport::mpi::operation op;
    check(mpi_->irecv(data, bytes, other(), tag, &op));
    finish(op);
  }
  /// Both are here.
  void meet() const {
    std::byte byte[8] = {};
    if (first()) send(byte, sizeof byte, meet_tag);
    receive(byte, sizeof byte, meet_tag);
    if (!first()) send(byte, sizeof byte, meet_tag);
  }

 private:
  static constexpr int meet_tag = 7;
  const gw::transport::mpi::component* mpi_ = nullptr;
  int rank_ = 0;
};

constexpr std::size_t small_bytes = 128, large_bytes = 2048;  // a request without and with a stack

double round_trip(const network& net, std::size_t bytes, int rounds, words& sends) {
  std::vector<std::byte> data(bytes);
  words ns;
  for (int i = 0; i < rounds; ++i) {
    const std::uint64_t before = fast_ns();
    if (net.first()) sends.push_back(static_cast<double>(net.send(data.data(), bytes)));
    net.receive(data.data(), bytes);
    if (!net.first()) net.send(data.data(), bytes);
    ns.push_back(static_cast<double>(fast_ns() - before));
  }
  return median(ns);
}

/// Many messages that follow each other: how far apart they come, and what their receiver does with each when
/// all are there.
void measure_burst(const network& net, int rounds) {
  constexpr std::size_t count = 32;  // as many as companions expect
  std::vector<std::byte> data(count * small_bytes);
  gw::transport::mpi::operation ops[count];
  const auto each = [&](auto&& f) {
    for (std::size_t k = 0; k < count; ++k) f(&data[k * small_bytes], ops[k]);
  };
  const auto expect = [&](std::byte* at, gw::transport::mpi::operation& op) {
    net.check(net.mpi().irecv(at, small_bytes, net.other(), network::data_tag, &op));
  };
  words intervals, receives;
  for (int i = 0; i < 2 * rounds; ++i) {
    const bool wait = i % 2 != 0;
    if (net.first()) {
      each(expect);
      net.meet();
      if (wait) compute_for(20'000);  // they have come by now
      std::uint64_t from = fast_ns();
      each([&](std::byte* at, auto& op) {
        net.finish(op);
        if (wait)
          expect(at, op);  // as companions do
        else if (&op == &ops[0])
          from = fast_ns();
      });
      (wait ? receives : intervals)
          .push_back(static_cast<double>(fast_ns() - from) / static_cast<double>(wait ? count : count - 1));
      if (wait)
        for (auto& op : ops) net.check(net.mpi().cancel(&op));
    } else {
      net.meet();
      each([&](const std::byte* at, auto& op) {
        net.check(net.mpi().isend(at, small_bytes, net.other(), network::data_tag, &op));
      });
      for (auto& op : ops) net.finish(op);
    }
  }
  if (!net.first()) return;
  print("receive_ns", median(receives));
  print("interval_ns", median(intervals));
}

void measure_network(int rounds) {
  const network net;
  if (!net.takes_part()) return;
  words sends, unused;
  net.meet();
  const double small = round_trip(net, small_bytes, rounds, sends);
  const double large = round_trip(net, large_bytes, rounds, unused);
  if (net.first()) {
    print("send_ns", median(sends));
    print("round_trip_ns", small);
    print("large_round_trip_ns", large);
    print("more_bytes", large_bytes - small_bytes);
  }
  measure_burst(net, std::max(rounds / 8, 4));
}

/// One-sided operations; their target waits inside MPI.
void measure_rma(int rounds) {
  const network net;
  static std::uint64_t memory[64];
  gw::transport::mpi::rma_window w;
  net.check(net.mpi().win_create(memory, sizeof memory, &w));
  if (net.first()) {
    std::uint64_t to[64] = {};
    const auto timed = [&](std::size_t count) {
      const std::uint64_t before = fast_ns();
      for (std::size_t k = 0; k < count; ++k)
        net.check(net.mpi().get(&w, &to[k], sizeof to[k], 1, k * sizeof to[k]));
      net.check(net.mpi().flush(&w, 1));
      return static_cast<double>(fast_ns() - before);
    };
    timed(1);  // connections are made at first use
    words one, many;
    for (int i = 0; i < rounds; ++i) {
      one.push_back(timed(1));
      many.push_back(timed(std::size(to)));
    }
    print("rma_ns", median(one));
    print("rma_gap_ns", std::max(0.0, (median(many) - median(one)) / (std::size(to) - 1)));
    if (net.takes_part()) net.meet();
  } else if (net.takes_part()) {
    net.meet();
  }
  net.check(net.mpi().win_free(&w));
}

constexpr struct {
  const char* name;
  void (*measure)(int rounds);
} measurements[] = {{"os", measure_os},     {"steal", measure_steal},     {"yield", measure_yield},
                    {"trip", measure_trip}, {"network", measure_network}, {"rma", measure_rma}};

}  // namespace

int main(int argc, char** argv) {
  constexpr const char* usage =
      "usage: godwit-measure os|steal|yield|trip|network|rma [ROUNDS, 8 to 65536]\n";
  gw::take_options(argc, argv);
  if (argc > 1 && (std::strcmp(argv[1], "-h") == 0 || std::strcmp(argv[1], "--help") == 0)) {
    std::printf("Measures this machine for godwit-scale --fit, and prints numbers.\n%s", usage);
    return 0;
  }
  int rounds = 1000;
  const auto* const wanted = std::ranges::find_if(
      measurements, [&](const auto& m) { return argc >= 2 && std::strcmp(m.name, argv[1]) == 0; });
  if (argc == 3) {
    const char* const end = argv[2] + std::strlen(argv[2]);
    if (std::from_chars(argv[2], end, rounds).ptr != end || rounds < 8 || rounds > 1 << 16) rounds = 0;
  }
  if (wanted == std::end(measurements) || argc > 3 || rounds == 0) {
    std::fputs(usage, stderr);
    return 2;
  }
  try {
    wanted->measure(rounds);
  } catch (const std::exception& e) {
    std::fprintf(stderr, "godwit-measure: %s: %s\n", argv[1], e.what());
    return 1;
  }
  return 0;
}
