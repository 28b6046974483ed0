// Tests of the queue of ready threads: order, both ends, a lock that somebody holds, and that each of many
// takers gets what nobody else has.
// test: timeout=60 tsan
#include "sched/ready_queue.hpp"

#include "sched/host.hpp"

#include <gtest/gtest.h>

#include <atomic>
#include <thread>
#include <vector>

namespace {

using namespace host_of_tests;
namespace base = godwit::base;

struct ready : testing::Test {
  host here{2};
  ready_queue own{here.memory(), here.words(0), base::holder_of(0)};
  ready_queue thiefs{here.memory(), here.words(0), base::holder_of(1)};

  ref push(bool in_front = false) {
    image* im = here.new_image(0);
    im->waiting_for = 77;
    own.push(im, here.ref_of(im), in_front);
    EXPECT_EQ(im->waiting_for, 0u) << "who is ready waits for nothing";
    return here.ref_of(im);
  }
};

TEST_F(ready, first_in_first_out) {
  EXPECT_TRUE(own.empty());
  EXPECT_EQ(own.pop(), 0u);
  const ref a = push(), b = push(), c = push();
  EXPECT_EQ(thiefs.size(), 3u);
  EXPECT_EQ(own.pop(), a);
  EXPECT_EQ(thiefs.pop(), b);
  EXPECT_EQ(own.pop(), c);
  EXPECT_EQ(own.pop(), 0u);
  const ref d = push();
  EXPECT_EQ(own.pop(), d) << "what the emptied queue had before does not count";
}

TEST_F(ready, in_front_and_from_the_end) {
  const ref b = push(), c = push(), a = push(true);
  EXPECT_EQ(own.pop_newest(), c);
  EXPECT_EQ(own.pop(), a);
  EXPECT_EQ(own.pop_newest(), b);
  EXPECT_EQ(own.pop_newest(), 0u);
  const ref only = push(true);
  EXPECT_EQ(own.pop_newest(), only) << "the first of an empty queue is also its last";
}

TEST_F(ready, the_lightest_of_the_first_few) {
  const auto weigh = [&](ref r, std::uint64_t bytes) { here.memory().at<image>(r)->bytes_end = bytes; };
  const auto lightest = [&] { return thiefs.pop_lightest([](const image& im) { return im.bytes_end; }); };
  const auto has = [&](std::uint64_t bytes) {
    return thiefs.has([&](const image& im) { return im.bytes_end == bytes ? 0 : ready_queue::never; });
  };
  EXPECT_EQ(lightest(), 0u);
  EXPECT_FALSE(has(1));
  const ref a = push(), b = push(), c = push(), d = push();
  weigh(a, ready_queue::never);
  weigh(b, 9);
  weigh(c, ready_queue::never);
  weigh(d, 7);
  EXPECT_TRUE(has(9));
  EXPECT_FALSE(has(8));
  EXPECT_EQ(lightest(), d) << "from the end";
  EXPECT_EQ(lightest(), b) << "from between the others";
  EXPECT_EQ(lightest(), 0u) << "who is not to be taken";
  const ref e = push();
  EXPECT_EQ(own.size(), 3u);
  EXPECT_EQ(own.pop(), a);
  EXPECT_EQ(own.pop(), c);
  EXPECT_EQ(own.pop_newest(), e);
  const ref f = push(), g = push(), h = push();
  weigh(f, 3);
  weigh(g, 3);
  weigh(h, 4);
  EXPECT_EQ(lightest(), f) << "the first of those that weigh the same";
  EXPECT_EQ(lightest(), g);
  EXPECT_EQ(own.pop(), h);
  EXPECT_TRUE(own.empty());
  for (int i = 0; i < 16; ++i) weigh(push(), ready_queue::never);
  weigh(push(), 0);
  EXPECT_EQ(lightest(), 0u) << "no further than the first few";
}

TEST_F(ready, who_yields_goes_behind_the_others) {
  image* me = here.new_image(0);
  EXPECT_EQ(own.rotate(me, here.ref_of(me)), 0u) << "nobody else: it goes on";
  EXPECT_TRUE(own.empty());
  const ref a = push();
  EXPECT_EQ(own.rotate(me, here.ref_of(me)), a);
  EXPECT_EQ(own.size(), 1u);
  EXPECT_EQ(own.pop(), here.ref_of(me));
}

TEST_F(ready, takers_do_not_wait_for_the_lock_and_givers_do) {
  push();
  std::atomic<std::uint64_t>& lock = here.words(0).ready_lock;
  ASSERT_TRUE(base::try_lock(lock, base::holder_of(1)));
  EXPECT_EQ(own.pop(), 0u);
  EXPECT_EQ(own.pop_newest(), 0u);
  static std::atomic<std::uint64_t>* held;
  static int turns;
  held = &lock;
  turns = 0;
  ready_queue waiting(here.memory(), here.words(0), base::holder_of(0), false, [](base::spin_wait&) noexcept {
    if (++turns == 3) base::unlock(*held, base::holder_of(1));
  });
  image* im = here.new_image(0);
  waiting.push(im, here.ref_of(im), false);
  EXPECT_EQ(turns, 3);
  EXPECT_EQ(own.size(), 2u);
}

TEST_F(ready, alone_there_is_no_lock) {
  ready_queue alone(here.memory(), here.words(0), base::holder_of(0), true);
  here.words(0).ready_lock.store(base::holder_of(1));
  image* im = here.new_image(0);
  alone.push(im, here.ref_of(im), false);
  EXPECT_EQ(alone.pop(), here.ref_of(im));
  EXPECT_EQ(here.words(0).ready_lock.load(), base::holder_of(1));
}

TEST_F(ready, each_is_taken_once) {
  constexpr unsigned threads = 3, pushes = 2000;
  std::vector<image*> images;
  for (unsigned i = 0; i < pushes; ++i) images.push_back(here.new_image(0));
  std::vector<std::atomic<int>> taken(pushes);
  std::atomic<unsigned> left{pushes};
  const auto take = [&](ref r) {
    if (r == 0) return;
    ++taken[here.memory().at<image>(r)->fp];
    --left;
  };
  std::vector<std::thread> thieves;
  for (unsigned t = 1; t <= threads; ++t)
    thieves.emplace_back([&, t] {
      ready_queue mine(here.memory(), here.words(0), base::holder_of(t));
      for (unsigned n = 0; left != 0; ++n) {
        take(n % 2 == 0 ? mine.pop() : mine.pop_newest());
        std::this_thread::yield();
      }
    });
  for (unsigned i = 0; i < pushes; ++i) {
    images[i]->fp = i;
    own.push(images[i], here.ref_of(images[i]), i % 5 == 0);
    if (i % 3 == 0) take(own.pop());
  }
  while (left != 0) take(own.pop());
  for (std::thread& t : thieves) t.join();
  for (const auto& n : taken) EXPECT_EQ(n, 1);
}

}  // namespace
