// The functions of heat.hpp and rebalance.hpp: thin calls into this worker's gas::memory.
#include "runtime/global.hpp"

#include <godwit/heat.hpp>

#include "gas/heat.hpp"

namespace godwit::detail {

std::vector<part_info> global_parts(global_address at, std::uint64_t bytes, bool halve) {
  gas::memory& m = runtime::memory_of("parts_of");
  const gas::descriptor& d = runtime::movable_range(m, at, bytes, "parts_of");
  std::vector<part_info> all;
  if (bytes == 0) return all;
  for (const gas::seen_part& s : gas::look_at_parts(m.net, m.directory, d, at, bytes, halve)) {
    part_info info{global_ptr<std::byte>(s.p.at),
                   s.p.bytes,
                   s.p.home,
                   gas::ownership::from(s.state.place.owner, s.p.home).worker,
                   {s.state.near, s.state.far}};
    if (s.state.other != 0) {
      info.heat.other = m.net.first_of(s.state.other - 1);
      info.heat.by_other = s.state.lead;
    }
    all.push_back(info);
  }
  return all;
}

}  // namespace godwit::detail
