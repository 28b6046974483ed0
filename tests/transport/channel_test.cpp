// The channel of datagrams and its switch (docs/protocols/switch.md), without workers or MPI: three hosts of
// this process, with a block that moves between them, and a relay that loses, doubles and delays. All in one
// thread, which gives turns at random.
#include "transport/net/channel.hpp"
#include "transport/net/relay.hpp"

#include <gtest/gtest.h>

#include <arpa/inet.h>

#include <array>
#include <cstring>
#include <memory>
#include <stdexcept>
#include <vector>

namespace {

using namespace godwit::transport;
using godwit::base::small_random;
namespace far = godwit::transport::far;
namespace net = godwit::transport::net;

constexpr std::uint32_t hosts = 3, workers = 2 * hosts;
constexpr std::uint64_t block = 4711;
constexpr auto add = far::call_number("test.add"), look = far::call_number("test.look");

constexpr std::array<shm::near_range, hosts> ranges = {{{0, 2}, {2, 2}, {4, 2}}};

/// One of them: a place that is here, elsewhere, or neither.
struct host final : net::channel_user {
  enum class state { here, elsewhere, between } at = state::elsewhere;
  std::uint32_t owner = 0;  ///< believed
  std::uint64_t value = 0, wrong = 0;
  std::unique_ptr<net::channel> channel;
  struct worker {
    far::entry e;
    bool waits = false;
    std::uint64_t result = 0;
  };
  std::array<worker, workers> asking;

  void carry_out_routed(far::entry& e) noexcept override {
    wrong += far::block_of(e.head) != block;
    if (at == state::elsewhere) {
      e.head.target = worker_no{2 * owner};
      return;
    }
    const far::outcome done = e.head.a == add ? far::outcome::changed : far::outcome::read;
    far::outcome_of(e.head) = static_cast<std::uint64_t>(at == state::here ? done : far::outcome::not_now);
    if (at != state::here) return;
    e.head.result = value;
    e.head.info = 8;
    if (e.head.a == add) value += e.head.b;
  }
  void answered(worker_no asker, std::uint32_t slot, const far::header& head,
                const std::byte*) noexcept override {
    worker& w = asking[index(asker)];
    wrong += !w.waits || slot != index(asker);
    w.waits = false;
    w.result = head.result;
  }
};

class job {
 public:
  explicit job(std::uint32_t faults, std::uint64_t seed) : random_(seed), switch_(socket_, seed) {
    for (std::uint32_t h = 0; h < hosts; ++h) {
      net::channel_setup c;
      c.run = 5;
      c.my_host = h;
      c.hosts = ranges.data();
      c.host_count = hosts;
      c.workers = workers;
      c.who = net::channel_setup::told::in_band;
      c.at = {{htonl(INADDR_LOOPBACK), socket_.port()}};
      c.faults = faults;
      c.life = &life_[h];
      of[h].channel = std::make_unique<net::channel>(std::move(c));
    }
    of[0].at = host::state::here;
    meet();
  }

  /// The switch knows all.
  void meet() {
    for (host& h : of) {
      bool there = false;
      for (int i = 0; i < 10'000 && !there; ++i) {
        there = h.channel->greet(0);
        switch_.turn(0);
      }
      ASSERT_TRUE(there);
    }
  }
  void turn() {
    switch_.turn(0);
    host& h = of[random_.below(hosts)];
    h.channel->turn(h);
  }
  void ask(std::uint32_t w, std::uint64_t call, std::uint64_t operand) {
    host& h = of[w / 2];
    host::worker& k = h.asking[w];
    k.e.head = {};
    k.e.head.what = far::op::call;
    k.e.head.target = worker_no{0};  // the home
    k.e.head.a = call;
    k.e.head.b = operand;
    far::block_of(k.e.head) = block;
    k.waits = true;
    h.channel->ask(worker_no{w}, k.e, w);
  }
  bool waits(std::uint32_t w) const { return of[w / 2].asking[w].waits; }

  /// From its owner to @p to, with turns of all in between.
  void move(std::uint32_t to, std::uint64_t turns) {
    const std::uint32_t from = owner_;
    if (from == to || moving_) return;
    moving_ = true;
    of[from].at = of[to].at = host::state::between;
    for (std::uint64_t i = 0; i < turns; ++i) turn();
    of[to].value = of[from].value;
    far::call_table calls;
    of[from].channel->enter_calls(calls);
    far::entry given;
    given.head.what = far::op::call;
    given.head.a = far::give_records;
    given.head.b = 0;
    calls.carry_out(given, {nullptr, nullptr});
    EXPECT_EQ(given.head.result, 0u);
    host::worker& mover = of[to].asking[2 * to + 1];
    EXPECT_FALSE(mover.waits);
    const std::uint64_t bytes = given.head.info;
    const far::binding b{block, ++version_};
    mover.e.head = {};
    mover.e.head.what = far::op::call;
    mover.e.head.a = far::take_over;
    mover.e.head.b = bytes / sizeof(far::record);
    mover.e.head.more[0] = 1;
    std::memcpy(mover.e.data, given.data, bytes);
    std::memcpy(mover.e.data + bytes, &b, sizeof b);
    mover.waits = true;
    of[to].channel->ask(worker_no{2 * to + 1}, mover.e, 2 * to + 1);
    for (std::uint64_t i = 0; mover.waits; ++i) turn();
    of[to].at = host::state::here;
    of[from].at = host::state::elsewhere;
    of[0].owner = of[from].owner = owner_ = to;
    moving_ = false;
  }

  std::array<host, hosts> of;
  std::uint32_t owner() const { return owner_; }
  std::uint64_t lost() const { return switch_.lost(); }
  void next_life() {
    for (word& l : life_) l.fetch_add(1, std::memory_order_relaxed);
  }

 private:
  small_random random_;
  net::socket socket_;
  net::relay switch_;
  std::array<word, hosts> life_{};
  std::uint32_t owner_ = 0;
  std::uint64_t version_ = 0;
  bool moving_ = false;
};

void additions(std::uint32_t faults, std::uint64_t each) {
  job all(faults, 17 + faults);
  small_random random(3);
  std::array<std::uint64_t, hosts> left{};
  left.fill(each);
  std::vector<bool> found(hosts * each);
  std::array<bool, hosts> asks{};
  for (std::uint64_t done = 0, turns = 0; done < hosts * each; ++turns) {
    for (std::uint32_t h = 0; h < hosts; ++h) {
      const std::uint32_t w = 2 * h;
      if (all.waits(w)) continue;
      if (asks[h]) {  // values before additions of one are all different
        ++done;
        asks[h] = false;
        ASSERT_LT(all.of[h].asking[w].result, found.size());
        EXPECT_FALSE(found[all.of[h].asking[w].result]);
        found[all.of[h].asking[w].result] = true;
      }
      if (left[h] == 0) continue;
      --left[h];
      asks[h] = true;
      all.ask(w, add, 1);
    }
    if (turns % 64 == 0) all.move(random.below(hosts), random.below(200));
    all.turn();
  }
  EXPECT_EQ(all.of[all.owner()].value, hosts * each);
  for (const host& h : all.of) EXPECT_EQ(h.wrong, 0u);
  if (faults != 0) {
    EXPECT_GT(all.lost(), 0u);
  }
}

TEST(Channel, AdditionsAreMadeOnceWhileTheBlockMoves) { additions(0, 300); }
TEST(Channel, AlsoWhereDatagramsAreLostDoubledAndLate) {
  for (const std::uint32_t faults : {1u, 5u, 20u}) additions(faults, 100);
}

TEST(Channel, ARuleThatIsOldCostsAHop) {
  job all(0, 1);
  all.move(2, 10);
  const auto sum = [&](std::uint64_t net::channel::counts::*of_host) {
    std::uint64_t all_hosts = 0;
    for (const host& h : all.of) all_hosts += h.channel->counted().*of_host;
    return all_hosts;
  };
  using counts = net::channel::counts;
  all.ask(2, look, 0);
  while (all.waits(2)) all.turn();
  EXPECT_EQ(sum(&counts::sent_on), 0u);
  // It leaves, and nobody tells the switch.
  all.of[1].at = host::state::here;
  all.of[2].at = host::state::elsewhere;
  all.of[2].owner = 1;
  const std::uint64_t resent = sum(&counts::resent);
  all.ask(0, look, 0);
  while (all.waits(0)) all.turn();
  // Each copy takes its hop, and a machine that is busy for a millisecond makes the asker send another.
  EXPECT_GE(sum(&counts::sent_on), 1u);
  EXPECT_LE(sum(&counts::sent_on), 1 + sum(&counts::resent) - resent);
}

// What was sent before the memory was given out again is of no use to anybody; who still waits asks anew.
TEST(Channel, NothingOfAnEarlierLifeIsCarriedOut) {
  job all(0, 1);
  all.of[0].at = host::state::between;
  all.ask(2, add, 1);
  for (int i = 0; i < 2000; ++i) all.turn();
  EXPECT_TRUE(all.waits(2));
  const auto sent = all.of[1].channel->counted().sent;
  all.next_life();
  all.of[0].at = host::state::here;
  while (all.waits(2)) all.turn();
  EXPECT_EQ(all.of[0].value, 1u);
  EXPECT_GT(all.of[1].channel->counted().sent, sent);
}

TEST(Channel, WithoutASwitchItSaysSo) {
  const net::socket nobody;
  net::channel_setup c;
  c.hosts = ranges.data();
  c.host_count = hosts;
  c.workers = workers;
  c.who = net::channel_setup::told::in_band;
  c.at = {{htonl(INADDR_LOOPBACK), nobody.port()}};
  word life{0};
  c.life = &life;
  EXPECT_FALSE(net::channel(std::move(c)).greet(50'000'000));
}

TEST(Channel, Addresses) {
  EXPECT_EQ(net::text_of(net::read_address("10.1.2.3", 4700)), "10.1.2.3:4700");
  EXPECT_EQ(net::text_of(net::read_address("10.1.2.3:17", 4700)), "10.1.2.3:17");
  for (const char* bad : {"", "host", "10.1.2.3:", "10.1.2.3:0", "10.1.2.3:70000", "10.1.2.3:4x", "10.1.2"})
    EXPECT_THROW(static_cast<void>(net::read_address(bad, 4700)), std::invalid_argument) << bad;
  EXPECT_THROW(static_cast<void>(net::own_address("no-such-interface")), std::runtime_error);
}

}  // namespace
