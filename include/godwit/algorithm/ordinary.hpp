// The parallel algorithms on ordinary memory: std::vector, std::array, std::span, C arrays, iterators, views.
// They work where all workers of the run see the memory; elsewhere they end the run with a sentence that says
// where, why, and what to do (src/runtime/ordinary.cpp). docs/algorithms.md.
// Tests: tests/algorithm/ordinary_test.cpp, tests/compile_fail/ordinary_*.cpp.
//
// Contiguous memory becomes a global_span, whose address lies behind the end of global memory. Other ranges
// with random access become indices: their functions look the elements up. Places in results become iterators
// again.
#pragma once

#include <godwit/algorithm/for_each.hpp>
#include <godwit/algorithm/partition.hpp>
#include <godwit/algorithm/reduce.hpp>
#include <godwit/algorithm/scan.hpp>
#include <godwit/algorithm/search.hpp>
#include <godwit/algorithm/shuffle.hpp>
#include <godwit/algorithm/sort.hpp>

#include <cstddef>
#include <functional>
#include <iterator>
#include <memory>
#include <ranges>
#include <type_traits>
#include <utility>

namespace godwit {

namespace detail {

template <class R>
concept ordinary_range = !input_range<R> && std::ranges::range<R>;
template <class I>
concept ordinary_iterator = !is_global_ptr<I> && std::input_or_output_iterator<I>;
/// Where results go, or a second input begins.
template <class A>
concept ordinary_place = ordinary_range<A> || ordinary_iterator<std::decay_t<A>>;
template <class A>
concept any_place = ordinary_place<A> || input_range<A> || output_place<A>;
template <class... A>
concept some_ordinary = (ordinary_place<A> || ...);

/// Two iterators as a range. (std::ranges::subrange is too much for clang 14.)
template <class I>
struct pair_range {
  I first, last;
  I begin() const { return first; }
  I end() const { return last; }
};

template <class A, bool IsRange = std::ranges::range<A>>
struct place_facts {  // of an iterator
  using element = std::remove_reference_t<std::iter_reference_t<std::decay_t<A>>>;
  static constexpr bool is_contiguous = std::contiguous_iterator<std::decay_t<A>>;
};
template <class A>
struct place_facts<A, true> {
  using element = std::remove_reference_t<std::ranges::range_reference_t<A>>;
  static constexpr bool is_contiguous = std::ranges::contiguous_range<A> && std::ranges::sized_range<A>;
};
template <class A>
using element_of = typename place_facts<A>::element;

/// It can be a global_span.
template <class A>
constexpr bool spans_memory = place_facts<A>::is_contiguous &&
                              (global_value<element_of<A>> || owning_element<element_of<A>>);

template <class A>
constexpr void require_span() {
  static_assert(place_facts<A>::is_contiguous,
                "godwit: this parallel algorithm needs elements that lie one behind the other in memory "
                "(std::vector, std::array, std::span, pointers): copy these into a std::vector, or call the "
                "std:: algorithm");
  static_assert(
      !place_facts<A>::is_contiguous || spans_memory<A>,
      "godwit: this parallel algorithm moves elements as bytes, and these are not trivially copyable "
      "(std::string, std::vector...): let it work on indices or pointers, or call the std:: algorithm");
}

template <bool Writes, class T>
[[gnu::always_inline]] inline global_ptr<T> ordinary_ptr(T* p) noexcept {
  return global_ptr<T>(p == nullptr ? 0 : ordinary_address(p, Writes));
}

/// A range as one of global memory.
template <bool Writes, class R>
[[gnu::always_inline]] inline auto as_global(R&& r) {
  if constexpr (ordinary_range<R> && !spans_memory<R>) {
    require_span<R>();
    return global_span<char>();  // so that the sentence is all there is to read
  } else if constexpr (ordinary_range<R>) {
    const auto n = static_cast<std::uint64_t>(std::ranges::size(r));
    auto* const data = std::ranges::data(r);
    return global_span<element_of<R>>(ordinary_ptr<Writes>(n != 0 ? data : nullptr), n);
  } else {
    return span_of(r);
  }
}
/// A second input: a range, or where @p n elements begin.
template <class A>
[[gnu::always_inline]] inline auto as_second(A&& a, std::uint64_t n) {
  if constexpr (ordinary_range<A> || input_range<A>) {
    return as_global<false>(a);
  } else if constexpr (is_global_ptr<std::remove_cvref_t<A>>) {
    return global_span<typename std::remove_cvref_t<A>::element_type>(a, n);
  } else {
    require_span<A>();
    return global_span<element_of<A>>(ordinary_ptr<false>(n != 0 ? std::to_address(a) : nullptr), n);
  }
}
/// Where results go.
template <class A>
[[gnu::always_inline]] inline auto as_output(A&& a) {
  if constexpr (ordinary_range<A>) {
    return as_global<true>(a).data();
  } else if constexpr (output_place<A>) {
    return pointer_of(a);
  } else {
    require_span<A>();
    return ordinary_ptr<true>(std::to_address(a));
  }
}

/// @p result, a place behind @p begin, as what the caller knows of @p place.
template <class A, class T, class U>
[[gnu::always_inline]] inline auto place_back(A&& place, global_ptr<T> begin, global_ptr<U> result) {
  if constexpr (!ordinary_place<A>) {
    return result;
  } else {
    const auto bytes = static_cast<std::int64_t>(result.address() - begin.address());
    const auto n = static_cast<std::ptrdiff_t>(bytes / static_cast<std::int64_t>(sizeof(T)));
    if constexpr (ordinary_range<A>)
      return std::ranges::begin(place) + n;
    else
      return place + n;
  }
}
template <class A, class T, class U>
[[gnu::always_inline]] inline auto place_back(A&& place, global_ptr<T> begin,
                                              std::pair<global_ptr<U>, global_ptr<U>> result) {
  return std::pair(place_back(place, begin, result.first), place_back(place, begin, result.second));
}

/// Element number i of a range: by its iterator if that is plain bytes, else by where the range is.
template <class R, bool ByIterator = plain<std::ranges::iterator_t<R>>>
struct element_at {
  std::ranges::iterator_t<R> first;
  explicit element_at(R& r) : first(std::ranges::begin(r)) {}
  decltype(auto) operator()(std::uint64_t i) const {
    return first[static_cast<std::ranges::range_difference_t<R>>(i)];
  }
};
template <class R>
struct element_at<R, false> {
  R* range;
  explicit element_at(R& r) : range(std::addressof(r)) {}
  decltype(auto) operator()(std::uint64_t i) const {
    return std::ranges::begin(*range)[static_cast<std::ranges::range_difference_t<R>>(i)];
  }
};
/// f of the element with a number.
template <class R, class F>
struct of_element {
  static constexpr bool godwit_never_spawns = is_promised<F>;
  element_at<R> at;
  F f;
  decltype(auto) operator()(std::uint64_t i) {
    using result = std::invoke_result_t<F&, std::ranges::range_reference_t<R>>;
    if constexpr (std::is_rvalue_reference_v<result>)  // to an element that ends here, perhaps
      return std::remove_cvref_t<result>(std::invoke(f, at(i)));
    else
      return std::invoke(f, at(i));
  }
};
/// After the sentence that a range is refused with.
struct of_nothing {
  bool operator()(std::uint64_t) const { return false; }
};
template <class R, class F>
[[gnu::always_inline]] inline auto by_index(R& r, F f) {
  constexpr bool has_access = std::ranges::random_access_range<R>;
  static_assert(has_access,
                "godwit: this parallel algorithm needs random access to its elements: copy them into a "
                "std::vector, or call the std:: algorithm");
  if constexpr (!has_access) {
    return of_nothing{};
  } else {
    using reference = std::ranges::range_reference_t<R>;
    if constexpr (std::is_lvalue_reference_v<reference>)
      if (std::ranges::size(r) != 0)
        static_cast<void>(ordinary_ptr<!std::is_const_v<std::remove_reference_t<reference>>>(
            std::addressof(*std::ranges::begin(r))));
    return of_element<R, F>{element_at<R>(r), std::move(f)};
  }
}
/// use(init, op, grain) with what reduce was called with.
template <class T, class Use>
[[gnu::always_inline]] inline auto with_reduce_arguments(const Use& use, grain g = {}) {
  return use(T{}, std::plus<>(), g);
}
template <class T, class Use, not_grain Init>
[[gnu::always_inline]] inline auto with_reduce_arguments(const Use& use, Init init, grain g = {}) {
  return use(std::move(init), std::plus<>(), g);
}
template <class T, class Use, not_grain Init, not_grain Op>
[[gnu::always_inline]] inline auto with_reduce_arguments(const Use& use, Init init, Op op, grain g = {}) {
  return use(std::move(init), std::move(op), g);
}
template <class R>
[[gnu::always_inline]] inline auto indices_of(R& r) {
  return indices(static_cast<std::uint64_t>(std::ranges::size(r)));
}

}  // namespace detail

// Two iterators are a range.
#define GODWIT_ORDINARY_PAIR(NAME)                                                                 \
  template <detail::ordinary_iterator I, class... More>                                            \
  [[gnu::always_inline]] inline auto NAME(I first, std::type_identity_t<I> last, More&&... more) { \
    return godwit::NAME(detail::pair_range<I>{first, last}, std::forward<More>(more)...);          \
  }

// Algorithms on one range. What they give back is nothing, or a value.
#define GODWIT_ORDINARY(NAME, WRITES)                                               \
  template <detail::ordinary_range R, class... More>                                \
  [[gnu::always_inline]] inline auto NAME(R&& r, More&&... more) {                  \
    return godwit::NAME(detail::as_global<WRITES>(r), std::forward<More>(more)...); \
  }                                                                                 \
  GODWIT_ORDINARY_PAIR(NAME)
GODWIT_ORDINARY(fill, true)
GODWIT_ORDINARY(generate, true)
GODWIT_ORDINARY(iota, true)
GODWIT_ORDINARY(reverse, true)
GODWIT_ORDINARY(shuffle, true)
GODWIT_ORDINARY(sort, true)
GODWIT_ORDINARY(stable_sort, true)
GODWIT_ORDINARY(count, false)
GODWIT_ORDINARY(is_sorted, false)
GODWIT_ORDINARY(minmax, false)
#undef GODWIT_ORDINARY

// Places in the range.
#define GODWIT_ORDINARY_PLACES(NAME, WRITES)                                              \
  template <detail::ordinary_range R, class... More>                                      \
  [[gnu::always_inline]] inline auto NAME(R&& r, More&&... more) {                        \
    const auto s = detail::as_global<WRITES>(r);                                          \
    return detail::place_back(r, s.data(), godwit::NAME(s, std::forward<More>(more)...)); \
  }                                                                                       \
  GODWIT_ORDINARY_PAIR(NAME)
GODWIT_ORDINARY_PLACES(find, false)
GODWIT_ORDINARY_PLACES(min_element, false)
GODWIT_ORDINARY_PLACES(max_element, false)
GODWIT_ORDINARY_PLACES(minmax_element, false)
GODWIT_ORDINARY_PLACES(partition, true)
GODWIT_ORDINARY_PLACES(stable_partition, true)
GODWIT_ORDINARY_PLACES(remove_if, true)
GODWIT_ORDINARY_PLACES(unique, true)
#undef GODWIT_ORDINARY_PLACES

// A function of every element: also of those that do not lie in a row.
#define GODWIT_ORDINARY_FUNCTION(NAME, WRITES)                                                             \
  template <detail::ordinary_range R, class F, class... More>                                              \
  [[gnu::always_inline]] inline auto NAME(R&& r, F f, More&&... more) {                                    \
    if constexpr (detail::spans_memory<R>)                                                                 \
      return godwit::NAME(detail::as_global < WRITES && !std::is_const_v < detail::element_of < R >>> (r), \
                          std::move(f), std::forward<More>(more)...);                                      \
    else                                                                                                   \
      return godwit::NAME(detail::indices_of(r), detail::by_index(r, std::move(f)),                        \
                          std::forward<More>(more)...);                                                    \
  }                                                                                                        \
  GODWIT_ORDINARY_PAIR(NAME)
GODWIT_ORDINARY_FUNCTION(for_each, true)
GODWIT_ORDINARY_FUNCTION(count_if, false)
GODWIT_ORDINARY_FUNCTION(any_of, false)
GODWIT_ORDINARY_FUNCTION(all_of, false)
GODWIT_ORDINARY_FUNCTION(none_of, false)
#undef GODWIT_ORDINARY_FUNCTION

#define GODWIT_ORDINARY_FIND(NAME)                                                                        \
  template <detail::ordinary_range R, class F, class... More>                                             \
  [[gnu::always_inline]] inline auto NAME(R&& r, F f, More&&... more) {                                   \
    if constexpr (detail::spans_memory<R>) {                                                              \
      const auto s = detail::as_global<false>(r);                                                         \
      return detail::place_back(r, s.data(), godwit::NAME(s, std::move(f), std::forward<More>(more)...)); \
    } else {                                                                                              \
      return std::ranges::begin(r) +                                                                      \
             static_cast<std::ptrdiff_t>(godwit::NAME(                                                    \
                 detail::indices_of(r), detail::by_index(r, std::move(f)), std::forward<More>(more)...)); \
    }                                                                                                     \
  }                                                                                                       \
  GODWIT_ORDINARY_PAIR(NAME)
GODWIT_ORDINARY_FIND(find_if)
GODWIT_ORDINARY_FIND(find_if_not)
#undef GODWIT_ORDINARY_FIND

// From a range to a place.
#define GODWIT_ORDINARY_TO(NAME)                                                                           \
  template <class R, class O, class... More>                                                               \
  requires((detail::ordinary_range<R> || detail::input_range<R>)&&detail::any_place<O> &&                  \
           detail::some_ordinary<R, O>) [[gnu::always_inline]] inline auto                                 \
  NAME(R&& r, O&& out, More&&... more) {                                                                   \
    const auto to = detail::as_output(out);                                                                \
    return detail::place_back(out, to,                                                                     \
                              godwit::NAME(detail::as_global<false>(r), to, std::forward<More>(more)...)); \
  }                                                                                                        \
  template <class T, detail::ordinary_place O, class... More>                                              \
  [[gnu::always_inline]] inline auto NAME(global_ptr<T> first, global_ptr<T> last, O&& out,                \
                                          More&&... more) {                                                \
    return godwit::NAME(global_span<T>(first, last), out, std::forward<More>(more)...);                    \
  }                                                                                                        \
  GODWIT_ORDINARY_PAIR(NAME)
GODWIT_ORDINARY_TO(copy)
GODWIT_ORDINARY_TO(copy_if)
GODWIT_ORDINARY_TO(inclusive_scan)
GODWIT_ORDINARY_TO(exclusive_scan)
GODWIT_ORDINARY_TO(transform_inclusive_scan)
GODWIT_ORDINARY_TO(transform_exclusive_scan)
#undef GODWIT_ORDINARY_TO

// Two ranges.

/// out[i] = f(r[i])
template <class R, class O, class F>
requires((detail::ordinary_range<R> || detail::input_range<R>)&&detail::any_place<O> &&
         !detail::any_place<F> && detail::some_ordinary<R, O>)
    [[gnu::always_inline]] inline auto transform(R&& r, O&& out, F f, grain g = {}) {
  const auto to = detail::as_output(out);
  if constexpr (detail::input_range<R> || detail::spans_memory<R>)
    return detail::place_back(out, to, godwit::transform(detail::as_global<false>(r), to, std::move(f), g));
  else
    return detail::place_back(
        out, to, godwit::transform(detail::indices_of(r), to, detail::by_index(r, std::move(f)), g));
}
/// out[i] = f(a[i], b[i])
template <class A, class B, class O, class F>
requires(
    (detail::ordinary_range<A> ||
     detail::input_range<A>)&&detail::any_place<B>&& detail::any_place<O>&& detail::some_ordinary<A, B, O>)
    [[gnu::always_inline]] inline auto transform(A&& a, B&& b, O&& out, F f, grain g = {}) {
  const auto s = detail::as_global<false>(a);
  const auto to = detail::as_output(out);
  return detail::place_back(out, to,
                            godwit::transform(s, detail::as_second(b, s.size()), to, std::move(f), g));
}

template <class T, detail::ordinary_place O, class... More>
[[gnu::always_inline]] inline auto transform(global_ptr<T> first, global_ptr<T> last, O&& out,
                                             More&&... more) {
  return godwit::transform(global_span<T>(first, last), out, std::forward<More>(more)...);
}

/// init op f(r[0]) op f(r[1]) ...
template <detail::ordinary_range R, class T, detail::not_grain Op, detail::not_grain F>
requires std::is_invocable_v<Op&, T, T>
[[gnu::always_inline]] inline T transform_reduce(R&& r, T init, Op op, F f, grain g = {}) {
  if constexpr (detail::spans_memory<R>)
    return godwit::transform_reduce(detail::as_global<false>(r), std::move(init), std::move(op), std::move(f),
                                    g);
  else
    return godwit::transform_reduce(detail::indices_of(r), std::move(init), std::move(op),
                                    detail::by_index(r, std::move(f)), g);
}
/// init op f(a[0], b[0]) op ...; or the inner product.
template <class A, class B, class T, class... More>
requires((detail::ordinary_range<A> ||
          detail::input_range<A>)&&detail::any_place<B>&& detail::some_ordinary<A, B> &&
         !std::is_invocable_v<T&, B, B>)
    [[gnu::always_inline]] inline auto transform_reduce(A&& a, B&& b, T init, More&&... more) {
  const auto s = detail::as_global<false>(a);
  return godwit::transform_reduce(s, detail::as_second(b, s.size()), std::move(init),
                                  std::forward<More>(more)...);
}
template <detail::ordinary_range R, class... More>
[[gnu::always_inline]] inline auto reduce(R&& r, More&&... more) {
  if constexpr (detail::spans_memory<R>) {
    return godwit::reduce(detail::as_global<false>(r), std::forward<More>(more)...);
  } else {
    using T = std::remove_cvref_t<std::ranges::range_reference_t<R>>;
    const auto f = detail::by_index(r, std::identity());
    const auto sum = [&](auto init, auto op, grain g) __attribute__((always_inline)) {
      return godwit::transform_reduce(detail::indices_of(r), std::move(init), std::move(op), f, g);
    };
    return detail::with_reduce_arguments<T>(sum, std::forward<More>(more)...);
  }
}

/// Are they of one length, with pred for all pairs?
template <class A, class B, class... More>
requires((detail::ordinary_range<A> ||
          detail::input_range<A>)&&detail::any_place<B>&& detail::some_ordinary<A, B>)
    [[gnu::always_inline]] inline bool equal(A&& a, B&& b, More&&... more) {
  const auto s = detail::as_global<false>(a);
  return godwit::equal(s, detail::as_second(b, s.size()), std::forward<More>(more)...);
}

/// Merge two sorted ranges, or [first1, last1) and [first2, last2), to @p out.
template <class A, class B, class O, class... More>
requires((detail::ordinary_range<A> || detail::global_range<A>)&&(
    detail::ordinary_range<B> ||
    detail::global_range<B>)&&detail::any_place<O>&& detail::some_ordinary<A, B, O>)
    [[gnu::always_inline]] inline auto merge(A&& a, B&& b, O&& out, More&&... more) {
  const auto to = detail::as_output(out);
  return detail::place_back(out, to,
                            godwit::merge(detail::as_global<false>(a), detail::as_global<false>(b), to,
                                          std::forward<More>(more)...));
}
template <detail::ordinary_iterator I, detail::ordinary_iterator J, class O, class... More>
[[gnu::always_inline]] inline auto merge(I first1, std::type_identity_t<I> last1, J first2,
                                         std::type_identity_t<J> last2, O&& out, More&&... more) {
  return godwit::merge(detail::pair_range<I>{first1, last1}, detail::pair_range<J>{first2, last2}, out,
                       std::forward<More>(more)...);
}

GODWIT_ORDINARY_PAIR(equal)
GODWIT_ORDINARY_PAIR(reduce)
GODWIT_ORDINARY_PAIR(transform)
GODWIT_ORDINARY_PAIR(transform_reduce)
#undef GODWIT_ORDINARY_PAIR

}  // namespace godwit
