// inclusive_scan, exclusive_scan and their transform_ forms. See docs/algorithms.md. Tests:
// tests/algorithm/scan_test.cpp.
//
// Two passes: the sums of the blocks; a scan over these, by one thread; then every block from its own
// beginning.
#pragma once

#include <godwit/algorithm/reduce.hpp>

#include <optional>

namespace godwit {

namespace detail {

/// The second pass over a block, fed piece by piece.
template <bool Inclusive, class T, class Op, class F>
struct scanner {
  std::optional<T> so_far;  ///< nothing: at the very beginning of an inclusive scan without init
  Op op;
  F f;

  template <class P, class U>
  [[gnu::always_inline]] void operator()(std::uint64_t, std::uint64_t n, P p, U* q) {
    std::uint64_t i = 0;
    if (!so_far) {
      so_far.emplace(static_cast<T>(std::invoke(f, p[0])));
      q[0] = static_cast<U>(*so_far);
      i = 1;
    }
    T sum(*so_far);
    for (; i < n; ++i) {
      if constexpr (Inclusive) {
        sum = static_cast<T>(std::invoke(op, std::move(sum), std::invoke(f, p[i])));
        q[i] = static_cast<U>(sum);
      } else {
        const T v = static_cast<T>(std::invoke(f, p[i]));  // before q[i], which may be the same place
        q[i] = static_cast<U>(sum);
        sum = static_cast<T>(std::invoke(op, std::move(sum), v));
      }
    }
    so_far.emplace(sum);
  }
};

template <bool Inclusive, class T, bool Spawns, class Op, class F, class In, class U>
void scan_operands(std::uint64_t n, grain g, std::optional<T> init, const Op& op, const F& f, In in,
                   write_operand<U> out) {
  require_function<Op>();
  require_function<F>();
  static_assert(global_value<T>, "godwit: the running value of a scan must be trivially copyable");
  if (n == 0) return;
  const std::uint64_t block = grain_by_size(n, g, most_in_leaf<typename In::value_type, U>());
  const std::uint64_t blocks = block_count(n, block);
  // A long range in one host's memory goes in portions, which are still in the caches when the second pass
  // comes.
  const std::uint64_t portion =
      global_is_plain() && blocks > 512 ? 32 * std::uint64_t{detail::hot_workers()} : blocks;
  const scratch<T> sums(blocks);  // first of block b, then of all before block b + 1
  const global_ptr<T> sum = sums.data();
  scanner<true, T, Op, std::identity> prefix{init, op, {}};
  for (std::uint64_t first = 0; first < blocks;) {
    const std::uint64_t last = first + std::min(portion, blocks - first);
    if (const std::uint64_t end = std::min(last, blocks - 1); first < end) {
      const reduction<Spawns, T, Op, F, In> body{n, block, op, f, {in}};
      for_blocks(first, end,
                 [sum, body](std::uint64_t b) { put(sum + static_cast<std::ptrdiff_t>(b), body(b)); });
      auto in_place = [&](std::uint64_t at, std::uint64_t count, T* p) { prefix(at, count, p, p); };
      leaf<may_spawn<Op, T>>(first, end - first, in_place, update_operand<T>{sum.address()});
    }
    for_blocks(first, last, [n, block, sum, init, op, f, in, out](std::uint64_t b) {
      scanner<Inclusive, T, Op, F> scan{
          b == 0 ? init : std::optional<T>(get(sum + static_cast<std::ptrdiff_t>(b - 1))), op, f};
      leaf<Spawns>(b * block, std::min(block, n - b * block), scan, in, out);
    });
    first = last;
  }
}

template <bool Inclusive, class T, class R, class O, class Op, class F>
auto scan(R&& r, O&& out, std::optional<T> init, const Op& op, const F& f, grain g) {
  using V = value_of<R>;
  const auto s = span_of(r);
  const auto to = pointer_of(out);
  scan_operands<Inclusive, T, may_spawn<F, V> || may_spawn<Op, T>>(s.size(), g, init, op, f, reading(s),
                                                                   writing(to));
  return to + static_cast<std::ptrdiff_t>(s.size());
}

}  // namespace detail

/// out[i] = f(r[0]) op ... op f(r[i]), with init in front if given. op must be associative, need not be
/// commutative. What is combined with what depends on r.size() and @p g alone: floating-point results are the
/// same on every schedule. @p out may be r's own memory, or not overlap it. Gives back the end of what was
/// written. Cost: 2 n calls of f and op; global memory for the sums of the blocks, at most 512 values or n /
/// 1024.
template <detail::input_range R, detail::output_place O, detail::not_grain Op, detail::not_grain F>
auto transform_inclusive_scan(R&& r, O&& out, Op op, F f, grain g = {}) {
  using T = std::remove_cvref_t<std::invoke_result_t<F&, const detail::value_of<R>&>>;
  return detail::scan<true, T>(r, out, {}, op, f, g);
}
template <detail::input_range R, detail::output_place O, detail::not_grain Op, detail::not_grain F,
          detail::not_grain T>
auto transform_inclusive_scan(R&& r, O&& out, Op op, F f, T init, grain g = {}) {
  return detail::scan<true, T>(r, out, init, op, f, g);
}
/// out[i] = init op f(r[0]) op ... op f(r[i - 1]); else like transform_inclusive_scan.
template <detail::input_range R, detail::output_place O, class T, detail::not_grain Op, detail::not_grain F>
auto transform_exclusive_scan(R&& r, O&& out, T init, Op op, F f, grain g = {}) {
  return detail::scan<false, T>(r, out, init, op, f, g);
}
template <class V, detail::output_place O, detail::not_grain Op, detail::not_grain F>
auto transform_inclusive_scan(global_ptr<V> first, global_ptr<V> last, O&& out, Op op, F f, grain g = {}) {
  return godwit::transform_inclusive_scan(global_span<V>(first, last), out, op, f, g);
}
template <class V, detail::output_place O, detail::not_grain Op, detail::not_grain F, detail::not_grain T>
auto transform_inclusive_scan(global_ptr<V> first, global_ptr<V> last, O&& out, Op op, F f, T init,
                              grain g = {}) {
  return godwit::transform_inclusive_scan(global_span<V>(first, last), out, op, f, init, g);
}
template <class V, detail::output_place O, class T, detail::not_grain Op, detail::not_grain F>
auto transform_exclusive_scan(global_ptr<V> first, global_ptr<V> last, O&& out, T init, Op op, F f,
                              grain g = {}) {
  return godwit::transform_exclusive_scan(global_span<V>(first, last), out, init, op, f, g);
}

/// The same without f; op: by default +.
template <detail::input_range R, detail::output_place O, detail::not_grain Op = std::plus<>>
auto inclusive_scan(R&& r, O&& out, Op op = {}, grain g = {}) {
  return detail::scan<true, detail::value_of<R>>(r, out, {}, op, std::identity(), g);
}
template <detail::input_range R, detail::output_place O>
auto inclusive_scan(R&& r, O&& out, grain g) {
  return godwit::inclusive_scan(r, out, std::plus<>(), g);
}
template <detail::input_range R, detail::output_place O, detail::not_grain Op, detail::not_grain T>
auto inclusive_scan(R&& r, O&& out, Op op, T init, grain g = {}) {
  return detail::scan<true, T>(r, out, init, op, std::identity(), g);
}
template <detail::input_range R, detail::output_place O, detail::not_grain T,
          detail::not_grain Op = std::plus<>>
auto exclusive_scan(R&& r, O&& out, T init, Op op = {}, grain g = {}) {
  return detail::scan<false, T>(r, out, init, op, std::identity(), g);
}
template <detail::input_range R, detail::output_place O, class T>
auto exclusive_scan(R&& r, O&& out, T init, grain g) {
  return godwit::exclusive_scan(r, out, init, std::plus<>(), g);
}
template <class V, detail::output_place O, class... More>
auto inclusive_scan(global_ptr<V> first, global_ptr<V> last, O&& out, More... more) {
  return godwit::inclusive_scan(global_span<V>(first, last), out, more...);
}
template <class V, detail::output_place O, class T, class... More>
auto exclusive_scan(global_ptr<V> first, global_ptr<V> last, O&& out, T init, More... more) {
  return godwit::exclusive_scan(global_span<V>(first, last), out, init, more...);
}

}  // namespace godwit
