// Programs whose reducers must say what a serial execution makes, under any policy. Used by
// tests/api/reducer_test.cpp, tests/sim/reducer_test.cpp.
#pragma once

#include "support/schedule.hpp"

#include <godwit/godwit.hpp>
#include <godwit/sim.hpp>

#include <gtest/gtest.h>

#include <cmath>
#include <string>
#include <string_view>

namespace reducer_programs {

namespace gw = godwit;
using text = gw::reducer<std::string, gw::op::append>;

// Of main: no thread that uses them names the heap of a host, and so has to stay there.
inline text written;
inline gw::reducer<double> added;

/// Something to do: so long that others come and steal.
[[gnu::noinline]] inline void work(int turns) {
  for (int i = 0; i < turns; ++i) asm volatile("");
  gw::sim::charge(static_cast<std::uint64_t>(turns) * 10);
}

// Brackets around the leaves of a tree, with a bar between its halves: written before a spawn, in the
// continuation, and after the join.
template <class P, class R>
void brackets(R* r, int low, int high) {
  if (high - low == 1) {
    work(2000);
    **r += std::to_string(low);
    return;
  }
  const int middle = low + (high - low) / 3 + 1;
  **r += '(';
  auto left = P::spawn([=] { brackets<P>(r, low, middle); });
  **r += '|';
  brackets<P>(r, middle, high);
  left.join();
  **r += ')';
}
// A loop that spawns, and updates in between. The threads are joined in another order than they were spawned.
template <class P, class R>
void loop(R* r, int n) {
  for (int i = 0; i < n; ++i) {
    const auto child = [=](int k) {
      return [=] {
        work(2000);
        **r += std::to_string(i) + static_cast<char>('a' + k);
      };
    };
    auto a = P::spawn(child(0));
    auto b = P::spawn(child(1));
    **r += ';';
    auto c = P::spawn(child(2));
    b.join();
    c.join();
    **r += '.';
    a.join();
  }
}

/// Numbers whose rounded sum depends on the order.
inline double term(int i) { return std::ldexp(1.0 + i % 7 / 3.0, i * 37 % 90 - 45) * (i % 3 == 0 ? -1 : 1); }

template <class P>
void add(gw::reducer<double>* r, int low, int high) {
  if (high - low <= 16) {
    for (int i = low; i < high; ++i) **r += term(i);
    return;
  }
  const int middle = (low + high) / 2;
  auto left = P::spawn([=] { add<P>(r, low, middle); });
  add<P>(r, middle, high);
  left.join();
}

struct serial {
  struct done {
    void join() {}
  };
  template <class F>
  static done spawn(F&& f) {
    f();
    return {};
  }
};
/// What the program writes where nothing is parallel.
template <class F>
std::string serially(F&& program) {
  std::string all, *r = &all;
  program(&r);
  return all;
}

inline std::string serial_brackets() {
  return serially([](auto* r) { brackets<serial>(r, 0, 100); });
}
inline std::string serial_loop() {
  return serially([](auto* r) { loop<serial>(r, 40); });
}
inline double sum_of_terms(int n) {
  gw::exact_sum all;
  for (int i = 0; i < n; ++i) all += term(i);
  return all.value();
}

/// All of them in a run with @p o, by the threads of policy P.
template <class P>
void expect_serial_results(const gw::options& o) {
  constexpr int n = 2'000;
  EXPECT_EQ(gw::run<std::string>([] { return brackets<P>(&written, 0, 100), written.take(); }, o),
            serial_brackets());
  EXPECT_EQ(gw::run<std::string>([] { return loop<P>(&written, 40), written.take(); }, o), serial_loop());
  EXPECT_EQ(gw::run<double>([] { return add<P>(&added, 0, n), added.take(); }, o), sum_of_terms(n));
}

/// Under all policies and with @p set(options), each on a few schedules.
template <class Set>
void expect_serial_results_everywhere(Set&& set) {
  const bool everything = support::number_from_environment("STRESS_SHORT", 0) == 0;
  std::uint64_t row = 0;
  const bool one_host = gw::resolve_options().hosts != gw::choice::hosts::ranks;
  for (const char* name : {"greedy", "stalling", "locked_free", "crude", "iso", "child_rtc", "child_full"}) {
    if (name == std::string_view("iso") && !one_host) continue;  // which works on one only
    gw::with_policy(gw::choice::named{name}, [&](auto p) {
      for (const char* force : {"none", "parents", "children", "random"})
        for (const std::uint32_t workers : {1u, 2u, 4u}) {
          const bool forced = std::string_view(force) != "none";
          if ((!p.migrates && forced) || (workers == 1 && !forced)) continue;
          if (!everything && (workers != 2 || std::string_view(force) == "parents")) continue;
          gw::options o = support::schedule(workers, force, 0, support::base_seed() + row++);
          o.policy = gw::choice::named{name};
          set(o);
          SCOPED_TRACE(std::string("policy=") + name + ' ' + support::describe(o));
          expect_serial_results<decltype(p)>(o);
          if (testing::Test::HasFailure()) return;
        }
    });
  }
}

}  // namespace reducer_programs
