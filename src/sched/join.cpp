// Join records and ready queues (suspension: continuation.cpp, child.cpp): docs/protocols/join.md,
// models/join.pml, hand_over.pml. See worker.hpp.
//
// The words: record::state -- swapped once by the child (to done), compare-exchanged by waiters and by a
// consumer that loses interest. Orderings:
//   JN1  child: result bytes before state = done (acq_rel swap)    consumer: state (acquire) before the bytes
//   JN2  waiter: image complete before it is in state (acq_rel)    child: swapped-out location before the
//   image
//   JN3  a published image belongs to whoever completes the record: its former owner touches it no more
#include "sched/worker.hpp"

#include <cstddef>
#include <cstring>
#include <exception>

#include "base/check.hpp"
#include "context/context.hpp"
#include "base/world.hpp"

namespace godwit::sched {

using detail::outcome;
using transport::ref_offset;
using transport::ref_worker;

ref worker::new_record() noexcept {
  auto* r = static_cast<record*>(heap_.allocate(object_kind::record, sizeof(record)));
  init_record(r);
  return ref_of(r);
}

void worker::init_record(record* r) noexcept {
  begin_record(r);
  r->spawned_at = 0;
  r->done_ns = 0;
  r->span_ns = 0;
}

void worker::free_object(ref r) noexcept {
  if (ref_worker(r) == me_) {
    GODWIT_ASSERT(at<object>(r)->freed.load(std::memory_order_relaxed) == 0, "an object is freed once");
    heap_.free(reinterpret_cast<object*>(seg_->common() + ref_offset(r)));
  } else {
    free_far(r);
  }
}

void worker::free_far(ref r) noexcept {
  net_.remote_store(ref_worker(r), &home<object>(r)->freed, 1, std::memory_order_release);  // JH1
}

void worker::publish(ref to, outcome kind, const void* data, std::size_t bytes) noexcept {
  const section inside;
  if (bytes >> 32 != 0)
    base::fatal(
        "a result of %zu bytes: larger ones than 4 GiB have to stay where they are: give back a pointer to "
        "it",
        bytes);
  GODWIT_ASSERT(!is_near(to) || (at<record>(to)->kind == object_kind::record &&
                                 at<record>(to)->state.load(std::memory_order_relaxed) != state_done),
                "JN1: a result is written before the record is complete");
  result_words words{0, static_cast<std::uint32_t>(bytes), kind, 0, {}};
  std::size_t travelling = sizeof words - sizeof words.small;
  if (bytes > sizeof words.small) {
    object* o = heap_.allocate(object_kind::bytes, sizeof(object) + bytes);
    std::memcpy(static_cast<void*>(o + 1), data, bytes);
    words.object = ref_of(o);
  } else if (bytes != 0) {
    std::memcpy(words.small, data, bytes);
    travelling += bytes;
  }
  if (is_near(to)) {
    std::memcpy(static_cast<void*>(&at<record>(to)->result), &words, sizeof words - sizeof words.small);
    if (travelling > sizeof words - sizeof words.small)
      std::memcpy(at<record>(to)->result.small, words.small, sizeof words.small);
    return;
  }
  // Before the exchange that completes the record: requests to one worker keep their order.
  net_.remote_put(ref_worker(to), &home<record>(to)->result, &words, travelling);
}

ref worker::make_completed(outcome kind, const void* data, std::size_t bytes) noexcept {
  const section inside;
  const ref r = new_record();
  publish(r, kind, data, bytes);
  at<record>(r)->state.store(state_done, std::memory_order_release);
  return r;
}

void worker::publish_boxed(ref to, outcome kind, detail::boxed what) noexcept {
  const section inside;
  GODWIT_ASSERT(at<record>(to)->kind == object_kind::record &&
                    at<record>(to)->state.load(std::memory_order_relaxed) != state_done,
                "JN1: a result is written before the record is complete");
  result_words& result = at<record>(to)->result;
  result.object = 0;
  result.bytes = sizeof what;
  result.kind = kind;
  result.boxed = 1;
  std::memcpy(result.small, &what, sizeof what);
}

ref worker::make_completed_boxed(outcome kind, detail::boxed what) noexcept {
  const section inside;
  const ref r = new_record();
  publish_boxed(r, kind, what);
  at<record>(r)->state.store(state_done, std::memory_order_release);
  return r;
}

void worker::publish_error(ref to, ref error) noexcept {
  const detail::payload p = payload_of(error);
  if (is_near(error) && at<record>(error)->result.boxed != 0) {
    detail::boxed what;
    std::memcpy(&what, p.data, sizeof what);
    publish_boxed(to, outcome::error, what);
    at<record>(error)->result.boxed = 0;  // it has a new owner
  } else {
    publish(to, outcome::error, p.data, p.size);
  }
  release(error);
}

/// Read a completed record of another host, and its result, into fetched_*. False: it is not complete yet.
bool worker::fetch(ref r) const noexcept {
  const auto& e = net_.far().call(ref_worker(r), static_cast<std::uint64_t>(call_no::read_record), r, 0);
  if (e.head.result == 0) return false;
  std::memcpy(&fetched_, e.data, sizeof fetched_);
  GODWIT_ASSERT(e.head.info == sizeof fetched_ || e.head.info == sizeof fetched_ + fetched_.bytes,
                "a result comes along as a whole or not at all");
  const std::byte* bytes = e.data + sizeof fetched_;
  if (fetched_.object != 0) {
    fetched_bytes_.resize(fetched_.bytes);
    if (e.head.info > sizeof fetched_)
      std::memcpy(fetched_bytes_.data(), bytes, fetched_.bytes);  // it came along
    else
      net_.remote_get(ref_worker(fetched_.object), fetched_bytes_.data(), home<object>(fetched_.object) + 1,
                      fetched_.bytes);
  }
  return true;
}

detail::payload worker::fetched_payload() const noexcept {
  return {fetched_.object != 0 ? fetched_bytes_.data() : fetched_.small, fetched_.bytes, fetched_.kind};
}

detail::payload worker::payload_of(ref r) const noexcept {
  if (!is_near(r)) {
    GODWIT_CHECK(fetch(r), "a result is read before it is there");
    return fetched_payload();
  }
  GODWIT_ASSERT(at<record>(r)->state.load(std::memory_order_acquire) == state_done,
                "JN1: a result is read when the record is complete");
  const result_words& result = at<record>(r)->result;
  GODWIT_ASSERT(result.object != 0 || result.bytes <= sizeof result.small, "a result lies where it fits");
  if (result.object == 0) return {result.small, result.bytes, result.kind};
  if (is_near(result.object))
    return {reinterpret_cast<const std::byte*>(at<object>(result.object) + 1), result.bytes, result.kind};
  fetched_bytes_.resize(result.bytes);
  net_.remote_get(ref_worker(result.object), fetched_bytes_.data(), home<object>(result.object) + 1,
                  result.bytes);
  return {fetched_bytes_.data(), result.bytes, result.kind};
}

bool worker::is_complete(ref r) const noexcept {
  if (shape_.host_count == 1) return at<record>(r)->state.load(std::memory_order_acquire) == state_done;
  // JN1
  return net_.remote_load(ref_worker(r), &home<record>(r)->state, std::memory_order_acquire) == state_done;
}

void worker::retain(ref r) noexcept {
  GODWIT_ASSERT(!is_near(r) || at<record>(r)->references.load(std::memory_order_relaxed) != 0,
                "who adds a reference holds one");
  net_.remote_fetch_add(ref_worker(r), &home<record>(r)->references, 1);
}

void worker::release(ref r) noexcept {
  if (!is_near(r)) {
    const auto& e = net_.far().call(ref_worker(r), static_cast<std::uint64_t>(call_no::release), r, 0);
    if (const ref result = e.head.result; result != 0) {  // it is not at the record's host
      const section inside;
      free_object(result);
    }
    return;
  }
  record* rec = at<record>(r);
  GODWIT_ASSERT(rec->kind == object_kind::record && rec->references.load(std::memory_order_relaxed) != 0,
                "who releases holds a reference");
  // The only consumer needs no atomic; the others order their reads before the last one's free.
  if (rec->references.load(std::memory_order_acquire) != 1 &&
      rec->references.fetch_sub(1, std::memory_order_acq_rel) != 1)
    return;
  if (!abandon(r)) free_record(r);
}

bool worker::take_finished(ref r) noexcept {
  if (shape_.host_count != 1 || opts_.span) return false;
  record* rec = at<record>(r);
  if (rec->state.load(std::memory_order_acquire) != state_done ||
      rec->references.load(std::memory_order_acquire) != 1 || rec->result.kind != outcome::value ||
      rec->result.bytes != 0)
    return false;
  acquire_writes();
  const section inside;
  free_object(r);
  return true;
}

void worker::detach(ref r) noexcept {
  if (abandon(r)) return;
  // While another exception is on its way (of an invoke, say, of which several callables threw) that one is
  // the news.
  if (const detail::payload p = payload_of(r); p.kind == outcome::error && std::uncaught_exceptions() == 0)
    hooks_.unseen_error(p);
  free_record(r);
}

/// The last consumer goes. True: the child is not done yet and will free the record.
bool worker::abandon(ref r) noexcept {  // JN4: from "nobody came" only
  // as a rule: spares an atomic
  if (is_near(r) && at<record>(r)->state.load(std::memory_order_acquire) == state_done) return false;
  std::uint64_t state = state_none;
  if (net_.remote_compare_exchange(ref_worker(r), &home<record>(r)->state, state, state_detached))
    return true;
  GODWIT_CHECK(state == state_done, "a future was destroyed while a thread waits for it");
  return false;
}

/// A completed record that nobody will look at again.
void worker::free_record(ref r) noexcept {
  const section inside;
  GODWIT_ASSERT(!is_near(r) || at<record>(r)->state.load(std::memory_order_relaxed) == state_done,
                "JN4: who is second on the state frees the record");
  if (is_near(r) && at<record>(r)->result.boxed != 0) {
    detail::boxed what;
    std::memcpy(&what, at<record>(r)->result.small, sizeof what);
    if (what.object != nullptr) what.destroy(what.object);
  }
  ref result = 0;
  if (is_near(r))
    result = at<record>(r)->result.object;
  else
    net_.remote_get(ref_worker(r), &result, &home<record>(r)->result.object, sizeof result);
  if (result != 0) free_object(result);
  free_object(r);
}

ref worker::make_pending() noexcept {
  const section inside;
  return new_record();
}

void worker::finish(ref r) noexcept {
  const section inside;
  finish_record(r);
}

detail::payload worker::wait(ref r, detail::place where) noexcept {
  if (r == 0)
    base::fatal(
        "worker %u: join on a future that has no thread (joined before, moved from, or default "
        "constructed) at %s:%u",
        transport::index(me_), where.file, where.line);
  GODWIT_ASSERT(!is_near(r) || (at<record>(r)->kind == object_kind::record &&
                                at<record>(r)->freed.load(std::memory_order_relaxed) == 0),
                "a join is of a record that lives");
  if (!is_near(r) && fetch(r)) {  // one round trip for all of it
    acquire_writes();
    return fetched_payload();
  }
  if (!is_near(r) || !is_complete(r)) {
    block(r, where);
  } else {
    acquire_writes();  // whoever completed it may have been on another host
    joined(r);
  }
  // From here on possibly another worker, and, where workers are threads, `this` is not it.
  return this_worker().payload_of(r);
}

void worker::stamp_done(ref r, std::uint64_t now) noexcept {
  if (is_near(r)) at<record>(r)->done_ns = now;
}

/// Complete a record; its waiters become ready. The calling context goes on.
void worker::finish_record(ref r) noexcept {
  release_writes();
  const std::uint64_t now = base::fast_ns();
  stamp_done(r, now);
  if (account_.traced()) account_.note(trace::kind::complete, now, r);
  std::uint64_t waiting = exchange_state(r, state_done);  // JN1
  GODWIT_ASSERT(waiting != state_done, "a record is completed once");
  if (waiting == state_detached) {
    free_record(r);
    return;
  }
  while (waiting != state_none) {
    const ref next = next_waiter(waiting);
    push_ready(waiting, now);
    waiting = next;
  }
}

ref worker::next_waiter(ref image_ref) noexcept {
  if (is_near(image_ref)) return at<image>(image_ref)->next;
  ref next = 0;
  net_.remote_get(ref_worker(image_ref), &next, &home<image>(image_ref)->next, sizeof next);
  return next;
}

/// Ready queues hold images of their own host only: fetch one of another host. JN3: it is ours.
ref worker::make_near(ref r) noexcept {
  image head;
  net_.remote_get(ref_worker(r), static_cast<void*>(&head), home<image>(r), sizeof head);
  GODWIT_ASSERT(head.kind == object_kind::image && is_stack(head.low, head.top, head.bytes_end),
                "what waits for a record is a thread");
  const std::size_t bytes = head.bytes_end - head.low;
  GODWIT_ASSERT(heap::room_of(head) >= sizeof(image) + bytes, "an image holds its stack");
  auto* copy = static_cast<image*>(heap_.allocate(object_kind::image, sizeof(image) + bytes));
  std::memcpy(reinterpret_cast<std::byte*>(copy) + sizeof(object),
              reinterpret_cast<const std::byte*>(&head) + sizeof(object), sizeof(image) - sizeof(object));
  copy->float_control = head.float_control;  // of the head, which is the copy's own otherwise
  net_.remote_get(ref_worker(r), copy->bytes(), home<std::byte>(r) + sizeof(image), bytes);
  free_object(r);
  return ref_of(copy);
}

void worker::push_ready(ref image_ref, std::uint64_t now, bool in_front) noexcept {
  if (!is_near(image_ref)) image_ref = make_near(image_ref);
  image* im = at<image>(image_ref);
  if (im->sp != 0) im->ready_ns = now;
  push_near(im, image_ref, in_front);
}

}  // namespace godwit::sched
