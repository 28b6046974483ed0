// See heat.hpp.
#include "gas/heat.hpp"

#include <algorithm>
#include <cstring>
#include <span>

namespace godwit::gas {

bool is_wanted(const part_state& s, std::uint64_t bytes) noexcept {
  const std::uint64_t cost = 4 + bytes / 4096, near = s.near, other = s.lead;
  return s.other != 0 && other > 2 * near && other - near > cost;
}

namespace {

/// The states of @p parts, which @p host is believed to have, to where they want them.
void states_at(const reach& net, std::uint32_t host, std::span<const part> parts, bool halve) {
  far_place names[most_states_in_call];
  std::transform(parts.begin(), parts.end(), names, [&](const part& p) { return p.name(net); });
  const base::unexposed inside;
  const transport::far::entry& e =
      net.port().call(worker_no{net.first_of(host)}, static_cast<std::uint64_t>(place_call::state),
                      parts.size(), halve ? 1 : 0, std::as_bytes(std::span(names, parts.size())));
  for (std::size_t i = 0; i < parts.size(); ++i)
    std::memcpy(parts[i].here, e.data + i * sizeof(part_state), sizeof(part_state));
}

/// What is here, and a message for each batch of the others.
void ask_once(const reach& net, std::span<part> parts, bool halve) {
  std::sort(parts.begin(), parts.end(), [](const part& x, const part& y) { return x.host < y.host; });
  for (std::size_t i = 0, n = 1; i < parts.size(); i += n, n = 1) {
    while (i + n < parts.size() && n < most_states_in_call && parts[i + n].host == parts[i].host) ++n;
    if (parts[i].host != net.my_host()) {
      states_at(net, parts[i].host, parts.subspan(i, n), halve);
      continue;
    }
    for (const part& p : parts.subspan(i, n)) {
      const part_state s = p.place(net).look(halve);
      std::memcpy(p.here, &s, sizeof s);
    }
  }
}

}  // namespace

std::vector<seen_part> look_at_parts(const reach& net, directory& blocks, const descriptor& d,
                                     global_address at, std::uint64_t bytes, bool halve) {
  const auto [low, high] = blocks.whole_parts(d, at, bytes);
  std::vector<seen_part> seen;
  blocks.each_piece(low, high - low, [&](const piece& p) { seen.push_back({p, {}}); });
  std::vector<part> asked;
  for (seen_part& s : seen) asked.emplace_back(net, s.p, reinterpret_cast<std::byte*>(&s.state));
  for (part_wait more(net); !asked.empty(); more.wait_for(asked)) {
    ask_once(net, asked, halve);
    std::erase_if(asked, [&](part& p) {
      const place_answer& said = reinterpret_cast<const part_state*>(p.here)->place;
      if (said.what == place_says::done) return true;
      p.follow(net, said);
      return false;
    });
    if (asked.empty()) break;
  }
  return seen;
}

}  // namespace godwit::gas
