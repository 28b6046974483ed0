// get, put, copies, gather, scatter, asynchronous access: include/godwit/global_access.hpp. Runs under MPI as
// well (tests/mpi).
#include <gtest/gtest.h>
#include <godwit/godwit.hpp>

#include "support/schedule.hpp"

#include <array>
#include <numeric>
#include <string>
#include <vector>

namespace gw = godwit;

namespace {

struct big {
  std::array<long, 100> words;
  bool operator==(const big&) const = default;
};

/// Places of every kind: one home, dealt out in small blocks, in parts, movable.
const gw::distribution& kind(int i) {
  static const gw::distribution kinds[] = {gw::distribution::local(), gw::distribution::cyclic(48),
                                           gw::distribution::blocked(),
                                           gw::distribution::cyclic(4096).movable(), gw::distribution::at(0)};
  return kinds[i];
}
constexpr int kinds = 5;

/// Empty: all right.
template <class F>
std::string in_a_run(const gw::options& o, F f) {
  return gw::run<std::string>(f, o);
}

TEST(GlobalAccess, ValuesOfAllSizesComeBackFromAllPlaces) {
  support::for_each_schedule([](const gw::options& o) {
    EXPECT_EQ(in_a_run(o,
                       [] {
                         for (int k = 0; k < kinds; ++k) {
                           const auto p = gw::allocate<big>(50, kind(k));
                           for (long i = 0; i < 50; ++i) {
                             big b;
                             b.words.fill(i);
                             gw::put(p + i, b);
                           }
                           const long bad = gw::spawn([p] {
                                              long wrong = 0;
                                              for (long i = 0; i < 50; ++i) {
                                                big b;
                                                b.words.fill(i);
                                                if (!(gw::get(p + i) == b)) ++wrong;
                                              }
                                              return wrong;
                                            }).join();
                           if (bad != 0)
                             return "kind " + std::to_string(k) + ": " + std::to_string(bad) + " wrong";
                           gw::deallocate(p, 50);
                         }
                         return std::string();
                       }),
              "");
  });
}

TEST(GlobalAccess, RangesByValue) {
  support::for_each_schedule([](const gw::options& o) {
    EXPECT_EQ(in_a_run(o,
                       [] {
                         for (int k = 0; k < kinds; ++k) {
                           const auto p = gw::allocate<int>(5000, kind(k));
                           {
                             std::vector<int> v(5000);
                             std::iota(v.begin(), v.end(), 0);
                             gw::put(p, v.data(), v.size());
                           }
                           const int bad = gw::spawn([p] {
                                             std::vector<int> back(4001);
                                             gw::get(p + 7, back.data(), back.size());
                                             for (int i = 0; i < 4001; ++i)
                                               if (back[static_cast<std::size_t>(i)] != i + 7) return i;
                                             return -1;
                                           }).join();
                           if (bad != -1) return "kind " + std::to_string(k) + " at " + std::to_string(bad);
                           gw::deallocate(p, 5000);
                         }
                         return std::string();
                       }),
              "");
  });
}

TEST(GlobalAccess, CopiesMayOverlap) {
  EXPECT_EQ(in_a_run({},
                     [] {
                       const long n = 200'000;  // larger than one step of a copy between hosts
                       for (const long shift : {1L, 1000L, 60'000L})
                         for (const bool up : {true, false}) {
                           const auto p = gw::allocate<int>(n + 60'000, gw::distribution::cyclic(4096));
                           const auto from = up ? p : p + shift, to = up ? p + shift : p;
                           {
                             std::vector<int> v(n);
                             std::iota(v.begin(), v.end(), 1);
                             gw::put(from, v.data(), v.size());
                           }
                           gw::copy_n<int>(from, n, to);
                           std::vector<int> back(n);
                           gw::get(to, back.data(), back.size());
                           for (long i = 0; i < n; ++i)
                             if (back[static_cast<std::size_t>(i)] != i + 1)
                               return "shift " + std::to_string(shift) + " at " + std::to_string(i);
                           gw::deallocate(p, n + 60'000);
                         }
                       return std::string();
                     }),
            "");
}

TEST(GlobalAccess, ReferencesReadAndWrite) {
  EXPECT_EQ(in_a_run({},
                     [] {
                       const auto p = gw::allocate<double>(4, gw::distribution::blocked());
                       p[0] = 1;
                       p[1] = p[0];
                       p[1] += 2;
                       p[2] = p[1] * 2;
                       ++p[2];
                       *(p + 3) = p[2] - p[0];
                       const gw::global_ptr<const double> c = p;
                       if (c[0] != 1 || c[1] != 3 || c[2] != 7 || c[3] != 6 || &p[2] != p + 2)
                         return std::string("wrong");
                       gw::deallocate(p, 4);
                       return std::string();
                     }),
            "");
}

TEST(GlobalAccess, ManySmallPieces) {
  support::for_each_schedule([](const gw::options& o) {
    EXPECT_EQ(in_a_run(o,
                       [] {
                         for (int k = 0; k < kinds; ++k) {
                           const auto p = gw::allocate<std::array<short, 5>>(3000, kind(k));
                           std::vector<gw::global_ptr<std::array<short, 5>>> at;
                           std::vector<std::array<short, 5>> values, back(700);
                           for (short i = 0; i < 700; ++i) {
                             at.push_back(p + i * 4);
                             values.push_back({i, 1, 2, 3, i});
                           }
                           gw::scatter<std::array<short, 5>>(values, at);
                           gw::gather<std::array<short, 5>>(at, back);
                           if (back != values) return "kind " + std::to_string(k);
                           if (gw::get(p + 4 * 300) != values[300])
                             return std::string("get does not see scatter");
                           gw::deallocate(p, 3000);
                         }
                         return std::string();
                       }),
              "");
  });
}

TEST(GlobalAccess, AsynchronouslyInAnyOrderAndNeverJoined) {
  support::for_each_schedule([](const gw::options& o) {
    EXPECT_EQ(in_a_run(o,
                       [] {
                         const auto p = gw::allocate<long>(100, gw::distribution::cyclic(16));
                         {
                           gw::future<void> f[100];
                           for (long i = 0; i < 100; ++i) f[i] = gw::put_async(p + i, i * i);
                           for (long i = 0; i < 100; i += 2) f[i].join();
                           for (long i = 99; i > 0; i -= 2) f[i].join();
                         }
                         for (int round = 0; round < 3; ++round) {
                           gw::future<long> f[100];
                           for (long i = 0; i < 100; ++i) f[i] = gw::get_async(p + i);
                           if (round == 2) break;  // dropped
                           for (long i = 99; i >= 0; --i)
                             if (f[i].join() != i * i) return "element " + std::to_string(i);
                         }
                         gw::deallocate(p, 100);
                         return std::string();
                       }),
              "");
  });
}

TEST(GlobalAccess, HomesAndOwners) {
  EXPECT_EQ(in_a_run({},
                     [] {
                       const std::uint32_t n = gw::worker_count();
                       const auto p = gw::allocate<char>(4096 * 20, gw::distribution::cyclic(4096).movable());
                       for (std::uint32_t b = 0; b < 20; ++b)
                         if (gw::home_of(p + b * 4096 + 4095) != b % n || gw::owner_of(p + b * 4096) != b % n)
                           return "block " + std::to_string(b);
                       gw::deallocate(p, 4096 * 20);
                       const auto q = gw::allocate<char>(10, gw::distribution::at(n - 1));
                       if (gw::home_of(q + 9) != n - 1) return std::string("at");
                       gw::deallocate(q, 10);
                       return std::string();
                     }),
            "");
}

TEST(GlobalAccess, LocalMemoryIsWhatTryLocalSays) {
  EXPECT_EQ(in_a_run({},
                     [] {
                       const auto p = gw::allocate<int>(10);
                       int* raw = gw::try_local(p, 10);
                       if (raw == nullptr) return std::string("own memory is not local");
                       raw[3] = 5;
                       if (p[3] != 5) return std::string("another place");
                       gw::deallocate(p, 10);
                       return std::string();
                     }),
            "");
}

}  // namespace
