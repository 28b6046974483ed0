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
void states_at(const reach& net, std::uint32_t host, std::span<const part> parts, heat_then then) {
  far_place names[most_states_in_call];
  std::transform(parts.begin(), parts.end(), names, [&](const part& p) { return p.name(net); });
  const base::unexposed inside;
  const transport::far::entry& e = net.port().call(
      worker_no{net.first_of(host)}, static_cast<std::uint64_t>(place_call::state), parts.size(),
      static_cast<std::uint64_t>(then), std::as_bytes(std::span(names, parts.size())));
  for (std::size_t i = 0; i < parts.size(); ++i)
    std::memcpy(parts[i].here, e.data + i * sizeof(part_state), sizeof(part_state));
}

/// What is here, and a message for each batch of the others.
void ask_once(const reach& net, std::span<part> parts, heat_then then) {
  std::sort(parts.begin(), parts.end(), [](const part& x, const part& y) { return x.host < y.host; });
  for (std::size_t i = 0, n = 1; i < parts.size(); i += n, n = 1) {
    while (i + n < parts.size() && n < most_states_in_call && parts[i + n].host == parts[i].host) ++n;
    if (parts[i].host != net.my_host()) {
      states_at(net, parts[i].host, parts.subspan(i, n), then);
      continue;
    }
    for (const part& p : parts.subspan(i, n)) {
      const part_state s = p.place(net).look(then, net.host());
      std::memcpy(p.here, &s, sizeof s);
    }
  }
}

}  // namespace

std::vector<seen_part> look_at_parts(const reach& net, directory& blocks, const descriptor& d,
                                     global_address at, std::uint64_t bytes, heat_then then) {
  const auto [low, high] = blocks.whole_parts(d, at, bytes);
  std::vector<seen_part> seen;
  blocks.each_piece(low, high - low, [&](const piece& p) { seen.push_back({p, {}}); });
  std::vector<part> asked;
  for (seen_part& s : seen) asked.emplace_back(net, s.p, reinterpret_cast<std::byte*>(&s.state));
  for (part_wait more(net); !asked.empty(); more.wait_for(asked)) {
    ask_once(net, asked, then);
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

void heat_sums::add(const heat_sums& more) {
  near += more.near;
  far += more.far;
  keep_most_used(used, more.used);
}

heat_sums heat_sums::of(const host_words& host) noexcept {
  heat_sums sums{host.near_uses.load(std::memory_order_relaxed),
                 host.far_uses.load(std::memory_order_relaxed)};
  std::copy_n(host.used, most_used_parts, sums.used);
  return sums;
}

void keep_most_used(std::span<used_part, most_used_parts> kept, std::span<const used_part> more) {
  std::vector<used_part> all(kept.begin(), kept.end());
  all.insert(all.end(), more.begin(), more.end());
  const auto end = all.begin() + most_used_parts;
  std::partial_sort(all.begin(), end, all.end(), [](const used_part& x, const used_part& y) {
    if (x.far != y.far) return x.far > y.far;
    if (x.near != y.near) return x.near > y.near;
    return x.allocation != y.allocation ? x.allocation < y.allocation : x.part < y.part;
  });
  std::copy(all.begin(), end, kept.begin());
}

}  // namespace godwit::gas
