// See placement.hpp.
#include "runtime/placement.hpp"

#include <unordered_map>

namespace godwit::runtime {

machine_table::machine_table(std::span<const std::uint64_t> hashes) {
  std::unordered_map<std::uint64_t, std::uint32_t> numbers;
  for (const std::uint64_t hash : hashes) {
    const auto [found, is_new] = numbers.try_emplace(hash, static_cast<std::uint32_t>(first_rank.size()));
    if (is_new) first_rank.push_back(static_cast<int>(of_rank.size()));
    of_rank.push_back(found->second);
  }
}

placement::placement(const machine_table& machines, int me, const options& opts)
    : of_rank(machines.of_rank.size()) {
  const auto n = static_cast<std::uint32_t>(of_rank.size());
  workers = opts.workers != 0 ? opts.workers : n;
  const bool every_rank = opts.hosts == choice::hosts::ranks;
  std::vector<std::vector<int>> ranks_by_host(every_rank ? n : machines.first_rank.size());
  for (std::uint32_t r = 0; r < n; ++r)
    ranks_by_host[every_rank ? r : machines.of_rank[r]].push_back(static_cast<int>(r));

  std::uint32_t next = 0;
  for (const std::vector<int>& all : ranks_by_host) {
    const std::uint32_t first = next;
    std::vector<int> with_workers;
    for (const int r : all) {
      const auto i = static_cast<std::uint32_t>(r);
      const std::uint32_t count = workers / n + (i < workers % n ? 1 : 0);
      of_rank[i] = {next, count};
      next += count;
      if (count == 0) continue;
      with_workers.push_back(r);
      if (r == me) my_host = static_cast<std::uint32_t>(hosts.size());
    }
    if (next == first) continue;
    hosts.push_back({first, next - first});
    ranks_of.push_back(std::move(with_workers));
  }
}

}  // namespace godwit::runtime
