// global_vector<T>: a growing sequence of objects in global memory, with one owner.
//
// Elements may own something (global_vector<global_vector<int>>): docs/containers.md. Grown by one thread at
// a time, like std::vector; read and written by any through span(). Contiguous:
// growing moves the elements, after which spans and pointers from before hold nothing. Ownership, runs and
// codec as in global_array.hpp. To append from many threads at once: begin_append(). Tests:
// tests/global/vector_test.cpp. See docs/containers.md.
#pragma once

#include <godwit/global_array.hpp>
#include <godwit/global_atomic.hpp>

#include <concepts>
#include <cstdint>
#include <ranges>
#include <span>
#include <stdexcept>
#include <string>
#include <type_traits>
#include <utility>

namespace godwit {

namespace detail {
[[noreturn, gnu::cold, gnu::noinline]] inline void appender_full(std::uint64_t capacity) {
  throw std::length_error(
      "godwit: global_appender: all " + std::to_string(capacity) +
      " slots are taken: call begin_append with the number of elements that will come at most");
}
template <class T, class... Args>
T make_value(Args&&... args) {
  if constexpr (std::is_constructible_v<T, Args...>)
    return T(std::forward<Args>(args)...);
  else
    return T{std::forward<Args>(args)...};
}
}  // namespace detail

/// Appends to a global_vector from any number of threads, in any order, into room that is there already.
/// Plain bytes: capture it by value. From global_vector::begin_append.
template <class T>
class global_appender {
 public:
  /// Gives back the index of the new element. Throws std::length_error when there is no room left. Cost: an
  /// atomic and a put.
  std::uint64_t push_back(const T& v) const {
    // Beyond the room nothing is ever written, so the counter may run past it.
    const std::uint64_t i = atomic_fetch_add(next_, std::uint64_t{1}, std::memory_order_relaxed);
    if (i >= capacity_) detail::appender_full(capacity_);
    put(data_ + static_cast<std::ptrdiff_t>(i), v);
    return i;
  }
  /// Several, one behind the other; all of them or, with std::length_error, none. Gives back the index of the
  /// first.
  std::uint64_t append(std::span<const T> from) const {
    // Not by adding: what is reserved must also be filled, or the vector would have a hole.
    std::uint64_t i = atomic_load(next_, std::memory_order_relaxed);
    do {
      if (i > capacity_ || from.size() > capacity_ - i) detail::appender_full(capacity_);
    } while (!atomic_compare_exchange(next_, i, i + from.size(), std::memory_order_relaxed));
    if (!from.empty()) put(data_ + static_cast<std::ptrdiff_t>(i), from.data(), from.size());
    return i;
  }

 private:
  template <class>
  friend class global_vector;
  global_ptr<T> data_;
  global_ptr<std::uint64_t> next_;
  std::uint64_t capacity_ = 0;
};

/// size, data, span, iterators, elements, checkout: detail::global_elements, as for global_array.
template <class T>
class global_vector : public detail::global_elements<T, true> {
  static_assert(!std::is_const_v<T>,
                "godwit::global_vector<const T>: make it of T and hand out global_span<const T>");
  using base = detail::global_elements<T, true>;

 public:
  /// Empty; allocates nothing. May be a global variable. Memory will be at the worker that makes it grow.
  constexpr global_vector() noexcept = default;
  /// Empty, @p d for all memory to come. What a user distribution refers to must live as long as the vector,
  /// at every worker: a function object at namespace scope. blocked with a given block size bounds the
  /// capacity: the homes times that.
  explicit global_vector(const distribution& d) noexcept : how_(d) {}
  /// @p n copies of @p value. Written by several threads if worth it: the calling thread may go on at another
  /// worker.
  explicit global_vector(std::uint64_t n, const distribution& d = distribution::local(),
                         const T& value = T()) requires(!detail::owning_element<T>)
      : global_vector(d) {
    resize(n, value);
  }
  /// Of elements that own something: @p n that are default-constructed.
  explicit global_vector(std::uint64_t n,
                         const distribution& d = distribution::local()) requires detail::owning_element<T>
      : global_vector(d) {
    resize(n);
  }
  /// The same, but element i is `make(i)`: global_array.hpp says how.
  template <detail::makes_elements<T> F>
  global_vector(std::uint64_t n, const distribution& d, const F& make) : global_vector(n, d) {
    detail::make_elements<T>(this->span(), make);
  }

  global_vector(const global_vector&) = delete;  // godwit: not copied: capture its span(), or move it
  global_vector& operator=(const global_vector&) = delete;  // godwit: append its span(), or move it
  global_vector(global_vector&& other) noexcept : how_(other.how_) { take(other); }
  global_vector& operator=(global_vector&& other) noexcept {
    if (this != &other) {
      reset();
      how_ = other.how_;
      take(other);
    }
    return *this;
  }
  ~global_vector() { reset(); }

  /// Free the memory now; empty afterwards, and usable again. Elements that own something are destroyed, if
  /// they are many by their homes: the calling thread may go on at another worker.
  void reset() noexcept {
    if (this->alive()) {
      detail::destroy_elements<T>(this->span());
      deallocate(at_, capacity_);
    }
    forget();
  }
  /// What is in it, as an array of its own. The vector is empty afterwards. Cost: shrink_to_fit's.
  global_array<T> into_array() && {
    shrink_to_fit();
    const global_span<T> s = this->span();
    forget();
    return global_array<T>::adopt(s);
  }
  void swap(global_vector& other) noexcept {
    std::swap(static_cast<base&>(*this), static_cast<base&>(other));
    std::swap(capacity_, other.capacity_);
    std::swap(how_, other.how_);
  }
  friend void swap(global_vector& a, global_vector& b) noexcept { a.swap(b); }

  std::uint64_t capacity() const noexcept { return capacity_; }

  // All that follow throw std::logic_error when the run is over.

  /// Cost: a put, now and then an allocation and a copy (the capacity doubles). Never migrates. Throws what
  /// allocate throws; then nothing has changed.
  void push_back(const T& v) requires(!detail::owning_element<T>) {
    check();
    if (size_ == capacity_) [[unlikely]]
      grow_to(size_ + 1);
    put(at_ + static_cast<std::ptrdiff_t>(size_), v);
    ++size_;
  }
  /// Elements that own something are moved in.
  void push_back(T&& v) requires detail::owning_element<T> {
    check();
    if (size_ == capacity_) [[unlikely]]
      grow_to(size_ + 1);
    using bytes = detail::owned_bytes<T>;
    put(bytes::at(at_ + static_cast<std::ptrdiff_t>(size_)), bytes::of(v));
    ++size_;
  }
  template <class... Args>
  global_ref<T> emplace_back(Args&&... args) {
    push_back(detail::make_value<T>(std::forward<Args>(args)...));
    return this->back();
  }
  /// Not on an empty vector.
  void pop_back() {
    check();
    destroy_from(size_ - 1);
  }
  /// Elements that own something: cost as reset's.
  void clear() {
    check();
    destroy_from(0);
  }
  /// Cost: a copy if that is more than the capacity, through the calling worker; never migrates.
  void reserve(std::uint64_t n) {
    check();
    if (n > capacity_) move_to(n);
  }
  void shrink_to_fit() {
    check();
    if (size_ == capacity_) return;
    if (size_ == 0)
      reset();
    else
      move_to(size_);
  }
  /// New elements are copies of @p value, written by as many threads as are worth it: the calling thread may
  /// go on at another worker.
  void resize(std::uint64_t n, const T& value = T()) requires(!detail::owning_element<T>) {
    check();
    if (n > capacity_) grow_to(n);
    // It may throw cancelled: then there are no more elements than before.
    if (n > size_) detail::fill_parallel<T>({at_ + static_cast<std::ptrdiff_t>(size_), n - size_}, value);
    size_ = n;
  }
  /// The same for elements that own something: those that go are destroyed, new ones default-constructed.
  void resize(std::uint64_t n) requires detail::owning_element<T> {
    check();
    if (n < size_) return destroy_from(n);
    if (n > capacity_) grow_to(n);
    detail::fill_empty<T>({at_ + static_cast<std::ptrdiff_t>(size_), n - size_});
    size_ = n;
  }
  /// n elements more, contents undefined, for those who write them next. Gives back where. Never migrates.
  global_span<T> append_uninitialised(std::uint64_t n) requires(!detail::owning_element<T>) {
    check();
    if (n > capacity_ - size_) grow_to(size_ + n);
    const global_span<T> s{at_ + static_cast<std::ptrdiff_t>(size_), n};
    size_ += n;
    return s;
  }
  /// Append objects that lie here. Never migrates.
  void append(std::span<const T> from) requires(!detail::owning_element<T>) {
    if (from.empty()) return check();
    put(append_uninitialised(from.size()).data(), from.data(), from.size());
  }
  /// Append objects of global memory, also of this vector. Through the calling worker.
  void append(global_span<const T> from) requires(!detail::owning_element<T>) {
    check();
    if (from.empty()) return;
    const std::uint64_t n = size_ + from.size();
    // The old memory is freed last: it may be what is appended.
    global_ptr<T> old;
    const std::uint64_t old_capacity = capacity_;
    if (n > capacity_) {
      old = at_;
      replace(larger(n));
    }
    copy_n<T>(from.data(), from.size(), at_ + static_cast<std::ptrdiff_t>(size_));
    size_ = n;
    if (old != nullptr) deallocate(old, old_capacity);
  }
  /// Append whatever can be iterated over here.
  template <std::ranges::input_range R>
  requires(std::convertible_to<std::ranges::range_reference_t<R>, T> &&
           !detail::owning_element<T>) void append_range(R&& r) {
    if constexpr (std::ranges::contiguous_range<R> && std::ranges::sized_range<R> &&
                  std::is_same_v<std::ranges::range_value_t<R>, T>) {
      append(std::span<const T>(std::ranges::data(r), std::ranges::size(r)));
    } else {
      if constexpr (std::ranges::sized_range<R>) {
        const auto n = static_cast<std::uint64_t>(std::ranges::size(r));
        if (n > capacity_ - size_) grow_to(size_ + n);
      }
      for (auto&& x : r) push_back(static_cast<T>(x));
    }
  }

  /// Let any number of threads append @p at_most elements at most. Until end_append the vector itself must be
  /// left alone, though it may be moved.
  global_appender<T> begin_append(std::uint64_t at_most) requires(!detail::owning_element<T>) {
    reserve(size_ + at_most);
    global_appender<T> a;
    a.data_ = at_;
    a.capacity_ = size_ + at_most;
    a.next_ = global_new<std::uint64_t>(size_);
    return a;
  }
  /// When all appending threads are joined: what they appended belongs to the vector.
  void end_append(const global_appender<T>& a) {
    check();
    const std::uint64_t n = atomic_load(a.next_);
    size_ = n < a.capacity_ ? n : a.capacity_;
    global_delete(a.next_);
  }

 private:
  friend struct codec<global_vector>;
  using base::at_, base::size_, base::run_, base::check;
  void forget() noexcept {
    base::operator=({});
    capacity_ = 0;
  }
  void destroy_from(std::uint64_t first) noexcept {
    const std::uint64_t n = std::exchange(size_, first) - first;
    detail::destroy_elements<T>({at_ + static_cast<std::ptrdiff_t>(first), n});
  }
  void take(global_vector& other) noexcept {
    base::operator=(other);
    capacity_ = other.capacity_;
    other.forget();
  }
  /// At least doubled, and not absurdly small.
  std::uint64_t larger(std::uint64_t n) const noexcept {
    const std::uint64_t doubled = capacity_ != 0 ? capacity_ * 2 : 64 / sizeof(T) + 1;
    return n > doubled ? n : doubled;
  }
  void grow_to(std::uint64_t n) { move_to(larger(n)); }
  /// New memory with the same contents; the old one remains.
  void replace(std::uint64_t capacity) {
    const global_ptr<T> to = allocate<T>(capacity, how_, alignof(T) > 64 ? alignof(T) : 64);
    if (size_ != 0) memcpy(to, at_, size_ * sizeof(T));
    at_ = to;
    capacity_ = capacity;
    run_ = detail::hot_run();
  }
  void move_to(std::uint64_t capacity) {
    const global_ptr<T> old = at_;
    const std::uint64_t old_capacity = capacity_;
    replace(capacity);
    if (old_capacity != 0) deallocate(old, old_capacity);
  }

  std::uint64_t capacity_ = 0;
  distribution how_;
};

/// As an argument or result the ownership travels.
template <class T>
struct codec<global_vector<T>> {
  static void write(writer& w, global_vector<T>& v) {
    if (w.again()) detail::owner_taken_twice("global_vector");  // else it would be nobody's
    if (v.capacity_ != 0) w.hands_over();
    w.put<typename global_vector<T>::base>(v);
    w.put(v.capacity_);
    w.put(v.how_);
    v.forget();
  }
  static global_vector<T> read(reader& r) {
    if (r.again()) detail::owner_taken_twice("global_vector");
    global_vector<T> v;
    using elements = typename global_vector<T>::base;
    static_cast<elements&>(v) = r.get<elements>();
    v.capacity_ = r.get<std::uint64_t>();
    v.how_ = r.get<distribution>();
    return v;
  }
};

template <class T>
inline constexpr bool relocatable<global_vector<T>> = true;

}  // namespace godwit
