// Join records, suspension, ready queues: docs/protocols/join.md, models/join.pml. See worker.hpp.
//
// The words: record::state -- swapped once by the child (to done), compare-exchanged by waiters and by a
// consumer that loses interest. Orderings:
//   J1  child: result bytes before state = done (acq_rel swap)    consumer: state (acquire) before the bytes
//   J2  waiter: image complete before it is in state (acq_rel)    child: swapped-out location before the
//   image
//   J3  a published image belongs to whoever completes the record: its former owner touches it no more
#include "sched/worker.hpp"

#include <cstddef>
#include <cstring>
#include <sched.h>

#include "base/check.hpp"
#include "context/context.hpp"

namespace godwit::sched {

using detail::outcome;
using transport::ref_offset;
using transport::ref_worker;

ref worker::new_record() noexcept {
  auto* r = static_cast<record*>(heap_.allocate(object_kind::record, sizeof(record)));
  r->state.store(state_none, std::memory_order_relaxed);
  r->result.object = 0;
  r->result.bytes = 0;
  r->result.kind = outcome::value;
  r->float_control = base::float_control();
  r->references.store(1, std::memory_order_relaxed);
  r->frame_hash.store(0, std::memory_order_relaxed);
  return ref_of(r);
}

void worker::free_object(ref r) noexcept {
  if (ref_worker(r) == me_) {
    heap_.free(reinterpret_cast<object*>(seg_->common() + ref_offset(r)));
  } else {
    net_.remote_store(ref_worker(r), &home<object>(r)->freed, 1, std::memory_order_release);  // H1
  }
}

void worker::publish(ref to, outcome kind, const void* data, std::size_t bytes) noexcept {
  const section inside;
  result_words words{0, bytes, kind, 0, {}};
  std::size_t travelling = sizeof words - sizeof words.small;
  if (bytes > sizeof words.small) {
    object* o = heap_.allocate(object_kind::bytes, sizeof(object) + bytes);
    std::memcpy(static_cast<void*>(o + 1), data, bytes);
    words.object = ref_of(o);
  } else if (bytes != 0) {
    std::memcpy(words.small, data, bytes);
    travelling += bytes;
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

/// Read a completed record of another host, and its result, into fetched_*. False: it is not complete yet.
bool worker::fetch(ref r) const noexcept {
  const auto& e = net_.far().call(ref_worker(r), static_cast<std::uint64_t>(call_no::read_record), r, 0);
  if (e.head.result == 0) return false;
  std::memcpy(&fetched_, e.data, sizeof fetched_);
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
  const result_words& result = at<record>(r)->result;
  if (result.object == 0) return {result.small, result.bytes, result.kind};
  if (is_near(result.object))
    return {reinterpret_cast<const std::byte*>(at<object>(result.object) + 1), result.bytes, result.kind};
  fetched_bytes_.resize(result.bytes);
  net_.remote_get(ref_worker(result.object), fetched_bytes_.data(), home<object>(result.object) + 1, result.bytes);
  return {fetched_bytes_.data(), result.bytes, result.kind};
}

bool worker::is_complete(ref r) const noexcept {
  return net_.remote_load(ref_worker(r), &home<record>(r)->state, std::memory_order_acquire) == state_done;  // J1
}

void worker::retain(ref r) noexcept {
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
  // The only consumer needs no atomic; the others order their reads before the last one's free.
  if (rec->references.load(std::memory_order_acquire) != 1 &&
      rec->references.fetch_sub(1, std::memory_order_acq_rel) != 1)
    return;
  if (!abandon(r)) free_record(r);
}

void worker::detach(ref r) noexcept {
  if (abandon(r)) return;
  if (const detail::payload p = payload_of(r); p.kind == outcome::error) hooks_.unseen_error(p);
  free_record(r);
}

/// The last consumer goes. True: the child is not done yet and will free the record.
bool worker::abandon(ref r) noexcept {  // J4: from "nobody came" only
  std::uint64_t state = state_none;
  if (net_.remote_compare_exchange(ref_worker(r), &home<record>(r)->state, state, state_detached)) return true;
  GODWIT_CHECK(state == state_done, "a future was destroyed while a thread waits for it");
  return false;
}

/// A completed record that nobody will look at again.
void worker::free_record(ref r) noexcept {
  const section inside;
  ref result = 0;
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

namespace {
struct suspension {
  worker* self;
  ref waiting_for;
  detail::place where;
};
}  // namespace

detail::payload worker::wait(ref r, detail::place where) noexcept {
  if (r == 0)
    base::fatal(
        "worker %u: join on a future that has no thread (joined before, moved from, or default "
        "constructed) at %s:%u",
        transport::index(me_), where.file, where.line);
  if (!is_near(r) && fetch(r)) return fetched_payload();  // one round trip for all of it
  if (!is_near(r) || !is_complete(r)) {
    // This thread's frames may leave: [here, where its parent's begin).
    if (godwit_hot_.pending != nullptr) encode_pending(region_low_, godwit_hot_.bottom[-1].sp);
    godwit_hot_.in_runtime = 1;
    std::atomic_signal_fence(std::memory_order_seq_cst);
    suspension s{this, r, where};
    announce_scheduler_stack(0);
    godwit_ctx_suspend(scheduler_stack_, suspended_entry, &s);
    // From here on possibly another worker. `this` is the same address everywhere.
  }
  return payload_of(r);
}

void worker::yield_thread() noexcept {
  if (workers_ == 0) return;
  if (force_mode_ == 0 && godwit_hot_.bottom - 1 == &deque_.sentinel() &&
      words_->ready_count.load(std::memory_order_relaxed) == 0) {
    serve_inbox();
    serve_mailbox();
    return;
  }
  if (godwit_hot_.pending != nullptr) encode_pending(region_low_, godwit_hot_.bottom[-1].sp);
  godwit_hot_.in_runtime = 1;
  std::atomic_signal_fence(std::memory_order_seq_cst);
  suspension s{this, 0, {}};
  announce_scheduler_stack(0);
  godwit_ctx_suspend(scheduler_stack_, suspended_entry, &s);
}

void worker::suspended_entry(void* arg, std::uintptr_t sp) {
  const suspension s = *static_cast<suspension*>(arg);  // its home is about to be copied away
  s.self->suspend(sp, s.waiting_for, s.where);
}

/// On the scheduler stack: the calling thread is saved at @p sp. Does not return.
void worker::suspend(std::uintptr_t sp, ref waiting_for, detail::place where) noexcept {
  // 1. Part from the parent. It goes on in place if it is still here, and then needs a record from now on.
  spawn_slot* b = godwit_hot_.bottom - 1;
  godwit_hot_.bottom = b;
  bool parent_here = true;
  std::uint64_t top = b->sp;
  ref own = 0;
  if (b < godwit_hot_.split) {
    const auto popped = deque_.pop_public(b, [](const spawn_slot&) {});
    parent_here = popped.parent_here;
    if (!parent_here) {
      own = popped.record;
      top = popped.top;
    }
  }
  if (parent_here) {
    if (b->record == 0) b->record = new_record();
    own = b->record;
  }

  // 2. Copy out.
  auto* im = static_cast<image*>(heap_.allocate(object_kind::image, sizeof(image) + (top - sp)));
  im->sp = sp;
  im->low = sp;
  im->top = top;
  im->own_record = own;
  im->waiting_for = waiting_for;
  im->float_control = base::float_control();
  im->fork = false;
  im->where = where;
  context::sanitizer_forget(sp, top);
  std::memcpy(im->bytes(), reinterpret_cast<const void*>(sp), top - sp);
  const ref me = ref_of(im);

  // 3. Publish -- or find that there is nothing to wait for any more.
  delay();
  if (waiting_for == 0) {
    push_ready(me);
  } else {
    const ref target = waiting_for;
    const record* rec = home<record>(target);
    const worker_no where_it_lives = ref_worker(target);
    std::uint64_t state = net_.remote_load(where_it_lives, &rec->state, std::memory_order_acquire);
    for (;;) {
      if (state == state_done) {  // cancel: undo step 1, nobody has seen anything
        heap_.free(im);
        if (parent_here) godwit_hot_.bottom = b + 1;  // else the sentinel describes this thread already
        announce_region();
        godwit_hot_.in_runtime = 0;
        godwit_ctx_resume_suspended(sp, 0);
        __builtin_unreachable();
      }
      im->next = state;
      if (net_.remote_compare_exchange(where_it_lives, &rec->state, state, me)) break;  // J2, J3
    }
  }
  ++words_->stats.suspends;

  // 4. Go on with the parent, which lies just above, or look for something else.
  if (parent_here) {
    const spawn_slot parent = *b;
    b->record = 0;  // it went with the thread that left
    announce_region();
    godwit_hot_.in_runtime = 0;
    godwit_ctx_resume_fork(parent.sp, parent.fp, parent.extra, own);
    __builtin_unreachable();
  }
  loop();
}

/// Complete a record; its waiters become ready. The calling context goes on.
void worker::finish_record(ref r) noexcept {
  std::uint64_t waiting = net_.remote_exchange(ref_worker(r), &home<record>(r)->state, state_done);  // J1
  if (waiting == state_detached) {
    free_record(r);
    return;
  }
  while (waiting != state_none) {
    const ref next = next_waiter(waiting);
    push_ready(waiting);
    waiting = next;
  }
}

ref worker::next_waiter(ref image_ref) noexcept {
  if (is_near(image_ref)) return at<image>(image_ref)->next;
  ref next = 0;
  net_.remote_get(ref_worker(image_ref), &next, &home<image>(image_ref)->next, sizeof next);
  return next;
}

/// Ready queues hold images of their own host only: fetch one of another host. J3: it is ours.
ref worker::make_near(ref r) noexcept {
  image head;
  net_.remote_get(ref_worker(r), static_cast<void*>(&head), home<image>(r), sizeof head);
  const std::size_t bytes = head.top - head.low;
  auto* copy = static_cast<image*>(heap_.allocate(object_kind::image, sizeof(image) + bytes));
  std::memcpy(reinterpret_cast<std::byte*>(copy) + sizeof(object),
              reinterpret_cast<const std::byte*>(&head) + sizeof(object), sizeof(image) - sizeof(object));
  net_.remote_get(ref_worker(r), copy->bytes(), home<std::byte>(r) + sizeof(image), bytes);
  free_object(r);
  return ref_of(copy);
}

void worker::complete(ref r) noexcept {
  godwit_hot_.in_runtime = 1;
  std::atomic_signal_fence(std::memory_order_seq_cst);
  announce_scheduler_stack(reinterpret_cast<std::uintptr_t>(__builtin_frame_address(0)));
  godwit_ctx_start(scheduler_stack_, completed_entry, reinterpret_cast<void*>(r));
  __builtin_unreachable();
}

void worker::completed_entry(void* arg) {
  worker& w = this_worker;
  const auto r = reinterpret_cast<ref>(arg);
  w.delay();
  if (r == w.root_) {
    w.net_.remote_store(worker_no{0}, &w.home<record>(r)->state, state_done, std::memory_order_release);
    static_cast<void>(w.net_.remote_exchange(worker_no{0}, &w.job_->root_done, 1));  // there before we are idle
    w.loop();
  }
  std::uint64_t waiting = w.net_.remote_exchange(ref_worker(r), &w.home<record>(r)->state, state_done);  // J1
  if (waiting == state_none) w.loop();
  if (waiting == state_detached) {
    if (const detail::payload p = w.payload_of(r); p.kind == outcome::error) w.hooks_.unseen_error(p);
    w.free_record(r);
    w.loop();
  }
  // Greedy: we came second, so the continuation of the join is ours. Any other waiters queue.
  ref next = w.next_waiter(waiting);
  while (next > state_detached) {
    const ref after = w.next_waiter(next);
    w.push_ready(next);
    next = after;
  }
  w.resume_image(waiting);
}

void worker::push_ready(ref image_ref) noexcept {
  if (!is_near(image_ref)) image_ref = make_near(image_ref);
  at<image>(image_ref)->next = 0;
  at<image>(image_ref)->waiting_for = 0;
  lock_own(words_->ready_lock, []() noexcept {
    this_worker.serve_inbox();
    sched_yield();
  });
  if (words_->ready_count.load(std::memory_order_relaxed) == 0)
    words_->ready_head.store(image_ref, std::memory_order_relaxed);
  else
    at<image>(words_->ready_tail.load(std::memory_order_relaxed))->next = image_ref;
  words_->ready_tail.store(image_ref, std::memory_order_relaxed);
  words_->ready_count.fetch_add(1, std::memory_order_relaxed);
  words_->ready_lock.store(0, std::memory_order_release);
  wake_one();
}

void worker::end_of_root_thread() noexcept {
  spawn_slot* mine = godwit_hot_.bottom - 1;
  godwit_hot_.bottom = mine;
  std::atomic_signal_fence(std::memory_order_seq_cst);
  complete(pop_public(mine));
}

}  // namespace godwit::sched
