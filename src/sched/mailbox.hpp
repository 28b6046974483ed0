// Letters: calls that a worker carries out for another one, between two threads. docs/protocols/idle.md
// (ID2), idle_nodes.md (IN4). Test: tests/sched/mailbox_test.cpp.
//
// The box is a word, public_words::mailbox: letters hang in a list by their refs, the newest first; who sends
// pushes by compare-exchange, the owner takes all. A letter lies in its sender's heap.
#pragma once

#include "base/check.hpp"
#include "base/unexposed.hpp"
#include "sched/records.hpp"
#include "sched/site.hpp"

#include <span>
#include <vector>

namespace godwit::sched {

class mailbox {
 public:
  mailbox(const site& here, heap& own, join_records& records) noexcept
      : here_(here), heap_(own), records_(records) {}

  /// A look, for the owner.
  bool empty(std::memory_order order = std::memory_order_relaxed) const noexcept {
    return here_.words->mailbox.load(order) == 0;
  }
  /// Put a call of @p call with a copy of the closure into @p to 's box; the record @p done is to be
  /// completed afterwards, unless 0. Gives back whether @p to is of this host: then its sleepers must be
  /// woken.
  bool send(worker_no to, ref done, void (*call)(const void*), const void* closure,
            std::size_t bytes) noexcept {
    return send(to, done, call, {static_cast<const std::byte*>(closure), bytes}, {});
  }
  /// The same with a closure in two pieces.
  bool send(worker_no to, ref done, void (*call)(const void*), std::span<const std::byte> head,
            std::span<const std::byte> rest) noexcept;
  /// Carry out all letters; @p done(record) after each.
  template <class F>
  void take(F&& done) noexcept {
    for (ref m = here_.words->mailbox.exchange(0, std::memory_order_acquire); m != 0;) {
      const letter now = open(m);
      here_.acquire_writes();
      now.call(now.closure());
      const base::unexposed inside;
      records_.free(m);
      if (now.done != 0) done(now.done);
      // ID2, IN4: cannot be the last to count, this worker runs
      count(now.between_hosts, 1);
      m = now.next;
    }
  }

 private:
  struct letter {
    ref next, done;
    void (*call)(const void*);
    bool between_hosts;
    const std::byte* near_closure;  ///< null: it had to be fetched
    std::vector<closure_line> fetched;
    const std::byte* closure() const noexcept {
      return near_closure != nullptr ? near_closure : fetched.data()->bytes;
    }
  };
  letter open(ref m) const noexcept;
  /// @p change: of the number of idle workers (or hosts), less letters under way. ID2, IN4
  void count(bool between_hosts, std::uint64_t change) noexcept;

  const site& here_;
  heap& heap_;
  join_records& records_;
};

}  // namespace godwit::sched
