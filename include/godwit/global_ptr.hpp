// global_ptr<T>: the address of an object in global memory, the same in every worker of a run.
//
// 64 bits, plain: copy it, capture it, send it, store it in global memory. Arithmetic is plain byte
// arithmetic, also across the blocks and homes of a distributed allocation. Dereferencing gives a global_ref,
// which reads by get and writes by put; for more than single elements use checkout (checkout.hpp), get and
// put (global_access.hpp), or the algorithms. A pointer is worth nothing outside the run that allocated it.
// Source: Active global address space. Tests: tests/global/ptr_test.cpp. See docs/global-memory.md.
#pragma once

#include <godwit/codec.hpp>
#include <godwit/detail/global_path.hpp>

#include <compare>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <iterator>
#include <ostream>
#include <type_traits>

namespace godwit {

template <class T>
class global_ref;

/// A value of T is moved by copying its bytes and forgetting where they were. So are trivially copyable types
/// and the owners of global memory (global_vector, global_array, global_map, global_bytes). Say so for a
/// class of yours that has such members, and nothing that knows its own address:
///   template <> inline constexpr bool godwit::relocatable<particles> = true;
template <class T>
inline constexpr bool relocatable = std::is_trivially_copyable_v<T>;

namespace detail {
/// Values of T may lie in global memory, and be read and written by value, by anybody, at any time.
template <class T>
concept global_value = std::is_object_v<T> && std::is_trivially_copyable_v<std::remove_cv_t<T>>;
/// They own something: they may lie in global arrays and vectors, and have one owner.
template <class T>
concept owning_element = std::is_object_v<T> && !global_value<T> && relocatable<std::remove_cv_t<T>> &&
                         std::is_nothrow_default_constructible_v<std::remove_cv_t<T>> &&
                         std::is_nothrow_destructible_v<std::remove_cv_t<T>>;

/// May values of T be elements of global memory at all?
template <class T>
constexpr void require_global_element() {
  static_assert(
      global_value<T> || owning_element<T>,
      "godwit: this type cannot lie in global memory: it is not trivially copyable (std::string, "
      "std::vector, "
      "std::unique_ptr...). Store plain values, global_ptr to further memory, global_bytes for text, other "
      "global containers, or a class of these that is godwit::relocatable");
}
template <class T>
constexpr void require_global_value() {
  require_global_element<T>();
  static_assert(!owning_element<T>,
                "godwit: this type owns global memory and is not copied: check the element out, or use take "
                "and replace");
}

/// Where the T of an U at @p at begins, one of which may be a base class of the other.
template <class T, class U>
constexpr global_address cast_address(global_address at) noexcept {
  if constexpr (std::is_void_v<T> || std::is_void_v<U> ||
                std::is_same_v<std::remove_cv_t<T>, std::remove_cv_t<U>>) {
    return at;
  } else {
    if (at == 0) return 0;
    constexpr std::uintptr_t somewhere = std::uintptr_t{1} << 20;
    T* t = static_cast<T*>(reinterpret_cast<U*>(somewhere));
    return at + (reinterpret_cast<std::uintptr_t>(t) - somewhere);
  }
}
}  // namespace detail

template <class T>
class global_ptr {
 public:
  using element_type = T;
  using value_type = std::remove_cv_t<T>;
  using difference_type = std::ptrdiff_t;
  using iterator_category = std::random_access_iterator_tag;
  using pointer = global_ptr;
  using reference = global_ref<T>;

  constexpr global_ptr() noexcept = default;
  constexpr global_ptr(std::nullptr_t) noexcept {}  // NOLINT: implicit on purpose
  /// From a raw address, for those who store addresses as numbers.
  constexpr explicit global_ptr(detail::global_address at) noexcept : at_(at) {}
  /// To const, to void, to a base class.
  template <class U>
  requires(!std::is_same_v<U, T> &&
           std::is_convertible_v<U*, T*>) constexpr global_ptr(global_ptr<U> other) noexcept
      : at_(detail::cast_address<T, U>(other.address())) {}  // NOLINT

  constexpr detail::global_address address() const noexcept { return at_; }
  constexpr explicit operator bool() const noexcept { return at_ != 0; }

  constexpr reference operator*() const noexcept requires(!std::is_void_v<T>) { return reference(*this); }
  constexpr reference operator[](difference_type i) const noexcept requires(!std::is_void_v<T>) {
    return reference(*this + i);
  }

  template <class U = T>
  constexpr global_ptr& operator+=(difference_type n) noexcept {
    at_ += static_cast<std::uint64_t>(n) * sizeof(U);
    return *this;
  }
  constexpr global_ptr& operator-=(difference_type n) noexcept { return *this += -n; }
  constexpr global_ptr& operator++() noexcept { return *this += 1; }
  constexpr global_ptr& operator--() noexcept { return *this -= 1; }
  constexpr global_ptr operator++(int) noexcept {
    const global_ptr before = *this;
    ++*this;
    return before;
  }
  constexpr global_ptr operator--(int) noexcept {
    const global_ptr before = *this;
    --*this;
    return before;
  }
  friend constexpr global_ptr operator+(global_ptr p, difference_type n) noexcept { return p += n; }
  friend constexpr global_ptr operator+(difference_type n, global_ptr p) noexcept { return p += n; }
  friend constexpr global_ptr operator-(global_ptr p, difference_type n) noexcept { return p -= n; }
  template <class U>
  requires std::is_same_v<std::remove_cv_t<U>, std::remove_cv_t<T>>
  constexpr difference_type operator-(global_ptr<U> other) const noexcept {
    return static_cast<difference_type>(at_ - other.address()) / static_cast<difference_type>(sizeof(T));
  }
  template <class U>
  constexpr bool operator==(global_ptr<U> other) const noexcept {
    return at_ == other.address();
  }
  constexpr bool operator==(std::nullptr_t) const noexcept { return at_ == 0; }
  template <class U>
  constexpr std::strong_ordering operator<=>(global_ptr<U> other) const noexcept {
    return at_ <=> other.address();
  }

 private:
  detail::global_address at_ = 0;
};

/// Same address, other type; the caller answers for it.
template <class T, class U>
constexpr global_ptr<T> reinterpret_global_cast(global_ptr<U> p) noexcept {
  return global_ptr<T>(p.address());
}
template <class T, class U>
constexpr global_ptr<T> static_global_cast(global_ptr<U> p) noexcept {
  static_assert(
      requires { static_cast<T*>(static_cast<U*>(nullptr)); },
      "godwit::static_global_cast: static_cast does not convert such pointers");
  return global_ptr<T>(detail::cast_address<T, U>(p.address()));
}
template <class T, class U>
constexpr global_ptr<T> const_global_cast(global_ptr<U> p) noexcept {
  static_assert(std::is_same_v<std::remove_cv_t<T>, std::remove_cv_t<U>>);
  return global_ptr<T>(p.address());
}

template <class T>
std::ostream& operator<<(std::ostream& out, global_ptr<T> p) {
  if (p == nullptr) return out << "global:null";
  const auto flags = out.flags();
  out << "global:0x" << std::hex << p.address();
  out.flags(flags);
  return out;
}

/// Number of the worker whose memory @p p points to, also when other workers work with it. Local; for an
/// allocation made by another host perhaps one round trip.
template <class T>
std::uint32_t home_of(global_ptr<T> p) {
  return detail::global_home(p.address());
}

/// Number of the worker that has the memory of @p p now: its home, unless it is movable and was moved. Cost:
/// that of home_of; for movable memory that another host has, a round trip or two.
template <class T>
std::uint32_t owner_of(global_ptr<T> p) {
  return detail::global_owner(p.address());
}

/// Number of the worker that would be asked for the memory of @p p: owner_of, as far as this host knows, so
/// for movable memory perhaps one that has given it away. For who wants to be near, not for who must be.
/// Cost: that of home_of.
template <class T>
std::uint32_t likely_owner_of(global_ptr<T> p) {
  return detail::global_likely_owner(p.address());
}

/// What *p and p[i] give: reads by get, writes by put. `p[i] += v` is a get and a put, not an atomic (see
/// global_atomic.hpp).
template <class T>
class global_ref {
 public:
  using value_type = std::remove_cv_t<T>;
  constexpr explicit global_ref(global_ptr<T> p) noexcept : at_(p) {}
  constexpr global_ref(const global_ref&) noexcept = default;

  operator value_type() const { return load(); }  // NOLINT: implicit on purpose
  const global_ref& operator=(const value_type& v) const requires(!std::is_const_v<T>) {
    store(v);
    return *this;
  }
  const global_ref& operator=(const global_ref& other) const requires(!std::is_const_v<T>) {
    store(other.load());
    return *this;
  }
  global_ref& operator=(const global_ref& other) requires(!std::is_const_v<T>) {
    store(other.load());
    return *this;
  }
  constexpr global_ptr<T> operator&() const noexcept { return at_; }

  const global_ref& operator+=(const value_type& v) const {
    return *this = static_cast<value_type>(load() + v);
  }
  const global_ref& operator-=(const value_type& v) const {
    return *this = static_cast<value_type>(load() - v);
  }
  const global_ref& operator*=(const value_type& v) const {
    return *this = static_cast<value_type>(load() * v);
  }
  const global_ref& operator/=(const value_type& v) const {
    return *this = static_cast<value_type>(load() / v);
  }
  const global_ref& operator++() const { return *this += value_type(1); }
  const global_ref& operator--() const { return *this -= value_type(1); }
  /// Give back the value before. Like += these are a get and a put.
  value_type operator++(int) const {
    const value_type before = load();
    store(static_cast<value_type>(before + value_type(1)));
    return before;
  }
  value_type operator--(int) const {
    const value_type before = load();
    store(static_cast<value_type>(before - value_type(1)));
    return before;
  }
  /// Exchange the two values: two gets and two puts, no atomic.
  friend void swap(global_ref a, global_ref b) requires(!std::is_const_v<T>) {
    const value_type of_a = a.load();
    a.store(b.load());
    b.store(of_a);
  }

  [[gnu::always_inline]] value_type load() const {
    detail::require_global_value<T>();
    alignas(value_type) std::byte raw[sizeof(value_type)];
    if (detail::global_is_plain()) [[likely]]
      std::memcpy(raw, detail::global_raw<std::byte>(at_.address()), sizeof(value_type));
    else
      detail::global_get(at_.address(), raw, sizeof(value_type));
    value_type* v = reinterpret_cast<value_type*>(raw);
    return *std::launder(v);
  }
  [[gnu::always_inline]] void store(const value_type& v) const {
    static_assert(!std::is_const_v<T>, "godwit: const elements of global memory are not written");
    detail::require_global_value<T>();
    if (detail::global_is_plain()) [[likely]]
      std::memcpy(detail::global_raw<std::byte>(at_.address()), std::addressof(v), sizeof(value_type));
    else
      detail::global_put(at_.address(), std::addressof(v), sizeof(value_type));
  }

 private:
  global_ptr<T> at_;
};

}  // namespace godwit

template <class T>
struct std::hash<godwit::global_ptr<T>> {
  std::size_t operator()(godwit::global_ptr<T> p) const noexcept {
    return std::hash<std::uint64_t>()(p.address());
  }
};

// std::swap(a[0], a[1]) of two elements, which are no lvalues: as the standard does it for std::vector<bool>.
namespace std {
template <class T>
requires(!is_const_v<T>) void swap(godwit::global_ref<T> a, godwit::global_ref<T> b) {
  swap(a, b);  // the friend: no template
}
}  // namespace std
