// Continuations of threads that compute and never spawn: an idle worker gets at them by a signal (options:
// expose_signal). What exposing does is in tests/sched/exposure_test.cpp.
// test: timeout=60
#include "support/schedule.hpp"
#include "support/shared.hpp"

#include <godwit/godwit.hpp>

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>

namespace {

namespace gw = godwit;

/// Until @p done(), but not for ever: gives back whether it is.
template <class F>
bool spin_until(F&& done) {
  const auto from = std::chrono::steady_clock::now();
  while (!done())
    if (std::chrono::steady_clock::now() - from > std::chrono::seconds(20)) return false;
  return true;
}
struct steps {
  std::atomic<int> root_left{0}, child_computes{0}, middle_left{0};
};
// The other worker is busy with root while `middle` spawns, and so has asked for nothing; when it is idle,
// the only continuation there is belongs to a thread whose child computes and never spawns.
TEST(exposure, brings_out_the_parent_of_a_thread_that_computes) {
  for (int i = 0; i < 20; ++i) {
    support::shared<steps> shared;
    gw::options o = support::schedule(2);
    o.expose_signal = true;
    EXPECT_EQ(gw::run<int>(
                  [s = shared.get()] {
                    auto middle = gw::spawn([s] {
                      if (!spin_until([s] { return s->root_left != 0; })) return 1;
                      auto child = gw::spawn([s] {
                        s->child_computes = 1;
                        return spin_until([s] { return s->middle_left != 0; }) ? 0 : 2;
                      });
                      s->middle_left = 1;
                      return child.join();
                    });
                    s->root_left = 1;
                    if (!spin_until([s] { return s->child_computes != 0; })) return 3;
                    return middle.join();
                  },
                  o),
              0);
    if (HasFailure()) return;
  }
}

}  // namespace
