// Races, deadlines and stop tokens: cancel.hpp. Scopes: cancel_test.cpp.
// test: timeout=120
#include "support/elsewhere.hpp"
#include "support/schedule.hpp"
#include "support/substrate.hpp"

#include <godwit/godwit.hpp>

#include <gtest/gtest.h>

#include <chrono>
#include <optional>
#include <stdexcept>
#include <stop_token>
#include <string>
#include <vector>

namespace {

namespace gw = godwit;
using namespace std::chrono_literals;

/// Goes on until it is stopped, and lets others run.
[[noreturn]] int for_ever() {
  for (;;) {
    support::leaf(1);
    gw::yield();
  }
}

TEST(race, the_first_result_wins_and_the_others_end) {
  support::for_each_schedule([](const gw::options& o) {
    EXPECT_EQ(gw::run<std::string>(
                  [] {
                    // The first one begins in the calling thread: with one worker nobody else would come.
                    return gw::race([] { return support::elsewhere(2), std::string(40, 'a'); },
                                    []() -> std::string { return std::to_string(for_ever()); },
                                    []() -> std::string { throw std::runtime_error("loses"); });
                  },
                  o),
              std::string(40, 'a'));
  });
}

TEST(race, a_later_one_may_win) {
  gw::options o = support::schedule(2, "children");
  for (int i = 0; i < 5; ++i)
    EXPECT_EQ(gw::run<long>([] { return gw::race([] { return for_ever(); }, [] { return 7L; }); }, o), 7);
}

TEST(race, if_all_fail_the_leftmost_exception_is_thrown) {
  support::for_each_schedule([](const gw::options& o) {
    EXPECT_EQ(gw::run<std::string>(
                  [] {
                    try {
                      gw::race([]() -> int { throw gw::cancelled(); },
                               []() -> int {
                                 support::elsewhere(2);
                                 throw std::runtime_error("second");
                               },
                               []() -> int { throw std::logic_error("third"); });
                    } catch (const std::exception& e) {
                      return std::string(e.what());
                    }
                    return std::string();
                  },
                  o),
              "second");
  });
}

TEST(race, of_threads_without_results) {
  support::for_each_schedule([](const gw::options& o) {
    EXPECT_EQ(gw::run<int>(
                  [] {
                    gw::race([] { support::leaf(1); }, [] { static_cast<void>(for_ever()); });
                    return 3;
                  },
                  o),
              3);
  });
}

TEST(race, inside_a_race_ends_with_it) {
  support::for_each_schedule([](const gw::options& o) {
    EXPECT_EQ(gw::run<int>(
                  [] {
                    return gw::race(
                        [] { return support::leaf(4); },
                        [] { return gw::race([] { return for_ever(); }, [] { return for_ever(); }); });
                  },
                  o),
              5);
  });
}

TEST(deadline, ends_what_takes_longer) {
  support::for_each_schedule([](const gw::options& o) {
    EXPECT_EQ(gw::run<int>(
                  [] {
                    const auto late = gw::with_deadline(2ms, [] { return for_ever(); });
                    const auto there = gw::with_deadline(1h, [] { return support::leaf(4); });
                    const bool done = gw::with_deadline(std::chrono::steady_clock::now() + 1h, [] {});
                    const bool not_done = gw::with_deadline(1ms, [] { static_cast<void>(for_ever()); });
                    return (late ? 1000 : 0) + there.value_or(100) + (done ? 10 : 0) + (not_done ? 500 : 0);
                  },
                  o),
              15);
  });
}

TEST(deadline, is_seen_by_threads_below_and_by_asking) {
  support::for_each_schedule([](const gw::options& o) {
    EXPECT_TRUE(gw::run<bool>(
        [] {
          return !gw::with_deadline(2ms, [] {
            auto a = gw::spawn([] { return for_ever(); });
            while (!gw::is_cancelled()) {
            }
            return a.join();
          });
        },
        o));
  });
}

TEST(stop_token, cancels_a_scope) {
  if (!support::on_threads()) GTEST_SKIP() << "workers are processes";
  support::for_each_schedule([](const gw::options& o) {
    EXPECT_EQ(gw::run<int>(
                  [] {
                    std::stop_source source;
                    gw::cancel_scope scope(source.get_token());
                    const auto got = scope.run([&] {
                      auto f = gw::spawn([] { return support::elsewhere(2), for_ever(); });
                      source.request_stop();
                      return f.join();
                    });
                    return got ? 1 : 2;
                  },
                  o),
              2);
  });
}

TEST(stop_token, that_was_stopped_before) {
  if (!support::on_threads()) GTEST_SKIP() << "workers are processes";
  EXPECT_TRUE(gw::run<bool>(
      [] {
        std::stop_source source;
        source.request_stop();
        gw::cancel_scope scope(source.get_token());
        return gw::is_cancelled();
      },
      support::schedule(2)));
}

}  // namespace
