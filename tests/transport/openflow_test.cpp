// What is said to a switch by OpenFlow 1.3, and what is heard, with a switch that this test plays itself.
// Whether a real one understands it: tests/mpi/switch_test.sh.
#include "transport/net/openflow.hpp"

#include <gtest/gtest.h>

#include <arpa/inet.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <string>
#include <thread>
#include <vector>

namespace {

namespace net = godwit::transport::net;
using bytes = std::vector<std::uint8_t>;

constexpr net::link_address host{{0x0200000a, 0x3412}, {2, 0, 0, 0, 0, 7}};

TEST(OpenFlow, ABlockHasAnAddressOfItsOwn) {
  const net::address a = net::address_of_block(0x12'3456'789a);
  EXPECT_EQ(ntohl(a.ip), 0xef123456);
  EXPECT_EQ(ntohs(a.port), 0x789a);
  EXPECT_EQ(net::service_of_host(0), 4);
}

// Byte by byte, as the specification has it.
TEST(OpenFlow, ARuleOfABlock) {
  const bytes rule = net::openflow::block_rule(0x12'3456'789a, host);
  const bytes head = {4,   14,  0,   168, 0,   0,   0,   0,   0,   0,   0,   0,   0, 0, 0, 0,
                      0,   0,   0,   0,   0,   0,   0,   0,   0,   0,   0,   0,   0, 0, 0, 3,
                      255, 255, 255, 255, 255, 255, 255, 255, 255, 255, 255, 255, 0, 0, 0, 0};
  ASSERT_GT(rule.size(), head.size());
  EXPECT_EQ(rule.size(), std::size_t{rule[2]} << 8 | rule[3]);
  EXPECT_EQ(rule.size() % 8, 0u);
  EXPECT_EQ(bytes(rule.begin() + 4, rule.begin() + 48), bytes(head.begin() + 4, head.end()));
  const bytes match = {0,    1,       0, 29,      0x80, 0,    5 << 1,  2, 8,    0,    0x80,
                       0,    10 << 1, 1, 17,      0x80, 0,    12 << 1, 4, 0xef, 0x12, 0x34,
                       0x56, 0x80,    0, 16 << 1, 2,    0x78, 0x9a,    0, 0,    0};
  EXPECT_EQ(bytes(rule.begin() + 48, rule.begin() + 80), match);
  const bytes actions = {
      0, 4,  0, 72, 0,    0,   0,       0,                                    // apply
      0, 25, 0, 16, 0x80, 0,   3 << 1,  6,    2,    0,    0, 0, 0, 7, 0, 0,   // eth_dst
      0, 25, 0, 16, 0x80, 0,   12 << 1, 4,    10,   0,    0, 2, 0, 0, 0, 0,   // ipv4_dst
      0, 25, 0, 16, 0x80, 0,   16 << 1, 2,    0x12, 0x34, 0, 0, 0, 0, 0, 0,   // udp_dst
      0, 0,  0, 16, 255,  255, 255,     0xfa, 255,  255,  0, 0, 0, 0, 0, 0};  // output: normal
  EXPECT_EQ(bytes(rule.begin() + 80, rule.end()), actions);
}

/// One that listens.
class fake_switch {
 public:
  fake_switch() : fd_(::socket(AF_INET, SOCK_STREAM, 0)) {
    sockaddr_in any{};
    any.sin_family = AF_INET;
    any.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t size = sizeof any;
    if (bind(fd_, reinterpret_cast<const sockaddr*>(&any), sizeof any) != 0 || listen(fd_, 1) != 0 ||
        getsockname(fd_, reinterpret_cast<sockaddr*>(&any), &size) != 0)
      ADD_FAILURE() << "cannot listen";
    at = {any.sin_addr.s_addr, any.sin_port};
  }
  ~fake_switch() {
    hang_up();
    close(fd_);
  }
  void accept_and_say(const bytes& what) {
    to_ = accept(fd_, nullptr, nullptr);
    say(what);
  }
  void say(const bytes& what) {
    EXPECT_EQ(send(to_, what.data(), what.size(), MSG_NOSIGNAL), static_cast<ssize_t>(what.size()));
  }
  /// The next @p n bytes that it is told.
  bytes hear(std::size_t n) {
    bytes b(n);
    EXPECT_EQ(recv(to_, b.data(), n, MSG_WAITALL), static_cast<ssize_t>(n));
    return b;
  }
  void hang_up() {
    if (to_ >= 0) close(to_);
    to_ = -1;
  }
  net::address at;

 private:
  int fd_, to_ = -1;
};

const bytes hello = {4, 0, 0, 8, 0, 0, 0, 0};

/// What it hears until there is something.
std::vector<std::uint32_t> wait_for(net::openflow& o, std::string& problem) {
  for (;;) {
    const std::vector<std::uint32_t> numbers = o.turn(problem);
    if (!numbers.empty() || !problem.empty()) return numbers;
    std::this_thread::yield();
  }
}

TEST(OpenFlow, AConversation) {
  fake_switch s;
  std::thread other([&] { s.accept_and_say(hello); });
  net::openflow o;
  EXPECT_TRUE(o.connect(s.at, 60'000'000'000));
  other.join();
  EXPECT_EQ(s.hear(8), hello);
  o.set_block(5, host);
  const bytes rule = net::openflow::block_rule(5, host);
  EXPECT_EQ(s.hear(rule.size()), rule);
  o.confirm(77);
  EXPECT_EQ(s.hear(8), (bytes{4, 20, 0, 8, 0, 0, 0, 77}));
  s.say({4, 2, 0, 10, 0, 0, 0, 9, 'h', 'i', 4, 21, 0, 8, 0});  // an echo, and half of what is awaited
  std::string problem;
  EXPECT_TRUE(o.turn(problem).empty());
  s.say({0, 0, 77});
  EXPECT_EQ(wait_for(o, problem), std::vector<std::uint32_t>{77});
  EXPECT_EQ(problem, "");
  EXPECT_EQ(s.hear(10), (bytes{4, 3, 0, 10, 0, 0, 0, 9, 'h', 'i'}));
  s.say({4, 1, 0, 12, 0, 0, 0, 1, 0, 5, 0, 1});
  wait_for(o, problem);
  EXPECT_NE(problem.find("OpenFlow error 5, 1"), std::string::npos) << problem;
  s.hang_up();
  problem.clear();
  wait_for(o, problem);
  EXPECT_NE(problem, "");
}

TEST(OpenFlow, WhoDoesNotSpeakIt) {
  net::address nobody;
  {
    fake_switch s;
    nobody = s.at;
    std::thread other([&] { s.accept_and_say({1, 0, 0, 8, 0, 0, 0, 0}); });
    EXPECT_FALSE(net::openflow().connect(s.at, 5'000'000'000));
    other.join();
  }
  EXPECT_FALSE(net::openflow().connect(nobody, 50'000'000));
}

}  // namespace
