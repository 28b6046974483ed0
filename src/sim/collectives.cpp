// See collectives.hpp.
#include "sim/collectives.hpp"

#include <algorithm>
#include <bit>

namespace godwit::sim {

std::uint64_t collectives_ns(const machine& m, std::uint32_t ranks, std::uint32_t hosts,
                             std::uint64_t counters) noexcept {
  const std::uint32_t nodes = std::max(hosts / m.hosts_per_node, 1u);
  std::uint64_t wires = 0;
  for (std::uint32_t n = 0; n < nodes; ++n) wires += m.wire_ns(0, n);
  const auto steps = static_cast<std::uint64_t>(std::bit_width(std::max(ranks, 1u) - 1));
  std::uint64_t sum = 0;
  for (const collective& c : collectives_of_run) {
    const std::uint64_t bytes = c.bytes + c.host_bytes * hosts + (c.name == "Gather" ? counters : 0);
    const std::uint64_t down = c.calls * steps * (2 * m.overhead_ns + wires / nodes);  // a tree, once through
    if (c.name == "Allgather" || c.name == "Gather")
      sum += down + m.bytes_ns(bytes * ranks);  // all of it comes to one
    else if (c.name == "Allreduce" || c.name == "Comm_dup")
      sum += 2 * (down + steps * m.bytes_ns(bytes));
    else
      sum += down + steps * m.bytes_ns(bytes);
  }
  return sum;
}

}  // namespace godwit::sim
