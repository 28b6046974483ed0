// Tests of spare workers: threads that block in system calls, or spin, keep all workers, and what they wait
// for is ready. docs/protocols/monitor.md. Without spares each of these stands still. The drop-in for
// pthreads: tests/pthread, programs/stuck.c.
// test: skip-qemu
#include "places.hpp"

#include "support/child.hpp"

#include <atomic>
#include <chrono>
#include <ctime>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include <unistd.h>

namespace {

namespace gw = godwit;
using namespace std::chrono_literals;

gw::options with_spares(unsigned workers, unsigned spares) {
  gw::options o;
  o.substrate = gw::choice::substrate::threads;
  o.workers = workers;
  o.spare_workers = spares;
  return o;
}

template <class Root>
void run_with(const gw::options& o, Root root) {
  EXPECT_EQ(gw::run<int>(
                [&root] {
                  root();
                  return 0;
                },
                o),
            0);
}

/// A pipe whose ends block the worker.
struct blocking_pipe {
  int ends[2];
  blocking_pipe() { EXPECT_EQ(pipe(ends), 0); }
  ~blocking_pipe() {
    close(ends[0]);
    close(ends[1]);
  }
  char read() const {
    char c = 0;
    EXPECT_EQ(::read(ends[0], &c, 1), 1);
    return c;
  }
  void write(char c) const { EXPECT_EQ(::write(ends[1], &c, 1), 1); }
};

TEST(spares, a_reader_that_blocks_is_answered) {
  for (const unsigned workers : {1u, 2u, 4u}) {
    int answered = 0;
    run_with(with_spares(workers, 8), [&] {
      std::vector<blocking_pipe> pipes(workers + 2);
      std::vector<gw::thread> all;
      std::atomic<int> sum{0};
      for (auto& p : pipes) all.emplace_back([&] { sum += p.read(); });
      for (auto& p : pipes) all.emplace_back([&] { p.write(1); });
      for (auto& t : all) t.join();
      answered = sum.load();
    });
    EXPECT_EQ(answered, static_cast<int>(workers + 2));
  }
}

TEST(spares, timers_are_kept_while_all_workers_block) {
  run_with(with_spares(1, 2), [&] {
    blocking_pipe p;
    gw::thread sleeper([&] {
      gw::this_thread::sleep_for(20ms);
      p.write('x');
    });
    gw::this_thread::yield();  // it sleeps now
    EXPECT_EQ(p.read(), 'x');
    sleeper.join();
  });
}

TEST(spares, spinning_for_one_that_is_ready) {
  run_with(with_spares(1, 2), [&] {
    std::atomic<int> turn{0};
    gw::thread second([&] {
      while (turn.load() != 1) {
      }
      turn = 2;
    });
    turn = 1;
    while (turn.load() != 2) {
    }
    second.join();
  });
}

TEST(spares, are_no_workers_that_anybody_sees) {
  run_with(with_spares(2, 3), [&] {
    EXPECT_EQ(gw::worker_count(), 2u);
    EXPECT_LT(gw::worker_id(), 2u);
  });
  EXPECT_EQ(gw::last_run_stats().size(), 2u);
}

TEST(spares, what_they_did_is_counted) {
  run_with(with_spares(1, 1), [&] {
    blocking_pipe p;
    gw::thread writer([&] { p.write('x'); });
    EXPECT_EQ(p.read(), 'x');
    writer.join();
  });
  ASSERT_EQ(gw::last_run_stats().size(), 1u);
  EXPECT_GE(gw::last_run_stats()[0].resumes, 1u);  // worker 0 itself had the main thread only
}

TEST(spares, runs_end_and_begin_again) {
  for (int i = 0; i < 100; ++i) {
    int done = 0;
    run_with(with_spares(1 + static_cast<unsigned>(i) % 3, 4), [&] {
      std::vector<gw::thread> all;
      std::atomic<int> n{0};
      for (int k = 0; k < 10; ++k) all.emplace_back([&] { n += 1; });
      for (auto& t : all) t.join();
      done = n.load();
    });
    EXPECT_EQ(done, 10);
  }
}

TEST(spares, sent_back_and_called_again) {
  run_with(with_spares(1, 2), [&] {
    for (int i = 0; i < 5; ++i) {
      blocking_pipe p;
      gw::thread writer([&] { p.write('x'); });
      EXPECT_EQ(p.read(), 'x');
      writer.join();
      gw::this_thread::sleep_for(i % 2 == 0 ? 300ms : 1ms);  // longer than a spare that is not needed is kept
    }
  });
}

// It may have found that a timer is due at the moment when it is sent back.
TEST(spares, sent_back_with_events_in_hand) {
  run_with(with_spares(1, 2), [&] {
    for (int i = 0; i < 3; ++i) {
      blocking_pipe p;
      gw::thread writer([&] { p.write('x'); });
      EXPECT_EQ(p.read(), 'x');
      writer.join();
      std::vector<gw::thread> all;
      for (int t = 0; t < 4; ++t)
        all.emplace_back([] {
          for (int k = 0; k < 500; ++k) gw::this_thread::sleep_for(800us);
        });
      for (auto& t : all) t.join();
    }
  });
}

// (CPU time, so it does not matter what else the machine does.)
TEST(spares, an_idle_run_uses_no_cpu_time) {
  const auto cpu_ms = [] {
    timespec t{};
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
    return t.tv_sec * 1000 + t.tv_nsec / 1'000'000;
  };
  run_with(with_spares(2, 4), [&] {
    std::vector<blocking_pipe> pipes(3);
    std::vector<gw::thread> all;
    for (auto& p : pipes) all.emplace_back([&] { p.read(); });
    for (auto& p : pipes) all.emplace_back([&] { p.write(1); });
    for (auto& t : all) t.join();
    gw::this_thread::sleep_for(500ms);  // spares go back
    const auto before = cpu_ms();
    gw::this_thread::sleep_for(1s);
    EXPECT_LT(cpu_ms() - before, 200);
  });
}

/// f() on a spare worker, where one sleeps: this thread keeps the only regular one. Where one is awake it may
/// be the other way round.
template <class F>
bool on_a_spare(const F& f) {
  blocking_pipe p;
  bool was_spare = false;
  gw::thread other([&] {
    was_spare = gw::worker_id() >= gw::worker_count();
    f();
    p.write('x');
  });
  EXPECT_EQ(p.read(), 'x');
  other.join();
  return was_spare;
}

/// All in one bucket, which many continue.
struct one_bucket {
  std::uint64_t operator()(int) const noexcept { return 0; }
};

TEST(spares, use_maps) {
  run_with(with_spares(1, 2), [] {
    gw::global_map<int, int> m(64);
    gw::global_map<int, int, one_bucket> crowded(64);
    EXPECT_TRUE(on_a_spare([a = m.view(), b = crowded.view()] {
      for (int i = 0; i < 200; ++i) {
        EXPECT_TRUE(a.insert(i, i));
        EXPECT_TRUE(b.insert(i, i));
      }
    }));
    m.insert(1000, 1);
    EXPECT_EQ(m.size(), 201u);
    EXPECT_EQ(crowded.size(), 200u);
    m.check_invariants();
    crowded.check_invariants();
    m.reserve(5000);
    on_a_spare([a = m.view(), b = crowded.view()] {
      EXPECT_EQ(a.find(77), 77);
      EXPECT_TRUE(b.erase(77));
    });
    m.check_invariants();
    crowded.clear();
    EXPECT_TRUE(crowded.empty());
    crowded.check_invariants();
  });
}

TEST(spares, map_files) {
  run_with(with_spares(1, 2), [] {
    blocking_pipe p;
    gw::thread other([&] {
      EXPECT_GE(gw::worker_id(), gw::worker_count());
      p.write('x');  // the regular worker has its part in it
      const gw::mapped_file f = gw::map_file("/proc/self/exe");
      EXPECT_EQ(f.as<char>()[1], 'E');
    });
    EXPECT_EQ(p.read(), 'x');
    other.join();
  });
}

std::atomic<int> destroyed{0};

struct counted {
  int number = 0;  ///< 0: nobody
  counted() noexcept = default;
  explicit counted(int n) noexcept : number(n) {}
  counted(counted&& o) noexcept : number(std::exchange(o.number, 0)) {}
  counted& operator=(counted&&) = delete;
  ~counted() { destroyed += number != 0; }
};

}  // namespace

template <>
inline constexpr bool godwit::relocatable<counted> = true;

namespace {

TEST(spares, what_lies_at_them_is_made_and_destroyed) {
  for (const unsigned workers : {1u, 2u, 3u}) {
    destroyed = 0;
    run_with(with_spares(workers, 4), [] {
      gw::global_array<counted> a(500, gw::distribution::cyclic(64),
                                  [](std::uint64_t i) { return counted(static_cast<int>(i) + 1); });
      const auto all = a.span().checkout(gw::access::read);
      for (std::uint64_t i = 0; i < 500; ++i) EXPECT_EQ(all[i].number, static_cast<int>(i) + 1);
    });
    EXPECT_EQ(destroyed.load(), 500);
    run_with(with_spares(workers, 4), [] {
      gw::global_map<int, counted> m(300, gw::distribution::cyclic(4096));
      for (int i = 0; i < 300; ++i) m.insert(i, counted(i + 1));
    });
    EXPECT_EQ(destroyed.load(), 800);
  }
}

// Buckets that continue others are on the list of the spare worker that made them.
TEST(spares, values_that_they_put_into_maps_are_destroyed) {
  destroyed = 0;
  run_with(with_spares(2, 2), [] {
    gw::global_map<int, counted, one_bucket> m(1000);
    blocking_pipe p;
    gw::thread keeps_the_other([&] { p.read(); });
    gw::this_thread::sleep_for(50ms);  // if the other thread is late, a regular worker may put them in
    on_a_spare([v = m.view()] {
      for (int i = 0; i < 100; ++i) v.insert(i, counted(i + 1));
    });
    p.write('x');
    keeps_the_other.join();
    m.clear();
    EXPECT_EQ(destroyed.load(), 100);
  });
  EXPECT_EQ(destroyed.load(), 100);
}

TEST(spares, deadlocks_are_still_reported) {
  const auto o = support::run_child([] {
    return gw::run(
        0, nullptr,
        [] {
          gw::mutex m;
          m.lock();
          gw::thread other([&] { m.lock(); });
          other.join();
        },
        with_spares(2, 3));
  });
  EXPECT_EQ(o.status, 70) << support::show(o);
  EXPECT_TRUE(o.err_has("deadlock: all 2 workers are idle")) << support::show(o);
}

TEST(spares, only_with_the_usual_policy) {
  gw::options o = with_spares(1, 1);
  o.policy = gw::choice::policy::stalling;
  EXPECT_THROW(run_with(o, [] {}), std::invalid_argument);
}

}  // namespace
