// reduce, transform_reduce. See docs/algorithms.md for the order of combination. Tests:
// tests/algorithm/reduce_test.cpp.
#pragma once

#include <godwit/algorithm/blocks.hpp>

#include <optional>

namespace godwit {

namespace detail {

/// Operators that may be applied in any order, with their neutral value: leaves use eight accumulators, which
/// lets the CPU (and the compiler, at -O2) do eight at a time.
template <class Op, class R>
inline constexpr bool has_lanes = false;
template <template <class> class Op, class X, class R>
inline constexpr bool has_lanes<Op<X>, R> =
    one_of<X, void, R> && !std::is_same_v<R, bool> &&
    ((std::is_arithmetic_v<R> && one_of<Op<X>, std::plus<X>, std::multiplies<X>>) ||
     (std::is_integral_v<R> && one_of<Op<X>, std::bit_and<X>, std::bit_or<X>, std::bit_xor<X>>));

template <class R, template <class> class Op, class X>
constexpr R neutral(const Op<X>&) {
  if constexpr (std::is_same_v<Op<X>, std::multiplies<X>>)
    return R{1};
  else if constexpr (std::is_same_v<Op<X>, std::bit_and<X>>)
    return static_cast<R>(~R{});
  else
    return std::is_floating_point_v<R> ? static_cast<R>(-0.0) : R{};  // the others: 0
}

/// What a leaf has so far; fed piece by piece, with the same result for any pieces.
template <class R, class Op, class F>
struct lane_accumulator {
  Op op;
  F f;
  R lanes[8];
  std::uint64_t done = 0;  ///< element number i goes to lane i % 8

  lane_accumulator(const Op& o, const F& fn) : op(o), f(fn) {
    for (R& lane : lanes) lane = neutral<R>(op);
  }
  template <class... P>
  [[gnu::always_inline]] void operator()(std::uint64_t, std::uint64_t n, P... p) {
    std::uint64_t i = 0;
    for (; done % 8 != 0 && i < n; ++i, ++done) {  // of large elements a piece may be fewer than 8
      R& lane = lanes[done % 8];
      lane = static_cast<R>(op(lane, static_cast<R>(std::invoke(f, p[i]...))));
    }
    done += n - i;
    R a[8];  // a copy that no call of f can reach, in registers
    for (int j = 0; j < 8; ++j) a[j] = lanes[j];
    for (; i + 8 <= n; i += 8)
      for (std::uint64_t j = 0; j < 8; ++j)
        a[j] = static_cast<R>(op(a[j], static_cast<R>(std::invoke(f, p[i + j]...))));
    for (std::uint64_t j = 0; i + j < n; ++j)
      a[j] = static_cast<R>(op(a[j], static_cast<R>(std::invoke(f, p[i + j]...))));
    for (int j = 0; j < 8; ++j) lanes[j] = a[j];
  }
  R result() {
    R a[8];
    for (int j = 0; j < 8; ++j) a[j] = lanes[j];
    for (int half = 4; half != 0; half /= 2)
      for (int j = 0; j < half; ++j) a[j] = static_cast<R>(op(a[j], a[j + half]));
    return a[0];
  }
};

/// From left to right.
template <class R, class Op, class F>
struct chain_accumulator {
  Op op;
  F f;
  std::optional<R> so_far;

  chain_accumulator(const Op& o, const F& fn) : op(o), f(fn) {}
  template <class... P>
  [[gnu::always_inline]] void operator()(std::uint64_t, std::uint64_t n, P... p) {
    std::uint64_t i = 0;
    if (!so_far) {
      so_far.emplace(static_cast<R>(std::invoke(f, p[0]...)));
      i = 1;
    }
    R a(std::move(*so_far));
    for (; i < n; ++i) a = static_cast<R>(std::invoke(op, std::move(a), std::invoke(f, p[i]...)));
    so_far.emplace(std::move(a));
  }
  R result() { return std::move(*so_far); }
};

/// One leaf's value, and how two are combined.
template <bool Spawns, class R, class Op, class F, class... Operand>
struct reduction {
  std::uint64_t n, grain;
  Op op;
  F f;
  std::tuple<Operand...> operands;

  using accumulator =
      std::conditional_t<has_lanes<Op, R>, lane_accumulator<R, Op, F>, chain_accumulator<R, Op, F>>;

  R operator()(std::uint64_t b) const {
    const std::uint64_t at = b * grain;
    return std::apply([&](const Operand&... o) { return value(at, std::min(grain, n - at), o...); },
                      operands);
  }
  R combine(R a, R b) const {
    Op own(op);
    return static_cast<R>(std::invoke(own, std::move(a), std::move(b)));
  }

 private:
  R value(std::uint64_t at, std::uint64_t count, const Operand&... o) const {
    if constexpr (plain<R>) {
      accumulator a(op, f);
      leaf<Spawns>(at, count, a, o...);
      return a.result();
    } else {
      // One element per leaf: a value that owns memory must not lie in a frame while f may spawn.
      std::optional<R> r;
      auto one = [own = f, &r](std::uint64_t, std::uint64_t, auto... p) mutable {
        r.emplace(static_cast<R>(std::invoke(own, p[0]...)));
      };
      leaf<Spawns>(at, count, one, o...);
      return std::move(*r);
    }
  }
};

/// A thread that gives back a value: what owns memory follows its frame as a result only.
template <class T>
struct give_back {
  T value;
  explicit give_back(T&& v) noexcept(std::is_nothrow_move_constructible_v<T>) : value(std::move(v)) {}
  give_back(give_back&&) = default;
  T operator()() { return std::move(value); }
};

template <bool Spawns, class R, class Op, class F, class... Operand>
R reduce_operands(std::uint64_t n, grain g, R init, const Op& op, const F& f, const Operand&... o) {
  require_function<Op>();
  require_function<F>();
  static_assert(migratable<R>,
                "godwit: the result type of this reduction cannot migrate: it must be movable, and nothing "
                "that belongs to one process");
  if (n == 0) return init;
  const std::uint64_t block =
      plain<R> ? grain_by_size(n, g, most_in_leaf<typename Operand::value_type...>()) : 1;
  const reduction<Spawns, R, Op, F, Operand...> body{n, block, op, f, {o...}};
  if constexpr (plain<R>) {
    const auto all = [blocks = block_count(n, block)](const auto& b) { return reduce_blocks(0, blocks, b); };
    return body.combine(std::move(init), near_operands(block, all, body, o...));
  } else {
    auto [first, rest] = invoke(give_back<R>(std::move(init)), [&] {
      return near_operands(
          1, [n](const auto& b) { return reduce_blocks(0, n, b); }, body, o...);
    });
    return body.combine(std::move(first), std::move(rest));
  }
}

}  // namespace detail

/// init op f(r[0]) op f(r[1]) ...: op must be associative, and for std::plus and the like on numbers, where
/// -- for speed -- also the order changes, commutative. What is combined with what depends on r.size() and @p
/// g alone, so that also floating-point results are the same on every schedule and any number of workers. The
/// f(x) are converted to init's type first. That type may be any that migrates; if it owns memory, op must
/// not spawn. Cost: n calls of f and op, a spawn per leaf (per element, if the result type owns memory).
template <detail::input_range R, class T, detail::not_grain Op, detail::not_grain F>
T transform_reduce(R&& r, T init, Op op, F f, grain g = {}) {
  using V = detail::value_of<R>;
  constexpr bool spawns = detail::may_spawn<F, V> || detail::may_spawn<Op, T>;
  const auto s = detail::span_of(r);
  return detail::reduce_operands<spawns>(s.size(), g, std::move(init), op, f, detail::reading(s));
}
template <class V, class T, detail::not_grain Op, detail::not_grain F>
T transform_reduce(global_ptr<V> first, global_ptr<V> last, T init, Op op, F f, grain g = {}) {
  return godwit::transform_reduce(global_span<V>(first, last), std::move(init), std::move(op), std::move(f),
                                  g);
}
/// The same with f(a[i], b[i]), as many as @p a has.
template <detail::input_range A, detail::input_range B, class T, detail::not_grain Op, detail::not_grain F>
T transform_reduce(A&& a, B&& b, T init, Op op, F f, grain g = {}) {
  constexpr bool spawns =
      detail::may_spawn<F, detail::value_of<A>, detail::value_of<B>> || detail::may_spawn<Op, T>;
  const auto s = detail::span_of(a);
  return detail::reduce_operands<spawns>(s.size(), g, std::move(init), op, f, detail::reading(s),
                                         detail::reading(detail::span_of(b)));
}
template <class V, class W, class T, detail::not_grain Op, detail::not_grain F>
T transform_reduce(global_ptr<V> first, global_ptr<V> last, global_ptr<W> second, T init, Op op, F f,
                   grain g = {}) {
  const global_span<V> a(first, last);
  return godwit::transform_reduce(a, global_span<W>(second, a.size()), std::move(init), std::move(op),
                                  std::move(f), g);
}
/// The inner product: init + a[0] * b[0] + ...
template <detail::input_range A, detail::input_range B, class T>
T transform_reduce(A&& a, B&& b, T init, grain g = {}) {
  return godwit::transform_reduce(a, b, std::move(init), std::plus<>(), std::multiplies<>(), g);
}
template <class V, class W, class T>
T transform_reduce(global_ptr<V> first, global_ptr<V> last, global_ptr<W> second, T init, grain g = {}) {
  return godwit::transform_reduce(first, last, second, std::move(init), std::plus<>(), std::multiplies<>(),
                                  g);
}

/// init op r[0] op r[1] ... as transform_reduce does it; op: by default +, init: by default T{}.
template <detail::input_range R, class T, detail::not_grain Op>
T reduce(R&& r, T init, Op op, grain g = {}) {
  return godwit::transform_reduce(r, std::move(init), std::move(op), std::identity(), g);
}
template <detail::input_range R, detail::not_grain T>
T reduce(R&& r, T init, grain g = {}) {
  return godwit::transform_reduce(r, std::move(init), std::plus<>(), std::identity(), g);
}
template <detail::input_range R>
detail::value_of<R> reduce(R&& r, grain g = {}) {
  return godwit::transform_reduce(r, detail::value_of<R>{}, std::plus<>(), std::identity(), g);
}
template <class V, class T, detail::not_grain Op>
T reduce(global_ptr<V> first, global_ptr<V> last, T init, Op op, grain g = {}) {
  return godwit::reduce(global_span<V>(first, last), std::move(init), std::move(op), g);
}
template <class V, detail::not_grain T>
T reduce(global_ptr<V> first, global_ptr<V> last, T init, grain g = {}) {
  return godwit::reduce(global_span<V>(first, last), std::move(init), g);
}
template <class V>
std::remove_cv_t<V> reduce(global_ptr<V> first, global_ptr<V> last, grain g = {}) {
  return godwit::reduce(global_span<V>(first, last), g);
}

}  // namespace godwit
