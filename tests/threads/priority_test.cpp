// Tests of priorities: of threads that are ready at one worker, those of high priority go first, in the order
// in which they became ready; and all run in the end. docs/threads.md, "Two priorities".
// test: timeout=120
#include "places.hpp"

#include <atomic>
#include <stop_token>
#include <string>
#include <vector>

namespace {

namespace gw = godwit;
using gw::priority;

/// What threads wrote, on one worker: the same where workers go from thread to thread by the long way.
std::string in_order(void (*root)(std::string& said)) {
  std::string said[2];
  for (std::string& s : said) {
    gw::options o = support::on_threads(1);
    o.delay_us = &s != said ? 1 : 0;
    gw::run(o, [&] { root(s); });
  }
  EXPECT_EQ(said[0], said[1]);
  return said[0];
}

TEST(priority, high_ones_begin_first_each_kind_in_order) {
  EXPECT_EQ(in_order([](std::string& said) {
              std::vector<gw::thread> all;
              for (const char c : {'a', 'B', 'c', 'D', 'E', 'f'}) {
                const priority level = c < 'a' ? priority::high : priority::normal;
                all.emplace_back(level, [&said, c] { said += c; });
              }
              auto G = gw::create(
                  priority::high, [](std::string& s) { s += 'G'; }, std::ref(said));
              gw::jthread H(priority::high, [&said](std::stop_token) { said += 'H'; });
              for (gw::thread& t : all) t.join();
              G.join();
            }),
            "BDEGHacf");
}

TEST(priority, it_stays_with_a_thread_that_waits) {
  EXPECT_EQ(in_order([](std::string& said) {
              gw::counting_semaphore<> open(0);
              std::vector<gw::thread> all;
              for (const char c : {'a', 'b', 'C', 'D'})
                all.emplace_back(c < 'a' ? priority::high : priority::normal, [&, c] {
                  if (c == 'C') open.acquire();  // the only one that waits, while the normal ones are ready
                  if (c == 'D') {
                    gw::thread(priority::normal, [] {}).detach();
                    open.release();  // C is ready again
                  }
                  said += c;
                });
              for (gw::thread& t : all) t.join();
            }),
            "DCab");
}

TEST(priority, who_yields_lets_all_others_go_first) {
  EXPECT_EQ(in_order([](std::string& said) {
              gw::thread high(priority::high, [&said] {
                gw::yield();
                said += 'H';
              });
              gw::thread a([&said] { said += 'a'; }), b([&said] { said += 'b'; });
              high.join();
              a.join();
              b.join();
            }),
            "abH");
}

TEST(priority, a_stack_used_again_is_not_high) {
  EXPECT_EQ(in_order([](std::string& said) {
              for (int i = 0; i < 20; ++i) gw::thread(priority::high, [] {}).join();
              gw::counting_semaphore<> open(0);
              auto a = gw::spawn([&] {
                open.acquire();
                said += 'a';
              });
              gw::thread b([&said] { said += 'b'; });
              open.release();
              b.join();
              a.join();
            }),
            "ba");
}

TEST(priority, all_run_under_every_schedule) {
  support::everywhere([] {
    std::atomic<int> ran{0};
    std::vector<gw::thread> all;
    for (int i = 0; i < 60; ++i)
      all.emplace_back(i % 3 == 0 ? priority::high : priority::normal, [&ran, i] {
        for (int k = 0; k < 3; ++k) {
          auto child = gw::spawn([k] { return k; });
          gw::yield();
          ran += child.join() == k ? 1 : 0;
          if (i % 7 == 0) gw::create(priority::high, [&ran] { ++ran; }).join();
        }
      });
    for (gw::thread& t : all) t.join();
    EXPECT_EQ(ran, 60 * 3 + 9 * 3);
  });
}

}  // namespace
