// Where an NPB program runs: in plain memory, in one thread or several; or in Godwit, on global memory. The
// programs are templates over these two, so that memory and the parallel loop are all that differs.
//
// A world has arrays (array, with span() and parts of spans that are checked out) and one loop, sum.
// Indices of a loop are those of items of the arrays (planes, rows); both give neighbouring items to the
// same worker.
#pragma once

#include <algorithm>
#include <barrier>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <thread>
#include <type_traits>
#include <vector>

#include "../global/parts.hpp"

namespace npb {

namespace gw = godwit;

/// The result of a loop that has none.
struct nothing {
  friend nothing operator+(nothing, nothing) noexcept { return {}; }
};

/// What gw::global_span is there, as far as the programs need it.
template <class T>
class plain_span {
 public:
  plain_span() = default;
  plain_span(T* data, std::uint64_t n) : data_(data), n_(n) {}
  std::uint64_t size() const noexcept { return n_; }
  T* data() const noexcept { return data_; }
  T& operator[](std::uint64_t i) const noexcept { return data_[i]; }
  plain_span subspan(std::uint64_t i, std::uint64_t n) const noexcept { return {data_ + i, n}; }
  template <class Mode>
  auto checkout(Mode) const noexcept {
    return std::span<std::conditional_t<std::is_same_v<Mode, gw::access::read_t>, const T, T>>(data_, n_);
  }

 private:
  T* data_ = nullptr;
  std::uint64_t n_ = 0;
};

template <class T>
class plain_array {
 public:
  plain_array() = default;
  explicit plain_array(std::uint64_t n) : data_(std::make_unique_for_overwrite<T[]>(n)), n_(n) {}
  plain_span<T> span() const noexcept { return {data_.get(), n_}; }

 private:
  std::unique_ptr<T[]> data_;
  std::uint64_t n_ = 0;
};

/// Plain memory. A loop is cut into as many equal parts as there are threads; they meet at its ends. With
/// one thread it is a call.
class plain {
 public:
  template <class T>
  using array = plain_array<T>;
  template <class T>
  using span = plain_span<T>;

  explicit plain(unsigned threads) : gate_(static_cast<std::ptrdiff_t>(threads)), threads_(threads) {
    for (unsigned t = 1; t < threads; ++t)
      others_.emplace_back([this, t] {
        me_ = t;
        for (gate_.arrive_and_wait(); work_; gate_.arrive_and_wait()) {
          work_(t);
          gate_.arrive_and_wait();
        }
      });
  }
  plain(const plain&) = delete;
  ~plain() {
    work_ = nullptr;
    gate_.arrive_and_wait();
    for (auto& t : others_) t.join();
  }

  unsigned workers() const noexcept { return threads_; }
  /// Who executes the caller, below workers().
  static unsigned me() noexcept { return me_; }

  template <class T>
  array<T> make(std::uint64_t items, std::uint64_t width) const {
    return array<T>(items * width);
  }

  /// The sum of f(low, high) for parts of [0, items).
  template <class R, class Span, class F>
  R sum(const Span&, std::uint64_t items, std::uint64_t, const F& f) {
    if (threads_ == 1) return f(std::uint64_t{0}, items);
    struct alignas(64) part {
      R value;
    };
    std::vector<part> parts(threads_);
    work_ = [&](unsigned t) { parts[t].value = f(items * t / threads_, items * (t + 1) / threads_); };
    gate_.arrive_and_wait();
    work_(0);
    gate_.arrive_and_wait();
    R all = parts[0].value;
    for (unsigned t = 1; t < threads_; ++t) all = all + parts[t].value;
    return all;
  }

  template <class F>
  static parts::phase measured(const F& f) {
    return parts::measured_plain(f);
  }

 private:
  std::barrier<> gate_;
  unsigned threads_;
  std::function<void(unsigned)> work_;
  std::vector<std::thread> others_;
  inline static thread_local unsigned me_ = 0;
};

/// Global memory; in a run. Arrays are dealt out to the workers in equal parts.
class in_godwit {
 public:
  template <class T>
  using array = gw::global_array<T>;
  template <class T>
  using span = gw::global_span<T>;

  static unsigned workers() noexcept { return gw::worker_count(); }
  static unsigned me() noexcept { return gw::worker_id(); }

  template <class T>
  array<T> make(std::uint64_t items, std::uint64_t width) const {
    const std::uint64_t share = (items + workers() - 1) / workers();
    return array<T>(items * width,
                    gw::distribution::blocked((share * width * sizeof(T) + 4095) / 4096 * 4096));
  }

  /// The sum of f(low, high) for pieces of @p grain items, which are threads: a worker prefers those whose
  /// part of @p beside is its own. The order of additions depends on @p items and @p grain only.
  template <class R, class Span, class F>
  static R sum(const Span& beside, std::uint64_t items, std::uint64_t grain, const F& f) {
    const std::uint64_t size = std::max<std::uint64_t>(grain, 1);
    return gw::transform_reduce(
        gw::indices((items + size - 1) / size).near(beside), R(), std::plus<>(),
        [=](std::uint64_t piece) { return f(piece * size, std::min(items, (piece + 1) * size)); },
        gw::grain{1});
  }

  template <class F>
  static parts::phase measured(const F& f) {
    return parts::measured(f);
  }
};

/// f(low, high) for parts of [0, items).
template <class World, class Span, class F>
void each(World& world, const Span& beside, std::uint64_t items, std::uint64_t grain, const F& f) {
  world.template sum<nothing>(beside, items, grain, [f](std::uint64_t low, std::uint64_t high) {
    f(low, high);
    return nothing();
  });
}

}  // namespace npb
