// Policy lazy: spawns that are plain calls until somebody asks. Random trees with all that a frame can hold,
// compared with a serial run of the same function; what it refuses. docs/protocols/lazy.md
// (The policies' own suite runs under it as well: policy_test.cpp.)
// test: timeout=300 skip-asan skip-qemu
#include "support/schedule.hpp"
#include "support/shared.hpp"

#include <godwit/godwit.hpp>

#include <gtest/gtest.h>

#if defined(__x86_64__) && defined(__linux__)

#include <array>
#include <atomic>
#include <cstdlib>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <vector>

namespace {
namespace gw = godwit;
using word = unsigned long;

word mix(word x) {
  x ^= x >> 33;
  x *= 0xff51afd7ed558ccdUL;
  x ^= x >> 33;
  x *= 0xc4ceb9fe1a85ec53UL;
  return x ^ x >> 33;
}

std::atomic<long>* live_ = nullptr;  ///< owners, in memory that all workers share
[[noreturn]] void die(const char* what) {
  std::fprintf(stderr, "lazy_test: %s\n", what);
  std::abort();
}
/// Notices a wrong address, and a lost or doubled destructor.
struct owner {
  owner* self;
  word key;
  explicit owner(word k) : self(this), key(k) { live_->fetch_add(1); }
  owner(const owner&) = delete;
  ~owner() {
    if (self != this) die("an owner at the wrong address");
    self = nullptr;
    live_->fetch_sub(1);
  }
};

/// The same program without threads.
struct serial {
  template <class R>
  struct future {
    std::optional<R> value;
    std::string what;
    R join() {
      if (!value) throw std::runtime_error(what);
      return std::move(*value);
    }
  };
  template <class F>
  static auto spawn(F f) {
    future<decltype(f())> r;
    try {
      r.value.emplace(f());
    } catch (const std::exception& e) {
      r.what = e.what();
    }
    return r;
  }
};
struct quad {
  word a, b, c;
  double d;
};

void burn(word n) {
  for (word i = 0; i < n; ++i) asm volatile("" ::: "memory");
}
word number_in(const std::runtime_error& e) { return std::strtoul(e.what(), nullptr, 10); }

template <class P>
[[gnu::noinline]] word tree(int n, word seed);
template <class P>
[[gnu::noinline]] double real(int n, word seed) {
  return static_cast<double>(tree<P>(n, seed) & 0xffffff) * 0.5;
}
template <class P>
[[gnu::noinline]] quad four(int n, word seed) {
  const word v = tree<P>(n, seed);
  return {v, mix(v), mix(v + 1), static_cast<double>(v & 0xffff) / 4};
}
template <class P>
[[gnu::noinline]] std::string text(int n, word seed) {
  const word v = tree<P>(n, seed);
  return std::string(v % 40, 'x') + std::to_string(v);
}
/// Ordinary functions between the spawns, with room of any size.
template <class P>
[[gnu::noinline]] word plain(int n, word seed) {
  owner o(seed);
  const word k = 1 + seed % 30;
  auto* a = static_cast<volatile word*>(__builtin_alloca(k * sizeof(word)));
  for (word i = 0; i < k; ++i) a[i] = mix(seed + i);
  const word r = tree<P>(n, seed + 1);
  for (word i = 0; i < k; ++i)
    if (a[i] != mix(seed + i)) die("alloca");
  return r + o.key;
}
template <class F>
word outcome_of(F&& f) {
  try {
    return f();
  } catch (const std::runtime_error& e) {
    return number_in(e) * 3;
  }
}

/// Closures that own memory, and results that do.
template <class P>
[[gnu::noinline]] word owning(int n, word a, word b, word d) {
  auto pointer = std::make_unique<word>(d);
  std::vector<word> values{a, b, d};
  auto f = P::spawn([n, p = std::move(pointer)] { return tree<P>(n, *p); });
  auto g = P::spawn([n, values] { return text<P>(n, values[1]); });
  auto h = P::spawn([n, t = a, u = b, v = d] {
    if (t == 1 || u == v) die("a large closure");
    return four<P>(n, v);
  });
  word r = outcome_of([&] { return f.join(); });
  r += outcome_of([&] {
    word s = 0;
    for (const char c : g.join()) s = s * 31 + static_cast<word>(c);
    return s;
  });
  return r + outcome_of([&] {
           const quad q = h.join();
           return q.a ^ q.b ^ q.c ^ static_cast<word>(q.d);
         });
}
/// Threads that read what their ancestors hold.
template <class P>
[[gnu::noinline]] word referring(int n, word seed) {
  std::array<word, 4> values{mix(seed), mix(seed + 1), mix(seed + 2), mix(seed + 3)};
  auto f = P::spawn([&, n] { return tree<P>(n, values[0]) + values[1] + values[2]; });
  auto g = P::spawn([n, &values] { return tree<P>(n, values[3]); });
  return outcome_of([&] { return g.join(); }) * 5 + outcome_of([&] { return f.join(); });
}

template <class P>
word tree(int n, word seed) {
  owner o(seed);
  const word a = mix(seed ^ 1), b = mix(seed ^ 2), c = mix(seed ^ 3), d = mix(seed ^ 4), e = mix(seed ^ 5);
  const double x = static_cast<double>(a & 1023);
  burn(a % 300);
  if (n <= 0) {
    if (a % 29 == 0) throw std::runtime_error(std::to_string(seed % 1000000));
    return a;
  }
  volatile word memory[4] = {a, b, c, d};
  word r = 0;
  auto f1 =
      P::spawn([n, s = static_cast<unsigned>(a)] { return tree<P>(n - 1 - static_cast<int>(s & 1), s); });
  auto f2 = P::spawn([n, s = static_cast<unsigned>(b)] { return plain<P>(n - 2, s); });
  {
    owner inner(d);
    burn(b % 300);
    if (c % 3 == 0) {
      auto f3 = P::spawn([n, s = static_cast<unsigned>(c)] { return static_cast<word>(real<P>(n - 2, s)); });
      r += outcome_of([&] { return f3.join(); });
    }
    if (inner.key != d) die("inner");
  }
  if (d % 4 == 0) r += owning<P>(n - 3, a, b, d);
  if (d % 5 == 0) r += referring<P>(n - 3, e);
  if (e % 3 == 0)
    for (word i = 0; i < 3; ++i) {
      auto f = P::spawn([=] { return tree<P>(n - 3, mix(e + i)); });
      burn(e % 100);
      r = r * 7 + outcome_of([&] { return f.join(); });
    }
  r = r * 5 + outcome_of([&] { return f2.join(); });
  r = r * 3 + outcome_of([&] { return f1.join(); });
  if (a != mix(seed ^ 1) || b != mix(seed ^ 2) || c != mix(seed ^ 3) || d != mix(seed ^ 4) ||
      e != mix(seed ^ 5) || x != static_cast<double>(a & 1023))
    die("registers");
  if (memory[0] != a || memory[1] != b || memory[2] != c || memory[3] != d) die("memory");
  if (o.key != seed) die("owner");
  if (r % 11 == 0) throw std::runtime_error(std::to_string(r % 1000000));
  return r;
}

gw::options options(std::uint32_t workers, const char* force = "none", std::uint32_t delay_us = 0) {
  gw::options o = support::schedule(workers, force, delay_us, support::base_seed());
  o.policy = gw::choice::policy::lazy;
  return o;
}
using lazy = gw::policies::lazy;

/// Trees under @p o; how many were wrong.
long wrong_trees(const gw::options& o, word from, word count, int depth) {
  std::vector<word> expected;
  for (word i = 0; i < count; ++i)
    expected.push_back(outcome_of([&] { return tree<serial>(depth, mix(from + i)); }));
  return gw::run<long>(
      [&expected, from, count, depth] {
        long wrong = 0;
        for (word i = 0; i < count; ++i)
          wrong += outcome_of([&] { return tree<lazy>(depth, mix(from + i)); }) != expected[i];
        return wrong;
      },
      o);
}

TEST(lazy, random_trees_are_right_on_every_schedule) {
  support::shared<std::atomic<long>> live;
  live_ = &*live;
#ifdef GODWIT_LAZY_LOOKS
  const std::array<const char*, 4> forces{"none", "parents", "children", "random"};
#else
  const std::array<const char*, 1> forces{"none"};
#endif
  const word count = support::number_from_environment("LAZY_TREES", std::size(forces) == 1 ? 60 : 12);
  for (const char* force : forces)
    for (const std::uint32_t workers : {1u, 2u, 4u}) {
      const gw::options o = options(workers, force);
      SCOPED_TRACE(support::describe(o));
      EXPECT_EQ(wrong_trees(o, support::base_seed() % 100000, count, 9), 0);
      if (HasFailure()) return;
    }
}
TEST(lazy, what_lies_in_frames_ends_once) {
  support::shared<std::atomic<long>> live;
  live_ = &*live;
  for (const std::uint32_t workers : {2u, 4u}) {
    EXPECT_EQ(wrong_trees(options(workers), support::base_seed() % 100000 + 1000, 20, 9), 0);
    EXPECT_EQ(live_->load(), 0);
  }
}

template <class P>
[[gnu::noinline]] long fib(int n) {
  if (n < 2) return n;
  auto x = P::spawn([n] { return fib<P>(n - 1); });
  const long y = fib<P>(n - 2);
  return x.join() + y;
}
/// Results that the caller could know without looking: who takes the parent looks.
[[gnu::noinline]] long known_results(int n) {
  if (n == 0) return 0;
  auto one = lazy::spawn([] {
    gw::yield();
    return 1L;
  });
  auto text = lazy::spawn([] {
    gw::yield();
    return std::string("a text that is longer than what fits into a string");
  });
  const long below = known_results(n - 1);
  return below + one.join() + (text.join().size() == 50 ? 1 : 100);
}
TEST(lazy, results_that_are_known) {
  for (const std::uint32_t workers : {1u, 2u})
    EXPECT_EQ(gw::run<long>([] { return known_results(200); }, options(workers)), 400);
}

#ifndef GODWIT_LAZY_LOOKS
/// Until somebody has stolen: on a busy machine thieves may be late.
TEST(lazy, parents_are_stolen_from_plain_calls) {
  std::uint64_t steals = 0, exposures = 0;
  for (int i = 0; i < 50 && steals == 0; ++i) {
    EXPECT_EQ(gw::run<long>([] { return fib<lazy>(34); }, options(2)), 5702887);
    for (const gw::worker_stats& w : gw::last_run_stats()) {
      steals += w.steals;
      exposures += w.exposures;
    }
  }
  EXPECT_GT(steals, 0u);
  EXPECT_GT(exposures, 0u);
}
/// Without anybody who asks nothing is ever written down.
TEST(lazy, nothing_is_found_where_nobody_asks) {
  EXPECT_EQ(gw::run<long>([] { return fib<lazy>(25); }, options(1)), 75025);
  for (const gw::worker_stats& w : gw::last_run_stats()) EXPECT_EQ(w.exposures + w.suspends + w.steals, 0u);
}
#endif

/// A leaf cancels. Nobody joins below the scope before all leaves have been.
struct search {
  std::atomic<long> leaves{0};
};
template <class R>
[[gnu::noinline]] R look(search* s, int n, gw::cancel_token token) {
  if (n == 0) {
    burn(100);
    if (++s->leaves == 100) token.cancel();
    return {};
  }
  std::array<gw::future<R>, 2> halves{lazy::spawn([=] { return look<R>(s, n - 1, token); }),
                                      lazy::spawn([=] { return look<R>(s, n - 1, token); })};
  for (auto& h : halves) static_cast<void>(h.join());
  return {};
}
template <class R>
void cancels_a_search() {
  support::shared<search> shared;
  constexpr int depth = 18;
  for (const std::uint32_t workers : {1u, 2u}) {
    shared->leaves = 0;
    EXPECT_FALSE(gw::run<bool>(
        [s = shared.get()] {
          gw::cancel_scope scope;
          return scope.run([&] { return look<R>(s, depth, scope.token()); }).has_value();
        },
        options(workers)));
    EXPECT_LT(shared->leaves, workers == 1 ? 110 : 1 << depth);
  }
}
TEST(lazy, a_request_is_seen_where_a_child_returns_that_was_found) {
  cancels_a_search<long>();
  cancels_a_search<std::string>();  // which lies in the frame, and ends
}

/// Waits above a stack that is deep: all of it leaves, thread by thread.
[[gnu::noinline]] long deep(int n) {
  if (n == 0) {
    auto a = lazy::spawn([] {
      gw::yield();
      return 1L;
    });
    gw::yield();
    return a.join();
  }
  auto x = lazy::spawn([n] { return deep(n - 1); });
  return x.join() + 1;
}
TEST(lazy, a_deep_stack) {
#ifdef GODWIT_LAZY_LOOKS  // there what the runtime leaves on the stack passes for references to ancestors
  constexpr int depth = 1000;
#else
  constexpr int depth = 20000;
#endif
  for (const std::uint32_t workers : {1u, 2u})
    EXPECT_EQ(gw::run<long>([] { return deep(depth); }, options(workers)), depth + 1);
}

std::string refusal(const gw::options& o, long (*f)(int) = fib<lazy>) {
  try {
    gw::run<long>([f] { return f(5); }, o);
  } catch (const std::exception& e) {
    return e.what();
  }
  return "";
}
TEST(lazy, is_refused_where_it_cannot_be_had) {
  gw::options o = options(2);
  o.substrate = gw::choice::substrate::threads;
  EXPECT_NE(refusal(o).find("policy=lazy copies stacks between workers that are processes"),
            std::string::npos);
#ifndef GODWIT_LAZY_LOOKS
  EXPECT_NE(refusal(options(2, "random")).find("-DGODWIT_LAZY_LOOKS"), std::string::npos);
#endif
}
TEST(lazy, spawns_of_other_policies_are_reported) {
  EXPECT_NE(refusal(options(1), fib<gw::policies::greedy>).find("this run's policy is lazy"),
            std::string::npos);
}
/// In a run of another policy such a spawn is a call.
TEST(lazy, is_a_call_under_other_policies) {
  gw::options o = options(2);
  o.policy = gw::choice::policy::greedy;
  EXPECT_EQ(gw::run<long>([] { return fib<lazy>(20); }, o), 6765);
  EXPECT_EQ(fib<lazy>(10), 55);
}

}  // namespace
#endif
