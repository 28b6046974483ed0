// get, put, copy, gather, scatter, fence: global memory by value. For ranges see checkout.hpp and
// algorithm.hpp.
//
// Inside the host a get or put is a load or store. Elsewhere it is one round trip, unless a cached copy is at
// hand. They see and make seen what checkouts of the same thread do. Two threads that access the same bytes
// at once, one of them writing, race, as in C++; use atomics (global_atomic.hpp), joins or futures between
// them: docs/memory-model.md. Source: Active global address space. Tests: tests/global/access_test.cpp.
#pragma once

#include <godwit/future.hpp>
#include <godwit/global_ptr.hpp>

#include <cstddef>
#include <cstring>
#include <span>
#include <vector>

namespace godwit {

/// The object at @p p. Local in the host: some ns; else one round trip.
template <class T>
[[gnu::always_inline]] inline std::remove_cv_t<T> get(global_ptr<T> p) {
  return global_ref<T>(p).load();
}
/// @p n objects from @p p on, to @p to. One round trip per home that is not of this host.
template <class T>
[[gnu::always_inline]] inline void get(global_ptr<T> p, std::remove_cv_t<T>* to, std::size_t n) {
  detail::require_global_value<T>();
  if (detail::global_is_plain()) [[likely]]
    std::memcpy(static_cast<void*>(to), detail::global_raw<std::byte>(p.address()), n * sizeof(T));
  else
    detail::global_get(p.address(), to, n * sizeof(T));
}
/// Write @p v to @p p. It is there when put returns. Cost like get.
template <class T>
[[gnu::always_inline]] inline void put(global_ptr<T> p, const std::type_identity_t<T>& v) {
  global_ref<T>(p).store(v);
}
template <class T>
[[gnu::always_inline]] inline void put(global_ptr<T> p, const std::type_identity_t<T>* from, std::size_t n) {
  static_assert(!std::is_const_v<T>, "godwit: const elements of global memory are not written");
  detail::require_global_value<T>();
  if (detail::global_is_plain()) [[likely]]
    std::memcpy(detail::global_raw<std::byte>(p.address()), static_cast<const void*>(from), n * sizeof(T));
  else
    detail::global_put(p.address(), from, n * sizeof(T));
}

/// Copy @p n objects between places in global memory, which may overlap (like memmove). Through this host.
template <class T>
void copy_n(global_ptr<const std::type_identity_t<T>> from, std::uint64_t n, global_ptr<T> to) {
  static_assert(!std::is_const_v<T>, "godwit: const elements of global memory are not written");
  detail::require_global_value<T>();
  if (detail::global_is_plain())
    std::memmove(detail::global_raw<std::byte>(to.address()), detail::global_raw<std::byte>(from.address()),
                 n * sizeof(T));
  else
    detail::global_copy(to.address(), from.address(), n * sizeof(T));
}
/// The same in bytes. Regions may overlap.
inline void memcpy(global_ptr<void> to, global_ptr<const void> from, std::uint64_t bytes) {
  copy_n<std::byte>(global_ptr<const std::byte>(from.address()), bytes, global_ptr<std::byte>(to.address()));
}

/// Begin to read; go on with something else, join the future for the value. T must be at most 3,900 bytes.
/// Inside the host it is read at once.
template <class T>
future<std::remove_cv_t<T>> get_async(global_ptr<T> p) {
  using V = std::remove_cv_t<T>;
  detail::require_global_value<T>();
  static_assert(sizeof(T) <= 3900,
                "godwit::get_async: too large for one message: use get_async(p, n) or checkout");
  if (!detail::global_is_plain())
    return detail::future_access::of<V>(detail::global_get_begin(p.address(), sizeof(V)));
  future<V> f = detail::future_access::of<V>(detail::in_frame);
  std::memcpy(detail::future_access::room(f), detail::global_raw<std::byte>(p.address()), sizeof(V));
  return f;
}
/// Begin to write. The value is copied at once; joining the future waits until it is there.
template <class T>
future<void> put_async(global_ptr<T> p, const std::type_identity_t<T>& v) {
  static_assert(!std::is_const_v<T>, "godwit: const elements of global memory are not written");
  detail::require_global_value<T>();
  static_assert(sizeof(T) <= 3900, "godwit::put_async: too large for one message: use put or checkout");
  if (!detail::global_is_plain())
    return detail::future_access::of<void>(
        detail::global_put_begin(p.address(), std::addressof(v), sizeof(T)));
  put(p, v);
  return detail::future_access::of<void>(detail::in_frame);
}

/// to[i] = *from[i] for all i. Pieces of one host travel together: a message per 200 or so, not one each.
template <class T>
void gather(std::span<const global_ptr<T>> from, std::span<std::remove_cv_t<T>> to) {
  detail::require_global_value<T>();
  if (detail::global_is_plain()) {
    for (std::size_t i = 0; i < from.size(); ++i) to[i] = get(from[i]);
    return;
  }
  std::vector<detail::global_piece> pieces(from.size());
  for (std::size_t i = 0; i < from.size(); ++i) pieces[i] = {from[i].address(), sizeof(T), &to[i]};
  detail::global_gather(pieces.data(), pieces.size());
}
/// *to[i] = from[i] for all i; of several with the same place one wins. Cost like gather.
template <class T>
void scatter(std::span<const std::type_identity_t<T>> from, std::span<const global_ptr<T>> to) {
  static_assert(!std::is_const_v<T>, "godwit: const elements of global memory are not written");
  detail::require_global_value<T>();
  if (detail::global_is_plain()) {
    for (std::size_t i = 0; i < to.size(); ++i) put(to[i], from[i]);
    return;
  }
  std::vector<detail::global_piece> pieces(to.size());
  for (std::size_t i = 0; i < to.size(); ++i)
    pieces[i] = {to[i].address(), sizeof(T), const_cast<std::remove_cv_t<T>*>(&from[i])};
  detail::global_scatter(pieces.data(), pieces.size());
}

/// Everything the calling thread has written is at its home when this returns, and what it reads afterwards
/// is at least as new as now. Needed only with relaxed atomics: joins, futures and other atomics do it by
/// themselves.
inline void fence() noexcept {
  if constexpr (!detail::tells_of_fences)
    if (detail::global_is_plain()) return std::atomic_thread_fence(std::memory_order_seq_cst);
  detail::global_fence();
}

}  // namespace godwit
