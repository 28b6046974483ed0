// Threads that are looked at one after the other: did all of them wait at one moment? See
// src/runtime/stuck.hpp. What is made of it: tests/api/stuck_test.cpp.
// test: skip-qemu
#include "runtime/stuck.hpp"

#include "base/world.hpp"

#include <gtest/gtest.h>

#include <atomic>
#include <semaphore.h>
#include <sys/syscall.h>
#include <thread>
#include <unistd.h>

namespace {

using godwit::runtime::stuck_watch;
using wait = stuck_watch::wait;

/// An OS thread that waits, again and again at the same place.
class waiting {
 public:
  waiting() : thread_([this] { run(); }) {
    while (tid_.load() == 0) godwit::base::nap(100'000);
  }
  ~waiting() {
    is_over_ = true;
    let_go();
    thread_.join();
  }
  void let_go() { sem_post(&turns_); }
  wait seen() const {
    wait w{};
    while (!stuck_watch::waits(tid_, 0, w)) godwit::base::nap(100'000);
    return w;
  }

 private:
  void run() {
    sem_init(&turns_, 0, 0);
    tid_ = static_cast<pid_t>(syscall(SYS_gettid));
    while (!is_over_)
      while (sem_wait(&turns_) != 0) {
      }
  }
  sem_t turns_{};
  std::atomic<pid_t> tid_{0};
  std::atomic<bool> is_over_{false};
  std::thread thread_;
};

TEST(stuck_watch, who_has_run_in_between_has_not_waited_all_the_time) {
  waiting one, other;
  const wait before = one.seen(), beside = other.seen();
  EXPECT_TRUE(stuck_watch::at_once({before, beside}));
  one.let_go();
  wait after = before;
  while (after.runs == before.runs) after = one.seen();
  EXPECT_TRUE(after == before) << "it waits for the same as before, at the same place";
  EXPECT_FALSE(stuck_watch::at_once({before, beside}));
  EXPECT_TRUE(stuck_watch::at_once({after, beside}));
}

TEST(stuck_watch, who_waits_thrice_for_the_same) {
  const waiting one;
  const wait now = one.seen();
  stuck_watch watch(1);
  EXPECT_FALSE(watch.seen({now}));
  EXPECT_FALSE(watch.seen({now}));
  EXPECT_TRUE(watch.seen({now}));
  EXPECT_FALSE(watch.seen({}));
  EXPECT_FALSE(watch.seen({now}));
}

}  // namespace
