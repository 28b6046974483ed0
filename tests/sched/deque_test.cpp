// The split deque under real concurrency: one owner pushes, pops and exposes, thieves steal, every entry runs
// once.
// test: timeout=120 tsan
//
// The owner's fast path is written out here as task.hpp inlines it. Thieves use the very steal() of the
// scheduler with a transport over plain memory. Each entry carries its number, the number of the entry below
// it, and what the thief and the owner must find in slot and record; the model says the same in Promela
// (models/deque.pml).
#include "sched/deque.hpp"

#include "base/cpu.hpp"
#include "base/random.hpp"

#include <gtest/gtest.h>

#include <atomic>
#include <cstdint>
#include <cstring>
#include <memory>
#include <sched.h>
#include <thread>
#include <vector>

namespace {

using namespace godwit::sched;
using godwit::base::small_random;

struct plain_memory {
  std::uint64_t remote_load(worker_no, const word* p, std::memory_order o) const { return p->load(o); }
  godwit::transport::word_pair_value remote_load_pair(worker_no, const word* p) const {
    const std::uint64_t second = p[1].load(std::memory_order_acquire);
    return {p[0].load(std::memory_order_acquire), second};
  }
  void remote_store(worker_no, const word* p, std::uint64_t v, std::memory_order o) const {
    const_cast<word*>(p)->store(v, o);
  }
  std::uint64_t remote_exchange(worker_no, const word* p, std::uint64_t v) const {
    return const_cast<word*>(p)->exchange(v, std::memory_order_acq_rel);
  }
  bool remote_compare_exchange(worker_no, const word* p, std::uint64_t& e, std::uint64_t v) const {
    return const_cast<word*>(p)->compare_exchange_strong(e, v, std::memory_order_acq_rel,
                                                         std::memory_order_acquire);
  }
  std::uint64_t remote_fetch_add(worker_no, const word* p, std::uint64_t v) const {
    return const_cast<word*>(p)->fetch_add(v, std::memory_order_acq_rel);
  }
  void remote_get(worker_no, void* to, const void* from, std::size_t n) const { std::memcpy(to, from, n); }
  void remote_put(worker_no, void* to, const void* from, std::size_t n) const { std::memcpy(to, from, n); }
  void remote_fence() const { std::atomic_thread_fence(std::memory_order_seq_cst); }
};
static_assert(godwit::transport::one_sided<plain_memory>);

void no_delay() noexcept {}

// Between racing steps: mostly nothing, sometimes a few turns, sometimes another thread's turn.
thread_local small_random delays_(1);
void random_delay() noexcept {
  const std::uint32_t r = delays_.below(64);
  if (r < 8)
    for (std::uint32_t i = 0; i < r * 4; ++i) godwit::base::spin_pause();
  else if (r == 63)
    sched_yield();
}

constexpr std::size_t max_slots = 4096;

struct deque_fixture {
  std::unique_ptr<hot_words> hot = std::make_unique<hot_words>();
  std::unique_ptr<public_words> words = std::make_unique<public_words>();
  std::vector<spawn_slot> slots = std::vector<spawn_slot>(max_slots);
  deque_owner deque;
  explicit deque_fixture(void (*delay)() noexcept = no_delay) {
    deque.init(hot.get(), words.get(), slots.data(), godwit::base::turn_of, delay);
    set_sentinel();
  }
  void set_sentinel() {
    deque.sentinel() = {};
    deque.sentinel().sp = 7777;
    deque.sentinel().record = 8888;
  }
  void push(std::uint64_t id) {
    spawn_slot* slot = hot->bottom;
    slot->sp = id * 2;
    slot->fp = id;
    slot->extra = slot == slots.data() + 1 ? 0 : slot[-1].fp;
    hot->bottom = slot + 1;
    std::atomic_signal_fence(std::memory_order_seq_cst);
  }
  struct result {
    bool here;
    std::uint64_t record, top;
  };
  result pop() {
    spawn_slot* mine = hot->bottom - 1;
    hot->bottom = mine;
    std::atomic_signal_fence(std::memory_order_seq_cst);
    if (mine >= hot->split) return {true, 0, 0};
    const auto p = deque.pop_public(mine, [](const spawn_slot*, const spawn_slot*) {});
    return {p.parent_here, p.record, p.top};
  }
  void expose_some(std::uint64_t record) {
    spawn_slot* end = deque.next_split();
    if (end != hot->split) deque.expose(end, [&](spawn_slot& s) { s.record = record++; });
  }
  steal_outcome steal_one(spawn_slot* got, spawn_slot* above, bool look = true) {
    return steal(plain_memory(), 2, worker_no{0}, words.get(), look, no_delay,
                 [&](const spawn_slot& s, const spawn_slot& n, spawn_slot*, ref) {
                   *got = s;
                   *above = n;
                   return true;
                 });
  }
};

TEST(deque, pushes_and_pops_like_a_stack) {
  deque_fixture d;
  EXPECT_TRUE(d.deque.empty());
  for (std::uint64_t i = 1; i <= 100; ++i) d.push(i);
  EXPECT_TRUE(d.deque.has_private());
  for (int i = 0; i < 100; ++i) EXPECT_TRUE(d.pop().here);
  EXPECT_TRUE(d.deque.empty());
  d.deque.check_invariants();
}

TEST(deque, a_thief_may_leave_what_it_has_claimed) {
  deque_fixture d;
  spawn_slot got{}, above{};
  for (std::uint64_t i = 1; i <= 2; ++i) d.push(i);
  d.deque.expose(d.hot->bottom, [&](spawn_slot& s) { s.record = 5; });
  const std::uint64_t top = d.words->top.load();
  EXPECT_EQ(steal(plain_memory(), 2, worker_no{0}, d.words.get(), true, no_delay,
                  [](const spawn_slot&, const spawn_slot&, spawn_slot*, ref) { return false; }),
            steal_outcome::stays);
  EXPECT_EQ(d.words->top.load(), top);
  EXPECT_EQ(d.words->lock.load(), 0u);
  const auto prepare = [](spawn_slot&) {};
  EXPECT_FALSE(d.deque.take_own(prepare, [](const spawn_slot&, const spawn_slot&) { return false; }));
  EXPECT_EQ(d.words->top.load(), top) << "nor does its owner";
  EXPECT_EQ(d.steal_one(&got, &above), steal_outcome::taken);
  EXPECT_EQ(got.fp, 1u);
  EXPECT_TRUE(d.pop().here);
  EXPECT_FALSE(d.pop().here);
  d.deque.check_invariants();
}

TEST(deque, below_everything_is_the_sentinel) {
  deque_fixture d;
  const auto p = d.pop();
  EXPECT_FALSE(p.here);
  EXPECT_EQ(p.record, 8888u);
  EXPECT_EQ(p.top, 7777u);
  EXPECT_TRUE(d.deque.empty());
  d.deque.check_invariants();
}

TEST(deque, compacting_moves_what_waits_over_what_was_stolen) {
  deque_fixture d;
  spawn_slot got{}, above{};
  std::uint64_t next = 1;
  // Many more in turn than there are slots; 5 always wait.
  for (std::uint64_t stolen = 1; next < 10 * max_slots; ++stolen) {
    while (next < stolen + 5) {
      if (d.hot->bottom == d.slots.data() + 100) {
        EXPECT_EQ(d.deque.compact(), next - stolen);
      }
      d.push(next);
      d.deque.expose(d.hot->bottom, [&](spawn_slot& s) { s.record = 100 + next; });
      ++next;
    }
    ASSERT_EQ(d.steal_one(&got, &above), steal_outcome::taken);
    ASSERT_EQ(got.fp, stolen);
    ASSERT_EQ(got.record, 100 + stolen);
  }
  d.deque.check_invariants();
  for (int i = 0; i < 4; ++i) EXPECT_TRUE(d.pop().here);
  EXPECT_TRUE(d.deque.compact() == 0 && d.deque.empty());
}

TEST(deque, exposes_the_older_half_and_thieves_take_the_oldest) {
  deque_fixture d;
  spawn_slot got{}, above{};
  for (std::uint64_t i = 1; i <= 8; ++i) d.push(i);
  EXPECT_EQ(d.steal_one(&got, &above), steal_outcome::empty) << "private entries cannot be stolen";
  EXPECT_EQ(d.steal_one(&got, &above, false), steal_outcome::empty);
  d.expose_some(100);
  d.deque.check_invariants();
  EXPECT_EQ(d.hot->split, d.slots.data() + 5);
  for (std::uint64_t i = 1; i <= 4; ++i) {
    ASSERT_EQ(d.steal_one(&got, &above), steal_outcome::taken);
    EXPECT_EQ(got.fp, i);
    EXPECT_EQ(got.record, 99 + i);
    EXPECT_EQ(above.record, i == 1 ? 8888 : 98 + i) << "the neighbour says what the stolen thread completes";
    EXPECT_EQ(above.sp, i == 1 ? 7777 : (i - 1) * 2) << "and where its stack ends";
  }
  EXPECT_EQ(d.steal_one(&got, &above), steal_outcome::empty);
  for (int i = 0; i < 4; ++i) EXPECT_TRUE(d.pop().here);
  const auto p = d.pop();
  EXPECT_FALSE(p.here);
  EXPECT_EQ(p.record, 103u);
  EXPECT_EQ(p.top, 8u);
  EXPECT_TRUE(d.deque.empty()) << "all older ones are gone as well";
  EXPECT_EQ(d.deque.sentinel().sp, 8u) << "the thread that popped is at the bottom now";
  EXPECT_EQ(d.deque.sentinel().record, 103u);
  d.deque.check_invariants();
}

TEST(deque, public_entries_can_be_popped_and_keep_their_spare_record) {
  deque_fixture d;
  for (std::uint64_t i = 1; i <= 6; ++i) d.push(i);
  while (d.hot->split < d.hot->bottom)
    d.expose_some(50 + static_cast<std::uint64_t>(d.hot->split - d.slots.data()));
  for (int i = 0; i < 6; ++i) {
    EXPECT_TRUE(d.pop().here);
    d.deque.check_invariants();
  }
  for (int i = 1; i <= 6; ++i) EXPECT_NE(d.slots[i].record, 0u) << i;
}

TEST(deque, a_taken_lock_keeps_thieves_out) {
  deque_fixture d;
  spawn_slot got{}, above{};
  d.push(1);
  d.expose_some(1);
  d.words->lock = 1;
  EXPECT_EQ(d.steal_one(&got, &above), steal_outcome::busy);
  d.words->lock = 0;
  EXPECT_EQ(d.steal_one(&got, &above), steal_outcome::taken);
}

TEST(deque, the_owner_takes_its_own_oldest) {
  deque_fixture d;
  for (std::uint64_t i = 1; i <= 3; ++i) d.push(i);
  d.expose_some(50);
  ASSERT_EQ(d.hot->split, d.slots.data() + 3) << "one is private still";
  std::vector<std::uint64_t> prepared, taken;
  while (d.deque.take_own(
      [&](spawn_slot& s) {
        prepared.push_back(s.fp);
        s.record = 77;
      },
      [&](const spawn_slot& s, const spawn_slot& above) {
        EXPECT_EQ(above.fp, s.extra);
        EXPECT_NE(d.words->lock.load(), 0u) << "no thief may take it instead";
        taken.push_back(s.fp);
        return true;
      })) {
  }
  EXPECT_EQ(prepared, (std::vector<std::uint64_t>{3}));
  EXPECT_EQ(taken, (std::vector<std::uint64_t>{1, 2, 3}));
  EXPECT_FALSE(d.pop().here);
  d.deque.check_invariants();
}

#if defined(__SANITIZE_THREAD__)
constexpr std::uint64_t entries = 100'000;
#elif defined(__has_feature)
#if __has_feature(thread_sanitizer)
constexpr std::uint64_t entries = 100'000;
#else
constexpr std::uint64_t entries = 2'000'000;
#endif
#else
constexpr std::uint64_t entries = 2'000'000;
#endif

struct campaign {
  unsigned thieves;
  unsigned depth;         ///< the owner's stack stays below
  unsigned expose_every;  ///< pushes between two exposures
  bool own_thefts;        ///< the owner takes its own now and then, as forced steals do
};
class deque_race : public testing::TestWithParam<campaign> {};

TEST_P(deque_race, every_entry_runs_exactly_once) {
  const campaign c = GetParam();
  deque_fixture d(random_delay);
  std::atomic<bool> stop{false};
  std::vector<std::atomic<std::uint8_t>> runs(entries + 1);
  std::atomic<std::uint64_t> damage{0}, stolen{0};
  const auto run_entry = [&](std::uint64_t id, std::uint64_t sp) {
    if (id == 0 || id > entries || sp != id * 2)
      damage.fetch_add(1);
    else
      runs[id].fetch_add(1, std::memory_order_relaxed);
  };
  std::vector<std::thread> thieves;
  for (unsigned t = 0; t < c.thieves; ++t)
    thieves.emplace_back([&, t] {
      delays_ = small_random(t + 100);
      const plain_memory memory;
      std::uint64_t mine = 0;
      while (!stop.load(std::memory_order_acquire)) {
        const bool look = delays_.below(4) != 0;
        const auto outcome =
            steal(memory, t + 2, worker_no{0}, d.words.get(), look, random_delay,
                  [&](const spawn_slot& own, const spawn_slot& above, spawn_slot*, ref) {
                    if (delays_.below(8) == 0) return false;
                    run_entry(own.fp, own.sp);
                    const bool first = own.extra == 0;
                    if (above.fp != own.extra || own.record == 0 || (first && above.record != 8888) ||
                        (!first && above.sp != own.extra * 2))
                      damage.fetch_add(1);
                    return true;
                  });
        if (outcome == steal_outcome::taken)
          ++mine;
        else if (delays_.below(8) == 0)
          sched_yield();
      }
      stolen.fetch_add(mine);
    });

  delays_ = small_random(7);
  small_random random(c.depth * 31 + c.thieves);
  std::vector<std::uint64_t> mine;  // what the owner believes to be on its stack
  std::uint64_t next = 1, owned = 0, taken = 0, popped_gone = 0;
  const auto pop = [&] {
    const std::uint64_t id = mine.back();
    spawn_slot* slot = d.hot->bottom - 1;
    const auto p = d.pop();
    if (p.here) {
      run_entry(slot->fp, slot->sp);
      if (slot->fp != id) damage.fetch_add(1);
      ++owned;
      mine.pop_back();
    } else {
      if (p.top != id * 2 || p.record == 0) damage.fetch_add(1);
      ++popped_gone;
      mine.clear();      // all older ones must have been stolen: the count at the end says so
      d.set_sentinel();  // another thread begins at the bottom
    }
  };
  while (next <= entries) {
    const unsigned burst = 1 + random.below(c.depth);
    for (unsigned i = 0; i < burst && next <= entries && mine.size() + 2 < max_slots; ++i) {
      d.push(next);
      mine.push_back(next++);
      if (random.below(c.expose_every) == 0) d.expose_some(next);
    }
    if (c.own_thefts && random.below(50) == 0)
      taken += d.deque.take_own([&](spawn_slot& s) { s.record = next; },
                                [&](const spawn_slot& s, const spawn_slot&) {
                                  run_entry(s.fp, s.sp);
                                  return true;
                                });
    for (unsigned i = random.below(c.depth) + (mine.size() > c.depth ? c.depth : 0); i > 0 && !mine.empty();
         --i)
      pop();
    if (random.below(1000) == 0) d.deque.check_invariants();
  }
  while (!mine.empty()) pop();
  EXPECT_TRUE(d.deque.empty());
  stop.store(true, std::memory_order_release);
  for (auto& t : thieves) t.join();
  d.deque.check_invariants();

  std::uint64_t wrong = 0;
  for (std::uint64_t i = 1; i <= entries; ++i) wrong += runs[i].load() != 1;
  EXPECT_EQ(wrong, 0u);
  EXPECT_EQ(damage.load(), 0u);
  EXPECT_EQ(owned + stolen + taken, entries);
  RecordProperty("stolen", std::to_string(stolen.load()));
  RecordProperty("found gone", std::to_string(popped_gone));
}
INSTANTIATE_TEST_SUITE_P(deque, deque_race,
                         testing::Values(campaign{0, 50, 10, true}, campaign{1, 1, 1, false},
                                         campaign{1, 2, 1, false}, campaign{1, 3, 2, true},
                                         campaign{1, 100, 20, false}, campaign{2, 2, 1, false},
                                         campaign{2, 8, 2, true}, campaign{2, 1000, 30, false},
                                         campaign{3, 3, 1, true}, campaign{3, 30, 4, false}));

}  // namespace
