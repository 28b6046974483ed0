// global_map against std::unordered_map: many threads on few and on many keys, under forced steals; growth,
// ownership.
// test: skip-qemu
#include "container_runs.hpp"

#include "support/child.hpp"

#include <algorithm>
#include <array>
#include <atomic>
#include <random>
#include <string>
#include <unordered_map>
#include <vector>

using namespace container_runs;

namespace {

constinit gw::global_map<int, int> never_used;
gw::global_map<int, int> left_over;

using word = std::array<char, 12>;
using words_view = gw::global_map_view<word, long>;
static_assert(std::is_trivially_copyable_v<words_view>);
static_assert(gw::coded<gw::global_map<int, int>> && !std::is_copy_constructible_v<gw::global_map<int, int>>);

std::uint64_t random_of(std::uint64_t i) { return gw::detail::mix_bits(i + 0x9e3779b97f4a7c15ull); }

/// Calls f(i) for all of [begin, end), each in a thread or so.
template <class F>
void parallel(std::uint64_t begin, std::uint64_t end, const F& f) {
  if (end - begin <= 8) {
    for (std::uint64_t i = begin; i < end; ++i) f(i);
    return;
  }
  const std::uint64_t middle = (begin + end) / 2;
  gw::invoke([=] { parallel(begin, middle, f); }, [=] { parallel(middle, end, f); });
}

struct bad_hash {
  std::uint64_t operator()(int key) const noexcept { return static_cast<std::uint64_t>(key & 1) << 63; }
};

TEST(GlobalMap, BehavesLikeUnorderedMap) {
  in_all_runs([] {
    gw::global_map<int, long> m(10);  // far too small: buckets are continued
    std::unordered_map<int, long> u;
    std::mt19937 random(1);
    for (int i = 0; i < 4000; ++i) {
      const int k = static_cast<int>(random() % 300);
      const long v = static_cast<long>(random() % 1000);
      switch (random() % 8) {
        case 0:
        case 1:
          WANT(m.insert(k, v) == u.emplace(k, v).second);
          break;
        case 2:
          WANT(m.insert_or_assign(k, v) == u.insert_or_assign(k, v).second);
          break;
        case 3:
          WANT(m.erase(k) == (u.erase(k) == 1));
          break;
        case 4: {
          const auto it = u.find(k);
          WANT(m.find(k) == (it == u.end() ? std::nullopt : std::optional<long>(it->second)));
          WANT(m.contains(k) == (it != u.end()));
          break;
        }
        case 5:
          WANT(m.update(k, [v](long& x) { x += v; }) == (u.count(k) == 1));
          if (u.count(k) == 1) u[k] += v;
          break;
        case 6:
          WANT(m.fetch_add(k, v) == u[k]);
          u[k] += v;
          break;
        case 7:
          WANT(m.insert_or_update(k, 5, [](long& x) { x = -x; }) == (u.count(k) == 0));
          if (auto [it, fresh] = u.emplace(k, 5); !fresh) it->second = -it->second;
          break;
      }
      WANT(m.size() == u.size());
    }
    m.check_invariants();
    for (const auto& [k, v] : m.to_vector()) WANT(u.at(k) == v && u.erase(k) == 1);
    WANT(u.empty());
  });
}

TEST(GlobalMap, CountsWordsOfManyThreads) {
  const std::uint64_t texts = 6000, distinct = 200;
  auto nth = [](std::uint64_t i) {
    word w{};
    const std::string s = "w" + std::to_string(random_of(i) % distinct);
    std::copy(s.begin(), s.end(), w.begin());
    return w;
  };
  std::unordered_map<std::string, long> right;
  for (std::uint64_t i = 0; i < texts; ++i) ++right[nth(i).data()];
  const auto* expected = &right;
  in_all_runs([=] {
    gw::global_map<word, long> m(distinct);
    parallel(0, texts, [v = m.view(), nth](std::uint64_t i) {
      switch (i % 3) {
        case 0:
          v.fetch_add(nth(i), 1);
          break;
        case 1:
          v.insert_or_update(nth(i), 1, [](long& n) { ++n; });
          break;
        case 2:
          v.insert(nth(i), 0);
          WANT(v.update(nth(i), [](long& n) { ++n; }));
          break;
      }
    });
    m.check_invariants();
    WANT(m.size() == expected->size());
    for (const auto& [w, n] : m.to_vector()) WANT(expected->at(w.data()) == n);
  });
}

TEST(GlobalMap, InsertHasOneWinner) {
  in_all_runs([] {
    gw::global_map<std::uint64_t, std::uint64_t> m(100);
    gw::global_array<std::uint64_t> wins(1, gw::distribution::local(), 0);
    parallel(0, 3000, [v = m.view(), w = wins.data()](std::uint64_t i) {
      if (v.insert(i % 100, i)) gw::atomic_fetch_add(w, std::uint64_t{1});
      WANT(*v.find(i % 100) % 100 == i % 100);
    });
    WANT(wins[0] == 100 && m.size() == 100);
    gw::atomic_store(wins.data(), 0);
    parallel(0, 3000, [v = m.view(), w = wins.data()](std::uint64_t i) {
      if (v.erase(i % 100)) gw::atomic_fetch_add(w, std::uint64_t{1});
    });
    WANT(wins[0] == 100 && m.empty());
    m.check_invariants();
  });
}

struct wide {
  std::uint64_t parts[20];
};

// Values that are changed as a whole are seen as a whole, by those who look while others change, insert and
// erase.
TEST(GlobalMap, ReadersSeeNoHalfWrittenValues) {
  in_all_runs([] {
    gw::global_map<int, wide> m(4);
    parallel(0, 4000, [v = m.view()](std::uint64_t i) {
      const int key = static_cast<int>(random_of(i) % 12);
      switch (i % 5) {
        case 0:
        case 1: {
          wide w;
          std::fill(w.parts, w.parts + 20, i);
          v.insert_or_assign(key, w);
          break;
        }
        case 2:
          if (i % 3 == 0) v.erase(key);
          v.update(key, [](wide& w) {
            for (auto& p : w.parts) ++p;
          });
          break;
        default:
          if (const auto w = v.find(key))
            for (const std::uint64_t p : w->parts) WANT(p == w->parts[0]);
      }
    });
    m.check_invariants();
  });
}

// A thread may be told of a further bucket (GM5) that lies where its host has a copy of, made just now but
// before the bucket was. Here Equal fetches that copy in the middle of a find; elsewhere a neighbour may. It
// takes two hosts (mpi.global_map): one host has no copies.
struct looks_around {
  static inline std::atomic<std::uint32_t> whose{~0u};  ///< the worker whose next comparison does it
  static inline gw::global_ptr<std::uint64_t> words;    ///< of the test
  static void look() {
    const gw::global_ptr<std::uint64_t> neighbour(gw::atomic_load(words + 1, std::memory_order_relaxed));
    static_cast<void>(gw::checkout(neighbour, 1, gw::access::read)[0]);
    gw::atomic_store(words + 2, 1, std::memory_order_relaxed);
    while (gw::atomic_load(words + 3, std::memory_order_relaxed) == 0) gw::detail::global_pause();
  }
  bool operator()(int a, int b) const {
    std::uint32_t me = gw::worker_id();
    if (whose.compare_exchange_strong(me, ~0u, std::memory_order_relaxed)) look();
    return a == b;
  }
};

TEST(GlobalMap, ANewBucketIsReadNewWhereItsPlaceWasCached) {
  gw::options o;
  o.workers = 2;
  gw::run<void>(
      [] {
        using map = gw::global_map<int, wide, gw::global_hash<int>, looks_around>;
        auto value = [](int key) {
          wide w;
          std::fill(w.parts, w.parts + 20, key);
          return w;
        };
        auto wait_for = [](gw::global_ptr<std::uint64_t> word) {
          while (gw::atomic_load(word) == 0) gw::detail::global_pause();
        };
        map m(0);  // one bucket, for two entries
        gw::global_array<std::uint64_t> words(4, gw::distribution::local(), 0);
        gw::invoke(
            [=, v = m.view(), w = words.data()] {
              for (int key = 0; key < 4; ++key) v.insert(key, value(key));  // and one that continues it, here
              wait_for(w + 1);
              looks_around::words = w;
              looks_around::whose = gw::worker_id();
              const auto found = v.find(4);
              WANT(found && found->parts[0] == 4 && found->parts[19] == 4);
            },
            [=, v = m.view(), w = words.data()] {
              // A place as large as a bucket, full of what would be no address, and its neighbour.
              constexpr std::uint64_t n = 49, unit = 16 << 10;
              std::array<gw::global_ptr<std::uint64_t>, 8> places;
              for (auto& p : places) {
                p = gw::allocate<std::uint64_t>(n, gw::distribution::local(), 64);
                for (std::uint64_t i = 0; i < n; ++i) gw::put(p + i, 16);
              }
              std::size_t i = 1;
              while (places[i].address() / unit != places[i - 1].address() / unit ||
                     (places[i].address() + 8 * n) / unit != places[i].address() / unit)
                ++i;
              gw::deallocate(places[i], n);
              gw::atomic_store(w + 1, places[i - 1].address());
              wait_for(w + 2);
              v.insert(4, value(4));
              gw::atomic_store(w + 3, 1);
              for (auto& p : places)
                if (p.address() != places[i].address()) gw::deallocate(p, n);
            });
        m.check_invariants();
      },
      o);
}

// Two workers at the same bucket all the time, for as long as it takes to be interrupted in the middle.
TEST(GlobalMap, ReadersAndWritersOfOneBucketTogether) {
  gw::options o;
  o.workers = 2;
  gw::run<void>(
      [] {
        gw::global_map<int, wide, bad_hash> m(1);
        gw::invoke(
            [v = m.view()] {
              for (std::uint64_t i = 0; i < 200'000; ++i) {
                wide w;
                std::fill(w.parts, w.parts + 20, i);
                v.insert_or_assign(static_cast<int>(i % 5) * 2, w);
                if (i % 7 == 0) v.erase(static_cast<int>(i % 5) * 2);
              }
            },
            [v = m.view()] {
              for (std::uint64_t i = 0; i < 200'000; ++i)
                if (const auto w = v.find(static_cast<int>(i % 5) * 2))
                  for (const std::uint64_t p : w->parts) WANT(p == w->parts[0]);
            });
        m.check_invariants();
      },
      o);
}

// An entry that one worker adds may be taken out and counted by another one before the first has counted it.
TEST(GlobalMap, SizeIsNeverNegative) {
  gw::options o;
  o.workers = 2;
  gw::run<void>(
      [] {
        gw::global_map<int, int> m(4);
        gw::global_array<std::uint64_t> ends(1, gw::distribution::local(), 0);
        gw::invoke(
            [v = m.view(), e = ends.data()] {
              for (int i = 0; gw::atomic_load(e) == 0; ++i) v.insert(1, i);
            },
            [v = m.view(), e = ends.data()] {
              int wrong = 0;
              for (int i = 0; i < 500'000; ++i) {
                v.erase(1);
                wrong += v.size() > 1'000'000'000 ? 1 : 0;
              }
              gw::atomic_store(e, 1);
              WANT(wrong == 0);
            });
        m.check_invariants();
      },
      o);
}

TEST(GlobalMap, AllKeysInOneBucketStillWork) {
  in_all_runs([] {
    gw::global_map<int, int, bad_hash> m(1000);
    parallel(0, 400, [v = m.view()](std::uint64_t i) { v.insert(static_cast<int>(i), static_cast<int>(i)); });
    WANT(m.size() == 400);
    parallel(0, 400, [v = m.view()](std::uint64_t i) {
      if (i % 2 == 0) WANT(v.erase(static_cast<int>(i)));
    });
    for (int i = 0; i < 400; ++i) WANT(m.contains(i) == (i % 2 == 1));
    m.check_invariants();
    // Slots of continued buckets are used again.
    for (int i = 0; i < 400; i += 2) WANT(m.insert(i, -i));
    WANT(m.size() == 400 && m.find(8) == -8);
    m.check_invariants();
  });
}

TEST(GlobalMap, ReserveMovesEverythingAndViewsRemainValid) {
  in_all_runs([] {
    gw::global_map<std::uint64_t, std::uint64_t> m(10);
    const auto v = m.view();
    const auto before = m.bucket_count();
    parallel(0, 3000, [v](std::uint64_t i) { v.insert(i, i * i); });
    WANT(m.load_factor() > 10);
    m.reserve(5000);
    WANT(m.bucket_count() > before && m.load_factor() < 0.61 && v.bucket_count() == m.bucket_count());
    m.check_invariants();
    parallel(0, 3000, [v](std::uint64_t i) { WANT(v.find(i) == i * i); });
    const auto wide_table = m.bucket_count();
    m.reserve(100);
    WANT(m.bucket_count() == wide_table);
    parallel(0, 2900, [v](std::uint64_t i) { WANT(v.erase(i)); });
    m.rehash(0);
    WANT(m.bucket_count() < wide_table && m.size() == 100);
    m.check_invariants();
    m.clear();
    WANT(m.empty() && !v.contains(2950));
    WANT(v.insert(1, 1) && m.size() == 1);
    m.check_invariants();
  });
}

TEST(GlobalMap, ForEachSeesAllOnceAndMaySpawn) {
  in_all_runs([] {
    gw::global_map<int, int> m(500);
    for (int i = 0; i < 2000; ++i) m.insert(i, i + 1);
    gw::global_array<long> seen(2000, gw::distribution::blocked(), 0L);
    m.for_each([s = seen.data()](int k, int v) {
      gw::spawn([=] { gw::atomic_fetch_add(s + k, static_cast<long>(v)); }).join();
    });
    for (std::uint64_t i = 0; i < 2000; ++i) WANT(seen[i] == static_cast<long>(i) + 1);
    auto stop = [](int k, int) {
      if (k == 1500) throw std::runtime_error("found it");
    };
    WANT_THROW(m.for_each(stop), std::runtime_error, "found it");
  });
}

TEST(GlobalMap, AnExceptionInUpdateChangesNothing) {
  in_all_runs([] {
    gw::global_map<int, int> m(10);
    m.insert(1, 10);
    const auto v = m.view();
    WANT_THROW(v.update(1,
                        [](int& x) {
                          x = 99;
                          throw std::runtime_error("no");
                        }),
               std::runtime_error, "no");
    WANT(m.find(1) == 10);
    WANT_THROW(v.update(1, [v](int&) { v.find(1); }), std::logic_error, "must not use a map");
    WANT_THROW(v.update(1, [v](int&) { v.insert(2, 2); }), std::logic_error, "must not use a map");
    WANT(m.find(1) == 10 && m.update(1, [](int& x) { x = 11; }) && m.find(1) == 11);
    m.check_invariants();
  });
}

TEST(GlobalMap, MovesIntoThreadsAndComesBack) {
  in_all_runs([] {
    gw::global_map<int, int> m(100);
    m.insert(1, 1);
    m = gw::spawn([m = std::move(m)]() mutable {
          gw::spawn([v = m.view()] { v.insert(2, 2); }).join();
          m.reserve(1000);
          return std::move(m);
        }).join();
    WANT(m.size() == 2 && m.find(2) == 2);
    auto other = gw::spawn([](gw::global_map<int, int> n) { return n; }, std::move(m)).join();
    WANT_THROW(m.insert(1, 1), std::logic_error, "no table");  // NOLINT: moved from, and says so
    WANT(other.size() == 2);
    other.reset();
    WANT_THROW(other.size(), std::logic_error, "no table");
  });
}

TEST(GlobalMap, OutlivesItsRun) {
  gw::options o;
  o.workers = 2;
  left_over = gw::run<gw::global_map<int, int>>(
      [] {
        gw::global_map<int, int> m(10);
        m.insert(1, 1);
        return m;
      },
      o);
  EXPECT_THROW(left_over.find(1), std::logic_error);
  EXPECT_THROW(left_over.insert(1, 1), std::logic_error);
  gw::run<void>(
      [] {
        gw::global_map<int, int> mine(10);
        mine.insert(1, 2);
        WANT_THROW(left_over.find(1), std::logic_error,
                   "global_map belongs to a run that is over (another one is on now)");
        WANT_THROW(left_over.view().size(), std::logic_error, "is over");
        WANT_THROW(left_over.clear(), std::logic_error, "is over");
        left_over = std::move(mine);
        WANT(left_over.find(1) == 2);
      },
      o);
  left_over.reset();
  EXPECT_THROW(never_used.find(1), std::logic_error);
}

TEST(GlobalMap, FreesAllItHad) {
  const auto o = support::run_child([] {
    return run_checked([] {
      gw::global_map<int, int> m(10);
      const auto v = m.view();
      parallel(0, 1000, [v](std::uint64_t i) { v.insert(static_cast<int>(i), 0); });
      m.rehash(500);
      m.clear();
      for (int i = 0; i < 3000; ++i) m.fetch_add(i, 1);
      gw::global_map<int, int> n = std::move(m);
      n.rehash(0);
    });
  });
  EXPECT_EQ(o.status, 0) << support::show(o);
  EXPECT_FALSE(o.err_has("not freed")) << support::show(o);
}

TEST(GlobalMap, NoRoomIsAnExceptionAndLeavesTheMapAsItWas) {
  in_all_runs([] {
    WANT_THROW((gw::global_map<int, int>(std::uint64_t{1} << 50)), gw::global_bad_alloc, "godwit");
    gw::global_map<int, int> m(10);
    m.insert(3, 4);
    WANT_THROW(m.reserve(std::uint64_t{1} << 50), gw::global_bad_alloc, "godwit");
    WANT(m.find(3) == 4 && m.size() == 1);
    m.check_invariants();
  });
}

// Spawning with a bucket locked would leave it locked behind: the run says so and ends.
TEST(GlobalMap, ASpawnInUpdateIsFoundOut) {
  const auto o = support::run_child([] {
    return run_checked([] {
      gw::global_map<int, int> m(10);
      m.insert(1, 1);
      m.update(1, [](int& x) { x += gw::spawn([] { return 1; }).join(); });
    });
  });
  EXPECT_NE(o.status, 0) << support::show(o);
  EXPECT_TRUE(o.err_has("is held across a spawn")) << support::show(o);
}

TEST(GlobalMap, KeysOfAllKinds) {
  enum class colour : std::uint8_t { red, green };
  struct pair {
    std::int32_t a, b;
    bool operator==(const pair&) const = default;
  };
  in_all_runs([] {
    gw::global_map<colour, double> c(2);
    WANT(c.insert(colour::green, 2.5) && c.find(colour::green) == 2.5 && !c.contains(colour::red));
    gw::global_map<pair, char> p(10);
    WANT(p.insert({1, 2}, 'x') && !p.insert({1, 2}, 'y') && p.find({1, 2}) == 'x' && !p.contains({2, 1}));
    gw::global_map<double, std::uint8_t> d(10);
    WANT(d.fetch_add(0.5, 200) == 0 && d.fetch_add(0.5, 100) == 200 && d.find(0.5) == 44);
    WANT(d.insert(0.0, 1) && d.contains(-0.0));
    gw::global_map<gw::global_ptr<int>, std::array<char, 300>> big(3);
    for (std::uint64_t i = 0; i < 50; ++i)
      big.insert(gw::global_ptr<int>(64 * i), std::array<char, 300>{static_cast<char>(i)});
    for (std::uint64_t i = 0; i < 50; ++i)
      WANT(big.find(gw::global_ptr<int>(64 * i))->at(0) == static_cast<char>(i));
    big.check_invariants();
  });
}

}  // namespace
