// Cancellation under every policy: cancel_test.cpp has what it is.
// test: timeout=240
#include "support/cancel_tree.hpp"
#include "support/policies.hpp"
#include "support/sanitizer.hpp"
#include "support/schedule.hpp"
#include "support/shared.hpp"
#include "support/substrate.hpp"

#include <godwit/godwit.hpp>

#include <gtest/gtest.h>

#include <atomic>
#include <string>
#include <string_view>
#include <utility>

namespace {

namespace gw = godwit;

/// body(policy, options) for all policies, and where they exist forced steals.
template <class Body>
void for_each_policy(Body&& body) {
  const bool everything = support::number_from_environment("STRESS_SHORT", 0) == 0;
  std::uint64_t row = 0;
  for (const char* name : {"stalling", "locked_free", "stalling_locked_free", "crude", "iso", "child_rtc",
                           "child_full", "lazy", "greedy"}) {
    if (!support::exists_here(name)) continue;
    gw::with_policy(gw::choice::named{name}, [&](auto p) {
      for (const char* force : {"none", "parents", "random"})
        for (const std::uint32_t workers : {1u, 2u, 4u}) {
          if (!support::is_forced_under(p, force)) continue;
          if (!everything && (workers > 2 || std::string_view(force) == "parents")) continue;
          gw::options o = support::schedule(workers, force, 0, support::base_seed() + row++);
          o.policy = gw::choice::named{name};
          SCOPED_TRACE(std::string("policy=") + name + ' ' + support::describe(o));
          body(p, o);
          if (testing::Test::HasFailure()) return;
        }
    });
  }
}

TEST(cancel_policy, stops_who_is_below_and_nobody_else) {
  for_each_policy([](auto p, const gw::options& o) {
    using P = decltype(p);
    const auto got = gw::run<cancel_tree::seen>([] { return cancel_tree::trees<P>(6); }, o);
    EXPECT_EQ(got.wrong, 0);
    EXPECT_GT(got.cancelled, 0);
  });
}

struct counters {
  std::atomic<long> begun{0}, ended{0}, after{0};
};

template <class P>
void litter(counters* c, int depth) {
  ++c->begun;
  if (depth > 0) {
    auto a = P::spawn([=] { litter<P>(c, depth - 1); });
    static_cast<void>(P::spawn([=] { litter<P>(c, depth - 1); }));
    a.join();
  }
  ++c->ended;
}

TEST(cancel_policy, nothing_outlives_a_scope) {
  for_each_policy([](auto p, const gw::options& o) {
    using P = decltype(p);
    support::shared<counters> shared;
    gw::run<void>(
        [c = shared.get()] {
          for (int round = 0; round < 4; ++round) {
            {
              gw::cancel_scope scope;
              for (int i = 0; i < 3; ++i) static_cast<void>(P::spawn([=] { litter<P>(c, 4); }));
            }
            c->after += c->begun != c->ended;
          }
        },
        o);
    EXPECT_EQ(shared->after, 0);
    EXPECT_EQ(shared->begun, 4 * 3 * 31);
  });
}

/// gw::group counts on the end of its members.
TEST(cancel_policy, members_of_a_group_end_when_they_are_cancelled) {
  for_each_policy([](auto p, const gw::options& o) {
    using P = decltype(p);
    if constexpr (P::has_futures) {
      EXPECT_TRUE(gw::run<bool>(
          [] {
            gw::owned<gw::group> members(gw::calling_worker);
            gw::cancel_scope scope;
            static_cast<void>(scope.run([&] {
              for (int i = 0; i < 20; ++i)
                members->template spawn_by<P>([i, token = scope.token()] {
                  if (i == 7) token.cancel();
                });
            }));
            const gw::cancel_shield shield;
            try {
              members->wait();
            } catch (const gw::cancelled&) {
            }
            return scope.cancel_requested();
          },
          o));
    }
  });
}

TEST(cancel_policy, threads_that_have_not_begun_do_not) {
  for_each_policy([](auto p, const gw::options& o) {
    using P = decltype(p);
    support::shared<counters> shared;
    gw::run<void>(
        [c = shared.get()] {
          gw::cancel_scope scope;
          static_cast<void>(scope.run([&] {
            for (int i = 0; i < 8; ++i)
              static_cast<void>(P::spawn([c, i, token = scope.token()] {
                if (gw::is_cancelled()) ++c->after;
                if (i == 3) token.cancel();
              }));
            scope.cancel();
            ++c->begun;
            static_cast<void>(P::spawn([=] { ++c->after; }));
          }));
        },
        o);
    // A thread may begin just before, and look just after.
    EXPECT_LE(shared->after, o.workers);
  });
}

/// A result whose destructor tells whether it is in a cancelled scope.
struct tells {
  std::atomic<int>* cancelled = nullptr;
  explicit tells(std::atomic<int>* to) : cancelled(to) {}
  tells(tells&& other) noexcept : cancelled(std::exchange(other.cancelled, nullptr)) {}
  ~tells() {
    if (cancelled != nullptr) cancelled->store(gw::is_cancelled() ? 1 : 2);
  }
};

/// What a join calls may end after the caller has gone on, and left the scope in which it waited.
TEST(cancel_policy, a_thread_outlives_the_scope_of_who_called_it) {
  if (gw::resolve_options().heap == gw::choice::heap::separate ||
      (support::with_asan && !support::on_threads()))
    GTEST_SKIP() << "where heaps are apart the result needs a codec, and its bytes have no destructor";
  using P = gw::policies::child_full;
  struct shared_words {
    std::atomic<bool> called{false}, left{false};
    std::atomic<int> cancelled{0};
  };
  support::shared<shared_words> shared;
  gw::options o;
  o.workers = 1;
  o.policy = gw::choice::policy::child_full;
  gw::run<void>(
      [w = shared.get()] {
        auto first = P::spawn([w] {
          while (!w->called) gw::yield();
        });
        gw::yield();  // it has begun
        static_cast<void>(P::spawn([w] {
          w->called = true;
          while (!w->left) gw::yield();
          return tells(&w->cancelled);
        }));
        {
          gw::cancel_scope scope;
          first.join();  // calls the second one
          scope.cancel();
        }
        w->left = true;
      },
      o);
  EXPECT_EQ(shared->cancelled, 2);
}

}  // namespace
