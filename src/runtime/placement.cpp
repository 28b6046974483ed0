// See placement.hpp.
#include "runtime/placement.hpp"

#include <algorithm>

namespace godwit::runtime {

namespace {

/// The ranks of each host; hosts by their lowest rank.
std::vector<std::vector<int>> ranks_by_host(const std::vector<rank_info>& ranks, bool every_rank) {
  std::vector<std::vector<int>> hosts;
  for (std::size_t r = 0; r < ranks.size(); ++r) {
    const auto found = std::find_if(hosts.begin(), hosts.end(), [&](const std::vector<int>& host) {
      return !every_rank && ranks[static_cast<std::size_t>(host.front())].machine == ranks[r].machine;
    });
    if (found == hosts.end())
      hosts.push_back({static_cast<int>(r)});
    else
      found->push_back(static_cast<int>(r));
  }
  return hosts;
}

}  // namespace

placement::placement(const std::vector<rank_info>& ranks, int me, const options& opts)
    : of_rank(ranks.size()) {
  const auto n = static_cast<std::uint32_t>(ranks.size());
  workers = opts.workers != 0 ? opts.workers : n;
  std::uint32_t next = 0;
  for (const std::vector<int>& all : ranks_by_host(ranks, opts.hosts == choice::hosts::ranks)) {
    const std::uint32_t first = next;
    std::vector<int> with_workers;
    for (const int r : all) {
      const auto i = static_cast<std::uint32_t>(r);
      const std::uint32_t count = workers / n + (i < workers % n ? 1 : 0);
      of_rank[i] = {next, count};
      next += count;
      if (count != 0) with_workers.push_back(r);
    }
    if (next == first) continue;
    if (std::find(with_workers.begin(), with_workers.end(), me) != with_workers.end())
      my_host = static_cast<std::uint32_t>(hosts.size());
    hosts.push_back({first, next - first});
    ranks_of.push_back(std::move(with_workers));
  }
}

}  // namespace godwit::runtime
