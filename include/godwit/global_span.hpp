// global_span<T>: a view of contiguous global memory: pointer and length, plain bytes. This is what closures
// capture and algorithms take. Does not own. Tests: tests/global/span_test.cpp.
#pragma once

#include <godwit/checkout.hpp>
#include <godwit/global_access.hpp>

#include <cstdint>
#include <type_traits>

namespace godwit {

template <class T>
class global_span {
 public:
  using element_type = T;
  using value_type = std::remove_cv_t<T>;
  using size_type = std::uint64_t;
  using iterator = global_ptr<T>;

  constexpr global_span() noexcept = default;
  constexpr global_span(global_ptr<T> data, std::uint64_t size) noexcept : data_(data), size_(size) {}
  constexpr global_span(global_ptr<T> first, global_ptr<T> last) noexcept
      : data_(first), size_(static_cast<std::uint64_t>(last - first)) {}
  template <class U>
  requires(!std::is_same_v<U, T> && std::is_same_v<const U, T>)
      // NOLINT
      constexpr global_span(global_span<U> other) noexcept
      : data_(other.data()), size_(other.size()) {}

  constexpr global_ptr<T> data() const noexcept { return data_; }
  constexpr std::uint64_t size() const noexcept { return size_; }
  constexpr std::uint64_t size_bytes() const noexcept { return size_ * sizeof(T); }
  constexpr bool empty() const noexcept { return size_ == 0; }
  constexpr global_ptr<T> begin() const noexcept { return data_; }
  constexpr global_ptr<T> end() const noexcept { return data_ + static_cast<std::ptrdiff_t>(size_); }
  constexpr global_ref<T> operator[](std::uint64_t i) const noexcept {
    return data_[static_cast<std::ptrdiff_t>(i)];
  }
  constexpr global_ref<T> front() const noexcept { return *data_; }
  constexpr global_ref<T> back() const noexcept { return (*this)[size_ - 1]; }

  /// [offset, offset + count), or to the end. Not checked, like std::span's.
  constexpr global_span subspan(std::uint64_t offset,
                                std::uint64_t count = ~std::uint64_t{0}) const noexcept {
    return {data_ + static_cast<std::ptrdiff_t>(offset), count == ~std::uint64_t{0} ? size_ - offset : count};
  }
  constexpr global_span first(std::uint64_t n) const noexcept { return {data_, n}; }
  constexpr global_span last(std::uint64_t n) const noexcept { return subspan(size_ - n); }

  /// checkout of all of it.
  template <class Mode>
  auto checkout(Mode mode, detail::place where = detail::place::here()) const {
    return godwit::checkout(data_, size_, mode, where);
  }

 private:
  global_ptr<T> data_;
  std::uint64_t size_ = 0;
};

}  // namespace godwit
