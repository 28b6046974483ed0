// Tests of background_run: work from OS threads and from threads of the run, all of it done when it ends; and
// what is refused.
// test: timeout=60
#include "places.hpp"

#include <godwit/background_run.hpp>

#include <atomic>
#include <future>
#include <thread>
#include <vector>

namespace {

namespace gw = godwit;

TEST(background_run, all_that_os_threads_hand_it_is_done_when_it_ends) {
  for (const std::uint32_t workers : {1u, 3u}) {
    std::atomic<int> done{0}, in_threads{0};
    {
      gw::background_run run(support::on_threads(workers));
      std::vector<std::thread> others;
      for (int t = 0; t < 3; ++t)
        others.emplace_back([&] {
          for (int i = 0; i < 500; ++i)
            run.submit([&, own = std::make_unique<int>(i)] {
              if (gw::worker_count() == workers) ++in_threads;
              if (*own % 10 == 0) run.submit([&] { ++done; });  // from inside
              auto child = gw::spawn([] { return 1; });
              gw::yield();
              done += child.join();
            });
        });
      for (std::thread& o : others) o.join();
    }
    EXPECT_EQ(done, 3 * 550);
    EXPECT_EQ(in_threads, 3 * 500);
  }
}

/// On x86-64 they have the worker register of the thread that began them, but are not that worker.
TEST(background_run, os_threads_that_threads_begin_are_no_workers) {
  for (const std::uint32_t workers : {1u, 3u}) {
    std::atomic<int> done{0}, ended{0};
    {
      gw::background_run run(support::on_threads(workers));
      for (int t = 0; t < 3; ++t)
        run.submit([&] {
          std::atomic<bool> all{false};
          std::thread other([&] {
            for (int i = 0; i < 2000; ++i) run.submit([&] { ++done; });
            all = true;
          });
          while (!all) {  // at work, while the other one would change the same worker's words
            EXPECT_EQ(gw::spawn([] { return 1; }).join(), 1);
            gw::yield();
          }
          other.join();
          ++ended;
        });
      while (ended != 3) std::this_thread::yield();  // nobody submits from outside when the run ends
    }
    EXPECT_EQ(done, 6'000);
  }
}

TEST(background_run, it_sleeps_and_is_woken_one_by_one) {
  for (const std::uint32_t workers : {1u, 2u}) {
    gw::background_run run(support::on_threads(workers));
    for (int i = 0; i < 50; ++i) {
      std::promise<void> done;
      run.submit([&] { done.set_value(); });
      done.get_future().get();
    }
  }
}

TEST(background_run, one_after_the_other_and_ordinary_runs_in_between) {
  for (int i = 0; i < 3; ++i) {
    { gw::background_run nothing(support::on_threads(2)); }
    EXPECT_EQ(gw::run<int>([] { return gw::spawn([] { return 2; }).join(); }, support::on_threads(2)), 2);
  }
}

TEST(background_run, what_is_submitted_in_a_cancelled_scope_begins) {
  for (const std::uint32_t workers : {1u, 2u}) {
    std::atomic<int> begun{0};
    std::atomic<bool> scope_ended{false};
    {
      gw::background_run run(support::on_threads(workers));
      run.submit([&] {
        gw::cancel_scope scope;
        EXPECT_FALSE(scope.run([&] {
          run.submit([&] { ++begun; });  // it has not begun when the scope is cancelled
          scope.cancel();
          run.submit([&] {
            ++begun;
            gw::yield();  // cancelled: it ends here
            ADD_FAILURE() << "it went on";
          });
          gw::yield();
        }));
        scope_ended = true;
      });
    }
    EXPECT_EQ(begun, 2);
    EXPECT_TRUE(scope_ended);
  }
}

TEST(background_run, what_cannot_be_is_refused) {
  gw::options bad = support::on_threads(2);
  bad.thread_stack_bytes = 1;
  EXPECT_THROW(gw::background_run run(bad), std::exception);
  gw::run(support::on_threads(1), [] { EXPECT_THROW(gw::background_run inside, gw::run_error); });
}

}  // namespace
