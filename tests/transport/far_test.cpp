// Requests to other hosts without MPI: port, rings, companions in all ways over a network in memory.
//
// far_steps: one thread does everything. A worker that waits gives turns to the companions, in an order drawn
// by seed, and lets the other worker begin requests of its own meanwhile. far_threads: workers and companions
// are threads. The network: tests/mpi/far_network.hpp. With MPI: tests/mpi/far_suite.cpp. STRESS_SEED fixes
// the seed.
// test: tsan
#include "transport/far/calls.hpp"
#include "transport/far/port.hpp"
#include "transport/mpi/companion.hpp"

#include "base/random.hpp"
#include "mpi/far_network.hpp"
#include "support/schedule.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cstring>
#include <functional>
#include <memory>
#include <numeric>
#include <thread>
#include <vector>

namespace {

using namespace godwit::transport;
namespace mpi = godwit::transport::mpi;
using far_network::current, far_network::net;
using mpi::companion;
using mpi::way;
using std::byte;
using std::size_t;
using std::uint32_t;
using std::uint64_t;

constexpr int ranks = 2;  // one worker each
static_assert(ranks <= far_network::most_ranks);
constexpr size_t MiB = 1 << 20;

// ---------------------------------------------------------------- a job

/// What every worker's heap begins with.
struct area {
  word cell[8], casts[ranks], lock;
  word room_used[16];
  byte room[16][4096];
  alignas(64) byte block[ranks][16384];  // by asker
  alignas(64) byte large[3 * MiB];
  alignas(64) byte own[3 * MiB];
};
/// produce: argument bytes to argument2.
enum call_no : uint64_t {
  produce = far::call_number("test.produce"),
  count = far::call_number("test.count"),
  pass = far::call_number("test.pass")
};

byte* do_count(void* home, far::entry& e, const far::answer_room&) noexcept {
  e.head.result = e.head.b + 1;
  static_cast<area*>(home)->casts[e.head.b].fetch_add(1);
  return nullptr;
}

/// The payload begins with how often it is sent on, to the other worker; then it is the answer.
byte* do_pass(void*, far::entry& e, const far::answer_room&) noexcept {
  uint64_t left = 0;
  std::memcpy(&left, e.data, sizeof left);
  if (left != 0) {
    --left;
    std::memcpy(e.data, &left, sizeof left);
    e.head.target = worker_no{1 - index(e.head.target)};
    return nullptr;
  }
  e.head.result = index(e.head.target);
  e.head.info = e.head.b;
  return nullptr;
}

byte* do_produce(void*, far::entry& e, const far::answer_room& room) noexcept {
  const uint64_t argument = e.head.b;
  e.head.result = argument + 1;
  e.head.info = 8;
  e.head.bytes = argument;
  e.head.local = e.head.more[0];
  std::memcpy(e.data, &argument, 8);
  const bool fits = 8 + argument <= far::inline_bytes;
  byte* to = fits ? e.data + 8 : room(argument);
  std::fill(to, to + argument, byte(argument % 251));
  return fits ? nullptr : to;
}

/// ThreadSanitizer does not survive the question for addresses that it keeps to itself.
uint32_t usable_bases(uint64_t bytes) {
#if defined(__SANITIZE_THREAD__)
  return bytes != 0 ? 1 << 0 | 1 << 4 : 0;
#elif defined(__has_feature)
#if __has_feature(thread_sanitizer)
  return bytes != 0 ? 1 << 0 | 1 << 4 : 0;
#endif
#endif
  return shm::segment::free_bases(bytes);
}

struct services final : mpi::host_services {
  area* home = nullptr;
  std::atomic<bool> gone{false};
  std::function<void()> asked_whether_gone;
  int released = 0;
  far::call_table calls;
  void enter_calls(bool count_first) {  // not in the same order in all ranks
    if (count_first) calls.enter(call_no::count, do_count, home);
    calls.enter(call_no::produce, do_produce, home);
    calls.enter(call_no::pass, do_pass, home);
    if (!count_first) calls.enter(call_no::count, do_count, home);
  }
  byte* carry_out(far::entry& e, std::unique_ptr<byte[]>& room) noexcept override {
    auto get = [](void* at, size_t n) noexcept {
      auto& r = *static_cast<std::unique_ptr<byte[]>*>(at);
      r.reset(new byte[n]);
      return r.get();
    };
    return calls.carry_out(e, {get, &room});
  }
  bool runs(worker_no) noexcept override {
    if (asked_whether_gone) asked_whether_gone();
    return !gone;
  }
  void alert(worker_no) noexcept override {}
  void release_room(worker_no, byte* bytes) noexcept override {
    home->room_used[(bytes - home->room[0]) / 4096].store(0);
    ++released;
  }
};

/// Hosts of one process cannot have one base, so "common" addresses are plain addresses: each host has a
/// segment at another base, whose first worker is numbered such that at(w, p) is p for the host's only worker
/// w.
struct job {
  shm::segment memory[ranks];
  services host[ranks];
  std::unique_ptr<companion> rank[ranks];
  far::port port[ranks];
  uint32_t inbox_next[ranks] = {};
  std::vector<int> ranks_;
  std::vector<uint32_t> workers_;
  bool serves_itself, steps;
  bool serving = true;                 // workers look at their inboxes
  bool asking[ranks] = {};             // steps: within a request
  std::function<void(int)> meanwhile;  // steps: another worker may do something
  struct binding {
    job* of;
    int me;
  } bindings[ranks];

  job(way how, uint64_t seed, bool atomics = false, bool in_steps = true, uint32_t epoch1 = 7)
      : ranks_(ranks), workers_(ranks), serves_itself(how == way::am), steps(in_steps) {
    std::iota(ranks_.begin(), ranks_.end(), 0);
    std::iota(workers_.begin(), workers_.end(), 0u);
    net.random = godwit::base::small_random(seed);
    for (auto& box : net.to) box.clear();
    net.asked.clear();
    net.corrupted = false;
    for (auto& n : net.received) n = 0;
    const auto l = shm::plan(4096, sizeof(far::words), 0, 65536, sizeof(area));
    uint32_t free = usable_bases(shm::segment::total_bytes(1, l));
    for (int r = 0; r < ranks; ++r, free &= free - 1) {
      if (free == 0) throw std::runtime_error("not enough free bases");
      const auto first = static_cast<uint32_t>(r) + 1;
      memory[r].make_file({first, 1}, l);
      memory[r].map(static_cast<unsigned>(std::countr_zero(free)));
      memory[r].adopt(worker_no{first});
      net.base[r] = memory[r].common();
      new (words(r)) far::words;
      host[r].home = home(r);
      host[r].enter_calls(r == 0);
      bindings[r] = {this, r};
      port[r].init(memory[r], worker_no(r), words(r), words(r), idle, &bindings[r], steps);
    }
    for (int r = 0; r < ranks; ++r) {
      mpi::companion_setup c;
      c.mpi = &far_network::table();
      c.rank = current = r;
      c.size = ranks;
      c.epoch = r == 1 ? epoch1 : 7;
      c.how = how;
      c.rma_atomics = atomics;
      c.memory = &memory[r];
      c.words = words(r);
      c.served = {static_cast<uint32_t>(r), 1};
      c.answers_for = ranks_;
      c.first_worker = workers_;
      c.services = &host[r];
      rank[r] = std::make_unique<companion>(std::move(c));
    }
  }
  ~job() {
    for (auto& m : memory) m.destroy();
  }
  far::words* words(int r) const {
    return reinterpret_cast<far::words*>(memory[r].common() + memory[r].where().words);
  }
  area* home(int r) const { return reinterpret_cast<area*>(memory[r].common() + memory[r].where().heap); }

  bool turn(int r) {
    const int before = std::exchange(current, r);
    const bool any = rank[r]->turn();
    current = before;
    return any;
  }
  void turns(int n) {
    for (int i = 0; i < n; ++i) {
      turn(i % ranks);
      for (int r = 0; r < ranks; ++r) serve(r);
    }
  }
  void serve(int r) {
    while (serves_itself && serving && !host[r].gone) {
      far::entry& e = words(r)->inbox[inbox_next[r] % far::inbox_entries];
      if (e.now.load(std::memory_order_acquire) != far::state::posted) return;
      ++inbox_next[r];
      e.head.more[0] = execute(r, e) ? 1 : 0;
      e.now.store(far::state::done, std::memory_order_release);
    }
  }
  bool execute(int r, far::entry& e) {
    if (e.head.what != far::op::call && e.head.what != far::op::cast) {
      far::execute_on(memory[r], e.head, e.data);
      return false;
    }
    auto get = [](void* at, size_t n) noexcept {
      auto& home = *static_cast<area*>(at);
      size_t i = 0;
      while (home.room_used[i].load() != 0) ++i;
      EXPECT_TRUE(i < 16 && n <= 4096);
      home.room_used[i].store(1);
      return home.room[i];
    };
    byte* big = host[r].calls.carry_out(e, {get, home(r)});
    e.head.address = reinterpret_cast<uint64_t>(big);
    return big != nullptr;
  }
  static void idle(void* arg) {
    auto [of, me] = *static_cast<binding*>(arg);
    if (!of->steps) return of->serve(me);
    of->asking[me] = true;
    const auto r = static_cast<int>(net.random.below(ranks));
    if (net.random.below(4) == 0) of->serve(r);
    const auto other = static_cast<int>(net.random.below(ranks));
    if (of->meanwhile && !of->asking[other] && net.random.below(8) == 0) {
      of->asking[other] = true;
      of->meanwhile(other);
      of->asking[other] = false;
    }
    of->turn(r);
  }
};

// ---------------------------------------------------------------- random requests against a model

/// Worker @p me asks the other one, on bytes that are its own.
struct asker {
  job& j;
  const int me;
  godwit::base::small_random random;
  std::vector<byte> model = std::vector<byte>(sizeof area::block[0]), buffer = model;
  uint64_t casts = 0;
  asker(job& of, int who, uint64_t seed) : j(of), me(who), random(seed + static_cast<uint64_t>(who)) {}

  void one() {
    const worker_no w{1u - static_cast<uint32_t>(me)};
    area& there = *j.home(1 - me);
    far::port& p = j.port[me];
    const size_t at = random.below(2000) * 8, from = random.below(6000);
    const size_t n = 1 + random.below(random.below(2) == 0 ? far::inline_bytes : 10'000);
    auto* c = reinterpret_cast<word*>(there.block[me] + at);
    uint64_t have;
    std::memcpy(&have, &model[at], 8);
    auto becomes = [&](uint64_t v) { std::memcpy(&model[at], &v, 8); };
    byte* here = random.below(2) == 0 ? buffer.data() : j.home(me)->own + random.below(9);
    const uint64_t v = random.next();
    switch (random.below(11)) {
      case 0:
        p.store(w, c, v), becomes(v);
        break;
      case 1:
        ASSERT_EQ(p.load(w, c), have);
        break;
      case 2:
        ASSERT_EQ(p.exchange(w, c, v), have);
        becomes(v);
        break;
      case 3:
        ASSERT_EQ(p.fetch_add(w, c, v), have);
        becomes(have + v);
        break;
      case 4: {
        uint64_t expected = have + v % 2;
        ASSERT_EQ(p.compare_exchange(w, c, expected, v), v % 2 == 0);
        ASSERT_EQ(expected, have);
        if (v % 2 == 0) becomes(v);
        break;
      }
      case 5:
      case 6:
        for (size_t i = 0; i < n; ++i) here[i] = model[from + i] = byte(v >> i % 57);
        p.put(w, there.block[me] + from, here, n);
        break;
      case 7:
        p.get(w, here, there.block[me] + from, n);
        ASSERT_EQ(std::memcmp(here, &model[from], n), 0) << n;
        break;
      case 8:
        p.cast(w, call_no::count, static_cast<uint64_t>(me)), ++casts;
        break;
      case 9: {
        const size_t bytes = random.below(2) == 0 ? 1930 + random.below(12) : random.below(4096);
        const auto& e = p.call(w, call_no::produce, bytes, reinterpret_cast<uint64_t>(j.home(me)->large));
        ASSERT_TRUE(e.head.result == bytes + 1 && e.head.info == 8 && e.head.bytes == bytes);
        const byte* got = 8 + bytes <= far::inline_bytes ? e.data + 8 : j.home(me)->large;
        ASSERT_TRUE(std::all_of(got, got + bytes, [&](byte b) { return b == byte(bytes % 251); })) << bytes;
        break;
      }
      case 10: {  // sent on, there and back, also to who asks
        byte text[2000];
        const size_t bytes = 8 + random.below(sizeof text - 8);
        const uint64_t times = j.serving ? random.below(4) : 0;
        std::fill_n(text, bytes, byte(v));
        std::memcpy(text, &times, sizeof times);
        const auto& e = p.call(w, call_no::pass, bytes, 0, {text, bytes});
        ASSERT_EQ(e.head.result, times % 2 == 0 ? index(w) : 1 - index(w));
        ASSERT_EQ(e.head.info, bytes);
        ASSERT_TRUE(std::all_of(e.data + 8, e.data + bytes, [&](byte b) { return b == byte(v); }));
        break;
      }
    }
  }
  void last() {
    const worker_no w{1u - static_cast<uint32_t>(me)};
    j.port[me].get(w, buffer.data(), j.home(1 - me)->block[me], buffer.size());
    EXPECT_EQ(std::memcmp(buffer.data(), model.data(), model.size()), 0);
    j.port[me].fence(w);
    EXPECT_EQ(j.port[me].load(w, &j.home(1 - me)->casts[me]), casts) << "fence waits for casts";
  }
};

struct variant {
  way how;
  bool atomics;
};
constexpr variant variants[] = {
    {way::server, false}, {way::assist, false}, {way::am, false}, {way::rma, false}, {way::rma, true}};
std::string describe(const variant& v, uint64_t seed) {
  return std::string(mpi::name_of(v.how)) + (v.atomics ? " atomics" : "") + " seed " + std::to_string(seed);
}

TEST(far_steps, random_requests) {
  for (const auto& v : variants)
    for (uint64_t s = 0; s < 20; ++s) {
      const uint64_t seed = support::base_seed() + s;
      SCOPED_TRACE(describe(v, seed));
      job j(v.how, seed, v.atomics);
      asker a(j, 0, seed), b(j, 1, seed);
      int begun = 0;
      j.meanwhile = [&](int who) { (++begun, who == 0 ? a : b).one(); };
      for (int i = 0; i < 150 && !HasFatalFailure(); ++i) {
        j.asking[i % 2] = true;
        (i % 2 == 0 ? a : b).one();
        j.asking[i % 2] = false;
      }
      j.meanwhile = nullptr;
      if (!HasFatalFailure()) a.last(), b.last();
      j.turns(200);
      EXPECT_GT(begun, 0) << "requests of both at a time";
      EXPECT_FALSE(net.corrupted || j.rank[0]->waiting() || j.rank[0]->sending() || j.rank[1]->sending());
      for (auto* h : {j.home(0), j.home(1)})
        EXPECT_TRUE(std::all_of(h->room_used, h->room_used + 16, [](word& u) { return u == 0; }));
      if (HasFailure()) return;
    }
}

TEST(far_threads, random_requests) {
  for (const auto& v : variants) {
    const uint64_t seed = support::base_seed();
    SCOPED_TRACE(describe(v, seed));
    if (v.how == way::rma) continue;  // plain copies between threads that nothing orders: only steps
    job j(v.how, seed, v.atomics, false);
    std::atomic<int> working{ranks}, finished{0};
    std::vector<std::thread> all;
    for (int r = 0; r < ranks; ++r) {
      all.emplace_back([&, r] {
        current = r;
        while (finished < ranks) {
          if (!j.rank[r]->turn() && !j.rank[r]->waiting() && !j.rank[r]->sending()) j.rank[r]->sleep(100);
        }
      });
      all.emplace_back([&, r] {
        asker a(j, r, seed);
        for (int i = 0; i < 100 && !testing::Test::HasFatalFailure(); ++i) a.one();
        a.last();
        for (--working; working != 0;) j.serve(r), std::this_thread::yield();
        ++finished;
      });
    }
    for (auto& t : all) t.join();
    EXPECT_FALSE(net.corrupted);
    if (HasFailure()) return;
  }
}

// ---------------------------------------------------------------- by themselves

/// Both sides choose the tags of bytes that travel one way: those of a put, and the answer to a get.
TEST(far_steps, put_meets_get) {
  for (uint64_t s = 0; s < 20; ++s) {
    job j(way::assist, support::base_seed() + s);
    std::fill_n(j.home(1)->large, 5000, byte{1});
    std::fill_n(j.home(1)->own, 5000, byte{2});
    bool put = false;
    j.meanwhile = [&](int who) {
      if (std::exchange(put, true) || who != 1) return;
      j.port[1].put(worker_no{0}, j.home(0)->own, j.home(1)->own, 5000);
    };
    j.asking[0] = true;
    j.port[0].get(worker_no{1}, j.home(0)->large, j.home(1)->large, 5000);
    j.meanwhile = nullptr;
    EXPECT_EQ(j.home(0)->large[77], byte{1}) << "what was asked for";
    EXPECT_TRUE(!put || j.home(0)->own[77] == byte{2});
    EXPECT_FALSE(net.corrupted);
  }
}

TEST(far_steps, more_than_a_ring_without_answers) {
  for (const auto& v : variants) {
    SCOPED_TRACE(describe(v, support::base_seed()));
    job j(v.how, support::base_seed(), v.atomics);
    for (uint64_t i = 1; i <= 100; ++i) j.port[0].store(worker_no{1}, &j.home(1)->cell[i % 8], i);
    for (int i = 0; i < 50; ++i) j.port[0].cast(worker_no{1}, call_no::count, 0);
    j.port[0].fence(worker_no{1});
    for (uint64_t i = 93; i <= 100; ++i) EXPECT_EQ(j.home(1)->cell[i % 8], i);
    EXPECT_EQ(j.home(1)->casts[0], 50u) << "fence waits for casts";
  }
}

/// FA4. In the second half the ring is filled up to where the companion goes on, before it looks.
TEST(far_steps, begins_again_with_none_under_way) {
  for (const auto& v : variants) {
    SCOPED_TRACE(describe(v, support::base_seed()));
    job j(v.how, support::base_seed(), v.atomics);
    for (uint64_t i = 0; i < 40; ++i) j.port[0].exchange(worker_no{1}, &j.home(1)->cell[0], i);
    for (uint32_t i = 1; i < far::ring_entries; ++i)
      EXPECT_EQ(j.words(0)->ring[i].head.address, 0u) << "entry " << i << " has not been used";
    EXPECT_EQ(j.port[0].requests(), 40u);
    for (uint64_t n = 1; n < 2 * far::ring_entries; ++n) {
      for (uint64_t i = 1; i <= n; ++i) j.port[0].store(worker_no{1}, &j.home(1)->cell[1], i);
      EXPECT_EQ(j.port[0].exchange(worker_no{1}, &j.home(1)->cell[1], 0), n) << "the last of so many";
    }
  }
}

TEST(far_steps, many_atomics_at_once) {
  for (const auto& v : variants) {
    SCOPED_TRACE(describe(v, support::base_seed()));
    job j(v.how, support::base_seed(), v.atomics);
    for (const uint64_t n : {0u, 1u, 2u, 15u, 16u, 17u, 100u}) {
      j.home(1)->cell[3] = 0;
      std::vector<far::port::far_word> all;
      for (uint64_t i = 0; i < n; ++i) all.push_back({worker_no{1}, i, 0, ~uint64_t{0}});
      j.port[0].atomics(far::atomic_function::fetch_add, &j.home(1)->cell[3], all);
      uint64_t sum = 0;
      for (uint64_t i = 0; i < n; sum += i++)
        EXPECT_EQ(all[i].result, sum) << i << " of " << n << ": in their order at one worker";
      EXPECT_EQ(j.home(1)->cell[3], sum);
    }
  }
}

TEST(far_steps, large_transfers_are_cut) {
  for (const auto& v : variants) {
    SCOPED_TRACE(describe(v, support::base_seed()));
    job j(v.how, support::base_seed(), v.atomics);
    const size_t n = 5 * MiB / 2 + 3;
    std::vector<byte> bytes(n), back(n);
    for (size_t i = 0; i < n; ++i) bytes[i] = byte(i * 31 >> 8);
    const uint64_t before = j.port[0].requests();
    j.port[0].put(worker_no{1}, j.home(1)->large + 1, bytes.data(), n);
    j.port[0].get(worker_no{1}, back.data(), j.home(1)->large + 1, n);
    const uint64_t pieces = (n + far::bounce_piece - 1) / far::bounce_piece;
    EXPECT_EQ(j.port[0].requests() - before, 2 * pieces) << "through the buffer";
    EXPECT_TRUE(back == bytes);
    j.port[0].get(worker_no{1}, j.home(0)->own, j.home(1)->large + 1, n);
    EXPECT_EQ(j.port[0].requests() - before, 2 * pieces + 1) << "to the own segment at once";
    EXPECT_EQ(std::memcmp(j.home(0)->own, bytes.data(), n), 0);
  }
}

/// The smallest ring has an entry for each large piece, and none more: the few bytes behind them must do.
TEST(far_steps, a_put_of_all_pieces_and_few_bytes_fits_the_smallest_ring) {
  for (const auto& v : variants) {
    SCOPED_TRACE(describe(v, support::base_seed()));
    job j(v.how, support::base_seed(), v.atomics);
    j.words(0)->ring_halvings = 2;
    ASSERT_EQ(j.words(0)->entries(), far::bounce_pieces);
    const size_t n = far::bounce_bytes + 24;
    std::vector<byte> bytes(n);
    for (size_t i = 0; i < n; ++i) bytes[i] = byte(i * 31 >> 8);
    j.port[0].put(worker_no{1}, j.home(1)->large + 1, bytes.data(), n);
    EXPECT_EQ(std::memcmp(j.home(1)->large + 1, bytes.data(), n), 0);
  }
}

/// A small request waits for the worker; a large put must not overtake it.
TEST(far_steps, am_keeps_the_order_of_small_and_large) {
  for (uint64_t s = 0; s < 20; ++s) {
    job j(way::am, support::base_seed() + s);
    std::vector<byte> zeros(5000);
    auto* at = reinterpret_cast<word*>(j.home(1)->block[0] + 64);
    for (uint64_t i = 1; i < 12; ++i) j.port[0].store(worker_no{1}, at, i);
    j.port[0].put(worker_no{1}, j.home(1)->block[0], zeros.data(), zeros.size());
    EXPECT_EQ(j.port[0].load(worker_no{1}, at), 0u) << "seed " << support::base_seed() + s;
  }
}

TEST(far_steps, am_waits_for_the_worker) {
  job j(way::am, support::base_seed());
  j.serving = false;
  j.port[0].store(worker_no{1}, &j.home(1)->cell[0], 5);
  j.turns(100);
  EXPECT_EQ(j.home(1)->cell[0], 0u);
  j.serving = true;
  EXPECT_EQ(j.port[0].load(worker_no{1}, &j.home(1)->cell[0]), 5u);
}

TEST(far_steps, am_goes_on_when_the_worker_has_ended) {
  for (uint64_t s = 0; s < 20; ++s) {
    SCOPED_TRACE(support::base_seed() + s);
    job j(way::am, support::base_seed() + s);
    j.serving = false;
    for (uint64_t i = 1; i <= 12; ++i) j.port[0].store(worker_no{1}, &j.home(1)->cell[0], i);
    for (int i = 0; i < 12; ++i) j.port[0].cast(worker_no{1}, call_no::count, 0);  // more than an inbox holds
    j.turns(100);
    j.host[1].gone = true;
    j.port[0].fence(worker_no{1});
    EXPECT_EQ(j.home(1)->cell[0], 12u);
    EXPECT_EQ(j.home(1)->casts[0], 12u);
    asker a(j, 0, support::base_seed() + s);
    a.casts = 12;
    for (int i = 0; i < 50 && !HasFatalFailure(); ++i) a.one();
    a.last();
  }
}

/// The worker's last deed before it ends is to carry out what the companion was about to take back.
TEST(far_steps, am_carries_out_nothing_twice) {
  for (uint64_t s = 0; s < 20; ++s) {
    job j(way::am, support::base_seed() + s);
    j.serving = false;
    bool waits = false;
    j.host[1].asked_whether_gone = [&] {
      if (!waits || j.host[1].gone) return;
      j.serving = true;
      j.serve(1);
      j.host[1].gone = true;
    };
    j.port[0].cast(worker_no{1}, call_no::count, 0);
    for (int i = 0; i < 1000 && j.words(1)->inbox[0].now != far::state::posted; ++i) j.turn(i % ranks);
    waits = true;
    j.turns(100);
    EXPECT_EQ(j.home(1)->casts[0], 1u) << "seed " << support::base_seed() + s;
  }
}

TEST(far_steps, messages_of_another_run_are_dropped) {
  for (const way how : {way::server, way::am}) {
    job j(how, support::base_seed(), false, true, 8);
    j.port[0].store(worker_no{1}, &j.home(1)->cell[0], 5);
    j.port[0].put(worker_no{1}, &j.home(1)->cell[1], "12345678", 8);
    j.rank[0]->tell_failure({3, "of an older run"});
    j.turns(200);
    EXPECT_EQ(j.home(1)->cell[0] + j.home(1)->cell[1], 0u);
    EXPECT_EQ(net.received[1], 3u);
    EXPECT_EQ(j.rank[1]->told().status, 0);
  }
}

TEST(far_steps, a_failure_is_told) {
  for (const std::string& text : {std::string("rank 0 gave up"), std::string(5000, 'x')}) {
    job j(way::server, support::base_seed());
    current = 0;
    j.rank[0]->tell_failure({70, text});
    j.rank[0]->tell_failure({71, "later"});
    j.turns(200);
    EXPECT_EQ(j.rank[0]->told().status, 70);
    EXPECT_EQ(j.rank[1]->told().status, 70) << "the first counts";
    EXPECT_EQ(j.rank[1]->told().message, text.substr(0, far::inline_bytes));
  }
}

/// FA3: who may be asleep is rung, by both sides.
TEST(far_steps, sleepers_are_woken) {
  for (const uint32_t asleep : {0u, 1u}) {
    job j(way::assist, support::base_seed());
    far::words& mine = *j.words(0);
    mine.waiting = asleep;
    mine.deaf = asleep;
    far::entry& e = mine.ring[0];
    e.head.what = far::op::fetch_add;
    e.head.target = worker_no{1};
    e.head.address = reinterpret_cast<uint64_t>(&j.home(1)->cell[0]);
    e.head.a = 3;
    e.now = far::state::posted;
    far::ring_bell(mine);
    EXPECT_EQ(mine.bell, asleep);
    j.rank[0]->sleep(0);  // for ever, but for the request
    EXPECT_EQ(mine.deaf, 0u);
    j.turns(200);
    EXPECT_TRUE(e.now == far::state::done && j.home(1)->cell[0] == 3);
    EXPECT_EQ(mine.answers, asleep);
  }
}

}  // namespace
