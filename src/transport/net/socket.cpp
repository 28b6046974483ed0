// See socket.hpp.
#include "transport/net/socket.hpp"

#include <arpa/inet.h>
#include <cerrno>
#include <cstring>
#include <ifaddrs.h>
#include <net/if.h>
#include <netpacket/packet.h>
#include <poll.h>
#include <stdexcept>
#include <sys/socket.h>
#include <unistd.h>

namespace godwit::transport::net {

namespace {
constexpr int buffer_bytes = 4 << 20;  // what arrives while the companion is not let in

sockaddr_in system_address(const address& a) noexcept {
  sockaddr_in s{};
  s.sin_family = AF_INET;
  s.sin_addr.s_addr = a.ip;
  s.sin_port = a.port;
  return s;
}
[[noreturn]] void failed(const char* what) {
  throw std::runtime_error(std::string("godwit: datagrams: cannot ") + what + ": " + std::strerror(errno) +
                           ": run without --godwit-directory (GODWIT_DIRECTORY)");
}
}  // namespace

std::string text_of(const address& a) {
  char text[INET_ADDRSTRLEN] = {};
  inet_ntop(AF_INET, &a.ip, text, sizeof text);
  return std::string(text) + ":" + std::to_string(ntohs(a.port));
}

address read_address(const std::string& text, std::uint16_t port) {
  const std::size_t colon = text.find(':');
  address a;
  unsigned long number = port;
  std::size_t read = 0;
  if (colon != std::string::npos) {
    const std::string digits = text.substr(colon + 1);
    try {
      number = std::stoul(digits, &read);
    } catch (const std::exception&) {
      number = 0;
    }
    if (read != digits.size()) number = 0;
  }
  if (number == 0 || number > 65535 || inet_pton(AF_INET, text.substr(0, colon).c_str(), &a.ip) != 1)
    throw std::invalid_argument("godwit: switch_at: '" + text +
                                "' is no address: give it as 10.0.0.254 or 10.0.0.254:4700");
  a.port = htons(static_cast<std::uint16_t>(number));
  return a;
}

address own_address(const std::string& name) {
  ifaddrs* all = nullptr;
  if (getifaddrs(&all) != 0) failed("list the network interfaces");
  address found;
  for (const ifaddrs* i = all; i != nullptr && found.ip == 0; i = i->ifa_next) {
    if (i->ifa_addr == nullptr || i->ifa_addr->sa_family != AF_INET || (i->ifa_flags & IFF_UP) == 0) continue;
    if (name.empty() ? (i->ifa_flags & IFF_LOOPBACK) != 0 : name != i->ifa_name) continue;
    sockaddr_in s{};
    std::memcpy(&s, i->ifa_addr, sizeof s);
    found.ip = s.sin_addr.s_addr;
  }
  freeifaddrs(all);
  if (found.ip == 0)
    throw std::runtime_error("godwit: datagrams: " +
                             (name.empty() ? "no interface but loopback is up"
                                           : "no interface " + name + " with an address is up") +
                             ": name one by --godwit-net-interface (GODWIT_NET_INTERFACE)");
  return found;
}

std::array<std::uint8_t, 6> mac_of(const address& own) {
  std::array<std::uint8_t, 6> mac{};
  ifaddrs* all = nullptr;
  if (getifaddrs(&all) != 0) return mac;
  std::string name;
  for (const ifaddrs* i = all; i != nullptr; i = i->ifa_next) {
    if (i->ifa_addr == nullptr || i->ifa_addr->sa_family != AF_INET) continue;
    sockaddr_in s{};
    std::memcpy(&s, i->ifa_addr, sizeof s);
    if (s.sin_addr.s_addr == own.ip) name = i->ifa_name;
  }
  for (const ifaddrs* i = all; i != nullptr; i = i->ifa_next) {
    if (i->ifa_addr == nullptr || i->ifa_addr->sa_family != AF_PACKET || name != i->ifa_name) continue;
    sockaddr_ll s{};
    std::memcpy(&s, i->ifa_addr, sizeof s);
    std::memcpy(mac.data(), s.sll_addr, mac.size());
  }
  freeifaddrs(all);
  return mac;
}

socket::socket() : fd_(::socket(AF_INET, SOCK_DGRAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0)) {
  if (fd_ < 0) failed("make a socket");
  const int on = 1;
  setsockopt(fd_, SOL_SOCKET, SO_NO_CHECK, &on, sizeof on);  // a switch changes addresses
  if (setsockopt(fd_, SOL_SOCKET, SO_RCVBUFFORCE, &buffer_bytes, sizeof buffer_bytes) != 0)
    setsockopt(fd_, SOL_SOCKET, SO_RCVBUF, &buffer_bytes, sizeof buffer_bytes);
  sockaddr_in any = system_address({INADDR_ANY, 0});
  socklen_t bytes = sizeof any;
  if (bind(fd_, reinterpret_cast<const sockaddr*>(&any), sizeof any) != 0 ||
      getsockname(fd_, reinterpret_cast<sockaddr*>(&any), &bytes) != 0) {
    close(fd_);
    failed("bind a socket");
  }
  port_ = any.sin_port;
}

socket::~socket() { close(fd_); }

void socket::send(const address& to, const void* data, std::size_t bytes) const noexcept {
  const sockaddr_in s = system_address(to);
  while (sendto(fd_, data, bytes, 0, reinterpret_cast<const sockaddr*>(&s), sizeof s) < 0 && errno == EINTR) {
  }
}

void socket::multicasts_from(const address& own) const noexcept {
  const in_addr from{own.ip};
  const unsigned char hops = 1;
  setsockopt(fd_, IPPROTO_IP, IP_MULTICAST_IF, &from, sizeof from);
  setsockopt(fd_, IPPROTO_IP, IP_MULTICAST_TTL, &hops, sizeof hops);
  const int off = 0;
  setsockopt(fd_, IPPROTO_IP, IP_MULTICAST_LOOP, &off, sizeof off);
}

void socket::set_service(int service) const noexcept {
  setsockopt(fd_, IPPROTO_IP, IP_TOS, &service, sizeof service);
}

std::size_t socket::receive(void* to, std::size_t most, address& from) const noexcept {
  for (;;) {
    sockaddr_in s{};
    socklen_t bytes = sizeof s;
    const ssize_t n = recvfrom(fd_, to, most, 0, reinterpret_cast<sockaddr*>(&s), &bytes);
    if (n < 0 && (errno == EINTR || errno == ECONNREFUSED)) continue;  // of one that we sent
    if (n <= 0) return 0;
    from = {s.sin_addr.s_addr, s.sin_port};
    return static_cast<std::size_t>(n);
  }
}

void socket::wait(int limit_ms) const noexcept {
  pollfd p{fd_, POLLIN, 0};
  static_cast<void>(poll(&p, 1, limit_ms));
}

}  // namespace godwit::transport::net
