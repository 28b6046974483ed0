// Moving global memory: parts of an allocation that is movable (distribution::movable) go to another
// worker, and keep their address. Whoever uses them meanwhile waits a little, or is sent on; nothing else
// changes.
//
//   auto a = gw::allocate<double>(n, gw::distribution::blocked().movable(64 << 10));
//   gw::move(a, 1000, 3).join();   // the parts that hold a[0] ... a[999] are worker 3's now
//
// Source: Active global address space (network-managed), sections 4.2 and 5.1. docs/moving.md,
// docs/protocols/move.md. Tests: tests/global/move_test.cpp.
#pragma once

#include <godwit/future.hpp>
#include <godwit/global_ptr.hpp>
#include <godwit/global_span.hpp>

#include <cstdint>

namespace godwit {

/// Give all movable parts that hold objects [p, p + n) to worker @p to. The parts are moved whole, see
/// distribution::movable; they arrive one by one, and each can be used again as soon as it has arrived. In
/// which order moves of one part from several threads take effect is open. The move must have ended (join)
/// before the memory is freed. Throws std::invalid_argument if there is no such worker, if the memory is not
/// movable, or if the allocation ends before the range. A thread that holds a checkout must not move (it may
/// wait for itself): that ends the run with the place. Cost: to a worker of this host, done when it returns:
/// some ns for each part that this host has, for up to 64 others together four round trips and their bytes.
/// Else a message to worker @p to, which does it at its next spawn, or when it is idle.
template <class T>
future<move_result> move(global_ptr<T> p, std::uint64_t n, std::uint32_t to,
                         detail::place where = detail::place::here()) {
  return detail::future_access::of<move_result>(detail::global_move(p.address(), n * sizeof(T), to, where));
}
/// The part that holds *p.
template <class T>
future<move_result> move(global_ptr<T> p, std::uint32_t to, detail::place where = detail::place::here()) {
  return move(p, 1, to, where);
}
template <class T>
future<move_result> move(global_span<T> s, std::uint32_t to, detail::place where = detail::place::here()) {
  return move(s.data(), s.size(), to, where);
}

}  // namespace godwit
