// Policy iso: which threads stay because they seem to refer to a local variable of their parent, and which do
// not; what is reported. docs/policies.md
#include "support/policies.hpp"
#include "support/schedule.hpp"
#include "support/substrate.hpp"

#include <godwit/godwit.hpp>

#include <gtest/gtest.h>

#include <cstdint>
#include <cstring>
#include <memory>
#include <string>
#include <utility>

namespace {

namespace gw = godwit;

/// Between its first two members lies half a word, which belongs to nobody.
struct with_a_gap {
  int low;
  long more[4];
  long operator()() const {
    gw::yield();  // where steals are forced, it goes on elsewhere
    return more[3];
  }
};

TEST(iso, takes_no_bytes_between_members_for_a_reference) {
  with_a_gap probe{};
  if (!gw::detail::clear_padding(probe)) GTEST_SKIP() << "this compiler cannot clear them";
  for (const char* force : {"none", "parents", "children", "random"}) {
    gw::options o = support::schedule(2, force, 0, support::base_seed());
    o.policy = gw::choice::named{"iso"};
    EXPECT_EQ(gw::run<long>(
                  [] {
                    long sum = 0;
                    for (long i = 0; i < 50; ++i) {
                      with_a_gap f{};
                      const auto local = reinterpret_cast<std::uintptr_t>(&sum);
                      std::memcpy(static_cast<void*>(&f), &local, sizeof local);  // the gap, too
                      f.more[3] = i;
                      asm volatile("" : : "r"(&f) : "memory");
                      auto g = gw::policies::iso::spawn(f);
                      sum += g.join();
                    }
                    return sum;
                  },
                  o),
              1225)
        << force;
  }
}

/// Goes on elsewhere, or would, if it did not seem to refer to a local variable.
template <class... T>
long moves(T... x) {
  gw::yield();
  return (static_cast<long>(x) + ...);
}

TEST(iso, takes_no_numbers_for_references) {
  using P = gw::policies::iso;
  for (const char* force : {"none", "parents", "children", "random"}) {
    gw::options o = support::schedule(2, force, 0, support::base_seed());
    o.policy = gw::choice::named{"iso"};
    EXPECT_EQ(gw::run<long>(
                  [] {
                    long wrong = 0;
                    for (long high = 1; high < 0x2000; high += 0x155) {
                      const long n = high << 48 | 0x2345'6789'abcd;
                      auto one = P::spawn([n] { return moves(n); });
                      wrong += one.join() != n;
                      auto two = P::spawn([n, m = -n] { return moves(n, m); });
                      wrong += two.join() != 0;
                    }
                    return wrong;
                  },
                  o),
              0)
        << force;
  }
}

TEST(iso, does_not_hold_a_thread_for_what_another_one_referred_to) {
  using P = gw::policies::iso;
  gw::options o = support::under("iso", 1);  // whoever refers to a local stays
  EXPECT_EQ(gw::run<long>(
                [] {
                  long n = 5, m = 6;
                  auto refers = P::spawn([&n, &m] { return n + m; });
                  long sum = refers.join();
                  auto small = P::spawn([i = 7] { return moves(i); });
                  sum += small.join();
                  auto again = P::spawn([&n, &m] { return n + m; });
                  sum += again.join();
                  auto one = P::spawn([i = 8L] { return moves(i); });
                  sum += one.join();
                  return sum;
                },
                o),
            11 + 7 + 11 + 8);
}

TEST(iso, looks_through_a_closure_where_it_lies_at_the_spawn) {
  gw::options o = support::under("iso", 1);
  EXPECT_EQ(gw::run<long>(
                [] {
                  const auto on_the_heap = std::make_unique<with_a_gap>();
                  on_the_heap->more[3] = 9;
                  auto f = gw::policies::iso::spawn(std::move(*on_the_heap));
                  return f.join();
                },
                o),
            9);
}

TEST(iso, stacks_that_are_used_up_are_reported) {
  GODWIT_NEEDS_PROCESSES("stacks have another size");
  const std::string said = support::failure(support::under("iso", 1), [] {
    struct deep {
      static long down(int n) {
        volatile char room[20 << 10];
        room[0] = static_cast<char>(n);
        asm volatile("" : : "r"(&room[0]) : "memory");
        auto f = gw::policies::iso::spawn([n] {
          volatile char more[29 << 10];
          more[0] = static_cast<char>(n);
          asm volatile("" : : "r"(&more[0]) : "memory");  // or compilers keep the one byte only
          auto g = gw::policies::iso::spawn([] { return 1L; });
          return g.join() + more[0];
        });
        return f.join() + room[0];
      }
    };
    static_cast<void>(deep::down(1));
  });
  EXPECT_NE(said.find("used up its stack of 32 KiB"), std::string::npos) << said;
}

TEST(iso, free_functions_are_reported) {
  GODWIT_NEEDS_PROCESSES("every thread has a stack of its own");
  const std::string said = support::failure(support::under("iso"), [] {
    auto f = gw::spawn([] { return 1; });
    static_cast<void>(f.join());
  });
  EXPECT_NE(said.find("this run's policy is iso"), std::string::npos) << said;
}

}  // namespace
