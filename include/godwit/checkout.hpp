// checkout: a range of global memory as raw, contiguous memory, for as long as one holds it.
//
//   {
//     auto s = gw::checkout(p, n, gw::access::read_write);
//     for (double& x : s) x *= 2;
//   }  // checked in at the brace
//
// The range may cross blocks and homes. Inside the host it is the memory itself; elsewhere a cached copy,
// fetched now and written back at the latest when another worker may see what this thread did. A checkout
// must not be held across a spawn, join, yield or anything else that may let the thread go on elsewhere: that
// ends the run with the place (in debug builds, or with check_global=on, at once; else when the thread really
// leaves). Two checkouts that overlap, one of them writing, are a race: reported with check_global. Source:
// Active global address space; the consistency rules: docs/memory-model.md. Tests:
// tests/global/checkout_test.cpp.
#pragma once

#include <godwit/global_ptr.hpp>

#include <cstddef>
#include <iterator>
#include <span>
#include <stdexcept>
#include <type_traits>
#include <utility>

namespace godwit {

namespace access {
struct read_t {
  static constexpr auto mode = detail::access_mode::read;
};
struct write_t {
  static constexpr auto mode = detail::access_mode::write;
};
struct read_write_t {
  static constexpr auto mode = detail::access_mode::read_write;
};
inline constexpr read_t read{};              ///< as it is
inline constexpr write_t write{};            ///< contents undefined at first: every byte must be written
inline constexpr read_write_t read_write{};  ///< as it is, and what is changed stays
}  // namespace access

/// A range that is checked out; checked in when destroyed or by checkin(). Move-only, never leaves its
/// thread. A contiguous range: begin, end, data, size, [i]; converts to std::span.
template <class T>
class checked_out {
 public:
  using element_type = T;
  using value_type = std::remove_cv_t<T>;

  /// @p got: what detail::global_checkout gave back.
  checked_out(detail::opened got, std::size_t n, detail::access_mode mode) noexcept
      : ticket_(got.ticket), data_(reinterpret_cast<T*>(got.data)), n_(n), mode_(mode) {}
  checked_out(checked_out&& other) noexcept
      : ticket_(other.ticket_),
        data_(std::exchange(other.data_, nullptr)),
        n_(std::exchange(other.n_, 0)),
        mode_(other.mode_) {}
  checked_out& operator=(checked_out&& other) noexcept {
    if (this != &other) {
      checkin();
      ticket_ = other.ticket_;
      data_ = std::exchange(other.data_, nullptr);
      n_ = std::exchange(other.n_, 0);
      mode_ = other.mode_;
    }
    return *this;
  }
  [[gnu::always_inline]] ~checked_out() { checkin(); }

  /// Give it back now. Local; nothing is written back yet.
  [[gnu::always_inline]] void checkin() noexcept {
    if (data_ == nullptr) return;
    data_ = nullptr;
    if (detail::global_is_plain()) [[likely]]
      --detail::hot().checkouts;
    else
      detail::global_checkin(ticket_, n_ * sizeof(T), mode_);
  }

  T* data() const noexcept { return data_; }
  std::size_t size() const noexcept { return n_; }
  bool empty() const noexcept { return n_ == 0; }
  T* begin() const noexcept { return data_; }
  T* end() const noexcept { return data_ + n_; }
  T& operator[](std::size_t i) const noexcept { return data_[i]; }
  operator std::span<T>() const noexcept { return {data_, n_}; }  // NOLINT: implicit on purpose

 private:
  std::uint64_t ticket_;
  T* data_;
  std::size_t n_;
  detail::access_mode mode_;
};

namespace detail {
template <class T, class Mode>
constexpr void require_checkout() {
  require_global_element<T>();
  static_assert(!owning_element<T> || !std::is_same_v<Mode, access::write_t>,
                "godwit::checkout: elements that own memory are not overwritten: access::read_write");
  static_assert(std::is_same_v<Mode, access::read_t> || !std::is_const_v<T>,
                "godwit::checkout: a global_ptr<const T> can be checked out for reading only");
}
[[noreturn, gnu::cold, gnu::noinline]] inline void completed_twice() {
  throw std::logic_error("godwit: this checkout was completed before: begin another one");
}
}  // namespace detail

/// Check out @p n objects from @p p on. Read gives const memory. Throws global_bad_alloc when the range is
/// larger than what the cache can hold (option cache_bytes); what access::write asked for is undefined then,
/// if it is movable. Cost: in the host some ns; else a look-up, and
/// one round trip per home for what is not cached.
template <class T, class Mode>
[[gnu::always_inline]] inline auto checkout(global_ptr<T> p, std::size_t n, Mode,
                                            detail::place where = detail::place::here()) {
  detail::require_checkout<T, Mode>();
  constexpr bool reads = std::is_same_v<Mode, access::read_t>;
  using E = std::conditional_t<reads, const T, T>;
  detail::opened got;
  if (detail::global_is_plain()) [[likely]] {
    ++detail::hot().checkouts;
    got = {detail::global_raw<std::byte>(p.address()), p.address()};
  } else {
    got = detail::global_checkout(p.address(), n * sizeof(T), Mode::mode, where);
  }
  return checked_out<E>(got, n, Mode::mode);
}

namespace detail {
template <class T, class Mode>
auto pinned(global_ptr<T> p, std::size_t n, bool wait, place where) {
  require_global_value<T>();
  constexpr bool reads = std::is_same_v<Mode, access::read_t>;
  static_assert(reads || !std::is_const_v<T>,
                "godwit::pin: a global_ptr<const T> can be pinned for reading only");
  using E = std::conditional_t<reads, const T, T>;
  opened got;
  if (global_is_plain()) [[likely]] {
    ++hot().checkouts;
    got = {global_raw<std::byte>(p.address()), p.address()};
  } else {
    got = global_pin(p.address(), n * sizeof(T), Mode::mode, wait, where);
  }
  return checked_out<E>(got, got.data != nullptr ? n : 0, Mode::mode);
}
}  // namespace detail

/// Check out @p n objects from @p p on that are memory of this host, and hold them here: until they are given
/// back their parts do not move (moves wait for 100 ms, then give up). Waits while a part is between hosts.
/// Throws std::runtime_error if one is another host's: go_to goes there. All that is said of checkouts holds:
/// not across a spawn, join or go_to; several may be held, also of one part. Cost: in the host some ns, and
/// two CPU atomics for each part; no message.
template <class T, class Mode = access::read_write_t>
auto pin(global_ptr<T> p, std::size_t n = 1, Mode = {}, detail::place where = detail::place::here()) {
  return detail::pinned<T, Mode>(p, n, true, where);
}
/// The same, but gives an empty one if that would have to wait or throw.
template <class T, class Mode = access::read_write_t>
auto try_pin(global_ptr<T> p, std::size_t n = 1, Mode = {}, detail::place where = detail::place::here()) {
  return detail::pinned<T, Mode>(p, n, false, where);
}

/// A checkout that was begun: complete() gives it. Move-only, never leaves its thread; destroyed without
/// complete it is given up, which waits for what is under way.
template <class E>
class begun_checkout {
 public:
  begun_checkout(global_ptr<E> p, std::size_t n, detail::access_mode mode)
      : at_(p.address()), n_(n), mode_(mode), open_(true) {
    if (detail::global_is_plain()) [[likely]]
      ++detail::hot().checkouts;
    else
      begun_ = detail::global_checkout_begin(at_, n * sizeof(E), mode);
  }
  begun_checkout(begun_checkout&& other) noexcept
      : at_(other.at_),
        n_(other.n_),
        begun_(other.begun_),
        mode_(other.mode_),
        open_(std::exchange(other.open_, false)) {}
  begun_checkout& operator=(begun_checkout&& other) noexcept {
    if (this != &other) {
      give_up();
      at_ = other.at_;
      n_ = other.n_;
      begun_ = other.begun_;
      mode_ = other.mode_;
      open_ = std::exchange(other.open_, false);
    }
    return *this;
  }
  ~begun_checkout() { give_up(); }

  /// The checkout, when all of it is here. Once, else std::logic_error. Throws what checkout throws. Cost:
  /// what is left to wait for; movable memory, and what has changed meanwhile, is fetched now.
  checked_out<E> complete(detail::place where = detail::place::here()) {
    if (!std::exchange(open_, false)) detail::completed_twice();
    if (begun_ == nullptr) return {{detail::global_raw<std::byte>(at_), at_}, n_, mode_};
    return {detail::global_checkout_complete(begun_, where), n_, mode_};
  }

 private:
  void give_up() noexcept {
    if (!std::exchange(open_, false)) return;
    if (begun_ == nullptr)
      --detail::hot().checkouts;
    else
      detail::global_checkout_abandon(begun_);
  }

  detail::global_address at_;
  std::size_t n_;
  void* begun_ = nullptr;
  detail::access_mode mode_;
  bool open_;
};

/// Begin to check out @p n objects from @p p on, and go on with something else: what other hosts have is
/// under way meanwhile. From here on until what complete() gives is checked in, the thread holds a checkout:
/// no spawn, no join. What is read is at least as new as what was released to this thread before; nobody may
/// write it from here on. Cost: in the host some ns; else no more than posting a request per home.
template <class T, class Mode>
auto checkout_begin(global_ptr<T> p, std::size_t n, Mode) {
  detail::require_checkout<T, Mode>();
  using E = std::conditional_t<std::is_same_v<Mode, access::read_t>, const T, T>;
  return begun_checkout<E>(p, n, Mode::mode);
}

/// The memory itself if all of it is this host's, else null. Never communicates; no checkout: valid while the
/// thread stays on this host and the memory is not freed.
template <class T>
T* try_local(global_ptr<T> p, std::size_t n = 1) noexcept {
  if (detail::global_is_plain()) return detail::global_raw<T>(p.address());
  return reinterpret_cast<T*>(detail::global_try_local(p.address(), n * sizeof(T)));
}

}  // namespace godwit
