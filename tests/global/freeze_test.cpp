// Memory that is only read: include/godwit/freeze.hpp, docs/protocols/frozen.md. Runs under MPI as well
// (tests/mpi), where other hosts have copies.
// test: timeout=240
#include <gtest/gtest.h>
#include <godwit/godwit.hpp>

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <span>

#include "support/child.hpp"
#include "support/schedule.hpp"

namespace gw = godwit;

namespace {

using word = std::uint64_t;
constexpr word unit_words = (16 << 10) / sizeof(word);
constexpr word units = 6, n = units * unit_words;

void write_all(gw::global_ptr<word> p, word round) {
  const auto s = gw::checkout(p, n, gw::access::write);
  for (word i = 0; i < n; ++i) s[i] = round * n + i;
}
/// How many are not what write_all wrote, by checkouts, begun ones and gets.
word wrong_of(gw::global_ptr<word> p, word round) {
  word wrong = 0;
  const gw::global_ptr<const word> r = p;
  {
    const auto s = gw::checkout(r, n, gw::access::read);
    for (word i = 0; i < n; i += 7) wrong += s[i] != round * n + i;
  }
  {
    auto begun = gw::checkout_begin(r, n, gw::access::read);
    const auto s = begun.complete();
    for (word i = 3; i < n; i += 11) wrong += s[i] != round * n + i;
  }
  for (word u = 0; u < units; ++u) wrong += gw::get(r + u * unit_words) != round * n + u * unit_words;
  return wrong;
}
/// By a thread on each worker, and by some that may go anywhere.
word wrong_everywhere(gw::global_ptr<word> p, word round) {
  word wrong = 0;
  for (std::uint32_t w = 0; w < gw::worker_count(); ++w)
    wrong += gw::spawn_at(gw::worker{w}, [=] { return wrong_of(p, round); }).join();
  auto one = gw::spawn([=] { return wrong_of(p, round); });
  wrong += wrong_of(p, round);
  return wrong + one.join();
}

gw::distribution a_distribution(word i) {
  switch (i % 4) {
    case 0:
      return gw::distribution::at(static_cast<std::uint32_t>(i / 4 % gw::worker_count())).movable(4096);
    case 1:
      return gw::distribution::blocked();
    case 2:
      return gw::distribution::cyclic(4096).movable(4096);
    default:
      return gw::distribution::cyclic(1024);
  }
}

// Whoever wrote it, however often it is frozen and thawed: what is read is what was written last, also beside
// other memory that is frozen all the time, and in addresses that are used again.
TEST(Freeze, WhatIsReadIsWhatWasWrittenLast) {
  const word repeat = support::number_from_environment("STRESS_REPEAT", 1);
  for (word row = 0; row < 6 * repeat; ++row) {
    gw::options o = support::schedule(row % 2 == 0 ? 4 : 2, row % 2 == 0 ? "random" : "none",
                                      row % 3 == 0 ? 5 : 0, support::base_seed() + row);
    if (row % 3 == 2) o.cache_bytes = 1 << 20;
    SCOPED_TRACE(support::describe(o));
    const auto wrong = gw::run<word>(
        [row] {
          word bad = 0;
          const auto always = gw::allocate<word>(n, a_distribution(row + 1));
          write_all(always, 1000);
          gw::freeze(always);
          for (word life = 0; life < 3; ++life) {
            const auto p = gw::allocate<word>(n, a_distribution(row));
            for (word round = 0; round < 3; ++round) {
              const word now = life * 3 + round;
              const auto writer = static_cast<std::uint32_t>(now % gw::worker_count());
              gw::spawn_at(gw::worker{writer}, [=] { write_all(p, now); }).join();
              if (now % 4 != 3) gw::freeze(p);
              bad += wrong_everywhere(p, now);
              if (now % 3 == 1 && row % 2 == 0)
                gw::move(p, n, writer == 0 ? gw::worker_count() - 1 : 0).join();
              bad += wrong_everywhere(p, now) + wrong_of(always, 1000);
              if (round != 2) gw::thaw(p);  // deallocate does it, too
            }
            gw::deallocate(p, n);
          }
          gw::deallocate(always, n);
          return bad;
        },
        o);
    EXPECT_EQ(wrong, 0u);
    if (testing::Test::HasFailure()) return;
  }
}

struct fetched {
  word hosts, units;
};
/// Units that are fetched while all workers read what one has, again and again.
fetched fetches(bool frozen) {
  gw::options o = support::schedule(4, "none", 0, 1);
  o.force_move = gw::choice::force_move::none;
  const word far = gw::run<word>(
      [frozen] {
        const auto p =
            gw::allocate<word>(n, gw::distribution::user(n * sizeof(word), [](auto...) { return 0u; }));
        write_all(p, 5);
        if (frozen && !gw::freeze(p)) return ~word{0};
        word elsewhere = 0, wrong = 0;
        for (std::uint32_t w = 0; w < gw::worker_count(); ++w)
          elsewhere += gw::spawn_at(gw::worker{w}, [p] {
                         return gw::try_local(p, 1) == nullptr ? word{1} : word{0};
                       }).join();
        for (int i = 0; i < 10; ++i)
          for (std::uint32_t w = 0; w < gw::worker_count(); ++w)
            wrong += gw::spawn_at(gw::worker{w}, [p] {
                       const auto s = gw::checkout(gw::global_ptr<const word>(p), n, gw::access::read);
                       return s[9] == 5 * n + 9 ? word{0} : word{1};
                     }).join();
        gw::deallocate(p, n);
        return wrong != 0 ? ~word{0} : elsewhere;
      },
      o);
  word sum = 0;
  if (gw::is_first_process())
    for (const gw::worker_stats& s : gw::last_run_stats()) sum += s.global_fetches;
  return {far, sum};
}

TEST(Freeze, CopiesStayGoodOverAcquires) {
  const fetched without = fetches(false), with = fetches(true);
  ASSERT_EQ(with.hosts, without.hosts);
  ASSERT_NE(with.hosts, ~word{0}) << "what was read is wrong";
  if (!gw::is_first_process()) return;
  if (with.hosts == 0) {
    EXPECT_EQ(with.units + without.units, 0u) << "one host has no copies";
  } else {
    EXPECT_GE(without.units, 10 * units) << "each acquire makes them old";
    EXPECT_LE(with.units, with.hosts * units) << "each host fetches each once";
    EXPECT_GE(with.units, units);
  }
}

// With several hosts a write ends the run, also without check_global: tests/mpi/extras.cmake looks at what is
// said. FREEZE_WRITE: how it is written.
TEST(FreezeFar, DISABLED_AWriteEndsTheRun) {
  const word how = support::number_from_environment("FREEZE_WRITE", 0);
  gw::options o = support::schedule(0);
  o.check_global = gw::choice::check_global::off;
  gw::run<void>(
      [how] {
        const auto p = gw::allocate<word>(n, gw::distribution::blocked());
        write_all(p, 1);
        gw::freeze(p);
        const auto last = p + (n - 5);
        if (how == 0) gw::put(last, word{2});
        if (how == 1) gw::atomic_fetch_add(last, word{2});
        if (how == 2) gw::checkout(last, 5, gw::access::write);
        if (how == 3) gw::put_async(last, word{2}).join();
        if (how == 4) gw::copy_n(p, 5, last);
        if (how == 5) gw::put(p, word{2});
      },
      o);
}

support::outcome ends(const std::function<void(gw::global_ptr<word>)>& body) {
  return support::run_child([&] {
    gw::options o;
    o.workers = 2;
    o.check_global = gw::choice::check_global::on;
    for (const char* name : {"GODWIT_CHECK_GLOBAL", "GODWIT_WORKERS"}) unsetenv(name);
    return gw::run(
        0, nullptr,
        [&body] {
          const auto p = gw::allocate<word>(100, gw::distribution::cyclic(64));
          body(p);
          gw::deallocate(p, 100);
          std::puts("reached the end");
        },
        o);
  });
}
void expect_ends(const std::function<void(gw::global_ptr<word>)>& body, const char* says) {
  const auto o = ends(body);
  EXPECT_NE(o.status, 0) << show(o);
  EXPECT_EQ(o.out.find("reached the end"), std::string::npos) << show(o);
  EXPECT_TRUE(o.err_has(says)) << "'" << says << "' is not in\n" << show(o);
}

TEST(FreezeMistakes, WhoWritesIsNamed) {
  const char* const says = "which is frozen (gw::freeze)";
  expect_ends([](auto p) { gw::freeze(p), gw::put(p, word{1}); }, says);
  expect_ends([](auto p) { gw::freeze(p + 50), *(p + 3) = word{1}; }, says);
  expect_ends([](auto p) { gw::freeze(p), gw::atomic_fetch_add(p, word{1}); }, says);
  expect_ends([](auto p) { gw::freeze(p), gw::put_async(p, word{1}).join(); }, says);
  expect_ends([](auto p) { gw::freeze(p), gw::copy_n(p + 50, 2, p); }, says);
  expect_ends(
      [](auto p) {
        gw::freeze(p);
        const word v = 1;
        gw::scatter<word>(std::span(&v, 1), std::span<const gw::global_ptr<word>>(&p, 1));
      },
      says);
  expect_ends([](auto p) { gw::freeze(p), gw::checkout(p, 5, gw::access::read_write); }, "freeze_test.cpp:");
  expect_ends([](auto p) { gw::freeze(p), gw::checkout(p, 5, gw::access::write); }, says);
  expect_ends([](auto p) { gw::freeze(p), gw::pin(p, 5); }, says);
}

TEST(FreezeMistakes, WhatDoesNotGoSaysSo) {
  expect_ends(
      [](auto p) {
        const auto s = gw::checkout(p, 5, gw::access::read_write);
        gw::freeze(p);
      },
      "is held across a freeze at");
  expect_ends([](auto) { gw::freeze(gw::global_ptr<word>()); }, "a null global_ptr");
  expect_ends([](auto p) { gw::thaw(p + (1 << 20)); }, "no live allocation");
}

TEST(FreezeMistakes, ThawIsAnOrdinaryEnd) {
  const auto o = ends([](auto p) {
    gw::thaw(p);  // it was not frozen
    const auto own = gw::allocate<word>(5);
    if (gw::freeze(own)) std::abort();
    gw::put(own, word{1});
    gw::deallocate(own, 5);
    gw::freeze(p);
    if (!gw::freeze(p)) std::abort();
    static_cast<void>(gw::atomic_load(p));
    gw::thaw(p);
    gw::put(p, word{3});
    if (gw::get(p) != 3) std::abort();
    gw::freeze(p);
  });
  EXPECT_EQ(o.status, 0) << show(o);
  EXPECT_NE(o.out.find("reached the end"), std::string::npos) << show(o);
}

}  // namespace
