// Join records as a worker handles them: made in its heap, filled with results, read and given back wherever
// they lie. Who waits for one suspends: continuation.cpp, child.cpp. docs/protocols/join.md;
// tests: tests/sched/records_test.cpp, tests/api/.
//
// A record of another host is read by one call, with others (read_along.hpp), and completed word by word.
#pragma once

#include "base/own_memory.hpp"
#include "base/thread_sanitizer.hpp"
#include "base/unexposed.hpp"
#include "sched/read_along.hpp"
#include "sched/site.hpp"

#include <algorithm>
#include <utility>

namespace godwit::sched {

class join_records {
 public:
  join_records(const site& here, heap& own) noexcept : here_(here), heap_(own), along_(here) {}

  /// With one consumer; nobody came yet. Local.
  ref make() noexcept {
    const base::unexposed inside;  // the expose signal makes records, too
    return make_unexposed();
  }
  /// The same for who keeps that signal out already.
  ref make_unexposed() noexcept {
    auto* r = static_cast<record*>(heap_.allocate(object_kind::record, sizeof(record)));
    clear_record(r);
    return here_.ref_of(r);
  }
  // Tallies, which belong to who made them (record.hpp).
  /// Of no parts. Local.
  ref make_tally() noexcept {
    const ref r = make();
    here_.at<record>(r)->references.store(0, std::memory_order_relaxed);
    return r;
  }
  /// Of @p parts, whose last one is waited for by what is @p above. Local.
  ref make_tally(std::uint64_t parts, ref above) noexcept {
    const ref r = make_tally();
    here_.at<record>(r)->result.object = above;
    here_.at<record>(r)->references.store(parts * tally_part | tally_waits, std::memory_order_relaxed);
    return r;
  }
  /// One part is done. The last one that is waited for gets what is above; else 0. One round trip.
  ref count_off(ref tally) noexcept;
  bool is_any_out(ref tally) const noexcept {
    return tally_out(here_.net.remote_load(transport::ref_worker(tally),
                                           &here_.home<record>(tally)->references,
                                           std::memory_order_acquire)) != 0;
  }
  /// True: the last part that is out will go on with @p above. False: none is out.
  bool await_last(ref tally, ref above) noexcept;
  /// One part more, with its number in @p r: before it can count off.
  void count_part(ref r, ref tally) noexcept;  // TY1
  /// Like detach, but the thread, which has been counted, is a part of @p tally until it ends. False: it has
  /// ended before, and that is still to be counted off.
  bool detach_into(ref r, ref tally) noexcept { return abandon(r, tally); }
  /// With options::span, by the thread that ends: its longest chain. A part keeps its number instead.
  void put_span(ref r, std::uint64_t span_ns) noexcept;  // TY4
  /// The longest chain of a tally's parts is at least that.
  void lift_chain(ref tally, std::uint64_t span_ns) noexcept;
  /// @p r, complete, was a part: freed or, if it failed, put into the tally's list.
  void end_part(ref r, ref tally) noexcept;
  /// The parts that failed: a list by next_failed, the newest first, which is the caller's.
  ref take_failed(ref tally) noexcept;  // TY3
  struct failed_part {
    ref next;
    std::uint64_t number;  ///< in the order in which they were detached
  };
  failed_part look_at_failed(ref r) const noexcept;
  ref make_completed(detail::outcome kind, const void* data, std::size_t bytes,
                     detail::owning owns = detail::owning::nothing) noexcept;
  ref make_completed_boxed(detail::outcome kind, detail::boxed what) noexcept {
    return make_completed(kind, &what, sizeof what, detail::owning::box);
  }

  /// The result, before the record is complete.
  void publish(ref to, detail::outcome kind, const void* data, std::size_t bytes,
               detail::owning owns = detail::owning::nothing) noexcept;
  /// The object stays, wherever the record is.
  void publish_boxed(ref to, detail::outcome kind, detail::boxed what) noexcept;
  /// Of a coroutine that has given its value back and then failed while its locals were destroyed: nobody
  /// will have it. Runs its destructor, so the thread may migrate.
  void drop_value(ref r) noexcept;
  /// Completed with an error: move it to the record of a parent that has left.
  void publish_error(ref to, ref error) noexcept;

  bool is_complete(ref r) const noexcept;
  /// This worker has just completed it (exchange_state), and goes on with who waits for it, who reads it: if
  /// it published the result itself, it need not ask another host for that.
  void will_be_read(ref r) noexcept {
    if (knows_result_) read_from_ = r;
  }
  /// A thread leaves, perhaps between publishing its result and completing its record, or between reading one
  /// and releasing it.
  void thread_leaves() noexcept { published_of_ = fetched_of_ = 0; }
  /// Of a complete record. Of another host: valid until the next one is read.
  detail::payload payload_of(ref r) const noexcept;
  /// Read a record of another host, and its result. False: it is not complete yet. One round trip, or two.
  bool fetch(ref r) const noexcept;
  /// The same for a thread that joins a future in its own @p frames: others' results come along.
  bool fetch_along(ref r, const stack::range& frames) noexcept;
  detail::payload fetched_payload() const noexcept;
  /// To an empty region. RA1
  void thread_came() noexcept {
    fetched_of_ = 0;
    if (!base::planted("join.copies_are_kept")) along_.thread_came();
  }
  /// Other hosts hear of what has been released.
  void send_releases() noexcept { along_.send_releases(); }

  void retain(ref r) noexcept;
  void release(ref r) noexcept;
  /// A complete one without other consumers, whose value the caller has taken. OW2
  void free_taken(ref r) noexcept;
  /// Join a thread without a value, in the usual case: it is done, nobody else will come, and no exception.
  /// Else false, and nothing has happened.
  bool take_finished(ref r) noexcept;
  void detach(ref r) noexcept;
  /// A completed one that nobody will look at again.
  void free_completed(ref r) noexcept;
  /// The same of one that was detached before: nobody has seen its error.
  void free_unseen(ref r) noexcept;

  /// With one worker nobody else can come in between.
  [[gnu::always_inline]] std::uint64_t exchange_state(ref r, std::uint64_t state) noexcept {
    if (here_.is_near(r)) base::happens_before(here_.at<record>(r));
    // Not later: where this record lies there may soon be another one.
    knows_result_ = std::exchange(published_of_, 0) == r;
    if (here_.workers != 1 && !(base::planted("join.done_is_stored") && here_.is_near(r)))
      return here_.net.remote_exchange(transport::ref_worker(r), &here_.home<record>(r)->state, state);
    word& at = here_.at<record>(r)->state;
    const std::uint64_t before = at.load(std::memory_order_relaxed);
    at.store(state, std::memory_order_relaxed);
    return before;
  }
  /// The same of a record of another host, and if its waiter is of a third host or of that one, it comes. The
  /// answer: call_no::complete. One round trip, or three messages.
  const transport::far::entry& complete_far(ref r) noexcept;
  /// Only the waiter: the record has been completed word by word. One round trip.
  const transport::far::entry& bring_waiter(ref image_ref, bool in_answer = false) noexcept;
  /// When it is done. Near records only; 0 for others.
  void stamp_done(ref r, std::uint64_t now) noexcept {
    if (here_.is_near(r)) here_.at<record>(r)->done_ns = now;
  }
  /// When who waits for it since @p since could go on; 0: not known.
  std::uint64_t ready_since(ref r, std::uint64_t since) const noexcept {
    const std::uint64_t done = here_.is_near(r) ? here_.at<record>(r)->done_ns : 0;
    return done != 0 ? std::max(done, since) : 0;
  }

  /// Ready queues hold images of their own host only: fetch one of another host. JN3: it is ours. 0: it is
  /// bound to that host, unless it was @p sent from there. @p behind: who waits behind it in a record's list.
  ref make_near(ref image_ref, bool sent = false, ref* behind = nullptr) noexcept;

  /// An object of any worker's heap.
  void free(ref r) noexcept {
    if (transport::ref_worker(r) != here_.me) return free_far(r);
    GODWIT_ASSERT(here_.at<object>(r)->freed.load(std::memory_order_relaxed) == 0, "an object is freed once");
    heap_.free(reinterpret_cast<object*>(here_.memory->common() + transport::ref_offset(r)));
  }

 private:
  bool take_answer(ref r, const transport::far::entry& e) const noexcept;
  [[gnu::noinline]] void take_value_less(ref r) noexcept;
  bool abandon(ref r, ref tally = 0) noexcept;
  detail::boxed take_apart(ref r) noexcept;
  bool drop_values(ref r) noexcept;
  void free_at_home(ref r) noexcept;
  void destroy(const detail::boxed& what) noexcept;
  void release_far(ref r, bool taken) noexcept;
  void free_far(ref r) noexcept;

  const site& here_;
  heap& heap_;
  read_along along_;
  // What fetch read from another host; valid until it is called again.
  mutable result_words fetched_{};
  mutable base::own_vector<std::byte> fetched_bytes_;
  // Until it is released, or another one is read, or a thread leaves or comes.
  mutable ref fetched_of_ = 0;
  // The last result that went to another host as a whole, and the record that it will be read for.
  result_words published_{};
  ref published_of_ = 0;       // until a record is completed here, or a thread leaves
  bool knows_result_ = false;  // of the record that was completed last
  mutable ref read_from_ = 0;
};

}  // namespace godwit::sched
