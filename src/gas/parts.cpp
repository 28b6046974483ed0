// See parts.hpp.
#include "gas/parts.hpp"

#include "base/check.hpp"

#include <algorithm>
#include <numeric>

namespace godwit::gas {

using transport::far::inline_bytes;
using far_range = transport::far::piece;

namespace {

/// By host and address; those that touch become one.
void tidy(std::vector<part>& parts) noexcept {
  std::sort(parts.begin(), parts.end(),
            [](const part& x, const part& y) { return x.host != y.host ? x.host < y.host : x.at < y.at; });
  auto last = parts.begin();
  for (const part& p : parts) {
    if (&p == &*last) continue;
    if (p.host == last->host && p.at == last->at + last->bytes && p.here == last->here + last->bytes)
      last->bytes += p.bytes;
    else
      *++last = p;
  }
  if (!parts.empty()) parts.erase(last + 1, parts.end());
}

/// Of memory that stays where it is.
std::uint64_t fetch_fixed(const reach& net, std::vector<part>& parts) noexcept {
  std::uint64_t requests = 0;
  constexpr std::size_t most = inline_bytes / sizeof(far_range);
  far_range batch[most];
  for (auto i = parts.begin(); i != parts.end(); ++requests) {
    const worker_no target{net.first_of(i->host)};
    if (i->bytes > largest_packed) {
      net.port().get(target, i->here, net.at(i->at), i->bytes);
      ++i;
      continue;
    }
    const auto begin = i;
    std::size_t n = 0, bytes = 0;
    for (; i != parts.end() && i->host == begin->host && i->bytes <= largest_packed && n < most &&
           bytes + i->bytes <= inline_bytes;
         bytes += i++->bytes)
      batch[n++] = {reinterpret_cast<std::uint64_t>(net.at(i->at)), i->bytes};
    GODWIT_ASSERT(n != 0, "a batch takes at least one piece");
    const std::byte* answer = net.port().gather(target, batch, n);
    for (auto p = begin; p != i; answer += p++->bytes) std::memcpy(p->here, answer, p->bytes);
  }
  return requests;
}

std::uint64_t write_fixed(const reach& net, std::vector<part>& parts) noexcept {
  std::uint64_t requests = 0;
  std::byte packed[inline_bytes];
  for (auto i = parts.begin(); i != parts.end();) {  // host by host; only the last request is waited for
    const std::uint32_t host = i->host;
    const worker_no target{net.first_of(host)};
    std::size_t used = 0;
    bool puts = false;
    auto send = [&] {
      net.port().scatter(target, packed, used);
      ++requests;
      used = 0;
    };
    for (; i != parts.end() && i->host == host; ++i) {
      const far_range head{reinterpret_cast<std::uint64_t>(net.at(i->at)), i->bytes};
      const std::size_t room = sizeof head + (i->bytes + 7) / 8 * 8;
      if (room > largest_packed) {
        net.port().put(target, net.at(i->at), i->here, i->bytes);
        ++requests;
        puts = true;
        continue;
      }
      if (used + room > sizeof packed) send();
      std::memcpy(packed + used, &head, sizeof head);
      std::memcpy(packed + used + sizeof head, i->here, i->bytes);
      used += room;
    }
    if (used != 0)
      send();  // answered; and requests to one worker keep their order
    else if (puts)
      net.port().fence(target);
  }
  return requests;
}

}  // namespace

std::uint64_t bytes_of(const std::vector<part>& parts) noexcept {
  return std::accumulate(parts.begin(), parts.end(), std::uint64_t{0},
                         [](std::uint64_t sum, const part& p) { return sum + p.bytes; });
}

namespace {
/// Those of memory that stays where it is by @p fixed, the others by @p movable.
template <class Fixed, class Movable>
std::uint64_t by_kind(const reach& net, std::vector<part>& parts, std::vector<part>& left, Fixed&& fixed,
                      Movable&& movable) noexcept {
  const base::unexposed inside;
  const auto first =
      std::partition(parts.begin(), parts.end(), [](const part& p) { return p.words == nullptr; });
  std::vector<part> places(first, parts.end());
  parts.erase(first, parts.end());
  tidy(parts);
  const std::uint64_t requests = fixed(net, parts) + movable(net, places, left);
  parts.insert(parts.end(), places.begin(), places.end());
  return requests;
}
}  // namespace

std::uint64_t fetch(const reach& net, std::vector<part>& parts, std::vector<part>& left) noexcept {
  return by_kind(net, parts, left, fetch_fixed, fetch_places);
}

std::uint64_t write(const reach& net, std::vector<part>& parts, std::vector<part>& left) noexcept {
  return by_kind(net, parts, left, write_fixed, write_places);
}

}  // namespace godwit::gas
