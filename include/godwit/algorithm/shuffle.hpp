// reverse, shuffle: other orders. See docs/algorithms.md. Tests: tests/algorithm/shuffle_test.cpp.
#pragma once

#include <godwit/algorithm/for_each.hpp>
#include <godwit/global_access.hpp>

#include <span>

namespace godwit {

/// Turn the order around. n / 2 exchanges.
template <detail::global_range R>
void reverse(R&& r, grain g = {}) {
  using T = detail::value_of<R>;
  const auto s = detail::span_of(r);
  const std::uint64_t half = s.size() / 2;
  const std::uint64_t block = detail::grain_by_workers(half, g, detail::most_in_leaf<T>());
  detail::for_ranges(half, block, [s](std::uint64_t at, std::uint64_t n) {
    const auto exchange = [](std::uint64_t, std::uint64_t m, T* x, T* y) {
      for (std::uint64_t i = 0; i < m; ++i) std::swap(x[i], y[m - 1 - i]);
    };
    const auto low = s.subspan(at, n), high = s.subspan(s.size() - at - n, n);
    detail::leaf<false>(0, n, exchange, detail::updating(low), detail::updating(high));
  });
}
template <class T>
void reverse(global_ptr<T> first, global_ptr<T> last, grain g = {}) {
  godwit::reverse(global_span<T>(first, last), g);
}

namespace detail {

/// Random numbers by counting: number i of a stream can be had at once. (The finaliser of splitmix64.)
struct counted_random {
  std::uint64_t seed;
  std::uint64_t operator()(std::uint64_t i) const noexcept {
    std::uint64_t x = seed + (i + 1) * 0x9e3779b97f4a7c15u;
    x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
    x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
    return x ^ (x >> 31);
  }
  /// Number i, less than @p n.
  std::uint64_t below(std::uint64_t i, std::uint64_t n) const noexcept {
    return static_cast<std::uint64_t>(static_cast<unsigned __int128>((*this)(i)) * n >> 64);
  }
};

template <class T>
[[gnu::noinline]] void shuffle_leaf(global_ptr<T> p, std::uint64_t n, counted_random random) {
  const auto exchange = [random](std::uint64_t, std::uint64_t count, T* x) {
    for (std::uint64_t i = count; i > 1; --i) std::swap(x[i - 1], x[random.below(i, i)]);
  };
  leaf<false>(0, n, exchange, updating(global_span<T>(p, n)));
}

/// Every element goes to a bucket by chance; then each bucket is shuffled by itself. Any order is equally
/// likely then. Everything depends on n and the seed alone.
template <class T>
struct shuffler {
  static constexpr std::uint64_t most = std::clamp<std::uint64_t>(262144 / sizeof(T), 64, 32768);

  static void run(global_ptr<T> p, std::uint64_t n, std::uint64_t seed) {
    const counted_random random{seed};
    if (n <= most) {
      shuffle_leaf(p, n, random);
      return;
    }
    const std::uint64_t buckets = std::clamp<std::uint64_t>(n / (most / 2), 2, 256);
    const std::uint64_t block = std::max<std::uint64_t>(n / 512, 4096);
    const std::uint64_t blocks = block_count(n, block);
    const scratch<std::uint64_t> places(blocks * buckets + 1);
    const global_ptr<std::uint64_t> place = places.data();
    {
      const scratch<T> memory(n);
      const global_ptr<T> other = memory.data();
      // How many of block b go to each bucket; then where they go: bucket by bucket, in the order of the
      // blocks.
      for_blocks(0, blocks, [=](std::uint64_t b) {
        std::uint64_t count[256] = {};
        for (std::uint64_t i = b * block; i < std::min(n, (b + 1) * block); ++i)
          ++count[random.below(i, buckets)];
        put(place + static_cast<std::ptrdiff_t>(b * buckets), count, buckets);
      });
      auto prefix = [=](std::uint64_t, std::uint64_t, std::uint64_t* c) {
        std::uint64_t sum = 0;
        for (std::uint64_t k = 0; k < buckets; ++k)
          for (std::uint64_t b = 0; b < blocks; ++b) sum += std::exchange(c[b * buckets + k], sum);
        c[blocks * buckets] = n;
      };
      leaf<false>(0, blocks * buckets + 1, prefix, update_operand<std::uint64_t>{place.address()});
      for_blocks(0, blocks, [=](std::uint64_t b) {
        deal(p, other, b * block, std::min(block, n - b * block),
             place + static_cast<std::ptrdiff_t>(b * buckets), buckets, random);
      });
      godwit::copy(global_span<T>(other, n), p);
    }
    for_blocks(0, buckets, [=](std::uint64_t k) {
      // Bucket k begins where the first block's part of it does.
      const std::uint64_t begin = get(place + static_cast<std::ptrdiff_t>(k));
      const std::uint64_t end = k + 1 < buckets ? get(place + static_cast<std::ptrdiff_t>(k + 1)) : n;
      run(p + static_cast<std::ptrdiff_t>(begin), end - begin, random(n + k));
    });
  }

 private:
  [[gnu::noinline]] static void deal(global_ptr<T> p, global_ptr<T> other, std::uint64_t at, std::uint64_t n,
                                     global_ptr<std::uint64_t> place, std::uint64_t buckets,
                                     counted_random random) {
    std::uint64_t next[256];
    get(place, next, buckets);
    if (global_is_plain()) [[likely]] {
      const T* from = global_raw<const T>(p.address()) + at;
      T* to = global_raw<T>(other.address());
      for (std::uint64_t i = 0; i < n; ++i) to[next[random.below(at + i, buckets)]++] = from[i];
      return;
    }
    constexpr std::uint64_t piece = 256;
    global_ptr<T> to[piece];
    const auto s = checkout(global_ptr<const T>(p + static_cast<std::ptrdiff_t>(at)), n, access::read);
    for (std::uint64_t i = 0; i < n; i += piece) {
      const std::uint64_t m = std::min(piece, n - i);
      for (std::uint64_t j = 0; j < m; ++j)
        to[j] = other + static_cast<std::ptrdiff_t>(next[random.below(at + i + j, buckets)]++);
      scatter<T>(std::span<const T>(s.data() + i, m), std::span<const global_ptr<T>>(to, m));
    }
  }
};

}  // namespace detail

/// A random order, the same for the same r.size() and @p seed on every schedule and any number of workers;
/// all orders are equally likely. Cost: three moves per element (one, below 32,768 elements), as much
/// temporary global memory as the range.
template <detail::global_range R>
void shuffle(R&& r, std::uint64_t seed) {
  using T = detail::value_of<R>;
  detail::require_global_value<T>();
  const auto s = detail::span_of(r);
  if (s.size() > 1) detail::shuffler<T>::run(s.data(), s.size(), seed);
}
template <class T>
void shuffle(global_ptr<T> first, global_ptr<T> last, std::uint64_t seed) {
  godwit::shuffle(global_span<T>(first, last), seed);
}

}  // namespace godwit
