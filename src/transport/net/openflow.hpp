// A switch that is told by OpenFlow 1.3: one connection, on which rules are set and confirmed.
//
// What is sent to a block goes to an address of its own, 239.a.b.c and a port, which make its number; a rule
// of the switch turns that into the address of the host that has it. Without one the host that the type of
// service names gets it: the block's home. Nothing here waits but connect.
// Source: OpenFlow Switch Specification 1.3.5 (ONF TS-025), 7.2 and 7.3. Called by: channel.cpp. Document:
// docs/switch.md. Tests: tests/transport/openflow_test.cpp, tests/mpi/switch_test.sh.
#pragma once

#include "transport/net/socket.hpp"

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace godwit::transport::net {

inline constexpr std::uint16_t openflow_port = 6653;
inline constexpr unsigned openflow_block_bits = 40;
inline constexpr std::uint32_t openflow_most_hosts = 63;

/// Where datagrams for @p block go.
address address_of_block(std::uint64_t block) noexcept;
/// Type of service that means the host @p home.
int service_of_host(std::uint32_t home) noexcept;

/// A host as rules name it.
struct link_address {
  address at;
  std::array<std::uint8_t, 6> mac{};
};

class openflow {
 public:
  openflow() = default;
  ~openflow();
  openflow(const openflow&) = delete;

  /// False: nobody listens there, or it is no OpenFlow 1.3, for so long.
  bool connect(const address& at, std::uint64_t patience_ns);

  /// Forget all rules of blocks and homes; what is sent to a block without a rule is dropped.
  void clear();
  void set_home(std::uint32_t host, const link_address& to);
  void set_block(std::uint64_t block, const link_address& to);
  /// When all that was said before is done, @p number is in what turn gives back. Not 0, 32 bits.
  void confirm(std::uint32_t number);
  /// Send and receive what can be now. What was confirmed; @p problem: the switch refused something, or has
  /// gone.
  std::vector<std::uint32_t> turn(std::string& problem);

  /// For tests: a flow that @p to gets, as bytes.
  static std::vector<std::uint8_t> block_rule(std::uint64_t block, const link_address& to);

 private:
  void queue(std::span<const std::uint8_t> message);
  void flush() noexcept;

  int fd_ = -1;
  bool greeted_ = false;
  std::vector<std::uint8_t> out_, in_;
};

}  // namespace godwit::transport::net
