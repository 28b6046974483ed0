// gw::reducer: one value that threads update without waiting for each other, and that is the same on every
// schedule.
//
//   gw::reducer<std::string, gw::op::append> text;
//   gw::invoke([&] { *text += "first, "; }, [&] { *text += "then"; });
//   text.get();   // "first, then", whoever ran what
//
// Each piece of the serial order that one worker executes has a view of its own (docs/protocols/segments.md).
// get() merges them in the order in which a serial execution would have updated. docs/reducers.md.
// Tests: tests/api/reducer_test.cpp. Example: examples/word_count.cpp. Source: Frigo et al., Reducers
// and other Cilk++ hyperobjects.
#pragma once

#include <godwit/codec.hpp>
#include <godwit/detail/segment.hpp>
#include <godwit/exact_sum.hpp>

#include <algorithm>
#include <array>
#include <concepts>
#include <limits>
#include <optional>
#include <typeinfo>
#include <utility>

namespace godwit {

/// Operations of reducers: associative, with an identity. One of your own is a type with
///     static T identity();
///     static void reduce(T& left, T&& right);   // left becomes left op right; right may be moved from
/// or with templates of these names, for every T that it can do. Neither may spawn, join or wait, and reduce
/// must not throw.
namespace op {

/// +. Sums of float and double are exact and rounded once (exact_sum), or schedules would change them.
struct sum {
  template <class T>
  using view = std::conditional_t<std::same_as<T, float> || std::same_as<T, double>, exact_sum, T>;
  template <class T>
  static T identity() {
    static_assert(!std::same_as<T, long double>, "godwit::op::sum: no long double: its sum would be rounded");
    return T{};
  }
  template <class T>
  static void reduce(T& left, T&& right) {
    left += std::move(right);
  }
};
struct min {
  template <class T>
  static T identity() {
    using limits = std::numeric_limits<T>;
    return limits::has_infinity ? limits::infinity() : limits::max();
  }
  template <class T>
  static void reduce(T& left, T&& right) {
    left = std::min(left, right);
  }
};
struct max {
  template <class T>
  static T identity() {
    using limits = std::numeric_limits<T>;
    return limits::has_infinity ? -limits::infinity() : limits::lowest();
  }
  template <class T>
  static void reduce(T& left, T&& right) {
    left = std::max(left, right);
  }
};
struct bit_and {
  template <std::integral T>
  static T identity() {
    return static_cast<T>(~T{});
  }
  template <std::integral T>
  static void reduce(T& left, T&& right) {
    left = static_cast<T>(left & right);
  }
};
struct bit_or {
  template <std::integral T>
  static T identity() {
    return T{};
  }
  template <std::integral T>
  static void reduce(T& left, T&& right) {
    left = static_cast<T>(left | right);
  }
};
struct logical_and {
  static bool identity() { return true; }
  static void reduce(bool& left, bool&& right) { left = left && right; }
};
struct logical_or {
  static bool identity() { return false; }
  static void reduce(bool& left, bool&& right) { left = left || right; }
};
/// The elements of the left, then those of the right: std::vector, std::string, std::deque...
struct append {
  template <class T>
  static T identity() {
    return T{};
  }
  template <class T>
  static void reduce(T& left, T&& right) {
    if (left.empty())
      left = std::move(right);
    else
      left.insert(left.end(), std::make_move_iterator(right.begin()), std::make_move_iterator(right.end()));
  }
};
/// Element by element, by @p Op: std::array.
template <class Op>
struct each {
  template <class T>
  static T identity() {
    T all{};
    all.fill(Op::template identity<typename T::value_type>());
    return all;
  }
  template <class T>
  static void reduce(T& left, T&& right) {
    for (std::size_t i = 0; i < left.size(); ++i) Op::reduce(left[i], std::move(right[i]));
  }
};
/// Counts by kind: std::array of numbers.
using histogram = each<sum>;
/// Maps: values of the same key by @p Op.
template <class Op>
struct merge {
  template <class T>
  static T identity() {
    return T{};
  }
  template <class T>
  static void reduce(T& left, T&& right) {
    if (left.empty()) return static_cast<void>(left = std::move(right));
    for (auto& [key, value] : right) {
      const auto [place, is_new] = left.try_emplace(key, std::move(value));
      if (!is_new) Op::reduce(place->second, std::move(value));
    }
  }
};
/// Of std::optional: the first in serial order. Many updates share one view: `if (!*r) *r = x`.
struct first {
  template <class T>
  static T identity() {
    return T{};
  }
  template <class T>
  static void reduce(T& left, T&& right) {
    if (!left) left = std::move(right);
  }
};

}  // namespace op

namespace detail {

/// The reduce of a reducer threw: ends the run.
[[noreturn, gnu::cold]] void reduce_failed(const char* type) noexcept;

template <class T, class Op>
struct view_of_op {
  using type = T;
};
template <class T, class Op>
requires(requires { typename Op::template view<T>; }) struct view_of_op<T, Op> {
  using type = typename Op::template view<T>;
};

template <class V, class Op>
V identity_of() {
  if constexpr (requires { Op::template identity<V>(); })
    return Op::template identity<V>();
  else
    return Op::identity();
}

template <class V, class Op>
struct views {
  static constexpr bool in_view = plain<V> && std::is_trivially_copyable_v<V>;
  static_assert(alignof(V) <= 64, "godwit::reducer: values are aligned to 64 bytes at most");

  static V& at(void* value) noexcept { return *static_cast<V*>(value); }
  static void* make(void* room) {
    if constexpr (in_view)
      return new (room) V(identity_of<V, Op>());
    else
      return new V(identity_of<V, Op>());
  }
  static void merge(void* left, void* right) noexcept {
    quietly([&] { Op::reduce(at(left), std::move(at(right))); });
  }
  static void move(void* to, void* from) noexcept {
    quietly([&] { at(to) = std::move(at(from)); });
  }
  static void reset(void* value) noexcept {
    quietly([&] { at(value) = identity_of<V, Op>(); });
  }
  static void destroy(void* value) noexcept {
    if constexpr (!in_view) delete &at(value);
  }
  static void write(writer& w, const void* value) { w.put(*static_cast<const V*>(value)); }
  static void read(reader& r, void* value) { at(value) = r.get<V>(); }
  template <class F>
  static void quietly(F&& f) noexcept {
    try {
      f();
    } catch (...) {
      reduce_failed(typeid(Op).name());
    }
  }
  static const char* name() noexcept { return typeid(V).name(); }
  static constexpr view_type make_type() noexcept {
    view_type t{in_view ? sizeof(V) : 0, make, merge, move, reset, destroy, nullptr, nullptr, name};
    if constexpr (encodable<V>) {
      t.write = write;
      t.read = read;
    }
    return t;
  }
  static constexpr view_type type = make_type();
};

}  // namespace detail

/// A value that starts as the identity of @p Op, that any threads update, and that is the same on every
/// schedule if Op is associative. A local variable, a member, a global variable, an object of the heap,
/// in a gw::shared_global. Threads reach it by reference. Its bytes do not change, so a reference also serves
/// threads on other hosts; values go from host to host by codec.
///
/// Make it before the threads are spawned that use it, or before run. Threads that knew it in another way
/// (through memory) and that were spawned before the first reducer was made are ordered as they come to it.
///
/// Workers of one host need a heap in common for values that are not plain bytes (docs/heap.md); else the
/// first update ends the run with a message.
template <class T, class Op = op::sum>
class reducer {
  using view_value = typename detail::view_of_op<T, Op>::type;
  using views = detail::views<view_value, Op>;

 public:
  using value_type = T;

  /// Local; cost: some 20 ns. In a thread or in main.
  reducer() : number_(detail::begin_reducer()) {}
  /// What has not been taken is destroyed. No thread may use it any more.
  ~reducer() { detail::end_reducer(number_); }
  reducer(const reducer&) = delete;
  reducer& operator=(const reducer&) = delete;

  /// The calling thread's view, to be updated: it is a part of the value. Of floating-point sums: exact_sum.
  /// The reference is valid until the thread spawns, joins, yields or waits. Throws what identity throws;
  /// ends the process outside of a run. Cost: 1 to 2 ns; some 100 where the thread has not used it since
  /// it or its parent moved.
  [[gnu::always_inline]] view_value& view() const {
    return *static_cast<view_value*>(detail::view_of(number_, views::type));
  }
  [[gnu::always_inline]] view_value& operator*() const { return view(); }
  [[gnu::always_inline]] view_value* operator->() const { return &view(); }

  /// The value: all updates, in serial order. In a thread, when all threads that update it have been joined;
  /// otherwise that of one that still runs may be lost or torn, as in any data race. It can be updated and
  /// asked again, by one thread at a time. Throws what a codec throws, and keeps all then. Cost: by the
  /// number of views, one per piece that has not been merged yet; on several hosts a thread on each of them,
  /// for which the caller waits and may migrate.
  T get() const { return result(merged()); }
  /// The same, and then the value is the identity.
  T take() {
    view_value& v = merged();
    T all = result(std::move(v));
    views::reset(&v);
    return all;
  }

 private:
  view_value& merged() const { return *static_cast<view_value*>(detail::merge_views(number_, views::type)); }
  template <class V>
  static T result(V&& v) {
    if constexpr (std::same_as<view_value, T>)
      return std::forward<V>(v);
    else
      return v.template value<T>();
  }

  const std::uint64_t number_;
};

}  // namespace godwit
