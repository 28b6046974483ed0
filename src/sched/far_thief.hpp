// Work from other hosts: when to look for it, where, and how to take it.
//
// Shared memory first: a worker looks at another host only when a round over its own host found nothing, and
// then at most one look is under way. Looks in vain back off, because the victim's host pays for them. And
// where a look is at a whole host, one worker of this host looks at a time: with 48 that are idle companions
// had no time left for who computes and waits for its children's results (decision 0021). A worker
// that has had no thread yet looks first at the host above its own in the tree of hosts (decision 0031).
//
// victims=uniform is the papers' rule instead, for comparison: every other worker is as likely a victim as
// any, a look concerns that one only, nobody pauses, and nothing is remembered but whom an idle worker has
// just seen with work. The loop chooses near or far.
// docs/protocols/far.md; tests: tests/sched/far_thief_test.cpp, tests/mpi/.
#pragma once

#include "base/random.hpp"
#include "sched/account.hpp"
#include "sched/far_calls.hpp"
#include "sched/site.hpp"

namespace godwit::sched {

/// What came from another host: a thread whose bytes are in place, or such as have not begun.
struct far_catch {
  loot_kind kind = loot_kind::nothing;
  loot got{};
  std::uint64_t now = 0;    ///< when it was there
  std::uint64_t since = 0;  ///< when it was asked for
  worker_no victim{};
  /// Else there is none, or some wait in this worker's ready queue.
  bool is_thread() const noexcept { return kind == loot_kind::fork || kind == loot_kind::suspended; }
};

class far_thief {
 public:
  far_thief(const site& here, account& counts, base::small_random& random) noexcept
      : here_(here), account_(counts), random_(random) {}

  /// The far part of a round of a running worker: what it got, as a rule nothing. At most one request, two
  /// without calls; none as long as it pauses.
  far_catch look() noexcept;
  /// The far part of a look of an idle worker: it may look, but not take (ID1). @p idle_since_ns: if that is
  /// long ago, those who have something and do not share it are interrupted; 0: it is not.
  bool sees_work(std::uint64_t idle_since_ns) noexcept;
  /// It has seen some, and the next look will be there.
  bool has_seen_work() const noexcept { return hint_ != nobody; }
  /// The worker has a thread: the next look need not wait.
  void thread_came() noexcept {
    failures_ = refusals_ = came_back_ = 0;
    next_ns_ = 0;
    starts_ = false;
  }
  /// It has sent one away, which may come back: a look would only delay that.
  void thread_left() noexcept;
  /// Not before; 0: at once.
  std::uint64_t next_look_ns() const noexcept { return next_ns_; }

 private:
  static constexpr worker_no nobody{~0u};
  class turn;
  worker_no victim() noexcept;
  std::uint64_t scope() const noexcept;
  void in_vain(bool all_idle) noexcept;
  void come_back(worker_no victim) noexcept;
  void refused() noexcept;
  void may_have_more(worker_no victim) noexcept;
  far_catch steal_from(worker_no victim) noexcept;
  /// Of one worker, word by word: one read. None: it has been asked to make work public.
  struct seen_words {
    bool fork = false, ready = false;
  };
  seen_words look_by_words(worker_no victim) noexcept;
  void ask_by_words(worker_no victim) noexcept;  // to make work public
  far_catch steal_by_words(worker_no victim, std::uint64_t since) noexcept;
  bool take_parcels(const transport::far::entry& e) noexcept;

  const site& here_;
  account& account_;
  base::small_random& random_;
  std::uint32_t failures_ = 0;   // looks at other hosts in vain since the last thread
  std::uint32_t came_back_ = 0;  // how often in a row, since
  std::uint32_t refusals_ = 0;   // how often another worker was looking, since
  std::uint64_t next_ns_ = 0;    // not before
  std::uint64_t last_urgent_ns_ = 0;
  bool starts_ = true;       // it has had no thread, and has not looked
  worker_no last_ = nobody;  // looked at last
  worker_no hint_ = nobody;  // where work was seen last
};

}  // namespace godwit::sched
