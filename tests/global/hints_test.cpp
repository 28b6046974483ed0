// Who is asked for movable memory of other hosts (docs/moving.md, docs/protocols/move.md MV12): tables of a
// bounded size change nothing but the number of messages, requests are sent on, and all is counted exactly.
// Runs under MPI as well (tests/mpi), where all of it happens: sending on needs three hosts.
#include <gtest/gtest.h>
#include <godwit/godwit.hpp>

#include "support/schedule.hpp"

#include <array>
#include <cstdint>
#include <string>

namespace gw = godwit;

namespace {

using gw::choice::translations_lock;
using gw::choice::translations_replace;

constexpr std::uint64_t page = 4096, words_of_page = page / 8;

template <class F>
std::string in_a_run(const gw::options& o, F f) {
  return gw::run<std::string>([f] { return std::string(f()); }, o);
}

struct table_kind {
  std::uint64_t entries;
  translations_replace replace;
  translations_lock lock;
};
constexpr std::array<table_kind, 5> tables = {
    {{0, translations_replace::lru, translations_lock::none},
     {2, translations_replace::lru, translations_lock::none},
     {20, translations_replace::random, translations_lock::none},
     {3, translations_replace::random, translations_lock::single_lock},
     {24, translations_replace::lru, translations_lock::concurrent}}};
void take(gw::options& o, const table_kind& t) {
  o.translations = t.entries;
  o.translations_replace = t.replace;
  o.translations_lock = t.lock;
}

gw::worker_stats sum_of_stats() {
  gw::worker_stats all{};
  for (const gw::worker_stats& w : gw::last_run_stats()) {
    all.translations += w.translations;
    all.translation_hits += w.translation_hits;
    all.translation_stale += w.translation_stale;
    all.translation_misses += w.translation_misses;
    all.translation_evictions += w.translation_evictions;
    all.forwards += w.forwards;
  }
  return all;
}

/// Threads that add, put, get and check out, while the parts move all the time.
std::string accesses_under_moves(std::uint64_t each) {
  constexpr std::uint64_t threads = 4, parts = 40;
  const auto p =
      gw::allocate<std::uint64_t>(parts * words_of_page, gw::distribution::cyclic(page).movable(page));
  for (std::uint64_t b = 0; b < parts; ++b)
    for (std::uint64_t t = 0; t <= threads; ++t) gw::put(p + (b * words_of_page + t), 0);
  std::array<gw::future<std::uint64_t>, threads> all;
  for (std::uint64_t t = 0; t < threads; ++t)
    all[t] = gw::spawn([=] {
      std::uint64_t wrong = 0;
      for (std::uint64_t i = 0; i < each; ++i) {
        const auto at = p + (t * each + i) * 7 % parts * words_of_page;
        gw::atomic_fetch_add(at, std::uint64_t{1}, std::memory_order_relaxed);
        const auto own = at + (1 + t);
        const std::uint64_t before = gw::get(own);
        gw::put(own, before + 3);
        wrong += gw::get(own) != before + 3;
        if (i % 16 == 0) gw::move(at, static_cast<std::uint32_t>(i / 16 % gw::worker_count())).join();
      }
      return wrong;
    });
  std::uint64_t wrong = 0, sum = 0, own = 0;
  for (auto& f : all) wrong += f.join();
  for (std::uint64_t b = 0; b < parts; ++b) {
    sum += gw::get(p + b * words_of_page);
    for (std::uint64_t t = 1; t <= threads; ++t) own += gw::get(p + (b * words_of_page + t));
  }
  gw::deallocate(p, parts * words_of_page);
  if (wrong == 0 && sum == threads * each && own == 3 * threads * each) return "";
  return std::to_string(wrong) + " wrong, sums " + std::to_string(sum) + ", " + std::to_string(own);
}

TEST(Hints, NothingIsLostWhateverIsRemembered) {
  for (const table_kind& t : tables)
    for (const auto force : {gw::choice::force_move::none, gw::choice::force_move::random}) {
      gw::options o;
      take(o, t);
      o.force_move = force;
      EXPECT_EQ(in_a_run(o, [] { return accesses_under_moves(96); }), "") << t.entries;
      if (!gw::is_first_process()) continue;
      const gw::worker_stats s = sum_of_stats();
      EXPECT_EQ(s.translations, s.translation_hits + s.translation_stale + s.translation_misses);
      if (t.entries == 0) {
        EXPECT_EQ(s.translation_misses + s.translation_evictions, 0u);
      }
    }
}

// Memory that was given out again has new parts: what was known of the old ones leads nobody astray.
TEST(Hints, OfMemoryThatIsUsedAgain) {
  for (const table_kind& t : tables) {
    gw::options o;
    take(o, t);
    EXPECT_EQ(in_a_run(o,
                       [] {
                         for (std::uint64_t round = 0; round < 5; ++round) {
                           const auto p = gw::allocate<std::uint64_t>(
                               8 * words_of_page, gw::distribution::cyclic(page).movable(page));
                           for (std::uint64_t b = 0; b < 8; ++b) {
                             const auto at = p + b * words_of_page;
                             gw::put(at, b + round);
                             for (std::uint64_t i = round; i < 4; ++i)
                               gw::move(at, static_cast<std::uint32_t>((b + i) % gw::worker_count())).join();
                           }
                           for (std::uint64_t b = 0; b < 8; ++b)
                             if (gw::get(p + b * words_of_page) != b + round)
                               return "round " + std::to_string(round);
                           gw::deallocate(p, 8 * words_of_page);
                         }
                         return std::string();
                       }),
              "");
  }
}

/// A host each; 0 asks, 1 is the home, 2 is given the parts.
struct three_hosts {
  static constexpr std::uint64_t parts = 12;
  gw::global_ptr<std::uint64_t> p;
  bool there = true;
  three_hosts() {
    if (gw::worker_count() < 3 || gw::worker_count() > 8) {
      there = false;
      return;
    }
    for (std::uint32_t w = 0; w < 3; ++w) {
      const auto probe = gw::allocate<std::uint64_t>(1, gw::distribution::at(w));
      const bool near = gw::try_local(probe, 1) != nullptr;
      there = there && near == (w == gw::worker_id());
      gw::deallocate(probe, 1);
    }
    if (there) p = gw::allocate<std::uint64_t>(parts * words_of_page, gw::distribution::at(1).movable(page));
  }
  void give(std::uint32_t to) const { gw::move(p, parts * words_of_page, to).join(); }
};

enum class known { all, old, nothing };
/// One access to each part, by worker 0. The value: "" or why not.
std::string access_each(known what, int how) {
  const three_hosts h;
  if (!h.there) return "skip";
  h.give(2);
  const auto p = h.p;
  const auto each = [=](int kind) {
    gw::on_each_worker([=] {
      if (gw::worker_id() != 0) return;
      for (std::uint64_t i = 0; i < three_hosts::parts; ++i) {
        const auto at = p + i * words_of_page;
        if (kind == 0) gw::put(at, i);
        if (kind == 1) static_cast<void>(gw::get(at));
        if (kind == 2) gw::atomic_fetch_add(at, i, std::memory_order_relaxed);
        if (kind == 3) static_cast<void>(gw::owner_of(at));
      }
    });
  };
  if (what != known::nothing) each(0);
  if (what == known::old) h.give(1);
  each(how);
  for (std::uint64_t i = 0; i < three_hosts::parts; ++i)
    if (how == 0 && gw::worker_id() != 0 && gw::get(p + i * words_of_page) != i) return "wrong";
  gw::deallocate(p, three_hosts::parts * words_of_page);
  return "";
}

// Three messages where a redirect would take four, and the owner is known from then on.
TEST(Hints, RequestsAreSentOn) {
  constexpr std::uint64_t n = three_hosts::parts;
  for (const std::uint64_t entries : {std::uint64_t{0}, std::uint64_t{4}})
    for (const known what : {known::nothing, known::old, known::all})
      for (int how = 0; how < 4; ++how) {
        gw::options o;
        o.translations = entries;
        const std::string said = in_a_run(o, [=] { return access_each(what, how); });
        if (said == "skip") GTEST_SKIP() << "needs three hosts of a worker each";
        EXPECT_EQ(said, "");
        if (!gw::is_first_process()) continue;
        const gw::worker_stats& w = gw::last_run_stats().front();
        const std::uint64_t first = what == known::nothing ? 0 : n;
        EXPECT_EQ(w.translations, first + n);
        EXPECT_EQ(w.far_puts, first + (how == 0 ? n : 0));
        if (entries == 0) {  // the home by the distribution is a hint like others
          EXPECT_EQ(w.translation_stale, what == known::old ? 2 * n : n);
          EXPECT_EQ(w.translation_hits, what == known::all ? n : 0);
          EXPECT_EQ(w.forwards, w.translation_stale);
        } else {  // forgotten before they are used: the home has them again, or knows who has
          EXPECT_EQ(w.translation_misses, first + n);
          EXPECT_EQ(w.translation_evictions, first + n - entries);
          EXPECT_EQ(w.forwards, what == known::old ? n : first + n);
        }
      }
}

}  // namespace
