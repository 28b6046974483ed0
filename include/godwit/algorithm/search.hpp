// find, count, any_of, equal, is_sorted, min_element and their like: they only read. See docs/algorithms.md.
// Tests: tests/algorithm/search_test.cpp.
#pragma once

#include <godwit/algorithm/reduce.hpp>
#include <godwit/global_atomic.hpp>

#include <atomic>
#include <utility>

namespace godwit {

namespace detail {

/// The first i < n with hit(i, pointers...), or n; no later one is asked.
template <class Hit, class... P>
[[gnu::always_inline]] inline std::uint64_t first_hit(Hit& hit, std::uint64_t n, P... p) {
  std::uint64_t i = 0;
  for (; n - i >= 4; i += 4) {
    if (hit(i, p...)) return i;
    if (hit(i + 1, p...)) return i + 1;
    if (hit(i + 2, p...)) return i + 2;
    if (hit(i + 3, p...)) return i + 3;
  }
  for (; i < n; ++i)
    if (hit(i, p...)) return i;
  return n;
}

/// The first i < n with hit(i, pointers...), or n. Looked for in portions that double, each in parallel: so
/// what lies in front is found soon, by all workers. Leaves behind a place that was found already do nothing,
/// as far as they can know that for free: on the host where the search began.
template <bool Spawns, class Hit, class... Operand>
struct finder {
  std::uint64_t n, grain;
  Hit hit;
  global_ptr<std::uint64_t> found;  ///< what is known of the result. W leaves, by atomics
  std::tuple<Operand...> operands;

  std::uint64_t operator()(std::uint64_t b) const {
    const std::uint64_t at = b * grain;
    std::uint64_t* known = try_local(found);
    if (known != nullptr && std::atomic_ref<std::uint64_t>(*known).load(std::memory_order_relaxed) < at)
      return n;
    std::uint64_t first = n;
    auto piece = [own = hit, &first](std::uint64_t from, std::uint64_t count, auto... p) mutable {
      const std::uint64_t i = first_hit(own, count, p...);
      if (i != count) first = from + i;
      return i == count;
    };
    std::apply([&](const Operand&... o) { leaf<Spawns>(at, std::min(grain, n - at), piece, o...); },
               operands);
    if (first != n) atomic_fetch_min(found, first, std::memory_order_relaxed);
    return first;
  }
  std::uint64_t combine(std::uint64_t a, std::uint64_t b) const noexcept { return std::min(a, b); }
};

template <bool Spawns, class Hit, class... Operand>
std::uint64_t find_position(std::uint64_t n, grain g, const Hit& hit, const Operand&... o) {
  require_function<Hit>();
  if (n == 0) return n;
  const std::uint64_t block = grain_by_workers(n, g, most_in_leaf<typename Operand::value_type...>());
  const std::uint64_t blocks = block_count(n, block);
  const scratch<std::uint64_t> found(1);
  put(found.data(), n);
  const finder<Spawns, Hit, Operand...> body{n, block, hit, found.data(), {o...}};
  std::uint64_t portion = 2 * std::uint64_t{detail::hot_workers()};
  for (std::uint64_t b = 0; b < blocks;) {
    const std::uint64_t end = b + std::min(portion, blocks - b);
    if (const std::uint64_t i = reduce_blocks(b, end, body); i != n) return i;
    b = end;
    portion *= 2;
  }
  return n;
}

/// The first element of a span or index_range for which pred is @p Wanted; its size if there is none.
template <bool Wanted, class S, class Pred>
std::uint64_t find_element(const S& s, const Pred& pred, grain g) {
  return find_position<may_spawn<Pred, value_of<const S&>>>(s.size(), g, element_test<Wanted, Pred>{pred},
                                                            reading(s));
}

/// x == value; an operator of a class is the user's code and might spawn.
template <class V, class T>
struct equals {
  static constexpr bool godwit_never_spawns = std::is_scalar_v<V> && std::is_scalar_v<T>;
  V value;
  bool operator()(const T& x) const { return x == value; }
};

template <class Pred, class T>
struct one_if {
  static constexpr bool godwit_never_spawns = !may_spawn<Pred, T>;
  Pred pred;
  std::uint64_t operator()(const T& x) { return static_cast<bool>(std::invoke(pred, x)) ? 1 : 0; }
};

/// Where a range's element number i is: a global_ptr, or the index itself.
template <class R>
auto place_in(const R& s, std::uint64_t i) {
  if constexpr (is_index_range<R>)
    return s[i];
  else
    return s.data() + static_cast<std::ptrdiff_t>(i);
}

}  // namespace detail

/// The first element for which pred holds, else the end; as a global_ptr, for an index_range as an index.
/// Stops soon after it was found; throws if pred threw for any element looked at. Cost: about as many calls
/// of pred as elements before it, at most twice; n at most.
template <detail::input_range R, class Pred>
auto find_if(R&& r, Pred pred, grain g = {}) {
  const auto s = detail::span_of(r);
  return detail::place_in(s, detail::find_element<true>(s, pred, g));
}
template <class T, class Pred>
global_ptr<T> find_if(global_ptr<T> first, global_ptr<T> last, Pred pred, grain g = {}) {
  return godwit::find_if(global_span<T>(first, last), std::move(pred), g);
}
template <detail::input_range R, class Pred>
auto find_if_not(R&& r, Pred pred, grain g = {}) {
  const auto s = detail::span_of(r);
  return detail::place_in(s, detail::find_element<false>(s, pred, g));
}
template <class T, class Pred>
global_ptr<T> find_if_not(global_ptr<T> first, global_ptr<T> last, Pred pred, grain g = {}) {
  return godwit::find_if_not(global_span<T>(first, last), std::move(pred), g);
}
template <detail::input_range R, class V>
auto find(R&& r, const V& value, grain g = {}) {
  return godwit::find_if(r, detail::equals<V, detail::value_of<R>>{value}, g);
}
template <class T, class V>
global_ptr<T> find(global_ptr<T> first, global_ptr<T> last, const V& value, grain g = {}) {
  return godwit::find(global_span<T>(first, last), value, g);
}

/// Does pred hold for some, all, no elements? Stop like find_if.
template <detail::input_range R, class Pred>
bool any_of(R&& r, Pred pred, grain g = {}) {
  const auto s = detail::span_of(r);
  return detail::find_element<true>(s, pred, g) != s.size();
}
template <detail::input_range R, class Pred>
bool none_of(R&& r, Pred pred, grain g = {}) {
  return !godwit::any_of(r, std::move(pred), g);
}
template <detail::input_range R, class Pred>
bool all_of(R&& r, Pred pred, grain g = {}) {
  const auto s = detail::span_of(r);
  return detail::find_element<false>(s, pred, g) == s.size();
}
template <class T, class Pred>
bool any_of(global_ptr<T> first, global_ptr<T> last, Pred pred, grain g = {}) {
  return godwit::any_of(global_span<T>(first, last), std::move(pred), g);
}
template <class T, class Pred>
bool none_of(global_ptr<T> first, global_ptr<T> last, Pred pred, grain g = {}) {
  return godwit::none_of(global_span<T>(first, last), std::move(pred), g);
}
template <class T, class Pred>
bool all_of(global_ptr<T> first, global_ptr<T> last, Pred pred, grain g = {}) {
  return godwit::all_of(global_span<T>(first, last), std::move(pred), g);
}

/// How many elements satisfy pred, or equal @p value. n calls.
template <detail::input_range R, class Pred>
std::uint64_t count_if(R&& r, Pred pred, grain g = {}) {
  detail::require_function<Pred>();
  return godwit::transform_reduce(r, std::uint64_t{0}, std::plus<>(),
                                  detail::one_if<Pred, detail::value_of<R>>{pred}, g);
}
template <class T, class Pred>
std::uint64_t count_if(global_ptr<T> first, global_ptr<T> last, Pred pred, grain g = {}) {
  return godwit::count_if(global_span<T>(first, last), std::move(pred), g);
}
template <detail::input_range R, class V>
std::uint64_t count(R&& r, const V& value, grain g = {}) {
  return godwit::count_if(r, detail::equals<V, detail::value_of<R>>{value}, g);
}
template <class T, class V>
std::uint64_t count(global_ptr<T> first, global_ptr<T> last, const V& value, grain g = {}) {
  return godwit::count(global_span<T>(first, last), value, g);
}

/// Are the ranges of one length, with pred (by default ==) for all pairs? Stops like find_if.
template <detail::input_range A, detail::input_range B, detail::not_grain Pred = std::equal_to<>>
bool equal(A&& a, B&& b, Pred pred = {}, grain g = {}) {
  const auto s = detail::span_of(a);
  const auto t = detail::span_of(b);
  if (s.size() != t.size()) return false;
  const auto differ = [pred](std::uint64_t i, auto p, auto q) mutable {
    return !std::invoke(pred, p[i], q[i]);
  };
  return detail::find_position<detail::may_spawn<Pred, detail::value_of<A>, detail::value_of<B>>>(
             s.size(), g, differ, detail::reading(s), detail::reading(t)) == s.size();
}
template <class T, class V, detail::not_grain Pred = std::equal_to<>>
bool equal(global_ptr<T> first, global_ptr<T> last, global_ptr<V> second, Pred pred = {}, grain g = {}) {
  const global_span<T> a(first, last);
  return godwit::equal(a, global_span<V>(second, a.size()), std::move(pred), g);
}

/// No element is less than the one before it. Stops like find_if.
template <detail::global_range R, detail::not_grain Less = std::less<>>
bool is_sorted(R&& r, Less less = {}, grain g = {}) {
  const auto s = detail::span_of(r);
  if (s.size() < 2) return true;
  const std::uint64_t pairs = s.size() - 1;
  const auto descends = [less](std::uint64_t i, auto p, auto q) mutable {
    return std::invoke(less, q[i], p[i]);
  };
  return detail::find_position<detail::may_spawn<Less, detail::value_of<R>>>(
             pairs, g, descends, detail::reading(s), detail::reading(detail::span_of(s.subspan(1)))) == pairs;
}
template <class T, detail::not_grain Less = std::less<>>
bool is_sorted(global_ptr<T> first, global_ptr<T> last, Less less = {}, grain g = {}) {
  return godwit::is_sorted(global_span<T>(first, last), std::move(less), g);
}

namespace detail {

/// The least (first of equals) and the greatest, and where they are. @p Last: the last of equally great ones,
/// as std::minmax_element has it; else the first.
template <class T>
struct extremes {
  T least, greatest;
  std::uint64_t least_at, greatest_at;
};

template <bool Spawns, bool Min, bool Max, bool Last, class T, class Less>
struct extremes_search {
  std::uint64_t n, grain;
  Less less;
  read_operand<T> operand;

  extremes<T> operator()(std::uint64_t b) const {
    const std::uint64_t at = b * grain;
    std::optional<extremes<T>> best;
    auto piece = [own = less, &best](std::uint64_t from, std::uint64_t count, const T* p) mutable {
      extremes<T> e = best ? *best : extremes<T>{p[0], p[0], from, from};
      for (std::uint64_t i = best ? 0 : 1; i < count; ++i) {
        if constexpr (Min)
          if (std::invoke(own, p[i], e.least)) e.least = p[i], e.least_at = from + i;
        if constexpr (Max)
          if (Last ? !std::invoke(own, p[i], e.greatest) : std::invoke(own, e.greatest, p[i]))
            e.greatest = p[i], e.greatest_at = from + i;
      }
      best.emplace(e);
    };
    leaf<Spawns>(at, std::min(grain, n - at), piece, operand);
    return *best;
  }
  extremes<T> combine(extremes<T> a, const extremes<T>& b) const {
    Less own(less);
    if constexpr (Min)
      if (std::invoke(own, b.least, a.least)) a.least = b.least, a.least_at = b.least_at;
    if constexpr (Max)
      if (Last ? !std::invoke(own, b.greatest, a.greatest) : std::invoke(own, a.greatest, b.greatest))
        a.greatest = b.greatest, a.greatest_at = b.greatest_at;
    return a;
  }
};

/// Of a range that is not empty.
template <bool Min, bool Max, bool Last, class S, class Less>
auto find_extremes(const S& s, const Less& less, grain g) {
  using T = typename S::value_type;
  require_function<Less>();
  const std::uint64_t block = grain_by_size(s.size(), g, most_in_leaf<T>());
  const extremes_search<may_spawn<Less, T>, Min, Max, Last, T, Less> body{s.size(), block, less, reading(s)};
  return reduce_blocks(0, block_count(s.size(), block), body);
}

}  // namespace detail

/// The first of the least elements; the end if there is none. n comparisons.
template <detail::global_range R, detail::not_grain Less = std::less<>>
auto min_element(R&& r, Less less = {}, grain g = {}) {
  const auto s = detail::span_of(r);
  return s.empty() ? s.end()
                   : detail::place_in(s, detail::find_extremes<true, false, false>(s, less, g).least_at);
}
/// The first of the greatest elements; the end if there is none. n comparisons.
template <detail::global_range R, detail::not_grain Less = std::less<>>
auto max_element(R&& r, Less less = {}, grain g = {}) {
  const auto s = detail::span_of(r);
  return s.empty() ? s.end()
                   : detail::place_in(s, detail::find_extremes<false, true, false>(s, less, g).greatest_at);
}
/// The first of the least and the last of the greatest elements; twice the end if there is none. 2 n
/// comparisons.
template <detail::global_range R, detail::not_grain Less = std::less<>>
auto minmax_element(R&& r, Less less = {}, grain g = {}) {
  const auto s = detail::span_of(r);
  if (s.empty()) return std::pair(s.end(), s.end());
  const auto e = detail::find_extremes<true, true, true>(s, less, g);
  return std::pair(detail::place_in(s, e.least_at), detail::place_in(s, e.greatest_at));
}
/// The values of the least and the greatest element. @p r must not be empty.
template <detail::global_range R, detail::not_grain Less = std::less<>>
auto minmax(R&& r, Less less = {}, grain g = {}) {
  const auto e = detail::find_extremes<true, true, true>(detail::span_of(r), less, g);
  return std::pair(e.least, e.greatest);
}
template <class T, detail::not_grain Less = std::less<>>
global_ptr<T> min_element(global_ptr<T> first, global_ptr<T> last, Less less = {}, grain g = {}) {
  return godwit::min_element(global_span<T>(first, last), std::move(less), g);
}
template <class T, detail::not_grain Less = std::less<>>
global_ptr<T> max_element(global_ptr<T> first, global_ptr<T> last, Less less = {}, grain g = {}) {
  return godwit::max_element(global_span<T>(first, last), std::move(less), g);
}
template <class T, detail::not_grain Less = std::less<>>
auto minmax_element(global_ptr<T> first, global_ptr<T> last, Less less = {}, grain g = {}) {
  return godwit::minmax_element(global_span<T>(first, last), std::move(less), g);
}

}  // namespace godwit
