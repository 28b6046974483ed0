// Two workers of the real scheduler in a world of their own: they take turns on one OS thread, time is
// counted and not measured, and nobody asks the operating system. A steal, an outstanding join and the end of
// a run happen at the same virtual nanosecond in every run.
#include "base/world.hpp"

#include "context/context.hpp"
#include "runtime/run_common.hpp"
#include "sched/policies.hpp"
#include "sched/worker.hpp"
#include "stack/pool.hpp"

#include <godwit/godwit.hpp>

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <vector>

namespace {

using namespace godwit;
using transport::worker_no;

/// The seats at which workers sit. Whose time is least has its turn; a turn ends where the worker waits.
class virtual_world final : public base::world {
 public:
  static constexpr std::uint64_t look_ns = 40;  // what a look in vain takes

  explicit virtual_world(std::uint32_t workers) : seats_(workers) {}

  std::uint64_t now_ns() noexcept override { return seats_[turn_].now; }
  void pause() noexcept override { spend(look_ns); }
  void nap_until(std::uint64_t deadline_ns) noexcept override {
    const std::uint64_t now = now_ns();
    spend(deadline_ns > now ? deadline_ns - now : 0);
  }
  void wait_on(const base::wait_word& word, std::uint32_t seen, std::uint64_t limit_ns) noexcept override {
    if (word.load(std::memory_order_seq_cst) != seen) return;
    ++waits;
    seat& mine = seats_[turn_];
    mine.waits_on = &word;
    mine.now = limit_ns < base::no_limit - mine.now ? mine.now + limit_ns : base::no_limit;
    next_turn();
  }
  int wake(const base::wait_word& word, int most) noexcept override {
    int woken = 0;
    for (seat& s : seats_)
      if (s.waits_on == &word && woken < most) {
        s.waits_on = nullptr;
        s.now = now_ns();
        ++woken;
      }
    wakes += woken;
    return woken;
  }
  void interrupt(pid_t, int) noexcept override { ++interrupts; }
  std::uint64_t fresh_seed() noexcept override { return 1; }

  /// The worker whose turn it is computes for so long.
  void spend(std::uint64_t ns) noexcept {
    seats_[turn_].now += ns;
    next_turn();
  }

  /// Worker @p number begins with begin() when its first turn comes.
  void seat_worker(std::uint32_t number, detail::hot_words* hot, void (*begin)()) noexcept {
    seats_[number].hot = hot;
    seats_[number].begin = begin;
  }
  /// All take turns until each has left.
  void run() noexcept {
    godwit_ctx_suspend(
        end_of(switch_stack_),
        [](void* self, std::uintptr_t sp) {
          auto* w = static_cast<virtual_world*>(self);
          w->way_back_ = sp;
          w->turn_ = 0;
          w->sit_down();
        },
        this);
  }
  /// The worker whose turn it is has nothing to do any more. Does not come back (see sit_down).
  void leave() noexcept {
    seats_[turn_].left = true;
    ended_ns = std::max(ended_ns, now_ns());
    const std::size_t next = least();
    if (next == seats_.size()) godwit_ctx_resume_suspended(way_back_, 0);
    turn_ = next;
    // On another stack: the next one may go on where this one stands.
    godwit_ctx_start(
        end_of(switch_stack_), [](void* w) { static_cast<virtual_world*>(w)->sit_down(); }, this);
  }

  std::uint64_t waits = 0, wakes = 0, interrupts = 0, turns = 0, ended_ns = 0;

 private:
  struct seat {
    detail::hot_words* hot = nullptr;
    void (*begin)() = nullptr;  // null: it has begun
    std::uintptr_t sp = 0;      // where it goes on
    std::uint64_t now = 0;      // where its time stands, or until when it waits
    const void* waits_on = nullptr;
    bool left = false;
  };
  struct alignas(64) stack {
    std::array<std::byte, 64 << 10> bytes;
  };
  static void* end_of(stack& s) noexcept { return s.bytes.data() + s.bytes.size(); }

  std::size_t least() const noexcept {
    std::size_t found = seats_.size();
    for (std::size_t i = 0; i < seats_.size(); ++i)
      if (!seats_[i].left && (found == seats_.size() || seats_[i].now < seats_[found].now)) found = i;
    return found;
  }
  void next_turn() noexcept {
    const std::size_t next = least();
    seats_[next].waits_on = nullptr;
    if (next == turn_) return;
    ++turns;
    after_ = next;
    godwit_ctx_suspend(
        end_of(switch_stack_),
        [](void* self, std::uintptr_t sp) {
          auto* w = static_cast<virtual_world*>(self);
          w->seats_[w->turn_].sp = sp;
          w->turn_ = w->after_;
          w->sit_down();
        },
        this);
    announce_stack();
  }
  /// The address sanitizer is told on which stack the worker goes on.
  void announce_stack() noexcept {
    sched::worker& w = sched::this_worker();
    const auto sp = reinterpret_cast<std::uintptr_t>(__builtin_frame_address(0));
    const bool thread = w.here().shape.stacks->owns(sp);
    const std::uintptr_t low = thread ? w.here().shape.stacks->low_of(sp) : w.scheduler_stack().low();
    const auto high = thread ? w.here().shape.stacks->end_of(sp)
                             : reinterpret_cast<std::uintptr_t>(w.scheduler_stack().end());
    context::sanitizer_on_stack(reinterpret_cast<void*>(low), high - low);
  }
  // Does not come back. (Not marked so: the address sanitizer would clear marks of the wrong stack.)
  void sit_down() noexcept {
    seat& s = seats_[turn_];
    context::use_hot_words(s.hot);
    if (s.begin != nullptr)
      std::exchange(s.begin, nullptr)();
    else
      godwit_ctx_resume_suspended(s.sp, 0);
  }

  std::vector<seat> seats_;
  std::size_t turn_ = 0, after_ = 0;
  std::uintptr_t way_back_ = 0;
  stack switch_stack_;
};

virtual_world* world_;
void (*body_)();

/// What a run left behind.
struct outcome {
  std::vector<worker_stats> stats;
  std::uint64_t ended_ns, turns, waits, wakes;
};

void begin() { sched::this_worker().start(nullptr, nullptr); }
void begin_root() {
  sched::this_worker().start(
      [](void*) {
        body_();
        sched::worker& w = sched::this_worker();
        w.records().publish(sched::root_record(w.here().memory->where()), detail::outcome::value, nullptr, 0);
        w.end_of_root_thread();
      },
      nullptr);
}

/// Run @p body as the root thread of @p workers workers, which share one OS thread.
outcome run_in_virtual_time(std::uint32_t workers, void (*body)(), std::uint64_t seed = 7,
                            const char* force_steal = "none") {
  virtual_world here(workers);
  base::use_world(world_ = &here);
  body_ = body;
  options opts;
  opts.workers = workers;
  opts.policy = godwit::choice::policy::greedy;
  opts.force_steal = godwit::choice::named{force_steal};
  constexpr std::uint64_t stack_bytes = 64 << 10, pool_bytes = 8 << 20;
  transport::shm::segment memory;
  memory.create_in_place(
      workers, sched::host_words_first(transport::shm::plan_in_place(
                   sizeof(detail::hot_words), sched::all_words_bytes, 1 << 20, pool_bytes, 4 << 20)));
  const auto& l = memory.where();
  stack::pool stacks;
  const auto first = reinterpret_cast<std::uintptr_t>(memory.at(worker_no{0}, memory.common() + l.stack));
  const std::uintptr_t aligned = (first + stack_bytes - 1) / stack_bytes * stack_bytes;
  stacks.init(aligned, l.span, workers, l.stack_bytes - (aligned - first), stack_bytes, 4 * stack_bytes);
  const transport::shm::near_range all{0, workers};
  sched::job_shape shape;
  shape.workers = workers;
  shape.hosts = &all;
  shape.stacks = &stacks;
  shape.in_process = true;
  sched::worker_hooks hooks{[]() noexcept {
                              sched::this_worker().finish_stats();
                              world_->leave();
                            },
                            nullptr};
  runtime::prepare_words(memory, all);
  std::vector<transport::shm::segment> seen(workers);
  std::vector<detail::hot_words*> hot(workers);
  for (std::uint32_t i = 0; i < workers; ++i) {
    seen[i] = memory.seen_by(worker_no{i});
    hot[i] = new (seen[i].common() + l.hot) detail::hot_words();
    context::use_hot_words(hot[i]);
    sched::make_worker(opts, shape)
        .init({&seen[i], worker_no{i}, workers, seed, &shape, &opts, hooks, nullptr});
    here.seat_worker(i, hot[i], i == 0 ? begin_root : begin);
  }
  here.run();
  outcome o{{}, here.ended_ns, here.turns, here.waits, here.wakes};
  for (std::uint32_t i = 0; i < workers; ++i) {
    o.stats.push_back(runtime::words_of(memory, worker_no{i}).worker.stats);
    context::use_hot_words(hot[i]);
    sched::end_worker();
  }
  context::use_hot_words(nullptr);
  base::use_world(nullptr);
  memory.destroy();
  return o;
}

std::uint64_t sum(const outcome& o, std::uint64_t worker_stats::*what) {
  std::uint64_t n = 0;
  for (const worker_stats& s : o.stats) n += s.*what;
  return n;
}

bool same(const outcome& a, const outcome& b) {
  if (a.ended_ns != b.ended_ns || a.turns != b.turns || a.waits != b.waits || a.wakes != b.wakes)
    return false;
  for (std::size_t i = 0; i < a.stats.size(); ++i)
    if (std::memcmp(&a.stats[i], &b.stats[i], sizeof a.stats[i]) != 0) return false;
  return true;
}

int result_;

/// Stolen: root, while the first child computes. It joins the child before that is done.
void steal_and_wait() {
  auto first = spawn([] {
    world_->spend(1'000'000);
    auto inner = spawn([] {
      world_->spend(5'000'000);
      return 1;
    });
    return inner.join() + 1;
  });
  world_->spend(1'000);
  auto second = spawn([] {
    world_->spend(2'000'000);
    return 40;
  });
  result_ = first.join() + second.join();
}

TEST(world, two_workers_in_virtual_time_steal_wait_and_end) {
  result_ = 0;
  const outcome o = run_in_virtual_time(2, steal_and_wait);
  EXPECT_EQ(result_, 42);
  EXPECT_GE(sum(o, &worker_stats::steals), 1u);
  EXPECT_GE(sum(o, &worker_stats::outstanding_joins), 1u);
  // 8 ms of work, 6 of them in one line.
  EXPECT_GE(o.ended_ns, 6'000'000u);
  EXPECT_LT(o.ended_ns, 8'000'000u);
  EXPECT_GE(o.waits, 1u) << "the idle worker slept";
}

TEST(world, the_same_seed_gives_the_same_run) {
  const outcome first = run_in_virtual_time(2, steal_and_wait);
  for (int i = 0; i < 3; ++i) EXPECT_TRUE(same(first, run_in_virtual_time(2, steal_and_wait)));
}

int fib(int n) {
  if (n < 2) {
    world_->spend(2'000);
    return n;
  }
  auto a = spawn([n] { return fib(n - 1); });
  const int b = fib(n - 2);
  return a.join() + b;
}

TEST(world, more_workers_need_less_virtual_time) {
  std::uint64_t before = 0;
  for (const std::uint32_t workers : {1u, 2u, 4u, 16u}) {
    result_ = 0;
    const outcome o = run_in_virtual_time(workers, [] { result_ = fib(16); });
    EXPECT_EQ(result_, 987);
    constexpr std::uint64_t work_ns = 1597 * 2'000;  // leaves
    EXPECT_GE(o.ended_ns * workers, work_ns);
    if (before != 0) {
      EXPECT_LT(o.ended_ns, before) << workers << " workers";
    }
    before = o.ended_ns;
  }
}

// Many schedules in little time, each of which can be had again.
TEST(world, right_under_every_seed) {
  for (std::uint64_t seed = 1; seed <= 100; ++seed)
    for (const std::uint32_t workers : {2u, 3u, 7u}) {
      result_ = 0;
      run_in_virtual_time(
          workers, [] { result_ = fib(10); }, seed, "random");
      ASSERT_EQ(result_, 55) << workers << " workers, seed " << seed;
    }
}

}  // namespace
