// partition, stable_partition, remove_if, unique, copy_if: which elements stay. See docs/algorithms.md.
// Tests: tests/algorithm/partition_test.cpp.
//
// Every block is split into temporary memory: what stays from the front of the block's part, the rest from
// its end backwards. A sum over the blocks' counts says where the parts go. The predicate is called once per
// element.
#pragma once

#include <godwit/algorithm/scan.hpp>

namespace godwit {

namespace detail {

/// Writes elements one after the other, upwards or downwards from a place. In a leaf's frame: what is not yet
/// written travels with it.
template <class T, bool Down>
class element_writer {
 public:
  explicit element_writer(global_ptr<T> to) noexcept : to_(to) {}
  element_writer(const element_writer&) = delete;
  void add(const T& v) {
    if (global_is_plain()) [[likely]] {
      if constexpr (Down) --to_;
      *global_raw<T>(to_.address()) = v;
      if constexpr (!Down) ++to_;
      return;
    }
    if (n_ == room) flush();
    std::memcpy(static_cast<void*>(data() + (Down ? room - 1 - n_ : n_)), static_cast<const void*>(&v),
                sizeof(T));
    ++n_;
  }
  void flush() {
    if (n_ == 0) return;
    const auto d = static_cast<std::ptrdiff_t>(n_);
    if constexpr (Down) {
      to_ -= d;
      put(to_, data() + (room - n_), n_);
    } else {
      put(to_, data(), n_);
      to_ += d;
    }
    n_ = 0;
  }

 private:
  static constexpr std::uint64_t room = sizeof(T) >= 1024 ? 1 : 1024 / sizeof(T);
  T* data() noexcept { return reinterpret_cast<T*>(bytes_); }
  global_ptr<T> to_;
  std::uint64_t n_ = 0;
  alignas(T) std::byte bytes_[room * sizeof(T)];
};

/// Split one block; gives back how many stay. @p stays(pointers..., i) and the first operand's element i is
/// what is kept.
template <bool Spawns, bool Rest, class T, class Stays, class... Operand>
[[gnu::noinline]] std::uint64_t split_block(std::uint64_t at, std::uint64_t n, global_ptr<T> temporary,
                                            const Stays& stays, const Operand&... o) {
  element_writer<T, false> front(temporary + static_cast<std::ptrdiff_t>(at));
  element_writer<T, true> back(temporary + static_cast<std::ptrdiff_t>(at + n));
  std::uint64_t kept = 0;
  auto piece = [&, own = stays](std::uint64_t, std::uint64_t count, const T* p, auto... more) mutable {
    for (std::uint64_t i = 0; i < count; ++i) {
      if (own(i, p, more...)) {
        ++kept;
        front.add(p[i]);
      } else if constexpr (Rest) {
        back.add(p[i]);
      }
    }
  };
  leaf<Spawns>(at, n, piece, o...);
  front.flush();
  if constexpr (Rest) back.flush();
  return kept;
}

/// to[i] = from[n - 1 - i]; they do not overlap.
template <class T>
void copy_reversed(global_ptr<const T> from, std::uint64_t n, global_ptr<T> to) {
  const auto turn = [](std::uint64_t, std::uint64_t m, const T* p, T* q) { std::reverse_copy(p, p + m, q); };
  leaf<false>(0, n, turn, reading(global_span<const T>(from, n)), writing(to));
}

/// What stays of the n elements of the first operand goes to @p out; the rest, with Rest, behind it. Gives
/// back how many stay.
template <bool Spawns, bool Rest, class T, class Stays, class... Operand>
std::uint64_t split_operands(std::uint64_t n, grain g, global_ptr<T> out, const Stays& stays,
                             const Operand&... o) {
  if (n == 0) return 0;
  const std::uint64_t block = grain_by_workers(n, g, most_in_leaf<T>());
  const std::uint64_t blocks = block_count(n, block);
  const scratch<T> memory(n);
  const scratch<std::uint64_t> counts(blocks);
  const global_ptr<T> temporary = memory.data();
  const global_ptr<std::uint64_t> count = counts.data();
  for_blocks(0, blocks, [=](std::uint64_t b) {
    const std::uint64_t at = b * block;
    const std::uint64_t kept = split_block<Spawns, Rest>(at, std::min(block, n - at), temporary, stays, o...);
    put(count + static_cast<std::ptrdiff_t>(b), kept);
  });
  std::uint64_t stay = 0;
  auto prefix = [&stay](std::uint64_t, std::uint64_t m, std::uint64_t* p) {
    for (std::uint64_t i = 0; i < m; ++i) p[i] = stay += p[i];
  };
  leaf<false>(0, blocks, prefix, update_operand<std::uint64_t>{count.address()});
  for_blocks(0, blocks, [=](std::uint64_t b) {
    const std::uint64_t at = b * block;
    const std::uint64_t m = std::min(block, n - at);
    const std::uint64_t before = b == 0 ? 0 : get(count + static_cast<std::ptrdiff_t>(b - 1));
    const std::uint64_t kept = get(count + static_cast<std::ptrdiff_t>(b)) - before;
    const global_ptr<T> from = temporary + static_cast<std::ptrdiff_t>(at);
    if (kept != 0) copy_n<T>(from, kept, out + static_cast<std::ptrdiff_t>(before));
    if constexpr (Rest) {
      if (m != kept)
        copy_reversed<T>(from + static_cast<std::ptrdiff_t>(kept), m - kept,
                         out + static_cast<std::ptrdiff_t>(stay + (at - before)));
    }
  });
  return stay;
}

template <bool Rest, bool Wanted, class S, class Pred>
auto split_in_place(const S& s, const Pred& pred, grain g) {
  using T = typename S::value_type;
  static_assert(!std::is_const_v<typename S::element_type>,
                "godwit: this algorithm writes, but it was given const elements");
  require_function<Pred>();
  return s.data() + static_cast<std::ptrdiff_t>(split_operands<may_spawn<Pred, T>, Rest>(
                        s.size(), g, s.data(), element_test<Wanted, Pred>{pred}, reading(s)));
}

}  // namespace detail

/// Elements for which pred holds first, then the others, both in the order they had. Gives back the first of
/// the others. Cost: n calls of pred, two moves per element, as much temporary global memory as the range
/// has.
template <detail::global_range R, class Pred>
auto stable_partition(R&& r, Pred pred, grain g = {}) {
  return detail::split_in_place<true, true>(detail::span_of(r), pred, g);
}
template <class T, class Pred>
global_ptr<T> stable_partition(global_ptr<T> first, global_ptr<T> last, Pred pred, grain g = {}) {
  return godwit::stable_partition(global_span<T>(first, last), std::move(pred), g);
}
/// The same: an order that is fixed costs nothing more here.
template <detail::global_range R, class Pred>
auto partition(R&& r, Pred pred, grain g = {}) {
  return godwit::stable_partition(r, std::move(pred), g);
}
template <class T, class Pred>
global_ptr<T> partition(global_ptr<T> first, global_ptr<T> last, Pred pred, grain g = {}) {
  return godwit::stable_partition(first, last, std::move(pred), g);
}

/// Remove the elements for which pred holds; the others move together, in order. Gives back their new end;
/// what lies behind it stays as it was. Cost like stable_partition.
template <detail::global_range R, class Pred>
auto remove_if(R&& r, Pred pred, grain g = {}) {
  return detail::split_in_place<false, false>(detail::span_of(r), pred, g);
}
template <class T, class Pred>
global_ptr<T> remove_if(global_ptr<T> first, global_ptr<T> last, Pred pred, grain g = {}) {
  return godwit::remove_if(global_span<T>(first, last), std::move(pred), g);
}

/// Copy the elements for which pred holds, in order. @p out does not overlap r. Gives back the end of what
/// was written. Cost like stable_partition.
template <detail::global_range R, detail::output_place O, class Pred>
auto copy_if(R&& r, O&& out, Pred pred, grain g = {}) {
  using T = detail::value_of<R>;
  detail::require_function<Pred>();
  const auto s = detail::span_of(r);
  const global_ptr<T> to = detail::pointer_of(out);
  return to + static_cast<std::ptrdiff_t>(detail::split_operands<detail::may_spawn<Pred, T>, false>(
                  s.size(), g, to, detail::element_test<true, Pred>{pred}, detail::reading(s)));
}
template <class T, detail::output_place O, class Pred>
auto copy_if(global_ptr<T> first, global_ptr<T> last, O&& out, Pred pred, grain g = {}) {
  return godwit::copy_if(global_span<T>(first, last), out, std::move(pred), g);
}

/// Of every group of neighbours that are equal keep the first. Gives back the new end. @p same must be an
/// equivalence. Cost like stable_partition.
template <detail::global_range R, detail::not_grain Same = std::equal_to<>>
auto unique(R&& r, Same same = {}, grain g = {}) {
  using T = detail::value_of<R>;
  detail::require_function<Same>();
  const auto s = detail::span_of(r);
  if (s.size() < 2) return s.end();
  // Element i + 1 stays if it differs from element i. The first one stays where it is.
  const auto differs = [same](std::uint64_t i, const T* p, const T* earlier) mutable {
    return !static_cast<bool>(std::invoke(same, earlier[i], p[i]));
  };
  const auto rest = s.subspan(1);
  return rest.data() + static_cast<std::ptrdiff_t>(detail::split_operands<detail::may_spawn<Same, T>, false>(
                           rest.size(), g, rest.data(), differs, detail::reading(rest), detail::reading(s)));
}
template <class T, detail::not_grain Same = std::equal_to<>>
global_ptr<T> unique(global_ptr<T> first, global_ptr<T> last, Same same = {}, grain g = {}) {
  return godwit::unique(global_span<T>(first, last), std::move(same), g);
}

}  // namespace godwit
