// A thread that uses its stack up ends the program with a message that names the option, and neither hangs
// nor overwrites a neighbour. Tests src/runtime/faults.cpp (explain), src/stack/pool.cpp (guards).
// test: timeout=120 skip-asan
#include <gtest/gtest.h>
#include <godwit/godwit.hpp>

#include "support/child.hpp"

namespace gw = godwit;

namespace {

[[gnu::noinline]] int deep(int n) {
  volatile char frame[512];
  frame[0] = static_cast<char>(n);
  return n == 0 ? 0 : deep(n - 1) + frame[0];
}

TEST(overflow, of_a_thread_is_reported) {
  for (const std::uint32_t workers : {1u, 2u}) {
    const auto child = support::run_child([workers] {
      gw::options o;
      o.substrate = gw::choice::substrate::threads;
      o.workers = workers;
      o.thread_stack_bytes = 64 << 10;
      return gw::run(
          0, nullptr,
          [] {
            auto f = gw::spawn([] { return deep(100'000); });
            return f.join();
          },
          o);
    });
    EXPECT_EQ(child.status, 70) << show(child);
    EXPECT_TRUE(child.err_has("--godwit-thread-stack-bytes")) << show(child);
  }
}

TEST(overflow, a_larger_stack_is_enough) {
  gw::options o;
  o.substrate = gw::choice::substrate::threads;
  o.thread_stack_bytes = 16 << 20;
  EXPECT_EQ(gw::run<int>([] { return gw::spawn([] { return deep(10'000) == -1 ? 1 : 7; }).join(); }, o), 7);
}

}  // namespace
