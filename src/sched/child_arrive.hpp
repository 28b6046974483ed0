// Members of child_worker: threads that were sent here. They begin at this very worker, before its own tasks.
// docs/protocols/parcels.md (PA). A header, though nobody else includes it: members of a template, which
// child.cpp instantiates.
#pragma once

#include "sched/child.hpp"

#include <cstddef>
#include <cstring>
#include <vector>

namespace godwit::sched {

namespace {
/// A task that holds a parcel: its own record is nobody's.
void run_parcel(void* held, std::size_t, ref) {
  auto& p = *static_cast<parcel*>(held);
  p.entry(&p + 1, p.bytes, p.record);
  this_worker().finish(p.record);
}
}  // namespace

template <class P>
void child_worker<P>::arrive(const parcel& p, const data_part&) noexcept {
  auto* t = static_cast<task*>(heap_.allocate(object_kind::record, sizeof(task) + sizeof p + p.bytes));
  clear_record(t);
  t->state.store(state_detached, std::memory_order_relaxed);
  t->float_control = p.float_control;
  t->entry = run_parcel;
  t->closure_bytes = sizeof p + p.bytes;
  t->spawned_at = p.spawned_at;
  put_carried(*t, {p.scope, p.segment});
  t->refers_to_stacks = false;
  base::happens_after(t);  // of whoever was there before
  std::memcpy(t->closure(), &p, sizeof p);
  std::memcpy(t->closure() + sizeof p, p.closure(), p.bytes);
  base::happens_before(t);
  arrivals_.push_back(here_.ref_of(t));
}

/// PA3: while it waited, what it was sent to may have left. False: it has been sent on.
template <class P>
bool child_worker<P>::begins_here(ref r) const noexcept {
  task& t = *here_.template at<task>(r);
  std::uint64_t address;
  std::memcpy(&address, t.closure() + offsetof(parcel, address), sizeof address);
  if (address == 0 || here_.hooks.may_begin == nullptr) return true;
  std::vector<closure_line> bytes(t.closure_bytes / sizeof(closure_line) + 1);  // aligned as parcels are
  std::memcpy(bytes.data(), t.closure(), t.closure_bytes);
  data_part data;
  return here_.hooks.may_begin(*reinterpret_cast<const parcel*>(bytes.data()), data);
}

/// The next task that nobody else begins, or the newest of the own deque, or 0.
template <class P>
ref child_worker<P>::pop_here() noexcept {
  while (!arrivals_.empty()) {
    const ref r = arrivals_.front();
    arrivals_.pop_front();
    if (begins_here(r)) return r;
    records_.free(r);
  }
  return pop_own();
}

}  // namespace godwit::sched
