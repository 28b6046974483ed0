// sort, stable_sort, merge: parallel merge sort with parallel merges. See docs/algorithms.md.
// Tests: tests/algorithm/sort_test.cpp.
//
// Leaves of some thousand elements are sorted by std::sort or std::stable_sort in place; merges go to and fro
// between the range and as much temporary global memory. A merge is cut in two where the halves of its result
// begin, found by binary search, so all leaves have the same size. Sizes depend on n only: so do results,
// also of equal elements.
#pragma once

#include <godwit/algorithm/blocks.hpp>

namespace godwit {

namespace detail {

/// Comparison of projected elements.
template <class Less, class Projection>
struct projected_less {
  [[no_unique_address]] Less less;
  [[no_unique_address]] Projection projection;
  template <class A, class B>
  [[gnu::always_inline]] bool operator()(const A& a, const B& b) {
    if constexpr (std::is_same_v<Projection, std::identity>)
      return static_cast<bool>(std::invoke(less, a, b));
    else
      return static_cast<bool>(std::invoke(less, std::invoke(projection, a), std::invoke(projection, b)));
  }
};

/// Stable: of equal elements those of @p a come first.
template <class T, class V, class Out, class Less>
void merge_plainly(const T* a, const T* a_end, const V* b, const V* b_end, Out* to, Less& less) {
  while (a != a_end && b != b_end) {
    if (less(*b, *a))
      *to++ = static_cast<Out>(*b++);
    else
      *to++ = static_cast<Out>(*a++);
  }
  to = std::copy(a, a_end, to);
  std::copy(b, b_end, to);
}

/// How many of the first @p k elements of the merged result come from a. get_a(i), get_b(j): elements.
template <class A, class B, class Less>
std::uint64_t merge_cut(std::uint64_t na, std::uint64_t nb, std::uint64_t k, A get_a, B get_b, Less& less) {
  std::uint64_t low = k > nb ? k - nb : 0;
  std::uint64_t high = std::min(k, na);
  while (low < high) {
    const std::uint64_t i = low + (high - low) / 2;  // a[i] or b[k - i - 1]: which is earlier in the result?
    if (less(get_b(k - i - 1), get_a(i)))
      high = i;
    else
      low = i + 1;
  }
  return low;
}

/// Small elements: the one that comes next is chosen without a branch, since nobody can predict it. Each
/// choice waits for the one before; so several parts of the result are made at the same time, step by step in
/// turn.
template <class T, class Less>
void merge_interleaved(const T* a, std::uint64_t na, const T* b, std::uint64_t nb, T* to, Less& less) {
  constexpr std::uint64_t parts = 4;
  const std::uint64_t n = na + nb;
  std::uint64_t cut[parts + 1];
  cut[0] = 0;
  cut[parts] = na;
  for (std::uint64_t w = 1; w < parts; ++w)
    cut[w] = merge_cut(
        na, nb, n * w / parts, [a](std::uint64_t i) { return a[i]; }, [b](std::uint64_t j) { return b[j]; },
        less);
  struct part {
    const T *a, *a_end, *b, *b_end;
    T* to;
  } part[parts];
  for (std::uint64_t w = 0; w < parts; ++w)
    part[w] = {a + cut[w], a + cut[w + 1], b + (n * w / parts - cut[w]),
               b + (n * (w + 1) / parts - cut[w + 1]), to + n * w / parts};
  const auto step = [&less](const T*& x, const T*& y, T*& out) __attribute__((always_inline)) {
    const T p = *x, q = *y;
    const bool second = less(q, p);
    *out++ = second ? q : p;
    y += second;
    x += !second;
  };
  for (;;) {
    // As many steps as all parts can do without running out of either side.
    std::ptrdiff_t steps = part[0].a_end - part[0].a;
    for (const auto& m : part) steps = std::min({steps, m.a_end - m.a, m.b_end - m.b});
    if (steps == 0) break;
    const T *a0 = part[0].a, *b0 = part[0].b, *a1 = part[1].a, *b1 = part[1].b;
    const T *a2 = part[2].a, *b2 = part[2].b, *a3 = part[3].a, *b3 = part[3].b;
    T *t0 = part[0].to, *t1 = part[1].to, *t2 = part[2].to, *t3 = part[3].to;
    for (std::ptrdiff_t i = 0; i < steps; ++i) {
      step(a0, b0, t0);
      step(a1, b1, t1);
      step(a2, b2, t2);
      step(a3, b3, t3);
    }
    part[0].a = a0, part[0].b = b0, part[0].to = t0;
    part[1].a = a1, part[1].b = b1, part[1].to = t1;
    part[2].a = a2, part[2].b = b2, part[2].to = t2;
    part[3].a = a3, part[3].b = b3, part[3].to = t3;
  }
  for (const auto& m : part) merge_plainly(m.a, m.a_end, m.b, m.b_end, m.to, less);
}

template <class T, class V, class Out, class Less>
void merge_here(const T* a, std::uint64_t na, const V* b, std::uint64_t nb, Out* to, Less& less) {
  if constexpr (std::is_same_v<T, V> && std::is_same_v<T, Out> && sizeof(T) <= 16) {
    if (na + nb >= 64) {
      merge_interleaved(a, na, b, nb, to, less);
      return;
    }
  }
  merge_plainly(a, a + na, b, b + nb, to, less);
}

/// Two sorted ranges and where the result goes. Never holds a checkout across a spawn.
template <class T, class V, class Out>
struct merge_job {
  global_ptr<const T> a;
  std::uint64_t na;
  global_ptr<const V> b;
  std::uint64_t nb;
  global_ptr<Out> to;
};

template <class T, class V, class Out, class Less>
[[gnu::noinline]] void merge_leaf(const merge_job<T, V, Out>& m, Less less) {
  if (global_is_plain()) [[likely]] {
    merge_here(global_raw<const T>(m.a.address()), m.na, global_raw<const V>(m.b.address()), m.nb,
               global_raw<Out>(m.to.address()), less);
    return;
  }
  const auto a = checkout(m.a, m.na, access::read);
  const auto b = checkout(m.b, m.nb, access::read);
  const auto to = checkout(m.to, m.na + m.nb, access::write);
  merge_here(a.data(), m.na, b.data(), m.nb, to.data(), less);
}

template <class T, class V, class Out, class Less>
void merge_all(const merge_job<T, V, Out>& m, std::uint64_t most, const Less& less) {
  const std::uint64_t n = m.na + m.nb;
  if (n <= most) {
    merge_leaf(m, less);
    return;
  }
  const std::uint64_t k = n / 2;
  Less own(less);
  const std::uint64_t i = merge_cut(
      m.na, m.nb, k, [&m](std::uint64_t at) { return get(m.a + static_cast<std::ptrdiff_t>(at)); },
      [&m](std::uint64_t at) { return get(m.b + static_cast<std::ptrdiff_t>(at)); }, own);
  const auto di = static_cast<std::ptrdiff_t>(i);
  const auto dj = static_cast<std::ptrdiff_t>(k - i);
  const merge_job<T, V, Out> left{m.a, i, m.b, k - i, m.to};
  const merge_job<T, V, Out> right{m.a + di, m.na - i, m.b + dj, m.nb - (k - i),
                                   m.to + static_cast<std::ptrdiff_t>(k)};
  invoke([left, most, less] { merge_all(left, most, less); }, [&] { merge_all(right, most, less); });
}

/// Elements of one leaf: of sorting up to 32 KiB, of merging up to 64 KiB; fewer elements if there are few.
template <class T>
std::uint64_t sort_grain(std::uint64_t n, grain g) noexcept {
  if (g.elements != 0) return g.elements;
  const std::uint64_t most = std::max<std::uint64_t>(32768 / sizeof(T), 1);
  return std::clamp<std::uint64_t>(n / 256, std::min<std::uint64_t>(1024, most), most);
}
template <class T>
std::uint64_t merge_grain(std::uint64_t n, grain g) noexcept {
  if (g.elements != 0) return g.elements;
  const std::uint64_t most = std::max<std::uint64_t>(65536 / sizeof(T), 1);
  return std::clamp<std::uint64_t>(n / 256, std::min<std::uint64_t>(1024, most), most);
}

template <bool Stable, class T, class Less>
[[gnu::noinline]] void sort_leaf(global_ptr<T> p, std::uint64_t n, Less less) {
  const auto sort_here = [&](std::uint64_t, std::uint64_t count, T* first) {
    if constexpr (Stable)
      std::stable_sort(first, first + count, less);
    else
      std::sort(first, first + count, less);
  };
  leaf<false>(0, n, sort_here, updating(global_span<T>(p, n)));
}

/// One range to sort: elements lie at p; the result goes to p, or to other.
template <class T>
struct sort_job {
  global_ptr<T> p, other;
  std::uint64_t n;
  std::uint64_t sort_most, merge_most;
};

template <bool Stable, class T, class Less>
void sort_all(const sort_job<T>& j, bool to_other, const Less& less) {
  if (j.n <= j.sort_most) {
    sort_leaf<Stable>(j.p, j.n, less);
    if (to_other) copy_n<T>(j.p, j.n, j.other);
    return;
  }
  const std::uint64_t half = j.n / 2;
  const auto d = static_cast<std::ptrdiff_t>(half);
  const sort_job<T> left{j.p, j.other, half, j.sort_most, j.merge_most};
  const sort_job<T> right{j.p + d, j.other + d, j.n - half, j.sort_most, j.merge_most};
  invoke([left, to_other, less] { sort_all<Stable>(left, !to_other, less); },
         [&] { sort_all<Stable>(right, !to_other, less); });
  const global_ptr<T> from = to_other ? j.p : j.other;
  merge_all(merge_job<T, T, T>{from, half, from + d, j.n - half, to_other ? j.other : j.p}, j.merge_most,
            less);
}

template <bool Stable, class T, class Less>
void sort_span(global_span<T> s, const Less& less, grain g) {
  require_global_value<T>();
  static_assert(!std::is_const_v<T>, "godwit: sort was given const elements");
  require_function<Less>();
  const std::uint64_t n = s.size();
  const std::uint64_t most = sort_grain<T>(n, g);
  if (n <= most) {
    if (n > 1) sort_leaf<Stable>(s.data(), n, less);
    return;
  }
  const scratch<T> other(n);
  sort_all<Stable>(sort_job<T>{s.data(), other.data(), n, most, merge_grain<T>(n, g)}, false, less);
}

}  // namespace detail

/// Sort by less(projection(x), projection(y)). Neither may spawn. After an exception from them it is
/// unspecified which elements the range has. Of equal elements the order is unspecified, but the same on
/// every schedule. Cost: n log n comparisons, as much temporary global memory as the range has. Throws
/// global_bad_alloc.
template <detail::global_range R, detail::not_grain Less = std::less<>,
          detail::not_grain Projection = std::identity>
void sort(R&& r, Less less = {}, Projection projection = {}, grain g = {}) {
  detail::sort_span<false>(detail::span_of(r), detail::projected_less<Less, Projection>{less, projection}, g);
}
template <detail::global_range R>
void sort(R&& r, grain g) {
  godwit::sort(r, std::less<>(), std::identity(), g);
}
template <class T, class... More>
void sort(global_ptr<T> first, global_ptr<T> last, More... more) {
  godwit::sort(global_span<T>(first, last), more...);
}
/// The same, and equal elements keep their order.
template <detail::global_range R, detail::not_grain Less = std::less<>,
          detail::not_grain Projection = std::identity>
void stable_sort(R&& r, Less less = {}, Projection projection = {}, grain g = {}) {
  detail::sort_span<true>(detail::span_of(r), detail::projected_less<Less, Projection>{less, projection}, g);
}
template <detail::global_range R>
void stable_sort(R&& r, grain g) {
  godwit::stable_sort(r, std::less<>(), std::identity(), g);
}
template <class T, class... More>
void stable_sort(global_ptr<T> first, global_ptr<T> last, More... more) {
  godwit::stable_sort(global_span<T>(first, last), more...);
}

/// Merge two sorted ranges to @p out, which overlaps neither. Of equal elements those of @p a come first.
/// less must not spawn. Gives back the end of what was written. Cost: n comparisons and, per leaf, a binary
/// search with 2 log n gets.
template <detail::global_range A, detail::global_range B, detail::output_place O,
          detail::not_grain Less = std::less<>>
auto merge(A&& a, B&& b, O&& out, Less less = {}, grain g = {}) {
  using T = detail::value_of<A>;
  using V = detail::value_of<B>;
  detail::require_global_value<T>();
  detail::require_global_value<V>();
  const auto s = detail::span_of(a);
  const auto t = detail::span_of(b);
  const auto to = detail::pointer_of(out);
  using U = typename decltype(to)::value_type;
  const std::uint64_t n = s.size() + t.size();
  const detail::projected_less<Less, std::identity> by{less, {}};
  detail::require_function<Less>();
  if (n != 0)
    detail::merge_all(detail::merge_job<T, V, U>{s.data(), s.size(), t.data(), t.size(), to},
                      detail::merge_grain<U>(n, g), by);
  return to + static_cast<std::ptrdiff_t>(n);
}
template <class T, class V, detail::output_place O, class Less = std::less<>>
auto merge(global_ptr<T> first1, global_ptr<T> last1, global_ptr<V> first2, global_ptr<V> last2, O&& out,
           Less less = {}, grain g = {}) {
  return godwit::merge(global_span<T>(first1, last1), global_span<V>(first2, last2), out, std::move(less), g);
}

}  // namespace godwit
