// Tests of future and shared_future: moves, drops, coded results in frames that leave, many consumers,
// handles that travel as arguments, captures and results -- under every schedule.
// test: timeout=180
#include "support/child.hpp"
#include "support/schedule.hpp"
#include "support/shared.hpp"
#include "support/substrate.hpp"

#include <godwit/godwit.hpp>

#include <gtest/gtest.h>

#include <array>
#include <atomic>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace {

namespace gw = godwit;
using support::for_each_schedule;

[[gnu::noinline]] long fib(int n) {
  if (n < 2) return n;
  auto x = gw::spawn([n] { return fib(n - 1); });
  const long y = fib(n - 2);
  return x.join() + y;
}

std::string text(int n) { return std::string(static_cast<std::size_t>(n), static_cast<char>('a' + n % 26)); }
// Takes its argument first and makes the text to compare with then: no string lives while a thread waits.
bool is_text(const std::string& s, int n) { return s == text(n); }

template <class String>
bool lies_in_itself(const String& s) {
  const auto at = reinterpret_cast<std::uintptr_t>(s.data());
  return at - reinterpret_cast<std::uintptr_t>(&s) < sizeof s;
}

/// How many texts of up to @p most characters are not whole, or not where a string has a text of that length.
template <class String>
int wrong_texts(int most) {
  const auto made = [](int n) {
    String s;
    for (int i = 0; i < n; ++i) s.push_back(static_cast<typename String::value_type>('a' + i));
    return s;
  };
  int wrong = 0;
  for (int n = 0; n <= most; ++n) {
    String s = gw::spawn(made, n).join();
    wrong += s != made(n) || s.c_str()[n] != 0 || lies_in_itself(s) != lies_in_itself(made(n));
    wrong += s + made(20) != made(n).append(made(20));
  }
  return wrong;
}

TEST(future, texts_of_each_length_arrive_whole) {
  for_each_schedule([](const gw::options& o) {
    EXPECT_EQ(gw::run<int>(
                  [] {
                    return wrong_texts<std::string>(40) + wrong_texts<std::u16string>(20) +
                           wrong_texts<std::u32string>(10);
                  },
                  o),
              0);
  });
}

TEST(future, moves_keep_the_result) {
  for_each_schedule([](const gw::options& o) {
    EXPECT_EQ(gw::run<int>(
                  [] {
                    auto a = gw::spawn(text, 40);
                    gw::future<std::string> b(std::move(a));
                    auto c = gw::spawn(text, 3);
                    gw::future<std::string> d;
                    d = std::move(b);
                    auto e = gw::spawn(text, 2);
                    std::swap(c, e);
                    int bad = a.valid() + b.valid() + !c.valid() + !d.valid();
                    // one statement each: temporaries live to the end of theirs
                    bad += is_text(d.join(), 40);
                    bad += is_text(c.join(), 2);
                    bad += is_text(e.join(), 3);
                    return bad;
                  },
                  o),
              3);
  });
}

TEST(future, move_assignment_drops_the_old_thread) {
  for_each_schedule([](const gw::options& o) {
    support::shared<std::atomic<int>> ran;
    EXPECT_EQ(gw::run<int>(
                  [r = ran.get()] {
                    auto f = gw::spawn([r] { return r->fetch_add(1), 1; });
                    f = gw::spawn([r] { return r->fetch_add(1), 2; });
                    f = gw::spawn([r] { return r->fetch_add(1), 3; });
                    auto& self = f;
                    f = std::move(self);
                    return f.join();
                  },
                  o),
              3);
    EXPECT_EQ(ran->load(), 3);
  });
}

TEST(future, dropped_ones_free_their_results) {
  for_each_schedule([](const gw::options& o) {
    support::shared<std::atomic<int>> ran;
    gw::run<int>(
        [r = ran.get()] {
          for (int i = 0; i < 30; ++i) {
            auto a = gw::spawn([r] { return r->fetch_add(1), text(1000); });
            auto b = gw::spawn([r] { return r->fetch_add(1), 1L; });
            auto c = gw::spawn([r] {
              auto inner = gw::spawn([r] { r->fetch_add(1); });
              inner.join();
              return text(5);
            });
          }
          return 0;
        },
        o);
    EXPECT_EQ(ran->load(), 90);
  });
}

// Results with a codec lie in the frame until they are joined; later spawns make that frame leave.
TEST(future, coded_results_are_held_across_spawns) {
  for_each_schedule([](const gw::options& o) {
    EXPECT_EQ(gw::run<int>(
                  [] {
                    auto a = gw::spawn([] { return std::vector<std::string>{text(100), text(1)}; });
                    auto n = gw::spawn([] { return fib(5); });
                    auto b = gw::spawn([] { return std::vector<int>(500, 7); });
                    auto c = gw::spawn([] { return std::optional<std::string>(text(77)); });
                    long extra = fib(6);
                    auto d = gw::spawn([] { return std::vector<bool>{true, false, true}; });
                    extra += n.join();
                    int bad = extra != 13;
                    {
                      const auto v = a.join();
                      bad += v != std::vector<std::string>{text(100), text(1)};
                    }
                    {
                      const auto v = c.join();
                      bad += v != text(77);
                    }
                    {
                      const auto v = b.join();
                      bad += v != std::vector<int>(500, 7);
                    }
                    const auto v = d.join();
                    return bad + (v != std::vector<bool>{true, false, true});
                  },
                  o),
              0);
  });
}

[[gnu::noinline]] std::size_t nested_texts(int depth) {
  auto mine = gw::spawn(text, depth * 10);
  std::size_t below = 0;
  if (depth > 0) {
    auto deeper = gw::spawn([depth] { return nested_texts(depth - 1); });
    below = deeper.join();
  }
  return below + mine.join().size();
}

TEST(future, coded_results_in_many_frames) {
  for_each_schedule([](const gw::options& o) {
    EXPECT_EQ(gw::run<std::size_t>([] { return nested_texts(12); }, o), 780u);
  });
}

// Their frame leaves while the threads' values lie in it, futures with values of their own among them.
TEST(future, results_that_hold_futures_in_a_frame_that_leaves) {
  GODWIT_NEEDS_PROCESSES("results stay as they are");
  gw::options o = support::schedule(1);
  o.heap = gw::choice::heap::separate;
  EXPECT_EQ(gw::run<int>(
                [] {
                  auto one = gw::spawn([] { return gw::spawn(text, 60); });
                  auto two = gw::spawn([] { return std::pair(gw::spawn(text, 61), gw::spawn(text, 62)); });
                  auto many = gw::spawn([] {
                    auto a = gw::spawn(text, 63), b = gw::spawn(text, 64);
                    std::vector<gw::future<std::string>> both(2);
                    both[0] = std::move(a);
                    both[1] = std::move(b);
                    return both;
                  });
                  gw::spawn_at(gw::worker(0), [] {}).join();
                  int good = is_text(one.join().join(), 60);
                  auto pair = two.join();
                  good += is_text(pair.first.join(), 61) + is_text(pair.second.join(), 62);
                  auto both = many.join();
                  return good + is_text(both[0].join(), 63) + is_text(both[1].join(), 64);
                },
                o),
            5);
}

// std::vector and the like say that they can be copied whatever their elements are.
TEST(future, containers_of_what_cannot_be_copied) {
  using numbers = std::vector<std::unique_ptr<int>>;
  using wrapped = std::pair<std::optional<numbers>, std::map<int, numbers>>;
  static_assert(!gw::detail::really_copyable<numbers>::value && !gw::detail::really_copyable<wrapped>::value);
  using texts = std::pair<std::optional<std::vector<std::string>>, std::map<int, std::string>>;
  static_assert(gw::detail::really_copyable<texts>::value);
  const auto make = [] {
    fib(5);
    numbers v;
    for (int i = 0; i < 3; ++i) v.push_back(std::make_unique<int>(i));
    return v;
  };
  for_each_schedule([make](const gw::options& o) {
    EXPECT_EQ(gw::run<int>(
                  [make] {
                    auto f = gw::spawn(make);
                    return *f.join()[2];
                  },
                  o),
              2);
    EXPECT_EQ(gw::run<int>(
                  [make] {
                    auto f = gw::spawn([make] { return wrapped(make(), std::map<int, numbers>()); });
                    return *f.join().first->at(1);
                  },
                  o),
              1);
  });
}

TEST(shared_future, of_what_cannot_be_copied_is_copied_by_its_codec) {
  for_each_schedule([](const gw::options& o) {
    EXPECT_EQ(gw::run<int>(
                  [] {
                    using value =
                        std::pair<std::vector<std::unique_ptr<int>>, gw::shared_future<std::string>>;
                    const gw::shared_future<value> s = gw::spawn([] {
                      value v;
                      v.second = gw::spawn(text, 10);
                      v.first.push_back(std::make_unique<int>(4));  // private heaps: owned after the spawn,
                      return v;
                    });
                    int sum = 0;
                    for (int i = 0; i < 3; ++i) {
                      value v = s.get();
                      sum += *v.first[0];
                      v.first = std::vector<std::unique_ptr<int>>();  // and no more before the wait
                      sum += 100 * is_text(v.second.get(), 10);
                    }
                    return sum;
                  },
                  o),
              312);
  });
}

TEST(shared_future, of_a_future_is_refused) {
  const auto child = support::run_child([] {
    return gw::run(support::schedule(2), [] {
      const gw::shared_future<gw::future<int>> s = gw::spawn([] { return gw::spawn([] { return 4; }); });
      return s.get().join() + s.get().join();
    });
  });
  EXPECT_EQ(child.status, 70) << support::show(child);
  EXPECT_TRUE(child.err_has("holds something that has one owner")) << support::show(child);
}

TEST(future, travels_as_argument_capture_and_result) {
  for_each_schedule([](const gw::options& o) {
    EXPECT_EQ(
        gw::run<int>(
            [] {
              auto a = gw::spawn(text, 10);
              auto b = gw::spawn([](gw::future<std::string> f) { return f.join() + "|"; }, std::move(a));
              auto c = gw::spawn([f = std::move(b)]() mutable { return f.join() + "!"; });
              // a thread whose result is a thread
              auto d = gw::spawn([] { return gw::spawn(text, 20); });
              auto inner = d.join();
              auto e =
                  gw::spawn([] { return std::pair<int, gw::future<int>>(1, gw::spawn([] { return 2; })); });
              auto both = e.join();
              int n = both.first * 10 + both.second.join();
              n += 100 * (c.join().size() == 12);
              n += 100 * is_text(inner.join(), 20);
              return n;
            },
            o),
        212);
  });
}

TEST(shared_future, every_consumer_gets_the_value) {
  for_each_schedule([](const gw::options& o) {
    EXPECT_EQ(gw::run<long>(
                  [] {
                    gw::shared_future<long> s = gw::spawn([] { return fib(8); });
                    std::array<gw::future<long>, 12> f;
                    for (std::size_t i = 0; i < f.size(); ++i)
                      f[i] = i % 2 != 0 ? gw::spawn([s]() mutable { return s.get() + s.get(); })
                                        : gw::spawn([](gw::shared_future<long> t) { return t.get(); }, s);
                    long sum = s.get();
                    for (auto& x : f) sum += x.join();
                    return sum + s.get();
                  },
                  o),
              21 * (2 + 6 + 12));
  });
}

// The producer cannot finish before all consumers wait: all of them are in the waiters' list.
TEST(shared_future, consumers_that_come_before_completion) {
  for_each_schedule([](const gw::options& o) {
    constexpr int consumers = 10;
    struct words {
      std::atomic<int> waiting{0};
      std::atomic<int> woken{0};
    };
    support::shared<words> shared;
    EXPECT_EQ(gw::run<int>(
                  [w = shared.get()] {
                    gw::shared_future<std::string> s = gw::spawn([w] {
                      while (w->waiting.load() < consumers) gw::yield();
                      for (int i = 0; i < 20; ++i) gw::yield();
                      return text(90);
                    });
                    std::array<gw::future<bool>, consumers> f;
                    for (auto& x : f)
                      x = gw::spawn([w, s]() mutable {
                        w->waiting.fetch_add(1);
                        const bool good = is_text(s.get(), 90);
                        w->woken.fetch_add(1);
                        return good;
                      });
                    int good = 0;
                    for (auto& x : f) good += x.join();
                    return good + 100 * is_text(s.get(), 90);
                  },
                  o),
              100 + consumers);
    EXPECT_EQ(shared->woken.load(), consumers);
  });
}

TEST(shared_future, every_consumer_gets_the_exception) {
  for_each_schedule([](const gw::options& o) {
    EXPECT_EQ(gw::run<int>(
                  [] {
                    gw::shared_future<int> s = gw::spawn([]() -> int {
                      fib(4);
                      throw std::out_of_range("the reason");
                    });
                    std::array<gw::future<int>, 6> f;
                    for (auto& x : f)
                      x = gw::spawn([s]() mutable {
                        try {
                          return s.get();
                        } catch (const std::out_of_range& e) {
                          return e.what() == std::string("the reason") ? 1 : 1000;
                        }
                      });
                    int sum = 0;
                    for (auto& x : f) sum += x.join();
                    return sum;
                  },
                  o),
              6);
  });
}

TEST(shared_future, copies_moves_and_assignments) {
  for_each_schedule([](const gw::options& o) {
    EXPECT_EQ(gw::run<int>(
                  [] {
                    gw::shared_future<int> none;
                    gw::shared_future<int> a = gw::spawn([] { return 4; }).share();
                    gw::shared_future<int> b = a;
                    const gw::shared_future<int>& constant = b;
                    gw::shared_future<int> c(constant);
                    gw::shared_future<int> d(std::move(a));
                    b = gw::spawn([] { return 30; });
                    c = b;
                    b = d;
                    c = std::move(c);
                    const int bad = none.valid() + a.valid() + none.ready();
                    auto f =
                        gw::spawn([d = std::move(d), b, c]() mutable { return d.get() + b.get() + c.get(); });
                    return f.join() + bad * 1000;
                  },
                  o),
              38);
  });
}

TEST(shared_future, travels_inside_results) {
  using handle = gw::shared_future<std::string>;
  for_each_schedule([](const gw::options& o) {
    EXPECT_EQ(gw::run<int>(
                  [] {
                    auto f = gw::spawn([] {
                      handle h = gw::spawn(text, 30);
                      std::array<handle, 2> two{h, h};
                      return two;
                    });
                    auto two = f.join();
                    auto g = gw::spawn(
                        [](handle x, handle y) {
                          const bool good = is_text(x.get(), 30);
                          return good + is_text(y.get(), 30);
                        },
                        two[0], two[1]);
                    return g.join() + is_text(two[1].get(), 30);
                  },
                  o),
              3);
  });
}

TEST(shared_future, dropped_before_completion) {
  for_each_schedule([](const gw::options& o) {
    support::shared<std::atomic<int>> ran;
    gw::run<int>(
        [r = ran.get()] {
          for (int i = 0; i < 20; ++i) {
            gw::shared_future<std::string> s = gw::spawn([r] {
              gw::yield();
              r->fetch_add(1);
              return text(200);
            });
            auto t = s;
            static_cast<void>(gw::spawn([u = t]() mutable { return u.get().size(); }));
          }
          return 0;
        },
        o);
    EXPECT_EQ(ran->load(), 20);
  });
}

TEST(shared_future, void_results) {
  for_each_schedule([](const gw::options& o) {
    support::shared<std::atomic<int>> ran;
    EXPECT_EQ(gw::run<int>(
                  [r = ran.get()] {
                    gw::shared_future<void> s = gw::spawn([r] {
                      fib(3);
                      r->store(1);
                    });
                    auto f = gw::spawn([s, r]() mutable {
                      s.get();
                      return r->load();
                    });
                    s.get();
                    return f.join();
                  },
                  o),
              1);
  });
}

// Every cell has two or three consumers.
TEST(shared_future, wavefront) {
  for_each_schedule([](const gw::options& o) {
    EXPECT_EQ(gw::run<long>(
                  [] {
                    constexpr int n = 8;
                    std::array<gw::shared_future<long>, n + 1> row;
                    for (auto& c : row) c = gw::spawn([] { return 1L; });
                    for (int i = 1; i <= n; ++i)
                      for (int j = 1; j <= n; ++j)
                        row[j] = gw::spawn([](gw::shared_future<long> up,
                                              gw::shared_future<long> left) { return up.get() + left.get(); },
                                           row[j], row[j - 1]);
                    return row[n].get();
                  },
                  o),
              12870);
  });
}

// Records are taken back: many more results than the heap could hold at once.
TEST(shared_future, records_are_collected) {
  for (const char* force : {"none", "parents", "children", "random"}) {
    gw::options o = support::schedule(2, force);
    o.heap_bytes = 4 << 20;
    SCOPED_TRACE(support::describe(o));
    EXPECT_EQ(gw::run<long>(
                  [] {
                    long sum = 0;
                    for (int i = 0; i < 3000; ++i) {
                      gw::shared_future<std::string> s = gw::spawn([] { return text(10000); });
                      auto f = gw::spawn([s]() mutable { return s.get().size(); });
                      sum += static_cast<long>(f.join());
                    }
                    return sum;
                  },
                  o),
              30'000'000);
  }
}

/// Each round leaves behind what no heap of a run below could hold of all rounds.
constexpr int rounds = 1000, round_bytes = 10'000;

/// @p round, which gives back how many bytes it has read, leaves nothing behind in any kind of heap.
template <class Round>
void leaves_nothing(Round round) {
  for (const auto heap : {gw::choice::heap::automatic, gw::choice::heap::separate})
    for (const char* force : {"none", "parents", "children", "random"}) {
      gw::options o = support::schedule(2, force);
      o.heap_bytes = 4 << 20;
      o.heap = heap;
      SCOPED_TRACE(support::describe(o));
      EXPECT_EQ(gw::run<long>(
                    [round] {
                      long sum = 0;
                      for (int i = 0; i < rounds; ++i) sum += round();
                      return sum;
                    },
                    o),
                long{rounds} * round_bytes);
    }
}

TEST(shared_future, what_a_result_holds_is_freed_with_its_last_copy) {
  leaves_nothing([] {
    using texts = gw::shared_future<std::string>;
    gw::shared_future<std::vector<texts>> outer = gw::spawn([] {
      texts one = gw::spawn([] { return text(round_bytes / 2); });
      return std::vector<texts>(2, one);
    });
    auto reader = gw::spawn([outer]() mutable {
      texts first = outer.get()[0];
      return first.get().size();
    });
    texts last = outer.get()[1];
    outer = {};
    const std::size_t read = reader.join();
    return static_cast<long>(read + last.get().size());
  });
}

TEST(shared_future, results_within_results_that_nobody_reads_are_freed) {
  leaves_nothing([] {
    const auto make = [](bool at_once) {
      return gw::spawn([at_once] {
        if (!at_once) gw::yield();
        auto inner = gw::spawn([] { return std::pair(gw::spawn(text, round_bytes), text(5)); });
        return gw::shared_future<std::pair<gw::future<std::string>, std::string>>(std::move(inner));
      });
    };
    const auto complete = make(true).share();
    const gw::cancel_scope until_it_ends;
    static_cast<void>(make(false));  // dropped before, as a rule
    auto taken = make(true);
    static_cast<void>(taken.join());
    return long{round_bytes};
  });
}

TEST(shared_future, value_that_holds_a_shared_future) {
  for_each_schedule([](const gw::options& o) {
    EXPECT_EQ(gw::run<long>(
                  [] {
                    using inner = gw::shared_future<long>;
                    gw::shared_future<inner> outer =
                        gw::spawn([] { return inner(gw::spawn([] { return fib(10); })); });
                    long sum = 0;
                    for (int i = 0; i < 20; ++i) {
                      inner a = outer.get();  // the only other reference dies at the end of each turn
                      sum += a.get();
                      // would reuse its record
                      auto other = gw::spawn([i] { return std::array<long, 3>{i, i, i}; });
                      sum += other.join()[2];
                    }
                    return sum;
                  },
                  o),
              20 * 55 + 190);
  });
}

}  // namespace
