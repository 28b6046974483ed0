// Heaps of several hosts in one process: whose turn it is allocates at its host, and frees what is of its
// host; blocks that are left when the run is over can be freed by the process, and a later run has them.
// test: timeout=60 skip-asan skip-qemu
#include "heap/hosts.hpp"

#include "heap/heap.hpp"
#include "heap/malloc.hpp"

#include <gtest/gtest.h>

#include <atomic>
#include <cstdlib>
#include <cstring>
#include <malloc.h>
#include <string>
#include <sys/wait.h>
#include <thread>
#include <unistd.h>
#include <vector>

namespace {

namespace heap = godwit::heap;

constexpr std::uint64_t bytes = std::uint64_t{1} << 40;  // of all

void is_foreign(const void* at, std::uint32_t host) noexcept {
  std::fprintf(stderr, "freed %p of host %u", at, host);
  std::_Exit(3);
}

heap::hosts& begin(std::uint32_t count = 3) { return heap::hosts::begin(count, bytes, is_foreign); }

/// Not known to the compiler, which leaves out what it can see through.
void* volatile kept;
void* make(std::size_t n) {
  kept = std::malloc(n);
  return kept;
}

std::uint32_t host_of(const heap::hosts& h, const void* at, std::uint32_t count = 3) {
  const auto all = h.addresses();
  return static_cast<std::uint32_t>((reinterpret_cast<std::uintptr_t>(at) - all.low) /
                                    ((all.high - all.low) / count));
}
bool is_in(const heap::hosts& h, const void* at) {
  return h.addresses().holds(reinterpret_cast<std::uintptr_t>(at));
}

TEST(Hosts, WhoseTurnItIsAllocatesAtItsHost) {
  heap::hosts& h = begin();
  void* blocks[3];
  for (std::uint32_t host = 0; host < 3; ++host) {
    h.turn_of(host, true);
    blocks[host] = make(100);
    EXPECT_TRUE(heap::holds(blocks[host]));
    EXPECT_EQ(host_of(h, blocks[host]), host);
  }
  h.turn_of(0, true);
  EXPECT_FALSE(heap::holds(blocks[1]));
  for (std::uint32_t host = 0; host < 3; ++host) {
    h.turn_of(host, true);
    std::free(blocks[host]);
    EXPECT_EQ(heap::live_bytes(), 0u);
  }
  h.turn_of(1, false);  // a companion: frees what is its host's, and allocates nothing there
  void* const own = make(100);
  EXPECT_FALSE(is_in(h, own));
  std::free(own);
  heap::hosts::end(h);
  void* const after = make(100);
  EXPECT_FALSE(heap::holds(after));
  std::free(after);
}

TEST(Hosts, ABlockOfAnotherHostIsNotFreedHere) {
  const auto made_at_1 = [](auto&& then) {
    heap::hosts& h = begin();
    h.turn_of(1, true);
    void* const at = make(100);
    h.turn_of(2, true);
    then(at);
  };
  const auto says = [](const char* text) { return testing::ContainsRegex(text); };
  EXPECT_EXIT(made_at_1([](void* at) { std::free(at); }), testing::ExitedWithCode(3), says("of host 1"));
  EXPECT_EXIT(made_at_1([](void* at) { kept = std::realloc(at, 200); }), testing::ExitedWithCode(3),
              says("of host 1"));
  EXPECT_EXIT(made_at_1([](void* at) { malloc_usable_size(at); }), testing::ExitedWithCode(3),
              says("of host 1"));
}

TEST(Hosts, WhatIsLeftStays) {
  heap::hosts* h = &begin();
  h->turn_of(2, true);
  auto* const left = static_cast<char*>(make(100));
  std::strcpy(left, "left");
  h->turn_of(0, true);
  std::free(make(200'000));
  heap::hosts::end(*h);
  // The process has it, as if it were the C library's.
  EXPECT_GE(malloc_usable_size(left), 100u);
  auto* const moved = static_cast<char*>(std::realloc(left, 1000));
  EXPECT_EQ(std::string(moved), "left");
  EXPECT_FALSE(is_in(*h, moved));
  std::free(moved);

  const auto addresses = h->addresses();
  h = &begin();  // these heaps were needed when the run ended
  EXPECT_EQ(h->addresses().low, addresses.low);
  h->turn_of(2, true);
  EXPECT_EQ(heap::live_bytes(), 0u);
  heap::check_invariants();
  void* const again = make(100);
  EXPECT_EQ(host_of(*h, again), 2u);
  std::free(again);
  heap::hosts::end(*h);
}

TEST(Hosts, AThousandRunsDoNotGrow) {
  for (int i = 0; i < 1000; ++i) {
    heap::hosts& h = begin(2 + i % 3);
    for (std::uint32_t host = 0; host < 2; ++host) {
      h.turn_of(host, true);
      std::free(make(100));
    }
    heap::hosts::end(h);
  }
  heap::hosts& h = begin();
  h.turn_of(0, true);
  EXPECT_EQ(heap::live_bytes(), 0u);
  heap::hosts::end(h);
}

// What is left of a run with another number of hosts has its place beside.
TEST(Hosts, RunsOfOtherNumbersOfHostsLeaveItAlone) {
  heap::hosts* two = &begin(2);
  two->turn_of(1, true);
  auto* const left = static_cast<char*>(make(100));
  std::strcpy(left, "left");
  heap::hosts::end(*two);
  for (std::uint32_t count = 3; count < 40; ++count) {
    heap::hosts& h = begin(count);
    EXPECT_FALSE(is_in(h, left));
    for (std::uint32_t host = 0; host < count; ++host) {
      h.turn_of(host, true);
      std::memset(make(1000), 1, 1000);
      std::free(kept);
    }
    heap::hosts::end(h);
  }
  EXPECT_STREQ(left, "left");
  std::free(left);
}

// Any OS thread of the process frees what a run has left: at the same time, and while another run is on.
TEST(Hosts, OtherThreadsFreeWhatIsLeft) {
  constexpr int threads = 4, each = 500;
  heap::hosts* h = &begin();
  std::vector<void*> left[threads];
  for (auto& list : left) list.reserve(each);
  for (int i = 0; i < each; ++i)
    for (int t = 0; t < threads; ++t) {
      h->turn_of(static_cast<std::uint32_t>((i + t) % 3), true);
      void* const at = make(i % 50 == 0 ? 100'000 : 100);
      h->turn_of_nobody();
      left[t].push_back(at);
    }
  heap::hosts::end(*h);
  heap::hosts* const other = &begin(2);
  std::vector<std::thread> all;
  std::atomic<bool> go{false};
  for (auto& list : left)
    all.emplace_back([&list, &go] {
      while (!go) std::this_thread::yield();
      for (void* const at : list) {
        EXPECT_GE(malloc_usable_size(at), 100u);
        std::free(at);
      }
    });
  go = true;
  for (int i = 0; i < 1000; ++i) {
    other->turn_of(static_cast<std::uint32_t>(i % 2), true);
    std::free(make(100));
    other->turn_of_nobody();
  }
  for (std::thread& t : all) t.join();
  heap::hosts::end(*other);
  h = &begin();
  for (std::uint32_t host = 0; host < 3; ++host) {
    h->turn_of(host, true);
    EXPECT_EQ(heap::live_bytes(), 0u);
    heap::check_invariants();
  }
  heap::hosts::end(*h);
}

TEST(Hosts, AForkHasACopy) {
  heap::hosts* h = &begin();
  h->turn_of(1, true);
  auto* const left = static_cast<char*>(make(100));
  std::strcpy(left, "left");
  heap::hosts::end(*h);
  const pid_t child = fork();
  if (child == 0) {
    std::strcpy(left, "mine");
    std::free(left);
    heap::hosts& again = begin();
    again.turn_of(1, true);
    std::memset(make(100), 1, 100);
    std::free(kept);
    heap::hosts::end(again);
    std::_Exit(0);
  }
  int status = -1;
  waitpid(child, &status, 0);
  EXPECT_EQ(status, 0);
  EXPECT_STREQ(left, "left");
  EXPECT_GE(malloc_usable_size(left), 100u);
  std::free(left);
}

TEST(Hosts, OutsideIsTheCLibrary) {
  heap::hosts& h = begin();
  h.turn_of(0, true);
  {
    const heap::outside o;
    void* const at = make(100);
    EXPECT_FALSE(heap::holds(at));
    std::free(at);
  }
  void* const at = make(100);
  EXPECT_TRUE(heap::holds(at));
  std::free(at);
  heap::hosts::end(h);
}

}  // namespace
