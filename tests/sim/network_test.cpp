// The simulated network by itself: what a message takes, who waits for whom, and that nothing overtakes.
// test: skip-qemu
#include "sim/network.hpp"

#include "sim/seats.hpp"

#include <gtest/gtest.h>

#include <cstdint>
#include <cstring>
#include <memory>
#include <string>
#include <vector>

namespace {

using namespace godwit;
using namespace godwit::sim;
using transport::mpi::any_source;
using transport::mpi::operation;
using transport::mpi::rma_op;

/// A machine whose times are easy to add up.
machine model() {
  machine m;
  m.look_ns = 1;
  m.latency_ns = 1000;
  m.hop_ns = 100;
  m.overhead_ns = 10;
  m.gap_ns = m.rma_gap_ns = 50;
  m.ns_per_byte = 2;
  m.serve_ns = 5;
  m.rma_ns = 600;
  m.net = topology::flat;
  return m;
}

/// Ranks that do what the test says; the first @p of_first are of one node, the others have each their own.
class ranks {
 public:
  ranks(std::uint32_t n, machine m, std::uint64_t jitter_ns = 0, std::uint64_t seed = 1,
        std::uint32_t of_first = 1)
      : model_(m), words_(n * 64) {
    turns_ = std::make_unique<engine>(engine_setup{.seats = n, .model = &model_, .seed = seed});
    network::setup s{.turns = turns_.get(),
                     .model = &model_,
                     .nodes = n,
                     .ranks = {},
                     .seed = seed,
                     .jitter_ns = jitter_ns};
    for (std::uint32_t i = 0; i < n; ++i)
      s.ranks.push_back({i < of_first ? 0 : i, reinterpret_cast<std::byte*>(&words_[std::size_t{i} * 64])});
    net_ = std::make_unique<network>(std::move(s));
  }
  void run(const support::seats::what& f) {
    support::seats::run(*turns_, static_cast<std::uint32_t>(words_.size() / 64), f);
  }
  std::uint64_t now() { return turns_->now_ns(); }
  /// When a wait for @p limit_ns is over.
  std::uint64_t wait(std::uint64_t limit_ns, waiting how) {
    turns_->wait_by(how);
    if (how != waiting::sleeps) net_->rouse_at_next();
    base::wait_on(nobody_wakes_, 0, limit_ns);
    return now();
  }
  void compute(std::uint64_t ns) { turns_->nap_until(now() + ns); }
  network& net() { return *net_; }
  std::uint64_t& word(std::uint32_t rank) { return words_[std::size_t{rank} * 64]; }

  void send(int to, std::uint64_t value, std::size_t bytes = 8, int tag = 1) {
    std::vector<std::byte> text(bytes);
    std::memcpy(text.data(), &value, 8);
    operation op;
    network::functions().isend(text.data(), bytes, to, tag, &op);
    EXPECT_TRUE(done(op));
  }
  struct got {
    std::uint64_t value, at;
    int from;
    std::size_t bytes;
  };
  got receive(int from = any_source, int tag = 1) {
    std::byte text[4096];
    operation op;
    network::functions().irecv(text, sizeof text, from, tag, &op);
    bool is_done = false;
    got g{};
    for (;;) {
      network::functions().test(&op, &is_done, &g.from, nullptr, &g.bytes);
      if (is_done) break;
      compute(1);
    }
    std::memcpy(&g.value, text, 8);
    g.at = now();
    return g;
  }

 private:
  static bool done(operation& op) {
    bool is_done = false;
    network::functions().test(&op, &is_done, nullptr, nullptr, nullptr);
    return is_done;
  }

  machine model_;
  base::wait_word nobody_wakes_{0};
  std::vector<std::uint64_t> words_;
  std::unique_ptr<engine> turns_;
  std::unique_ptr<network> net_;
};

TEST(network, a_message_takes_overhead_latency_and_bytes) {
  ranks r(2, model());
  r.run([&](std::uint32_t me) {
    if (me == 0) return r.send(1, 42, 100);
    const auto got = r.receive();
    EXPECT_EQ(got.value, 42u);
    EXPECT_EQ(got.from, 0);
    EXPECT_EQ(got.bytes, 100u);
    // o, then L and 100 G, then o and the serving at the receiver, which looks every ns
    EXPECT_NEAR(static_cast<double>(got.at), 10 + 1000 + 200 + 10 + 5, 2);
  });
  EXPECT_EQ(r.net().traffic().messages, 1u);
  EXPECT_EQ(r.net().traffic().bytes, 100u);
}

TEST(network, who_looks_notices_a_message_and_who_naps_its_end) {
  machine m = model();
  m.spin_ns = 100;
  m.wake_ns = 300;
  m.nap_ns = 40;
  const auto noticed = [&](waiting how) {
    ranks r(2, m);
    std::uint64_t at = 0;
    r.run([&](std::uint32_t me) {
      if (me == 0) return r.send(1, 42);  // there at 10 + 1000 + 16
      at = r.wait(5000, how);
      EXPECT_EQ(r.receive().value, 42u);
    });
    return at;
  };
  EXPECT_EQ(noticed(waiting::looks), 1026 + 1);
  EXPECT_EQ(noticed(waiting::looks_first), 1026 + 300) << "it looks for 100 ns, then it sleeps";
  EXPECT_EQ(noticed(waiting::sleeps), 5000 + 40);
}

/// While rank 0 computes, a message comes to rank 1 of its node, which waits and was told of rank 0's only.
TEST(network, who_is_told_late_of_a_message_does_not_go_back_in_time) {
  ranks r(3, model(), 0, 1, 2);
  std::uint64_t told = 0, noticed = 0;
  r.run([&](std::uint32_t me) {
    if (me == 2) {
      r.send(0, 10);                          // there at 1026
      r.send(1, 11, 1000);                    // at about 3000
      while (r.now() < 10'000) r.compute(1);  // others' time passes
      return;
    }
    if (me == 0) {
      EXPECT_EQ(r.receive().value, 10u);
      r.compute(5000);
      told = r.now();
      r.wait(100'000, waiting::looks);
      return;
    }
    r.compute(100);
    r.wait(100, waiting::looks);  // over before its message comes, of which it knows no more then
    noticed = r.wait(50'000, waiting::looks);
    EXPECT_EQ(r.receive().value, 11u);
  });
  EXPECT_GT(told, 6000u);
  EXPECT_NEAR(static_cast<double>(noticed), static_cast<double>(told), 10);
}

TEST(network, many_to_one_queue_there) {
  constexpr std::uint32_t n = 9;
  ranks r(n, model());
  std::uint64_t last = 0;
  r.run([&](std::uint32_t me) {
    if (me != 0) return r.send(0, me, 100);
    for (std::uint32_t i = 1; i < n; ++i) last = r.receive().at;
  });
  // all arrive together, and come in one after the other: g and 100 G each
  EXPECT_GE(last, 10u + 1000 + 200 + (n - 2) * 250);
  EXPECT_GT(r.net().traffic().queued_ns, 0u);
}

TEST(network, further_switches_take_longer) {
  machine m = model();
  m.net = topology::torus;
  m.torus = {16, 1, 1};
  ranks r(9, m);
  std::uint64_t near = 0, far = 0;
  r.run([&](std::uint32_t me) {
    if (me == 0) {
      r.send(1, 0);
      r.compute(10'000);
      return r.send(8, 0);
    }
    if (me == 1) near = r.receive().at;
    if (me == 8) far = r.receive().at - 10'000;
  });
  EXPECT_NEAR(static_cast<double>(far - near), 7 * 100, 40);
}

TEST(network, nothing_overtakes_between_two_whatever_the_jitter) {
  for (std::uint64_t seed = 1; seed <= 20; ++seed) {
    ranks r(3, model(), 5'000, seed);
    bool others_mixed = false;
    r.run([&](std::uint32_t me) {
      if (me != 0) {
        for (std::uint64_t i = 0; i < 20; ++i) r.send(0, i, 8 + i * 7 % 40);
        return;
      }
      std::uint64_t next[3] = {};
      int before = 0;
      for (int i = 0; i < 40; ++i) {
        const auto got = r.receive();
        EXPECT_EQ(got.value, next[got.from]++) << "of rank " << got.from;
        others_mixed = others_mixed || (before != 0 && got.from != before);
        before = got.from;
      }
    });
    EXPECT_TRUE(others_mixed) << "of different ranks they come in any order";
  }
}

TEST(network, receives_take_what_fits_them) {
  ranks r(3, model());
  r.run([&](std::uint32_t me) {
    if (me == 1) {
      r.send(0, 11, 8, 7);
      r.send(0, 12, 8, 8);
      return;
    }
    if (me == 2) return r.send(0, 21, 8, 7);
    r.compute(20'000);  // all are there, and nobody has asked
    EXPECT_EQ(r.receive(any_source, 8).value, 12u);
    EXPECT_EQ(r.receive(2, 7).value, 21u);
    EXPECT_EQ(r.receive(any_source, 7).value, 11u);
  });
}

TEST(network, one_sided_operations_take_turns_at_their_target) {
  constexpr std::uint32_t n = 8;
  ranks r(n, model());
  std::uint64_t last = 0;
  r.run([&](std::uint32_t me) {
    if (me == 0) return;  // its CPU has no part in it
    for (int i = 0; i < 3; ++i) {
      const std::uint64_t one = 1;
      std::uint64_t before = 0;
      network::functions().fetch_op(nullptr, rma_op::add, &one, &before, 0, 0);
      network::functions().flush(nullptr, 0);
    }
    last = std::max(last, r.now());
  });
  EXPECT_EQ(r.word(0), 3 * (n - 1));
  EXPECT_GE(last, 3 * 600u);
  EXPECT_GE(r.net().traffic().queued_ns, (n - 2) * (n - 1) / 2 * 50) << "of the first ones alone";
}

TEST(network, one_sided_operations_to_different_targets_are_under_way_together) {
  ranks r(3, model());
  r.run([&](std::uint32_t me) {
    if (me != 0) return;
    const auto& f = network::functions();
    const std::uint64_t seven = 7;
    std::uint64_t got = 1;
    f.put(nullptr, &seven, 8, 1, 0);
    r.compute(100);
    f.get(nullptr, &got, 8, 2, 0);
    f.flush(nullptr, 2);
    EXPECT_EQ(r.now(), 100 + 600 + 8 * 2) << "the get, which did not wait for the put";
    EXPECT_EQ(got, 0u);
    EXPECT_EQ(r.word(1), 7u) << "that came to its target meanwhile";
  });
}

TEST(network, one_sided_bytes_and_swaps) {
  ranks r(2, model());
  r.run([&](std::uint32_t me) {
    if (me == 0) return;
    const auto& f = network::functions();
    const std::uint64_t seven = 7, eight = 8, nine = 9;
    std::uint64_t got = 0;
    f.put(nullptr, &seven, 8, 0, 0);
    f.get(nullptr, &got, 8, 0, 0);
    f.flush(nullptr, 0);
    EXPECT_EQ(got, 7u);
    f.compare_swap(nullptr, &nine, &eight, &got, 0, 0);
    f.flush(nullptr, 0);
    EXPECT_EQ(got, 7u) << "it is not 8, and stays";
    f.compare_swap(nullptr, &nine, &seven, &got, 0, 0);
    f.fetch_op(nullptr, rma_op::replace, &eight, &got, 0, 0);
    f.flush(nullptr, 0);
    EXPECT_EQ(got, 9u);
  });
  EXPECT_EQ(r.word(0), 8u);
}

TEST(network, the_same_seed_gives_the_same_times) {
  const auto times = [](std::uint64_t seed) {
    ranks r(4, model(), 3'000, seed);
    std::vector<std::uint64_t> at;
    r.run([&](std::uint32_t me) {
      if (me != 0) {
        for (std::uint64_t i = 0; i < 10; ++i) r.send(0, i);
        return;
      }
      for (int i = 0; i < 30; ++i) at.push_back(r.receive().at);
    });
    return at;
  };
  EXPECT_EQ(times(1), times(1));
  EXPECT_NE(times(1), times(2));
}

}  // namespace
