// global_array<T>: a fixed number of objects in global memory, with one owner.
//
//   gw::global_array<double> a(n, gw::distribution::blocked(), 0.0);
//   gw::spawn([s = a.span()] { s[0] = 1; }).join();     // closures capture the span, which does not own
//
// Three words, plain bytes: lies in the frame of a thread and moves along with it. Move-only: move it into
// threads, pass and return it; capturing it by copy does not compile. Destroying it frees the memory. Outside
// its run it is empty in effect: destroying it is nothing, using it is a std::logic_error. Who still holds a
// span then, or after the owner is gone, holds nothing. Tests: tests/global/array_test.cpp. See
// docs/containers.md.
#pragma once

#include <godwit/detail/global_elements.hpp>
#include <godwit/detail/global_owner.hpp>
#include <godwit/global_memory.hpp>
#include <godwit/global_span.hpp>
#include <godwit/move.hpp>
#include <godwit/task.hpp>

#include <cstdint>
#include <utility>

namespace godwit {

namespace detail {

/// Bytes that one thread fills or copies in one go: larger than what a steal costs, small beside the cache.
inline constexpr std::uint64_t owner_grain_bytes = 256 << 10;

template <class T>
void fill_parallel(global_span<T> s, const T& value) {
  constexpr std::uint64_t grain = owner_grain_bytes / sizeof(T) + 1;
  if (s.size() <= grain) {
    auto open = s.checkout(access::write);
    for (T& x : open) x = value;
    return;
  }
  const std::uint64_t half = s.size() / 2;
  invoke([s, half, value] { fill_parallel(s.first(half), value); },
         [s, half, value] { fill_parallel(s.subspan(half), value); });
}

/// Elements that own something: as they are before anybody has given them anything.
template <class T>
void fill_empty(global_span<T> s) {
  fill_parallel<owned_bytes<T>>({owned_bytes<T>::at(s.data()), s.size()}, owned_bytes<T>::empty());
}
/// Function objects that make elements from their index.
template <class F, class T>
concept makes_elements = owning_element<T> && std::is_invocable_r_v<T, const F&, std::uint64_t>;

/// What global_array and global_vector (@p Grows) have in common: memory of a run, and how its elements are
/// reached.
template <class T, bool Grows>
class global_elements {
  static_assert((require_global_element<T>(), true));

 public:
  using element_type = T;
  using value_type = T;
  using size_type = std::uint64_t;
  using iterator = global_ptr<T>;
  using const_iterator = global_ptr<const T>;

  std::uint64_t size() const noexcept { return size_; }
  std::uint64_t size_bytes() const noexcept { return size_ * sizeof(T); }
  bool empty() const noexcept { return size_ == 0; }

  // All of these throw std::logic_error when the run is over.
  [[gnu::always_inline]] global_ptr<T> data() {
    check();
    return at_;
  }
  [[gnu::always_inline]] global_ptr<const T> data() const {
    check();
    return at_;
  }
  global_span<T> span() { return {data(), size_}; }
  global_span<const T> span() const { return {data(), size_}; }
  operator global_span<T>() { return span(); }              // NOLINT: implicit on purpose
  operator global_span<const T>() const { return span(); }  // NOLINT
  global_ptr<T> begin() { return data(); }
  global_ptr<T> end() { return data() + static_cast<std::ptrdiff_t>(size_); }
  global_ptr<const T> begin() const { return data(); }
  global_ptr<const T> end() const { return data() + static_cast<std::ptrdiff_t>(size_); }

  /// Not checked. Read by get, written by put; for more than single elements use checkout or the algorithms.
  [[gnu::always_inline]] global_ref<T> operator[](std::uint64_t i) {
    return data()[static_cast<std::ptrdiff_t>(i)];
  }
  [[gnu::always_inline]] global_ref<const T> operator[](std::uint64_t i) const {
    return data()[static_cast<std::ptrdiff_t>(i)];
  }
  /// Throws std::out_of_range.
  global_ref<T> at(std::uint64_t i) {
    if (i >= size_) index_out_of_range(what, i, size_);
    return (*this)[i];
  }
  global_ref<const T> at(std::uint64_t i) const {
    if (i >= size_) index_out_of_range(what, i, size_);
    return (*this)[i];
  }
  global_ref<T> front() { return *data(); }
  global_ref<const T> front() const { return *data(); }
  global_ref<T> back() { return (*this)[size_ - 1]; }
  global_ref<const T> back() const { return (*this)[size_ - 1]; }

  /// checkout of all of it; of parts: span().subspan(i, n).checkout(mode).
  template <class Mode>
  auto checkout(Mode mode, place where = place::here()) {
    return span().checkout(mode, where);
  }
  template <class Mode>
  auto checkout(Mode mode, place where = place::here()) const {
    return span().checkout(mode, where);
  }

  /// Elements [first, first + n) go to worker @p to, with all that lies in the same movable parts. gw::move
  /// says the rest. Until it has ended (join) the memory must stay: no growing, no destruction.
  future<move_result> move(std::uint64_t first, std::uint64_t n, std::uint32_t to,
                           place where = place::here()) {
    if (n > size_ || first > size_ - n) index_out_of_range(what, first + n, size_);
    return godwit::move(data() + static_cast<std::ptrdiff_t>(first), n, to, where);
  }

 protected:
  static constexpr const char* what = Grows ? "global_vector" : "global_array";
  void check() const {
    if (at_ != nullptr) require_run(run_, what);
  }
  /// There is memory, and it is not gone with its run.
  bool alive() const noexcept { return at_ != nullptr && run_ == hot_run(); }

  global_ptr<T> at_;
  std::uint64_t size_ = 0;
  std::uint32_t run_ = 0;
};

}  // namespace detail

/// size, data, span, iterators, elements, checkout: detail::global_elements.
template <class T>
class global_array : public detail::global_elements<T, false> {
  static_assert(!std::is_const_v<T>,
                "godwit::global_array<const T>: make it of T and hand out global_span<const T>");
  using base = detail::global_elements<T, false>;

 public:
  /// Nothing; allocates nothing. What a global variable should be.
  constexpr global_array() noexcept = default;
  /// Room for @p n objects, contents undefined (zero only if the memory is fresh); elements that own
  /// something are default-constructed, by as many threads as are worth it. Throws what allocate throws.
  /// Cost: allocate's.
  explicit global_array(std::uint64_t n, const distribution& d = distribution::blocked(),
                        detail::place where = detail::place::here()) {
    if (n == 0) return;
    at_ = allocate<T>(n, d, alignof(T) > 64 ? alignof(T) : 64, where);
    size_ = n;
    run_ = detail::hot_run();
    if constexpr (detail::owning_element<T>) {
      try {
        detail::fill_empty<T>(this->span());  // throws in a cancelled scope
      } catch (...) {
        deallocate(this->at_, n);
        throw;
      }
    }
  }
  /// @p n copies of @p value, written by as many threads as are worth it: the calling thread may go on at
  /// another worker.
  global_array(std::uint64_t n, const distribution& d, const T& value,
               detail::place where = detail::place::here()) requires(!detail::owning_element<T>)
      : global_array(n, d, where) {
    detail::fill_parallel<T>(this->span(), value);
  }
  /// Of elements that own something: element i is `make(i)`, called by the worker that is its home, all
  /// workers at once. make must be plain bytes, and must not spawn or join (found out). If it throws, all are
  /// destroyed, and its text comes out: in a global_bad_alloc if it was one, else in a std::runtime_error.
  /// Cost: a message per worker.
  template <detail::makes_elements<T> F>
  global_array(std::uint64_t n, const distribution& d, const F& make,
               detail::place where = detail::place::here())
      : global_array(n, d, where) {
    detail::make_elements<T>(this->span(), make);
  }

  global_array(const global_array&) = delete;  // godwit: not copied: capture its span(), or move it
  global_array& operator=(const global_array&) = delete;  // godwit: copy_n the contents, or move it
  global_array(global_array&& other) noexcept : base(std::exchange<base>(other, {})) {}
  global_array& operator=(global_array&& other) noexcept {
    if (this != &other) {
      reset();
      base::operator=(std::exchange<base>(other, {}));
    }
    return *this;
  }
  ~global_array() { reset(); }

  /// Free the memory now; empty afterwards. Elements that own something are destroyed, if they are many by
  /// their homes: the calling thread may go on at another worker. Cost: deallocate's.
  void reset() noexcept {
    if (this->alive()) {
      detail::destroy_elements<T>(this->span());
      deallocate(at_, size_);
    }
    forget();
  }
  /// Give up the memory without freeing it; who takes it frees it by deallocate(s.data(), s.size()), or
  /// adopts it.
  [[nodiscard]] global_span<T> release() {
    const global_span<T> s = this->span();
    forget();
    return s;
  }
  /// The owner of what release() or allocate gave.
  static global_array adopt(global_span<T> s) noexcept {
    global_array a;
    if (s.empty()) return a;
    a.at_ = s.data();
    a.size_ = s.size();
    a.run_ = detail::hot_run();
    return a;
  }
  void swap(global_array& other) noexcept { std::swap(static_cast<base&>(*this), static_cast<base&>(other)); }
  friend void swap(global_array& a, global_array& b) noexcept { a.swap(b); }

 private:
  friend struct codec<global_array>;
  using base::at_, base::size_, base::run_;
  void forget() noexcept { base::operator=({}); }
};

/// As an argument or result the ownership travels.
template <class T>
struct codec<global_array<T>> {
  static void write(writer& w, global_array<T>& a) {
    if (w.again()) detail::owner_taken_twice("global_array");  // else it would be nobody's
    if (!a.empty()) w.hands_over();
    w.put<typename global_array<T>::base>(a);
    a.forget();
  }
  static global_array<T> read(reader& r) {
    if (r.again()) detail::owner_taken_twice("global_array");
    global_array<T> a;
    using elements = typename global_array<T>::base;
    static_cast<elements&>(a) = r.get<elements>();
    return a;
  }
};

template <class T>
inline constexpr bool relocatable<global_array<T>> = true;

}  // namespace godwit
