// Cancellation on every schedule: who is below a cancelled scope stops, nobody else does, and nothing
// outlives a scope. docs/cancel.md. Under every policy: cancel_policy_test.cpp; races and times:
// race_test.cpp.
// test: timeout=240
#include "support/cancel_tree.hpp"
#include "support/elsewhere.hpp"
#include "support/schedule.hpp"
#include "support/shared.hpp"
#include "support/stops.hpp"
#include "support/substrate.hpp"

#include <godwit/godwit.hpp>

#include <gtest/gtest.h>

#include <array>
#include <atomic>
#include <chrono>
#include <stdexcept>
#include <string>

namespace {

namespace gw = godwit;
using support::stops;

TEST(cancel, stops_who_is_below_and_nobody_else) {
  support::for_each_schedule([](const gw::options& o) {
    const auto got = gw::run<cancel_tree::seen>([] { return cancel_tree::trees(7); }, o);
    EXPECT_EQ(got.wrong, 0);
    EXPECT_GT(got.cancelled, 0);
    EXPECT_GT(got.leaves, 0);
  });
}

// The end of its scope waits, and the thread may go on where the heap is another one.
TEST(cancel, with_a_deadline_a_result_follows_its_thread) {
  GODWIT_NEEDS_PROCESSES("they have one heap");
  support::for_each_schedule([](gw::options o) {
    o.heap = gw::choice::heap::separate;
    EXPECT_EQ(gw::run<std::size_t>(
                  [] {
                    const auto got = gw::with_deadline(std::chrono::minutes(1), [] {
                      static_cast<void>(gw::spawn([] { support::elsewhere(5); }));
                      return std::string(100, 'x');
                    });
                    return got ? got->find_first_not_of('x') : 0;
                  },
                  o),
              std::string::npos);
  });
}

TEST(cancel, is_seen_at_a_spawn_a_join_a_yield_and_by_asking) {
  support::for_each_schedule([](const gw::options& o) {
    EXPECT_EQ(gw::run<std::string>(
                  [] {
                    std::string wrong;
                    const auto expect = [&](bool right, const char* what) {
                      if (!right) wrong += std::string(what) + "; ";
                    };
                    auto outer = gw::spawn([] { return support::elsewhere(3), 1; });
                    {
                      gw::cancel_scope scope;
                      expect(!gw::is_cancelled() && !scope.cancel_requested(), "before");
                      expect(gw::spawn([] { return 5; }).join() == 5, "spawn before");
                      scope.cancel();
                      expect(gw::is_cancelled() && scope.cancel_requested(), "asking");
                      expect(stops([] { gw::spawn([] {}).join(); }), "spawn");
                      expect(stops([] { gw::spawn([] {}).join(); }), "the next spawn");
                      expect(stops([] { gw::yield(); }), "yield");
                      expect(stops([] { gw::invoke([] {}, [] {}); }), "invoke");
                      scope.cancel();
                    }
                    expect(!gw::is_cancelled(), "afterwards");
                    expect(outer.join() == 1, "join of a thread outside");
                    {
                      gw::cancel_scope scope;
                      auto child = gw::spawn([token = scope.token()] {
                        support::elsewhere(3);
                        token.cancel();
                        return gw::is_cancelled();
                      });
                      // A result in the frame is there; one that has to be waited for is refused.
                      if (!stops([&] { expect(child.join(), "the thread that cancels"); }))
                        expect(stops([] { gw::yield(); }), "after the join");
                    }
                    return wrong;
                  },
                  o),
              "");
  });
}

struct counters {
  std::atomic<long> begun{0}, ended{0}, made{0}, destroyed{0}, after{0};
};
struct counted {
  counters* c;
  explicit counted(counters* at) : c(at) { ++c->made; }
  counted(const counted& other) noexcept : c(other.c) { ++c->made; }
  counted& operator=(const counted&) = delete;
  ~counted() { ++c->destroyed; }
};

TEST(cancel, a_thread_that_does_not_begin_has_its_closure_destroyed) {
  support::for_each_schedule([](const gw::options& o) {
    support::shared<counters> shared;
    gw::run<void>(
        [c = shared.get()] {
          gw::cancel_scope scope;
          scope.cancel();
          for (int i = 0; i < 10; ++i) stops([&] { gw::spawn([in = counted(c)] { ++in.c->begun; }).join(); });
        },
        o);
    EXPECT_EQ(shared->begun, 0);
    EXPECT_GE(shared->made, 10);
    EXPECT_EQ(shared->made, shared->destroyed);
  });
}

/// Spawns a few, and drops every second future.
void litter(counters* c, int depth) {
  ++c->begun;
  if (depth > 0) {
    auto a = gw::spawn([=] { litter(c, depth - 1); });
    {
      auto dropped = gw::spawn([=] { litter(c, depth - 1); });
    }
    if (depth % 2 == 0) gw::yield();
    a.join();
  }
  ++c->ended;
}

TEST(cancel, nothing_outlives_a_scope) {
  support::for_each_schedule([](const gw::options& o) {
    support::shared<counters> shared;
    gw::run<void>(
        [c = shared.get()] {
          std::array<gw::future<void>, 8> kept;  // leave the scope, but their threads do not
          for (int round = 0; round < 4; ++round) {
            {
              gw::cancel_scope scope;
              for (std::size_t i = 0; i < 2; ++i)
                kept[static_cast<std::size_t>(2 * round) + i] = gw::spawn([=] { litter(c, 4); });
              auto dropped = gw::spawn([=] { litter(c, 4); });
            }
            c->after += c->begun != c->ended;
          }
          for (auto& f : kept) f.join();
        },
        o);
    EXPECT_EQ(shared->after, 0);
    EXPECT_EQ(shared->begun, 4 * 3 * 31);
  });
}

TEST(cancel, nothing_outlives_a_scope_that_is_cancelled) {
  support::for_each_schedule([](const gw::options& o) {
    support::shared<counters> shared;
    gw::run<void>(
        [c = shared.get()] {
          for (int round = 0; round < 10; ++round) {
            {
              gw::cancel_scope scope;
              static_cast<void>(scope.run([&] {
                for (int i = 0; i < 4; ++i) {
                  // A local of this frame, which they use until they end.
                  auto f = gw::spawn([c, i, token = scope.token()] {
                    ++c->begun;
                    struct end {
                      counters* c;
                      ~end() { ++c->ended; }
                    } at_end{c};
                    support::elsewhere(2);
                    if (i == 2) token.cancel();
                    for (int k = 0; k < 100; ++k) gw::spawn([] {}).join();
                  });
                  auto g = gw::spawn([] { support::elsewhere(2); });
                }
              }));
            }
            c->after += c->begun != c->ended;
          }
        },
        o);
    EXPECT_EQ(shared->after, 0);
  });
}

TEST(cancel, frames_are_unwound_when_their_threads_have_ended) {
  support::for_each_schedule([](const gw::options& o) {
    support::shared<counters> shared;
    gw::run<void>(
        [c = shared.get()] {
          gw::cancel_scope scope;
          static_cast<void>(scope.run([&] {
            struct frame {
              counters* c;
              ~frame() { c->after += c->begun != c->ended; }
            } below_which_it_is{c};
            auto f = gw::spawn([c] {
              ++c->begun;
              struct end {
                counters* c;
                ~end() { ++c->ended; }
              } at_end{c};
              for (;;) gw::yield();
            });
            scope.cancel();
            gw::yield();
          }));
        },
        o);
    EXPECT_EQ(shared->after, 0);
    EXPECT_LE(shared->begun, 1);
  });
}

TEST(cancel, what_else_is_thrown_leaves_a_scope_when_all_below_has_ended) {
  support::for_each_schedule([](const gw::options& o) {
    support::shared<counters> shared;
    gw::run<void>(
        [c = shared.get()] {
          try {
            gw::cancel_scope scope;
            scope.run([&] {
              auto f = gw::spawn([=] { litter(c, 4); });
              if (c->begun != 0) throw std::runtime_error("left");
            });
          } catch (const std::runtime_error&) {
            c->after += c->begun != c->ended;
          }
        },
        o);
    EXPECT_EQ(shared->after, 0);
    EXPECT_EQ(shared->begun, 31);
  });
}

TEST(cancel, a_shield_keeps_requests_out_and_is_inherited) {
  support::for_each_schedule([](const gw::options& o) {
    EXPECT_EQ(gw::run<int>(
                  [] {
                    gw::cancel_scope scope;
                    scope.cancel();
                    int sum = 0;
                    {
                      gw::cancel_shield shield;
                      if (gw::is_cancelled()) return 1000;
                      for (int i = 0; i < 4; ++i) {
                        auto f = gw::spawn([] { return support::elsewhere(2), support::leaf(1); });
                        gw::yield();
                        sum += f.join();
                      }
                      gw::cancel_scope inside;
                      inside.cancel();
                      sum += gw::is_cancelled() ? 10 : 0;
                    }
                    return sum + (gw::is_cancelled() ? 100 : 0);
                  },
                  o),
              118);
  });
}

TEST(cancel, an_inner_scope_passes_on_the_request_for_an_outer_one) {
  support::for_each_schedule([](const gw::options& o) {
    EXPECT_EQ(gw::run<int>(
                  [] {
                    gw::cancel_scope outer;
                    int reached = 0;
                    const auto got = outer.run([&] {
                      gw::cancel_scope inner;
                      static_cast<void>(inner.run([&] {
                        outer.cancel();
                        gw::yield();
                      }));
                      reached = 1;
                    });
                    return got ? 2 : reached;
                  },
                  o),
              0);
  });
}

TEST(cancel, cleaning_up_may_spawn_while_the_stack_is_unwound) {
  support::for_each_schedule([](const gw::options& o) {
    EXPECT_EQ(gw::run<int>(
                  [] {
                    int cleaned = 0;
                    gw::cancel_scope scope;
                    static_cast<void>(scope.run([&] {
                      struct cleaner {
                        int& out;
                        ~cleaner() {
                          const gw::cancel_shield shield;
                          out = gw::spawn([] { return support::leaf(6); }).join();
                        }
                      } at_end{cleaned};
                      scope.cancel();
                      gw::spawn([] {}).join();
                    }));
                    return cleaned;
                  },
                  o),
              7);
  });
}

TEST(cancel, what_begins_while_the_stack_is_unwound_begins_no_others) {
  support::for_each_schedule([](const gw::options& o) {
    EXPECT_EQ(gw::run<int>(
                  [] {
                    const auto begun = gw::global_new<int>(0);
                    gw::cancel_scope scope;
                    static_cast<void>(scope.run([&] {
                      struct cleaner {
                        gw::global_ptr<int> out;
                        ~cleaner() {
                          static_cast<void>(gw::spawn(
                              [to = out] { gw::spawn([to] { gw::atomic_fetch_add(to, 1); }).join(); }));
                        }
                      } at_end{begun};
                      scope.cancel();
                      gw::spawn([] {}).join();
                    }));
                    const int n = gw::get(begun);
                    gw::global_delete(begun);
                    return n;
                  },
                  o),
              0);
  });
}

/// As a member of a group does that is cancelled between the group's look and its begin.
TEST(cancel, a_thread_that_begins_all_the_same_takes_no_exceptions_of_its_parent_along) {
  support::for_each_schedule([](const gw::options& o) {
    EXPECT_EQ(gw::run<std::string>(
                  [] {
                    std::string wrong;
                    const auto seen = gw::global_new<int>(0);
                    gw::cancel_scope scope;
                    static_cast<void>(scope.run([&] {
                      try {
                        throw std::runtime_error("mine");
                      } catch (const std::runtime_error& mine) {
                        scope.cancel();
                        auto begins = [seen] {
                          const bool none = std::current_exception() == nullptr;
                          {
                            const gw::cancel_shield shield;
                            gw::yield();
                          }
                          gw::put(seen, none && std::current_exception() == nullptr ? 1 : 2);
                          return gw::detail::always_begins();
                        };
                        static_cast<void>(gw::detail::spawn_closure<gw::detail::child>(begins));
                        if (std::string(mine.what()) != "mine") wrong += "the parent's is gone; ";
                      }
                    }));
                    if (gw::get(seen) != 1) wrong += "seen: " + std::to_string(gw::get(seen));
                    gw::global_delete(seen);
                    return wrong;
                  },
                  o),
              "");
  });
}

TEST(cancel, scopes_by_the_thousand_leave_nothing_behind) {
  gw::options o = support::schedule(2, "random");
  o.heap_bytes = 8 << 20;
  EXPECT_EQ(gw::run<int>(
                [] {
                  int n = 0;
                  for (int i = 0; i < 200000; ++i) {
                    gw::cancel_scope scope;
                    n += gw::spawn([] { return 1; }).join();
                  }
                  return n;
                },
                o),
            200000);
}

TEST(cancel, what_leaves_run_is_the_same) {
  gw::options o = support::schedule(2);
  EXPECT_THROW(gw::run<int>(
                   [] {
                     gw::cancel_scope scope;
                     scope.cancel();
                     return gw::spawn([] { return 1; }).join();
                   },
                   o),
               gw::cancelled);
}

}  // namespace
