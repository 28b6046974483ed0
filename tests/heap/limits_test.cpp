// What happens when the heap that workers share finds no room: bad_alloc where that can be, else one line
// that says what ran out.
// test: timeout=120 skip-asan skip-qemu
#include "support/child.hpp"
#include "support/elsewhere.hpp"
#include "support/schedule.hpp"

#include <godwit/godwit.hpp>

#include <gtest/gtest.h>

#include <csignal>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <functional>
#include <new>
#include <string>
#include <sys/resource.h>
#include <sys/sysinfo.h>
#include <unistd.h>
#include <vector>

namespace {

namespace gw = godwit;

gw::options small(std::uint32_t workers, const char* force = "none") {
  gw::options o = support::schedule(workers, force);
  o.heap = gw::choice::heap::shared;
  o.stack_bytes = o.heap_bytes = 64 << 20;
  o.global_bytes = 256 << 20;
  return o;
}

/// A run in a process of its own, which may have so many bytes of addresses; the heap has some of them.
support::outcome outcome_of(const gw::options& o, std::uint64_t addresses,
                            const std::function<void()>& root) {
  return support::run_child([&] {
    if (addresses != 0) {
      const rlimit limit{addresses, addresses};
      setrlimit(RLIMIT_AS, &limit);
    }
    return gw::run(
        0, nullptr, [&root] { root(); }, o);
  });
}

constexpr std::uint64_t few_addresses = std::uint64_t{3} << 30;

using chunks = std::vector<std::vector<char>>;
/// Until there is no room.
void fill(chunks& all) {
  all.reserve(100'000);
  for (;;) all.emplace_back(std::size_t{1} << 20);
}

TEST(Limits, AFullHeapIsBadAllocAndCanBeUsedOn) {
  for (const char* force : {"none", "random"})
    for (const std::uint32_t workers : {1u, 2u, 4u}) {
      const gw::options o = small(workers, force);
      SCOPED_TRACE(support::describe(o));
      const auto out = outcome_of(o, few_addresses, [] {
        chunks all;
        for (int i = 0; i < 3; ++i) {
          try {
            fill(all);
          } catch (const std::bad_alloc&) {
            std::printf("%d: %d\n", i, all.size() > 100 && all.size() < 1'000);
          }
          support::elsewhere(30);
          all.clear();
        }
      });
      EXPECT_EQ(out.status, 0) << show(out);
      EXPECT_EQ(out.out, "0: 1\n1: 1\n2: 1\n") << show(out);
      EXPECT_EQ(out.left_behind, 0) << show(out);
    }
}

TEST(Limits, WhoDoesNotCatchBadAllocIsToldWhatRanOut) {
  const auto full = outcome_of(small(2), few_addresses, [] {
    chunks all;
    fill(all);
  });
  EXPECT_EQ(full.status, 1) << show(full);
  EXPECT_EQ(full.err_lines(), 1) << show(full);
  for (const char* words : {"std::bad_alloc: a thread asked for 1048576 bytes", "addresses for", "ulimit -v"})
    EXPECT_TRUE(full.err_has(words)) << words << '\n' << show(full);
}

// As the system would have refused it: not found out page by page.
TEST(Limits, ABlockThatTheMachineCannotHoldIsBadAlloc) {
  struct sysinfo machine {};
  ASSERT_EQ(sysinfo(&machine), 0);
  const std::uint64_t more = (std::uint64_t{machine.totalram} + machine.totalswap) * machine.mem_unit + 4096;
  if (more >= std::uint64_t{900} << 30)
    GTEST_SKIP() << "the heap has no addresses for more than this machine has";
  const auto out = outcome_of(small(2), 0, [more] {
    std::printf("%d ", std::malloc(more) == nullptr);
    std::printf("%d\n", std::realloc(std::malloc(10 << 20), more) == nullptr);
    char* volatile object = new (std::align_val_t(4096)) char[more];
    object[0] = 1;
  });
  EXPECT_EQ(out.status, 1) << show(out);
  EXPECT_EQ(out.out, "1 1\n") << show(out);
  EXPECT_EQ(out.err_lines(), 1) << show(out);
  EXPECT_TRUE(out.err_has("bytes, and the machine has ")) << show(out);
}

/// The file that the heap lies in has @p bytes from now on: the system has no page for what is behind.
bool shorten_heap(off_t bytes) {
  namespace fs = std::filesystem;
  for (const auto& entry : fs::directory_iterator("/proc/self/fd")) {
    std::error_code gone;
    if (fs::read_symlink(entry, gone).string().find("godwit-heap") == std::string::npos) continue;
    return ftruncate(std::atoi(entry.path().filename().c_str()), bytes) == 0;
  }
  return false;
}

TEST(Limits, APageThatTheSystemDoesNotHaveEndsTheRun) {
  for (const std::uint32_t workers : {1u, 2u, 4u}) {
    const auto out = outcome_of(small(workers), 0, [] {
      if (!shorten_heap(64 << 20)) std::abort();  // the first pages of the table and the spans' begin
      chunks all;
      fill(all);
    });
    EXPECT_NE(out.status, 0) << show(out);
    EXPECT_EQ(out.err_lines(), 1) << show(out);
    for (const char* words : {"godwit: worker 0: the system has no memory left for a page at 0x",
                              "in the heap of what", "control group"})
      EXPECT_TRUE(out.err_has(words)) << words << '\n' << show(out);
    EXPECT_EQ(out.left_behind, 0) << show(out);
  }
}

// What the system does when memory runs out.
TEST(Limits, AKilledWorkerMayHaveHadNoMemory) {
  const auto out = outcome_of(small(2), 0, [] { kill(getpid(), SIGKILL); });
  EXPECT_EQ(out.status, 128 + SIGKILL) << show(out);
  EXPECT_EQ(out.err_lines(), 1) << show(out);
  EXPECT_TRUE(out.err_has("signal 9 (Killed): by somebody, or by the system because memory ran out"))
      << show(out);
}

TEST(Limits, OfFilesIsSaidBeforeTheRun) {
  const auto out = support::run_child([] {
    const rlimit limit{1 << 30, 1 << 30};
    setrlimit(RLIMIT_FSIZE, &limit);
    return gw::run(
        0, nullptr, [] { std::puts(std::string(100, 'x').c_str()); }, small(2));
  });
  EXPECT_EQ(out.status, 0) << show(out);  // the heap is as large as a file may be
  const auto less = support::run_child([] {
    const rlimit limit{1 << 20, 1 << 20};
    setrlimit(RLIMIT_FSIZE, &limit);
    return gw::run(
        0, nullptr, [] {}, small(2));
  });
  EXPECT_NE(less.status, 0) << show(less);
  EXPECT_EQ(less.err_lines(), 1) << show(less);
  EXPECT_TRUE(less.err_has("ulimit -f")) << show(less);
}

}  // namespace
