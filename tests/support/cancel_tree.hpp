// A tree of threads with a scope around each inner node, some of which a leaf cancels: for tests that who is
// below stops, and nobody else does, wherever the threads are by then.
#pragma once

#include <godwit/godwit.hpp>

#include <cstdint>
#include <optional>

namespace cancel_tree {

struct seen {
  long leaves = 0, wrong = 0, cancelled = 0;
};
inline seen operator+(const seen& a, const seen& b) {
  return {a.leaves + b.leaves, a.wrong + b.wrong, a.cancelled + b.cancelled};
}

inline std::uint64_t mix(std::uint64_t x) {
  x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9;
  x = (x ^ x >> 27) * 0x94d049bb133111eb;
  return x ^ x >> 31;
}
/// Every fifth scope.
inline bool is_cancelled_by_a_leaf(std::uint64_t at) { return mix(at) % 5 == 0; }
inline bool is_quiet(std::uint64_t at, int depth) {
  return depth == 0 ||
         (!is_cancelled_by_a_leaf(at) && is_quiet(2 * at, depth - 1) && is_quiet(2 * at + 1, depth - 1));
}

/// @p around: the innermost scope that a leaf is to cancel: number @p by does.
template <class P>
seen tree(std::uint64_t at, int depth, godwit::cancel_token around, std::uint64_t by) {
  if (depth == 0) {
    if (at == by) around.cancel();
    if (mix(at + 1) % 2 == 0) godwit::yield();
    return {1, 0, 0};
  }
  godwit::cancel_scope scope;
  const bool mine = is_cancelled_by_a_leaf(at);
  const godwit::cancel_token token = mine ? scope.token() : around;
  const std::uint64_t leaf = mine ? (at << depth) + mix(at) % (std::uint64_t{1} << depth) : by;
  const std::optional<seen> got = scope.run([=] {
    auto first = P::spawn([=] { return tree<P>(2 * at, depth - 1, token, leaf); });
    const seen second = tree<P>(2 * at + 1, depth - 1, token, leaf);
    return first.join() + second;
  });
  if (!got) return {0, !mine || !scope.cancel_requested(), 1};
  seen result = *got;
  if (is_quiet(at, depth)) result.wrong += result.leaves != 1 << depth;
  return result;
}

/// Some trees, one after the other.
template <class P = godwit::policies::greedy>
seen trees(int depth) {
  seen all;
  for (std::uint64_t i = 1; i < 6; ++i) all = all + tree<P>(i * 1000 + 7, depth, {}, 0);
  return all;
}

}  // namespace cancel_tree
