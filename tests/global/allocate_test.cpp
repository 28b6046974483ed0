// Allocation inside runs: all distributions, sizes and alignments, freeing from other workers and after
// migration, limits, collective allocation. More of it without a scheduler: tests/gas/allocator_test.cpp.
// Mistakes: misuse_test.cpp.
// test: timeout=240 skip-qemu
#include <gtest/gtest.h>
#include <godwit/godwit.hpp>

#include "support/child.hpp"
#include "support/schedule.hpp"

#include <string>
#include <sys/mman.h>

namespace gw = godwit;

namespace {

constexpr std::uint64_t MiB = 1 << 20, GiB = 1ull << 30;

gw::options workers(std::uint32_t n) {
  gw::options o;
  o.workers = n;
  return o;
}

std::uint32_t backwards(std::uint64_t block, std::uint64_t blocks, std::uint32_t homes) {
  return static_cast<std::uint32_t>((blocks - 1 - block) % homes);
}

/// Number of bytes that are not what they should be.
std::uint64_t fill_and_check(gw::global_ptr<unsigned char> p, std::uint64_t n) {
  std::uint64_t wrong = 0;
  for (std::uint64_t i = 0; i < n; ++i) wrong += p[static_cast<std::ptrdiff_t>(i)] != 0;  // fresh: zero
  for (std::uint64_t i = 0; i < n; ++i) p[static_cast<std::ptrdiff_t>(i)] = static_cast<unsigned char>(i * 7);
  auto f = gw::spawn([=] {
    std::uint64_t bad = 0;
    for (std::uint64_t i = 0; i < n; ++i)
      bad += p[static_cast<std::ptrdiff_t>(i)] != static_cast<unsigned char>(i * 7);
    return bad;
  });
  return wrong + f.join();
}

TEST(Allocate, EveryDistributionAndSize) {
  for (const std::uint32_t n : {1u, 2u, 4u}) {
    const auto wrong = gw::run<std::uint64_t>(
        [] {
          std::uint64_t bad = 0;
          const gw::distribution all[] = {
              gw::distribution::local(),           gw::distribution::at(gw::worker_count() - 1),
              gw::distribution::blocked(),         gw::distribution::cyclic(16),
              gw::distribution::cyclic(4096),      gw::distribution::user(32, backwards),
              gw::distribution::cyclic().movable()};
          // Fewer bytes than homes, one, not divisible, a page more or less.
          for (const auto& d : all)
            for (const std::uint64_t bytes : {1ul, 2ul, 3ul, 17ul, 100ul, 4095ul, 4097ul, 10'001ul}) {
              auto p = gw::allocate<unsigned char>(bytes, d);
              // What was freed at the calling worker may be given out again as it is.
              if (d.how().what == gw::detail::spread::kind::local)
                for (std::uint64_t i = 0; i < bytes; ++i) p[static_cast<std::ptrdiff_t>(i)] = 0;
              bad += fill_and_check(p, bytes);
              gw::deallocate(p, bytes);
            }
          return bad;
        },
        workers(n));
    EXPECT_EQ(wrong, 0u) << n << " workers";
  }
}

TEST(Allocate, NothingAtAllIsFine) {
  EXPECT_TRUE(gw::run<bool>(
      [] {
        auto p = gw::allocate<int>(0);
        auto q = gw::allocate<int>(0, gw::distribution::cyclic());
        auto r = gw::allocate<int>(0, gw::distribution::blocked());
        const bool distinct = p != q && q != r && p != nullptr && q != nullptr;
        { auto none = gw::checkout(q, 0, gw::access::read); }
        gw::get(p, nullptr, 0);
        gw::deallocate(p, 0);
        gw::deallocate(q, 0);
        gw::deallocate(r, 0);
        gw::deallocate(gw::global_ptr<int>(), 100);  // null
        return distinct;
      },
      workers(2)));
}

TEST(Allocate, HomesAreAsDealtOut) {
  EXPECT_EQ(gw::run<int>(
                [] {
                  int wrong = 0;
                  const std::uint32_t n = gw::worker_count();
                  auto here = gw::allocate<long>(10);
                  wrong += gw::home_of(here) >= n;
                  for (std::uint32_t w = 0; w < n; ++w) {
                    auto p = gw::allocate<long>(1000, gw::distribution::at(w));
                    wrong += gw::home_of(p) != w || gw::home_of(p + 999) != w;
                    gw::deallocate(p, 1000);
                  }
                  auto c = gw::allocate<long>(1000, gw::distribution::cyclic(64));
                  for (std::uint32_t i = 0; i < 1000; ++i) wrong += gw::home_of(c + i) != i / 8 % n;
                  auto u = gw::allocate<long>(1000, gw::distribution::user(64, backwards));
                  for (std::uint32_t i = 0; i < 1000; ++i)
                    wrong += gw::home_of(u + i) != backwards(i / 8, 125, n);
                  wrong += gw::home_of(u + 1000) != backwards(124, 125, n);  // the end
                  auto b = gw::allocate<long>(100'000, gw::distribution::blocked());
                  wrong += gw::home_of(b) != 0 || gw::home_of(b + 99'999) != n - 1;
                  gw::deallocate(here, 10);
                  gw::deallocate(c, 1000);
                  gw::deallocate(u, 1000);
                  gw::deallocate(b, 100'000);
                  return wrong;
                },
                workers(3)),
            0);
}

TEST(Allocate, AlignmentsUpToAGiB) {
  EXPECT_EQ(
      gw::run<int>(
          [] {
            int wrong = 0;
            for (std::uint64_t alignment = 1; alignment <= GiB; alignment *= 2)
              for (const auto& d : {gw::distribution::local(), gw::distribution::at(gw::worker_count() - 1),
                                    gw::distribution::cyclic(64)}) {
                auto p = gw::allocate<char>(100, d, alignment);
                wrong += p.address() % alignment != 0;
                p[99] = 1;
                gw::deallocate(p, 100);
              }
            struct alignas(256) wide {
              double d[32];
            };
            auto w = gw::allocate<wide>(3);
            wrong += w.address() % 256 != 0;
            gw::deallocate(w, 3);
            return wrong;
          },
          workers(2)),
      0);
}

// Addresses only: memory is what is touched.
TEST(Allocate, FiveGiBWithoutTouchingThem) {
  auto o = workers(2);
  o.global_limit = 64 * GiB;
  EXPECT_EQ(
      gw::run<int>(
          [] {
            int wrong = 0;
            for (const auto& d : {gw::distribution::local(), gw::distribution::at(gw::worker_count() - 1),
                                  gw::distribution::blocked(), gw::distribution::cyclic(4608 * MiB),
                                  gw::distribution::cyclic()}) {
              auto p = gw::allocate<char>(5 * GiB, d);
              p[0] = 1;
              p[5 * GiB - 1] = 2;
              wrong += p[0] != 1 || p[5 * GiB - 1] != 2 || p[4 * GiB] != 0;
              gw::deallocate(p, 5 * GiB);
            }
            auto p = gw::allocate<char>(5 * GiB, gw::distribution::cyclic(4608 * MiB));
            wrong +=
                gw::home_of(p + 4608 * MiB - 1) != 0 || gw::home_of(p + 4608 * MiB) != 1 % gw::worker_count();
            gw::deallocate(p, 5 * GiB);
            return wrong;
          },
          o),
      0);
}

struct tree {
  gw::global_ptr<tree> left, right;
  std::uint32_t maker;

  static gw::global_ptr<tree> build(int depth) {
    if (depth == 0) return nullptr;
    auto [l, r] = gw::invoke([=] { return build(depth - 1); }, [=] { return build(depth - 1); });
    return gw::global_new<tree>(l, r, gw::worker_id());
  }
  /// Frees it, from wherever it runs; gives back the number of nodes.
  static long destroy(gw::global_ptr<tree> t) {
    if (t == nullptr) return 0;
    const tree me = gw::get(t);
    auto f = gw::spawn([l = me.left] { return destroy(l); });
    const long r = destroy(me.right);
    const long l = f.join();
    gw::global_delete(t);  // possibly another worker than the one that began this
    return l + r + 1;
  }
};

TEST(Allocate, FreedByWhoeverAndAfterMigration) {
  support::for_each_schedule([](const gw::options& o) {
    const auto [nodes, left] = gw::run<std::pair<long, long>>(
        [] {
          long n = 0;
          const auto before = gw::global_memory_usage().used_bytes;
          for (int round = 0; round < 3; ++round) n += tree::destroy(tree::build(9));
          return std::pair(n, static_cast<long>(gw::global_memory_usage().used_bytes - before));
        },
        o);
    EXPECT_EQ(nodes, 3 * 511);
    EXPECT_LT(left, 16 * static_cast<long>(MiB));
  });
}

TEST(Allocate, DistributedOnesFreedAfterMigration) {
  support::for_each_schedule([](const gw::options& o) {
    EXPECT_EQ(gw::run<long>(
                  [] {
                    long sum = 0;
                    for (int i = 0; i < 20; ++i) {
                      auto p = gw::allocate<long>(
                          1000, i % 2 == 0 ? gw::distribution::cyclic(64) : gw::distribution::blocked());
                      auto f = gw::spawn([=] { return p[7] = 1, 1L; });
                      sum += f.join() + p[7];
                      gw::deallocate(p, 1000);
                    }
                    return sum;
                  },
                  o),
              40);
  });
}

TEST(Allocate, AddressesAreUsedAgainWhenTheyAreUsedUp) {
  auto o = workers(2);
  o.global_bytes = 512 * MiB;
  o.cache_bytes = MiB;
  const auto [total, wrong] = gw::run<std::pair<std::uint64_t, long>>(
      [] {
        std::uint64_t sum = 0;
        long bad = 0;
        for (int i = 0; i < 400; ++i) {
          const std::uint64_t n = (1 + static_cast<std::uint64_t>(i) % 7 * 5) * MiB;
          auto p = gw::allocate<char>(n, gw::distribution::cyclic());
          bad += p[0] != 0 || p[static_cast<std::ptrdiff_t>(n) - 1] != 0;
          p[0] = 1;
          p[static_cast<std::ptrdiff_t>(n) - 1] = 1;
          auto q = gw::allocate<char>(30 * MiB, gw::distribution::local());
          q[0] = 1;
          gw::deallocate(q, 30 * MiB);
          auto f = gw::spawn([=] { gw::deallocate(p, n); });
          f.join();
          sum += n + 30 * MiB;
        }
        return std::pair(sum, bad);
      },
      o);
  EXPECT_GT(total, 20ull * 512 * MiB);
  EXPECT_EQ(wrong, 0) << "memory that is used again is zero in distributed allocations";
}

TEST(Allocate, OutOfMemoryIsAnExceptionWithNumbers) {
  auto o = workers(2);
  o.global_limit = 64 * MiB;
  for (const int which : {0, 1, 2, 3}) {
    const auto text = gw::run<std::string>(
        [=]() -> std::string {
          const gw::distribution d = which == 0   ? gw::distribution::local()
                                     : which == 1 ? gw::distribution::at(gw::worker_count() - 1)
                                     : which == 2 ? gw::distribution::blocked()
                                                  : gw::distribution::cyclic();
          try {
            gw::allocate<char>(100 * MiB, d);
            return "none";
          } catch (const gw::global_bad_alloc& e) {
            // There is room afterwards, and it is what() of std::bad_alloc, too.
            auto p = gw::allocate<char>(10 * MiB, d);
            gw::deallocate(p, 10 * MiB);
            return static_cast<const std::bad_alloc&>(e).what();
          }
        },
        o);
    EXPECT_NE(text.find("100.0 MiB"), std::string::npos) << text;
    EXPECT_NE(text.find("64.0 MiB"), std::string::npos) << text;
    EXPECT_NE(text.find("GODWIT_GLOBAL_LIMIT"), std::string::npos) << text;
  }
}

TEST(Allocate, OutOfMemoryTravelsToTheJoin) {
  auto o = workers(2);
  o.global_limit = 64 * MiB;
  EXPECT_TRUE(gw::run<bool>(
      [] {
        auto f = gw::spawn([] { return gw::allocate<char>(GiB, gw::distribution::cyclic()); });
        try {
          f.join();
        } catch (const std::exception& e) {
          return std::string(e.what()).find("1024.0 MiB") != std::string::npos;
        }
        return false;
      },
      o));
}

TEST(Allocate, MoreThanAnyMemory) {
  EXPECT_EQ(gw::run<int>(
                [] {
                  int caught = 0;
                  for (const std::uint64_t n : {~0ull, 1ull << 61, 1ull << 58, 1ull << 50})
                    for (const auto& d :
                         {gw::distribution::local(), gw::distribution::cyclic(), gw::distribution::blocked()})
                      try {
                        gw::allocate<long>(n, d);
                      } catch (const gw::global_bad_alloc&) {
                        ++caught;
                      }
                  return caught;
                },
                workers(2)),
            12);
}

TEST(Allocate, BadArguments) {
  EXPECT_EQ(
      gw::run<std::string>(
          [] {
            std::string missing;
            auto expect = [&](const char* word, auto&& f) {
              try {
                f();
                missing += std::string(word) + " not refused; ";
              } catch (const std::invalid_argument& e) {
                if (std::string(e.what()).find(word) == std::string::npos)
                  missing += std::string(word) + " not in: " + e.what() + "; ";
              }
            };
            expect("alignment", [] { gw::allocate<char>(1, gw::distribution::local(), 3); });
            expect("alignment", [] { gw::allocate<char>(1, gw::distribution::local(), 0); });
            expect("no worker", [] { gw::allocate<char>(1, gw::distribution::at(gw::worker_count())); });
            expect("multiple of 16", [] { gw::allocate<char>(1, gw::distribution::cyclic(8)); });
            expect("more than one for each", [] { gw::allocate<char>(1000, gw::distribution::blocked(16)); });
            auto outside = [](std::uint64_t, std::uint64_t, std::uint32_t homes) { return homes; };
            expect("puts block 0", [&] { gw::allocate<char>(1, gw::distribution::user(16, outside)); });
            return missing;
          },
          workers(2)),
      "");
}

TEST(Allocate, OptionsOutOfRangeAreRefusedAtTheStart) {
  for (const auto& [name, value] :
       {std::pair{"GODWIT_GLOBAL_BYTES", "1M"}, std::pair{"GODWIT_GLOBAL_BYTES", "1000T"},
        std::pair{"GODWIT_GLOBAL_LIMIT", "many"}, std::pair{"GODWIT_CACHE_BYTES", "1"},
        std::pair{"GODWIT_CHECK_GLOBAL", "perhaps"}}) {
    const auto o = support::run_child([&, n = name, v = value] {
      setenv(n, v, 1);
      return gw::run(0, nullptr, [] { std::puts("not reached"); });
    });
    EXPECT_EQ(o.status, 2) << name << "=" << value << show(o);
    EXPECT_TRUE(o.err_has(name)) << show(o);
    EXPECT_EQ(o.out, "") << show(o);
  }
}

TEST(Allocate, TooFewAddressesForTheWorkersAreRefusedAtTheStart) {
  const auto o = support::run_child([] {
    gw::options opts;
    opts.workers = 4;
    opts.global_bytes = 256 * MiB;
    opts.cache_bytes = 1ull << 38;  // its table needs more than that
    unsetenv("GODWIT_GLOBAL_BYTES");
    unsetenv("GODWIT_CACHE_BYTES");
    return gw::run(
        0, nullptr, [] { std::puts("not reached"); }, opts);
  });
  EXPECT_NE(o.status, 0) << show(o);
  EXPECT_TRUE(o.err_has("GODWIT_GLOBAL_BYTES")) << show(o);
  EXPECT_EQ(o.out, "") << show(o);
}

/// Pages of [p, p + n) that are in memory.
std::size_t pages_in_memory(gw::global_ptr<char> p, std::uint64_t n) {
  char* raw = gw::try_local(p, n);
  const auto low = reinterpret_cast<std::uintptr_t>(raw) / 4096 * 4096;
  std::vector<unsigned char> in((n + 8191) / 4096);
  if (mincore(reinterpret_cast<void*>(low), n, in.data()) != 0) return 0;
  std::size_t count = 0;
  for (std::size_t i = 0; i < (n + 4095) / 4096; ++i) count += in[i] & 1;
  return count;
}

TEST(Allocate, CollectiveOnesAreInMemory) {
  for (const std::uint32_t n : {1u, 2u, 3u}) {
    const auto [touched, untouched] = gw::run<std::pair<std::uint64_t, std::uint64_t>>(
        [] {
          std::uint64_t yes = 0, no = 0;
          for (const auto& d :
               {gw::distribution::blocked(), gw::distribution::cyclic(), gw::distribution::at(0)}) {
            auto p = gw::collective_allocate<char>(8 * MiB, d);
            auto q = gw::allocate<char>(8 * MiB, d);
            yes += pages_in_memory(p, 8 * MiB);
            no += pages_in_memory(q, 8 * MiB);
            gw::deallocate(p, 8 * MiB);
            gw::deallocate(q, 8 * MiB);
          }
          return std::pair(yes, no);
        },
        workers(n));
    EXPECT_EQ(touched, 3 * 8 * MiB / 4096) << n << " workers";
    EXPECT_LE(untouched, 1u) << "the header of the one that is local";
  }
}

TEST(Allocate, CollectiveUnderForcedSteals) {
  support::for_each_schedule([](const gw::options& o) {
    EXPECT_EQ(gw::run<long>(
                  [] {
                    auto p = gw::collective_allocate<long>(5000, gw::distribution::cyclic(4096));
                    long s = 0;
                    for (int i = 0; i < 5000; i += 500) s += p[i] + 1;
                    gw::deallocate(p, 5000);
                    return s;
                  },
                  o),
              10);
  });
}

TEST(Allocate, UsageIsCounted) {
  EXPECT_TRUE(gw::run<bool>(
      [] {
        const auto before = gw::global_memory_usage();
        auto p = gw::allocate<char>(10 * MiB, gw::distribution::blocked());
        const auto with = gw::global_memory_usage();
        gw::deallocate(p, 10 * MiB);
        const auto after = gw::global_memory_usage();
        return with.used_bytes == before.used_bytes + 10 * MiB && after.used_bytes == before.used_bytes &&
               with.limit_bytes != 0;
      },
      workers(2)));
}

TEST(Allocate, AMillionSmallObjects) {
  const long sum = gw::run<long>(
      [] {
        constexpr int n = 500'000;
        auto list = gw::allocate<gw::global_ptr<long>>(n);
        long s = 0;
        for (int round = 0; round < 2; ++round) {
          for (int i = 0; i < n; ++i) list[i] = gw::global_new<long>(i);
          for (int i = 0; i < n; ++i) {
            gw::global_ptr<long> p = list[i];
            s += *p;
            gw::global_delete(p);
          }
        }
        gw::deallocate(list, n);
        return s;
      },
      workers(1));
  EXPECT_EQ(sum, 2 * (499'999L * 500'000 / 2));
}

}  // namespace
