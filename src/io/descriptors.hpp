// What is known of each file descriptor, and who waits for it. docs/protocols/events.md, "Descriptors".
//
// Called by events.cpp (what happened), and by the calls that may have to wait (calls.cpp, poll.cpp) or end a
// descriptor (descriptor_calls.cpp). Test: tests/io/.
#pragma once

#include "base/lock.hpp"
#include "io/suspension.hpp"

namespace godwit::events {

enum class side : std::uint32_t { read, write };

/// A thread in a descriptor's list. Lives in its frame.
struct waiting {
  suspension* who;
  side at;
  /// goes on with a call that takes what is there: one is enough. Else it only looks (poll)
  bool takes;
  bool listed = false;  ///< W/R under the descriptor's lock
  bool closed = false;  ///< somebody closed it. W under the lock
  waiting* next = nullptr;
  waiting* prev = nullptr;
};

struct list {
  waiting* first = nullptr;
  waiting* last = nullptr;
};

class alignas(64) descriptor {
 public:
  // Bits of state(); above them a counter of events.
  static constexpr std::uint64_t readable = 1,  ///< a call may find something. Cleared by who found nothing
      writable = 2,
                                 ended = 4,  ///< hung up, an error, urgent data: never wait before a call
      watched = 8,                           ///< epoll knows it
      watched_out = 16, socket = 32,
                                 other = 64,  ///< no socket
      drains = 128,       ///< less than asked for means: nothing left, and the next byte makes an event
      nonblocking = 256,  ///< the program made it so: it does not want to wait
      no_nowait = 512,    ///< knows no RWF_NOWAIT: poll before each call
      one_event = 1024;

  /// Before a call. Cost: one load.
  std::uint64_t state() const noexcept { return state_.load(std::memory_order_acquire); }
  static bool may_try(std::uint64_t state, side at) noexcept {
    return (state & watched) == 0 || (state & (flag(at) | ended | nonblocking)) != 0;
  }
  void learn(std::uint64_t bits) noexcept { state_.fetch_or(bits, std::memory_order_relaxed); }

  /// After a call that took something and may have left more: let the next one have it.
  void took(side at) noexcept {
    if (lists_[static_cast<unsigned>(at)].first != nullptr) [[unlikely]]
      wake_next(at);
  }
  /// After a call that took all: the next one need not try. @p before: state() before the call.
  void drained(std::uint64_t before) noexcept {
    if ((before & (watched | readable)) == (watched | readable))
      state_.compare_exchange_strong(before, before & ~readable, std::memory_order_relaxed);  // DS1
  }

  /// After a call that found nothing (@p before: state() before it), or without one: wait for an event, until
  /// @p deadline_ns (0: for ever) of CLOCK_MONOTONIC. 0: try (again). Else an errno: EAGAIN: the program does
  /// not want to wait; ETIMEDOUT; EBADF: closed meanwhile; EPERM: it cannot be waited for (a file). May
  /// migrate.
  int await(int fd, side at, std::uint64_t before, const char* what, std::uint64_t deadline_ns) noexcept;
  /// Make epoll know it, and learn what it is. 0, EPERM, EBADF...
  int watch(int fd) noexcept;
  /// For poll: put @p w into its list. 0 or an errno as above. The caller looks at the descriptor afterwards,
  /// and parks if it is not ready.
  int enlist(int fd, waiting& w) noexcept;
  void leave(waiting& w) noexcept;

  /// The program has made it so (O_NONBLOCK). Where that was learned the kernel is asked again: nobody who is
  /// not to wait does, so no check would find that the number is another file's by now.
  bool refuses_to_wait(int fd) noexcept;

  /// Nothing known is true any more. @p closed: who waits gives up; else it tries again.
  void forget(bool closed) noexcept;
  void happened(std::uint32_t generation, std::uint32_t what) noexcept;
  /// For check_descriptors. Gives back whether it should be looked at again.
  bool check(int fd) noexcept;
  void clear() noexcept;

  std::uint64_t timeout_ns(side at) const noexcept {
    return std::uint64_t{timeout_us_[static_cast<unsigned>(at)]} * 1000;
  }

  base::short_lock mode;  ///< held while the file is in non-blocking mode for one call (accept, connect)

 private:
  static constexpr std::uint64_t flag(side at) noexcept { return at == side::read ? readable : writable; }
  int watch_locked(int fd) noexcept;
  int control(int operation, int fd, std::uint64_t state) noexcept;
  int want_out(int fd) noexcept;
  void put(waiting& w) noexcept;
  void take_out(waiting& w) noexcept;
  void wake_next(side at) noexcept;
  long mode_of(int fd) noexcept;
  class woken;
  bool refuses_to_wait(int fd, woken& to) noexcept;  // under the lock
  void forget_locked(bool closed, woken& to) noexcept;
  bool any_waits() const noexcept { return lists_[0].first != nullptr || lists_[1].first != nullptr; }

  base::short_lock lock_;
  std::atomic<std::uint64_t> state_{0};  ///< W who calls (DS1), under the lock who else
  list lists_[2];                        ///< W/R under the lock; took() looks without
  std::uint32_t generation_ = 0;         ///< of the file that the number stands for. W/R under the lock
  std::uint32_t timeout_us_[2] = {};     ///< SO_RCVTIMEO, SO_SNDTIMEO. W watch
  /// checks since somebody began to wait; 2: epoll was asked. W/R under the lock
  std::uint8_t age_ = 0;
};

/// Null: too large, or negative.
descriptor* descriptor_of(int fd) noexcept;

/// The descriptor, where the caller may be suspended. Null: make the system call.
inline descriptor* managed(int fd) noexcept {
  return godwit::detail::on_worker() ? descriptor_of(fd) : nullptr;
}

/// Does any thread wait for a descriptor? Any worker; one load.
bool descriptors_waited_for() noexcept;
/// Something happened to the descriptor that @p tag names (epoll's data). By the worker that collected.
void descriptor_event(std::uint64_t tag, std::uint32_t what) noexcept;
/// Now and then whoever waits long is looked at: perhaps its descriptor was closed behind our back. By the
/// worker that collected.
bool descriptors_want_a_check(std::uint64_t now) noexcept;
void check_descriptors(std::uint64_t now) noexcept;
/// What is known of first ... last is true no more, see descriptor::forget.
void forget_descriptors(unsigned first, unsigned last, bool closed) noexcept;
/// Forget all: the run is over.
void clear_descriptors() noexcept;

}  // namespace godwit::events
