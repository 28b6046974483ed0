// Mistakes with global memory that end the run.
#pragma once

#include "support/child.hpp"

#include <godwit/godwit.hpp>

#include <gtest/gtest.h>

#include <cstdio>
#include <cstdlib>
#include <functional>
#include <vector>

namespace mistakes {

using words = std::vector<const char*>;

/// On 2 workers, in a process of its own. It prints whether it reached the end.
inline support::outcome outcome_of(const std::function<void()>& body, const char* check) {
  return support::run_child([&] {
    godwit::options o;
    o.workers = 2;
    o.check_global = godwit::choice::named{check};
    for (const char* name : {"GODWIT_CHECK_GLOBAL", "GODWIT_WORKERS"}) unsetenv(name);
    return godwit::run(
        0, nullptr,
        [&body] {
          body();
          std::puts("reached the end");
        },
        o);
  });
}

/// The run ended at the mistake, and said so.
inline void expect_caught(const std::function<void()>& body, const words& says, const char* check) {
  const auto o = outcome_of(body, check);
  EXPECT_FALSE(o.timed_out) << show(o);
  EXPECT_NE(o.status, 0) << show(o);
  EXPECT_EQ(o.left_behind, 0) << show(o);
  EXPECT_EQ(o.out.find("reached the end"), std::string::npos) << show(o);
  for (const char* w : says) EXPECT_TRUE(o.err_has(w)) << "'" << w << "' is not in\n" << show(o);
}

}  // namespace mistakes
