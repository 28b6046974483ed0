// A switch that needs no rights: a process that passes datagrams on.
//
// It does what the switches in a network do (switch_xdp.c): a packet for a block goes to the host that has it
// by the newest rule. For tests it loses, doubles and delays packets. Not for many hosts: all packets go
// through this one process. Made by src/runtime/network.cpp; docs/protocols/switch.md.
// Test: tests/transport/channel_test.cpp.
#pragma once

#include "base/random.hpp"
#include "transport/net/packet.h"
#include "transport/net/socket.hpp"

#include <cstddef>
#include <cstdint>
#include <deque>
#include <unordered_map>
#include <vector>

namespace godwit::transport::net {

class relay {
 public:
  explicit relay(const socket& s, std::uint64_t seed = 1) noexcept : socket_(s), random_(seed) {}

  /// Pass on what is there, and sleep until there is more, @p limit_ms at most.
  void turn(int limit_ms);

  std::uint64_t passed() const noexcept { return passed_; }
  std::uint64_t lost() const noexcept { return lost_; }

 private:
  struct rule {
    std::uint16_t host;
    std::uint64_t version;
  };
  struct held {
    address to;
    unsigned until;  ///< it goes when so many others have passed
    std::vector<std::byte> text;
  };
  void handle(std::byte* text, std::size_t bytes, const address& from);
  void send(const address& to, const std::byte* text, std::size_t bytes);
  bool chance() noexcept { return random_.below(100) < faults_; }

  const socket& socket_;
  base::small_random random_;
  std::uint32_t faults_ = 0;
  std::uint32_t run_ = 0;
  std::vector<address> hosts_;
  std::unordered_map<std::uint64_t, rule> rules_;  ///< by block. Blocks are addresses: there are so many
  std::deque<held> held_;
  std::uint64_t passed_ = 0, lost_ = 0;
};

}  // namespace godwit::transport::net
