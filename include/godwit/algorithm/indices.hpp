// indices: a range of numbers for the algorithms, with memory that it stands for if one says so. Document:
// docs/algorithms.md. Tests: tests/algorithm/, tests/sim/near_test.cpp.
#pragma once

#include <godwit/global_ptr.hpp>

#include <concepts>
#include <cstdint>
#include <type_traits>

namespace godwit {

namespace detail {
template <class R>
concept has_global_data = requires(R& r) {
  { r.data().address() } -> std::convertible_to<global_address>;
  { r.size() } -> std::convertible_to<std::uint64_t>;
};
}  // namespace detail

/// first, first + 1 ... last - 1: a range without memory behind it, for algorithms that only read.
template <std::integral I>
class index_range {
 public:
  using value_type = I;
  constexpr index_range(I first, I last) noexcept : first_(first), last_(last < first ? first : last) {}
  constexpr I first() const noexcept { return first_; }
  constexpr I last() const noexcept { return last_; }
  constexpr std::uint64_t size() const noexcept {
    return static_cast<std::uint64_t>(last_) - static_cast<std::uint64_t>(first_);
  }
  constexpr I operator[](std::uint64_t i) const noexcept {
    return static_cast<I>(static_cast<std::uint64_t>(first_) + i);
  }

  /// The same indices, each standing for one of size() equal parts of @p r, in order: a loop over them is
  /// dealt out to the workers as one over r would be. Where memory lies does not show in results, only in
  /// time. @p r: global_span, global_array, global_vector; an empty one says nothing.
  template <detail::has_global_data R>
  constexpr index_range near(R&& r) const {
    index_range to(first_, last_);
    using T = typename std::remove_cvref_t<decltype(r.data())>::element_type;
    if (r.size() != 0 && size() != 0) to.memory_ = r.data().address();
    to.memory_bytes_ = r.size() * sizeof(T);
    return to;
  }
  /// Where the part of index @p i from the first on begins; 0 without near().
  constexpr detail::global_address place(std::uint64_t i) const noexcept {
    return memory_ == 0 ? 0 : memory_ + memory_bytes_ / size() * i;
  }

 private:
  I first_, last_;
  detail::global_address memory_ = 0;
  std::uint64_t memory_bytes_ = 0;
};
template <std::integral A, std::integral B>
constexpr auto indices(A first, B last) noexcept {
  using I = std::common_type_t<A, B>;
  return index_range<I>(static_cast<I>(first), static_cast<I>(last));
}
template <std::integral I>
constexpr auto indices(I n) noexcept {
  return index_range<I>(I{0}, n);
}

}  // namespace godwit
