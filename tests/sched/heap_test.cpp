// Tests of the shared heap: sizes, reuse, frees by others, local collection, the live list, and a heap that
// is full.
// test: timeout=60 tsan
#include "sched/heap.hpp"

#include "base/random.hpp"
#include "support/child.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <cstring>
#include <sys/mman.h>
#include <thread>
#include <vector>

namespace {

using namespace godwit::sched;
using godwit::base::small_random;

/// A heap on shared memory, as in a segment: pages of large objects are given back to the system.
struct heap_fixture {
  static constexpr std::size_t head = 4096;
  std::size_t bytes;
  std::byte* base;
  word live{0};
  heap h;
  explicit heap_fixture(std::size_t n = 64 << 20, bool scarce = false, int kind = MAP_SHARED) : bytes(n) {
    base = static_cast<std::byte*>(
        mmap(nullptr, head + n, PROT_READ | PROT_WRITE, kind | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0));
    h.init(base, base + head, n, &live, true, scarce);
  }
  ~heap_fixture() { munmap(base, head + bytes); }
  heap_fixture(const heap_fixture&) = delete;
  int live_objects() const {
    int n = 0;
    for (std::uint64_t i = live.load(); i != 0; i = reinterpret_cast<const object*>(base + i)->next) ++n;
    return n;
  }
};

void fill(object* o, std::size_t bytes, int with) {
  std::memset(static_cast<void*>(o + 1), with, bytes - sizeof(object));
}
bool holds(const object* o, std::size_t bytes, int what) {
  const auto* p = reinterpret_cast<const unsigned char*>(o + 1);
  for (std::size_t i = 0; i < bytes - sizeof(object); ++i)
    if (p[i] != static_cast<unsigned char>(what)) return false;
  return true;
}

TEST(heap, sizes_of_all_classes_hold_what_was_asked_for) {
  for (std::size_t bytes = sizeof(object); bytes < 200'000; bytes += bytes < 3000 ? 1 : bytes / 50) {
    heap_fixture f(1 << 20);
    object* o = f.h.allocate(object_kind::bytes, bytes);
    object* behind = f.h.allocate(object_kind::record, 64);
    EXPECT_EQ(reinterpret_cast<std::uintptr_t>(o) % heap::grain, 0u);
    const auto room =
        static_cast<std::size_t>(reinterpret_cast<std::byte*>(behind) - reinterpret_cast<std::byte*>(o));
    ASSERT_GE(room, bytes);
    ASSERT_LE(room, bytes + bytes / 4 + 64) << "at most a quarter is wasted";
    EXPECT_EQ(f.h.used_bytes(), room + 64);
    EXPECT_EQ(o->kind, object_kind::bytes);
    f.h.check_invariants();
  }
}

TEST(heap, freed_memory_is_used_again) {
  heap_fixture f(1 << 20);
  object* a = f.h.allocate(object_kind::bytes, 1000);
  object* b = f.h.allocate(object_kind::bytes, 1000);
  EXPECT_EQ(f.live_objects(), 2);
  f.h.free(a);
  EXPECT_EQ(f.live_objects(), 1);
  EXPECT_EQ(f.h.allocate(object_kind::record, 1000), a);
  f.h.free(b);
  f.h.free(a);
  EXPECT_EQ(f.h.used_bytes(), 0u);
  EXPECT_EQ(f.live.load(), 0u);
  EXPECT_GE(f.h.high_bytes(), 2000u);
  f.h.check_invariants();
}

TEST(heap, frees_by_others_wait_for_a_collection) {
  heap_fixture f;
  std::vector<object*> all;
  for (int i = 0; i < 100; ++i) all.push_back(f.h.allocate(object_kind::record, 128));
  for (int i = 0; i < 100; i += 2) all[i]->freed.store(1, std::memory_order_release);
  EXPECT_EQ(f.live_objects(), 100);
  f.h.collect();
  EXPECT_EQ(f.live_objects(), 50);
  EXPECT_EQ(f.h.used_bytes(), 50u * 128);
  f.h.check_invariants();
}

TEST(heap, with_a_queue_marks_are_taken_too_and_nothing_else) {
  heap_fixture f;
  word lock{0}, first{0};
  f.h.use_queue(&lock, &first);
  std::vector<object*> all;
  for (int i = 0; i < 4; ++i) all.push_back(f.h.allocate(object_kind::record, 128));
  const auto at = [&](int i) {
    return static_cast<std::uint64_t>(reinterpret_cast<std::byte*>(all[i]) - f.base);
  };
  all[0]->freed = freed_marked;
  all[1]->freed = freed_last;  // linked by who has the lock still
  all[2]->freed = at(1);
  first = at(2);
  lock = 7;
  f.h.collect();
  EXPECT_EQ(f.live_objects(), 3) << "the marked one";
  lock = 0;
  f.h.collect();
  EXPECT_EQ(f.live_objects(), 1) << "those in the queue";
  EXPECT_EQ(first.load(), 0u);
  f.h.check_invariants();
}

TEST(heap, collects_by_itself_when_much_is_in_use) {
  heap_fixture f(4 << 20);
  for (int i = 0; i < 100'000; ++i) {
    object* o = f.h.allocate(object_kind::record, 128);
    o->freed.store(1, std::memory_order_release);  // somebody else was done with it at once
  }
  EXPECT_LT(f.h.high_bytes(), std::size_t{4} << 20);
  f.h.check_invariants();
}

TEST(heap, large_objects_come_and_go) {
  heap_fixture f(256 << 20);
  for (int round = 0; round < 50; ++round) {
    const std::size_t bytes = (std::size_t{1} << 20) + static_cast<std::size_t>(round) * 50'000;
    object* o = f.h.allocate(object_kind::image, bytes);
    fill(o, bytes, round);
    ASSERT_TRUE(holds(o, bytes, round));
    f.h.free(o);
    f.h.check_invariants();
  }
  EXPECT_EQ(f.h.used_bytes(), 0u);
}

void random_life_with_contents(bool scarce) {
  heap_fixture f(128 << 20, scarce);
  struct one {
    object* o;
    std::size_t bytes;
    int mark;
  };
  std::vector<one> live;
  small_random r(3);
  for (int step = 0; step < 60'000; ++step) {
    if (live.size() < 200 || r.below(2) == 0) {
      const std::size_t bytes = sizeof(object) + r.below(r.below(50) == 0 ? 100'000 : 3000);
      const int mark = static_cast<int>(r.below(256));
      object* o = f.h.allocate(object_kind::bytes, bytes);
      fill(o, bytes, mark);
      live.push_back({o, bytes, mark});
    }
    while (live.size() > 300 || (!live.empty() && r.below(3) == 0)) {
      const std::size_t i = r.below(static_cast<std::uint32_t>(live.size()));
      ASSERT_TRUE(holds(live[i].o, live[i].bytes, live[i].mark)) << step;
      if (r.below(2) == 0)
        f.h.free(live[i].o);
      else
        live[i].o->freed.store(1, std::memory_order_release);
      live[i] = live.back();
      live.pop_back();
    }
    if (step % 1000 == 0) f.h.check_invariants();
  }
  f.h.collect();
  EXPECT_EQ(f.live_objects(), static_cast<int>(live.size()));
  f.h.check_invariants();
}

TEST(heap, random_life_with_contents) { random_life_with_contents(false); }
TEST(heap, random_life_with_contents_where_memory_is_scarce) { random_life_with_contents(true); }

// Stacks of all sizes, one or two at a time, given back by others.
TEST(heap, where_memory_is_scarce_room_is_used_again_by_other_sizes) {
  std::size_t room[2];
  for (const bool scarce : {false, true}) {
    heap_fixture f(1 << 20, scarce);
    object* highest = nullptr;
    object* before = nullptr;
    small_random r(5);
    for (int i = 0; i < 1000; ++i) {
      object* o = f.h.allocate(object_kind::image, 1000 + r.below(5000));
      highest = std::max(highest, o);
      if (before != nullptr) before->freed.store(freed_marked, std::memory_order_release);
      before = o;
    }
    room[scarce ? 1 : 0] =
        static_cast<std::size_t>(reinterpret_cast<std::byte*>(highest) - f.base) - heap_fixture::head;
    f.h.check_invariants();
  }
  EXPECT_LT(room[1], std::size_t{24} << 10);
  EXPECT_LT(room[1], room[0] / 2);
}

// Between two passes an object keeps its size.
TEST(heap, where_memory_is_scarce_a_free_object_serves_smaller_ones_whole) {
  heap_fixture f(1 << 20, true);
  object* const large = f.h.allocate(object_kind::image, 10'000);
  const std::size_t room = heap::room_of(*large);
  f.h.free(large);
  object* const small = f.h.allocate(object_kind::image, 3'000);
  EXPECT_EQ(small, large);
  EXPECT_EQ(heap::room_of(*small), room);
  EXPECT_NE(f.h.allocate(object_kind::record, 64), large + 1) << "nothing begins inside it";
  f.h.free(small);
  EXPECT_EQ(f.h.allocate(object_kind::image, 10'000), large);
  f.h.check_invariants();
}

TEST(heap, where_memory_is_scarce_room_behind_the_last_live_object_is_new_after_a_pass) {
  heap_fixture f(1 << 20, true);
  std::vector<object*> all;
  for (int i = 0; i < 50; ++i) all.push_back(f.h.allocate(object_kind::record, 128));
  f.h.free(all[0]);
  for (std::size_t i = 2; i < 50; ++i) all[i]->freed.store(freed_marked);
  f.h.collect();
  f.h.check_invariants();
  EXPECT_EQ(f.h.allocate(object_kind::image, 10'000), all[2]) << "behind the one that lives";
  EXPECT_EQ(f.h.allocate(object_kind::record, 128), all[0]) << "what is free before that is still known";
  f.h.check_invariants();
}

TEST(heap, where_memory_is_scarce_pages_go_back_before_the_owner_is_idle) {
  for (const bool scarce : {false, true}) {
    heap_fixture f(1 << 20, scarce, MAP_PRIVATE);
    object* const stays = f.h.allocate(object_kind::record, 128);
    object* const goes = f.h.allocate(object_kind::image, 12'000);
    std::memset(static_cast<void*>(goes + 1), 7, 11'000);
    goes->freed.store(freed_marked);
    f.h.rest();
    f.h.check_invariants();
    const auto* const inside = reinterpret_cast<const std::byte*>(goes) + 6'000;
    EXPECT_EQ(*inside, scarce ? std::byte{0} : std::byte{7});
    EXPECT_EQ(stays->kind, object_kind::record);
    EXPECT_EQ(f.h.used_bytes(), heap::room_of(*stays) + (scarce ? 0 : heap::room_of(*goes)));
  }
}

// The owner allocates and writes; another thread reads and frees: what a migrated consumer does.
TEST(heap, owner_and_remote_free_at_the_same_time) {
  heap_fixture f(32 << 20);
  constexpr std::size_t ring = 64;
  std::atomic<object*> passed[ring] = {};
  std::atomic<int> bad{0};
  constexpr int total = 100'000;
  std::thread other([&] {
    for (int i = 0; i < total; ++i) {
      std::atomic<object*>& place = passed[i % ring];
      object* o = nullptr;
      while ((o = place.exchange(nullptr, std::memory_order_acquire)) == nullptr) std::this_thread::yield();
      int value = 0;
      std::memcpy(&value, o + 1, sizeof value);
      bad += value != i;
      o->freed.store(1, std::memory_order_release);
    }
  });
  for (int i = 0; i < total; ++i) {
    object* o = f.h.allocate(object_kind::bytes, 64 + static_cast<std::size_t>(i % 7) * 100);
    std::memcpy(static_cast<void*>(o + 1), &i, sizeof i);
    std::atomic<object*>& place = passed[i % ring];
    while (place.load(std::memory_order_relaxed) != nullptr) std::this_thread::yield();
    place.store(o, std::memory_order_release);
  }
  other.join();
  EXPECT_EQ(bad.load(), 0);
  f.h.collect();
  EXPECT_EQ(f.h.used_bytes(), 0u);
  f.h.check_invariants();
}

TEST(heap, that_is_full_ends_with_a_message) {
  const auto child = support::run_child([] {
    heap_fixture f(1 << 20);
    for (;;) f.h.allocate(object_kind::image, 10'000);
    return 0;
  });
  EXPECT_EQ(child.status, 70) << show(child);
  EXPECT_EQ(child.err_lines(), 1) << show(child);
  EXPECT_TRUE(child.err_has("--godwit-heap-bytes")) << show(child);
}

// Many small objects, all freed, then one large: memory of one class does not serve another.
TEST(heap, a_full_heap_collects_before_it_gives_up) {
  heap_fixture f(1 << 20);
  std::vector<object*> all;
  for (int i = 0; i < 60; ++i) all.push_back(f.h.allocate(object_kind::bytes, 16'000));
  for (object* o : all) o->freed.store(1, std::memory_order_release);
  for (int i = 0; i < 60; ++i) EXPECT_NE(f.h.allocate(object_kind::bytes, 16'000), nullptr);
  f.h.check_invariants();
}

}  // namespace
