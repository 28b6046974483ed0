// Tests of spawn and join: what may be a thread, an argument or a result, and how threads nest -- under every
// schedule.
// test: timeout=180
#include "support/schedule.hpp"
#include "support/shared.hpp"

#if defined(__clang__)
#pragma clang diagnostic ignored "-Wunused-lambda-capture"  // closures of a given size are the point here
#endif
#include <godwit/godwit.hpp>

#include <gtest/gtest.h>

#include <array>
#include <atomic>
#include <cstdint>
#include <memory>
#include <string>
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

TEST(spawn, fib) {
  for_each_schedule([](const gw::options& o) { EXPECT_EQ(gw::run<long>([] { return fib(11); }, o), 89); });
}

// Results of all sizes: nothing, part of a register, a register, inline in the record (48 B), and beyond.
struct three_words {
  long a, b, c;
};
template <int Bytes>
struct block {
  unsigned char byte[Bytes];
};
template <int Bytes>
block<Bytes> make_block(int seed) {
  block<Bytes> b;
  for (int i = 0; i < Bytes; ++i) b.byte[i] = static_cast<unsigned char>(seed + i * 7);
  return b;
}
template <int Bytes>
int wrong_bytes(const block<Bytes>& b, int seed) {
  int wrong = 0;
  for (int i = 0; i < Bytes; ++i) wrong += b.byte[i] != static_cast<unsigned char>(seed + i * 7);
  return wrong;
}
template <int Bytes>
int block_travels() {
  auto f = gw::spawn([] { return make_block<Bytes>(3); });
  auto g = gw::spawn(make_block<Bytes>, 5);
  return wrong_bytes(g.join(), 5) + wrong_bytes(f.join(), 3);
}
struct nothing {};
enum class colour : std::uint8_t { red, green };

TEST(spawn, results_of_every_size) {
  for_each_schedule([](const gw::options& o) {
    EXPECT_EQ(gw::run<int>(
                  [] {
                    return block_travels<1>() + block_travels<3>() + block_travels<8>() + block_travels<9>() +
                           block_travels<47>() + block_travels<48>() + block_travels<49>() +
                           block_travels<64>() + block_travels<1000>() + block_travels<20000>();
                  },
                  o),
              0);
  });
}

TEST(spawn, results_of_every_kind) {
  static int global = 7;
  for_each_schedule([](const gw::options& o) {
    EXPECT_EQ(gw::run<int>(
                  [] {
                    int bad = 0;
                    auto v = gw::spawn([] {});
                    auto n = gw::spawn([] { return nothing{}; });
                    auto c = gw::spawn([] { return colour::green; });
                    auto b = gw::spawn([] { return true; });
                    auto d = gw::spawn([] { return 0.5; });
                    auto f = gw::spawn([] { return 0.25f; });
                    auto l = gw::spawn([] { return 0.125L; });
                    auto p = gw::spawn([] { return &global; });
                    auto t = gw::spawn([] { return three_words{1, -2, 3}; });
                    auto i = gw::spawn([] { return static_cast<__int128>(1) << 100; });
                    v.join();
                    n.join();
                    bad += c.join() != colour::green;
                    bad += !b.join();
                    bad += d.join() != 0.5;
                    bad += f.join() != 0.25f;
                    bad += l.join() != 0.125L;
                    bad += *p.join() != 7;
                    const three_words w = t.join();
                    bad += w.a != 1 || w.b != -2 || w.c != 3;
                    bad += i.join() != static_cast<__int128>(1) << 100;
                    return bad;
                  },
                  o),
              0);
  });
}

struct alignas(64) line {
  long v[8];
};
int on_line(const void* p) { return reinterpret_cast<std::uintptr_t>(p) % 64 == 0 ? 0 : 1; }

TEST(spawn, over_aligned_arguments_and_results) {
  for_each_schedule([](const gw::options& o) {
    EXPECT_EQ(gw::run<int>(
                  [] {
                    alignas(64) line in{};
                    in.v[5] = 55;
                    auto f = gw::spawn(
                        [](line l) {
                          const int bad = on_line(&l) + (l.v[5] != 55);
                          l.v[7] = bad;
                          return l;
                        },
                        in);
                    auto g = gw::spawn([in] { return on_line(&in) + (in.v[5] != 55); });
                    const line back = f.join();
                    return static_cast<int>(back.v[7]) + (back.v[5] != 55) + on_line(&back) + g.join();
                  },
                  o),
              0);
  });
}

int free_function(int a, int b) { return 10 * a + b; }
struct with_members {
  int base;
  int method(int x) const { return base + x; }
  int operator()(int x) { return base * x; }
};

TEST(spawn, every_kind_of_callable) {
  for_each_schedule([](const gw::options& o) {
    EXPECT_EQ(gw::run<std::string>(
                  [] {
                    const auto constant = [](int x) { return x + 1; };
                    auto lvalue = [n = 3]() mutable { return n++; };
                    with_members object{5};
                    auto a = gw::spawn(free_function, 1, 2);
                    auto b = gw::spawn(&free_function, 3, 4);
                    auto c = gw::spawn(constant, 5);
                    auto d = gw::spawn(lvalue);
                    auto e = gw::spawn(lvalue);  // its own copy: the first thread's n++ is not seen
                    auto f = gw::spawn(&with_members::method, object, 2);
                    auto g = gw::spawn(object, 4);
                    std::string s;
                    for (const int v : {a.join(), b.join(), c.join(), d.join(), e.join(), f.join(), g.join()})
                      s += std::to_string(v) + ' ';
                    return s;
                  },
                  o),
              "12 34 6 3 3 7 20 ");
  });
}

TEST(spawn, closures_of_one_to_many_words) {
  for_each_schedule([](const gw::options& o) {
    EXPECT_EQ(gw::run<long>(
                  [] {
                    const long a = 1, b = 20, c = 300, d = 4000, e = 50000;
                    std::array<long, 40> many{};
                    many[39] = 600000;
                    auto f1 = gw::spawn([a] { return a; });
                    auto f2 = gw::spawn([a, b] { return a + b; });
                    auto f3 = gw::spawn([a, b, c] { return a + b + c; });
                    auto f5 = gw::spawn([a, b, c, d, e] { return a + b + c + d + e; });
                    auto f40 = gw::spawn([many] { return many[39]; });
                    return f1.join() + f2.join() + f3.join() + f5.join() + f40.join();
                  },
                  o),
              1 + 21 + 321 + 54321 + 600000);
  });
}

// What an argument owns on the heap belongs to the thread from its first instruction on, wherever that runs.
TEST(spawn, arguments_with_a_codec) {
  for_each_schedule([](const gw::options& o) {
    EXPECT_EQ(gw::run<long>(
                  [] {
                    auto f = gw::spawn([](std::string s) { return static_cast<long>(s.size()); },
                                       std::string(1000, 'x'));
                    auto g = gw::spawn(
                        [](std::vector<int> v, std::unique_ptr<long> p) {
                          long sum = *p;
                          for (const int i : v) sum += i;
                          return sum;
                        },
                        std::vector<int>{1, 2, 3}, std::make_unique<long>(40));
                    return f.join() + g.join();
                  },
                  o),
              1046);
  });
}

TEST(spawn, move_only_closures) {
  for_each_schedule([](const gw::options& o) {
    EXPECT_EQ(
        gw::run<long>(
            [] {
              auto inner = gw::spawn([] { return 1L; });
              auto outer = gw::spawn([inner = std::move(inner)]() mutable { return inner.join() + 10; });
              auto outermost = gw::spawn([outer = std::move(outer)]() mutable { return outer.join() + 100; });
              return outermost.join();
            },
            o),
        111);
  });
}

TEST(spawn, move_only_closure_that_owns_heap) {
  for_each_schedule([](const gw::options& o) {
    EXPECT_EQ(gw::run<long>(
                  [] {
                    auto f = gw::spawn([p = std::make_unique<long>(7)] { return *p; });
                    return f.join();
                  },
                  o),
              7);
  });
}

template <class Order>
long fan_out(Order&& order) {
  constexpr int n = 60;
  std::array<gw::future<int>, n> f;
  for (int i = 0; i < n; ++i) f[i] = gw::spawn([i] { return i * i; });
  long sum = 0;
  for (int i = 0; i < n; ++i) {
    const int k = order(i);
    sum += f[k].join() == k * k ? k : 1000000;
  }
  return sum;
}

TEST(spawn, joins_in_any_order) {
  for_each_schedule([](const gw::options& o) {
    EXPECT_EQ(gw::run<long>(
                  [] {
                    return fan_out([](int i) { return i; }) + fan_out([](int i) { return 59 - i; }) +
                           fan_out([](int i) { return i * 37 % 60; });
                  },
                  o),
              3 * 59 * 60 / 2);
  });
}

[[gnu::noinline]] int chain(int n) {
  if (n == 0) return 0;
  return gw::spawn([n] { return chain(n - 1); }).join() + 1;
}

TEST(spawn, a_chain) {
  for_each_schedule([](const gw::options& o) { EXPECT_EQ(gw::run<int>([] { return chain(300); }, o), 300); });
}

// Children that outlive the function that made them: the join lies in another frame than the spawn.
[[gnu::noinline]] gw::future<int> start(int n) {
  return gw::spawn([n] {
    auto f = gw::spawn([n] { return n + 1; });
    return f.join() * 2;
  });
}

TEST(spawn, futures_returned_from_functions) {
  for_each_schedule([](const gw::options& o) {
    EXPECT_EQ(gw::run<int>(
                  [] {
                    auto a = start(1);
                    auto b = start(2);
                    auto c = std::move(a);
                    return b.join() * 100 + c.join();
                  },
                  o),
              604);
  });
}

TEST(spawn, detached_threads_run_before_the_end) {
  for_each_schedule([](const gw::options& o) {
    support::shared<std::atomic<int>> count;
    gw::run<int>(
        [c = count.get()] {
          for (int i = 0; i < 20; ++i)
            static_cast<void>(gw::spawn([c] {
              static_cast<void>(gw::spawn([c] { c->fetch_add(100); }));
              c->fetch_add(1);
            }));
          return 0;
        },
        o);
    EXPECT_EQ(count->load(), 2020);
  });
}

TEST(spawn, unforced_on_one_worker_goes_child_first) {
  support::shared<std::array<std::atomic<int>, 8>> trace;
  support::shared<std::atomic<int>> at;
  const auto note = [t = trace.get(), a = at.get()](int what) { (*t)[a->fetch_add(1)] = what; };
  gw::run<int>(
      [note] {
        auto f = gw::spawn([note] {
          note(1);
          auto g = gw::spawn([note] { note(2); });
          note(3);
          g.join();
        });
        note(4);
        f.join();
        return 0;
      },
      support::schedule(1));
  for (int i = 0; i < 4; ++i) EXPECT_EQ((*trace)[i].load(), i + 1);
}

TEST(spawn, ready_tells_the_truth) {
  for_each_schedule([](const gw::options& o) {
    EXPECT_EQ(gw::run<int>(
                  [] {
                    gw::future<int> none;
                    int bad = none.valid() + none.ready();
                    auto f = gw::spawn([] { return 1; });
                    bad += !f.valid();
                    while (!f.ready()) gw::yield();
                    bad += f.join() != 1;
                    return bad + f.valid() + f.ready();
                  },
                  o),
              0);
  });
}

// A tree whose shape depends on a hash, unbalanced, with work after the joins.
[[gnu::noinline]] std::uint64_t tree(std::uint64_t x, int depth) {
  x = (x ^ (x >> 29)) * 0x9E3779B97F4A7C15ull;
  if (depth == 0) return x | 1;
  const int children = static_cast<int>(x >> 62);
  std::array<gw::future<std::uint64_t>, 3> f;
  for (int i = 0; i < children; ++i) f[i] = gw::spawn([x, i, depth] { return tree(x + i, depth - 1); });
  std::uint64_t sum = x;
  for (int i = 0; i < children; ++i) sum = sum * 3 + f[i].join();
  return sum;
}
[[gnu::noinline]] std::uint64_t tree_serial(std::uint64_t x, int depth) {
  x = (x ^ (x >> 29)) * 0x9E3779B97F4A7C15ull;
  if (depth == 0) return x | 1;
  const int children = static_cast<int>(x >> 62);
  std::array<std::uint64_t, 3> f{};
  for (int i = 0; i < children; ++i) f[i] = tree_serial(x + i, depth - 1);
  std::uint64_t sum = x;
  for (int i = 0; i < children; ++i) sum = sum * 3 + f[i];
  return sum;
}

TEST(spawn, unbalanced_trees) {
  for_each_schedule([](const gw::options& o) {
    for (std::uint64_t root = 1; root <= 5; ++root)
      EXPECT_EQ(gw::run<std::uint64_t>([root] { return tree(root, 9); }, o), tree_serial(root, 9));
  });
}

TEST(spawn, yield_lets_others_run) {
  for_each_schedule([](const gw::options& o) {
    support::shared<std::atomic<int>> flag;
    EXPECT_EQ(gw::run<int>(
                  [f = flag.get()] {
                    auto waits = gw::spawn([f] {
                      while (f->load() == 0) gw::yield();
                      return 2;
                    });
                    f->store(1);
                    return waits.join();
                  },
                  o),
              2);
  });
}

}  // namespace
