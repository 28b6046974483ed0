// check_heap: what threads allocated and nobody freed is reported with its line; what was freed elsewhere, or
// what a worker's globals lead to, is not. In programs built with debug information, as these are.
// test: timeout=300 once skip-asan skip-qemu
#include "heap/leaks_library.hpp"
#include "support/child.hpp"
#include "support/elsewhere.hpp"
#include "support/schedule.hpp"

#include <godwit/godwit.hpp>

#include <gtest/gtest.h>

#include <alloca.h>
#include <atomic>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <map>
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

namespace {

namespace gw = godwit;

/// A run of its own process, with @p root.
support::outcome outcome_of(const gw::options& o, const std::function<void()>& root, bool checks = true) {
  return support::run_child([&] {
    for (const char* name : {"GODWIT_CHECK_HEAP", "GODWIT_HEAP", "GODWIT_WORKERS"}) unsetenv(name);
    gw::options with = o;
    with.check_heap = checks;
    with.heap = gw::choice::heap::shared;
    return gw::run(
        0, nullptr,
        [&root] {
          gw::on_each_worker([] {});  // all workers are up
          root();
        },
        with);
  });
}

std::string blocks(int n, std::size_t bytes) {
  return "godwit: heap: " + std::to_string(n) + (n == 1 ? " block (" : " blocks (") + std::to_string(bytes) +
         " bytes) left by threads, allocated at ";
}
/// Is there a line that begins so and names this line of this file?
bool has_leak(const support::outcome& o, const std::string& begins, int line,
              const char* file = "leaks_test.cpp") {
  const std::string place = std::string("(") + file + ":" + std::to_string(line) + ")";
  for (std::size_t at = 0; (at = o.err.find(begins, at)) != std::string::npos; ++at)
    if (o.err.substr(at, o.err.find('\n', at) - at).find(place) != std::string::npos) return true;
  return false;
}
/// Lines of the report.
int count_of(const support::outcome& o, const char* what) {
  int n = 0;
  for (std::size_t at = 0; (at = o.err.find(what, at)) != std::string::npos; ++at) ++n;
  return n;
}
int leaks(const support::outcome& o) { return count_of(o, "left by threads"); }

void expect_fine(const support::outcome& o) {
  EXPECT_EQ(o.status, 0) << show(o);
  EXPECT_EQ(o.left_behind, 0) << show(o);
}

void for_each_schedule(const std::function<void(const gw::options&)>& body) {
  for (const char* force : {"none", "random", "parents", "children"})
    for (const std::uint32_t workers : {1u, 2u, 4u}) {
      const gw::options o = support::schedule(workers, force, workers == 4 ? 5 : 0);
      SCOPED_TRACE(support::describe(o));
      body(o);
      if (testing::Test::HasFailure()) return;
    }
}

void* volatile hidden;  // what the compiler must not see
/// Not a pointer for who looks for pointers.
void forget(void* p) {
  hidden = p;
  hidden = nullptr;
}

struct node {
  std::unique_ptr<node> left, right;
  std::vector<int> numbers;
};
constexpr int numbers_line = __LINE__ + 4;
/// A tree of 2^(depth+1)-1 nodes that several workers make; of each, what it leaves if @p leaks.
std::unique_ptr<node> tree(int depth, bool leaks) {
  auto n = std::make_unique<node>();
  if (leaks) forget(new std::vector<int>(25, depth));
  if (depth == 0) return n;
  auto left = gw::spawn([&n, depth, leaks] { n->left = tree(depth - 1, leaks); });
  n->right = tree(depth - 1, leaks);
  left.join();
  n->numbers.assign(100, depth);
  return n;
}

TEST(Leaks, AreFoundWithTheirLine) {
  for_each_schedule([](const gw::options& o) {
    const auto out = outcome_of(o, [] { tree(5, true); });
    expect_fine(out);
    // The vector, and what it owns: through headers of the C++ library to the line of this file.
    EXPECT_TRUE(has_leak(out, blocks(126, 63 * (100 + sizeof(std::vector<int>))), numbers_line)) << show(out);
    EXPECT_EQ(leaks(out), 1) << show(out);
  });
}

TEST(Leaks, WhatOthersFreeIsNone) {
  for_each_schedule([](const gw::options& o) {
    const auto out = outcome_of(o, [] {
      auto t = tree(5, false);
      support::elsewhere(30);
      auto f = gw::spawn([t = std::move(t)] { return t->numbers.size(); });
      support::elsewhere(30);
      if (f.join() != 100) std::abort();
    });
    expect_fine(out);
    EXPECT_EQ(count_of(out, "godwit: heap:"), 0) << show(out);
  });
}

// What a worker had in its registers when another one asked it for work lies on the stack of its handlers.
TEST(Leaks, RegistersOfInterruptedThreadsReachNothing) {
  for_each_schedule([](const gw::options& o) {
    const auto out = outcome_of(o, [] {
      auto* const lost = new char[1000];
      for (int i = 0; i < 3; ++i) {
        raise(SIGURG);
        lost[i] = 1;
      }
      forget(lost);
    });
    expect_fine(out);
    EXPECT_TRUE(out.err_has(blocks(1, 1000).c_str())) << show(out);
  });
}

struct list {
  list* next;
  char more[40];
};
list* volatile first;
void* volatile middle;
std::map<int, std::string> filled;

TEST(Leaks, WhatGlobalsLeadToIsNone) {
  filled[1] = "";  // of main's own heap, which leads on
  for_each_schedule([](const gw::options& o) {
    const auto out = outcome_of(o, [] {
      list* made = nullptr;
      for (int i = 0; i < 10; ++i) made = new list{made, {}};
      first = made;
      middle = static_cast<char*>(std::malloc(200'000)) + 150'000;
      filled[1] = std::string(300, 'x');
    });
    expect_fine(out);
    EXPECT_EQ(leaks(out), 0) << show(out);
    const std::string all = std::to_string(10 * sizeof(list) + 200'000 + 301);
    EXPECT_TRUE(out.err_has(
        ("godwit: heap: still reachable from workers' globals: 12 blocks (" + all + " bytes)\n").c_str()))
        << show(out);
  });
}

// The same in all workers; a block that two of them reach counts once.
TEST(Leaks, GlobalsOfAllWorkers) {
  const auto out = outcome_of(support::schedule(4, "none"), [] {
    static std::atomic<void*>* common;
    common = new std::atomic<void*>;
    gw::on_each_worker([c = common] {
      [[maybe_unused]] static std::atomic<void*>* volatile mine;
      mine = c;
      [[maybe_unused]] static void* volatile own;
      own = std::malloc(1000);
    });
  });
  expect_fine(out);
  EXPECT_EQ(leaks(out), 0) << show(out);
  EXPECT_TRUE(out.err_has("workers' globals: 5 blocks (4008 bytes)")) << show(out);
}

TEST(Leaks, AllOfTheFamily) {
  static int line = 0;
  line = __LINE__ + 2;
  const auto out = outcome_of(support::schedule(2, "none"), [] {
    forget(std::malloc(1001));
    forget(std::calloc(1002, 1));
    forget(std::realloc(nullptr, 1003));
    forget(std::realloc(std::malloc(10), 1004));
    forget(std::aligned_alloc(64, 1024));
    forget(strdup("eighteen letters.."));
    forget(operator new(1152, std::align_val_t(128)));
    forget(new char[100'001]);
    char* text = nullptr;
    if (asprintf(&text, "%d letters.......", 20) == 20 || text != nullptr)
      forget(std::exchange(text, nullptr));
    std::free(std::realloc(std::malloc(300'000), 600'000));
  });
  expect_fine(out);
  const std::size_t bytes[] = {1001, 1002, 1003, 1004, 1024, 19, 1152, 100'001};
  for (std::size_t i = 0; i < std::size(bytes); ++i)
    EXPECT_TRUE(has_leak(out, blocks(1, bytes[i]), line + static_cast<int>(i))) << bytes[i] << '\n'
                                                                                << show(out);
  EXPECT_TRUE(has_leak(out, blocks(1, 18), line + 9)) << show(out);
  EXPECT_EQ(leaks(out), 9) << show(out);
}

// The one at which the heap begins, whose address the library knows, is among them.
TEST(Leaks, OfEverySize) {
  static int line = 0;
  line = __LINE__ + 2;
  const auto out = outcome_of(support::schedule(1, "none"), [] {
    for (std::size_t bytes = 16; bytes <= 300'000; bytes += bytes / 8) forget(std::malloc(bytes));
  });
  std::size_t bytes = 0;
  int n = 0;
  for (std::size_t b = 16; b <= 300'000; b += b / 8, ++n) bytes += b;
  expect_fine(out);
  EXPECT_TRUE(has_leak(out, blocks(n, bytes), line)) << show(out);
  EXPECT_EQ(count_of(out, "godwit: heap:"), 1) << show(out);
}

TEST(Leaks, OfALibrary) {
  const auto out = outcome_of(support::schedule(2, "none"), [] {
    leaks_library::keep(500);
    forget(leaks_library::list(20));
  });
  expect_fine(out);
  EXPECT_TRUE(has_leak(out, blocks(20, 20 * sizeof(leaks_library::entry)), leaks_library::list_line,
                       "leaks_library.cpp"))
      << show(out);
  EXPECT_EQ(leaks(out), 1) << show(out);
  EXPECT_TRUE(out.err_has("workers' globals: 1 block (500 bytes)")) << show(out);
}

// Who called the function that allocates is named as well.
[[gnu::noinline]] void helper() {
  forget(new int[50]);
  asm volatile("");
}
TEST(Leaks, NameTheCaller) {
  static int line = 0;
  line = __LINE__ + 3;
  const auto out = outcome_of(support::schedule(2, "none"), [] {
    hidden = nullptr;
    helper();
    hidden = nullptr;
  });
  expect_fine(out);
  EXPECT_TRUE(out.err_has((", called at leaks_test.cpp:" + std::to_string(line)).c_str())) << show(out);
}

// Above a thread that came back alone lies what others left there: no frames, though it may look like some.
[[gnu::noinline]] std::uintptr_t who_calls() {
  return reinterpret_cast<std::uintptr_t>(__builtin_return_address(0));
}
/// Code whose caller would be looked for by way of the frame pointer.
[[gnu::noinline]] std::uintptr_t in_a_frame(std::size_t bytes) {
  auto* const room = static_cast<char*>(alloca(bytes));
  room[0] = 1;
  const std::uintptr_t code = who_calls();
  asm volatile("" : : "r"(room) : "memory");
  return code;
}
[[gnu::noinline]] void leave_false_frames() {
  alignas(16) std::uintptr_t words[2048];
  const std::uintptr_t code = in_a_frame(100);
  for (std::size_t i = 0; i < std::size(words); ++i) words[i] = i % 2 == 0 ? 16 : code;
  asm volatile("" : : "r"(words) : "memory");
}
[[gnu::noinline]] void parent(std::size_t bytes) {
  auto* const room = static_cast<char*>(alloca(bytes));
  room[0] = 1;
  auto f = gw::spawn([] {
    leave_false_frames();
    support::elsewhere(10);
    void* volatile p = std::malloc(50);
    std::free(p);
  });
  asm volatile("" : : "r"(room) : "memory");
  leave_false_frames();
  support::elsewhere(10);
  f.join();
}
/// Frames that lie elsewhere in each of them.
[[gnu::noinline]] void parents(int depth, std::size_t bytes) {
  auto* const room = static_cast<char*>(alloca(bytes));
  room[0] = 1;
  asm volatile("" : : "r"(room) : "memory");
  if (depth == 0) return parent(bytes);
  auto f = gw::spawn([depth, bytes] { parents(depth - 1, bytes + (std::size_t{64} << depth)); });
  parents(depth - 1, bytes);
  f.join();
}
TEST(Leaks, FramesOfOthersAreNotFollowed) {
  for_each_schedule([](const gw::options& o) {
    const auto out = outcome_of(o, [] { parents(6, 64); });
    expect_fine(out);
    EXPECT_EQ(leaks(out), 0) << show(out);
  });
}

// An exception that leaves the root thread, other exceptions, streams: nothing of the libraries' is left.
TEST(Leaks, LibrariesLeaveNothing) {
  for_each_schedule([](const gw::options& o) {
    const auto out = outcome_of(o, [] {
      for (int i = 0; i < 20; ++i) {
        auto f = gw::spawn([i]() -> std::vector<std::string> {
          if (i % 3 == 0) throw std::runtime_error(std::string(100, 'e'));
          return std::vector<std::string>(5, std::string(50, 'x'));
        });
        support::elsewhere(3);
        try {
          if (f.join().size() != 5) std::abort();
        } catch (const std::runtime_error& e) {
          if (std::strlen(e.what()) != 100) std::abort();
        }
      }
    });
    expect_fine(out);
    EXPECT_EQ(leaks(out), 0) << show(out);
  });
}

TEST(Leaks, FreeOfWhatIsFreeEndsTheRun) {
  for (const int kind : {0, 1, 2}) {
    const auto out = outcome_of(support::schedule(2, "none"), [kind] {
      char* const p = static_cast<char*>(std::malloc(kind == 1 ? 200'000 : 100));
      char* const other = static_cast<char*>(std::malloc(100));
      hidden = p;
      if (kind != 2) std::free(hidden);
      hidden = kind == 2 ? p + 16 : p;
      std::free(hidden);
      std::free(other);
    });
    EXPECT_NE(out.status, 0) << show(out);
    EXPECT_TRUE(out.err_has("which malloc has not given out, or which was freed before")) << show(out);
    EXPECT_EQ(out.err_lines(), 1) << show(out);
    EXPECT_EQ(out.left_behind, 0) << show(out);
  }
}

TEST(Leaks, AreNotLookedForUnlessAsked) {
  const auto out = outcome_of(
      support::schedule(2, "none"), [] { tree(3, true); }, false);
  expect_fine(out);
  EXPECT_EQ(out.err, "") << show(out);
}

TEST(Leaks, RefusedWhereThereIsNoSharedHeap) {
  gw::options o = support::schedule(2, "none");
  o.check_heap = true;
  for (const char* substrate : {"threads", "sim"}) {
    o.substrate = gw::choice::named{substrate};
    EXPECT_THROW(gw::run<int>([] { return 0; }, o), std::invalid_argument);
  }
  o.substrate = gw::choice::substrate::processes;
  o.heap = gw::choice::heap::separate;
  EXPECT_THROW(gw::run<int>([] { return 0; }, o), std::invalid_argument);
}

}  // namespace
