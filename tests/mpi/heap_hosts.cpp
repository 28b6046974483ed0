// What threads allocate on several hosts, each of which has a heap of its own: who names it stays, and what
// comes to another host by a way that is not searched is found out. Started by an MPI, every rank a host.
// docs/heap.md, Several hosts.
#include "heap/owning.hpp"
#include "trace/trace_reader.hpp"

#include <godwit/godwit.hpp>

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <iterator>
#include <memory>
#include <stdexcept>
#include <string>
#include <string_view>
#include <thread>
#include <unistd.h>
#include <utility>
#include <vector>

namespace {

namespace gw = godwit;
using owning::long_text;

gw::options two_hosts() {
  gw::options o = support::schedule(2);
  o.heap = gw::choice::heap::shared;
  return o;
}
void pause_ms(int ms) { std::this_thread::sleep_for(std::chrono::milliseconds(ms)); }

/// Where the run has to end: its message.
template <class F>
std::string refused(F f) {
  try {
    gw::run<int>(
        [f] {
          f();
          return 0;
        },
        two_hosts());
  } catch (const gw::run_error& e) {
    return e.what();
  }
  return "it was not refused";
}
#define EXPECT_SAYS(message, part) EXPECT_NE((message).find(part), std::string::npos) << (message)

struct shape {  // no codec
  virtual ~shape() = default;
  std::string name;
};
struct own_error : std::runtime_error {
  using std::runtime_error::runtime_error;
};

long fib(int n) {
  if (n < 2) return n;
  auto a = gw::spawn([n] { return fib(n - 1); });
  const long b = fib(n - 2);
  return a.join() + b;
}
/// Owns across each spawn; the leaves do not.
long tree(int depth, int leaf) {
  if (depth == 0) return fib(leaf);
  std::vector<long> sums(10, 0);
  auto left = gw::spawn([depth, leaf] { return tree(depth - 1, leaf); });
  sums.push_back(tree(depth - 1, leaf));
  sums.push_back(left.join());
  return sums[10] + sums[11];
}

TEST(HeapOfHosts, WhoNamesItStaysAndItsChildrenLeave) {
  // Until the other host has taken something: it begins to look at its own pace.
  for (int i = 0; i < 300; ++i) {  // where other programs use the CPUs, a look takes longer than many a run
    const int leaf = std::min(20 + i, 28);
    EXPECT_TRUE(gw::run<bool>([leaf] { return tree(5, leaf) == 32 * fib(leaf); }, two_hosts()));
    gw::worker_stats all;
    for (const gw::worker_stats& s : gw::last_run_stats()) {
      all.far_steals += s.far_steals;
      all.threads_stayed += s.threads_stayed;
    }
    if (all.far_steals != 0 && all.threads_stayed != 0) return;
  }
  FAIL() << "nothing has left, or nothing has stayed";
}

/// Two numbers side by side, with the upper half of an address at which heaps may lie, in each frame.
[[gnu::noinline]] long numbers(int depth, int leaf, std::uint32_t upper) {
  if (depth == 0) return fib(leaf);
  volatile std::uint32_t side_by_side[2][2] = {{7, upper}, {7, upper + 1}};
  auto left = gw::spawn([=] { return numbers(depth - 1, leaf, upper); });
  const long right = numbers(depth - 1, leaf, upper);
  return left.join() + right + (side_by_side[1][0] == 7 ? 0 : 1);
}
TEST(HeapOfHosts, NumbersSideBySideHoldNobody) {
  const auto upper = gw::run<std::uint32_t>(
      [] {
        const auto of_heap = std::make_unique<int>();
        return static_cast<std::uint32_t>(reinterpret_cast<std::uint64_t>(of_heap.get()) >> 32);
      },
      two_hosts());
  for (int i = 0; i < 300; ++i) {  // as above
    const int leaf = std::min(20 + i, 28);
    EXPECT_TRUE(gw::run<bool>([=] { return numbers(5, leaf, upper) == 32 * fib(leaf); }, two_hosts()));
    std::uint64_t left = 0;
    for (const gw::worker_stats& s : gw::last_run_stats()) {
      left += s.far_steals;
      EXPECT_EQ(s.threads_stayed, 0u);
    }
    if (left != 0) return;
  }
  FAIL() << "nothing has left";
}

/// Threads that stayed at places in @p function, as a file of counters says.
std::uint64_t stayed_in(const std::string& json, const std::string& function) {
  std::uint64_t all = 0;
  constexpr std::string_view place = "{\"place\":";
  for (std::size_t at = json.find(place); at != std::string::npos; at = json.find(place, at + 1)) {
    const std::string entry = json.substr(at, json.find('}', at) - at);
    if (entry.find(function + "(") == std::string::npos) continue;
    all += std::stoul(entry.substr(entry.find("\"count\":") + 8));
  }
  return all;
}
TEST(HeapOfHosts, WhoStaysIsTracedAndTold) {
  const std::string file = testing::TempDir() + "godwit_heap_hosts." + std::to_string(getpid());
  gw::options o = two_hosts();
  o.trace = file + ".trace";
  o.stats_json = file + ".json";
  std::uint64_t told = 0, all = 0;
  for (int i = 0; i < 60 && all < 100; ++i) {  // ranks agree upon the sum
    const int leaf = std::min(20 + i, 28);
    EXPECT_TRUE(gw::run<bool>([=] { return tree(5, leaf) == 32 * fib(leaf); }, o));
    std::uint64_t traced = 0, counted = 0;
    for (const gw::worker_stats& s : gw::last_run_stats()) counted += s.threads_stayed;
    all += counted;
    if (!gw::is_first_process()) continue;
    const support::trace_contents trace = support::read_trace(o.trace);
    for (const auto& [worker, events] : trace.events)
      for (const auto& e : events) traced += e.what == static_cast<std::uint16_t>(gw::trace::kind::stay);
    EXPECT_EQ(traced, counted);
    std::ifstream in(o.stats_json);
    told += stayed_in(std::string(std::istreambuf_iterator<char>(in), {}), "::tree");
  }
  if (!gw::is_first_process()) return;
  std::remove(o.trace.c_str());
  std::remove(o.stats_json.c_str());
  EXPECT_GE(told, 1u);
}

TEST(HeapOfHosts, WhoWaitsForAnotherHostGoesOnAtHome) {
  EXPECT_EQ(gw::run<int>(
                [] {
                  int wrong = 0;
                  for (int i = 0; i < 50; ++i) {
                    const auto text = std::make_unique<std::string>(long_text(i));
                    auto f = gw::spawn_at(gw::worker(1), [i] {
                      pause_ms(i % 3);
                      return i;
                    });
                    wrong += f.join() != i || *text != long_text(i);
                  }
                  return wrong;
                },
                two_hosts()),
            0);
}

TEST(HeapOfHosts, SeveralWhoWaitForOneThread) {
  EXPECT_EQ(gw::run<int>(
                [] {
                  int wrong = 0;
                  for (int i = 0; i < 30; ++i) {
                    const gw::shared_future<int> far = gw::spawn_at(gw::worker(1), [i] {
                      pause_ms(2);
                      return i;
                    });
                    std::vector<gw::future<int>> all;
                    for (int k = 0; k < 5; ++k)
                      all.push_back(gw::spawn([far, i, k] {
                        const auto text = std::make_unique<std::string>(long_text(i));
                        if (k % 2 == 0) return far.get() != i || *text != long_text(i) ? 1 : 0;
                        return far.get() == i ? 0 : 1;
                      }));
                    for (auto& f : all) wrong += f.join();
                  }
                  return wrong;
                },
                two_hosts()),
            0);
}

/// What is left below of values that are no more may hold whose frame lies there next.
[[gnu::noinline]] void forget_below() {
  std::array<char, 32 << 10> room{};
  asm volatile("" : : "r"(room.data()) : "memory");
}
// In frames of their own: what is left there of values that are no more may hold the caller, and what the
// library has left now and then these. Each says whether it went, and ends the run if something is lost.
[[gnu::noinline]] void check(bool right) {
  if (!right) std::abort();
}
[[gnu::noinline]] bool gives_text(gw::future<std::string>& f, int n) { return f.join() == long_text(n); }
[[gnu::noinline]] bool goes_with_a_value(int n) {
  auto kept = gw::spawn([n] { return long_text(n); });  // in this frame, whoever runs it
  const std::uint32_t other = 1 - gw::worker_id();
  const bool went = gw::migrate_to(gw::worker(other));
  check(went == (gw::worker_id() == other) && gives_text(kept, n));
  return went;
}
[[gnu::noinline]] bool goes_with_a_large_frame() {
  std::array<long, 1000> numbers;
  for (std::size_t i = 0; i < numbers.size(); ++i) numbers[i] = static_cast<long>(i);
  const std::uint32_t other = 1 - gw::worker_id();
  const bool went = gw::migrate_to(gw::worker(other));
  check(went == (gw::worker_id() == other));
  for (std::size_t i = 0; i < numbers.size(); ++i) check(numbers[i] == static_cast<long>(i));
  return went;
}
/// Its value has no codec. It holds this thread where it lies in this frame: unless that was stolen.
[[gnu::noinline]] bool stays_for_a_result() {
  const std::uint32_t here = gw::worker_id();
  auto kept = gw::spawn([] { return std::make_unique<shape>(); });
  const bool left = gw::migrate_to(gw::worker(1 - here));
  if (left) gw::migrate_to(gw::worker(here));
  return kept.join() != nullptr && !left;
}
[[gnu::noinline]] bool stays_for_a_local() {
  const std::uint32_t here = gw::worker_id();
  const std::vector<int> holds(100, 1);
  return !gw::migrate_to(gw::worker(1 - here)) && gw::worker_id() == here && holds.back() == 1;
}

TEST(HeapOfHosts, WhatHasACodecDoesNotHoldItsThread) {
  EXPECT_EQ(gw::run<int>(
                [] {
                  int values = 0, large = 0, locals = 0;
                  for (int i = 0; i < 40; ++i) {
                    forget_below();
                    values += goes_with_a_value(i);
                    forget_below();
                    large += goes_with_a_large_frame();
                    locals += stays_for_a_local();
                  }
                  return values >= 10 && large >= 10 && locals == 40 ? 0
                                                                     : 10'000 * values + 100 * large + locals;
                },
                two_hosts()),
            0);
}

TEST(HeapOfHosts, WhatHasNoCodecHoldsIt) {
  for (int i = 0; i < 20; ++i) {
    try {
      if (gw::run<bool>([] { return stays_for_a_result(); }, two_hosts())) return;
    } catch (const gw::run_error& e) {  // its parent was stolen while it ran
      EXPECT_SAYS(std::string(e.what()), "has to leave its host as bytes");
    }
  }
  FAIL() << "it never stays";
}

/// A loop of leaves beside what this thread owns, which makes way for others again and again.
int leaves(int n) {
  std::vector<std::string> texts;
  int wrong = 0;
  for (int i = 0; i < n; ++i) {
    auto f = gw::spawn([i] { return long_text(i); });
    auto g = gw::spawn([] { return fib(12); });
    texts.push_back(f.join());
    wrong += g.join() != 144 || texts.back() != long_text(i);
  }
  return wrong;
}
TEST(HeapOfHosts, ValuesInFramesThatMakeWay) {
  for (int round = 0; round < 5; ++round)
    EXPECT_EQ(gw::run<int>(
                  [] {
                    auto a = gw::spawn(leaves, 300);
                    auto b = gw::spawn(leaves, 300);
                    return leaves(300) + a.join() + b.join();
                  },
                  two_hosts()),
              0);
}

/// Counts those that live, in this process.
struct counted {
  static inline int alive = 0, made = 0;
  std::unique_ptr<int> more = std::make_unique<int>(1);  // no plain bytes
  counted() {
    ++alive;
    ++made;
  }
  counted(counted&& other) noexcept : more(std::move(other.more)) { ++alive; }
  ~counted() { --alive; }
};
TEST(HeapOfHosts, WhatIsDroppedElsewhereIsDestroyedAtHome) {
  EXPECT_EQ(gw::run<int>(
                [] {
                  for (int i = 0; i < 20; ++i) {
                    // The record is made at worker 1, and so is its value.
                    auto far = gw::spawn_at(gw::worker(1), [] {
                      return gw::spawn_at(gw::worker(1), [] { return counted(); }).share();
                    });
                    gw::shared_future<counted> dropped = far.join();
                    while (!dropped.ready()) gw::yield();
                  }
                  // Letters are read in their order.
                  return gw::spawn_at(gw::worker(1), [] { return counted::alive; }).join();
                },
                two_hosts()),
            0);
}

/// Of a type without a codec, by a thread that ends on another host than where it was spawned.
TEST(HeapOfHosts, WhatNobodyWantsIsDestroyedWhereItWasMade) {
  EXPECT_EQ(gw::run<int>(
                [] {
                  constexpr int times = 50;
                  for (int i = 0; i < times; ++i) {
                    auto early = gw::spawn_at(gw::worker(1), [i] {
                      pause_ms(i % 2);
                      return counted();
                    });
                    auto late = gw::spawn_at(gw::worker(1), [] { return counted(); });
                    { const auto dropped = std::move(early); }
                    while (!late.ready()) gw::yield();
                    auto shared = gw::spawn_at(gw::worker(1), [] { return counted(); }).share();
                    const auto copy = shared;
                  }
                  const auto made_and_alive = [] { return std::pair(counted::made, counted::alive); };
                  for (int i = 0; i < 1000; ++i) {
                    const auto there = gw::spawn_at(gw::worker(1), made_and_alive).join();
                    if (there == std::pair(3 * times, 0)) return 0;
                    pause_ms(1);
                  }
                  return 1;
                },
                two_hosts()),
            0);
}

TEST(HeapOfHosts, ExceptionsAreThemselvesAtHome) {
  EXPECT_EQ(gw::run<int>(
                [] {
                  const auto caught = [](gw::future<void> f) {
                    try {
                      f.join();
                    } catch (const own_error& e) {
                      return e.what() == long_text(7) ? 1 : 10;
                    } catch (const gw::remote_error& e) {
                      return e.type_name().find("own_error") != std::string::npos ? 2 : 20;
                    }
                    return 30;
                  };
                  const auto throws = [] { throw own_error(long_text(7)); };
                  int wrong = 0;
                  for (int i = 0; i < 20; ++i) {
                    const std::unique_ptr<int> at_home = std::make_unique<int>(i);
                    wrong += caught(gw::spawn_at(gw::worker(0), throws)) != 1;
                    wrong += caught(gw::spawn_at(gw::worker(1), throws)) != 2;
                    wrong += *at_home != i;
                  }
                  return wrong;
                },
                two_hosts()),
            0);
}

TEST(HeapOfHosts, APointerThatIsNotSearchedForIsFoundOut) {
  const std::string by_memory = refused([] {
    gw::global_array<std::uintptr_t> place(2, gw::distribution::blocked());
    const auto number = std::make_unique<int>(7);
    const auto at = place.data();
    gw::put(at + 1, reinterpret_cast<std::uintptr_t>(number.get()));
    gw::spawn_at(gw::worker(1), [at] { return *reinterpret_cast<const int*>(gw::get(at + 1)); }).join();
  });
  EXPECT_SAYS(by_memory, "worker 1: a thread used 0x");
  EXPECT_SAYS(by_memory, "heap memory of host 0, at host 1");
  const std::string by_result = refused([] {
    const auto text = std::make_unique<std::string>(long_text(1));
    int* p = gw::spawn_at(gw::worker(1), [] { return new int(7); }).join();
    *p = static_cast<int>(text->size());
  });
  EXPECT_SAYS(by_result, "worker 0: a thread wrote to 0x");
  EXPECT_SAYS(by_result, "heap memory of host 1, at host 0");
}

TEST(HeapOfHosts, WhatHasNoCodecIsNamed) {
  const std::string result =
      refused([] { gw::spawn_at(gw::worker(1), [] { return std::make_unique<shape>(); }).join(); });
  EXPECT_SAYS(result, ": a value of type std::unique_ptr<(anonymous namespace)::shape");
  EXPECT_SAYS(result, "has to leave its host as bytes");
  const std::string argument = refused([] {
    gw::spawn_at(
        gw::worker(1), [](std::unique_ptr<shape> s) { return s->name.empty() ? 1 : 2; },
        std::make_unique<shape>())
        .join();
  });
  EXPECT_SAYS(argument, "worker 0: a value of type std::unique_ptr<(anonymous namespace)::shape");
  EXPECT_EQ(gw::run<int>(
                [] {
                  auto f = gw::spawn_at(
                      gw::worker(0), [](std::unique_ptr<shape> s) { return s; }, std::make_unique<shape>());
                  return f.join() != nullptr ? 0 : 1;
                },
                two_hosts()),
            0);
}

}  // namespace
