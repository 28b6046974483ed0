// Tests of task_group and ordered_task_group: members that add members, exceptions, groups in frames, on the
// heap and passed down, use after a wait -- under every schedule, and every policy.
// test: timeout=180 skip-asan
#include "support/child.hpp"
#include "support/schedule.hpp"
#include "support/substrate.hpp"

#include <godwit/godwit.hpp>

#include <gtest/gtest.h>

#include <memory>
#include <stdexcept>
#include <string>

namespace {

namespace gw = godwit;
using support::for_each_schedule;

/// A number that threads of all workers and hosts add to.
class total {
 public:
  total() : at_(gw::allocate<long>(1)) { gw::atomic_store(at_, 0L); }
  total(const total&) = delete;
  ~total() { gw::deallocate(at_, 1); }
  gw::global_ptr<long> get() const { return at_; }
  long value() const { return gw::atomic_load(at_); }

 private:
  gw::global_ptr<long> at_;
};

[[gnu::noinline]] long fib(int n) {
  if (n < 2) return n;
  auto x = gw::spawn([n] { return fib(n - 1); });
  const long y = fib(n - 2);
  return x.join() + y;
}

TEST(task_group, members_of_a_loop_have_ended_after_wait) {
  for_each_schedule([](const gw::options& o) {
    EXPECT_EQ(gw::run<long>(
                  [] {
                    const total sum;
                    const gw::task_group g;
                    for (long i = 1; i <= 50; ++i)
                      g.run([i, to = sum.get()] { gw::atomic_fetch_add(to, i * (fib(5) - 4)); });
                    g.wait();
                    return sum.value();
                  },
                  o),
              1275);
  });
}

/// A tree whose nodes are members of one group.
void grow(int depth, gw::global_ptr<long> to, const gw::task_group& g) {
  gw::atomic_fetch_add(to, 1L);
  if (depth == 0) return;
  for (int i = 0; i < 2; ++i) g.run([depth, to, &g] { grow(depth - 1, to, g); });
}

TEST(task_group, members_add_members) {
  for_each_schedule([](const gw::options& o) {
    EXPECT_EQ(gw::run<long>(
                  [] {
                    const total sum;
                    const gw::task_group g;
                    grow(6, sum.get(), g);
                    g.wait();
                    return sum.value();
                  },
                  o),
              127);
  });
}

TEST(task_group, can_be_used_again) {
  for_each_schedule([](const gw::options& o) {
    EXPECT_EQ(gw::run<long>(
                  [] {
                    const total sum;
                    const gw::task_group g;
                    long bad = 0;
                    for (long round = 1; round <= 5; ++round) {
                      for (int i = 0; i < 4; ++i)
                        g.run([to = sum.get()] { gw::atomic_fetch_add(to, fib(2)); });
                      g.wait();
                      g.wait();  // of none
                      bad += sum.value() != 4 * round;
                    }
                    return bad;
                  },
                  o),
              0);
  });
}

TEST(task_group, its_end_waits) {
  for_each_schedule([](const gw::options& o) {
    EXPECT_EQ(gw::run<long>(
                  [] {
                    const total sum;
                    {
                      const gw::task_group g;
                      grow(3, sum.get(), g);
                    }
                    long bad = sum.value() != 15;
                    try {
                      const gw::task_group g;
                      grow(3, sum.get(), g);
                      throw std::runtime_error("the owner's");
                    } catch (const std::runtime_error& e) {
                      bad += std::string(e.what()) != "the owner's" || sum.value() != 30;
                    }
                    return bad;
                  },
                  o),
              0);
  });
}

TEST(task_group, groups_may_be_nested_and_of_every_call) {
  for_each_schedule([](const gw::options& o) {
    struct tree {
      static long leaves(int depth) {
        if (depth == 0) return fib(3) - 1;
        const total sum;
        const gw::task_group g;
        for (int i = 0; i < 3; ++i)
          g.run([depth, to = sum.get()] { gw::atomic_fetch_add(to, leaves(depth - 1)); });
        g.wait();
        return sum.value();
      }
    };
    EXPECT_EQ(gw::run<long>([] { return tree::leaves(3); }, o), 27);
  });
}

TEST(task_group, lies_on_the_heap_and_gets_members_from_others) {
  for_each_schedule([](const gw::options& o) {
    EXPECT_EQ(gw::run<long>(
                  [] {
                    const total sum;
                    const auto g = std::make_unique<gw::task_group>();
                    auto adds = gw::spawn([to = sum.get(), &g = *g] { grow(3, to, g); });
                    adds.join();
                    g->wait();
                    return sum.value();
                  },
                  o),
              15);
  });
}

TEST(task_group, results_of_members_are_dropped) {
  for_each_schedule([](const gw::options& o) {
    EXPECT_EQ(gw::run<long>(
                  [] {
                    const gw::task_group g;
                    for (int i = 0; i < 10; ++i) {
                      g.run([i] { return std::string(static_cast<std::size_t>(20 * i), 'x'); });
                      g.run(fib, i);
                    }
                    g.wait();
                    return 0L;
                  },
                  o),
              0);
  });
}

TEST(task_group, wait_throws_what_a_member_threw_once_and_after_all_have_ended) {
  for_each_schedule([](const gw::options& o) {
    EXPECT_EQ(gw::run<long>(
                  [] {
                    const total sum;
                    const gw::task_group g;
                    long bad = 0;
                    for (int round = 0; round < 2; ++round) {
                      for (int i = 0; i < 10; ++i)
                        g.run([i, to = sum.get()] {
                          gw::atomic_fetch_add(to, fib(6) - 7);
                          if (i == 5) throw std::out_of_range("five");
                        });
                      try {
                        g.wait();
                        ++bad;
                      } catch (const std::out_of_range& e) {
                        bad += std::string(e.what()) != "five";
                      }
                      bad += sum.value() != 10 * (round + 1);
                      g.wait();
                    }
                    return bad;
                  },
                  o),
              0);
  });
}

TEST(task_group, wait_throws_what_the_first_of_a_loop_threw) {
  for_each_schedule([](const gw::options& o) {
    EXPECT_EQ(gw::run<long>(
                  [] {
                    const gw::task_group g;
                    for (int i = 0; i < 30; ++i)
                      g.run([i] {
                        static_cast<void>(fib(12 - i % 12));  // those that come later end sooner
                        if (i % 10 == 7) throw std::out_of_range(std::to_string(i));
                      });
                    try {
                      g.wait();
                    } catch (const std::out_of_range& e) {
                      return std::stol(e.what());
                    }
                    return -1L;
                  },
                  o),
              7);
  });
}

TEST(task_group, exceptions_that_own_memory_come_out_as_they_are) {
  for_each_schedule([](const gw::options& o) {
    EXPECT_EQ(
        gw::run<std::size_t>(
            [] {
              const gw::task_group g;
              for (int i = 0; i < 4; ++i)
                g.run([i] { throw std::runtime_error(std::string(static_cast<std::size_t>(100 + i), '!')); });
              try {
                g.wait();
              } catch (const std::runtime_error& e) {
                return std::string(e.what()).size();
              }
              return std::size_t{0};
            },
            o),
        100);
  });
}

/// Some nodes of a binary tree throw their number, behind their children.
bool fails(long node, long seed) { return (node * 2654435761L + seed * 40503L) / 64 % 5 == 0; }
void fail_in_tree(long node, long seed, const gw::ordered_task_group& g) {
  if (node < 64)
    for (long side = 0; side < 2; ++side)
      g.run([child = 2 * node + side, seed, &g] { fail_in_tree(child, seed, g); });
  static_cast<void>(fib(static_cast<int>(node % 7)));
  if (fails(node, seed)) throw std::out_of_range(std::to_string(node));
}
/// The first in serial order; 0: none.
long first_failing(long node, long seed) {
  if (node < 64)
    for (long side = 0; side < 2; ++side)
      if (const long found = first_failing(2 * node + side, seed)) return found;
  return fails(node, seed) ? node : 0;
}

TEST(task_group, an_ordered_one_throws_what_a_serial_execution_meets_first) {
  for_each_schedule([](const gw::options& o) {
    EXPECT_EQ(gw::run<long>(
                  [] {
                    long bad = 0;
                    const gw::ordered_task_group g;
                    for (long seed = 1; seed <= 6; ++seed) {
                      const long expected = first_failing(1, seed);
                      g.run([seed, &g] { fail_in_tree(1, seed, g); });
                      try {
                        g.wait();
                        bad += expected != 0;
                      } catch (const std::out_of_range& e) {
                        bad += std::stol(e.what()) != expected;
                      }
                      g.wait();  // once
                    }
                    g.run(fib, 3);
                    g.wait();
                    return bad;
                  },
                  o),
              0);
  });
}

TEST(task_group, an_ordered_one_of_a_cancelled_scope_throws_what_a_member_threw) {
  support::for_each_schedule([](const gw::options& o) {
    EXPECT_EQ(gw::run<int>(
                  [] {
                    int seen = 0;
                    for (int round = 0; round < 20; ++round) {
                      gw::cancel_scope scope;
                      static_cast<void>(scope.run([&] {
                        const gw::ordered_task_group g;
                        try {
                          g.run([&scope] {
                            scope.cancel();
                            throw 1;
                          });
                          for (int i = 0; i < 4; ++i) g.run([] { static_cast<void>(fib(4)); });
                        } catch (const gw::cancelled&) {  // those are not added
                        }
                        try {
                          g.wait();
                        } catch (int x) {
                          seen += x;
                        }
                      }));
                    }
                    return seen;
                  },
                  o),
              20);
  });
}

TEST(task_group, what_nobody_waited_for_is_reported) {
  const support::outcome o = support::run_child([] {
    gw::options options;
    options.workers = 2;
    return gw::run(options, [] {
      const gw::task_group g;
      for (int i = 0; i < 3; ++i) g.run([] { throw std::runtime_error("lost"); });
    });
  });
  EXPECT_EQ(o.status, 0) << support::show(o);
  EXPECT_TRUE(o.err_has("lost")) << support::show(o);
  const support::outcome ordered = support::run_child([] {
    gw::options options;
    options.workers = 2;
    return gw::run(options, [] {
      const gw::ordered_task_group g;
      for (int i = 0; i < 3; ++i) g.run([i] { throw std::runtime_error("lost " + std::to_string(i)); });
    });
  });
  EXPECT_EQ(ordered.status, 0) << support::show(ordered);
  EXPECT_TRUE(ordered.err_has("lost 0")) << support::show(ordered);
}

TEST(task_group, a_group_outside_a_run_is_refused) {
  const support::outcome o = support::run_child([] {
    const gw::task_group g;
    return 0;
  });
  EXPECT_TRUE(o.err_has("outside godwit::run")) << support::show(o);
  EXPECT_EQ(o.err_lines(), 1) << o.err;
}

/// The tree of grow, of a policy.
template <class P>
void grow_by(int depth, gw::global_ptr<long> to, const gw::task_group* g) {
  gw::atomic_fetch_add(to, 1L);
  if (depth == 0) return;
  for (int i = 0; i < 2; ++i) g->run_by<P>([depth, to, g] { grow_by<P>(depth - 1, to, g); });
}

TEST(task_group, under_every_policy) {
  for (const char* name : {"greedy", "stalling", "locked_free", "stalling_locked_free", "crude", "iso",
                           "child_full", "child_rtc"}) {
    SCOPED_TRACE(name);
    if (gw::resolve_options().sim_hosts > 1 && std::string(name) == "iso") continue;  // one host only
    gw::with_policy(gw::choice::named{name}, [&](auto p) {
      using P = decltype(p);
      for (const char* force : {"none", "random"}) {
        if (!P::migrates && std::string(force) != "none") continue;
        gw::options o = support::schedule(3, force, 0, support::base_seed());
        o.policy = gw::choice::named{name};
        EXPECT_EQ(gw::run<long>(
                      [] {
                        const total sum;
                        // Where frames do not go along, members get the address of a group on the heap.
                        const auto g = std::make_unique<gw::task_group>();
                        for (int round = 0; round < 3; ++round) {
                          grow_by<P>(5, sum.get(), g.get());
                          g->wait();
                        }
                        const auto ordered = std::make_unique<gw::ordered_task_group>();
                        for (int i = 0; i < 3; ++i)
                          ordered->run_by<P>([i] {
                            if (i != 0) throw std::out_of_range(std::to_string(i));
                          });
                        try {
                          ordered->wait();
                          return -1L;
                        } catch (const std::out_of_range& e) {
                          if (std::string(e.what()) != "1") return -2L;
                        }
                        g->run_by<P>([] { throw std::out_of_range("a member's"); });
                        try {
                          g->wait();
                        } catch (const std::exception&) {
                          return sum.value();
                        }
                        return 0L;
                      },
                      o),
                  189);
      }
    });
  }
}

}  // namespace
