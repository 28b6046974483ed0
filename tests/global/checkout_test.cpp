// checkout: include/godwit/checkout.hpp. What must not be done with it: misuse_test.cpp, held_test.cpp. Runs
// under MPI as well (tests/mpi), where copies are cached; small caches make them leave it.
#include <gtest/gtest.h>
#include <godwit/godwit.hpp>

#include "support/schedule.hpp"

#include <cstdint>
#include <numeric>
#include <string>

namespace gw = godwit;

namespace {

struct loops {
  static void fill(gw::global_ptr<long> p, long n, long first) {
    if (n <= 777) {
      auto s = gw::checkout(p, static_cast<std::size_t>(n), gw::access::write);
      std::iota(s.begin(), s.end(), first);
      return;
    }
    gw::invoke([=] { fill(p, n / 2, first); }, [=] { fill(p + n / 2, n - n / 2, first + n / 2); });
  }
  static void add(gw::global_ptr<long> p, long n) {
    if (n <= 333) {
      for (long& x : gw::checkout(p, static_cast<std::size_t>(n), gw::access::read_write)) ++x;
      return;
    }
    gw::invoke([=] { add(p, n / 2); }, [=] { add(p + n / 2, n - n / 2); });
  }
  static long sum(gw::global_ptr<const long> p, long n) {
    if (n <= 1000) {
      const auto s = gw::checkout(p, static_cast<std::size_t>(n), gw::access::read);
      return std::accumulate(s.begin(), s.end(), 0L);
    }
    auto [a, b] = gw::invoke([=] { return sum(p, n / 2); }, [=] { return sum(p + n / 2, n - n / 2); });
    return a + b;
  }
};

std::string fill_add_sum(const gw::distribution& d) {
  const long n = 40'000;
  const auto p = gw::allocate<long>(n, d);
  loops::fill(p, n, 0);
  for (int i = 1; i <= 3; ++i) {
    loops::add(p, n);
    const long s = loops::sum(p, n), want = n * (n - 1) / 2 + n * i;
    if (s != want)
      return "round " + std::to_string(i) + ": " + std::to_string(s) + ", not " + std::to_string(want);
  }
  gw::deallocate(p, n);
  return "";
}

TEST(GlobalCheckout, WholeProgramsOnAllDistributions) {
  support::for_each_schedule([](const gw::options& o) {
    for (const std::uint64_t cache : {1u << 20, 64u << 20}) {
      gw::options with = o;
      with.cache_bytes = cache;
      EXPECT_EQ(gw::run<std::string>([] { return fill_add_sum(gw::distribution::blocked()); }, with), "");
      EXPECT_EQ(gw::run<std::string>([] { return fill_add_sum(gw::distribution::cyclic(4096)); }, with), "");
      EXPECT_EQ(gw::run<std::string>([] { return fill_add_sum(gw::distribution::cyclic(160)); }, with), "");
      EXPECT_EQ(gw::run<std::string>([] { return fill_add_sum(gw::distribution::local()); }, with), "");
    }
  });
}

TEST(GlobalCheckout, SeesPutsAndAtomicsAndTheyItsWrites) {
  support::for_each_schedule([](const gw::options& o) {
    EXPECT_EQ(gw::run<std::string>(
                  [] {
                    const auto p = gw::allocate<int>(100, gw::distribution::cyclic(64));
                    for (int i = 0; i < 100; ++i) p[i] = i;
                    for (int round = 0; round < 5; ++round) {
                      {
                        auto s = gw::checkout(p, 100, gw::access::read_write);
                        for (int i = 0; i < 100; ++i) {
                          if (s[static_cast<std::size_t>(i)] != i + round * 4)
                            return "checkout, round " + std::to_string(round);
                          ++s[static_cast<std::size_t>(i)];
                        }
                      }
                      for (int i = 0; i < 100; ++i) {
                        if (p[i] != i + round * 4 + 1) return "get, round " + std::to_string(round);
                        p[i] += 1;
                        if (gw::atomic_fetch_add(p + i, 2, std::memory_order_relaxed) != i + round * 4 + 2)
                          return std::string("atomic");
                      }
                    }
                    gw::deallocate(p, 100);
                    return std::string();
                  },
                  o),
              "");
  });
}

TEST(GlobalCheckout, TwoThreadsWriteNeighbouringBytes) {
  support::for_each_schedule([](const gw::options& o) {
    EXPECT_EQ(gw::run<std::string>(
                  [] {
                    const auto p = gw::allocate<unsigned char>(4000, gw::distribution::at(0));
                    for (int round = 1; round < 6; ++round) {
                      const auto write = [p, round](std::size_t from) {
                        for (std::size_t i = from; i < 4000; i += 2) {
                          auto s = gw::checkout(p + static_cast<std::ptrdiff_t>(i), 1, gw::access::write);
                          s[0] = static_cast<unsigned char>(round * 3 + static_cast<int>(from));
                        }
                      };
                      gw::invoke([write] { write(0); }, [write] { write(1); });
                      const auto s = gw::checkout(p, 4000, gw::access::read);
                      for (std::size_t i = 0; i < 4000; ++i)
                        if (s[i] != static_cast<unsigned char>(round * 3 + static_cast<int>(i % 2)))
                          return "byte " + std::to_string(i);
                    }
                    gw::deallocate(p, 4000);
                    return std::string();
                  },
                  o),
              "");
  });
}

TEST(GlobalCheckout, MovesAndEndsEarlyAndMayBeEmpty) {
  EXPECT_EQ(gw::run<std::string>([] {
              const auto p = gw::allocate<int>(10, gw::distribution::blocked());
              auto a = gw::checkout(p, 10, gw::access::write);
              std::iota(a.begin(), a.end(), 0);
              auto b = std::move(a);
              if (!a.empty() || b.size() != 10 || b[9] != 9) return std::string("move");
              b.checkin();
              b.checkin();
              b = gw::checkout(p, 0, gw::access::read_write);
              if (!b.empty()) return std::string("empty");
              b = gw::checkout(p + 5, 5, gw::access::read_write);
              if (std::span<int>(b)[0] != 5) return std::string("assigned");
              b.checkin();
              gw::spawn([] {}).join();  // nothing is open any more
              gw::deallocate(p, 10);
              return std::string();
            }),
            "");
}

}  // namespace
