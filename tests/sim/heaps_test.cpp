// Several simulated hosts with a heap each: a thread that names the heap of its host stays there, whatever
// the seed, the way between hosts, the policy and the faults.
// test: timeout=300 skip-asan skip-qemu
#include "heap/owning.hpp"
#include "sim/simulated_runs.hpp"
#include "support/child.hpp"

#include <gtest/gtest.h>

#include <cstdint>
#include <memory>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

namespace {

namespace gw = godwit;
using owning::long_text;
using simulated_runs::all_ways, simulated_runs::on_hosts, simulated_runs::far_steals;

/// A tree whose inner threads own while their children run; its leaves are trees of threads that own nothing.
int tree(int depth) {
  if (depth == 0) return simulated_runs::fib(14);
  std::string text = long_text(depth);
  const auto count = std::make_shared<int>(depth);
  auto left = gw::spawn([depth] { return tree(depth - 1); });
  const int right = tree(depth - 1);
  text += "!";
  const int sum = left.join() + right;
  return text == long_text(depth) + "!" && *count == depth && count.use_count() == 1 ? sum : -1'000'000;
}
constexpr int in_tree = 377 << 4;  // the value of tree(4)

std::uint64_t stayed() {
  std::uint64_t n = 0;
  for (const gw::worker_stats& s : gw::last_run_stats()) n += s.threads_stayed;
  return n;
}
std::uint64_t told() {
  std::uint64_t n = 0;
  for (const gw::worker_stats& s : gw::last_run_stats())
    for (const auto& stay : s.stayed_at) n += stay.count;
  return n;
}

TEST(Heaps, OwnersStayAndTheirChildrenLeave) {
  for (const gw::choice::way way : all_ways)
    for (const std::uint32_t hosts : {2u, 3u})
      for (std::uint64_t seed = 1; seed <= 5; ++seed) {
        gw::options o = on_hosts(2 * hosts, hosts, way, seed);
        o.heap = gw::choice::heap::shared;
        SCOPED_TRACE(std::string(name_of(way)) + ", hosts " + std::to_string(hosts) + ", seed " +
                     std::to_string(seed));
        EXPECT_EQ(gw::run<int>([] { return tree(4); }, o), in_tree);
        EXPECT_GT(told(), 0u);
        EXPECT_GE(stayed(), told());  // of each worker the first few places
        EXPECT_GT(far_steals(), 0u);
      }
}

int leaves(int from, int to) {
  if (to - from == 1) {
    gw::sim::charge(10'000);
    return 1;
  }
  const int middle = from + (to - from) / 2;
  auto left = gw::spawn([=] { return leaves(from, middle); });
  const int right = leaves(middle, to);
  return left.join() + right;
}
/// Many joins of threads of other hosts on one stack.
int loops(int from, int to) {
  int sum = 0;
  for (int i = 0; i < 3; ++i) sum += leaves(from, to);
  if (to - from == 1) return sum;
  const int middle = from + (to - from) / 2;
  auto left = gw::spawn([=] { return loops(from, middle); });
  sum += loops(middle, to);
  return sum + left.join();
}

// What the library keeps for itself is none of theirs.
TEST(Heaps, WhatTheLibraryKeepsHoldsNobody) {
  for (const gw::choice::way way : all_ways) {
    gw::options o = on_hosts(64, 64, way);
    o.victims = gw::choice::victims::uniform;
    EXPECT_EQ(gw::run<int>([] { return loops(0, 1024); }, o), 3 * 1024 * 11);
    EXPECT_EQ(stayed(), 0u) << name_of(way);
    EXPECT_GT(far_steals(), 0u);
  }
}

// Nor are locations of records taken for pointers, of as many workers as real clusters have.
TEST(Heaps, WhoOwnsNothingLeavesAsWithPrivateHeaps) {
  for (const gw::choice::way way : all_ways) {
    gw::options o = on_hosts(256, 8, way);
    const auto shared = simulated_runs::timed_fib(22, o);
    EXPECT_EQ(stayed(), 0u);
    EXPECT_GT(far_steals(), 0u);
    o.heap = gw::choice::heap::separate;
    EXPECT_EQ(simulated_runs::timed_fib(22, o).ns, shared.ns);
  }
}

/// Two numbers side by side, with the upper half of an address at which heaps may lie, in each frame.
int numbers(int depth, std::uint32_t upper) {
  if (depth == 0) return simulated_runs::fib(14);
  struct {
    std::uint32_t first, second;
  } volatile side_by_side[40];
  for (std::uint32_t i = 0; i < 40; ++i) {
    side_by_side[i].first = static_cast<std::uint32_t>(depth);
    side_by_side[i].second = upper + i;
  }
  auto left = gw::spawn([=] { return numbers(depth - 1, upper); });
  const int right = numbers(depth - 1, upper);
  const bool same = side_by_side[39].first == static_cast<std::uint32_t>(depth);
  return left.join() + right + (same ? 0 : 1);
}
TEST(Heaps, NumbersSideBySideHoldNobody) {
  for (const gw::choice::way way : all_ways) {
    const gw::options o = on_hosts(4, 4, way);
    const auto upper = gw::run<std::uint32_t>(
        [] {
          const auto of_heap = std::make_unique<int>();
          return static_cast<std::uint32_t>(reinterpret_cast<std::uint64_t>(of_heap.get()) >> 32);
        },
        o);
    EXPECT_EQ(gw::run<int>([=] { return numbers(4, upper); }, o), in_tree);
    EXPECT_EQ(stayed(), 0u) << name_of(way);
    EXPECT_GT(far_steals(), 0u);
  }
}

/// Leaves pointers to freed memory in its frame, and owns nothing.
int forgetful(int depth) {
  if (depth == 0) return simulated_runs::fib(14);
  auto* const some = new int[100];
  int* volatile first = some;
  int* volatile end = some + 100;
  delete[] some;
  auto left = gw::spawn([depth] { return forgetful(depth - 1); });
  const int right = forgetful(depth - 1);
  return left.join() + right + (first == end ? 1 : 0);
}
TEST(Heaps, WordsThatNameFreedMemoryHoldNobody) {
  for (const gw::choice::way way : all_ways) {
    EXPECT_EQ(gw::run<int>([] { return forgetful(4); }, on_hosts(4, 4, way)), in_tree);
    EXPECT_EQ(stayed(), 0u) << name_of(way);
    EXPECT_GT(far_steals(), 0u);
  }
}

/// Owns nothing, but goes through what another thread owns, from its end.
int backwards(int depth, const std::int64_t* end) {
  if (depth == 0) return simulated_runs::fib(14);
  auto left = gw::spawn([=] { return backwards(depth - 1, end); });
  const int right = backwards(depth - 1, end);
  const int sum = left.join() + right;
  int wrong = 0;
  for (int i = 1; i <= 64; ++i) wrong += end[-i] != -i;
  return sum + wrong;
}
std::int64_t* volatile whole;  // of the process, so that no frame has it
TEST(Heaps, TheEndOfABlockHoldsAsItsBeginDoes) {
  // Of sizes that blocks have: where it ends the next one begins, or all ends that has been handed out.
  for (const int words : {64, 1 << 17})
    for (const gw::choice::way way : all_ways) {
      const auto go = [words] {
        whole = new std::int64_t[static_cast<std::size_t>(words)];
        if (words == 64) delete[] new std::int64_t[64];
        for (int i = 1; i <= 64; ++i) whole[words - i] = -i;
        const int sum = backwards(4, whole + words);
        delete[] whole;
        return sum;
      };
      EXPECT_EQ(gw::run<int>(go, on_hosts(4, 4, way)), in_tree);
      EXPECT_GT(stayed(), 0u) << name_of(way) << ", " << words;
      EXPECT_GT(far_steals(), 0u);
    }
}

/// A block that goes to another host in a way that is not searched, and is freed there.
void free_elsewhere() {
  const auto at = gw::allocate<std::uint64_t>(1);
  gw::put(at, reinterpret_cast<std::uint64_t>(new std::string(long_text(1))));
  gw::spawn_at(gw::worker(gw::worker_count() - 1), [at] {
    delete reinterpret_cast<std::string*>(gw::get(at));
  }).join();
}

TEST(Heaps, ABlockThatIsFreedOnAnotherHostIsTold) {
  for (const gw::choice::way way : all_ways) {
    const support::outcome r =
        support::run_child([&] { return gw::run(on_hosts(3, 3, way), free_elsewhere); });
    EXPECT_EQ(r.status, 70) << support::show(r);
    EXPECT_TRUE(r.err_has("worker 2: a thread freed 0x")) << support::show(r);
    EXPECT_TRUE(
        r.err_has("heap memory of host 0, at host 2: a pointer to it came here in a way that is not "
                  "searched"))
        << support::show(r);
    EXPECT_EQ(r.err_lines(), 1) << support::show(r);
  }
}

struct person {
  std::string name;
};

TEST(Heaps, AResultWithoutACodecDoesNotLeaveItsHost) {
  const auto where = [](std::uint32_t worker) {
    return gw::run<bool>(
        [worker] {
          auto f = gw::spawn_at(gw::worker(worker), [] { return person{long_text(7)}; });
          return f.join().name == long_text(7);
        },
        on_hosts(4, 2, gw::choice::way::server));
  };
  EXPECT_TRUE(where(1));  // of the same host
  const support::outcome r = support::run_child([&] { return where(3) ? 0 : 1; });
  EXPECT_EQ(r.status, 70) << support::show(r);
  EXPECT_TRUE(r.err_has("person has to leave its host as bytes")) << support::show(r);
  EXPECT_EQ(r.err_lines(), 1) << support::show(r);
}

bool has_left;  // of the process

/// Of a closure: its thread, which is over, goes to the other host.
struct leaves_at_end {
  bool is_it = true;
  leaves_at_end() = default;
  leaves_at_end(leaves_at_end&& other) noexcept : is_it(std::exchange(other.is_it, false)) {}
  ~leaves_at_end() {
    if (is_it) has_left = gw::migrate_to(gw::worker(1));
  }
};

[[gnu::noinline]] void throw_text() { throw std::runtime_error(long_text(1)); }

// What it has thrown stays behind, and is destroyed when its record goes.
TEST(Heaps, AnErrorThatItsThreadHasLeftBehindArrivesAsBytes) {
  for (const gw::choice::way way : all_ways) {
    has_left = false;
    const auto caught = [] {
      const std::string text = long_text(1);  // holds this thread on its host
      auto f = gw::spawn([last = leaves_at_end()] { throw_text(); });
      try {
        f.join();
      } catch (const std::runtime_error& e) {
        return e.what() == text;
      }
      return false;
    };
    EXPECT_TRUE(gw::run<bool>(caught, on_hosts(2, 2, way))) << name_of(way);
    EXPECT_TRUE(has_left);
  }
}

std::string made_by_threads;

// On substrate processes the variable would be each worker's own. Here it is the process's.
TEST(Heaps, WhatAVariableOfTheProcessOwnsStays) {
  for (int i = 0; i < 3; ++i) {
    gw::run(on_hosts(4, 2, gw::choice::way::server), [i] { made_by_threads = long_text(100 + i); });
    EXPECT_EQ(made_by_threads, long_text(100 + i));
    made_by_threads += "more than fits into its block" + long_text(300);
    made_by_threads = std::string();
  }
}

TEST(Heaps, WithPrivateHeapsNobodyStays) {
  gw::options o = on_hosts(4, 2, gw::choice::way::server);
  o.heap = gw::choice::heap::separate;
  EXPECT_EQ(gw::run<int>([] { return tree(4); }, o), in_tree);
  EXPECT_EQ(stayed(), 0u);
}

using text = gw::reducer<std::string, gw::op::append>;  // main has none here, or all would be tracked
/// All leaves say their number, and make a reducer for themselves.
void all_say(text* r, int low, int high) {
  if (high - low == 1) {
    gw::sim::charge(20'000);
    **r += std::to_string(low) + '(';
    gw::reducer<long> own;
    *own += low;
    **r += ')';
    return;
  }
  const int middle = (low + high) / 2;
  auto f = gw::spawn([=] { all_say(r, low, middle); });
  all_say(r, middle, high);
  f.join();
}

TEST(Heaps, AReducerOutlivesThoseThatWereMadeElsewhere) {
  std::string serial;
  for (int i = 0; i < 64; ++i) serial += std::to_string(i) + "()";
  for (const gw::choice::way way : {gw::choice::way::server, gw::choice::way::am}) {
    const auto written = [] {
      text r;
      all_say(&r, 0, 64);
      return r.take();
    };
    EXPECT_EQ(gw::run<std::string>(written, on_hosts(4, 2, way)), serial);
    EXPECT_GT(far_steals(), 0u);
  }
}

}  // namespace
