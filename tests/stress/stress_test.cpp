// Many short runs of random programs under random schedules. In ctest a short version; scripts/stress runs
// the long one.
// test: timeout=300 skip-qemu
//
// STRESS_RUNS=n  how many runs of each kind (default 150);  STRESS_SECONDS=n  how long the campaign goes on
// (default 5)
// STRESS_SEED=n  the seed that a failure printed;            STRESS_KEEP=1    a hang is kept for a debugger
// A run that takes two minutes counts as a hang: the schedule is printed, everything is ended.
#include "stress/programs.hpp"
#include "support/child.hpp"
#include "support/schedule.hpp"

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <cstring>
#include <string>
#include <unistd.h>

namespace {

namespace gw = godwit;
using stress::mix;

char current_[256] = "no run";

void on_alarm(int) {
  const char head[] = "\nSTRESS: a run hangs: ";
  static_cast<void>(!write(2, head, sizeof head - 1));
  static_cast<void>(!write(2, current_, std::strlen(current_)));
  static_cast<void>(!write(2, "\n", 1));
  if (std::getenv("STRESS_KEEP") != nullptr)
    for (;;) pause();
  _exit(99);
}
class watched_run {
 public:
  explicit watched_run(const std::string& what) {
    std::signal(SIGALRM, on_alarm);
    std::strncpy(current_, what.c_str(), sizeof current_ - 1);
    alarm(120);
  }
  ~watched_run() { alarm(0); }
};

gw::options random_schedule(std::uint64_t seed) {
  static constexpr const char* forces[] = {"none", "none", "parents", "children", "random"};
  static constexpr std::uint32_t delays[] = {0, 0, 0, 3, 30};
  gw::options o = support::schedule(1 + static_cast<std::uint32_t>(mix(seed) % 5), forces[mix(seed + 1) % 5],
                                    delays[mix(seed + 2) % 5], seed | 1);
  if (mix(seed + 3) % 16 == 0) o.workers = 12;
  o.spin_us = mix(seed + 4) % 3 == 0 ? 0 : 50;
  o.expose_signal = mix(seed + 5) % 4 != 0;
  o.check_frames = mix(seed + 6) % 8 == 0;
  if (mix(seed + 7) % 8 == 0) o.heap_bytes = 64 << 20;
  return o;
}
std::string describe_all(const gw::options& o, std::uint64_t program) {
  return support::describe(o) + " spin_us=" + std::to_string(o.spin_us) +
         " expose_signal=" + std::to_string(o.expose_signal) +
         " check_frames=" + std::to_string(o.check_frames) + " program=" + std::to_string(program);
}

void one_run(std::uint64_t seed, int depth) {
  const gw::options o = random_schedule(seed);
  const std::uint64_t program = mix(seed + 100);
  const std::string what = describe_all(o, program);
  const watched_run watch(what);
  SCOPED_TRACE(what);
  try {
    EXPECT_EQ(gw::run<std::uint64_t>([=] { return stress::with_threads(program, depth); }, o),
              stress::serial(program, depth));
  } catch (const std::exception& e) {
    ADD_FAILURE() << e.what();
  }
}

TEST(stress, short_runs) {
  const std::uint64_t runs = support::number_from_environment("STRESS_RUNS", 150);
  for (std::uint64_t i = 0; i < runs && !HasFailure(); ++i) one_run(mix(support::base_seed() + i), 5);
}

// As short as it gets: the root thread ends before most workers have begun.
TEST(stress, empty_runs) {
  const std::uint64_t runs = support::number_from_environment("STRESS_RUNS", 150);
  for (std::uint64_t i = 0; i < runs && !HasFailure(); ++i) {
    const gw::options o = support::schedule(1 + static_cast<std::uint32_t>(i % 4));
    const watched_run watch(support::describe(o));
    try {
      EXPECT_EQ(gw::run<std::uint64_t>([i] { return i; }, o), i);
    } catch (const std::exception& e) {
      ADD_FAILURE() << e.what();
    }
  }
  EXPECT_EQ(support::own_shared_memory(), 0);
}

// Larger programs for as long as asked.
TEST(stress, campaign) {
  const auto limit = std::chrono::seconds(support::number_from_environment("STRESS_SECONDS", 5));
  const auto start = std::chrono::steady_clock::now();
  std::uint64_t runs = 0;
  for (; std::chrono::steady_clock::now() - start < limit && !HasFailure(); ++runs)
    one_run(mix(support::base_seed() * 3 + runs), 6 + static_cast<int>(runs % 9));
  std::printf("%llu runs\n", static_cast<unsigned long long>(runs));
}

// Workers that mostly sleep, are woken for little, and sleep again: the idle protocol's races.
TEST(stress, waking_and_sleeping) {
  const std::uint64_t runs = support::number_from_environment("STRESS_RUNS", 150) / 10 + 1;
  for (std::uint64_t i = 0; i < runs && !HasFailure(); ++i) {
    gw::options o = support::schedule(2 + static_cast<std::uint32_t>(i % 3), i % 2 != 0 ? "random" : "none",
                                      i % 5 == 0 ? 20 : 0);
    o.spin_us = 0;
    const watched_run watch(support::describe(o));
    SCOPED_TRACE(support::describe(o));
    EXPECT_EQ(gw::run<int>(
                  [] {
                    int sum = 0;
                    for (int k = 0; k < 40; ++k) {
                      if (k % 8 == 0) usleep(200);
                      auto f = gw::spawn([k] {
                        if (k % 3 == 0) usleep(50);
                        return k;
                      });
                      if (k % 10 == 0) gw::on_each_worker([] {});
                      sum += f.join();
                    }
                    return sum;
                  },
                  o),
              780);
  }
}

}  // namespace
