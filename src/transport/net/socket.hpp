// UDP sockets that never wait, and where the own host can be reached.
//
// Called by channel.cpp, relay.cpp and src/runtime/network.cpp. Test: tests/transport/channel_test.cpp.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <netinet/in.h>
#include <string>

namespace godwit::transport::net {

/// IPv4 and port, both in the order of the network.
struct address {
  std::uint32_t ip = 0;
  std::uint16_t port = 0;
  bool operator==(const address&) const = default;
};
std::string text_of(const address& a);
/// "ADDRESS" or "ADDRESS:PORT", numbers only. Throws std::invalid_argument.
address read_address(const std::string& text, std::uint16_t port);
/// Of the interface @p name; empty: of the first one that is up and no loopback. Throws std::runtime_error.
address own_address(const std::string& name);

/// Of the interface that has the address @p own; zeros: it has none.
std::array<std::uint8_t, 6> mac_of(const address& own);

class socket {
 public:
  /// At a port that the system chooses. Throws std::runtime_error.
  socket();
  ~socket();
  socket(const socket&) = delete;

  std::uint16_t port() const noexcept { return port_; }
  int fd() const noexcept { return fd_; }
  /// What cannot be sent now is lost.
  void send(const address& to, const void* data, std::size_t bytes) const noexcept;
  /// Multicasts leave by the interface with the address @p own.
  void multicasts_from(const address& own) const noexcept;
  /// Type of service of what is sent from now on.
  void set_service(int service) const noexcept;
  /// Bytes of the next datagram; 0: there is none.
  std::size_t receive(void* to, std::size_t most, address& from) const noexcept;
  /// Until there is one, @p limit_ms at most.
  void wait(int limit_ms) const noexcept;

 private:
  int fd_;
  std::uint16_t port_ = 0;
};

}  // namespace godwit::transport::net
