// Letters: calls that a worker carries out for another one, between two threads. docs/protocols/idle.md
// (ID2), idle_nodes.md (IN4). Tests: tests/sched/mailbox_test.cpp, tests/global/spawn_at_test.cpp.
//
// The box is a word, public_words::mailbox: letters hang in a list by their refs, the newest first; who sends
// pushes by compare-exchange, the owner takes all. A letter lies in its sender's heap. From another host it
// comes in one message, and then lies in the owner's.
#pragma once

#include "base/check.hpp"
#include "base/thread_sanitizer.hpp"
#include "base/unexposed.hpp"
#include "sched/far_calls.hpp"
#include "sched/records.hpp"
#include "sched/site.hpp"

#include <span>
#include <vector>

namespace godwit::sched {

class mailbox {
 public:
  mailbox(const site& here, heap& own, join_records& records) noexcept
      : here_(here), heap_(own), records_(records) {}

  /// What other hosts send goes through here.
  void enter(transport::far::call_table& calls) { calls.enter(call_no::letter, receive, this); }

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
  /// A letter to the own worker that somebody else will put into its box, by post: who is no worker. It is
  /// under way from now on (ID2). Gives back its ref.
  ref write_for_later(void (*call)(const void*)) noexcept;
  /// Put @p letter, which worker @p to has written, into its box, in any process that maps its host's memory.
  /// @p words: the workers', at the common address.
  static void post(const transport::shm::segment& memory, public_words* words, node_words& node, worker_no to,
                   ref letter) noexcept;
  /// Carry out all letters; @p done(record) after each.
  template <class F>
  void take(F&& done) noexcept {
    for (ref m = here_.words->mailbox.exchange(0, std::memory_order_acquire); m != 0;) {
      const letter now = open(m);
      here_.acquire_writes();
      base::happens_after(here_.at<message>(m));
      now.call(now.closure);
      base::happens_before(here_.at<message>(m));
      const base::unexposed inside;
      if (now.elsewhere != 0) records_.free(now.elsewhere);
      records_.free(m);
      if (now.done != 0) done(now.done);
      // ID2, IN4: cannot be the last to count, this worker runs
      here_.node->idle.fetch_add(1, std::memory_order_seq_cst);
      m = now.next;
    }
  }

  /// Closures up to this size come to another host in one message.
  static constexpr std::size_t most_in_message = transport::far::inline_bytes - 32;

 private:
  struct letter {
    ref next, done, elsewhere;
    void (*call)(const void*);
    const void* closure;
    std::vector<closure_line> fetched;  ///< from elsewhere
  };
  letter open(ref m) const noexcept;
  void send_far(worker_no to, ref done, void (*call)(const void*), std::span<const std::byte> head,
                std::span<const std::byte> rest) noexcept;
  static std::byte* receive(void* mailbox, transport::far::entry& e,
                            const transport::far::answer_room& room) noexcept;
  void push(worker_no to, message* m) noexcept;

  const site& here_;
  heap& heap_;
  join_records& records_;
};

}  // namespace godwit::sched
