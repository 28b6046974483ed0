// What is reachable is kept, and nothing else: by main's blocks, variables, stack, heap; inside addresses;
// blocks in other lists; large ones that are hardly touched.
// test: timeout=120 skip-asan skip-qemu
#include "heap/reach.hpp"

#include "heap/heap.hpp"
#include "heap/malloc.hpp"
#include "heap/part.hpp"

#include <gtest/gtest.h>

#include <cstdint>
#include <cstdlib>
#include <memory>
#include <thread>
#include <vector>

namespace {

namespace heap = godwit::heap;

/// Addresses in no place that is searched, and not as they are.
std::uintptr_t hidden(const void* at) {
  asm volatile("" ::"r"(at));  // it is used
  return ~reinterpret_cast<std::uintptr_t>(at);
}
void* shown(std::uintptr_t hidden) { return reinterpret_cast<void*>(~hidden); }

void* of_worker(std::uint32_t number, std::size_t size) {
  heap::enter(number);
  void* const at = std::calloc(1, size);  // else it leads to the next free block
  heap::leave();
  return at;
}
void* of_main(std::size_t size) {
  heap::part* const p = heap::enter_main();
  void* const at = std::calloc(1, size);
  heap::leave_main(p);
  return at;
}
/// Blocks that nothing leads to, some of each size, 4 MB in all.
void leak() {
  for (std::size_t size = 1; size < 500'000; size += 1 + size / 3)
    for (std::uint32_t w = 0; w < 2; ++w) static_cast<void>(hidden(of_worker(w, size)));
}

/// A heap with two workers, which this process plays, and main.
class Reach : public testing::Test {
 protected:
  void SetUp() override {
    memory_.create(bytes, true);
    heap::begin(memory_.base(), bytes, 2);
    static_cast<void>(
        hidden(of_main(100)));  // the first block lies where the heap begins, which variables say
  }
  void TearDown() override {
    heap::check_invariants();
    heap::end();
  }
  void look() { heap::free_unreachable(memory_); }

  static constexpr std::uint64_t bytes = std::uint64_t{16} << 30;
  godwit::transport::shm::window memory_{godwit::transport::shm::of_heap};
};

/// Old words on the stack may lead to what was leaked last.
constexpr std::uint64_t some = 600'000;

void* volatile variable = nullptr;
thread_local void* volatile of_thread = nullptr;

TEST_F(Reach, NothingLeads) {
  leak();
  EXPECT_GT(heap::live_bytes(), 6 * some);
  for (int i = 0; i < 10; ++i) {
    look();
    EXPECT_LE(heap::live_bytes(), some);
    leak();
  }
}

TEST_F(Reach, WhatMainMadeIsKept) {
  for (std::size_t size = 1; size < 500'000; size += 1 + size / 3) static_cast<void>(hidden(of_main(size)));
  const std::uint64_t live = heap::live_bytes();
  leak();
  look();
  EXPECT_GE(heap::live_bytes(), live);
  EXPECT_LE(heap::live_bytes(), live + some);
}

/// A chain of blocks of different sizes and workers, each found by an address inside of it only.
std::uintptr_t hidden_chain(int length, char*& first) {
  char** link = &first;
  for (int i = 0; i < length; ++i) {
    const std::size_t size = 32 + static_cast<std::size_t>(i % 3 == 2 ? 200'000 + i : i * 40);
    auto* const block = static_cast<char*>(of_worker(static_cast<std::uint32_t>(i % 2), size));
    *link = block + size / 2;
    link = reinterpret_cast<char**>(block + (size - 16) / 16 * 16);
    *link = nullptr;
  }
  return hidden(link);
}

TEST_F(Reach, FromEachPlaceAndOnFromThere) {
  constexpr int length = 60;
  char* volatile on_stack = nullptr;
  char* start = nullptr;
  std::vector<std::uintptr_t> ends;
  const std::uintptr_t mains = hidden(of_main(100));
  const auto in_c_heap = std::make_unique<char* volatile>();
  for (const int place : {0, 1, 2, 3, 4}) {
    ends.push_back(hidden_chain(length, start));
    if (place == 0) static_cast<char**>(shown(mains))[7] = start;
    if (place == 1) variable = start;
    if (place == 2) of_thread = start;
    if (place == 3) *in_c_heap = start;
    if (place == 4) on_stack = start;
    start = nullptr;
  }
  const std::uint64_t live = heap::live_bytes();
  leak();
  look();
  EXPECT_GE(heap::live_bytes(), live);
  EXPECT_LE(heap::live_bytes(), live + some);
  leak();  // would lie in what was freed wrongly
  for (const std::uintptr_t end : ends) EXPECT_EQ(*static_cast<char**>(shown(end)), nullptr);

  static_cast<char**>(shown(mains))[7] = nullptr;
  variable = nullptr;
  of_thread = nullptr;
  *in_c_heap = nullptr;
  on_stack = nullptr;
  static_cast<void>(on_stack);
  look();
  EXPECT_LT(heap::live_bytes(), live / 3);  // a stale word here or there may keep a chain
}

// Freed blocks that a worker has found, or that have been sent home, are free already.
TEST_F(Reach, FreeBlocksAreNotFreedAgain) {
  for (int round = 0; round < 20; ++round) {
    std::vector<void*> blocks;
    blocks.reserve(3000);  // growing leaves addresses behind in free memory
    for (int i = 0; i < 3000; ++i) blocks.push_back(of_worker(static_cast<std::uint32_t>(i % 2), 100));
    heap::enter(0);
    for (std::size_t i = 0; i < 3000; i += 3) std::free(blocks[i]);
    heap::leave();
    for (std::size_t i = 1; i < 3000; i += 3) std::free(blocks[i]);
    for (std::size_t i = 2; i < 3000; i += 6) blocks[i] = nullptr;
    for (std::size_t i = 0; i < 3000; ++i)
      if (i % 3 != 2) blocks[i] = nullptr;
    look();
    heap::check_invariants();
    EXPECT_EQ(heap::live_bytes(), 501 * 112u);
    for (std::size_t i = 5; i < 3000; i += 6) std::free(blocks[i]);
    blocks.clear();
    look();
    EXPECT_EQ(heap::live_bytes(), 112u);
  }
}

TEST_F(Reach, UntouchedPagesStaySo) {
  constexpr std::size_t size = std::size_t{2} << 30;
  auto* const large = static_cast<char*>(of_worker(0, size));
  void** const mains = static_cast<void**>(of_main(size));
  void* volatile small = of_worker(1, 10);
  mains[size / 8 - 5] = large + 5;
  reinterpret_cast<void**>(large)[size / 16] = small;
  const std::uintptr_t at = hidden(std::exchange(small, nullptr));
  const auto from = static_cast<std::uint64_t>(large - reinterpret_cast<char*>(memory_.base()));
  leak();
  look();
  EXPECT_GE(heap::live_bytes(), 2 * size + 16);
  EXPECT_LE(heap::live_bytes(), 2 * size + 16 + some);
  EXPECT_NE(shown(at), nullptr);
  const auto first = memory_.written(from, from + size);
  EXPECT_LE(first.end - first.from, 2u << 20);
  EXPECT_EQ(memory_.written(first.end, from + size).from, from + size);
}

}  // namespace
