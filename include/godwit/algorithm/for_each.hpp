// for_each, transform, fill, generate, iota, copy: every element by itself. See docs/algorithms.md for what
// functions may do. Tests: tests/algorithm/for_each_test.cpp.
#pragma once

#include <godwit/algorithm/blocks.hpp>

namespace godwit {

/// f(x) for every element of @p r, in any order and in parallel; f may change it if r's elements are not
/// const. Over an index_range: f(i). Throws what f threw, for the leftmost element that failed; the other
/// leaves have then ended, too. Cost: one call of f per element, one spawn per leaf.
template <detail::input_range R, class F>
void for_each(R&& r, F f, grain g = {}) {
  detail::require_function<F>();
  const auto s = detail::span_of(r);
  if constexpr (detail::is_index_range<std::remove_cvref_t<R>>) {
    using I = typename std::remove_cvref_t<R>::value_type;
    detail::for_leaves<true>(
        s.size(), detail::grain_by_workers(s.size(), g, 2048),
        [f](std::uint64_t, std::uint64_t n, auto p) mutable {
          for (std::uint64_t i = 0; i < n; ++i) std::invoke(f, I(p[i]));
        },
        detail::reading(s));
  } else {
    using T = detail::value_of<R>;
    detail::for_leaves<detail::may_spawn<F, T>>(
        s.size(), detail::grain_by_workers(s.size(), g, detail::most_in_leaf<T>()),
        [f](std::uint64_t, std::uint64_t n, auto* p) mutable {
          for (std::uint64_t i = 0; i < n; ++i) std::invoke(f, p[i]);
        },
        detail::updating(s));
  }
}
template <class T, class F>
void for_each(global_ptr<T> first, global_ptr<T> last, F f, grain g = {}) {
  godwit::for_each(global_span<T>(first, last), std::move(f), g);
}
/// f(i) for 0 <= i < n.
template <std::integral N, class F>
void for_each(N n, F f, grain g = {}) {
  godwit::for_each(indices(n), std::move(f), g);
}

namespace detail {

/// out[i] = f(in[i]...)
template <class F, class U, class... Operand>
global_ptr<U> transform_operands(std::uint64_t n, grain g, const F& f, global_ptr<U> out,
                                 const Operand&... in) {
  require_function<F>();
  for_leaves<may_spawn<F, typename Operand::value_type...>>(
      n, grain_by_workers(n, g, most_in_leaf<typename Operand::value_type..., U>()),
      [f = f](std::uint64_t, std::uint64_t count, U* q, auto... p) mutable {  // an F, not a const F
        for (std::uint64_t i = 0; i < count; ++i) q[i] = static_cast<U>(std::invoke(f, p[i]...));
      },
      writing(out), in...);
  return out + static_cast<std::ptrdiff_t>(n);
}

}  // namespace detail

/// out[i] = f(r[i]). @p out may be r's own memory, or not overlap it at all. Gives back the end of what was
/// written.
template <detail::input_range R, detail::output_place O, detail::not_grain F>
auto transform(R&& r, O&& out, F f, grain g = {}) {
  const auto s = detail::span_of(r);
  return detail::transform_operands(s.size(), g, f, detail::pointer_of(out), detail::reading(s));
}
template <class T, detail::output_place O, detail::not_grain F>
auto transform(global_ptr<T> first, global_ptr<T> last, O&& out, F f, grain g = {}) {
  return godwit::transform(global_span<T>(first, last), out, std::move(f), g);
}
/// out[i] = f(a[i], b[i]), as many as @p a has. @p out may be a's or b's own memory.
template <detail::input_range A, detail::input_range B, detail::output_place O, class F>
auto transform(A&& a, B&& b, O&& out, F f, grain g = {}) {
  const auto s = detail::span_of(a);
  return detail::transform_operands(s.size(), g, f, detail::pointer_of(out), detail::reading(s),
                                    detail::reading(detail::span_of(b)));
}
template <class T, class V, detail::output_place O, class F>
auto transform(global_ptr<T> first, global_ptr<T> last, global_ptr<V> second, O&& out, F f, grain g = {}) {
  const global_span<T> a(first, last);
  return godwit::transform(a, global_span<V>(second, a.size()), out, std::move(f), g);
}

/// Every element becomes @p v.
template <detail::global_range R>
void fill(R&& r, const detail::value_of<R>& v, grain g = {}) {
  using T = detail::value_of<R>;
  const auto s = detail::span_of(r);
  detail::for_leaves<false>(
      s.size(), detail::grain_by_workers(s.size(), g, detail::most_in_leaf<T>()),
      [v](std::uint64_t, std::uint64_t n, T* p) { std::fill_n(p, n, v); }, detail::writing(s.data()));
}
template <class T>
void fill(global_ptr<T> first, global_ptr<T> last, const std::type_identity_t<T>& v, grain g = {}) {
  godwit::fill(global_span<T>(first, last), v, g);
}

/// Element i becomes f(i), or f() where f takes no argument (then each leaf has its own copy of f).
template <detail::global_range R, class F>
void generate(R&& r, F f, grain g = {}) {
  detail::require_function<F>();
  using T = detail::value_of<R>;
  const auto s = detail::span_of(r);
  detail::for_leaves<detail::may_spawn<F, std::uint64_t>>(
      s.size(), detail::grain_by_workers(s.size(), g, detail::most_in_leaf<T>()),
      [f](std::uint64_t at, std::uint64_t n, T* p) mutable {
        for (std::uint64_t i = 0; i < n; ++i) {
          if constexpr (std::is_invocable_v<F&, std::uint64_t>)
            p[i] = static_cast<T>(std::invoke(f, at + i));
          else
            p[i] = static_cast<T>(f());
        }
      },
      detail::writing(s.data()));
}
template <class T, class F>
void generate(global_ptr<T> first, global_ptr<T> last, F f, grain g = {}) {
  godwit::generate(global_span<T>(first, last), std::move(f), g);
}

/// Element i becomes v + i.
template <detail::global_range R>
void iota(R&& r, detail::value_of<R> v, grain g = {}) {
  using T = detail::value_of<R>;
  godwit::generate(r, never_spawns([v](std::uint64_t i) { return static_cast<T>(v + static_cast<T>(i)); }),
                   g);
}
template <class T>
void iota(global_ptr<T> first, global_ptr<T> last, std::type_identity_t<T> v, grain g = {}) {
  godwit::iota(global_span<T>(first, last), v, g);
}

/// out[i] = r[i]. The ranges must not overlap (one allocation to another, or apart). Gives back the end of
/// what was written.
template <detail::global_range R, detail::output_place O>
auto copy(R&& r, O&& out, grain g = {}) {
  using T = detail::value_of<R>;
  const auto s = detail::span_of(r);
  const auto to = detail::pointer_of(out);
  using U = typename decltype(to)::value_type;
  if constexpr (std::is_same_v<T, U>) {
    const std::uint64_t block = detail::grain_by_workers(s.size(), g, detail::most_in_leaf<T>());
    detail::for_ranges(s.size(), block, [s, to](std::uint64_t at, std::uint64_t n) {
      copy_n<T>(s.subspan(at).data(), n, to + static_cast<std::ptrdiff_t>(at));
    });
    return to + static_cast<std::ptrdiff_t>(s.size());
  } else {
    return godwit::transform(s, to, never_spawns([](const T& v) { return static_cast<U>(v); }), g);
  }
}
template <class T, detail::output_place O>
auto copy(global_ptr<T> first, global_ptr<T> last, O&& out, grain g = {}) {
  return godwit::copy(global_span<T>(first, last), out, g);
}

}  // namespace godwit
