// Frames of a shared library, and frames with stack protectors, on stacks that migrate.
// test: timeout=120
//
// This file and the library are compiled with -fstack-protector-all (extras.cmake): every function checks its
// canary when it returns, possibly in another process than it was called in.
#include "api/foreign_library.hpp"
#include "support/child.hpp"
#include "support/schedule.hpp"
#include "support/substrate.hpp"

#include <godwit/godwit.hpp>

#include <gtest/gtest.h>

#include <cstring>
#include <stdexcept>

namespace {

namespace gw = godwit;
using support::for_each_schedule;

[[gnu::noinline]] int leaf(int n) {
  return gw::spawn([n] { return n + 1; }).join();
}

int spawns(void* context, int i) {
  char buffer[100];
  std::memset(buffer, i, sizeof buffer);
  auto f = gw::spawn([i] { return leaf(i) - 1; });
  gw::yield();
  const int v = f.join();
  return buffer[50] == static_cast<char>(i) ? v + *static_cast<int*>(context) : -1000000;
}

TEST(foreign, frames_of_a_shared_library_migrate) {
  for_each_schedule([](const gw::options& o) {
    EXPECT_EQ(gw::run<int>(
                  [] {
                    int context = 100;
                    auto f = gw::spawn([] {
                      int mine = 0;
                      return foreign_sum(spawns, &mine, 10);
                    });
                    const int own = foreign_sum(spawns, &context, 10);
                    return own + f.join();
                  },
                  o),
              1000 + 45 + 45);
  });
}

int nested_again(void* context, int) { return foreign_sum(spawns, context, 3); }

TEST(foreign, nested_frames_of_a_shared_library) {
  for_each_schedule([](const gw::options& o) {
    EXPECT_EQ(gw::run<int>(
                  [] {
                    int context = 10;
                    return foreign_nested(nested_again, &context, 20);
                  },
                  o),
              33 + 21);
  });
}

int throws(void* context, int i) {
  leaf(i);
  auto f = gw::spawn([] { throw std::out_of_range("through the library"); });
  f.join();
  return *static_cast<int*>(context);
}

TEST(foreign, exceptions_pass_through_a_shared_library) {
  for_each_schedule([](const gw::options& o) {
    EXPECT_EQ(gw::run<int>(
                  [] {
                    int context = 0, destroyed = 0;
                    try {
                      foreign_throwing(throws, &context, &destroyed);
                    } catch (const std::out_of_range&) {
                      leaf(1);
                      return destroyed;
                    }
                    return -1;
                  },
                  o),
              1);
  });
}

// As SQLite does it: its handles are everywhere, its variables are not.
TEST(foreign, a_library_that_was_set_up_in_another_worker) {
  GODWIT_NEEDS_PROCESSES("they have one copy of the library's variables");
  const support::outcome r = support::run_child([] {
    return gw::run(support::schedule(2), [] {
      if (gw::worker_id() == 1) gw::migrate_to(gw::worker(0));
      foreign_open();
      if (foreign_use() != 7) return 1;
      gw::migrate_to(gw::worker(1));
      return foreign_use();
    });
  });
  EXPECT_EQ(r.status, 70) << support::show(r);
  EXPECT_TRUE(r.err_has("worker 1: foreign_use of libapi_foreign_library.so called a null function pointer"))
      << support::show(r);
  EXPECT_TRUE(r.err_has("call its initializer in main, before run")) << support::show(r);
  EXPECT_EQ(r.err_lines(), 1) << support::show(r);
}

[[gnu::noinline]] long protected_fib(int n) {
  char frame[24];
  std::memset(frame, n, sizeof frame);
  if (n < 2) return n;
  auto x = gw::spawn([n] { return protected_fib(n - 1); });
  const long y = protected_fib(n - 2);
  const long sum = x.join() + y;
  return frame[7] == n ? sum : -1;
}

TEST(foreign, frames_with_stack_protectors) {
  for_each_schedule(
      [](const gw::options& o) { EXPECT_EQ(gw::run<long>([] { return protected_fib(10); }, o), 55); });
}

}  // namespace
