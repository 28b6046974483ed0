// IS, integer sort: ten times the ranks of all keys, after two of them have been changed. Keys are counted,
// in an array of each worker; the sums of the counts are the ranks. Afterwards the keys are sorted, by
// another algorithm, and every rank compared.

#include <algorithm>

#include "npb.hpp"
#include "random.hpp"
#include "verify.hpp"
#include "worlds.hpp"

namespace npb {

namespace {

using key = std::int32_t;
using count = std::int32_t;
constexpr std::uint64_t seed = 314159265;

/// Of four random numbers, added.
void make_keys(key* to, std::uint64_t low, std::uint64_t high, int log_max_key) noexcept {
  random_numbers numbers(seed, 4 * low);
  for (std::uint64_t i = low; i < high; ++i) {
    std::uint64_t sum = 0;
    for (int k = 0; k < 4; ++k) sum += numbers();
    to[i - low] = static_cast<key>(sum >> (46 - log_max_key + 2));
  }
}

void add_counts(count* to, const key* keys, std::uint64_t n) noexcept {
  for (std::uint64_t i = 0; i < n; ++i) ++to[keys[i]];
}

/// to[i] += from[i]; from becomes 0.
void take(count* __restrict to, count* __restrict from, std::uint64_t n) noexcept {
  for (std::uint64_t i = 0; i < n; ++i) {
    to[i] += from[i];
    from[i] = 0;
  }
}

/// Every element becomes the sum of itself and all before it.
void sum_up(count* of, std::uint64_t n) noexcept {
  count sum = 0;
  for (std::uint64_t i = 0; i < n; ++i) of[i] = sum += of[i];
}

template <class World>
class ranking {
 public:
  ranking(World& world, const is_problem& p)
      : world_(world),
        p_(p),
        n_(std::uint64_t{1} << p.log_keys),
        values_(std::uint64_t{1} << p.log_max_key),
        keys_(world.template make<key>(n_, 1)),
        counts_(world.template make<count>(world.workers(), values_)),
        ranks_(world.template make<count>(values_, 1)),
        block_sums_(world.template make<count>(blocks, 1)) {
    each(world_, keys_.span(), n_, n_ / pieces,
         [keys = keys_.span(), bits = p.log_max_key](std::uint64_t low, std::uint64_t high) {
           make_keys(keys.subspan(low, high - low).checkout(gw::access::write).data(), low, high, bits);
         });
    each(world_, counts_.span(), world_.workers(), 1,
         [all = counts_.span(), values = values_](std::uint64_t low, std::uint64_t high) {
           const auto mine = all.subspan(low * values, (high - low) * values).checkout(gw::access::write);
           std::fill(mine.begin(), mine.end(), 0);
         });
  }

  /// ranks()[v] becomes the number of keys that are at most v. False if the ranks of the test keys are
  /// wrong.
  bool rank(int iteration) {
    const auto keys = keys_.span();
    keys[static_cast<std::uint64_t>(iteration)] = iteration;
    keys[static_cast<std::uint64_t>(iteration + is_problem::iterations)] =
        static_cast<key>(values_) - iteration;
    key tested[is_problem::tests];
    for (int t = 0; t < is_problem::tests; ++t) tested[t] = keys[p_.index[static_cast<std::size_t>(t)]];
    count_keys();
    add_up();
    const auto ranks = ranks_.span();
    bool right = true;
    for (int t = 0; t < is_problem::tests; ++t) {
      const count rank = ranks[static_cast<std::uint64_t>(tested[t] - 1)];
      right = p_.verified(t, iteration, rank) && right;
    }
    return right;
  }

  /// The keys in order say how many there are up to each value. Sorts them.
  bool ranks_are_right() {
    sort(keys_);
    const std::uint64_t wrong = world_.template sum<std::uint64_t>(
        ranks_.span(), values_, values_ / pieces,
        [keys = keys_.span(), ranks = ranks_.span(), values = values_](std::uint64_t low,
                                                                       std::uint64_t high) {
          const count before = low == 0 ? 0 : count{ranks[low - 1]};
          const auto rank = ranks.subspan(low, high - low).checkout(gw::access::read);
          const auto sorted = keys.subspan(static_cast<std::uint64_t>(before),
                                           static_cast<std::uint64_t>(rank[high - low - 1] - before))
                                  .checkout(gw::access::read);
          std::uint64_t bad = 0;
          for (std::uint64_t v = low; v < high; ++v)
            for (count i = v == low ? before : rank[v - low - 1]; i < rank[v - low]; ++i)
              bad += sorted[static_cast<std::uint64_t>(i - before)] != static_cast<key>(v);
          return bad;
        });
    return wrong == 0 && count{ranks_.span()[values_ - 1]} == static_cast<count>(n_);
  }

 private:
  static constexpr std::uint64_t pieces = 64, blocks = 8;

  static void sort(plain_array<key>& keys) {
    const auto all = keys.span().checkout(gw::access::read_write);
    std::sort(all.begin(), all.end());
  }
  static void sort(gw::global_array<key>& keys) { gw::sort(keys); }

  void count_keys() {
    each(
        world_, keys_.span(), n_, n_ / pieces,
        [keys = keys_.span(), all = counts_.span(), values = values_](std::uint64_t low, std::uint64_t high) {
          const auto from = keys.subspan(low, high - low).checkout(gw::access::read);
          const auto mine = all.subspan(World::me() * values, values).checkout(gw::access::read_write);
          add_counts(mine.data(), from.data(), from.size());
        });
  }

  /// Within blocks of values, then over these.
  void add_up() {
    const std::uint64_t size = values_ / blocks;
    each(world_, ranks_.span(), blocks, 1,
         [=, all = counts_.span(), ranks = ranks_.span(), sums = block_sums_.span(),
          workers = world_.workers(), values = values_](std::uint64_t low, std::uint64_t high) {
           for (std::uint64_t b = low; b < high; ++b) {
             const auto to = ranks.subspan(b * size, size).checkout(gw::access::write);
             std::fill(to.begin(), to.end(), 0);
             for (std::uint64_t w = 0; w < workers; ++w)
               take(to.data(),
                    all.subspan(w * values + b * size, size).checkout(gw::access::read_write).data(), size);
             sum_up(to.data(), size);
             sums.subspan(b, 1).checkout(gw::access::write)[0] = to[size - 1];
           }
         });
    sum_up(block_sums_.span().checkout(gw::access::read_write).data(), blocks);
    each(world_, ranks_.span(), blocks, 1,
         [=, ranks = ranks_.span(), sums = block_sums_.span()](std::uint64_t low, std::uint64_t high) {
           for (std::uint64_t b = std::max<std::uint64_t>(low, 1); b < high; ++b) {
             const count before = sums[b - 1];
             for (count& r : ranks.subspan(b * size, size).checkout(gw::access::read_write)) r += before;
           }
         });
  }

  World& world_;
  const is_problem p_;
  std::uint64_t n_, values_;
  typename World::template array<key> keys_;
  typename World::template array<count> counts_;  ///< of worker w from w * values_ on; 0 between iterations
  typename World::template array<count> ranks_, block_sums_;
};

template <class World>
outcome solve(World&& world, char size_class) {
  const is_problem p(size_class);
  ranking<std::remove_cvref_t<World>> all(world, p);
  outcome out;
  out.verified = true;
  all.rank(1);  // NPB: an iteration that touches everything first
  out.timed = world.measured([&] {
    for (int i = 1; i <= is_problem::iterations; ++i) out.verified = all.rank(i) && out.verified;
  });
  out.verified = all.ranks_are_right() && out.verified;
  return out;
}

}  // namespace

const benchmark is{"IS", [](char) {}, [](char c, unsigned threads) { return solve(plain(threads), c); },
                   [](char c) { return solve(in_godwit(), c); }};

}  // namespace npb
