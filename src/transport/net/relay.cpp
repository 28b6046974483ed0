// See relay.hpp.
#include "transport/net/relay.hpp"

#include <cstring>
#include <utility>

namespace godwit::transport::net {

namespace {
constexpr std::size_t most_bytes = 2048;
constexpr int delay_ms = 1;             // what is held goes after so long, whether others pass or not
constexpr unsigned most_overtakes = 8;  // or when so many have passed
}  // namespace

void relay::turn(int limit_ms) {
  alignas(godwit_packet) std::byte text[most_bytes];
  address from;
  socket_.wait(held_.empty() ? limit_ms : delay_ms);
  bool any = false;
  while (const std::size_t bytes = socket_.receive(text, sizeof text, from)) {
    any = true;
    if (bytes >= sizeof(godwit_packet)) handle(text, bytes, from);
  }
  if (any) return;
  for (const held& h : std::exchange(held_, {})) socket_.send(h.to, h.text.data(), h.text.size());
}

void relay::handle(std::byte* text, std::size_t bytes, const address& from) {
  godwit_packet p;
  std::memcpy(&p, text, sizeof p);
  if (p.magic != godwit_packet_magic) return;
  const auto answer = [&](godwit_packet_kind kind) {
    p.kind = static_cast<std::uint16_t>(kind);
    std::memcpy(text, &p, sizeof p);
    send(from, text, bytes);
  };
  if (p.kind == godwit_hello) {
    if (std::exchange(run_, p.run) != p.run) {  // rules of another run are not this one's
      rules_.clear();
      hosts_.clear();
    }
    if (hosts_.size() <= p.from) hosts_.resize(p.from + std::size_t{1});
    hosts_[p.from] = from;
    faults_ = p.faults;
    return answer(godwit_ready);
  }
  if (p.run != run_) return;
  std::uint16_t to = p.to;
  if (p.kind == godwit_rebind) {
    rule& r = rules_.try_emplace(p.block, rule{p.from, p.version}).first->second;
    if (r.version < p.version) r = {p.from, p.version};  // SW4
    return answer(godwit_bound);
  }
  if (p.kind == godwit_access)
    if (const auto r = rules_.find(p.block); r != rules_.end()) to = r->second.host;
  if (to < hosts_.size() && hosts_[to].port != 0) send(hosts_[to], text, bytes);
}

void relay::send(const address& to, const std::byte* text, std::size_t bytes) {
  ++passed_;
  for (std::size_t i = 0; i < held_.size();) {
    if (held_[i].until-- != 0) {
      ++i;
      continue;
    }
    socket_.send(held_[i].to, held_[i].text.data(), held_[i].text.size());
    held_.erase(held_.begin() + static_cast<std::ptrdiff_t>(i));
  }
  if (chance()) {
    ++lost_;
    return;
  }
  if (chance()) held_.push_back({to, random_.below(most_overtakes), {text, text + bytes}});  // a late double
  if (chance()) {
    held_.push_back({to, random_.below(most_overtakes), {text, text + bytes}});  // overtaken
    return;
  }
  socket_.send(to, text, bytes);
}

}  // namespace godwit::transport::net
