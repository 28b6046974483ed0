// Threads and calls that go to data: what spawn_at.hpp and pin call. Joins the scheduler, which sends threads
// (sched/worker.hpp), with global memory, which knows where they are to go (gas/access.hpp): neither knows
// the other. docs/protocols/parcels.md (PA). Tests: tests/global/spawn_at_test.cpp.
#include "runtime/global.hpp"

#include <godwit/spawn_at.hpp>

#include <cstring>
#include <span>
#include <stdexcept>
#include <string>

#include "base/code_place.hpp"
#include "base/thread_sanitizer.hpp"
#include "base/world.hpp"
#include "context/context.hpp"
#include "runtime/references.hpp"

namespace godwit {

namespace {

using detail::hot;
using gas::standing;
using sched::data_part;
using sched::parcel;
using sched::this_worker;
using transport::worker_no;

gas::memory& memory_of(const char* what) {
  auto* memory = static_cast<gas::memory*>(hot().memory);
  if (memory == nullptr) [[unlikely]]
    base::fatal("%s was called outside godwit::run: call it from the root thread that run starts", what);
  return *memory;
}
void need_no_checkout(const char* doing, const detail::place& where) {
  if (hot().checkouts != 0) detail::checkout_held(doing, where.file, where.line);
}
worker_no checked(std::uint32_t worker, const char* what) {
  if (worker >= detail::hot_workers())
    throw std::invalid_argument("godwit: " + std::string(what) + ": there is no worker " +
                                std::to_string(worker) + ": the run has " +
                                std::to_string(detail::hot_workers()));
  return worker_no{worker};
}

/// What goes to memory: where to next, and what it has learned on its way.
struct itinerary {
  detail::global_address address;
  std::uint64_t owner = 0;
  std::uint32_t redirects = 0;

  /// Here: what of it is. Else the worker to send it to, which may be this one: again, a little later. PA4
  bool is_here(worker_no& next, data_part& data) {
    const standing s = memory_of("spawn_at").access.where_is(address, owner, redirects == 1);  // MV9
    if (s.what == standing::here) {
      data = {s.part, s.part_bytes};
      return true;
    }
    owner = s.owner;
    next = s.what == standing::soon ? this_worker().here().me : worker_no{s.worker};
    if (s.what == standing::elsewhere)
      ++redirects;
    else
      detail::global_pause();
    return false;
  }
};

/// @p what, with the closure that belongs to it.
template <class T>
void forward(worker_no to, const T& what, const void* closure, std::size_t bytes,
             void (*deliver)(const void*)) noexcept {
  sched::worker& w = this_worker();
  if (to != w.here().me) ++w.here().words->stats.threads_sent_on;
  w.send(to, 0, deliver, std::as_bytes(std::span(&what, 1)), {static_cast<const std::byte*>(closure), bytes});
}

/// PA3. @p p lies in a letter or behind an image; the closure behind it.
bool may_begin(const parcel& p, data_part& data, void (*deliver)(const void*)) noexcept {
  itinerary way{p.address, p.owner, p.redirects};
  worker_no next{};
  if (way.is_here(next, data)) return true;
  parcel on = p;
  on.owner = way.owner;
  on.redirects = way.redirects;
  on.object = 0;
  forward(next, on, p.closure(), p.bytes, deliver);
  return false;
}
/// PA2: on to somebody else, or to arrive, once.
void deliver_parcel(const void* closure) {
  const auto& p = *static_cast<const parcel*>(closure);
  data_part data;
  if (p.address == 0 || may_begin(p, data, deliver_parcel)) this_worker().arrive(p, data);
}
/// Parcels that another host gave away, each in whole lines. PA5: they are nobody else's until their part has
/// come, or has not; it is in use then, so nobody takes them back before one has begun.
bool take_in(const data_part& data, std::span<const sched::closure_line> parcels) noexcept {
  constexpr std::uint64_t patience_ns = 1'000'000;  // as of other moves that nobody has asked for
  sched::worker& w = this_worker();
  const gas::byte_range part{data.at, data.bytes};
  const move_result came =
      memory_of("rebalance").mover.pull({&part, 1}, transport::index(w.here().me), patience_ns);
  const bool is_here = came == move_result::moved || came == move_result::already_there;
  if (is_here) w.work_on(data);
  for (std::size_t i = 0; i < parcels.size();) {
    const auto& p = *reinterpret_cast<const parcel*>(&parcels[i]);
    deliver_parcel(&p);
    i += p.all_bytes() / sizeof(sched::closure_line);
    if (is_here) ++w.here().words->stats.threads_fetched;
  }
  return is_here;
}

/// A call that visits memory, in its letter; the closure behind it.
struct alignas(64) visit {
  detail::visit_entry* entry;
  detail::ref record;
  itinerary way;
  std::uint64_t bytes;
  std::uint64_t closure_bytes;
  std::uint64_t divided_since_ns;  ///< at this worker: it has some of the bytes, others have the rest. 0: not
  detail::access_mode mode;
  detail::place where;  ///< of the call, for messages: the same in all processes
};
void deliver_visit(const void* closure);

/// True: it is done, and its record to be completed.
bool carry_out(const visit& v, const void* closure) {
  gas::memory& m = memory_of("with");
  visit on = v;
  worker_no next{};
  data_part data;
  if (on.way.is_here(next, data)) {
    standing not_here;
    const detail::opened got = m.access.pin(on.way.address, v.bytes, v.mode, v.where, not_here);
    if (got.data != nullptr) {
      // A spawn would be seen only when something leaves: let it be looked for.
      hot().poll.store(1, std::memory_order_relaxed);
      v.entry(got.data, closure, v.record);
      m.access.checkin(got.ticket, v.bytes, v.mode);
      return true;
    }
    if (not_here.what == standing::elsewhere) {
      // They may just be on their way, together but not at once.
      constexpr std::uint64_t patience_ns = 1'000'000'000;
      const std::uint64_t now = base::now_ns();
      if (on.divided_since_ns == 0) on.divided_since_ns = now;
      worker_no other{};
      if (now - on.divided_since_ns > patience_ns && itinerary{on.way.address, 0, 0}.is_here(other, data)) {
        detail::run_into<void>(v.record, [&] {
          throw std::invalid_argument("godwit: with: " + std::to_string(v.bytes) +
                                      " bytes that several hosts own: move them together, or take less");
        });
        return true;
      }
    }
    next = this_worker().here().me;
    detail::global_pause();
  } else {
    on.divided_since_ns = 0;
  }
  forward(next, on, closure, v.closure_bytes, deliver_visit);
  return false;
}
void deliver_visit(const void* closure) {
  const auto& v = *static_cast<const visit*>(closure);
  if (carry_out(v, &v + 1)) this_worker().finish(v.record);
}

/// Where stacks move, the closure goes, and the frames that it may refer to stay.
void refuse_references(const void* in, std::size_t bytes, std::uintptr_t from) {
  if (runtime::refers_to_stack(in, bytes)) runtime::end_for_reference("spawn_at", base::code_place(from));
}

}  // namespace

namespace runtime {
void hook_parcels(sched::worker_hooks& hooks) noexcept {
  hooks.may_begin = [](const parcel& p, data_part& data) noexcept {
    return may_begin(p, data, deliver_parcel);
  };
  hooks.take_in = take_in;
}
}  // namespace runtime

namespace detail {

ref send_thread(task_entry* entry, const task_bytes& closure, const destination& to, place where) {
  gas::memory& m = memory_of("spawn_at");
  need_no_checkout("spawn_at", where);
  throw_cancelled();
  const auto from = reinterpret_cast<std::uintptr_t>(__builtin_return_address(0));
  refuse_references(closure.data, closure.size, from);
  refuse_references(closure.boxed, closure.boxed_size, from);
  parcel p{};
  p.entry = entry;
  p.bytes = closure.size;
  p.address = to.address;
  p.spawned_at = from;
  const worker_no next =
      to.address != 0 ? worker_no{m.access.likely_owner(to.address)} : checked(to.worker, "spawn_at");
  if (closure.stays != nullptr && !one_heap() && !m.net.is_near(transport::index(next)))
    codec_missing(closure.stays);
  return this_worker().send_thread(next, p, static_cast<const std::byte*>(closure.data), deliver_parcel);
}
bool lies_on_this_host(global_address at) noexcept {
  gas::memory& m = memory_of("spawn near data");
  return at == 0 || this_worker().here().one_host() || m.net.is_near(m.access.likely_owner(at));
}
void parcel_taken(const void* closure) noexcept {
  if (const ref held = (static_cast<const parcel*>(closure) - 1)->object; held != 0) {
    const base::unexposed inside;
    base::happens_before(this_worker().here().at<sched::object>(held));
    this_worker().records().free(held);
  }
}

ref send_visit(visit_entry* entry, const void* closure, std::size_t closure_bytes, global_address at,
               std::uint64_t bytes, access_mode mode, place where) {
  gas::memory& m = memory_of("with");
  need_no_checkout("with", where);
  const visit v{entry, this_worker().records().make(), {at}, bytes, closure_bytes, 0, mode, where};
  const worker_no next{m.access.likely_owner(at)};
  if (m.net.is_near(transport::index(next))) {
    if (carry_out(v, closure)) this_worker().finish(v.record);
  } else {
    this_worker().send(next, 0, deliver_visit, std::as_bytes(std::span(&v, 1)),
                       {static_cast<const std::byte*>(closure), closure_bytes});
  }
  return v.record;
}

namespace {
/// In a frame of its own, below the one where the caller's registers have been saved.
[[gnu::noinline]] bool leave_from_here(const destination& to, const place& where) {
  const auto frames = reinterpret_cast<std::uintptr_t>(__builtin_dwarf_cfa());
  memory_of("migrate_to or go_to");
  need_no_checkout(to.address != 0 ? "go_to" : "migrate_to", where);
  if (to.address == 0) {
    const worker_no next = checked(to.worker, "migrate_to");
    return next == this_worker().here().me || this_worker().migrate(next, true, frames, where);
  }
  itinerary way{to.address};
  data_part data;
  for (worker_no next{}; !way.is_here(next, data);) {
    if (next == this_worker().here().me)
      this_worker().yield_thread();  // it is about to come here
    else if (!this_worker().migrate(next, false, frames, where))
      return false;
  }
  this_worker().work_on(data);
  return true;
}
}  // namespace

bool leave_for(const destination& to, const place& where) {
  context::flush_windows();
  __builtin_unwind_init();  // what callers have in registers lies on the stack now
  const bool left = leave_from_here(to, where);
  asm volatile("");  // a call that is the last act would give up this frame before
  return left;
}

void forget_below() noexcept {
  std::byte room[512] = {};
  asm volatile("" ::"r"(room) : "memory");
}

opened global_pin(global_address at, std::uint64_t bytes, access_mode mode, bool wait, place where) {
  gas::memory& m = memory_of("pin");
  m.before_access(at);
  for (gas::later more(m.net);; more.wait()) {
    standing not_here;
    const opened got = m.access.pin(at, bytes, mode, where, not_here);
    if (got.data != nullptr || !wait) return got;
    if (not_here.what == standing::elsewhere)
      throw std::runtime_error(
          "godwit: pin of " + std::to_string(bytes) + " bytes at " + where.file + ":" +
          std::to_string(where.line) + ": worker " + std::to_string(not_here.worker) +
          " of another host has them: go there (go_to), move them here, or use checkout");
  }
}

}  // namespace detail
}  // namespace godwit
