// See spawn_samples.hpp.
#include "analysis.hpp"

#include <algorithm>

namespace godwit::report {

void spawn_samples::add(std::uint32_t w, std::uint64_t at, std::uint64_t ns, std::uint32_t count,
                        std::uint32_t name) {
  worker& me = workers_[w];
  const auto stands_for = static_cast<double>(std::max(at - std::min(me.last, at), ns));
  me.last = at;
  me.stands_for_ns += stands_for;
  if (count == 0) return;
  seen_ += count;
  me.spawns[name] += stands_for * count / static_cast<double>(std::max<std::uint64_t>(ns, 1));
}

spawn_estimate spawn_samples::estimate(const analysis& a) const {
  spawn_estimate all{.seen = seen_};
  std::map<std::uint32_t, double> by_name;
  for (std::uint32_t w = 0; w < a.workers; ++w) {
    const worker& me = workers_[w];
    if (me.stands_for_ns <= 0) continue;
    const double busy =
        static_cast<double>(a.totals[w].ns[static_cast<std::size_t>(state::busy)]) / me.stands_for_ns;
    for (const auto& [name, spawns] : me.spawns) by_name[name] += spawns * busy;
  }
  double most = 0;
  for (const auto& [name, spawns] : by_name) {
    all.spawns += spawns;
    if (spawns > most) most = spawns, all.most = name;
  }
  return all;
}

}  // namespace godwit::report
