// Tests of spawn(near{p}, f): at once where the data is here, on the data's host where it is not; results,
// arguments and exceptions as with spawn.
// test: timeout=60 skip-asan skip-qemu
#include <gtest/gtest.h>

#include "sim/simulated_runs.hpp"

#include <memory>
#include <stdexcept>
#include <string>

namespace {

using namespace simulated_runs;

std::uint32_t host_of(std::uint32_t worker, std::uint32_t hosts) {
  return worker / (gw::worker_count() / hosts);
}

TEST(SpawnNear, BeginsOnTheHostThatHasTheData) {
  for (const auto way : all_ways) {
    const auto wrong = gw::run<std::uint64_t>(
        [] {
          constexpr std::uint32_t hosts = 3;
          std::uint64_t wrong = 0;
          const gw::global_array<int> a(6 * 4096, gw::distribution::blocked(), 1);
          for (std::uint64_t i = 0; i < 6; ++i) {
            const auto p = a.data() + static_cast<std::ptrdiff_t>(i * 4096);
            const bool is_here = host_of(gw::home_of(p), hosts) == host_of(gw::worker_id(), hosts);
            bool begun = false;
            auto f = gw::spawn(
                gw::near{p},
                [is_here, at = is_here ? &begun : nullptr](gw::global_ptr<const int> q) {
                  if (is_here) *at = true;  // else the thread is elsewhere
                  return host_of(gw::home_of(q), hosts) == host_of(gw::worker_id(), hosts);
                },
                p);
            wrong += is_here && !begun;  // at once
            wrong += !f.join();
          }
          return wrong;
        },
        on_hosts(6, 3, way));
    EXPECT_EQ(wrong, 0u) << static_cast<int>(way);
  }
}

TEST(SpawnNear, OnOneHostItIsSpawn) {
  gw::options o;
  o.workers = 1;
  EXPECT_EQ(gw::run<std::string>(
                [] {
                  const gw::global_array<int> a(100, gw::distribution::blocked(), 7);
                  const int here = 5;
                  int order = 0;
                  auto f = gw::spawn(gw::near{a.data()}, [&order] { return order == 0; });
                  order = 1;
                  if (!f.join()) return std::string("it began later");
                  if (gw::spawn(
                          gw::near{&here}, [](int x) { return x; }, here)
                          .join() != 5)
                    return std::string("an ordinary pointer");
                  if (*gw::spawn(gw::near{gw::global_ptr<int>()}, [p = std::make_unique<int>(3)]() mutable {
                         return std::move(p);
                       }).join() != 3)
                    return std::string("what it owns");
                  try {
                    gw::spawn(gw::near{a.data()}, [] { throw std::out_of_range("yes"); }).join();
                  } catch (const std::out_of_range&) {
                    return std::string();
                  }
                  return std::string("no exception");
                },
                o),
            "");
}

}  // namespace
