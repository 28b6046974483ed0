// Faults of other systems that move memory, each as a test of ours: what HPX-5's source, and issues of
// Charm++ and HPX, show can go wrong with a move. Who did it stands above each test. Runs under MPI as well
// (tests/mpi), where most of it happens; on one host the counts of messages are all zero.
// test: timeout=120
//
// STRESS_MOVES=n: moves of the test of budgets and pages (default 3,200). docs/protocols/move.md.
#include <gtest/gtest.h>
#include <godwit/godwit.hpp>

#include "support/schedule.hpp"

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdint>
#include <string>
#include <sys/mman.h>
#include <vector>

namespace gw = godwit;

namespace {

constexpr std::uint64_t page = 4096, words_of_page = page / 8;
using words = gw::global_ptr<std::uint64_t>;

/// Empty: all right.
template <class F>
std::string in_a_run(const gw::options& o, F f) {
  return gw::run<std::string>([f] { return std::string(f()); }, o);
}

std::uint64_t sum_of_last_run(std::uint64_t gw::worker_stats::*counter) {
  std::uint64_t sum = 0;
  for (const auto& w : gw::last_run_stats()) sum += w.*counter;
  return sum;
}

std::uint32_t mix(std::uint64_t i) { return static_cast<std::uint32_t>(i * 0x9e3779b97f4a7c15u >> 40); }

words movable_at(std::uint32_t worker, std::uint64_t parts = 1) {
  return gw::allocate<std::uint64_t>(parts * words_of_page, gw::distribution::at(worker).movable(page), page);
}

constexpr std::uint32_t most_workers = 64;
using numbers = std::array<std::uint64_t, most_workers>;
/// Asks all workers; what it needs for that lives as long as it does.
class all_workers {
 public:
  all_workers() : room_(gw::allocate<std::uint64_t>(most_workers, gw::distribution::at(0))) {}
  /// What f() gives back on each.
  template <class F>
  numbers ask(F f) const {
    gw::on_each_worker([f, room = room_] { gw::put(room + gw::worker_id(), f()); });
    numbers all{};
    gw::get(room_, all.data(), gw::worker_count());
    return all;
  }
  void end() const { gw::deallocate(room_, most_workers); }

 private:
  words room_;
};
template <class F>
numbers of_all_workers(F f) {
  const all_workers all;
  const numbers found = all.ask(f);
  all.end();
  return found;
}
std::uint64_t used_bytes() { return gw::global_memory_usage().used_bytes; }

/// The lowest worker of each worker's host.
numbers hosts() {
  const std::uint32_t n = gw::worker_count();
  const words marks = gw::allocate<std::uint64_t>(2 * n, gw::distribution::cyclic(16));
  const auto all = of_all_workers([=] {
    std::uint64_t first = 0;
    while (gw::try_local(marks + 2 * first) == nullptr) ++first;
    return first;
  });
  gw::deallocate(marks, 2 * n);
  return all;
}

// HPX-5: tryMove looks at the pins, but not at the owner: both of two movers send the bytes, and free them.
std::string many_movers_of_one_part(std::uint64_t rounds) {
  constexpr std::uint32_t movers = 4;
  const std::uint32_t n = gw::worker_count();
  const all_workers workers;
  const numbers before = workers.ask(used_bytes);
  const words p = movable_at(n - 1);
  for (std::uint64_t i = 0; i < words_of_page; ++i) gw::put(p + i, i * 7);
  std::uint64_t ended = 0;
  for (std::uint64_t r = 0; r < rounds; ++r) {
    std::array<gw::future<gw::move_result>, movers> all;
    for (std::uint32_t m = 0; m < movers; ++m)
      all[m] = gw::spawn([=] { return gw::move(p, mix(r * movers + m) % n).join(); });
    for (auto& f : all) ended += f.join() != gw::move_result::no_room;
    const std::uint32_t owner = gw::owner_of(p);
    for (const std::uint64_t seen : workers.ask([p] { return std::uint64_t{gw::owner_of(p)} + 1; }))
      if (seen != 0 && seen != owner + 1) return "two owners in round " + std::to_string(r);
  }
  if (ended != rounds * movers) return "no room";
  for (std::uint64_t i = 0; i < words_of_page; ++i)
    if (gw::get(p + i) != i * 7) return "word " + std::to_string(i);
  gw::deallocate(p, words_of_page);
  if (workers.ask(used_bytes) != before) return "budgets";
  workers.end();
  return "";
}

TEST(MoveFaults, OneOfSeveralMoversHasThePartAndAllEnd) {
  support::for_each_schedule(
      [](const gw::options& o) { EXPECT_EQ(in_a_run(o, [] { return many_movers_of_one_part(10); }), ""); });
}

// HPX PR #6985: a move to where the block already is leaves it pinned.
TEST(MoveFaults, AMoveToWhereItIsLeavesNothingHeld) {
  EXPECT_EQ(in_a_run(support::schedule(4),
                     [] {
                       const std::uint32_t n = gw::worker_count();
                       const words p = movable_at(1);
                       gw::put(p, 3);
                       for (std::uint32_t i = 0; i < 3 * n; ++i) {
                         const std::uint32_t here = gw::owner_of(p);
                         for (int k = 0; k < 3; ++k)
                           if (gw::move(p, here).join() != gw::move_result::already_there)
                             return "not there: " + std::to_string(i);
                         gw::checkout(p, 1, gw::access::read_write)[0] += 1;
                         if (gw::move(p, (here + 1) % n).join() != gw::move_result::moved)
                           return "held: " + std::to_string(i);
                       }
                       const std::uint64_t value = gw::get(p);
                       gw::deallocate(p, words_of_page);
                       return value == 3 + 3 * n ? std::string() : "value " + std::to_string(value);
                     }),
            "");
}

// HPX-5: the owner is another one before the bytes are there. Nobody writes: whoever reads must never see
// anything else than what was there.
std::string readers_beside_moves(std::uint64_t moves) {
  constexpr std::uint64_t parts = 3, readers = 4;
  const std::uint32_t n = gw::worker_count();
  const words p = movable_at(0, parts), done = gw::allocate<std::uint64_t>(1, gw::distribution::at(0));
  gw::put(done, 0);
  for (std::uint64_t i = 0; i < parts * words_of_page; ++i) gw::put(p + i, ~i);
  std::array<gw::future<std::uint64_t>, readers> all;
  for (std::uint64_t t = 0; t < readers; ++t)
    all[t] = gw::spawn([=] {
      std::uint64_t wrong = 0;
      for (std::uint64_t i = 0; gw::atomic_load(done) == 0; ++i) {
        const std::uint64_t at = mix(i * readers + t) % (parts * words_of_page - 8);
        wrong += gw::get(p + at) != ~at;
        std::array<std::uint64_t, 8> some{};
        gw::get(p + at, some.data(), some.size());
        for (std::uint64_t k = 0; k < some.size(); ++k) wrong += some[k] != ~(at + k);
        auto c = gw::checkout(p + at, 8, gw::access::read);
        for (std::uint64_t k = 0; k < c.size(); ++k) wrong += c[k] != ~(at + k);
        c.checkin();
        if (i % 16 == 0) wrong += gw::owner_of(p + at) >= n;
        if (i % 4 == 0) gw::yield();
      }
      return wrong;
    });
  for (std::uint64_t i = 0; i < moves; ++i)
    gw::move(p + mix(i) % parts * words_of_page, mix(i + 7) % n).join();
  gw::atomic_store(done, 1);
  std::uint64_t wrong = 0;
  for (auto& f : all) wrong += f.join();
  gw::deallocate(done, 1);
  gw::deallocate(p, parts * words_of_page);
  return wrong == 0 ? "" : std::to_string(wrong) + " values that never were";
}

TEST(MoveFaults, TheBytesAreThereBeforeTheOwnerIs) {
  support::for_each_schedule(
      [](const gw::options& o) { EXPECT_EQ(in_a_run(o, [] { return readers_beside_moves(40); }), ""); });
}

// HPX-5: pins are admitted while a mover waits for those that there are, and unpin wakes nobody. Several
// threads of a host use a part so that nearly always one of them has it checked out.
std::string mover_beside_users(std::uint64_t moves) {
  constexpr std::uint64_t users = 4;
  const std::uint32_t n = gw::worker_count();
  const words p = movable_at(0), done = gw::allocate<std::uint64_t>(1, gw::distribution::at(0));
  gw::put(done, 0);
  for (std::uint64_t i = 0; i < users; ++i) gw::put(p + 8 * i, 0);
  std::array<gw::future<std::uint64_t>, users> all;
  for (std::uint64_t t = 0; t < users; ++t)
    all[t] = gw::spawn([=] {
      std::uint64_t times = 0;
      for (; gw::atomic_load(done, std::memory_order_relaxed) == 0; ++times) {
        if (times % 16 == 0) gw::yield();
        const auto c = gw::checkout(p + 8 * t, 1, gw::access::read_write);
        const auto until = std::chrono::steady_clock::now() + std::chrono::microseconds(100);
        while (std::chrono::steady_clock::now() < until) {
        }
        ++c[0];
      }
      return times;
    });
  std::uint64_t busy = 0, moved = 0;
  for (std::uint64_t i = 0; moved < moves && busy < 10 * moves; ++i) {
    const gw::move_result r = gw::move(p, mix(i) % n).join();
    moved += r != gw::move_result::busy;
    busy += r == gw::move_result::busy;
  }
  gw::atomic_store(done, 1);
  std::string wrong = moved == moves ? "" : std::to_string(busy) + " moves in vain";
  for (std::uint64_t t = 0; t < users; ++t)
    if (const std::uint64_t times = all[t].join(); gw::get(p + 8 * t) != times)
      wrong += " user " + std::to_string(t) + ": " + std::to_string(gw::get(p + 8 * t)) + " of " +
               std::to_string(times);
  gw::deallocate(done, 1);
  gw::deallocate(p, words_of_page);
  return wrong;
}

TEST(MoveFaults, UsersDoNotStarveAMover) {
  for (const std::uint32_t workers : {2u, 6u})
    EXPECT_EQ(in_a_run(support::schedule(workers), [] { return mover_beside_users(6); }), "");
}

// HPX #4007: a block moves while somebody has it pinned. A mover waits, gives up, and everything is as it
// was: the holder's write, who waited to use the part meanwhile, and the next move.
std::string move_given_up() {
  const std::uint32_t n = gw::worker_count();
  const words p = movable_at(gw::worker_id()),
              flags = gw::allocate<std::uint64_t>(2, gw::distribution::at(0));
  gw::put(p, 0);
  gw::put(p + 1, 0);
  gw::put(flags, 0);
  gw::put(flags + 1, 0);
  const auto wait_for = [flags](std::ptrdiff_t i) {
    while (gw::atomic_load(flags + i) == 0) gw::yield();
  };
  auto mover = gw::spawn([=] {
    wait_for(0);
    const std::uint32_t before = gw::owner_of(p),
                        to = gw::worker_id() != before ? gw::worker_id() : (before + 1) % n;
    const gw::move_result r = gw::move(p, to).join();
    const bool right = r != gw::move_result::busy || gw::owner_of(p) == before;
    gw::atomic_store(flags + 1, 1);
    return right;
  });
  auto user = gw::spawn([=] {
    wait_for(0);
    for (int i = 0; i < 20; ++i) gw::atomic_fetch_add(p + 1, std::uint64_t{1});
  });
  {
    auto held = gw::checkout(p, 1, gw::access::read_write);
    gw::atomic_store(flags, 1);
    const auto since = std::chrono::steady_clock::now();
    while (gw::atomic_load(flags + 1) == 0 &&
           std::chrono::steady_clock::now() - since < std::chrono::milliseconds(300)) {
    }
    held[0] = 7;
  }
  const bool right = mover.join();
  user.join();
  if (!right) return "given up, but it is another's";
  if (gw::get(p) != 7 || gw::get(p + 1) != 20) return "a write is lost";
  const std::uint32_t now = gw::owner_of(p);
  const bool again = gw::move(p, (now + 1) % n).join() == gw::move_result::moved;
  gw::deallocate(flags, 2);
  gw::deallocate(p, words_of_page);
  return again ? "" : "closed for ever";
}

TEST(MoveFaults, AMoveGivenUpLeavesEverythingAsItWas) {
  for (int i = 0; i < 3; ++i) EXPECT_EQ(in_a_run(support::schedule(4), [] { return move_given_up(); }), "");
}

// HPX-5: the home hears of the first move only, and an owner is written over by an older one. Charm++ #2060:
// chains as long as a part's history. After many moves everybody asks once: six messages at most.
TEST(MoveFaults, ChainsDoNotGrowWithTheNumberOfMoves) {
  constexpr std::uint64_t moves = 60;
  EXPECT_EQ(in_a_run(support::schedule(6),
                     [] {
                       const std::uint32_t n = gw::worker_count();
                       const words p = movable_at(1);
                       gw::put(p, 17);
                       std::uint32_t last = 1;
                       for (std::uint64_t i = 0; i < moves; ++i) {
                         last = (last + 1 + mix(i) % (n - 1)) % n;
                         if (gw::move(p, last).join() != gw::move_result::moved)
                           return std::string("not moved");
                       }
                       for (const std::uint64_t seen : of_all_workers([p] { return gw::get(p) + 1; }))
                         if (seen != 0 && seen != 18) return "a worker saw " + std::to_string(seen - 1);
                       const auto owners = of_all_workers([p] { return std::uint64_t{gw::owner_of(p)}; });
                       for (std::uint32_t w = 0; w < n; ++w)
                         if (owners[w] != last)
                           return "worker " + std::to_string(w) + " believes another owner";
                       gw::deallocate(p, words_of_page);
                       return std::string();
                     }),
            "");
  // One get of each worker, and those of of_all_workers, which are of memory that stays.
  EXPECT_LE(sum_of_last_run(&gw::worker_stats::far_gets), 6u * 6 + 2);
}

// Charm++ #112, #2726: each worker has a cache of its own, so each is sent on. Here a hint is for all of a
// host: a get that does not know that the part has moved is sent on, and from then on each asks the right
// one.
TEST(MoveFaults, OneWorkerIsSentOnForAllOfItsHost) {
  constexpr std::uint64_t gets = 10;
  const std::string found = in_a_run(support::schedule(6), [] {
    const auto host = hosts();
    const std::uint32_t n = gw::worker_count(), mine = gw::worker_id();
    std::uint32_t home = n, next = n;  // two other hosts
    for (std::uint32_t w = 0; w < n; ++w) {
      if (host[w] == host[mine]) continue;
      if (home == n) home = w;
      if (host[w] != host[home]) next = w;
    }
    if (next == n) return std::string("fewer than three hosts");
    const words p = movable_at(home);
    gw::put(p, 5);
    gw::move(p, next).join();
    const auto seen = of_all_workers([=] {
      std::uint64_t sum = 0;
      if (host[gw::worker_id()] == host[mine])
        for (std::uint64_t i = 0; i < gets; ++i) sum += gw::get(p);
      return sum;
    });
    std::uint64_t sum = 0, users = 0;
    for (std::uint32_t w = 0; w < n; ++w) {
      sum += seen[w];
      users += host[w] == host[mine];
    }
    gw::deallocate(p, words_of_page);
    return sum == 5 * gets * users ? "right " + std::to_string(users) : "wrong sum";
  });
  if (found == "fewer than three hosts") GTEST_SKIP() << found;
  ASSERT_EQ(found.substr(0, 6), "right ");
  const std::uint64_t users = std::stoull(found.substr(6));
  // The put asked the home, so this host's hint is the home. If two of its workers ask at once, both are sent
  // on. Besides, the answers of all workers are read, wherever this thread is then.
  const std::uint64_t messages = sum_of_last_run(&gw::worker_stats::far_gets);
  EXPECT_GE(messages, users * gets);
  EXPECT_LE(messages, users * gets + users + 2);
}

// A far access is one message where the hint is right; on one host none.
TEST(MoveFaults, AnAccessIsOneMessage) {
  constexpr std::uint64_t times = 50;
  const std::string found = in_a_run(support::schedule(2), [] {
    const auto host = hosts();
    const std::uint32_t other = 1 - gw::worker_id();
    const words p = movable_at(other);
    for (std::uint64_t i = 0; i < times; ++i) gw::put(p, i);
    for (std::uint64_t i = 0; i < times; ++i)
      if (gw::get(p) != times - 1) return std::string("wrong");
    for (std::uint64_t i = 0; i < times; ++i)
      gw::atomic_fetch_add(p, std::uint64_t{1}, std::memory_order_relaxed);
    gw::deallocate(p, words_of_page);
    return std::string(host[0] == host[1] ? "near" : "far");
  });
  const std::uint64_t each = found == "far" ? times : 0;
  ASSERT_TRUE(found == "far" || found == "near") << found;
  EXPECT_EQ(sum_of_last_run(&gw::worker_stats::far_atomics), each);
  for (const auto counter : {&gw::worker_stats::far_puts, &gw::worker_stats::far_gets}) {
    EXPECT_GE(sum_of_last_run(counter), each);
    EXPECT_LE(sum_of_last_run(counter), each + 2);  // of of_all_workers
  }
}

/// Pages of this host's window at @p at that are there.
std::uint64_t pages_there(const void* at, std::uint64_t pages) {
  std::vector<unsigned char> in(pages);
  if (mincore(const_cast<void*>(at), pages * page, in.data()) != 0) return ~std::uint64_t{0};
  return static_cast<std::uint64_t>(
      std::count_if(in.begin(), in.end(), [](unsigned char c) { return c & 1; }));
}

// HPX-5 frees the bytes of a block twice, or never. What is in use on each host is what it was; a host that
// parts have left has no pages of them; and nobody has any of what was freed.
std::string parts_that_come_and_go(std::uint64_t moves) {
  constexpr std::uint64_t parts = 64;
  const std::uint32_t n = gw::worker_count();
  const auto host = hosts();
  const all_workers workers;
  const numbers before = workers.ask(used_bytes);
  const words p =
      gw::allocate<std::uint64_t>(parts * words_of_page, gw::distribution::cyclic(page).movable(page), page);
  for (std::uint64_t i = 0; i < parts; ++i) gw::put(p + i * words_of_page, i);
  const void* const at = gw::checkout(p, 1, gw::access::read).data();  // the same on all hosts
  const auto pages_now = [&] { return workers.ask([=] { return pages_there(at, parts); }); };
  std::uint32_t last = 0;
  for (std::uint64_t done = 0; done < moves; done += parts) {
    const std::uint64_t first = mix(done) % parts;
    gw::move(p + first * words_of_page, (parts - first) * words_of_page, mix(done + 1) % n).join();
    last = mix(done + 2) % n;
    gw::move(p, parts * words_of_page, last).join();
    for (std::uint64_t i = 0; i < parts; i += 9)
      if (gw::get(p + i * words_of_page) != i) return "part " + std::to_string(i);
  }
  const numbers moved = pages_now();
  for (std::uint32_t w = 0; w < n; ++w) {
    // The checkout above may have made copies of one unit of the cache: four pages.
    const bool here = host[w] == host[last];
    if (here ? moved[w] != parts : moved[w] > 4)
      return "worker " + std::to_string(w) + (here ? " has it, and " : " does not have it, but ") +
             std::to_string(moved[w]) + " pages";
  }
  gw::on_each_worker([=] { static_cast<void>(gw::checkout(p, parts * words_of_page, gw::access::read)); });
  gw::deallocate(p, parts * words_of_page);
  const numbers after = workers.ask(used_bytes), freed = pages_now();
  for (std::uint32_t w = 0; w < n; ++w) {
    if (after[w] != before[w])
      return "worker " + std::to_string(w) + ": " + std::to_string(before[w]) + " bytes in use before, " +
             std::to_string(after[w]) + " after";
    if (freed[w] != 0) return "worker " + std::to_string(w) + " has pages of what was freed";
  }
  workers.end();
  return "";
}

TEST(MoveFaults, BudgetsAndPagesAreGivenBack) {
  const std::uint64_t moves = support::number_from_environment("STRESS_MOVES", 3200);
  EXPECT_EQ(in_a_run(support::schedule(4), [moves] { return parts_that_come_and_go(moves); }), "");
}

}  // namespace
