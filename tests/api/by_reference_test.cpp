// Closures that capture by reference, as people bring them from other libraries: on every schedule the result
// is right, or, where a child writes and its ancestor has moved, the run ends with the place.
// docs/protocols/frames.md. STRESS_REPEAT=n: n times as many runs.
// test: timeout=300
#include "support/child.hpp"
#include "support/schedule.hpp"

#include <godwit/godwit.hpp>
#include <godwit/policy.hpp>

#include <gtest/gtest.h>

#include <array>
#include <chrono>
#include <cstdio>
#include <cstring>
#include <string>

namespace {

namespace gw = godwit;
using support::run_child;
using support::schedule;
using support::show;

long serial_fib(int n) { return n < 2 ? n : serial_fib(n - 1) + serial_fib(n - 2); }

[[gnu::noinline]] long writes(int n) {
  if (n < 2) return n;
  long x = 0;
  auto f = gw::spawn([&] { x = writes(n - 1); });
  const long y = writes(n - 2);
  f.join();
  return x + y;
}

[[gnu::noinline]] long writes_from_below(int n) {
  if (n < 2) return n;
  long x = 0;
  auto f = gw::spawn([&] {
    auto g = gw::spawn([&] { x = writes_from_below(n - 1); });
    g.join();
  });
  const long y = writes_from_below(n - 2);
  f.join();
  return x + y;
}

[[gnu::noinline]] long invokes(int n) {
  if (n < 2) return n;
  long x = 0, y = 0;
  gw::invoke([&] { x = invokes(n - 1); }, [&] { y = invokes(n - 2); });
  return x + y;
}

[[gnu::noinline]] long reads(int n) {
  if (n < 2) return n;
  const struct {
    int first;
    std::array<long, 20> between;
    int second;
  } numbers{n - 1, {}, n - 2};
  auto f = gw::spawn([&] { return reads(numbers.first); });
  const long y = reads(numbers.second);
  return f.join() + y;
}

// Through two levels, and a reference in a frame to a frame above it.
[[gnu::noinline]] long reads_further_up(const int& n) {
  if (n < 2) return n;
  const int m = n;
  const int* const where = &m;
  auto f = gw::spawn([&] {
    const int k = *where - 1;
    auto g = gw::spawn([&] { return reads_further_up(k) + m - *where; });
    return g.join() + m - n;
  });
  const int l = m - 2;
  const long y = reads_further_up(l);
  return f.join() + y;
}

// Too large for registers; one of the words is the address.
[[gnu::noinline]] long reads_by_large_closure(int n) {
  if (n < 2) return n;
  const int m = n;
  const long a = n, b = 2L * n, c = 3L * n;
  auto f = gw::spawn([a, b, &m, c] { return reads_by_large_closure(m - 1) + a + b - c; });
  const long y = reads_by_large_closure(m - 2);
  return f.join() + y;
}

struct solver {
  int depth;
  [[gnu::noinline]] long solve(int n) const {
    if (n < 2) return n + depth;
    auto f = gw::spawn([this, n] { return solve(n - 1) - depth; });
    const long y = solve(n - 2) - depth;
    return f.join() + y + depth;
  }
};
long reads_own_object(int n) {
  const solver s{7};
  return s.solve(n) - s.depth;
}

// By value, but with what lay on the stack before: addresses, too.
struct board {
  long used;
  std::array<long, 12> cells;  // of these as many as are used
};
[[gnu::noinline]] void leaves_addresses(board& b) {
  std::array<const void*, 64> where;
  where.fill(&b);
  asm volatile("" : : "r"(where.data()) : "memory");
}
[[gnu::noinline]] long by_value(int n) {
  if (n < 2) return n;
  board b;
  leaves_addresses(b);
  [&] {
    std::array<const void*, 64> old;  // not set
    asm volatile("" : : "r"(old.data()) : "memory");
    std::memcpy(b.cells.data(), old.data(), sizeof b.cells);
  }();
  b.used = 1;
  b.cells[0] = n - 1;
  auto f = gw::spawn([b] { return by_value(static_cast<int>(b.cells[0])); });
  const long y = by_value(n - 2);
  return f.join() + y;
}

// The library's own algorithms with a callable that refers to locals.
long reads_in_algorithms(int n) {
  gw::global_array<long> a(1000, gw::distribution::blocked());
  const long factor = n;
  gw::for_each(a, [&](long& x) { x = factor; });
  const long sum = gw::reduce(a, 0L, [&](long x, long y) { return x + y + factor - n; });
  return sum == 1000L * n ? serial_fib(n) : -1;
}

/// In a process of its own: 0 right, 1 wrong, 70 stopped.
template <class Root>
support::outcome run_apart(const gw::options& o, long expected, Root root) {
  return run_child([&] {
    try {
      return gw::run<long>(root, o) == expected ? 0 : 1;
    } catch (const gw::run_error& e) {
      std::fprintf(stderr, "%s\n", e.what());
      return 70;
    }
  });
}

struct program {
  const char* name;
  long (*run)(int);
  bool may_stop;
};
constexpr program programs[] = {
    {"writes", writes, true},
    {"writes from below", writes_from_below, true},
    {"invoke, writes", invokes, true},
    {"reads", reads, false},
    {"reads further up", [](int n) { return reads_further_up(n); }, false},
    {"large closure", reads_by_large_closure, false},
    {"own object", reads_own_object, false},
    {"by value", by_value, false},
    {"algorithms", reads_in_algorithms, false},
};

/// Right, or stopped with the place if it may be. Gives back whether it was right.
bool right_or_stopped(const program& p, const gw::options& o, int n) {
  SCOPED_TRACE(std::string(p.name) + " " + support::describe(o));
  const auto child = run_apart(o, serial_fib(n), [run = p.run, n] { return run(n); });
  if (child.status == 0) return true;
  EXPECT_TRUE(p.may_stop) << show(child);
  EXPECT_EQ(child.status, 70) << show(child);
  EXPECT_NE(child.err.find("that was spawned in "), std::string::npos) << show(child);
  EXPECT_NE(child.err.find("stack frame"), std::string::npos) << show(child);
  return false;
}

TEST(by_reference, right_or_stopped_on_every_schedule) {
  const std::uint64_t repeat = support::number_from_environment("STRESS_REPEAT", 1);
  for (std::uint64_t i = 0; i < repeat; ++i)
    for (const char* force : {"none", "parents", "children", "random"})
      for (const std::uint32_t workers : {1u, 2u, 3u, 8u})
        for (const program& p : programs)
          right_or_stopped(p, schedule(workers, force, 0, support::base_seed() + i), *force == 'n' ? 20 : 10);
}

// Of these no schedule is left where the write could go unnoticed.
TEST(by_reference, writes_stop_when_parents_always_leave) {
  for (const char* force : {"parents", "children"})
    for (const program& p : programs) {
      if (p.may_stop) {
        EXPECT_FALSE(right_or_stopped(p, schedule(2, force), 8)) << p.name << force;
      }
    }
}

TEST(by_reference, may_be_switched_off) {
  gw::options o = schedule(2, "parents");
  o.check_frames = false;
  const auto child = run_apart(o, serial_fib(8), [] { return writes(8); });
  EXPECT_EQ(child.status, 1) << show(child);
}

// What was lost is noticed also if the thread that wrote goes on elsewhere, or only its child ends here.
[[gnu::noinline]] long writes_then_leaves() {
  long x = 0;
  auto f = gw::spawn([&x] {
    gw::spawn([] {}).join();  // forced: the parent leaves by now
    x = 1;
    gw::yield();
    return 0;
  });
  static_cast<void>(f.join());
  return x;
}
TEST(by_reference, write_before_a_migration) {
  for (const std::uint32_t workers : {1u, 2u, 4u}) {
    const auto child = run_apart(schedule(workers, "parents"), 1, [] { return writes_then_leaves(); });
    EXPECT_EQ(child.status, 70) << show(child);
  }
}

// Threads that wait for one record, and read in a frame further up when they go on: on another host, perhaps,
// that of the one that completed it, where all but the last that came go by way of the ready queue.
[[gnu::noinline]] long reads_after_waiting(long n) {
  std::array<long, 100> numbers;
  numbers.fill(n);
  const gw::shared_future<long> s = gw::spawn([] {
    const auto until = std::chrono::steady_clock::now() + std::chrono::milliseconds(100);
    while (std::chrono::steady_clock::now() < until)
      gw::spawn([] {}).join();  // the others come before it ends
    return 1L;
  });
  std::array<gw::future<long>, 6> waiters;
  for (auto& w : waiters)
    w = gw::spawn([&numbers, s]() mutable {
      const long one = s.get();
      long sum = 0;
      for (const long x : numbers) sum += x;
      return sum * one;
    });
  long all = 0;
  for (auto& w : waiters) all += w.join();
  return all;
}
TEST(by_reference, frames_go_with_who_waits) {
  for (const std::uint32_t workers : {1u, 2u, 4u})
    EXPECT_EQ(gw::run<long>([] { return reads_after_waiting(7); }, schedule(workers)), 6 * 100 * 7);
}

template <class P>
[[gnu::noinline]] long policy_reads(int n) {
  if (n < 2) return n;
  const int m = n - 1;
  auto f = P::spawn([&m] { return policy_reads<P>(m); });
  const long y = policy_reads<P>(n - 2);
  return f.join() + y;
}
// Threads of these cannot take frames along: a stolen child that refers to its parent's stops.
TEST(by_reference, other_policies) {
  for (const char* name : {"stalling", "locked_free", "crude", "iso", "child_full", "child_rtc"})
    for (const std::uint32_t workers : {1u, 2u, 4u}) {
      gw::options o = schedule(workers);
      o.policy = gw::choice::named{name};
      const auto child = gw::with_policy(gw::choice::named{name}, [&](auto p) {
        return run_apart(o, serial_fib(18), [] { return policy_reads<decltype(p)>(18); });
      });
      if (child.status == 0) continue;
      EXPECT_EQ(child.status, 70) << name << show(child);
      EXPECT_NE(child.err.find("capture by value"), std::string::npos) << name << show(child);
      EXPECT_NE(std::string(name).find_first_of("oc"), std::string::npos) << name;  // iso, child_*
    }
}

}  // namespace
