// What the parallel algorithms are made of: grain, recursion over blocks of elements, memory for a while, and
// how a leaf gets at its elements.
//
// A range of n elements is cut into blocks of `grain` elements (the last one may be shorter); block b begins
// at b * grain. A binary recursion with invoke runs the blocks. Inside a leaf, elements are
//   a) the memory itself, where all global memory is this host's: it stays in place whatever the user's
//   function does; b) else, for functions that cannot spawn, checked out;
//   c) else copied piece by piece through a buffer in the leaf's frame, which travels with the thread.
// Not an interface for users but for grain and never_spawns. Used by algorithm/*.hpp. Document:
// docs/algorithms.md. Tests: tests/algorithm/.
#pragma once

#include <godwit/algorithm/indices.hpp>
#include <godwit/global_memory.hpp>
#include <godwit/global_span.hpp>
#include <godwit/task.hpp>

#include <algorithm>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <functional>
#include <tuple>
#include <type_traits>
#include <utility>

namespace godwit {

/// Elements that one leaf of an algorithm works on, one after the other. 0: chosen by the algorithm.
struct grain {
  std::uint64_t elements = 0;
};

/// Promises that a function neither spawns, joins nor yields. On several hosts algorithms then work on
/// checked out memory and not on copies of the elements. A broken promise ends the run with a message, as for
/// any checkout.
template <class F>
struct never_spawns_function {
  F f;
  template <class... A>
  constexpr decltype(auto) operator()(A&&... a) {
    return std::invoke(f, std::forward<A>(a)...);
  }
  template <class... A>
  constexpr decltype(auto) operator()(A&&... a) const {
    return std::invoke(f, std::forward<A>(a)...);
  }
};
template <class F>
constexpr never_spawns_function<F> never_spawns(F f) {
  return {std::move(f)};
}

namespace detail {

template <class P>
inline constexpr bool is_global_ptr = false;
template <class T>
inline constexpr bool is_global_ptr<global_ptr<T>> = true;
template <class R>
inline constexpr bool is_index_range = false;
template <class I>
inline constexpr bool is_index_range<index_range<I>> = true;

/// global_span, global_array, global_vector, and what users write like them.
template <class R>
concept global_range = requires(R& r) {
  { r.size() } -> std::convertible_to<std::uint64_t>;
  requires is_global_ptr<std::remove_cvref_t<decltype(r.data())>>;
};
template <class R>
concept input_range = global_range<R> || is_index_range<std::remove_cvref_t<R>>;
/// Where results go: the first element's address, or a range.
template <class R>
concept output_place = global_range<R> || is_global_ptr<std::remove_cvref_t<R>>;
template <class F>
concept not_grain = !std::is_same_v<std::remove_cvref_t<F>, grain>;

template <global_range R>
constexpr auto span_of(R&& r) {
  using T = typename std::remove_cvref_t<decltype(r.data())>::element_type;
  return global_span<T>(r.data(), static_cast<std::uint64_t>(r.size()));
}
template <std::integral I>
constexpr index_range<I> span_of(index_range<I> r) {
  return r;
}
template <output_place P>
constexpr auto pointer_of(P&& p) {
  if constexpr (is_global_ptr<std::remove_cvref_t<P>>)
    return p;
  else
    return p.data();
}
template <class R>
using value_of = typename decltype(span_of(std::declval<R>()))::value_type;

template <class F>
constexpr void require_function() {
  static_assert(
      plain<F> && std::is_copy_constructible_v<F>,
      "godwit: a function given to a parallel algorithm is copied to the workers that call it: it must be "
      "plain "
      "bytes. This one captures something that is not (std::string, std::vector, std::function...), or "
      "cannot be "
      "copied. Capture plain values, a global_ptr or global_span, or a pointer to data made before run");
}

// ---- which functions can spawn

template <class F, class... G>
inline constexpr bool one_of = (std::is_same_v<F, G> || ...);

template <class F>
inline constexpr bool is_operator = false;
template <template <class> class F, class T>
inline constexpr bool is_operator<F<T>> =
    one_of<F<T>, std::plus<T>, std::minus<T>, std::multiplies<T>, std::divides<T>, std::modulus<T>,
           std::negate<T>, std::bit_and<T>, std::bit_or<T>, std::bit_xor<T>, std::bit_not<T>,
           std::logical_and<T>, std::logical_or<T>, std::logical_not<T>, std::less<T>, std::greater<T>,
           std::less_equal<T>, std::greater_equal<T>, std::equal_to<T>, std::not_equal_to<T>>;

template <class F>
inline constexpr bool is_promised = std::is_same_v<F, std::identity>;
template <class F>
inline constexpr bool is_promised<never_spawns_function<F>> = true;
template <class F>
requires requires { F::godwit_never_spawns; }
inline constexpr bool is_promised<F> = F::godwit_never_spawns;

/// May F, called with values of types T, spawn? An operator of a class type is the user's code.
template <class F, class... T>
inline constexpr bool may_spawn = !(is_promised<F> || (is_operator<F> && (std::is_scalar_v<T> && ...)));

/// pred(p[i]) is @p Wanted.
template <bool Wanted, class Pred>
struct element_test {
  Pred pred;
  template <class P>
  bool operator()(std::uint64_t i, P p) {
    return static_cast<bool>(std::invoke(pred, p[i])) == Wanted;
  }
};

// ---- grain

/// Elements that take 32 KiB, but not so many that a leaf of slow ones takes long.
template <class... T>
constexpr std::uint64_t most_in_leaf() {
  const std::uint64_t bytes = std::max({std::uint64_t{1}, std::uint64_t{sizeof(T)}...});
  return std::clamp<std::uint64_t>(32768 / bytes, 1, 8192);
}
/// For results that do not depend on it.
inline std::uint64_t grain_by_workers(std::uint64_t n, grain g, std::uint64_t most) noexcept {
  if (g.elements != 0) return g.elements;
  return std::clamp<std::uint64_t>(n / (64 * std::max<std::uint64_t>(detail::hot_workers(), 1)), 1, most);
}
/// For results that do (the order of floating-point additions): the same for any number of workers.
inline std::uint64_t grain_by_size(std::uint64_t n, grain g, std::uint64_t most) noexcept {
  if (g.elements != 0) return g.elements;
  return std::clamp<std::uint64_t>(n / 512, 1, most);
}
constexpr std::uint64_t block_count(std::uint64_t n, std::uint64_t grain) noexcept {
  return n / grain + (n % grain != 0);
}

// ---- recursion

inline constexpr place in_loop{"a parallel algorithm", "invoke", 0};

/// body(b) for all b in [first, last). The body is copied into each thread, so that references to it stay
/// valid in it. One that has upper_first says which half to begin with.
template <class Body>
void for_blocks(std::uint64_t first, std::uint64_t last, const Body& body) {
  if (last - first == 1) {
    body(first);
    return;
  }
  const std::uint64_t middle = first + (last - first) / 2;
  if constexpr (requires { body.upper_first(first, middle); }) {
    if (body.upper_first(first, middle)) {
      static_cast<void>(invoke_second_first(
          in_loop, [&] { for_blocks(first, middle, body); },
          [middle, last, body] { for_blocks(middle, last, body); }));
      return;
    }
  }
  invoke([first, middle, body] { for_blocks(first, middle, body); }, [&] { for_blocks(middle, last, body); });
}

/// body.combine of body(b) for all b in [first, last), in order; the tree depends on last - first only.
template <class Body>
auto reduce_blocks(std::uint64_t first, std::uint64_t last, const Body& body) -> decltype(body(first)) {
  if (last - first == 1) return body(first);
  const std::uint64_t middle = first + (last - first) / 2;
  if constexpr (requires { body.upper_first(first, middle); }) {
    if (body.upper_first(first, middle)) {
      auto [a, b] = invoke_second_first(
          in_loop, [&] { return reduce_blocks(first, middle, body); },
          [middle, last, body] { return reduce_blocks(middle, last, body); });
      return body.combine(std::move(a), std::move(b));
    }
  }
  auto [a, b] = invoke([first, middle, body] { return reduce_blocks(first, middle, body); },
                       [&] { return reduce_blocks(middle, last, body); });
  return body.combine(std::move(a), std::move(b));
}

/// A body whose blocks have memory. Of two halves a worker begins with the one that begins at itself and
/// leaves the other to be stolen, so that it finds what it worked on before.
template <class Body>
struct near_memory {
  Body body;
  global_address first;  ///< of block 0
  std::uint64_t step;    ///< from a block to the next one

  bool upper_first(std::uint64_t low, std::uint64_t middle) const {
    const auto me = hot_load<offsetof(hot_words, worker), std::uint32_t>();
    return global_home(first + low * step) < me && global_home(first + middle * step) <= me;
  }
  decltype(auto) operator()(std::uint64_t b) const { return body(b); }
  template <class R>
  R combine(R a, R b) const {
    return body.combine(std::move(a), std::move(b));
  }
};

/// loop(body), or on several hosts loop(body near the first of @p ops that has memory). @p grain: of a block.
template <class Loop, class Body, class... Op>
decltype(auto) near_operands(std::uint64_t grain, const Loop& loop, const Body& body, const Op&... ops) {
  if constexpr (sizeof...(Op) == 0 || !plain<Body>) {
    return loop(body);  // which refuses what is not plain: the compiler says so once
  } else {
    if (global_is_plain()) [[likely]]
      return loop(body);
    global_address first = 0;
    std::uint64_t step = 0;
    const auto look_at = [&](const auto& op) {
      if (first == 0 && op.place(0) != 0) {
        first = op.place(0);
        step = op.place(grain) - first;
      }
    };
    (look_at(ops), ...);
    return first == 0 ? loop(body) : loop(near_memory<Body>{body, first, step});
  }
}

/// body(at, count) for all blocks of [0, n), near memory of @p ops.
template <class Body, class... Op>
void for_ranges(std::uint64_t n, std::uint64_t grain, const Body& body, const Op&... ops) {
  if (n == 0) return;
  near_operands(
      grain, [n, grain](const auto& blocks) { for_blocks(0, block_count(n, grain), blocks); },
      [n, grain, body](std::uint64_t b) { body(b * grain, std::min(grain, n - b * grain)); }, ops...);
}

// ---- memory besides the ranges

/// Global memory that an algorithm needs for a while; freed also when an exception passes. Room for @p n
/// objects, uninitialised: small ones here, large ones dealt out to all. Lies in one frame; plain bytes, so
/// that frame may migrate.
template <class T>
class scratch {
 public:
  explicit scratch(std::uint64_t n)
      : data_(allocate<T>(n, n * sizeof(T) <= 65536 ? distribution::local() : distribution::cyclic(),
                          alignof(T) < 64 ? 64 : alignof(T))),
        n_(n) {}
  scratch(const scratch&) = delete;
  scratch& operator=(const scratch&) = delete;
  ~scratch() { deallocate(data_, n_); }
  global_ptr<T> data() const noexcept { return data_; }

 private:
  global_ptr<T> data_;
  std::uint64_t n_;
};

// ---- elements of a leaf

/// One of the ranges that an algorithm works on, as its leaves see it.
template <class T, class Access>
struct memory_operand {
  using value_type = T;
  static constexpr bool reads = Access::mode != access_mode::write;
  static constexpr bool writes = Access::mode != access_mode::read;
  using pointer = std::conditional_t<writes, T*, const T*>;
  static constexpr std::uint64_t width = sizeof(T);

  global_address first;

  global_address begin(std::uint64_t at) const noexcept { return first + at * sizeof(T); }
  global_address place(std::uint64_t at) const noexcept { return begin(at); }
  pointer raw(std::uint64_t at) const noexcept {
    return global_raw<std::remove_pointer_t<pointer>>(begin(at));
  }
  auto check_out(std::uint64_t at, std::uint64_t n) const {
    return checkout(global_ptr<T>(begin(at)), n, Access());
  }
  /// Room for @p N elements in a frame; what may have changed goes back when it ends. By an exception only if
  /// the elements had been read: else those that were not reached would be written with nothing.
  template <std::uint64_t N>
  struct buffer {
    global_ptr<T> at;
    std::uint64_t n;
    int exceptions = std::uncaught_exceptions();
    alignas(T) std::byte bytes[N * sizeof(T)];
    buffer(const memory_operand& of, std::uint64_t from, std::uint64_t count) : at(of.begin(from)), n(count) {
      if constexpr (reads) get(here(), bytes, n * sizeof(T));
    }
    buffer(const buffer&) = delete;
    ~buffer() {
      if constexpr (writes)
        if (reads || std::uncaught_exceptions() <= exceptions) put(here(), bytes, n * sizeof(T));
    }
    global_ptr<std::byte> here() const noexcept { return global_ptr<std::byte>(at.address()); }
    T* elements() noexcept { return reinterpret_cast<T*>(bytes); }
    pointer data() noexcept { return elements(); }
  };
};
template <class T>
using read_operand = memory_operand<T, access::read_t>;
template <class T>
using write_operand = memory_operand<T, access::write_t>;
template <class T>
using update_operand = memory_operand<T, access::read_write_t>;

template <class I>
struct index_operand {
  using value_type = I;
  static constexpr bool reads = true;
  static constexpr bool writes = false;
  static constexpr std::uint64_t width = 0;

  struct pointer {
    I first;
    I operator[](std::uint64_t i) const noexcept {
      return static_cast<I>(static_cast<std::uint64_t>(first) + i);
    }
  };
  I first;
  global_address memory;  ///< index_range::near: that of index 0, and from one to the next
  std::uint64_t step;

  global_address begin(std::uint64_t) const noexcept { return 0; }
  global_address place(std::uint64_t at) const noexcept { return memory == 0 ? 0 : memory + at * step; }
  pointer raw(std::uint64_t at) const noexcept {
    return {static_cast<I>(static_cast<std::uint64_t>(first) + at)};
  }
  struct nothing_held {
    pointer p;
    pointer data() const noexcept { return p; }
  };
  nothing_held check_out(std::uint64_t at, std::uint64_t) const noexcept { return {raw(at)}; }
  template <std::uint64_t N>
  struct buffer : nothing_held {
    buffer(const index_operand& of, std::uint64_t from, std::uint64_t) noexcept
        : nothing_held{of.raw(from)} {}
  };
};

template <class T>
constexpr read_operand<std::remove_cv_t<T>> reading(global_span<T> s) noexcept {
  require_global_element<T>();
  return {s.data().address()};
}
template <class I>
constexpr index_operand<I> reading(index_range<I> r) noexcept {
  return {r.first(), r.place(0), r.place(1) - r.place(0)};
}
template <class T>
constexpr write_operand<T> writing(global_ptr<T> p) noexcept {
  static_assert(!std::is_const_v<T>, "godwit: this algorithm writes, but it was given const elements");
  require_global_value<T>();
  return {p.address()};
}
template <class T>
constexpr auto updating(global_span<T> s) noexcept {
  require_global_element<T>();
  if constexpr (std::is_const_v<T>)
    return read_operand<std::remove_cv_t<T>>{s.data().address()};
  else
    return update_operand<T>{s.data().address()};
}

/// Does something that is written here overlap another operand? (In-place transform, for example.)
template <class... Op>
bool operands_overlap(std::uint64_t at, std::uint64_t n, const Op&... ops) noexcept {
  constexpr std::size_t count = sizeof...(Op);
  const global_address begin[] = {ops.begin(at)...};
  const global_address end[] = {ops.begin(at) + n * Op::width...};
  constexpr bool writes[] = {Op::writes...};
  for (std::size_t i = 0; i < count; ++i)
    for (std::size_t j = 0; j < i; ++j)
      if ((writes[i] || writes[j]) && begin[i] < end[j] && begin[j] < end[i]) return true;
  return false;
}

/// Elements copied at a time: some KiB, a multiple of 8.
template <class... Op>
constexpr std::uint64_t piece_size() {
  const std::uint64_t widest = std::max({std::uint64_t{1}, std::uint64_t{Op::width}...});
  const std::uint64_t n = 2048 / widest;
  return n >= 8 ? n / 8 * 8 : std::max<std::uint64_t>(n, 1);
}

/// f(at, n, pointers...); gives back whether to go on. Functions that return nothing always do.
template <class F, class... P>
[[gnu::always_inline]] inline bool call_piece(F& f, std::uint64_t at, std::uint64_t n, P... p) {
  if constexpr (std::is_void_v<decltype(f(at, n, p...))>) {
    f(at, n, p...);
    return true;
  } else {
    return f(at, n, p...);
  }
}

template <class F, class... Op>
[[gnu::noinline]] void leaf_by_copies(std::uint64_t at, std::uint64_t n, F& f, const Op&... ops) {
  constexpr std::uint64_t piece = piece_size<Op...>();
  for (std::uint64_t i = 0; i < n; i += piece) {
    const std::uint64_t count = std::min(piece, n - i);
    const auto one = [&](auto&&... buffer) { return call_piece(f, at + i, count, buffer.data()...); };
    if (!one(typename Op::template buffer<piece>(ops, at + i, count)...)) return;
  }
}
template <class F, class... Op>
[[gnu::noinline]] void leaf_by_checkout(std::uint64_t at, std::uint64_t n, F& f, const Op&... ops) {
  const auto one = [&](auto&&... held) { return call_piece(f, at, n, held.data()...); };
  one(ops.check_out(at, n)...);
}

/// f(at, n, pointers...) once or, until it gives back false, for consecutive pieces of [at, at + n). Sizes of
/// pieces are multiples of 8 but for the last, unless elements are large. The noinline parts keep buffers out
/// of the usual frames.
template <bool Spawns, class F, class... Op>
[[gnu::always_inline]] inline void leaf(std::uint64_t at, std::uint64_t n, F& f, const Op&... ops) {
  if (global_is_plain()) [[likely]] {
    call_piece(f, at, n, ops.raw(at)...);
    return;
  }
  if constexpr (!Spawns) {
    if (!operands_overlap(at, n, ops...)) {
      leaf_by_checkout(at, n, f, ops...);
      return;
    }
  }
  leaf_by_copies(at, n, f, ops...);
}

/// leaf() for all blocks of [0, n), each with its own copy of f.
template <bool Spawns, class F, class... Op>
void for_leaves(std::uint64_t n, std::uint64_t grain, const F& f, Op... ops) {
  for_ranges(
      n, grain,
      [f, ops...](std::uint64_t at, std::uint64_t count) {
        F own(f);
        leaf<Spawns>(at, count, own, ops...);
      },
      ops...);
}

}  // namespace detail
}  // namespace godwit
