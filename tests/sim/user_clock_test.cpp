// Where the program does not charge: what a clock says is what user code takes, and instructions are counted
// where the machine can.
// test: skip-qemu
#include "sim/user_clock.hpp"

#include "sim/engine.hpp"
#include "sim/seats.hpp"

#include <godwit/godwit.hpp>
#include <godwit/sim.hpp>
#include <gtest/gtest.h>

#include <array>
#include <cstdint>
#include <linux/perf_event.h>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <system_error>

namespace {

namespace gw = godwit;
using namespace godwit::sim;

class clock_of_test final : public user_clock {
 public:
  std::uint64_t ns() noexcept override { return says; }
  std::uint64_t says = 1'000'000;
};

TEST(user_clock, what_it_says_is_what_code_takes) {
  clock_of_test c;
  const machine m;
  engine e({.seats = 2, .model = &m, .clock = &c});
  std::array<std::uint64_t, 2> took{};
  support::seats::run(e, 2, [&](std::uint32_t seat) {
    EXPECT_EQ(e.now_ns(), 0u) << "what was before is nobody's";
    c.says += 500 * (seat + 1);
    EXPECT_EQ(e.now_ns(), 500u * (seat + 1));
    e.charge(1'000'000'000);  // does not count
    e.nap_until(10'000);      // the other one's turn
    c.says += 7;
    took[seat] = e.now_ns();
  });
  EXPECT_EQ(took[0], 10'007u);
  EXPECT_EQ(took[1], 10'007u);
}

/// None if this process may not have it.
std::unique_ptr<perf_counter> counter(std::uint32_t type, std::uint64_t what) {
  try {
    return std::make_unique<perf_counter>(type, what);
  } catch (const std::system_error& e) {
    EXPECT_NE(std::string(e.what()).find("perf_event_open"), std::string::npos) << e.what();
    return nullptr;
  }
}

void compute(std::uint64_t rounds) {
  for (volatile std::uint64_t i = 0; i < rounds;) i = i + 1;
}

// The kernel counts the nanoseconds that a thread runs, on every machine.
TEST(user_clock, the_kernels_counters_are_read) {
  auto ran = counter(PERF_TYPE_SOFTWARE, PERF_COUNT_SW_TASK_CLOCK);
  if (ran == nullptr) GTEST_SKIP() << "this process may not use perf_event_open";
  const perf_counter& direct = *ran;
  const std::uint64_t before = direct.read();
  compute(10'000'000);
  const std::uint64_t after = direct.read();
  EXPECT_GT(after, before + 1'000'000) << "10 million rounds take a millisecond at least";
  counting_clock half(std::move(ran), 2);
  const std::uint64_t ns = half.ns();
  EXPECT_GE(ns, after / 2);
  EXPECT_LE(ns, direct.read() / 2 + 1);
}

TEST(user_clock, a_counter_that_is_not_there_is_an_error) {
  EXPECT_THROW(perf_counter(PERF_TYPE_SOFTWARE, ~std::uint64_t{0}), std::system_error);
}

/// Virtual ns that so many rounds take with sim_clock=counted; none if the run was refused.
std::optional<std::uint64_t> counted(std::uint64_t rounds, std::string& refusal) {
  gw::options o;
  o.substrate = gw::choice::substrate::sim;
  o.workers = 2;
  o.quiet = true;
  o.sim_machine = "example,instructions_per_ns=0.5";
  o.sim_clock = gw::choice::sim_clock::counted;
  try {
    return gw::run<std::uint64_t>(
        [=] {
          const std::uint64_t from = gw::sim::now_ns();
          gw::sim::charge(1'000'000'000'000);  // does not count
          compute(rounds);
          return gw::sim::now_ns() - from;
        },
        o);
  } catch (const std::invalid_argument& e) {
    refusal = e.what();
    return std::nullopt;
  }
}

TEST(user_clock, instructions_are_counted_or_refused) {
  std::string refusal;
  const std::optional<std::uint64_t> few = counted(1'000'000, refusal);
  if (!few) {
    EXPECT_EQ(counter(PERF_TYPE_HARDWARE, PERF_COUNT_HW_INSTRUCTIONS), nullptr);
    EXPECT_NE(refusal.find("godwit: sim_clock: there is no counter of instructions here"), std::string::npos)
        << refusal;
    EXPECT_NE(refusal.find("--godwit-sim-clock=measured"), std::string::npos) << refusal;
    return;
  }
  const std::optional<std::uint64_t> many = counted(4'000'000, refusal);
  ASSERT_TRUE(many) << refusal;
  EXPECT_GT(*few, 2 * 3 * 1'000'000u) << "a round has three instructions at least, each of 2 ns";
  EXPECT_NEAR(static_cast<double>(*many) / static_cast<double>(*few), 4, 0.1);
  const std::optional<std::uint64_t> again = counted(4'000'000, refusal);
  EXPECT_NEAR(static_cast<double>(*again) / static_cast<double>(*many), 1, 0.01)
      << "nearly the same in another run";
}

}  // namespace
