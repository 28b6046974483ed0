// The migration matrix: what a frame may hold while its thread moves from process to process.
// test: timeout=180
//
// Every case runs under forced steals with 1 to 4 workers; `elsewhere()` spawns and yields until the caller
// has changed worker (or gives up: on a busy machine nobody may come), so that the checks after it are made
// on another process.
#include "support/elsewhere.hpp"
#include "support/substrate.hpp"
#include "support/schedule.hpp"
#include "support/shared.hpp"

#include <godwit/godwit.hpp>

#include <gtest/gtest.h>

#include <alloca.h>
#include <array>
#include <atomic>
#include <cerrno>
#include <cfenv>
#include <cmath>
#include <csetjmp>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <numeric>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>

namespace {

namespace gw = godwit;
using support::elsewhere;
using support::leaf;

void for_each_migration(const std::function<void(const gw::options&)>& body) {
  for (const char* force : {"random", "parents", "children"})
    for (std::uint32_t workers = 1; workers <= 4; ++workers) {
      const gw::options o = support::schedule(workers, force, workers == 3 ? 5 : 0);
      SCOPED_TRACE(support::describe(o));
      body(o);
      if (testing::Test::HasFailure()) return;
    }
}

template <class F>
int bad_in(const gw::options& o, F f) {
  return gw::run<int>(
      [f] {
        gw::on_each_worker([] {});  // all workers are up
        int bad = f();
        auto g = gw::spawn(f);
        auto h = gw::spawn([f] {
          auto inner = gw::spawn(f);
          const int own = f();
          return inner.join() + own;
        });
        bad += f();
        bad += g.join();
        return bad + h.join();
      },
      o);
}
#define EXPECT_GOOD(...) \
  for_each_migration([](const gw::options& o) { EXPECT_EQ(bad_in(o, __VA_ARGS__), 0); })

TEST(migration, happens_at_all) {
  const int moved = gw::run<int>(
      [] {
        gw::on_each_worker([] {});
        while (!elsewhere()) {  // for ever, if it never happens
        }
        return 1;
      },
      support::schedule(4, "random"));
  EXPECT_GT(moved, 0);
}

TEST(migration, pointers_and_references_into_the_own_stack) {
  EXPECT_GOOD([] {
    int numbers[100];
    std::iota(numbers, numbers + 100, 0);
    int* const middle = numbers + 50;
    int* const* const to_pointer = &middle;
    int& reference = numbers[99];
    std::string_view view("a literal");
    elsewhere();
    reference = 7;
    return (middle != numbers + 50) + (*middle != 50) + (**to_pointer != 50) + (numbers[99] != 7) +
           (view != "a literal");
  });
}

struct animal {
  virtual ~animal() = default;
  virtual int legs() const = 0;
};
struct cat : animal {
  int legs() const override { return 4; }
};
struct bird : virtual animal {
  int legs() const override { return 2; }
};

TEST(migration, virtual_objects_and_type_information) {
  EXPECT_GOOD([] {
    const cat c;
    const bird b;
    const animal* animals[] = {&c, &b};
    elsewhere();
    return (animals[0]->legs() != 4) + (animals[1]->legs() != 2) +
           (dynamic_cast<const cat*>(animals[0]) != &c) + (dynamic_cast<const cat*>(animals[1]) != nullptr) +
           (typeid(*animals[1]) != typeid(bird));
  });
}

TEST(migration, short_strings_point_into_themselves) {
  EXPECT_GOOD([] {
    std::string s = "short";
    const char* before = s.data();
    elsewhere();
    int bad = (s.data() != before) + (s != "short");
    s += "er";
    elsewhere();
    return bad + (s != "shorter");
  });
}

TEST(migration, pointers_to_functions_and_members) {
  static int global = 3;
  EXPECT_GOOD([] {
    int (*function)(int) = leaf;
    int (animal::*member)() const = &animal::legs;
    int* address = &global;
    const cat c;
    elsewhere();
    return (function(1) != 2) + ((c.*member)() != 4) + (*address != 3);
  });
}

// errno and thread_local belong to the worker; what must work is to use them after having moved.
thread_local int per_worker = 5;
thread_local std::string per_worker_text = "constructed on first use in each worker";

TEST(migration, errno_and_thread_local_after_a_migration) {
  GODWIT_NEEDS_PROCESSES("they belong to the workers");
  EXPECT_GOOD([] {
    errno = ERANGE;
    per_worker = 5;
    elsewhere();
    errno = 0;
    const double overflow = std::strtod("1e999", nullptr);
    int bad = (errno != ERANGE) + !std::isinf(overflow);
    elsewhere();
    per_worker += 0;
    bad += per_worker != 5;
    const bool text = per_worker_text == "constructed on first use in each worker";
    return bad + !text;
  });
}

TEST(migration, large_frames) {
  EXPECT_GOOD([] {
    unsigned char medium[64 << 10];
    std::memset(medium, 0x5a, sizeof medium);
    medium[1000] = 1;
    elsewhere();
    const long sum = std::accumulate(std::begin(medium), std::end(medium), 0L);
    return static_cast<int>(sum != 0x5a * ((64 << 10) - 1) + 1);
  });
}

TEST(migration, very_large_frames) {
  GODWIT_NEEDS_PROCESSES("larger than a stack");
  for_each_migration([](const gw::options& o) {
    EXPECT_EQ(gw::run<int>(
                  [] {
                    auto f = gw::spawn([] {
                      unsigned char large[1 << 20];
                      std::memset(large, 3, sizeof large);
                      leaf(1);
                      gw::yield();
                      leaf(2);
                      const long sum = std::accumulate(std::begin(large), std::end(large), 0L);
                      return static_cast<int>(sum != 3L << 20);
                    });
                    return f.join();
                  },
                  o),
              0);
  });
}

// The size of the frame is known at run time only; the compiler addresses it through a frame or base pointer.
[[gnu::noinline]] int with_alloca(std::size_t n) {
  auto* p = static_cast<unsigned char*>(alloca(n));
  std::memset(p, 9, n);
  elsewhere();
  int bad = 0;
  for (std::size_t i = 0; i < n; ++i) bad += p[i] != 9;
  return bad;
}
[[gnu::noinline]] int with_alloca_and_alignment(std::size_t n) {
  alignas(64) double aligned[8] = {1, 2, 3, 4, 5, 6, 7, 8};
  auto* p = static_cast<unsigned char*>(alloca(n));
  std::memset(p, 8, n);
  auto f = gw::spawn([n] { return static_cast<int>(n); });
  elsewhere();
  int bad = f.join() != static_cast<int>(n);
  for (std::size_t i = 0; i < n; ++i) bad += p[i] != 8;
  for (int i = 0; i < 8; ++i) bad += aligned[i] != i + 1;
  return bad + (reinterpret_cast<std::uintptr_t>(aligned) % 64 != 0);
}
TEST(migration, frames_of_variable_size) {
  EXPECT_GOOD([] { return with_alloca(100) + with_alloca(5000) + with_alloca_and_alignment(333); });
}

struct alignas(256) widely_aligned {
  long v[32];
};
TEST(migration, over_aligned_locals) {
  EXPECT_GOOD([] {
    alignas(64) int line[16] = {1, 2, 3};
    widely_aligned wide{};
    wide.v[31] = 77;
    elsewhere();
    auto f = gw::spawn([w = &wide] { return static_cast<int>(reinterpret_cast<std::uintptr_t>(w) % 256); });
    const int off = f.join();
    return off + (line[2] != 3) + (wide.v[31] != 77) + (reinterpret_cast<std::uintptr_t>(line) % 64 != 0);
  });
}

#if defined(__x86_64__)
using four_doubles [[gnu::vector_size(32)]] = double;
[[gnu::target("avx"), gnu::noinline]] int avx_body(double x) {
  four_doubles a = {x, x + 1, x + 2, x + 3};
  four_doubles b = a * a;
  elsewhere();
  const four_doubles c = a + b;  // lived across calls: on the stack, 32-byte aligned
  return (c[0] != x + x * x) + (c[3] != (x + 3) + (x + 3) * (x + 3));
}
TEST(migration, avx_values) {
  if (!__builtin_cpu_supports("avx")) GTEST_SKIP();
  EXPECT_GOOD([] { return avx_body(2) + avx_body(-1.5); });
}
#endif

TEST(migration, floating_point_values_live_across_spawns) {
  EXPECT_GOOD([] {
    volatile double seed = 1.1;
    const double a = seed, b = a * a, c = b * a;
    const long double x = 1.0L / 3.0L, y = x * 7.0L;
    const float f = static_cast<float>(a);
    auto g = gw::spawn([] { return 0.25; });
    elsewhere();
    const double q = g.join();
    return (a * a != b) + (b * a != c) + (x * 7.0L != y) + (x != 1.0L / 3.0L) + (f != 1.1f) + (q != 0.25);
  });
}

// Rounding set before run holds in all workers; set in a thread it goes with the thread.
// A third rounds down to the nearest, a tenth up: together they tell all modes apart.
[[gnu::noinline]] std::pair<double, double> quotients() {
  volatile double one = 1, three = 3, ten = 10;
  return {one / three, one / ten};
}
TEST(migration, rounding_mode_from_before_run) {
  const auto nearest = quotients();
  std::fesetround(FE_UPWARD);
  const auto up = quotients();
  for_each_migration([up](const gw::options& o) {
    EXPECT_EQ(gw::run<int>(
                  [up] {
                    gw::on_each_worker([] {});
                    int bad = quotients() != up;
                    for (int i = 0; i < 20; ++i) {
                      elsewhere();
                      auto f = gw::spawn([up] { return quotients() != up; });
                      bad += f.join() + (quotients() != up);
                    }
                    return bad;
                  },
                  o),
              0);
  });
  std::fesetround(FE_TONEAREST);
  EXPECT_NE(up, nearest);
}

// The mode that the calling thread has set is there wherever it goes on.
TEST(migration, rounding_mode_set_in_a_thread_goes_with_it) {
  for_each_migration([](const gw::options& o) {
    EXPECT_EQ(gw::run<int>(
                  [] {
                    gw::on_each_worker([] {});
                    int bad = 0;
                    for (const int mode : {FE_DOWNWARD, FE_TOWARDZERO, FE_TONEAREST}) {
                      std::fesetround(mode);
                      const auto here = quotients();
                      for (int i = 0; i < 10; ++i) {
                        elsewhere();
                        bad += quotients() != here;
                      }
                    }
                    return bad;
                  },
                  o),
              0);
  });
}

// The same for what fegetround and long double look at: on x86-64 the x87 control word, a register of its
// own.
TEST(migration, rounding_mode_of_the_other_unit_goes_with_the_thread) {
  for_each_migration([](const gw::options& o) {
    EXPECT_EQ(gw::run<int>(
                  [] {
                    gw::on_each_worker([] {});
                    int bad = 0;
                    for (const int mode : {FE_DOWNWARD, FE_UPWARD, FE_TONEAREST}) {
                      std::fesetround(mode);
                      volatile long double one = 1, three = 3, ten = 10;
                      const long double here = one / three + one / ten;
                      for (int i = 0; i < 10; ++i) {
                        elsewhere();
                        bad += (std::fegetround() != mode) + (one / three + one / ten != here);
                      }
                    }
                    return bad;
                  },
                  o),
              0);
  });
}

struct counts {
  std::atomic<int> made{0}, gone{0};
};
struct counted {
  counts* c;
  counted* self;
  explicit counted(counts* to) : c(to), self(this) { c->made.fetch_add(1); }
  counted(const counted&) = delete;
  ~counted() { c->gone.fetch_add(self == this ? 1 : 1000000); }
};

[[gnu::noinline]] int throws_after_migration(counts* c, int depth) {
  const counted a(c);
  elsewhere();
  if (depth == 0) throw std::domain_error("here");
  const counted b(c);
  return throws_after_migration(c, depth - 1) + 1;
}
TEST(migration, exceptions_thrown_after_it_and_caught_in_a_migrated_frame) {
  for_each_migration([](const gw::options& o) {
    support::shared<counts> shared;
    EXPECT_EQ(gw::run<int>(
                  [c = shared.get()] {
                    gw::on_each_worker([] {});
                    int good = 0;
                    for (int i = 0; i < 10; ++i) {
                      const counted outer(c);
                      elsewhere();
                      try {
                        throws_after_migration(c, 4);
                      } catch (const std::domain_error& e) {
                        good += std::string_view(e.what()) == "here";
                      }
                      elsewhere();
                    }
                    return good;
                  },
                  o),
              10);
    EXPECT_EQ(shared->made.load(), 100);
    EXPECT_EQ(shared->gone.load(), 100);
  });
}

TEST(migration, setjmp_and_longjmp_between_two_migrations) {
  EXPECT_GOOD([] {
    elsewhere();
    std::jmp_buf back;
    volatile int passed = 0;
    if (setjmp(back) == 0) {
      passed = passed + 1;
      std::longjmp(back, 1);
    }
    passed = passed + 10;
    elsewhere();
    return static_cast<int>(passed != 11);
  });
}

// Frames of the C library on the stack: qsort's comparison spawns.
[[gnu::noinline]] int spawning_compare(const void* a, const void* b) {
  const int x = *static_cast<const int*>(a), y = *static_cast<const int*>(b);
  leaf(x);
  auto f = gw::spawn([x, y] { return (x > y) - (x < y); });
  return f.join();
}
// Small arrays are sorted on qsort's stack: larger ones lie on the heap, which does not migrate.
TEST(migration, frames_of_the_c_library) {
  EXPECT_GOOD([] {
    int numbers[40];
    for (int i = 0; i < 40; ++i) numbers[i] = i * 17 % 40;
    std::qsort(numbers, 40, sizeof(int), spawning_compare);
    int bad = 0;
    for (int i = 0; i < 40; ++i) bad += numbers[i] != i;
    int key = 23;
    const void* found = std::bsearch(&key, numbers, 40, sizeof(int), spawning_compare);
    return bad + (found != numbers + 23);
  });
}

[[gnu::noinline]] long deep_chain(long n) {
  if (n == 0) return 0;
  return gw::spawn([n] { return deep_chain(n - 1); }).join() + 1;
}

#if defined(__SANITIZE_ADDRESS__) || !defined(NDEBUG)
constexpr long deep = 100'000;  // their frames are several times as large
constexpr long deep_forced = 4'000;
#else
constexpr long deep = 1'000'000;
constexpr long deep_forced = 20'000;
#endif

TEST(depth, a_chain_of_a_million_spawns) {
  GODWIT_NEEDS_PROCESSES("each level has a stack of its own");
  // Emulators run with small stacks.
  const long n = support::number_from_environment("STRESS_EMULATED", 0) != 0 ? deep / 10 : deep;
  for (const std::uint32_t workers : {1u, 2u})
    EXPECT_EQ(gw::run<long>([n] { return deep_chain(n); }, support::schedule(workers)), n);
}

TEST(depth, a_chain_under_forced_steals) {
  for (const char* force : {"parents", "children", "random"})
    EXPECT_EQ(gw::run<long>([] { return deep_chain(deep_forced); }, support::schedule(2, force)),
              deep_forced);
}

// A deep, thin tree like T3L: each level has a few leaves and one subtree that goes on.
[[gnu::noinline]] long thin_tree(int depth, std::uint32_t hash) {
  hash = hash * 747796405u + 2891336453u;
  const int leaves = static_cast<int>(hash >> 30);
  std::array<gw::future<long>, 3> f;
  for (int i = 0; i < leaves; ++i) f[i] = gw::spawn([] { return 1L; });
  long sum = 1;
  if (depth > 0) {
    auto on = gw::spawn([depth, hash] { return thin_tree(depth - 1, hash); });
    sum += on.join();
  }
  for (int i = 0; i < leaves; ++i) sum += f[i].join();
  return sum;
}
long thin_tree_serial(int depth, std::uint32_t hash) {
  long sum = 0;
  for (int d = depth; d >= 0; --d) {
    hash = hash * 747796405u + 2891336453u;
    sum += 1 + static_cast<long>(hash >> 30);
  }
  return sum;
}
TEST(depth, deep_thin_trees) {
  for (const std::uint32_t workers : {1u, 2u, 4u})
    EXPECT_EQ(gw::run<long>([] { return thin_tree(17'844, 1); }, support::schedule(workers)),
              thin_tree_serial(17'844, 1));
  for (const char* force : {"parents", "children", "random"})
    EXPECT_EQ(gw::run<long>([] { return thin_tree(3'000, 2); }, support::schedule(3, force)),
              thin_tree_serial(3'000, 2));
}

}  // namespace
