// What is to be done with a part of movable memory when it has come to another worker: an index to be made
// anew, pointers to be set right, a count of arrivals.
//
//   gw::on_move(a, n, [](const gw::moved_part& part) { sort_rows(part.bytes); });
//
// Source: Active global address space (co-data actions, proposed there). docs/moving.md. Tests:
// tests/global/on_move_test.cpp.
#pragma once

#include <godwit/global_ptr.hpp>

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <new>
#include <span>

namespace godwit {

/// A part that has come.
struct moved_part {
  global_ptr<std::byte> begin;
  std::span<std::byte> bytes;  ///< of it, here
  std::uint32_t from;          ///< worker that had it; between hosts perhaps another one of its host
  std::uint32_t to;
};

namespace detail {

void global_on_move(global_address at, std::uint64_t bytes, const move_hook& hook, place where);

/// F for the parts that have bytes of [low, high).
template <class F>
struct ranged_hook {
  global_address low, high;
  F f;
  static void call(const void* closure, const arrived_part& p) noexcept {
    const auto& self = *static_cast<const ranged_hook*>(closure);
    if (p.at < self.high && self.low < p.at + p.bytes)
      self.f(moved_part{global_ptr<std::byte>(p.at), {p.data, p.bytes}, p.from, p.to});
  }
};

}  // namespace detail

/// Call `f(const moved_part&)` whenever a part that holds objects of [p, p + n) has been given to another
/// worker, by move, rebalance or option rebalance. Between hosts: by a worker of the host that it has come
/// to, before anybody can use it there, and before its home knows. Inside a host the bytes stay where they
/// are: then it is called when the owner has changed, and others may be using the part. f may read and change
/// `bytes`; it must not use global memory otherwise (it might wait for this very part). To spawn or wait ends
/// the run; so does an exception. f: plain bytes, at most 32 of them. One for an allocation: the last one
/// counts. Moves that begin after this returns see it; so no moves should be under way. Throws
/// std::invalid_argument as move. Collective in cost: one message per worker.
template <class T, class F>
void on_move(global_ptr<T> p, std::uint64_t n, F f, detail::place where = detail::place::here()) {
  using hook = detail::ranged_hook<F>;
  static_assert(plain<F>, "godwit::on_move: f must be plain bytes: it is copied to every host");
  static_assert(sizeof(hook) <= detail::move_hook::closure_bytes, "godwit::on_move: f is too large");
  detail::move_hook h{hook::call, {}};
  new (h.closure) hook{p.address(), p.address() + n * sizeof(T), f};
  detail::global_on_move(p.address(), n * sizeof(T), h, where);
}
/// Nothing is called any more.
template <class T>
void on_move(global_ptr<T> p, std::uint64_t n, std::nullptr_t, detail::place where = detail::place::here()) {
  detail::global_on_move(p.address(), n * sizeof(T), {}, where);
}

}  // namespace godwit
