// A lock of one bit and a first-come list of suspended threads: what mutexes, condition variables, semaphores
// and blocking I/O wait in.
//
// Not an interface for users. The lock is bit 0 of `word`; the other bits belong to whoever owns the list, so
// that one compare-exchange can test both, and the store that opens the lock can be the last that its holder
// does to the list: it may be destroyed then. Nodes lie in the frames of the threads that wait. Substrate
// threads only (park.hpp). Protocol: docs/protocols/park.md. Code: src/sync/wait_list.cpp.
// Test: tests/threads/wait_test.cpp.
#pragma once

#include <godwit/detail/park.hpp>
#include <godwit/detail/timer.hpp>

#include <atomic>
#include <cstdint>

namespace godwit::detail {

enum class wait_state : std::uint32_t {
  idle,      ///< in no list
  listed,    ///< in a list
  notified,  ///< taken out by who woke it
  expired    ///< taken out by its timer, or its timer was first
};

/// One waiting thread. Everything is written under the list's lock.
struct wait_node {
  wait_node* next = nullptr;
  wait_node* prev = nullptr;
  waiter* who = nullptr;  ///< null: it is not suspended yet (wait_listed) and looks at state before it is
  wait_state state = wait_state::idle;
  wakes by = wakes::inside;
  std::uint32_t mark = 0;  ///< for the list's owner: what it waits for
};

/// Threads that are taken off a list, to be woken once its lock is open. A node whose thread is suspended
/// stays until that thread is woken; others must not be touched any more.
class wake_chain {
 public:
  void add(wait_node& n) noexcept {
    n.next = nullptr;
    if (last_ != nullptr)
      last_->next = &n;
    else
      first_ = &n;
    last_ = &n;
  }
  bool empty() const noexcept { return first_ == nullptr; }
  /// Not with the list's lock held. Ends the program where the caller is no thread of the run.
  void wake() noexcept;

 private:
  wait_node* first_ = nullptr;
  wait_node* last_ = nullptr;
};

struct timed_node;

class wait_list {
 public:
  static constexpr std::uint32_t lock_bit = 1;
  /// Bit 0: the lock, W and R all. The rest belongs to the object: its page says who writes it.
  std::atomic<std::uint32_t> word{0};

  constexpr wait_list() noexcept = default;
  constexpr explicit wait_list(std::uint32_t first) noexcept : word(first) {}
  wait_list(const wait_list&) = delete;
  wait_list& operator=(const wait_list&) = delete;

  /// Never held across anything that may suspend, but for wait, which lets go of it. Cost: one atomic; spins,
  /// then gives the CPU away.
  void lock() noexcept {
    if ((word.fetch_or(lock_bit, std::memory_order_acquire) & lock_bit) != 0) [[unlikely]]
      lock_slow();
  }
  void unlock() noexcept { word.fetch_and(~lock_bit, std::memory_order_release); }

  // With the lock held.

  bool empty() const noexcept { return first_.load(std::memory_order_relaxed) == nullptr; }
  /// Also without it, as a hint. Who enlisted itself before something that happened before this is seen.
  bool seems_empty() const noexcept { return first_.load(std::memory_order_relaxed) == nullptr; }
  wait_node* first() const noexcept { return first_.load(std::memory_order_relaxed); }
  void push(wait_node& n, bool in_front = false) noexcept;
  /// The first one, notified; if it is suspended, into @p woken. False: nobody waits.
  bool pop(wake_chain& woken) noexcept;
  void pop_all(wake_chain& woken) noexcept {
    while (pop(woken)) {
    }
  }

  /// Enlist, suspend until notified. The lock is open afterwards. @p what and @p where: see park. With a
  /// timed_node, which was made before the lock was taken, until its time at most. True: notified. False: the
  /// time was over first.
  bool wait(wait_node& n, const char* what, const place& where, bool in_front = false) noexcept;
  /// Suspend; @p n is listed already (push), perhaps notified since. The lock is not held. For who has to do
  /// something in between that may suspend.
  bool wait_listed(wait_node& n, const char* what, const place& where) noexcept;

  // Without the lock.

  /// Wake the one that has waited longest. False: nobody waits.
  bool notify_one() noexcept;
  void notify_all() noexcept;

 private:
  friend struct timed_node;
  void lock_slow() noexcept;
  void remove(wait_node& n) noexcept;
  bool enter(wait_node& n, const char* what, const place& where, bool held) noexcept;

  std::atomic<wait_node*> first_{nullptr};  // W under the lock, R all: seems_empty
  wait_node* last_ = nullptr;
};

/// A node with a deadline. Made and destroyed without the list's lock held (both take the timers').
struct timed_node : wait_node {
  /// The clock starts at once: also if the thread will not wait after all.
  timed_node(wait_list& l, std::uint64_t deadline_ns) noexcept : timed_node(l, deadline_ns, false) {}
  /// @p cancellable: see start_cancellable_timer (src/seams/timer.hpp).
  timed_node(wait_list& l, std::uint64_t deadline_ns, bool cancellable) noexcept;
  ~timed_node();
  timed_node(const timed_node&) = delete;
  timed_node& operator=(const timed_node&) = delete;

  wait_list& list;
  timer clock;
};

}  // namespace godwit::detail
