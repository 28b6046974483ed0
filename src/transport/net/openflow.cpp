// See openflow.hpp.
#include "transport/net/openflow.hpp"

#include "base/clock.hpp"

#include <arpa/inet.h>
#include <cerrno>
#include <cstring>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

namespace godwit::transport::net {

namespace {

constexpr std::uint8_t version = 4;  // of the protocol: 1.3
constexpr std::size_t head_bytes = 8;
enum type : std::uint8_t {
  hello = 0,
  error = 1,
  echo_request = 2,
  echo_reply = 3,
  flow_mod = 14,
  barrier_request = 20,
  barrier_reply = 21
};
enum field : std::uint8_t {
  eth_dst = 3,
  eth_type = 5,
  ip_dscp = 8,
  ip_proto = 10,
  ipv4_dst = 12,
  udp_dst = 16
};

constexpr std::uint32_t blocks_ip = 0xef000000;  // 239.0.0.0/8

/// Bytes in the order of the network.
class message {
 public:
  explicit message(type t, std::uint32_t number = 0) {
    u8(version);
    u8(t);
    u16(0);  // length
    u32(number);
  }
  void u8(unsigned v) { bytes_.push_back(static_cast<std::uint8_t>(v)); }
  void u16(unsigned v) { u8(v >> 8), u8(v & 255); }
  void u32(std::uint32_t v) { u16(v >> 16), u16(v & 0xffff); }
  void u64(std::uint64_t v) { u32(static_cast<std::uint32_t>(v >> 32)), u32(static_cast<std::uint32_t>(v)); }
  void raw(std::span<const std::uint8_t> b) { bytes_.insert(bytes_.end(), b.begin(), b.end()); }
  /// The head of a field of a match (OXM).
  void oxm(field f, unsigned value_bytes, bool masked = false) {
    u16(0x8000);
    u8(static_cast<unsigned>(f) << 1 | (masked ? 1u : 0u));
    u8(value_bytes * (masked ? 2 : 1));
  }
  std::size_t size() const noexcept { return bytes_.size(); }
  void pad_from(std::size_t begin) {
    while ((bytes_.size() - begin) % 8 != 0) u8(0);
  }
  void length_at(std::size_t at, std::size_t bytes) {
    bytes_[at] = static_cast<std::uint8_t>(bytes >> 8);
    bytes_[at + 1] = static_cast<std::uint8_t>(bytes);
  }
  std::vector<std::uint8_t> take() {
    length_at(2, size());
    return std::move(bytes_);
  }

 private:
  std::vector<std::uint8_t> bytes_;
};

enum command : std::uint8_t { add = 0, remove = 3 };

/// What precedes the match of a flow.
message begin_flow(command c, unsigned priority) {
  message m(flow_mod);
  m.u64(0), m.u64(0);  // cookie, mask
  m.u8(0);             // table
  m.u8(c);
  m.u16(0), m.u16(0);  // no timeouts
  m.u16(priority);
  m.u32(~0u), m.u32(~0u), m.u32(~0u);  // no buffer, any port, any group
  m.u16(0), m.u16(0);
  return m;
}
template <class Fields>
void match(message& m, Fields&& fields) {
  const std::size_t begin = m.size();
  m.u16(1);  // OXM
  m.u16(0);
  m.oxm(eth_type, 2), m.u16(0x0800);
  m.oxm(ip_proto, 1), m.u8(17);
  fields();
  m.length_at(begin + 2, m.size() - begin);
  m.pad_from(begin);
}
/// Its addresses become those of @p to; then it goes where frames to them go.
void goes_to(message& m, const link_address& to) {
  const std::size_t begin = m.size();
  m.u16(4), m.u16(0), m.u32(0);  // apply actions
  const auto set = [&](field f, std::span<const std::uint8_t> value) {
    const std::size_t action = m.size();
    m.u16(25), m.u16(0);
    m.oxm(f, static_cast<unsigned>(value.size()));
    m.raw(value);
    m.pad_from(action);
    m.length_at(action + 2, m.size() - action);
  };
  const auto bytes_of = [](const auto& v) {
    return std::span(reinterpret_cast<const std::uint8_t*>(&v), sizeof v);
  };
  set(eth_dst, to.mac);
  set(ipv4_dst, bytes_of(to.at.ip));
  set(udp_dst, bytes_of(to.at.port));
  m.u16(0), m.u16(16), m.u32(0xfffffffa), m.u16(0xffff);  // output: normal
  m.u16(0), m.u32(0);
  m.length_at(begin + 2, m.size() - begin);
}

}  // namespace

address address_of_block(std::uint64_t block) noexcept {
  return {htonl(blocks_ip | static_cast<std::uint32_t>(block >> 16 & 0xff'ffff)),
          htons(static_cast<std::uint16_t>(block))};
}
int service_of_host(std::uint32_t home) noexcept { return static_cast<int>((home + 1) << 2); }

openflow::~openflow() {
  if (fd_ >= 0) close(fd_);
}

bool openflow::connect(const address& at, std::uint64_t patience_ns) {
  fd_ = ::socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
  if (fd_ < 0) return false;
  const int on = 1;
  setsockopt(fd_, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
  sockaddr_in to{};
  to.sin_family = AF_INET;
  to.sin_addr.s_addr = at.ip;
  to.sin_port = at.port;
  if (::connect(fd_, reinterpret_cast<const sockaddr*>(&to), sizeof to) != 0 && errno != EINPROGRESS)
    return false;
  queue(message(hello).take());
  const std::uint64_t until = base::now_ns() + patience_ns;
  for (std::string problem; !greeted_ && problem.empty() && base::now_ns() < until;) {
    pollfd p{fd_, static_cast<short>(POLLIN | (out_.empty() ? 0 : POLLOUT)), 0};
    static_cast<void>(poll(&p, 1, 10));
    static_cast<void>(turn(problem));
  }
  return greeted_;
}

void openflow::clear() {
  message m = begin_flow(remove, 0);
  match(m, [&] { m.oxm(ipv4_dst, 4, true), m.u32(blocks_ip), m.u32(0xff000000); });
  queue(m.take());
  message drop = begin_flow(add, 1);
  match(drop, [&] { drop.oxm(ipv4_dst, 4, true), drop.u32(blocks_ip), drop.u32(0xff000000); });
  queue(drop.take());
}

void openflow::set_home(std::uint32_t host, const link_address& to) {
  message m = begin_flow(add, 2);
  match(m, [&] {
    m.oxm(ip_dscp, 1), m.u8(static_cast<unsigned>(service_of_host(host)) >> 2);
    m.oxm(ipv4_dst, 4, true), m.u32(blocks_ip), m.u32(0xff000000);
  });
  goes_to(m, to);
  queue(m.take());
}

std::vector<std::uint8_t> openflow::block_rule(std::uint64_t block, const link_address& to) {
  const address at = address_of_block(block);
  message m = begin_flow(add, 3);
  match(m, [&] {
    m.oxm(ipv4_dst, 4), m.u32(ntohl(at.ip));
    m.oxm(udp_dst, 2), m.u16(ntohs(at.port));
  });
  goes_to(m, to);
  return m.take();
}

void openflow::set_block(std::uint64_t block, const link_address& to) { queue(block_rule(block, to)); }

void openflow::confirm(std::uint32_t number) { queue(message(barrier_request, number).take()); }

void openflow::queue(std::span<const std::uint8_t> message) {
  out_.insert(out_.end(), message.begin(), message.end());
  flush();
}

void openflow::flush() noexcept {
  while (!out_.empty()) {
    const ssize_t n = ::send(fd_, out_.data(), out_.size(), MSG_NOSIGNAL);
    if (n <= 0) return;
    out_.erase(out_.begin(), out_.begin() + n);
  }
}

std::vector<std::uint32_t> openflow::turn(std::string& problem) {
  flush();
  std::vector<std::uint32_t> confirmed;
  std::uint8_t bytes[4096];
  for (;;) {
    const ssize_t n = recv(fd_, bytes, sizeof bytes, 0);
    if (n > 0) {
      in_.insert(in_.end(), bytes, bytes + n);
      continue;
    }
    if (n == 0) problem = "it has closed the connection";
    if (n < 0 && errno != EAGAIN && errno != EINTR && errno != ENOTCONN) problem = std::strerror(errno);
    break;
  }
  const auto u16_at = [&](std::size_t i) { return static_cast<unsigned>(in_[i] << 8 | in_[i + 1]); };
  while (in_.size() >= head_bytes) {
    const std::size_t length = u16_at(2);
    if (length < head_bytes) problem = "it speaks no OpenFlow";
    if (length < head_bytes || in_.size() < length) break;
    const std::uint32_t number = u16_at(4) << 16 | u16_at(6);
    switch (in_[1]) {
      case hello:
        if (in_[0] < version)
          problem = "it speaks an older OpenFlow than 1.3";
        else
          greeted_ = true;
        break;
      case echo_request: {
        message m(echo_reply, number);
        m.raw(std::span(in_).subspan(head_bytes, length - head_bytes));
        queue(m.take());
        break;
      }
      case error:
        problem = length >= head_bytes + 4
                      ? "it refused a rule (OpenFlow error " + std::to_string(u16_at(8)) + ", " +
                            std::to_string(u16_at(10)) + ")"
                      : "it refused a rule";
        break;
      case barrier_reply:
        confirmed.push_back(number);
        break;
      default:
        break;
    }
    in_.erase(in_.begin(), in_.begin() + static_cast<std::ptrdiff_t>(length));
  }
  return confirmed;
}

}  // namespace godwit::transport::net
