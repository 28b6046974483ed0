// One suite for every transport: what one worker may do with the memory of another, and what it can rely on.
//
// Written against `place` (far_place.hpp): the shared memory of one machine, or the companions in each of
// their ways. Every worker runs suite::run at the same time. The contract: transport/transport.hpp,
// far/port.hpp. Nothing here asserts on time: what has to happen while somebody computes is shown by the
// order of flags.
#pragma once

#include "base/random.hpp"
#include "base/world.hpp"
#include "far_place.hpp"

#include <cstdarg>
#include <cstdio>
#include <cstdlib>
#include <sched.h>
#include <vector>

namespace far_checks {

inline const char* now_checking = "start";

#define FAR_CHECK(condition, ...)                                  \
  do {                                                             \
    if (!(condition)) fail(__LINE__, #condition, " " __VA_ARGS__); \
  } while (false)

class suite {
 public:
  suite(place& p, area& mine, const setting& s)
      : p_(p), mine_(mine), set_(s), me_(s.me), n_(s.workers), random_(s.seed * 64 + s.me) {
    private_.resize(MiB + 16 * KiB);
  }

  void run() {
    const struct {
      const char* name;
      void (suite::*body)();
    } all[] = {{"words", &suite::words}, {"sizes", &suite::sizes},         {"huge", &suite::huge},
               {"order", &suite::order}, {"own order", &suite::own_order}, {"counter", &suite::counter},
               {"lock", &suite::lock},   {"wrap", &suite::wrap},           {"calls", &suite::calls},
               {"storm", &suite::storm}, {"busy", &suite::busy},           {"ended", &suite::ended}};
    const bool times = getenv("FAR_SUITE_TIMES") != nullptr && me_ == 0;
    for (const auto& c : all) {
      now_checking = c.name;
      const uint64_t start = now_ns();
      barrier();
      (this->*c.body)();
      if (times)
        std::fprintf(stderr, "%s: %-10s %6.1f ms\n", set_.name.c_str(), c.name,
                     static_cast<double>(now_ns() - start) * 1e-6);
    }
  }

 private:
  [[noreturn, gnu::format(printf, 4, 5)]] void fail(int line, const char* what, const char* format, ...) {
    char text[512];
    va_list list;
    va_start(list, format);
    std::vsnprintf(text, sizeof text, format, list);
    va_end(list);
    std::fprintf(
        stderr, "far_suite: check '%s' failed, way %s, rank %u, seed %llu: far_checks.hpp:%d: %s%s\n",
        now_checking, set_.name.c_str(), me_, static_cast<unsigned long long>(set_.seed), line, what, text);
    std::fflush(stderr);
    _exit(1);
  }
  worker_no next() const { return worker_no{(me_ + set_.step) % n_}; }
  uint32_t previous() const { return (me_ + n_ - set_.step) % n_; }
  template <class Condition>
  void wait(Condition&& met) {
    for (int i = 0; !met(); ++i) {
      p_.poll();
      if (i < 100)
        sched_yield();
      else
        usleep(30);
    }
  }
  void barrier() {
    ++round_;
    if (me_ == 0) {
      wait([&] { return mine_.arrived.load() == (n_ - 1) * round_; });
      for (uint32_t w = 1; w < n_; ++w) p_.store(worker_no{w}, &mine_.go, round_);
    } else {
      p_.fetch_add(worker_no{0}, &mine_.arrived, 1);
      wait([&] { return mine_.go.load() == round_; });
    }
  }
  template <class Body>
  void for_others(Body&& body) {
    for (uint32_t i = 1; i < n_; ++i) body(worker_no{(me_ + i) % n_});
  }
  uint64_t rounds(uint64_t usual) const { return usual * set_.rounds_percent / 100; }
  bool takes_part(worker_no home) const { return index(home) != me_ || !set_.no_near_atomics; }

  void words() {
    for_others([&](worker_no w) {
      word* c = mine_.cells[me_];
      for (const uint64_t v : {uint64_t{1}, ~uint64_t{0}, uint64_t{1} << 63 | (me_ + 1)}) {
        p_.store(w, c, v);
        FAR_CHECK(p_.load(w, c) == v);
        FAR_CHECK(p_.exchange(w, c, v + 5) == v);
        uint64_t expected = v;
        FAR_CHECK(!p_.compare_exchange(w, c, expected, 9));
        FAR_CHECK(expected == v + 5, "(%llx)", static_cast<unsigned long long>(expected));
        FAR_CHECK(p_.compare_exchange(w, c, expected, 9));
        FAR_CHECK(expected == v + 5);
        FAR_CHECK(p_.fetch_add(w, c, ~uint64_t{0}) == 9);
        FAR_CHECK(p_.load(w, c) == 8);
        p_.store(w, c + 1, me_ + 100);
        p_.fence(w);
        FAR_CHECK(p_.load(w, c) == 8 && p_.load(w, c + 1) == me_ + 100);
      }
    });
    barrier();
    for_others([&](worker_no w) { FAR_CHECK(mine_.cells[index(w)][1].load() == index(w) + 100); });
    barrier();
  }

  void sizes() {
    fill(mine_.published, sizeof mine_.published, me_ + 1000);
    barrier();
    constexpr byte border{0x5a};
    uint64_t seed = me_ * 1'000'000 + 1;
    for_others([&](worker_no w) {
      for (const size_t n : {size_t{1}, size_t{7}, size_t{8}, size_t{1943}, size_t{1944}, size_t{1945},
                             size_t{4096}, 64 * KiB + 1, MiB, MiB + 3})
        for (const bool inside : {true, false})
          for (const size_t odd : {0, 1, 6}) {
            if (n > 64 * KiB && odd != (inside ? 1 : 6)) continue;
            byte* here = (inside ? mine_.own : private_.data()) + 64 + (odd * 5) % 8;
            byte* there = mine_.landing[me_] + 64 + odd;
            fill(here, n, ++seed);
            p_.put(w, there - 8, "before..", 8);
            p_.put(w, there + n, "..behind", 8);
            p_.put(w, there, here, n);
            std::fill(here - 8, here + n + 8, border);
            p_.get(w, here, there, n);
            FAR_CHECK(matches(here, n, seed), "(%zu bytes put and got, %s, odd %zu)", n,
                      inside ? "own segment" : "private", odd);
            FAR_CHECK(all_are(here - 8, 8, border) && all_are(here + n, 8, border), "(get of %zu bytes)", n);
            byte edges[16];
            p_.get(w, edges, there - 8, 8);
            p_.get(w, edges + 8, there + n, 8);
            FAR_CHECK(std::memcmp(edges, "before....behind", 16) == 0, "(put of %zu bytes)", n);
          }
      p_.get(w, private_.data() + 1, mine_.published, sizeof mine_.published);
      FAR_CHECK(matches(private_.data() + 1, sizeof mine_.published, index(w) + 1000),
                "(what its owner wrote)");
      fill(private_.data(), MiB + 5, me_ + 2000);
      p_.put(w, mine_.landing[me_] + 3, private_.data(), MiB + 5);
      p_.put(w, mine_.landing[me_] + 3, private_.data(), 777);
      p_.fence(w);
    });
    barrier();
    for_others([&](worker_no w) {
      FAR_CHECK(matches(mine_.landing[index(w)] + 3, MiB + 5, index(w) + 2000), "(seen by its owner)");
    });
    barrier();
  }

  /// The first and the last worker, both ways at once.
  void huge() {
    if (me_ == 0 || me_ == n_ - 1) {
      const worker_no w{n_ - 1 - me_};
      std::vector<byte> here(huge_bytes + 1);
      fill(mine_.own, huge_bytes, me_ + 50);
      p_.put(w, mine_.huge, mine_.own, huge_bytes);
      p_.get(w, here.data() + 1, mine_.huge, huge_bytes);
      FAR_CHECK(matches(here.data() + 1, huge_bytes, me_ + 50));
      fill(here.data(), huge_bytes - 5, me_ + 60);
      p_.put(w, mine_.huge + 5, here.data(), huge_bytes - 5);
      p_.get(w, mine_.own + 3, mine_.huge + 5, huge_bytes - 5);
      FAR_CHECK(matches(mine_.own + 3, huge_bytes - 5, me_ + 60));
    }
    barrier();
    if (me_ == 0 || me_ == n_ - 1) {
      FAR_CHECK(matches(mine_.huge + 5, huge_bytes - 5, n_ - 1 - me_ + 60));
      shm::segment::discard(mine_.huge, huge_bytes);
      shm::segment::discard(mine_.own, huge_bytes);
    }
    barrier();
  }

  /// The consumer watches its own memory: who sees the flag sees what was written before it.
  void order() {
    link& to = mine_.links[me_];
    link& from = mine_.links[previous()];
    const worker_no w = next();
    std::vector<byte> large(sizeof to.large);
    for (uint64_t r = 1; r <= rounds(60); ++r) {
      const auto mark = static_cast<byte>(r);
      const size_t small_bytes = 1 + r * 17 % sizeof to.small;
      std::fill(large.begin(), large.end(), mark);
      p_.store(w, &to.data, r);
      p_.store(w, &to.flags[0], r);
      p_.put(w, to.small, large.data(), small_bytes);
      p_.store(w, &to.flags[1], r);
      p_.put(w, to.large, large.data(), large.size());
      p_.store(w, &to.flags[2], r);
      p_.put(w, to.small, large.data(), sizeof to.small);
      FAR_CHECK(p_.exchange(w, &to.flags[3], r) == r - 1);
      p_.store(w, &to.scratch, r);
      FAR_CHECK(p_.fetch_add(w, &to.flags[4], 1) == r - 1);

      auto seen = [&](int k) { return [&, k] { return from.flags[k].load() == r; }; };
      wait(seen(0));
      FAR_CHECK(from.data.load() == r, "(store, store)");
      wait(seen(1));
      FAR_CHECK(all_are(from.small, small_bytes, mark), "(small put, store)");
      wait(seen(2));
      FAR_CHECK(all_are(from.large, sizeof from.large, mark), "(large put, store)");
      wait(seen(3));
      FAR_CHECK(all_are(from.small, sizeof from.small, mark), "(small put, exchange)");
      wait(seen(4));
      FAR_CHECK(from.scratch.load() == r, "(store, fetch and add)");
      p_.store(worker_no{previous()}, &mine_.links[me_].ack, r);
      wait([&] { return mine_.links[index(w)].ack.load() == r; });
    }
    barrier();
  }

  /// What the asker itself finds.
  void own_order() {
    const worker_no w = next();
    byte* block = mine_.landing[me_];
    auto* at = reinterpret_cast<word*>(block + 4096);
    std::vector<byte> here(8192);
    uint64_t value = 0;
    for (uint64_t r = 1; r <= rounds(30); ++r) {
      p_.store(w, at, r);
      p_.get(w, &value, at, 8);
      FAR_CHECK(value == r, "(store, get)");
      value = r * 3;
      p_.put(w, at, &value, 8);
      FAR_CHECK(p_.load(w, at) == r * 3, "(small put, load)");
      fill(here.data(), here.size(), r);
      for (int i = 0; i < 5; ++i) p_.store(w, at, r);
      p_.put(w, block, here.data(), here.size());
      p_.get(w, here.data(), block, here.size());
      FAR_CHECK(matches(here.data(), here.size(), r), "(store, large put over it, large get)");
      p_.store(w, at, ~r);
      p_.get(w, here.data(), block, here.size());
      FAR_CHECK(*reinterpret_cast<uint64_t*>(here.data() + 4096) == ~r, "(store, large get)");
    }
    barrier();
  }

  void counter() {
    const uint64_t times = rounds(50);
    for (uint32_t i = 0; i < n_; ++i) {
      const worker_no w{(me_ + i) % n_};
      if (!takes_part(w)) continue;
      uint64_t last = 0, sum = 0;
      for (uint64_t k = 0; k < times; ++k) {
        const uint64_t before = p_.fetch_add(w, &mine_.counter, 1);
        FAR_CHECK(k == 0 || before > last, "(%llu after %llu)", static_cast<unsigned long long>(before),
                  static_cast<unsigned long long>(last));
        sum += last = before;
      }
      p_.fetch_add(w, &mine_.sum, sum);
    }
    barrier();
    const uint64_t all = times * (set_.no_near_atomics ? n_ - 1 : n_);
    FAR_CHECK(mine_.counter.load() == all, "(%llu)", static_cast<unsigned long long>(mine_.counter.load()));
    FAR_CHECK(mine_.sum.load() == all * (all - 1) / 2);
    barrier();
  }

  void lock() {
    const worker_no home{0};
    const uint64_t times = rounds(25);
    constexpr size_t count = std::size(decltype(mine_.locked){});
    uint64_t block[count];
    for (uint64_t k = 0; k < times && takes_part(home); ++k) {
      for (uint64_t expected = 1; !p_.compare_exchange(home, &mine_.lock, expected = 0, 1 + me_);) {
        FAR_CHECK(expected <= n_ && expected != 1 + me_);
        p_.poll();
        usleep(20 + random_.below(100));
      }
      p_.get(home, block, mine_.locked, sizeof block);
      FAR_CHECK(std::all_of(block, block + count, [&](uint64_t v) { return v == block[0]; }), "(torn)");
      std::fill(block, block + count, block[0] + 1);
      if (k % 2 == 0) {
        p_.put(home, mine_.locked, block, sizeof block);
      } else {
        p_.put(home, mine_.locked, block, 1600);
        p_.put(home, mine_.locked + 200, block + 200, sizeof block - 1600);
      }
      if (set_.no_near_atomics)
        FAR_CHECK(p_.exchange(home, &mine_.lock, 0) == 1 + me_);
      else
        p_.store(home, &mine_.lock, 0);
    }
    barrier();
    if (me_ == 0) FAR_CHECK(mine_.locked[0] == times * (set_.no_near_atomics ? n_ - 1 : n_));
    barrier();
  }

  /// More without an answer than a ring or an inbox holds.
  void wrap() {
    const worker_no w = next();
    const worker_no v{(index(w) + 1) % n_ == me_ ? index(w) : (index(w) + 1) % n_};
    const uint64_t last = rounds(400);
    for (uint64_t i = 1; i <= last; ++i) p_.store(i % 3 == 0 ? v : w, &mine_.cells[me_][i % 16], i);
    p_.fence(w);
    for (uint64_t i = last - 15; i <= last; ++i)
      FAR_CHECK(p_.load(i % 3 == 0 ? v : w, &mine_.cells[me_][i % 16]) == i);
    std::vector<byte> here(far::inline_bytes);
    for (size_t i = 0; i < rounds(200); ++i) {
      fill(here.data(), here.size(), i);
      p_.put(w, mine_.landing[me_] + i % 200 * 16, here.data(), 1 + i * 97 % far::inline_bytes);
    }
    p_.put(w, mine_.landing[me_], here.data(), here.size());
    p_.fence(w);
    const std::vector<byte> sent = here;
    std::fill(here.begin(), here.end(), byte{});
    p_.get(w, here.data(), mine_.landing[me_], here.size());
    FAR_CHECK(here == sent);
    if (p_.calls(w)) {
      for (int i = 0; i < 300; ++i) p_.cast(w, call_no::count, me_);
      p_.fence(w);
      casts_ += 300;
      FAR_CHECK(p_.load(w, &mine_.casts[me_]) == casts_, "(fence waits for casts)");
    }
    barrier();
  }

  void call_one(worker_no w, size_t info, size_t bytes, size_t odd) {
    byte* here = mine_.own + 64 + odd;
    constexpr byte border{0x33};
    std::fill(here - 8, here + bytes + 8, border);
    const uint64_t argument = info << 32 | bytes;
    const far::entry& e = p_.call(w, call_no::produce, argument, reinterpret_cast<uint64_t>(here));
    FAR_CHECK(e.head.result == ~argument && e.head.info == info && e.head.bytes == bytes, "(%zu, %zu bytes)",
              info, bytes);
    FAR_CHECK(matches(e.data, info, argument + 1), "(info of %zu bytes)", info);
    const bool fits = info + bytes <= far::inline_bytes;
    FAR_CHECK(matches(fits ? e.data + info : here, bytes, argument + 2), "(%zu bytes after %zu)", bytes,
              info);
    FAR_CHECK(all_are(here - 8, 8, border) && all_are(here + bytes, 8, border));
    if (fits) FAR_CHECK(all_are(here, bytes, border), "(answers that fit are not delivered)");
  }

  void calls() {
    for_others([&](worker_no w) {
      if (!p_.calls(w)) return;
      for (const size_t info : {size_t{0}, size_t{64}}) {
        const size_t full = far::inline_bytes - info;
        for (const size_t bytes :
             {size_t{0}, size_t{5}, full - 1, full, full + 1, 5000 + info, MiB, MiB + info})
          call_one(w, info, bytes, bytes % 7);
      }
      // The answer takes its time: the asker sleeps, and is woken.
      for (int i = 0; i < 2; ++i) FAR_CHECK(p_.call(w, call_no::slow, 77, 0).head.result == ~uint64_t{77});
    });
    barrier();
  }

  /// Everything at once, each worker on bytes of its own at all others, against a model.
  void storm() {
    constexpr size_t size = sizeof mine_.storm[0];
    std::vector<std::vector<byte>> model(n_, std::vector<byte>(size));
    std::vector<uint64_t> casts(n_);
    for_others([&](worker_no w) { casts[index(w)] = p_.load(w, &mine_.casts[me_]); });
    std::vector<byte> outside(size + 64);
    byte* block = mine_.storm[me_];
    for (size_t i = 0; i < rounds(400); ++i) {
      const worker_no w{(me_ + 1 + random_.below(n_ - 1)) % n_};
      byte* there = model[index(w)].data();
      const size_t at8 = random_.below(size / 8) * 8;
      auto* at = reinterpret_cast<word*>(block + at8);
      uint64_t have;
      std::memcpy(&have, there + at8, 8);
      auto becomes = [&](uint64_t v) { std::memcpy(there + at8, &v, 8); };
      const uint64_t v = random_.next();
      const size_t from = random_.below(size / 3);
      const size_t n =
          random_.below(2) == 0 ? 1 + random_.below(far::inline_bytes) : 1 + random_.below(size - from);
      byte* here = (random_.below(2) == 0 ? mine_.own : outside.data()) + random_.below(32);
      const uint32_t what = random_.below(12);
      switch (what) {
        case 0:
        case 1:
          p_.store(w, at, v), becomes(v);
          break;
        case 2:
          FAR_CHECK(p_.load(w, at) == have, "(operation %zu)", i);
          break;
        case 3:
          FAR_CHECK(p_.exchange(w, at, v) == have, "(operation %zu)", i);
          becomes(v);
          break;
        case 4:
          FAR_CHECK(p_.fetch_add(w, at, v) == have, "(operation %zu)", i);
          becomes(have + v);
          break;
        case 5: {
          uint64_t expected = v % 2 == 0 ? have : have + 1;
          const bool swapped = p_.compare_exchange(w, at, expected, v);
          FAR_CHECK(swapped == (v % 2 == 0) && expected == have, "(operation %zu)", i);
          if (swapped) becomes(v);
          break;
        }
        case 6:
        case 7:
        case 8:
          fill(here, n, v);
          std::memcpy(there + from, here, n);
          p_.put(w, block + from, here, n);
          break;
        case 9:
          p_.get(w, here, block + from, n);
          FAR_CHECK(std::memcmp(here, there + from, n) == 0, "(operation %zu, get of %zu bytes)", i, n);
          break;
        case 10:
          if (p_.calls(w)) p_.cast(w, call_no::count, me_), ++casts[index(w)];
          break;
        case 11:
          if (p_.calls(w)) call_one(w, random_.below(100), random_.below(2) == 0 ? from : n, 3);
          break;
      }
    }
    for_others([&](worker_no w) {
      p_.get(w, outside.data(), block, size);
      FAR_CHECK(std::memcmp(outside.data(), model[index(w)].data(), size) == 0, "(at the end)");
      p_.fence(w);  // rma: casts are not in order with what goes another way
      FAR_CHECK(p_.load(w, &mine_.casts[me_]) == casts[index(w)], "(casts)");
    });
    barrier();
  }

  /// One worker computes and looks at nothing. Ways in which it serves itself: requests wait for it; else
  /// they go on.
  void busy() {
    constexpr uint64_t patience = 20'000'000'000, computes = 20'000'000;
    for (uint32_t t = 0; t < n_; ++t) {
      const uint32_t asker = (t + set_.step) % n_;
      if (me_ == t) {
        const uint64_t before = mine_.busy.load();
        // From here on it looks at nothing: a store does not wait.
        p_.store(worker_no{asker}, &mine_.started, t + 1);
        const bool waits = set_.serves_itself && p_.calls(worker_no{asker});
        const uint64_t start = now_ns();
        auto asked = [&] { return waits ? p_.asked_for(&mine_.busy) : mine_.finished.load() == t + 1; };
        while (!asked())
          FAR_CHECK(now_ns() - start < patience, "(nothing happens while worker %u computes)", t);
        const uint64_t then = now_ns();
        while (now_ns() - then < computes) godwit::base::pause();
        if (waits) {
          FAR_CHECK(mine_.busy.load() == before && mine_.finished.load() != t + 1,
                    "(nobody but the worker serves)");
          wait([&] { return mine_.finished.load() == t + 1; });
        }
        FAR_CHECK(mine_.busy.load() == before + 5);
        FAR_CHECK(matches(mine_.links[asker].large, sizeof mine_.links[asker].large, t));
      } else if (me_ == asker) {
        const worker_no w{t};
        wait([&] { return mine_.started.load() == t + 1; });
        const uint64_t before = p_.fetch_add(w, &mine_.busy, 5);
        FAR_CHECK(p_.load(w, &mine_.busy) == before + 5);
        byte here[sizeof mine_.links[0].large];
        fill(here, sizeof here, t);
        p_.put(w, mine_.links[me_].small, here, 100);
        p_.put(w, mine_.links[me_].large, here, sizeof here);
        p_.get(w, here, mine_.links[me_].large, sizeof here);
        FAR_CHECK(matches(here, sizeof here, t));
        uint64_t expected = t + 1;
        FAR_CHECK(!p_.compare_exchange(w, &mine_.cells[me_][3], expected = ~expected, 1));
        p_.store(w, &mine_.finished, t + 1);
      }
      barrier();
    }
  }

  /// A worker that has ended leaves its memory behind.
  void ended() {
    const worker_no last{n_ - 1};
    if (me_ == n_ - 1) return;
    for (uint64_t i = 0; i < 20; ++i) {
      word* c = &mine_.cells[me_][5];
      p_.store(last, c, i * 10);
      FAR_CHECK(p_.fetch_add(last, c, 1) == i * 10);
      fill(private_.data(), 5000, i);
      p_.put(last, mine_.landing[me_], private_.data(), i % 2 == 0 ? 5000 : 500);
      p_.get(last, private_.data(), mine_.landing[me_], 500);
      FAR_CHECK(matches(private_.data(), 500 / 8 * 8, i));
    }
    if (p_.calls(last)) call_one(last, 8, 100'000, 1);
  }

  place& p_;
  area& mine_;
  const setting& set_;
  const uint32_t me_, n_;
  godwit::base::small_random random_;
  std::vector<byte> private_;
  uint64_t round_ = 0;
  uint64_t casts_ = 0;
};

}  // namespace far_checks
