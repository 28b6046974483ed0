// Memory that is only read from now on: copies of it on other hosts stay good until it is thawed.
//
//   gw::freeze(table);          // after the last write, before the threads that read are spawned
//   ...                         // checkouts fetch each 16 KiB once, whatever is joined or stolen meanwhile
//   gw::thaw(table);            // after the last read; then it may be written again
//
// Other memory is fetched again after every acquire (docs/memory-model.md, What it costs). Source: Active
// global address space, section 5.4: attributes of data, proposed there. docs/global-memory.md, Memory that
// is only read; docs/protocols/frozen.md. Tests: tests/global/freeze_test.cpp.
#pragma once

#include <godwit/global_ptr.hpp>
#include <godwit/global_span.hpp>

namespace godwit {

/// Nobody writes the allocation that *p lies in, all of it, until it is thawed. All writes happen before. A
/// write ends the run with the place, with several hosts and with check_global; else it goes unnoticed, as do
/// writes through pointers of try_local and in functions of on_rank.
/// Memory that is movable still moves, and deallocate thaws. False, and nothing happens, for memory that its
/// worker allocated for itself (distribution::local, at): copies of that are fetched again as ever. A thread
/// that holds a checkout must not call it: that ends the run with the place. Does not migrate. Cost: one
/// round trip, and one to each host; each host looks its allocations up again once. On one host two stores.
template <class T>
bool freeze(global_ptr<T> p, detail::place where = detail::place::here()) {
  return detail::global_freeze(p.address(), true, where);
}
template <class T>
bool freeze(global_span<T> s, detail::place where = detail::place::here()) {
  return freeze(s.data(), where);
}
/// It may be written again. All reads since freeze happen before writes, as ever; of memory that is not
/// frozen nothing happens. Cost as freeze, with two round trips to each host; copies of all frozen
/// memory are fetched once more.
template <class T>
void thaw(global_ptr<T> p, detail::place where = detail::place::here()) {
  detail::global_freeze(p.address(), false, where);
}
template <class T>
void thaw(global_span<T> s, detail::place where = detail::place::here()) {
  thaw(s.data(), where);
}

}  // namespace godwit
