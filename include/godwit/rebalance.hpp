// Load that balances itself: who has too much of movable memory gives parts of it away.
//
//   gw::rebalance(a, n);                                         // by accesses, to the least loaded
//   gw::rebalance(a, n, {.to = gw::balance::successor}, cost);   // by cost(const gw::part_info&)
//
// A worker whose load is at least `threshold` times the mean gives its lightest part away; when all such
// have, that was a round. Rounds go on until no worker is over, or nothing helps any more. A part moves once
// at most, and only if the worker that gets it has less afterwards than the giver had before. Source:
// Active global address space, section 6.7 (threshold and policies); docs/moving.md, Load that balances
// itself. Tests: tests/global/rebalance_test.cpp.
#pragma once

#include <godwit/heat.hpp>
#include <godwit/move.hpp>

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace godwit {

/// Whom a part is given to.
enum class balance : std::uint32_t {
  least_loaded,  ///< who has least
  predecessor,   ///< worker w's: w - 1, worker 0's the last one
  successor,     ///< w + 1
  random,        ///< any other one
  /// Not by load: every part goes to the host that uses it most, if that is not its own: see wanted_by.
  affinity,
  user,  ///< balance_rule::choose says
};

struct balance_rule {
  balance to = balance::least_loaded;
  double threshold = 1.4;      ///< of the mean; at least 1
  std::uint32_t rounds = ~0u;  ///< at most
  std::uint64_t seed = 1;      ///< random
  /// user: the worker that part number @p part of worker @p from goes to; @p from: it stays. @p loads: of all
  /// workers, as planned so far.
  std::uint32_t (*choose)(std::size_t part, std::uint32_t from, std::span<const double> loads) = nullptr;
};

/// For plan_rebalance.
struct part_load {
  double load;
  std::uint32_t owner;
  std::uint32_t wanted_by = ~0u;  ///< affinity: a worker; ~0: nobody
};
struct planned_move {
  std::size_t part;
  std::uint32_t from, to;
};
struct balance_plan {
  std::vector<planned_move> moves;
  double before = 1, after = 1;  ///< largest load of a worker / mean
};
/// What rebalance does, for any number of workers: nothing is moved. Local, and needs no run. Throws
/// std::invalid_argument if the threshold is below 1, if a load is negative or no number, if there is no such
/// owner, or if `user` has nothing to choose by. Cost: parts * log parts, and for each move the workers.
balance_plan plan_rebalance(std::span<const part_load> parts, std::uint32_t workers,
                            const balance_rule& how = {});

/// First worker of the host that is to have this part by affinity, or ~0. It is another host than the
/// owner's, has made more than twice as many accesses as the owner's, and so many more that the messages
/// saved are more than a move's: four round trips, and one per 4 KiB.
std::uint32_t wanted_by(const part_info& part) noexcept;

struct rebalance_result {
  std::uint64_t moves = 0;       ///< parts that another worker has now
  std::uint64_t bytes = 0;       ///< of these parts
  std::uint64_t busy = 0;        ///< parts that were in use, or for which there was no room: left alone
  double before = 1, after = 1;  ///< largest load of a worker / mean
};

namespace detail {

/// A plan on its way: plain bytes, so that the thread may wait with it.
struct balance_job {
  global_address rows = 0;  ///< see src/runtime/balance_path.cpp
  std::uint64_t count = 0;
  std::uint64_t moves = 0;  ///< the first so many rows
  double before = 1;
};
balance_job begin_rebalance(const std::vector<part_info>& parts, const std::vector<double>& loads,
                            const balance_rule& how, place where);
/// May migrate.
rebalance_result finish_rebalance(const balance_job& job, place where);

template <class Weight>
[[gnu::noinline]] balance_job plan_range(global_address at, std::uint64_t bytes, const balance_rule& how,
                                         const Weight& weight, place where) {
  const std::vector<part_info> parts = global_parts(at, bytes, true);
  std::vector<double> loads;
  loads.reserve(parts.size());
  for (const part_info& p : parts) loads.push_back(static_cast<double>(weight(p)));
  return begin_rebalance(parts, loads, how, where);
}

}  // namespace detail

/// Balance the parts that hold objects [p, p + n), as @p how says. @p weight: the load that a part is, as a
/// number, of a part_info; it must not spawn or wait. Accesses that were counted are halved, so that the next
/// time says more of what was lately. Parts in use by a checkout are left where they are. Others may use the
/// memory meanwhile, and rebalance it too, but it must not be freed. Throws std::invalid_argument as
/// plan_rebalance and move, global_bad_alloc if there is no room for the plan (48 bytes a part). A thread
/// that holds a checkout must not call it: that ends the run with the place. Cost: parts_of; for each 64
/// parts that go to one host four round trips and their bytes, and a message to each worker of another host
/// that gets some, which takes them at its next spawn or when it is idle.
template <class T, class Weight>
rebalance_result rebalance(global_ptr<T> p, std::uint64_t n, const balance_rule& how, const Weight& weight,
                           detail::place where = detail::place::here()) {
  return detail::finish_rebalance(detail::plan_range(p.address(), n * sizeof(T), how, weight, where), where);
}
/// By accesses: see heat.hpp. On one host they are not counted, and nothing moves.
template <class T>
rebalance_result rebalance(global_ptr<T> p, std::uint64_t n, const balance_rule& how = {},
                           detail::place where = detail::place::here()) {
  return rebalance(
      p, n, how, [](const part_info& part) { return part.heat.all(); }, where);
}

}  // namespace godwit
