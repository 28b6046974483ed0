// See records.hpp. docs/protocols/join.md; models/join.pml, hand_over.pml.
//
// The words: record::state -- swapped once by the child (to done), compare-exchanged by waiters and by a
// consumer that loses interest. Orderings:
//   JN1  child: result bytes before state = done (acq_rel swap)    consumer: state (acquire) before the bytes
//   JN2  waiter: image complete before it is in state (acq_rel)    child: swapped-out location before the
//   image
//   JN3  a published image belongs to whoever completes the record: its former owner touches it no more
#include "sched/records.hpp"

#include <bit>
#include <cstring>
#include <span>

#include "base/thread_sanitizer.hpp"
#include "base/unexposed.hpp"
#include "sched/far_calls.hpp"
#include "sched/frames.hpp"
#include "sched/worker.hpp"
#include "base/world.hpp"

namespace godwit::sched {

using base::unexposed;
using detail::outcome;
using detail::owning;
using transport::ref_offset;
using transport::ref_worker;

void join_records::free_far(ref r) noexcept {
  const worker_no owner = ref_worker(r);
  if (!heap_.has_queue()) {
    here_.net.remote_store(owner, &here_.home<object>(r)->freed, freed_marked,
                           std::memory_order_release);  // JH1
    return;
  }
  // Policy locked_free: lock, read the head, link in front of it, unlock (003, III-B: four round trips; here
  // two, since nobody waits for a store to another host, and they keep their order).
  for (base::spin_wait w;; here_.lock_turn(w)) {
    std::uint64_t nobody = 0;
    if (here_.net.remote_compare_exchange(owner, &here_.words->free_lock, nobody, here_.holder())) break;
  }
  const std::uint64_t head = here_.net.remote_load(owner, &here_.words->free_head, std::memory_order_relaxed);
  here_.net.remote_store(owner, &here_.home<object>(r)->freed, head != 0 ? head : freed_last,
                         std::memory_order_relaxed);
  here_.net.remote_store(owner, &here_.words->free_head, r, std::memory_order_relaxed);
  here_.net.remote_store(owner, &here_.words->free_lock, 0, std::memory_order_release);
}

void join_records::publish(ref to, outcome kind, const void* data, std::size_t bytes, owning owns) noexcept {
  const unexposed inside;
  if (bytes >> 32 != 0)
    base::fatal(
        "a result of %zu bytes: larger ones than 4 GiB have to stay where they are: give back a pointer to "
        "it",
        bytes);
  GODWIT_ASSERT(
      !here_.is_near(to) || (is_record_kind(here_.at<record>(to)->kind) &&
                             here_.at<record>(to)->state.load(std::memory_order_relaxed) != state_done),
      "JN1: a result is written before the record is complete");
  const auto write = [&](result_words& words) {  // gives back how many bytes of it say something
    words.object = 0;
    words.bytes = static_cast<std::uint32_t>(bytes);
    words.kind = kind;
    words.owns = owns;
    if (bytes > sizeof words.small) {
      object* o = heap_.allocate(object_kind::bytes, sizeof(object) + bytes);
      base::happens_after(o);  // of whoever was there before
      std::memcpy(static_cast<void*>(o + 1), data, bytes);
      words.object = here_.ref_of(o);
    } else if (bytes != 0) {
      std::memcpy(words.small, data, bytes);
      return sizeof words - sizeof words.small + bytes;
    }
    return sizeof words - sizeof words.small;
  };
  if (here_.is_near(to)) {
    base::happens_after(here_.at<record>(to));
    write(here_.at<record>(to)->result);
    return;
  }
  const std::size_t travelling = write(published_);
  published_of_ = published_.object == 0 ? to : 0;
  // Before the exchange that completes the record: requests to one worker keep their order.
  here_.net.remote_put(ref_worker(to), &here_.home<record>(to)->result, &published_, travelling);
}

void join_records::publish_boxed(ref to, outcome kind, detail::boxed what) noexcept {
  if (!here_.is_near(to)) what.left_at = transport::index(here_.me);
  publish(to, kind, &what, sizeof what, owning::box);
}

ref join_records::make_completed(outcome kind, const void* data, std::size_t bytes, owning owns) noexcept {
  const unexposed inside;
  const ref r = make();
  publish(r, kind, data, bytes, owns);
  base::happens_before(here_.at<record>(r));
  here_.at<record>(r)->state.store(state_done, std::memory_order_release);
  return r;
}

void join_records::drop_value(ref r) noexcept {
  if (!here_.is_near(r)) return;
  if (here_.at<record>(r)->result.bytes == 0) return;
  const ref completed = make_completed(outcome::value, nullptr, 0);
  std::swap(here_.at<record>(r)->result, here_.at<record>(completed)->result);
  free_completed(completed);
}

void join_records::publish_error(ref to, ref error) noexcept {
  const detail::payload p = payload_of(error);
  const bool is_here = here_.is_near(error);  // else the thread has gone to another host since
  const bool boxed = (is_here ? here_.at<record>(error)->result : fetched_).owns == owning::box;
  const bool goes_along = boxed && is_here && here_.is_near(to);
  if (boxed && is_here) here_.at<record>(error)->result.owns = owning::nothing;  // it has a new owner
  if (boxed && !goes_along) {  // or none: the bytes behind it go
    detail::boxed what;
    std::memcpy(&what, p.data, sizeof what);
    if (is_here) what.destroy(what.object);  // else who frees the record does
    what.object = nullptr;
    std::memcpy(const_cast<std::byte*>(p.data), &what, sizeof what);
  }
  publish(to, p.kind, p.data, p.size, goes_along ? owning::box : owning::nothing);
  release(error);
}

bool join_records::fetch(ref r) const noexcept {
  return take_answer(r, here_.net.far().call(ref_worker(r), call_no::read_record, r, 0));
}

bool join_records::fetch_along(ref r, const stack::range& frames) noexcept {
  if (const result_words* known = along_.copy_of(r); known != nullptr) {
    fetched_ = *known;
    fetched_of_ = r;
    return true;
  }
  const bool is_there = take_answer(r, along_.ask(r, frames));
  along_.send_releases();  // while there is nothing to ask
  return is_there;
}

/// What read_record says of @p r, into fetched_*. False: it is not complete yet.
bool join_records::take_answer(ref r, const transport::far::entry& e) const noexcept {
  if (e.head.result == 0) return false;
  std::memcpy(&fetched_, e.data, sizeof fetched_);
  fetched_of_ = r;
  const std::size_t results = static_cast<std::size_t>(std::popcount(e.head.result)) * sizeof fetched_;
  GODWIT_ASSERT(e.head.info == results || e.head.info == results + fetched_.bytes,
                "a result comes along as a whole or not at all");
  if (fetched_.object != 0) {
    fetched_bytes_.resize(fetched_.bytes);
    if (e.head.info > results)
      std::memcpy(fetched_bytes_.data(), e.data + results, fetched_.bytes);  // it came along
    else
      here_.net.remote_get(ref_worker(fetched_.object), fetched_bytes_.data(),
                           here_.home<object>(fetched_.object) + 1, fetched_.bytes);
  }
  return true;
}

detail::payload join_records::fetched_payload() const noexcept {
  return {fetched_.object != 0 ? fetched_bytes_.data() : fetched_.small, fetched_.bytes, fetched_.kind};
}

detail::payload join_records::payload_of(ref r) const noexcept {
  if (!here_.is_near(r)) {
    if (std::exchange(read_from_, 0) == r) {
      fetched_ = published_;
      fetched_of_ = r;
    } else {
      GODWIT_CHECK(fetch(r), "a result is read before it is there");
    }
    return fetched_payload();
  }
  GODWIT_ASSERT(here_.at<record>(r)->state.load(std::memory_order_acquire) == state_done,
                "JN1: a result is read when the record is complete");
  base::happens_after(here_.at<record>(r));
  const result_words& result = here_.at<record>(r)->result;
  GODWIT_ASSERT(result.object != 0 || result.bytes <= sizeof result.small, "a result lies where it fits");
  if (result.object == 0) return {result.small, result.bytes, result.kind};
  if (here_.is_near(result.object))
    return {reinterpret_cast<const std::byte*>(here_.at<object>(result.object) + 1), result.bytes,
            result.kind};
  fetched_bytes_.resize(result.bytes);
  here_.net.remote_get(ref_worker(result.object), fetched_bytes_.data(),
                       here_.home<object>(result.object) + 1, result.bytes);
  return {fetched_bytes_.data(), result.bytes, result.kind};
}

bool join_records::is_complete(ref r) const noexcept {
  if (here_.one_host()) {
    const record* rec = here_.at<record>(r);
    if (rec->state.load(std::memory_order_acquire) != state_done) return false;
    base::happens_after(rec);
    return true;
  }
  // JN1
  return here_.net.remote_load(ref_worker(r), &here_.home<record>(r)->state, std::memory_order_acquire) ==
         state_done;
}

ref join_records::count_off(ref tally) noexcept {
  if (!here_.is_near(tally))
    return here_.net.far().call(ref_worker(tally), call_no::count_off, tally, 0).head.result;
  record* const there = here_.at<record>(tally);
  base::happens_before(there);
  const ref above = count_off_from(*there);
  if (above != 0) base::happens_after(there);  // the last part tells who goes on of what all parts did
  return above;
}

bool join_records::await_last(ref tally, ref above) noexcept {
  const worker_no home = ref_worker(tally);
  record* const there = here_.home<record>(tally);
  std::uint64_t now = here_.net.remote_load(home, &there->references, std::memory_order_acquire);
  if (tally_out(now) != 0)  // TY2: before the last one can see that it is waited for
    here_.net.remote_put(home, &there->result.object, &above, sizeof above);
  while (tally_out(now) != 0) {
    GODWIT_CHECK((now & tally_waits) == 0, "one thread at a time waits for the parts of a tally");
    if (here_.net.remote_compare_exchange(home, &there->references, now, now | tally_waits)) return true;
  }
  return false;
}

void join_records::count_part(ref r, ref tally) noexcept {
  const std::uint64_t before = here_.net.remote_fetch_add(
      ref_worker(tally), &here_.home<record>(tally)->references, tally_part + tally_number);
  const std::uint64_t number = before / tally_number | is_part;
  if (here_.opts.span && here_.is_near(r)) {
    const std::uint64_t chain =
        std::atomic_ref(here_.at<record>(r)->part).exchange(number, std::memory_order_relaxed);
    return lift_chain(tally, chain_of(chain));  // of one that has ended
  }
  here_.net.remote_put(ref_worker(r), &here_.home<record>(r)->part, &number, sizeof number);
}

void join_records::lift_chain(ref tally, std::uint64_t span_ns) noexcept {
  if (!here_.is_near(tally)) return;
  const std::atomic_ref longest(here_.at<record>(tally)->span_ns);
  std::uint64_t before = longest.load(std::memory_order_relaxed);
  while (before < span_ns && !longest.compare_exchange_weak(before, span_ns, std::memory_order_relaxed)) {
  }
}

void join_records::put_span(ref r, std::uint64_t span_ns) noexcept {
  if (!here_.is_near(r)) return;
  const std::atomic_ref word(here_.at<record>(r)->span_ns);
  std::uint64_t before = word.load(std::memory_order_relaxed);
  while ((before & is_part) == 0 && !word.compare_exchange_weak(before, span_ns, std::memory_order_relaxed)) {
  }
}

void join_records::end_part(ref r, ref tally) noexcept {
  if (payload_of(r).kind == outcome::value) return free_completed(r);
  const worker_no home = ref_worker(tally);
  const word* list = &here_.home<record>(tally)->state;
  std::uint64_t before = here_.net.remote_load(home, list, std::memory_order_relaxed);
  do {
    here_.net.remote_put(ref_worker(r), &here_.home<record>(r)->next_failed, &before, sizeof before);
    // TY5: the list is at another home, and nothing is promised between two
    if (!here_.is_near(r)) here_.net.far().fence(ref_worker(r));
  } while (!here_.net.remote_compare_exchange(home, list, before, r));  // TY3
}

ref join_records::take_failed(ref tally) noexcept {
  fetched_of_ = 0;  // these have not been read
  const worker_no home = ref_worker(tally);
  const word* list = &here_.home<record>(tally)->state;
  if (here_.net.remote_load(home, list, std::memory_order_acquire) == 0) return 0;
  return here_.net.remote_exchange(home, list, 0);
}

join_records::failed_part join_records::look_at_failed(ref r) const noexcept {
  const record* there = here_.home<record>(r);
  failed_part is{};
  here_.net.remote_get(ref_worker(r), &is.next, &there->next_failed, sizeof is.next);  // TY5
  here_.net.remote_get(ref_worker(r), &is.number, &there->part, sizeof is.number);
  is.number &= ~is_part;
  return is;
}

void join_records::retain(ref r) noexcept {
  GODWIT_ASSERT(!here_.is_near(r) || here_.at<record>(r)->references.load(std::memory_order_relaxed) != 0,
                "who adds a reference holds one");
  here_.net.remote_fetch_add(ref_worker(r), &here_.home<record>(r)->references, 1);
}

/// The last consumer frees what is not at the record's host, and where frees are queued all of it: one call.
/// Who has just read that there is no such thing leaves it to be told later, with others. (No thread leaves
/// between the two: a result is decoded there.)
[[gnu::noinline]] void join_records::release_far(ref r, bool taken) noexcept {
  const bool nothing_left = std::exchange(fetched_of_, 0) == r && fetched_.object == 0 &&
                            (taken || fetched_.owns == owning::nothing) && !heap_.has_queue();
  if (nothing_left) return along_.release(r);
  const auto& e =
      here_.net.far().call(ref_worker(r), call_no::release, r,
                           (heap_.has_queue() ? release_as::queued : 0) | (taken ? release_as::taken : 0));
  const ref result = e.head.result;
  if (result == owns_values) return free_at_home(r);
  const bool frees_record = e.head.info != 0;
  const unexposed inside;
  if (result != 0) free(result);
  if (frees_record) free(r);
}

void join_records::release(ref r) noexcept {
  if (!here_.is_near(r)) return release_far(r, false);
  record* rec = here_.at<record>(r);
  GODWIT_ASSERT(is_record_kind(rec->kind) && rec->references.load(std::memory_order_relaxed) != 0,
                "who releases holds a reference");
  base::happens_before(rec);
  // The only consumer needs no atomic; the others order their reads before the last one's free.
  if (rec->references.load(std::memory_order_acquire) != 1 &&
      rec->references.fetch_sub(1, std::memory_order_acq_rel) != 1)
    return;
  if (!abandon(r)) free_completed(r);
}

void join_records::free_taken(ref r) noexcept {
  if (!here_.is_near(r)) return release_far(r, true);
  static_cast<void>(take_apart(r));
}

bool join_records::take_finished(ref r) noexcept {
  if (here_.shape.host_count != 1 || here_.opts.span) return false;
  record* rec = here_.at<record>(r);
  if (rec->state.load(std::memory_order_acquire) != state_done ||
      rec->references.load(std::memory_order_acquire) != 1 || rec->result.kind != outcome::value ||
      rec->result.bytes != 0)
    return false;
  take_value_less(r);
  return true;
}

void join_records::take_value_less(ref r) noexcept {
  here_.acquire_writes();
  base::happens_after(here_.at<record>(r));
  const unexposed inside;
  free(r);
}

void join_records::detach(ref r) noexcept {
  if (abandon(r)) return;
  // While another exception is on its way (of an invoke, say, of which several callables threw) that one is
  // the news.
  if (const detail::payload p = payload_of(r); p.kind == outcome::error && std::uncaught_exceptions() == 0)
    here_.hooks.unseen_error(p);
  free_completed(r);
}

/// The last consumer goes. True: the child is not done yet and will free the record.
bool join_records::abandon(ref r, ref tally) noexcept {  // JN4: from "nobody came" only
  if (base::planted("join.frees_while_running")) return false;
  // as a rule: spares an atomic
  if (here_.is_near(r) && here_.at<record>(r)->state.load(std::memory_order_acquire) == state_done)
    return false;
  std::uint64_t state = state_none;
  if (here_.net.remote_compare_exchange(ref_worker(r), &here_.home<record>(r)->state, state,
                                        tally | state_detached))
    return true;
  GODWIT_CHECK(state == state_done, "a future was destroyed while a thread waits for it");
  return false;
}

void join_records::free_completed(ref r) noexcept {
  // Last, and outside of the runtime's own work: a value may own futures, whose end may wait.
  if (!drop_values(r)) destroy(take_apart(r));
}

/// Of a result that owns values: all that free_completed has to do. OW1
bool join_records::drop_values(ref r) noexcept {
  if (!here_.is_near(r) || here_.at<record>(r)->result.owns != owning::values) return false;
  const detail::payload p = payload_of(r);
  detail::drop_function* drop = nullptr;
  std::memcpy(&drop, p.data + p.size - sizeof drop, sizeof drop);
  drop(r, p);
  return true;
}

/// Frees the record and the bytes of its result. Gives back what is in its box.
detail::boxed join_records::take_apart(ref r) noexcept {
  const unexposed inside;
  GODWIT_ASSERT(!here_.is_near(r) || here_.at<record>(r)->state.load(std::memory_order_relaxed) == state_done,
                "JN4: who is second on the state frees the record");
  ref result = 0;
  detail::boxed what{};
  if (here_.is_near(r)) {
    base::happens_after(here_.at<record>(r));
    const result_words& last = here_.at<record>(r)->result;
    if (last.owns == owning::box) std::memcpy(&what, payload_of(r).data, sizeof what);
    result = last.object;
  } else {
    result_words last{};
    here_.net.remote_get(ref_worker(r), &last, &here_.home<record>(r)->result, offsetof(result_words, small));
    fetched_of_ = 0;  // another record may lie there soon
    if (last.owns != owning::nothing) return free_at_home(r), what;
    result = last.object;
  }
  if (result != 0) {
    if (here_.is_near(result)) base::happens_before(here_.at<object>(result));
    free(result);
  }
  if (here_.is_near(r)) base::happens_before(here_.at<record>(r));  // the caller has read it
  free(r);
  return what;
}

/// On the host where the object lies.
void join_records::destroy(const detail::boxed& what) noexcept {
  if (what.object == nullptr) return;
  if (what.left_at == detail::boxed::nowhere) return what.destroy(what.object);
  this_worker().send(
      worker_no{what.left_at}, 0,
      [](const void* closure) {
        detail::boxed mine;
        std::memcpy(&mine, closure, sizeof mine);
        mine.destroy(mine.object);
      },
      &what, sizeof what);
}

/// Of another host, and nobody else's: what it owns is destroyed there.
void join_records::free_at_home(ref r) noexcept {
  this_worker().send(
      ref_worker(r), 0,
      [](const void* closure) {
        ref mine;
        std::memcpy(&mine, closure, sizeof mine);
        this_worker().records().free_completed(mine);
      },
      &r, sizeof r);
}

void join_records::free_unseen(ref r) noexcept {
  if (const detail::payload p = payload_of(r); p.kind == outcome::error) here_.hooks.unseen_error(p);
  free_completed(r);
}

const transport::far::entry& join_records::complete_far(ref r) noexcept {
  knows_result_ = std::exchange(published_of_, 0) == r;
  const completion what{0, here_.memory->near()};
  return here_.net.far().call(ref_worker(r), call_no::complete, r, 0, std::as_bytes(std::span(&what, 1)));
}

const transport::far::entry& join_records::bring_waiter(ref image_ref, bool in_answer) noexcept {
  const completion what{image_ref, here_.memory->near(), in_answer};
  return here_.net.far().call(ref_worker(image_ref), call_no::complete, 0, 0,
                              std::as_bytes(std::span(&what, 1)));
}

/// By one call if all of it fits into the answer.
ref join_records::make_near(ref r, bool sent, ref* behind) noexcept {
  image head;
  const transport::far::entry* answer = nullptr;
  if (!sent && here_.shape.steals_by_call) {
    answer = &bring_waiter(r, true);
    std::memcpy(static_cast<void*>(&head), answer->data, sizeof head);
  } else {
    here_.net.remote_get(ref_worker(r), static_cast<void*>(&head), here_.home<image>(r), sizeof head);
  }
  GODWIT_ASSERT(head.kind == object_kind::image && here_.is_stack(head.low, head.top, head.bytes_end),
                "what waits for a record is a thread");
  const std::size_t bytes = head.bytes_end - head.low;
  GODWIT_ASSERT(heap::room_of(head) >= sizeof(image) + bytes, "an image holds its stack");
  if (behind != nullptr) *behind = head.next;
  if (!sent && head.bound) return 0;
  auto* copy = static_cast<image*>(heap_.allocate(object_kind::image, sizeof(image) + bytes));
  std::memcpy(reinterpret_cast<std::byte*>(copy) + sizeof(object),
              reinterpret_cast<const std::byte*>(&head) + sizeof(object), sizeof(image) - sizeof(object));
  copy->float_control = head.float_control;  // of the head, which is the copy's own otherwise
  if (answer != nullptr && answer->head.bytes != 0) {
    std::memcpy(copy->bytes(), answer->data + sizeof head, bytes);  // and there it is free
  } else {
    here_.net.remote_get(ref_worker(r), copy->bytes(), here_.home<std::byte>(r) + sizeof(image), bytes);
    free(r);
  }
  return here_.ref_of(copy);
}

}  // namespace godwit::sched
