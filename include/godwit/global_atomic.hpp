// Atomics on words of global memory: 4 and 8 bytes, carried out at the word's home by a CPU there.
//
// Without an order they synchronise like sequentially consistent C++ atomics: what a thread did before it
// wrote is seen by who read that value. With std::memory_order_relaxed they are only atomic (and cheaper
// across hosts: nothing is written back or invalidated). Do not mix with plain accesses to the same word at
// the same time. Source: Active global address space. Cost: inside the host one CPU atomic, else one
// round trip. Tests: tests/global/atomic_test.cpp.
#pragma once

#include <godwit/global_ptr.hpp>

#include <atomic>
#include <bit>
#include <concepts>
#include <cstdint>
#include <cstring>
#include <memory>
#include <type_traits>

namespace godwit {

namespace detail {
template <class T>
concept global_atomic_value = (sizeof(T) == 4 || sizeof(T) == 8) && std::is_trivially_copyable_v<T> &&
                              !std::is_const_v<T>;

template <class T>
using word_of = std::conditional_t<sizeof(T) == 4, std::uint32_t, std::uint64_t>;
template <class T>
word_of<T> to_word(const T& v) noexcept {
  word_of<T> w;
  std::memcpy(&w, std::addressof(v), sizeof w);  // all bytes, also those between members
  return w;
}
/// @p w: of 4 bytes the lower half counts, also where the first byte is the highest.
template <class T>
T from_word(std::uint64_t w) noexcept {
  return std::bit_cast<T>(static_cast<word_of<T>>(w));
}
template <class T>
[[gnu::always_inline]] inline std::atomic_ref<word_of<T>> plain_word(global_ptr<T> p) noexcept {
  return std::atomic_ref<word_of<T>>(*global_raw<word_of<T>>(p.address()));
}
template <class T>
std::uint64_t far_atomic(atomic_op what, global_ptr<T> p, const T& v, const T& expected,
                         std::memory_order o) {
  return global_atomic(what, p.address(), sizeof(T), to_word(v), to_word(expected),
                       o == std::memory_order_relaxed);
}
}  // namespace detail

template <detail::global_atomic_value T>
T atomic_load(global_ptr<T> p, std::memory_order o = std::memory_order_seq_cst) {
  if (detail::global_is_plain()) [[likely]]
    return detail::from_word<T>(detail::plain_word(p).load(o));
  return detail::from_word<T>(detail::far_atomic(detail::atomic_op::load, p, T{}, T{}, o));
}
template <detail::global_atomic_value T>
void atomic_store(global_ptr<T> p, std::type_identity_t<T> v,
                  std::memory_order o = std::memory_order_seq_cst) {
  if (detail::global_is_plain()) [[likely]]
    detail::plain_word(p).store(detail::to_word(v), o);
  else
    detail::far_atomic(detail::atomic_op::store, p, v, T{}, o);
}
template <detail::global_atomic_value T>
T atomic_exchange(global_ptr<T> p, std::type_identity_t<T> v,
                  std::memory_order o = std::memory_order_seq_cst) {
  if (detail::global_is_plain()) [[likely]]
    return detail::from_word<T>(detail::plain_word(p).exchange(detail::to_word(v), o));
  return detail::from_word<T>(detail::far_atomic(detail::atomic_op::exchange, p, v, T{}, o));
}
/// True: it was @p expected and is @p v now. Else @p expected becomes what it is. Compares bytes.
template <detail::global_atomic_value T>
bool atomic_compare_exchange(global_ptr<T> p, std::type_identity_t<T>& expected, std::type_identity_t<T> v,
                             std::memory_order o = std::memory_order_seq_cst) {
  if (detail::global_is_plain()) [[likely]] {
    auto e = detail::to_word(expected);
    const bool done = detail::plain_word(p).compare_exchange_strong(e, detail::to_word(v), o);
    if (!done) expected = detail::from_word<T>(e);
    return done;
  }
  const T before =
      detail::from_word<T>(detail::far_atomic(detail::atomic_op::compare_exchange, p, v, expected, o));
  const bool done = detail::to_word(before) == detail::to_word(expected);
  if (!done) expected = before;
  return done;
}

template <detail::global_atomic_value T>
requires std::integral<T> T atomic_fetch_add(global_ptr<T> p, std::type_identity_t<T> v,
                                             std::memory_order o = std::memory_order_seq_cst) {
  if (detail::global_is_plain()) [[likely]]
    return static_cast<T>(detail::plain_word(p).fetch_add(static_cast<detail::word_of<T>>(v), o));
  return detail::from_word<T>(detail::far_atomic(detail::atomic_op::fetch_add, p, v, T{}, o));
}
template <detail::global_atomic_value T>
requires std::integral<T> T atomic_fetch_sub(global_ptr<T> p, std::type_identity_t<T> v,
                                             std::memory_order o = std::memory_order_seq_cst) {
  return atomic_fetch_add(
      p, static_cast<T>(std::make_unsigned_t<T>(0) - static_cast<std::make_unsigned_t<T>>(v)), o);
}
template <detail::global_atomic_value T>
requires std::integral<T> T atomic_fetch_and(global_ptr<T> p, std::type_identity_t<T> v,
                                             std::memory_order o = std::memory_order_seq_cst) {
  if (detail::global_is_plain()) [[likely]]
    return static_cast<T>(detail::plain_word(p).fetch_and(static_cast<detail::word_of<T>>(v), o));
  return detail::from_word<T>(detail::far_atomic(detail::atomic_op::fetch_and, p, v, T{}, o));
}
template <detail::global_atomic_value T>
requires std::integral<T> T atomic_fetch_or(global_ptr<T> p, std::type_identity_t<T> v,
                                            std::memory_order o = std::memory_order_seq_cst) {
  if (detail::global_is_plain()) [[likely]]
    return static_cast<T>(detail::plain_word(p).fetch_or(static_cast<detail::word_of<T>>(v), o));
  return detail::from_word<T>(detail::far_atomic(detail::atomic_op::fetch_or, p, v, T{}, o));
}
template <detail::global_atomic_value T>
requires std::integral<T> T atomic_fetch_xor(global_ptr<T> p, std::type_identity_t<T> v,
                                             std::memory_order o = std::memory_order_seq_cst) {
  if (detail::global_is_plain()) [[likely]]
    return static_cast<T>(detail::plain_word(p).fetch_xor(static_cast<detail::word_of<T>>(v), o));
  return detail::from_word<T>(detail::far_atomic(detail::atomic_op::fetch_xor, p, v, T{}, o));
}

namespace detail {
template <class T, class Better>
T plain_extreme(global_ptr<T> p, T v, std::memory_order o, Better better) {
  const bool by_fence = !tells_of_fences && o != std::memory_order_relaxed;  // where the word stays as it is
  const auto reads =
      by_fence || o == std::memory_order_relaxed ? std::memory_order_relaxed : std::memory_order_seq_cst;
  auto word = plain_word(p);
  auto now = word.load(reads);
  while (better(v, from_word<T>(now)) && !word.compare_exchange_weak(now, to_word(v), o, reads)) {
  }
  if constexpr (!tells_of_fences)
    if (by_fence) std::atomic_thread_fence(std::memory_order_seq_cst);
  return from_word<T>(now);
}
}  // namespace detail

/// The word becomes the smaller of itself and @p v; gives back what it was.
template <detail::global_atomic_value T>
requires std::integral<T> T atomic_fetch_min(global_ptr<T> p, std::type_identity_t<T> v,
                                             std::memory_order o = std::memory_order_seq_cst) {
  if (detail::global_is_plain()) [[likely]]
    return detail::plain_extreme(p, v, o, std::less<T>());
  constexpr auto op =
      std::is_signed_v<T> ? detail::atomic_op::fetch_min_signed : detail::atomic_op::fetch_min_unsigned;
  return detail::from_word<T>(detail::far_atomic(op, p, v, T{}, o));
}
template <detail::global_atomic_value T>
requires std::integral<T> T atomic_fetch_max(global_ptr<T> p, std::type_identity_t<T> v,
                                             std::memory_order o = std::memory_order_seq_cst) {
  if (detail::global_is_plain()) [[likely]]
    return detail::plain_extreme(p, v, o, std::greater<T>());
  constexpr auto op =
      std::is_signed_v<T> ? detail::atomic_op::fetch_max_signed : detail::atomic_op::fetch_max_unsigned;
  return detail::from_word<T>(detail::far_atomic(op, p, v, T{}, o));
}

}  // namespace godwit
