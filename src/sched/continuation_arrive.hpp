// Members of continuation_worker: threads that are sent -- those that begin where they were sent to, and
// running ones that leave. docs/protocols/parcels.md (PA). Included by continuation.cpp alone, which
// instantiates them.
#pragma once

#include "sched/continuation.hpp"

#include <cstring>
#include <span>

#include "sched/frames.hpp"

namespace godwit::sched {

using trace::kind;

/// It waits for a stack: in the ready queue, where others of this host may take it, or for this very worker.
template <class P>
void continuation_worker<P>::arrive(const parcel& p, const data_part& data) noexcept {
  const unexposed inside;
  auto* im = static_cast<parcel_image*>(
      heap_.allocate(object_kind::image, sizeof(parcel_image) + static_cast<std::size_t>(p.bytes)));
  im->sp = not_begun;
  im->fp = im->extra = im->low = im->top = im->bytes_end = 0;
  im->own_record = p.record;
  im->waiting_for = im->waited_for = im->status = 0;
  im->parked_at = nullptr;
  im->fork = true;  // who hands over looks at that: there is no stack to go to
  im->bound = true;
  im->owner = im->wanted = im->high = im->goes_home = false;
  im->suspended_ns = im->ready_ns = im->span_ns = 0;
  im->where = {};
  im->data = data;
  im->takes = {p.scope, p.segment};
  im->what = p;
  im->what.object = here_.ref_of(im);
  base::happens_after(im);  // of whoever was there before
  std::memcpy(static_cast<void*>(im + 1), p.closure(), p.bytes);
  base::happens_before(im);
  take_in(here_.at<image>(im->what.object), im->what.object, p.address == 0);
}

/// PA2: @p im is of this host, and nobody else's.
template <class P>
void continuation_worker<P>::take_in(image* im, ref r, bool exactly) noexcept {
  if (exactly)
    arrivals_.push(r);
  else
    push_near(im, r, rank::last);
}

/// Of a thread without a stack. Comes back if it was sent on. PA3
template <class P>
void continuation_worker<P>::begin_parcel(ref r) noexcept {
  GODWIT_ASSERT(!idle_.is_idle(), "ID1: only a worker that counts as running has a thread");
  const auto& im = *here_.at<parcel_image>(r);
  base::happens_after(&im);
  data_part data;
  if (im.what.address != 0 && here_.hooks.may_begin != nullptr && !here_.hooks.may_begin(im.what, data)) {
    records_.free(r);
    return;
  }
  here_.acquire_writes();
  const std::uint64_t now = account_.traced() || account_.is_idle() ? base::fast_ns() : 0;
  account_.end_idle(now);
  if (account_.traced()) {
    account_.note(kind::start, now, im.what.record);
    account_.note_callers(now, {{im.what.spawned_at}});
  }
  std::uintptr_t end = here_.region_high;  // of the stack
  std::uintptr_t begin = end - 64;
  if constexpr (iso) {
    end = own_stacks_.take();
    if (end == 0) no_more_stacks();
    begin = end - 64;
  }
  if constexpr (stacks_stay) {
    begin = take_stack();
    end = here_.shape.stacks->end_of(begin);
    GODWIT_ASSERT(block_at(end)->suspended == nullptr && block_at(end)->number == 0,
                  "the block of a thread that begins is empty");
    block_at(end)->number = im.what.record;
  }
  enter_thread(end, end, im.what.record, im.takes);
  work_on(data);
  base::set_float_control(im.what.float_control);
  if constexpr (P::spans) strand_begins(im.span_ns);
  announce_stack(begin);
  detail::hot().in_runtime = 0;
  godwit_ctx_start(reinterpret_cast<void*>(begin), parcel_entry, reinterpret_cast<void*>(r));
  __builtin_unreachable();
}

/// On the thread's stack. The closure lies in the object until the entry has taken it out (parcel_taken).
template <class P>
void continuation_worker<P>::parcel_entry(void* arg) {
  auto* im = this_worker().here().at<parcel_image>(reinterpret_cast<ref>(arg));
  const parcel p = im->what;
  p.entry(im + 1, p.bytes, p.record);
  this_worker().end_of_root_thread();
}

/// Between processes: is there nothing in the running thread's stack, from @p frames on, that only this one
/// has, or, if it goes @p far, only this host?
template <class P>
bool continuation_worker<P>::may_leave(std::uintptr_t frames, bool far) noexcept {
  if (!here_.exceptions.state->empty()) return false;
  const spawn_slot& parent = detail::hot().bottom[-1];
  std::uintptr_t end = ancestors_.needed_end(parent, parent.sp, frames);
  if constexpr (iso) end = own_stacks_.top_of(frames);
  return !names(frames, end, own_heap_) && (!far || owns_nothing(frames, end));
}

template <class P>
bool continuation_worker<P>::migrate(worker_no to, bool exactly, std::uintptr_t frames,
                                     const detail::place& where) noexcept {
  if constexpr (lazy) find_spawns();
  if constexpr (!stacks_stay) {
    if (detail::hot().pending != nullptr)
      exposure_.encode_pending(here_.region_low, iso ? here_.region_high : detail::hot().bottom[-1].sp);
    if (!may_leave(frames, !here_.net.is_near(to))) {
      ++here_.words->stats.threads_kept;
      return false;
    }
  }
  leaving why{.where = &where, .sends = true, .to = to, .exactly = exactly};
  leave(why);
  return true;
}

/// How a running thread comes to another worker: as the location of its image or, from another host, with the
/// image, if that fits into the message.
struct migrant {
  ref thread;  ///< 0: it follows
  bool exactly;
};

/// PA1: whole, and this worker's now.
template <class P>
void continuation_worker<P>::migrant_arrives(const void* closure) {
  const auto& m = *static_cast<const migrant*>(closure);
  auto& w = static_cast<continuation_worker&>(this_worker());
  const unexposed inside;
  ref r = m.thread;
  if (r == 0) {
    alignas(image) std::byte head[sizeof(image)];
    std::memcpy(head, &m + 1, sizeof head);
    const auto& came = *reinterpret_cast<const image*>(head);
    const std::size_t bytes = came.bytes_end - came.low;
    auto* im = static_cast<image*>(w.heap_.allocate(object_kind::image, sizeof(image) + bytes));
    std::memcpy(reinterpret_cast<std::byte*>(im) + sizeof(object), head + sizeof(object),
                sizeof head - sizeof(object));
    im->float_control = came.float_control;  // of its head, of which the rest is the copy's own
    std::memcpy(im->bytes(), reinterpret_cast<const std::byte*>(&m + 1) + sizeof head, bytes);
    r = w.here_.ref_of(im);
  } else if (!w.here_.is_near(r)) {
    r = w.records_.make_near(r, true);
  }
  w.take_in(w.here_.template at<image>(r), r, m.exactly);
}

/// Step 3 of who goes to another worker: from here on it is that one's. PA1
template <class P>
void continuation_worker<P>::send_away(image* im, const leaving& why, bool parent_here) noexcept {
  im->bound = true;
  im->data = {};
  if (!here_.net.is_near(why.to)) im->takes.scope = taken_along(*here_.memory, im->takes.scope);
  migrant m{here_.ref_of_image(im), why.exactly};
  ++here_.words->stats.threads_left;
  if (!parent_here && !here_.net.is_near(why.to)) idle_.thread_left();
  const auto head = std::as_bytes(std::span(&m, 1));
  const std::size_t bytes = sizeof(image) + (im->bytes_end - im->low);
  if (!own_stack && !here_.net.is_near(why.to) && sizeof m + bytes <= mailbox::most_in_message) {
    m.thread = 0;
    send(why.to, 0, migrant_arrives, head, {reinterpret_cast<const std::byte*>(im), bytes});
    heap_.free(im);
  } else {
    send(why.to, 0, migrant_arrives, head, {});
  }
}

/// Gives back the state until then (JN1, JN2): a waiter is this worker's now. If it is of another host, @p
/// comes says whether its stack has come to its place; else it stays where it is, and only @p head has come.
template <class P>
std::uint64_t continuation_worker<P>::complete_record(ref r, image& head, bool& comes) noexcept {
  std::uint64_t state = state_none;
  const transport::far::entry* answer = nullptr;
  if (!stacks_stay && !here_.is_near(r) && here_.shape.steals_by_call) {
    answer = &records_.complete_far(r);
    state = answer->head.result;
  } else {
    state = records_.exchange_state(r, state_done);
  }
  GODWIT_ASSERT(state != state_done, "a record is completed once");
  if (!stacks_stay && is_image(state) && !here_.is_near(state))
    comes = bring_image(answer != nullptr ? *answer : records_.bring_waiter(state), head);
  return state;
}

/// A thread of another host that waited for what this worker has completed, which is this worker's now (JN3).
template <class P>
bool continuation_worker<P>::bring_image(const transport::far::entry& e, image& head) noexcept {
  GODWIT_ASSERT(e.head.info == sizeof head, "an image comes as a whole");
  std::memcpy(static_cast<void*>(&head), e.data, sizeof head);
  if (e.head.bytes == 0) return false;
  GODWIT_ASSERT(here_.is_stack(head.low, head.top, head.bytes_end), "a thread's stack lies where stacks lie");
  const std::size_t bytes = head.bytes_end - head.low;
  context::sanitizer_forget(head.low, head.bytes_end);
  uses_region(head.low);
  if (sizeof head + bytes <= transport::far::inline_bytes)
    std::memcpy(reinterpret_cast<void*>(head.low), e.data + sizeof head, bytes);
  else  // the companion put them where they belong
    here_.memory->bring_stacks(head.low, head.bytes_end);
  return true;
}

}  // namespace godwit::sched
