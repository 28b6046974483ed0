// Threads and calls that go to data or to workers: include/godwit/spawn_at.hpp, docs/protocols/parcels.md; and
// pin (checkout.hpp). Runs under MPI as well (tests/mpi), where most of it happens.
#include <gtest/gtest.h>
#include <godwit/godwit.hpp>

#include "support/schedule.hpp"

#include <array>
#include <cstdint>
#include <memory>
#include <span>
#include <stdexcept>
#include <string>
#include <vector>

namespace gw = godwit;

namespace {

constexpr std::uint64_t page = 4096, words_of_page = page / 8;

/// Empty: all right.
template <class F>
std::string in_a_run(const gw::options& o, F f) {
  return gw::run<std::string>([f] { return std::string(f()); }, o);
}
/// On this substrate and, on one host, on threads.
template <class F>
void on_substrates(F f) {
  EXPECT_EQ(in_a_run({}, f), "");
  gw::options o;
  o.substrate = gw::choice::substrate::threads;
  o.workers = 3;
  EXPECT_EQ(in_a_run(o, f), "") << "threads";
}

[[maybe_unused]] gw::distribution dealt_out() { return gw::distribution::cyclic(page).movable(page); }
std::uint32_t mix(std::uint64_t i) { return static_cast<std::uint32_t>(i * 0x9e3779b97f4a7c15u >> 40); }

template <class F>
bool refused(F f) {
  try {
    f();
    return false;
  } catch (const std::invalid_argument&) {
    return true;
  }
}

TEST(SpawnAt, BeginsAtTheWorker) {
  on_substrates([] {
    const std::uint32_t n = gw::worker_count();
    for (std::uint32_t round = 0; round < 3; ++round)
      for (std::uint32_t w = 0; w < n; ++w)
        if (const auto at = gw::spawn_at(gw::worker(w), [] { return gw::worker_id(); }).join(); at != w)
          return "sent to " + std::to_string(w) + ", began at " + std::to_string(at);
    if (!refused([] { gw::spawn_at(gw::worker(gw::worker_count()), [] {}).join(); }))
      return std::string("no such worker");
    return std::string();
  });
}

TEST(SpawnAt, ArgumentsResultsAndExceptionsOfAllKinds) {
  on_substrates([] {
    const gw::worker last(gw::worker_count() - 1);
    if (gw::spawn_at(
            last, [](int a, double b) { return a + b; }, 2, 0.5)
            .join() != 2.5)
      return "plain";
    const auto doubled = [](std::string s, std::vector<int> v) {
      for (int i : v) s += std::to_string(i);
      return s;
    };
    if (gw::spawn_at(last, doubled, std::string("x"), std::vector<int>{1, 2, 3}).join() != "x123")
      return "encoded";
    const auto sum = [](std::vector<std::uint64_t> v) {
      for (std::uint64_t& x : v) x *= 2;
      return v;
    };
    if (gw::spawn_at(last, sum, std::vector<std::uint64_t>(100'000, 4)).join() !=
        std::vector<std::uint64_t>(100'000, 8))
      return "large";
    struct {
      std::array<std::uint64_t, 700> words;  // more than fits into a message
    } big{};
    big.words[699] = 5;
    if (gw::spawn_at(last, [big] { return big.words[699]; }).join() != 5) return "a large closure";
    auto failing = gw::spawn_at(last, [] { throw std::out_of_range("sent"); });
    try {
      failing.join();
      return "nothing thrown";
    } catch (const std::out_of_range& e) {
      if (std::string(e.what()) != "sent") return "another exception";
    }
    return "";
  });
}

long fib(int n) {
  if (n < 2) return n;
  auto x = gw::spawn([n] { return fib(n - 1); });
  const long y = fib(n - 2);
  return x.join() + y;
}

/// They spawn, wait for each other and send further ones themselves.
long tree(std::uint32_t depth, std::uint64_t seed) {
  if (depth == 0) return fib(8);
  const std::uint32_t n = gw::worker_count();
  auto a = gw::spawn_at(gw::worker(mix(seed) % n), [=] { return tree(depth - 1, 2 * seed + 1); });
  auto b = gw::spawn([=] { return tree(depth - 1, 2 * seed + 2); });
  auto c = gw::spawn_at(
      gw::worker(mix(seed + 7) % n), [](std::vector<int> v) { return long(v.size()); },
      std::vector<int>(depth));
  const long left = a.join();
  const long right = b.join();
  return left + right + c.join();
}
constexpr long tree_of(std::uint32_t depth) { return depth == 0 ? 21 : 2 * tree_of(depth - 1) + depth; }

TEST(SpawnAt, TreesOfThreadsThatAreSentEverywhere) {
  support::for_each_schedule([](const gw::options& o) {
    EXPECT_EQ(gw::run<long>([] { return tree(5, 1); }, o), tree_of(5)) << "workers " << o.workers;
  });
}

}  // namespace
