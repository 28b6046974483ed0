// Tests of what simulated hosts have: addresses of global memory, however many they are.
// test: skip-qemu skip-asan
// (The address sanitizer leaves no 54 TiB in one piece.)
#include "runtime/global.hpp"
#include "runtime/sim_hosts.hpp"
#include "transport/shm/window.hpp"

#include <gtest/gtest.h>

#include <bit>
#include <cstdint>

namespace {

using namespace godwit;

TEST(sim_hosts, windows_of_many_hosts_are_found_and_large_enough) {
  const options usual;
  for (const std::uint32_t hosts : {2u, 100u, 9'216u, 12'288u, 27'648u, 110'592u}) {
    const std::uint64_t bytes = runtime::sim_hosts::window_bytes(usual, hosts);
    transport::shm::window all;
    EXPECT_NO_THROW(all.create(std::bit_ceil(bytes) * hosts)) << hosts << " hosts";
    EXPECT_NO_THROW(runtime::plan_global(usual, bytes, hosts)) << hosts << " hosts of a worker each";
  }
}

TEST(sim_hosts, what_is_asked_for_is_given) {
  options o;
  o.global_bytes = std::uint64_t{3} << 30;
  EXPECT_EQ(runtime::sim_hosts::window_bytes(o, 1'000), o.global_bytes);
}

}  // namespace
