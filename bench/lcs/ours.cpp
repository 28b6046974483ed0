// LCS in godwit: a tree of futures. A node is either a leaf with its two boundaries or the futures of three
// of its quarters; the fourth, upper left, has no neighbour outside.

#include <array>
#include <godwit/godwit.hpp>

#include "lcs.hpp"

namespace lcs {

namespace {

struct place {
  std::uint32_t i, j, n;
};

enum quarter { upper_right, lower_left, lower_right, quarters };

template <class P>
struct node {
  using handle = typename P::template shared_future<node>;

  std::array<handle, quarters> at;
  boundaries edge;  ///< of a leaf; else empty

  node() = default;
  node(node&&) noexcept = default;
  node& operator=(node&&) noexcept = default;
};

}  // namespace

}  // namespace lcs

template <class P>
struct godwit::codec<lcs::node<P>> {
  using node = lcs::node<P>;
  static void write(writer& w, node& n) {
    const bool leaf = !n.at[0].valid();
    w.put(leaf);
    if (leaf) {
      w.put(n.edge.bottom);
      w.put(n.edge.right);
      return;
    }
    for (auto& handle : n.at) w.put(handle);
  }
  static node read(reader& r) {
    node n;
    if (r.get<bool>()) {
      n.edge.bottom = r.get<lcs::boundary>();
      n.edge.right = r.get<lcs::boundary>();
    } else {
      for (auto& handle : n.at) handle = r.get<typename node::handle>();
    }
    return n;
  }
};

namespace lcs {

namespace {

template <class P>
node<P> solve(place at, typename node<P>::handle top, typename node<P>::handle left);

template <class P>
typename node<P>::handle start(place at, typename node<P>::handle top, typename node<P>::handle left) {
  using handle = typename node<P>::handle;
  return P::spawn([at](handle t, handle l) { return solve<P>(at, std::move(t), std::move(l)); },
                  std::move(top), std::move(left));
}

template <class P>
node<P> leaf(place at, const typename node<P>::handle& top, const typename node<P>::handle& left) {
  // Both must be there before a value is in hand: a vector could not follow its thread to another worker.
  if (left.valid()) static_cast<void>(left.get());
  const boundary above = top.valid() ? top.get().edge.bottom : boundary();
  const boundary before = left.valid() ? left.get().edge.right : boundary();
  node<P> result;
  result.edge = block_by_rows(the_problem, at.i, at.j, above, before);
  return result;
}

template <class P>
node<P> solve(place at, typename node<P>::handle top, typename node<P>::handle left) {
  using handle = typename node<P>::handle;
  if (at.n <= the_problem.c) return leaf<P>(at, top, left);
  handle top_left, top_right, left_upper, left_lower;
  if (top.valid()) {
    node<P> t = top.get();
    top_left = std::move(t.at[lower_left]);
    top_right = std::move(t.at[lower_right]);
  }
  if (left.valid()) {
    node<P> l = left.get();
    left_upper = std::move(l.at[upper_right]);
    left_lower = std::move(l.at[lower_right]);
  }
  const std::uint32_t h = at.n / 2;
  handle first = start<P>({at.i, at.j, h}, std::move(top_left), std::move(left_upper));
  handle right = start<P>({at.i, at.j + h, h}, std::move(top_right), first);
  handle below = start<P>({at.i + h, at.j, h}, first, std::move(left_lower));
  handle last = start<P>({at.i + h, at.j + h, h}, right, below);
  static_cast<void>(first.get());  // or futures would be made long before anybody can use them
  node<P> result;
  result.at[upper_right] = std::move(right);
  result.at[lower_left] = std::move(below);
  result.at[lower_right] = std::move(last);
  return result;
}

template <class P>
std::uint32_t root() {
  auto last = start<P>({0, 0, the_problem.n}, {}, {});
  for (std::uint32_t n = the_problem.n; n > the_problem.c; n /= 2) {
    node<P> whole = last.get();
    last = std::move(whole.at[lower_right]);
  }
  return last.get().edge.right.back();
}

}  // namespace

std::uint32_t (*futures_under(const std::string& policy))() {
  return godwit::with_policy(godwit::choice::named{policy}, [](auto p) -> std::uint32_t (*)() {
    using P = decltype(p);
    if constexpr (P::has_futures)
      return &root<P>;
    else
      return nullptr;
  });
}

}  // namespace lcs
