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

  ref push(rank where = rank::last) {
    image* im = here.new_image(0);
    im->waiting_for = 77;
    own.push(im, here.ref_of(im), where);
    EXPECT_EQ(im->waiting_for, 0u) << "who is ready waits for nothing";
    return here.ref_of(im);
  }
  /// By who yields: @p im. Gives back who is next.
  ref rotate(image* im) {
    image* const next = own.rotate(im, here.ref_of(im));
    EXPECT_EQ(own.lock_word(), base::holder_of(0)) << "until the one who yields is saved";
    EXPECT_EQ(thiefs.pop(), 0u);
    own.lock_word() = 0;
    return here.ref_of(next);
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
  const ref b = push(), c = push(), a = push(rank::first);
  EXPECT_EQ(own.pop_newest(), c);
  EXPECT_EQ(own.pop(), a);
  EXPECT_EQ(own.pop_newest(), b);
  EXPECT_EQ(own.pop_newest(), 0u);
  const ref only = push(rank::first);
  EXPECT_EQ(own.pop_newest(), only) << "the first of an empty queue is also its last";
}

TEST_F(ready, out_of_the_middle_as_long_as_it_is_there) {
  const auto take = [&](ready_queue& by, ref r) {
    return by.take(here.memory().at<image>(r), r, [](bool) { return true; });
  };
  const ref A = push(rank::high), B = push(rank::high), c = push(), d = push(), e = push(), f = push();
  EXPECT_FALSE(own.take(here.memory().at<image>(c), c, [](bool any_high) { return !any_high; }));
  EXPECT_TRUE(take(own, d));
  EXPECT_FALSE(take(own, d)) << "it has been taken";
  EXPECT_TRUE(take(thiefs, e)) << "behind it was the one that has been taken";
  EXPECT_TRUE(take(own, B)) << "the last of the high ones";
  EXPECT_TRUE(take(thiefs, f)) << "the last of all";
  const ref g = push(), H = push(rank::high);
  EXPECT_TRUE(take(own, A)) << "the first";
  EXPECT_EQ(own.pop(), H);
  EXPECT_EQ(thiefs.pop(), c);
  EXPECT_FALSE(take(thiefs, c)) << "it has been popped";
  EXPECT_EQ(own.pop_newest(), g);
  EXPECT_FALSE(take(own, g));
  EXPECT_TRUE(own.empty());
  const ref i = push(), j = push();
  EXPECT_EQ(own.pop_if([](const image&) { return false; }), 0u);
  EXPECT_EQ(own.pop_if([](const image&) { return true; }), i);
  EXPECT_TRUE(take(own, j)) << "the only one";
  EXPECT_EQ(own.pop_if([](const image&) { return true; }), 0u);
}

TEST_F(ready, high_ones_first_whoever_takes) {
  const ref a = push(), B = push(rank::high), c = push(), D = push(rank::high);
  EXPECT_EQ(thiefs.pop(), B);
  const ref E = push(rank::high);
  EXPECT_EQ(own.pop(), D);
  const ref first = push(rank::first), F = push(rank::high);
  EXPECT_EQ(own.pop_newest(), c);
  EXPECT_EQ(thiefs.pop_lightest([&](const image& im) { return here.ref_of(&im) == F ? 1 : 2; }), F);
  const ref G = push(rank::high);
  EXPECT_EQ(own.pop_newest(), a);
  EXPECT_EQ(own.pop_newest(), G) << "only high ones are left";
  const ref H = push(rank::high), i = push();
  EXPECT_EQ(own.pop(), first);
  EXPECT_EQ(thiefs.pop(), E);
  EXPECT_EQ(thiefs.pop(), H);
  EXPECT_EQ(own.pop(), i);
  EXPECT_EQ(own.pop(), 0u);
  const ref j = push(), K = push(rank::high);
  image* last = here.new_image(0);
  EXPECT_EQ(rotate(last), K);
  EXPECT_EQ(own.pop(), j);
  EXPECT_EQ(own.pop(), here.ref_of(last));
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
  EXPECT_EQ(own.rotate(me, here.ref_of(me)), nullptr) << "nobody else: it goes on";
  EXPECT_TRUE(own.empty());
  const ref a = push();
  EXPECT_EQ(rotate(me), a);
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
  waiting.push(im, here.ref_of(im), rank::last);
  EXPECT_EQ(turns, 3);
  EXPECT_EQ(own.size(), 2u);
}

TEST_F(ready, alone_there_is_no_lock) {
  ready_queue alone(here.memory(), here.words(0), base::holder_of(0), true);
  here.words(0).ready_lock.store(base::holder_of(1));
  image* im = here.new_image(0);
  alone.push(im, here.ref_of(im), rank::last);
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
    own.push(images[i], here.ref_of(images[i]),
             i % 5 == 0   ? rank::first
             : i % 5 == 1 ? rank::high
                          : rank::last);
    if (i % 3 == 0) take(own.pop());
  }
  while (left != 0) take(own.pop());
  for (std::thread& t : thieves) t.join();
  for (const auto& n : taken) EXPECT_EQ(n, 1);
}

}  // namespace
