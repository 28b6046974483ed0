// What parallel algorithms answer when they are called with ordinary memory, such as a std::vector: one
// sentence instead of the list of all overloads. Included by algorithm.hpp. Tests:
// tests/compile_fail/ordinary_*.cpp.
#pragma once

#include <godwit/algorithm/blocks.hpp>

#include <iterator>

namespace godwit {

namespace detail {

/// A range or an iterator of the standard's, a pointer, an array: memory of one process.
template <class R>
concept ordinary =
    !input_range<R> && !is_global_ptr<std::remove_cvref_t<R>> &&
    (std::input_or_output_iterator<std::decay_t<R>> || requires(R & r) { std::begin(r), std::end(r); });

/// Turns into whatever the caller wants, so that the sentence is all there is to read.
struct no_result {
  template <class T>
  operator T() const noexcept;
};

template <class... A>
constexpr no_result refuse_ordinary() {
  static_assert(sizeof...(A) == 0,
                "godwit: parallel algorithms work on global memory: this is ordinary memory, of one process "
                "only. Keep the elements in a gw::global_array or gw::global_vector, or call the std:: "
                "algorithm");
  return {};
}

}  // namespace detail

// Variadic, so that every overload that fits is preferred.
#define GODWIT_REFUSE_ORDINARY(NAME)           \
  template <detail::ordinary A, class... More> \
  detail::no_result NAME(A&&, More&&...) {     \
    return detail::refuse_ordinary<A>();       \
  }
// Likewise for those that take more than one range, or a place where results go.
#define GODWIT_REFUSE_ORDINARY_ANYWHERE(NAME)                                      \
  GODWIT_REFUSE_ORDINARY(NAME)                                                     \
  template <detail::input_range A, class... More>                                  \
  requires(detail::ordinary<More> || ...) detail::no_result NAME(A&&, More&&...) { \
    return detail::refuse_ordinary<A>();                                           \
  }

GODWIT_REFUSE_ORDINARY(for_each)
GODWIT_REFUSE_ORDINARY(fill)
GODWIT_REFUSE_ORDINARY(generate)
GODWIT_REFUSE_ORDINARY(iota)
GODWIT_REFUSE_ORDINARY(reduce)
GODWIT_REFUSE_ORDINARY(count)
GODWIT_REFUSE_ORDINARY(count_if)
GODWIT_REFUSE_ORDINARY(min_element)
GODWIT_REFUSE_ORDINARY(max_element)
GODWIT_REFUSE_ORDINARY(minmax_element)
GODWIT_REFUSE_ORDINARY(minmax)
GODWIT_REFUSE_ORDINARY(find)
GODWIT_REFUSE_ORDINARY(find_if)
GODWIT_REFUSE_ORDINARY(find_if_not)
GODWIT_REFUSE_ORDINARY(any_of)
GODWIT_REFUSE_ORDINARY(all_of)
GODWIT_REFUSE_ORDINARY(none_of)
GODWIT_REFUSE_ORDINARY(is_sorted)
GODWIT_REFUSE_ORDINARY(stable_partition)
GODWIT_REFUSE_ORDINARY(partition)
GODWIT_REFUSE_ORDINARY(remove_if)
GODWIT_REFUSE_ORDINARY(unique)
GODWIT_REFUSE_ORDINARY(sort)
GODWIT_REFUSE_ORDINARY(stable_sort)
GODWIT_REFUSE_ORDINARY(reverse)
GODWIT_REFUSE_ORDINARY(shuffle)
GODWIT_REFUSE_ORDINARY_ANYWHERE(transform)
GODWIT_REFUSE_ORDINARY_ANYWHERE(transform_reduce)
GODWIT_REFUSE_ORDINARY_ANYWHERE(copy)
GODWIT_REFUSE_ORDINARY_ANYWHERE(copy_if)
GODWIT_REFUSE_ORDINARY_ANYWHERE(equal)
GODWIT_REFUSE_ORDINARY_ANYWHERE(merge)
GODWIT_REFUSE_ORDINARY_ANYWHERE(inclusive_scan)
GODWIT_REFUSE_ORDINARY_ANYWHERE(exclusive_scan)
GODWIT_REFUSE_ORDINARY_ANYWHERE(transform_inclusive_scan)
GODWIT_REFUSE_ORDINARY_ANYWHERE(transform_exclusive_scan)
#undef GODWIT_REFUSE_ORDINARY
#undef GODWIT_REFUSE_ORDINARY_ANYWHERE

}  // namespace godwit
