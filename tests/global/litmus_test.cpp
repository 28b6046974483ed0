// What docs/memory-model.md promises, as small programs: each has one right answer, on every schedule and
// every placement.
// test: timeout=300
//
// A program runs under forced steals and delays (schedules below), its memory at the home of each worker in
// turn, read and written in every way there is. On one host it tests the scheduler's and the accesses' order;
// under MPI and between hosts (tests/mpi/api_under_mpi.cmake) the cache, its release and acquire:
// models/global.pml. STRESS_SEED, STRESS_REPEAT: as in support/schedule.hpp. A thread counts what it sees
// wrong; root gives back the sum.
#include <gtest/gtest.h>
#include <godwit/godwit.hpp>

#include "support/schedule.hpp"

#include <array>
#include <cstring>
#include <span>
#include <vector>

namespace gw = godwit;

namespace {

constexpr std::uint64_t mix(std::uint64_t x) noexcept {
  x += 0x9E3779B97F4A7C15u;
  x = (x ^ (x >> 30)) * 0xBF58476D1CE4E5B9u;
  x = (x ^ (x >> 27)) * 0x94D049BB133111EBu;
  return x ^ (x >> 31);
}

/// Fewer rows than support::for_each_schedule, and small caches among them, so that units are evicted all the
/// time.
template <class Root>
void schedules(Root root) {
  const std::uint64_t repeat = support::number_from_environment("STRESS_REPEAT", 1);
  const bool everything = support::number_from_environment("STRESS_SHORT", 0) == 0;
  std::uint64_t row = 0;
  for (std::uint64_t round = 0; round < repeat; ++round)
    for (const char* force : {"none", "random", "children", "parents"})
      for (const std::uint32_t workers : {2u, 1u, 4u}) {
        if (!everything && (workers != 2 || std::string_view(force) == "parents")) continue;
        gw::options o = support::schedule(workers, force, row % 2 == 0 ? 0 : 5, support::base_seed() + row);
        if (row % 3 == 2) o.cache_bytes = 1 << 20;
        ++row;
        SCOPED_TRACE(support::describe(o) + " cache_bytes=" + std::to_string(o.cache_bytes));
        const std::uint64_t seed = o.seed;
        EXPECT_EQ(gw::run<long>([root, seed] { return root(seed); }, o), 0) << "reads that were wrong";
        if (testing::Test::HasFailure()) return;
      }
}

gw::distribution at_home(std::uint64_t n) {
  return gw::distribution::at(static_cast<std::uint32_t>(n % gw::worker_count()));
}

/// Ways to write one object, and to read it.
constexpr unsigned ways = 5;
template <class T>
void write(gw::global_ptr<T> p, T v, std::uint64_t how) {
  switch (how % ways) {
    case 0:
      gw::put(p, v);
      break;
    case 1:
      gw::checkout(p, 1, gw::access::write)[0] = v;
      break;
    case 2:
      gw::checkout(p, 1, gw::access::read_write)[0] = v;
      break;
    case 3:
      gw::put_async(p, v).join();
      break;
    default:
      gw::scatter<T>(std::span(&v, 1), std::span<const gw::global_ptr<T>>(&p, 1));
      break;
  }
}
template <class T>
T read(gw::global_ptr<T> p, std::uint64_t how) {
  T v{};
  switch (how % ways) {
    case 0:
      v = gw::get(p);
      break;
    case 1:
      v = gw::checkout(p, 1, gw::access::read)[0];
      break;
    case 2:
      v = gw::checkout(p, 1, gw::access::read_write)[0];
      break;
    case 3:
      v = gw::get_async(p).join();
      break;
    default:
      gw::gather<T>(std::span<const gw::global_ptr<T>>(&p, 1), std::span(&v, 1));
      break;
  }
  return v;
}
/// As read(), where other threads may read the same object at the same time: a read_write checkout is a write
/// to them.
template <class T>
T read_beside_others(gw::global_ptr<T> p, std::uint64_t how) {
  return read(p, how % ways == 2 ? how + 1 : how);
}
void work(std::uint64_t n) {
  for (std::uint64_t i = 0; i < n; ++i) asm volatile("" ::: "memory");
}

// Message passing.

TEST(litmus, message_by_join) {
  schedules([](std::uint64_t seed) {
    long wrong = 0;
    for (std::uint64_t i = 0; i < 24; ++i) {
      const auto p = gw::allocate<long>(8, at_home(i));
      const long v = static_cast<long>(i) * 10;
      write(p, v + 1, mix(seed + i));
      wrong += gw::spawn([=] {
                 const long bad = read(p, mix(seed ^ i)) != v + 1;
                 write(p + 1, v + 2, mix(seed + i + 7));
                 write(p, v + 3, mix(seed + i + 8));
                 return bad;
               }).join();
      wrong += read(p + 1, mix(seed + i + 1)) != v + 2;
      wrong += read(p, mix(seed + i + 2)) != v + 3;
      gw::deallocate(p, 8);
    }
    return wrong;
  });
}

TEST(litmus, message_by_future_passed_on) {
  schedules([](std::uint64_t seed) {
    long wrong = 0;
    for (std::uint64_t i = 0; i < 20; ++i) {
      const auto p = gw::allocate<long>(1, at_home(i));
      auto first = gw::spawn([=] {
        work(seed % 1000);
        write(p, 5L, mix(seed + i));
      });
      auto second = gw::spawn([p, i, seed, f = std::move(first)]() mutable {  // another thread joins it
        f.join();
        const long bad = read(p, mix(seed + i + 1)) != 5;
        write(p, 6L, mix(seed + i + 2));
        return bad;
      });
      wrong += second.join();
      wrong += read(p, mix(seed + i + 3)) != 6;
      gw::deallocate(p, 1);
    }
    return wrong;
  });
}

TEST(litmus, message_by_shared_future) {
  schedules([](std::uint64_t seed) {
    long wrong = 0;
    for (std::uint64_t i = 0; i < 12; ++i) {
      const auto p = gw::allocate<long>(5, at_home(i));
      write(p, 1L, mix(seed + i));
      gw::shared_future<long> s = gw::spawn([=] {
        work(mix(seed + i) % 2000);
        for (int k = 0; k < 5; ++k) write(p + k, 40L + k, mix(seed + i) + static_cast<unsigned>(k));
        return 1L;
      });
      std::array<gw::future<long>, 4> readers;
      for (unsigned r = 0; r < 4; ++r)
        readers[r] = gw::spawn([=]() mutable {
          s.get();
          long bad = 0;
          for (int k = 0; k < 5; ++k)
            bad += read_beside_others(p + k, mix(seed + r) + static_cast<unsigned>(k)) != 40 + k;
          return bad;
        });
      for (auto& r : readers) wrong += r.join();
      s.get();
      gw::deallocate(p, 5);
    }
    return wrong;
  });
}

/// Until *p is v: others may have to run here.
void await(gw::global_ptr<long> p, long v, bool relaxed) {
  while (gw::atomic_load(p, relaxed ? std::memory_order_relaxed : std::memory_order_seq_cst) != v)
    gw::yield();
}

TEST(litmus, message_by_flag) {
  schedules([](std::uint64_t seed) {
    long wrong = 0;
    for (std::uint64_t i = 0; i < 12; ++i) {
      // The flag lies in the same unit as the data, or at another home.
      const auto p = gw::allocate<long>(16, at_home(i));
      const auto q = gw::allocate<long>(1, at_home(i / 2));
      const auto flag = i % 2 == 0 ? p + 1 : q;
      const bool relaxed = i % 3 == 0;
      write(p, 0L, seed);
      write(p + 2, 0L, seed);
      gw::put(flag, 0L);
      auto writer = gw::spawn([=] {
        write(p, 7L, mix(seed + i));
        write(p + 2, 8L, mix(seed + i + 1));
        if (relaxed) gw::fence();
        gw::atomic_store(flag, 1L, relaxed ? std::memory_order_relaxed : std::memory_order_seq_cst);
      });
      await(flag, 1, relaxed);
      if (relaxed) gw::fence();
      wrong += read(p, mix(seed + i + 2)) != 7;
      wrong += read(p + 2, mix(seed + i + 3)) != 8;
      writer.join();
      gw::deallocate(p, 16);
      gw::deallocate(q, 1);
    }
    return wrong;
  });
}

TEST(litmus, message_to_every_worker) {
  schedules([](std::uint64_t seed) {
    long wrong = 0;
    const auto slots = gw::allocate<long>(gw::worker_count() + 1, at_home(seed));
    for (long i = 0; i < 10; ++i) {
      write(slots + static_cast<long>(gw::worker_count()), i, mix(seed) + static_cast<unsigned>(i));
      gw::on_each_worker([=] {
        gw::put(slots + static_cast<long>(gw::worker_id()),
                gw::get(slots + static_cast<long>(gw::worker_count())) + 1);
      });
      for (std::uint32_t w = 0; w < gw::worker_count(); ++w)
        wrong += read(slots + static_cast<long>(w), i + w) != i + 1;
    }
    gw::deallocate(slots, gw::worker_count() + 1);
    return wrong;
  });
}

// Orders of atomics.

template <class First, class Second>
long both(First a, Second b) {
  auto f = gw::spawn(a);
  const long y = b();
  return f.join() * 2 + y;
}

TEST(litmus, store_buffering_and_load_buffering) {
  schedules([](std::uint64_t seed) {
    long wrong = 0;
    for (std::uint64_t i = 0; i < 16; ++i) {
      const auto x = gw::allocate<long>(1, at_home(i)), y = gw::allocate<long>(1, at_home(i / 2));
      const bool same_unit = i % 4 == 0;
      const auto z = gw::allocate<long>(2, at_home(i + 1));
      const auto a = same_unit ? z : x, b = same_unit ? z + 1 : y;
      gw::put(a, 0L);
      gw::put(b, 0L);
      const long sb = both([=] { return gw::atomic_store(a, 1L), gw::atomic_load(b); },
                           [=] { return gw::atomic_store(b, 1L), gw::atomic_load(a); });
      wrong += sb == 0;
      gw::put(a, 0L);
      gw::put(b, 0L);
      const long lb = both(
          [=] {
            const long r = gw::atomic_load(b);
            gw::atomic_store(a, 1L);
            return r;
          },
          [=] {
            work(mix(seed + i) % 300);
            const long r = gw::atomic_load(a);
            gw::atomic_store(b, 1L);
            return r;
          });
      wrong += lb == 3;
      gw::deallocate(x, 1);
      gw::deallocate(y, 1);
      gw::deallocate(z, 2);
    }
    return wrong;
  });
}

TEST(litmus, one_location_never_goes_back) {
  schedules([](std::uint64_t seed) {
    long wrong = 0;
    for (std::uint64_t i = 0; i < 4; ++i) {
      const auto p = gw::allocate<long>(2, at_home(i));
      gw::put(p, 0L);
      const bool relaxed = i % 2 == 0;
      const auto order = relaxed ? std::memory_order_relaxed : std::memory_order_seq_cst;
      auto writer = gw::spawn([=] {
        long bad = 0;
        for (long k = 1; k <= 40; ++k) bad += gw::atomic_fetch_add(p, 1L, order) != k - 1;
        return bad;
      });
      long last = 0;
      for (int k = 0; k < 40; ++k) {
        if (k % 8 == 0) read(p + 1, mix(seed + i));  // its unit is fetched again and again
        const long now = gw::atomic_load(p, order);
        wrong += now < last;
        last = now;
      }
      wrong += writer.join();
      wrong += read(p, mix(seed + i + 1)) != 40;
      gw::deallocate(p, 2);
    }
    return wrong;
  });
}

TEST(litmus, what_one_thread_writes_it_reads) {
  schedules([](std::uint64_t seed) {
    long wrong = 0;
    for (std::uint64_t i = 0; i < 4; ++i) {
      const auto p = gw::allocate<long>(64, at_home(i));
      { gw::checkout(p, 64, gw::access::write); }
      for (int k = 0; k < 64; ++k) gw::put(p + k, 0L);
      // Neighbours in the unit, other threads: they fetch and write back while the first one mixes all kinds
      // of accesses.
      std::array<gw::future<long>, 3> others;
      for (unsigned t = 0; t < 3; ++t)
        others[t] = gw::spawn([=] {
          long bad = 0;
          for (long k = 1; k <= 12; ++k) {
            write(p + 8 + t, k, mix(seed + i + static_cast<unsigned>(k)));
            if (k % 4 == 0) gw::fence();
            bad += read(p + 8 + t, mix(seed * 3 + i + static_cast<unsigned>(k))) != k;
          }
          return bad;
        });
      long value = 0;
      for (std::uint64_t k = 0; k < 40; ++k) {
        const std::uint64_t r = mix(seed + i * 1000 + k);
        if (r % 3 == 0) {
          wrong += gw::atomic_fetch_add(
                       p, 1L, r % 2 != 0 ? std::memory_order_relaxed : std::memory_order_seq_cst) != value;
          ++value;
        } else if (r % 3 == 1) {
          write(p, ++value, r / 7);
        } else {
          wrong += read(p, r / 7) != value;
        }
      }
      for (auto& o : others) wrong += o.join();
      for (int t = 0; t < 3; ++t) wrong += read(p + 8 + t, mix(seed)) != 12;
      gw::deallocate(p, 64);
    }
    return wrong;
  });
}

// False sharing.

TEST(litmus, neighbouring_bytes_of_many_writers) {
  schedules([](std::uint64_t seed) {
    long wrong = 0;
    constexpr std::uint64_t bytes = 40'000;
    constexpr std::uint64_t writers = 4;
    using byte = unsigned char;
    for (std::uint64_t i = 0; i < 3; ++i) {
      const auto p = i == 0 ? gw::allocate<byte>(bytes, at_home(seed))
                            : gw::allocate<byte>(bytes, gw::distribution::cyclic(i * 784));
      {
        auto s = gw::checkout(p, bytes, gw::access::write);
        std::memset(s.data(), 0, bytes);
      }
      for (std::uint64_t round = 1; round <= 2; ++round) {
        std::array<gw::future<long>, writers> f;
        for (std::uint64_t t = 0; t < writers; ++t)
          f[t] = gw::spawn([=] {
            long bad = 0;
            // Every byte whose number is t modulo the writers, in a part of the array where units and blocks
            // end.
            for (std::uint64_t b = 16'340 + t; b < 16'430; b += writers) {
              const byte before = read(p + static_cast<long>(b), mix(seed + b));
              bad += before != static_cast<byte>((round - 1) * (b + 1));
              write(p + static_cast<long>(b), static_cast<byte>(round * (b + 1)), mix(b + round + seed));
              if (b % 32 == 0) gw::spawn([] {}).join();
            }
            return bad;
          });
        for (auto& t : f) wrong += t.join();
        auto s = gw::checkout(p, bytes, gw::access::read);
        for (std::uint64_t b = 0; b < bytes; ++b)
          wrong += s[b] != (b >= 16'340 && b < 16'430 ? static_cast<byte>(round * (b + 1)) : 0);
      }
      gw::deallocate(p, bytes);
    }
    return wrong;
  });
}

// Threads that go elsewhere between their accesses.

/// Writes, lets its continuation go, reads and writes there; below it others do the same.
[[gnu::noinline]] long wander(gw::global_ptr<long> p, long size, int depth, std::uint64_t seed) {
  long wrong = 0;
  for (long i = 0; i < size; ++i) write(p + i, depth * 100 + i, mix(seed + static_cast<std::uint64_t>(i)));
  auto f = gw::spawn(
      [=] { return depth == 0 || size < 4 ? 0L : wander(p + size, size / 2, depth - 1, mix(seed)); });
  for (long i = 0; i < size; ++i) {
    wrong += read(p + i, mix(seed * 5 + static_cast<std::uint64_t>(i))) != depth * 100 + i;
    write(p + i, -i, mix(seed * 7 + static_cast<std::uint64_t>(i)));
  }
  wrong += f.join();
  for (long i = 0; i < size; ++i) wrong += read(p + i, mix(seed * 9 + static_cast<std::uint64_t>(i))) != -i;
  return wrong;
}

TEST(litmus, write_leave_read) {
  schedules([](std::uint64_t seed) {
    long wrong = 0;
    for (std::uint64_t i = 0; i < 4; ++i) {
      const auto p = gw::allocate<long>(64, i % 2 == 0 ? at_home(i / 2) : gw::distribution::cyclic(48));
      wrong += wander(p, 32, 5, seed + i);
      gw::deallocate(p, 64);
    }
    return wrong;
  });
}

[[gnu::noinline]] void chain(gw::global_ptr<long> p, int length, std::uint64_t seed) {
  if (length == 0) return;
  write(p, read(p, mix(seed)) + 1, mix(seed + 1));
  gw::spawn([=] { chain(p, length - 1, mix(seed + 2)); }).join();
  write(p, read(p, mix(seed + 3)) + 1, mix(seed + 4));
}

TEST(litmus, chain_of_forks_and_joins) {
  schedules([](std::uint64_t seed) {
    long wrong = 0;
    for (std::uint64_t i = 0; i < 3; ++i) {
      const auto p = gw::allocate<long>(1, at_home(i));
      write(p, 0L, seed);
      chain(p, 25, seed + i);
      wrong += read(p, seed) != 50;
      for (std::uint64_t k = 0; k < 25; ++k)
        gw::spawn([=] { write(p, read(p, mix(seed + k)) + 1, mix(seed * 3 + k)); }).join();
      wrong += read(p, seed + 1) != 75;
      gw::deallocate(p, 1);
    }
    return wrong;
  });
}

TEST(litmus, ping_pong) {
  schedules([](std::uint64_t seed) {
    long wrong = 0;
    for (std::uint64_t i = 0; i < 4; ++i) {
      const auto turn = gw::allocate<long>(4, at_home(i));
      const auto data = i % 2 == 0 ? turn + 1 : gw::allocate<long>(3, at_home(i / 2));
      for (long k = 0; k < 3; ++k) write(data + k, 0L, seed);
      gw::put(turn, 0L);
      const bool relaxed = i >= 2;
      // who waits must not keep the other from starting
      const long rounds = gw::worker_count() == 1 ? 0 : 10;
      auto play = [=](long me) {
        long bad = 0;
        for (long r = 0; r < rounds; ++r) {
          await(turn, 2 * r + me, relaxed);
          if (relaxed) gw::fence();
          for (long k = 0; k < 3; ++k) {
            const std::uint64_t how = mix(seed + static_cast<std::uint64_t>(r * 8 + k * 2 + me));
            bad += read(data + k, how) != 2 * r + me;
            write(data + k, 2 * r + me + 1, how / 16);
          }
          if (relaxed) gw::fence();
          gw::atomic_store(turn, 2 * r + me + 1,
                           relaxed ? std::memory_order_relaxed : std::memory_order_seq_cst);
        }
        return bad;
      };
      auto first = gw::spawn([=] { return play(0); });
      auto second = gw::spawn([=] { return play(1); });
      wrong += first.join();
      wrong += second.join();
      for (long k = 0; k < 3; ++k) wrong += read(data + k, seed) != 2 * rounds;
      if (data != turn + 1) gw::deallocate(data, 3);
      gw::deallocate(turn, 4);
    }
    return wrong;
  });
}

/// Node n of a binary tree in an array writes its slot: its children's and its own number.
[[gnu::noinline]] long sum_tree(gw::global_ptr<long> slots, long n, long nodes, std::uint64_t seed) {
  if (n >= nodes) return 0;
  long wrong = 0;
  const auto [a, b] = gw::invoke([=] { return sum_tree(slots, 2 * n + 1, nodes, mix(seed)); },
                                 [=] { return sum_tree(slots, 2 * n + 2, nodes, mix(seed + 1)); });
  wrong += a + b;
  long sum = n;
  if (2 * n + 1 < nodes) sum += read(slots + (2 * n + 1), mix(seed + 2));
  if (2 * n + 2 < nodes) sum += read(slots + (2 * n + 2), mix(seed + 3));
  write(slots + n, sum, mix(seed + 4));
  return wrong;
}

TEST(litmus, parents_read_what_children_wrote) {
  schedules([](std::uint64_t seed) {
    long wrong = 0;
    constexpr long nodes = 127;
    for (std::uint64_t i = 0; i < 3; ++i) {
      const auto p = gw::allocate<long>(nodes, i == 0   ? gw::distribution::cyclic(32)
                                               : i == 1 ? gw::distribution::blocked()
                                                        : at_home(seed));
      wrong += sum_tree(p, 0, nodes, seed + i);
      wrong += read(p, seed) != nodes * (nodes - 1) / 2;
      gw::deallocate(p, nodes);
    }
    return wrong;
  });
}

TEST(litmus, memory_that_is_used_again) {
  schedules([](std::uint64_t seed) {
    long wrong = 0;
    for (std::uint64_t i = 0; i < 15; ++i) {
      const auto d = i % 5 == 0 ? gw::distribution::cyclic(4096) : at_home(i);
      const long n = i % 5 == 0 ? 1500 : 3;
      // A thread allocates and writes, another one checks and frees.
      const auto p = gw::spawn([=] {
                       const auto q = gw::allocate<long>(static_cast<std::uint64_t>(n), d);
                       for (long k = 0; k < n; k += n / 3)
                         write(q + k, static_cast<long>(i) + k, mix(seed + i));
                       return q;
                     }).join();
      wrong += gw::spawn([=] {
                 long bad = 0;
                 for (long k = 0; k < n; k += n / 3) {
                   bad += read(p + k, mix(seed + i + 1)) != static_cast<long>(i) + k;
                   write(p + k, -1L, mix(seed + i + 2));
                 }
                 gw::deallocate(p, static_cast<std::uint64_t>(n));
                 return bad;
               }).join();
    }
    return wrong;
  });
}

// Random fork-join programs without races, against what a serial interpretation of the same program gives.

/// The same program runs on an array in ordinary memory, and on one in global memory.
struct plain_memory {
  unsigned char* base;
  void get(std::uint64_t at, unsigned char* to, std::uint64_t n, std::uint64_t) const {
    std::memcpy(to, base + at, n);
  }
  void put(std::uint64_t at, const unsigned char* from, std::uint64_t n, std::uint64_t) const {
    std::memcpy(base + at, from, n);
  }
  void move(std::uint64_t to, std::uint64_t from, std::uint64_t n) const {
    std::memmove(base + to, base + from, n);
  }
  void add(std::uint64_t at, unsigned char v, std::uint64_t n) const {
    for (std::uint64_t i = 0; i < n; ++i) base[at + i] = static_cast<unsigned char>(base[at + i] + v);
  }
};
struct global_bytes_memory {
  gw::global_ptr<unsigned char> base;
  void get(std::uint64_t at, unsigned char* to, std::uint64_t n, std::uint64_t how) const {
    if (how % 2 == 0)
      gw::get(base + static_cast<long>(at), to, n);
    else
      std::memcpy(to, gw::checkout(base + static_cast<long>(at), n, gw::access::read).data(), n);
  }
  void put(std::uint64_t at, const unsigned char* from, std::uint64_t n, std::uint64_t how) const {
    if (how % 2 == 0)
      gw::put(base + static_cast<long>(at), from, n);
    else
      std::memcpy(gw::checkout(base + static_cast<long>(at), n, gw::access::write).data(), from, n);
  }
  void move(std::uint64_t to, std::uint64_t from, std::uint64_t n) const {
    gw::copy_n<unsigned char>(base + static_cast<long>(from), n, base + static_cast<long>(to));
  }
  void add(std::uint64_t at, unsigned char v, std::uint64_t n) const {
    for (auto& b : gw::checkout(base + static_cast<long>(at), n, gw::access::read_write))
      b = static_cast<unsigned char>(b + v);
  }
};

/// A node may write [low, high) and read [shared_low, shared_high), which nobody writes meanwhile. Gives a
/// hash of what it read.
template <class Memory>
[[gnu::noinline]] std::uint64_t program(Memory m, std::uint64_t low, std::uint64_t high,
                                        std::uint64_t shared_low, std::uint64_t shared_high,
                                        std::uint64_t seed, int depth) {
  std::uint64_t hash = seed;
  std::array<unsigned char, 96> buffer{};
  // a part of [a, b), at most the buffer
  auto some = [](std::uint64_t r, std::uint64_t a, std::uint64_t b, std::uint64_t& at) {
    const std::uint64_t n = b <= a ? 0 : 1 + r % std::min<std::uint64_t>(b - a, 96);
    at = n == 0 ? a : a + (r >> 20) % (b - a - n + 1);
    return n;
  };
  for (int step = 0; step < 6; ++step) {
    const std::uint64_t r = mix(seed + static_cast<unsigned>(step));
    std::uint64_t at, n;
    switch (r % 5) {
      case 0:
        n = some(r >> 8, shared_low, shared_high, at);
        m.get(at, buffer.data(), n, r >> 40);
        for (std::uint64_t i = 0; i < n; ++i) hash = mix(hash ^ buffer[i]);
        break;
      case 1:
        n = some(r >> 8, low, high, at);
        m.get(at, buffer.data(), n, r >> 40);
        for (std::uint64_t i = 0; i < n; ++i) hash = mix(hash ^ buffer[i]);
        break;
      case 2:
        n = some(r >> 8, low, high, at);
        for (std::uint64_t i = 0; i < n; ++i) buffer[i] = static_cast<unsigned char>(mix(r + i));
        m.put(at, buffer.data(), n, r >> 40);
        break;
      case 3:
        n = some(r >> 8, low, high, at);
        m.add(at, static_cast<unsigned char>(r), n);
        break;
      default: {
        std::uint64_t to;
        n = some(r >> 8, low, high, at);
        n = std::min(n, some(r >> 16, low, high, to));
        m.move(to, at, n);
        break;
      }
    }
    if (depth == 0 || high - low < 8) continue;
    // The children get a part each; between them lies what nobody writes, which they and we may read.
    const std::uint64_t a = low + (r >> 12) % (high - low), b = a + (r >> 28) % (high - a);
    if constexpr (std::is_same_v<Memory, plain_memory>) {
      const std::uint64_t x = program(m, low, a, a, b, mix(r + 1), depth - 1);
      hash = mix(hash + x * 3 + program(m, b, high, a, b, mix(r + 2), depth - 1));
      m.get(a, buffer.data(), std::min<std::uint64_t>(b - a, 96), 0);
    } else if (r % 2 == 0) {
      auto f = gw::spawn([=] { return program(m, low, a, a, b, mix(r + 1), depth - 1); });
      const std::uint64_t y = program(m, b, high, a, b, mix(r + 2), depth - 1);
      m.get(a, buffer.data(), std::min<std::uint64_t>(b - a, 96), r >> 41);
      hash = mix(hash + f.join() * 3 + y);
    } else {
      auto f = gw::spawn([=] { return program(m, low, a, a, b, mix(r + 1), depth - 1); });
      auto g = gw::spawn([=] { return program(m, b, high, a, b, mix(r + 2), depth - 1); });
      m.get(a, buffer.data(), std::min<std::uint64_t>(b - a, 96), r >> 41);
      const std::uint64_t y = g.join();
      hash = mix(hash + f.join() * 3 + y);
    }
    for (std::uint64_t i = 0; i < std::min<std::uint64_t>(b - a, 96); ++i) hash = mix(hash ^ buffer[i]);
  }
  return hash;
}

TEST(litmus, random_programs_do_what_a_serial_interpretation_does) {
  schedules([](std::uint64_t seed) {
    long wrong = 0;
    for (std::uint64_t i = 0; i < 6; ++i) {
      constexpr std::uint64_t most = 50'000;
      const std::uint64_t bytes = i % 2 == 0 ? most : 300, s = mix(seed + i);
      const gw::distribution d = i % 3 == 0   ? gw::distribution::cyclic(16 * (1 + s % 300))
                                 : i % 3 == 1 ? gw::distribution::blocked()
                                              : at_home(s);
      const auto p = gw::allocate<unsigned char>(bytes, d);
      {
        auto out = gw::checkout(p, bytes, gw::access::write);
        for (std::uint64_t b = 0; b < bytes; ++b) out[b] = static_cast<unsigned char>(b * 7);
      }
      const std::uint64_t hash = program(global_bytes_memory{p}, 0, bytes, 0, 0, s, 2);
      wrong += [&] {  // a leaf: what it owns does not travel
        std::vector<unsigned char> serial(bytes);
        for (std::uint64_t b = 0; b < bytes; ++b) serial[b] = static_cast<unsigned char>(b * 7);
        const std::uint64_t right = program(plain_memory{serial.data()}, 0, bytes, 0, 0, s, 2);
        const auto in = gw::checkout(p, bytes, gw::access::read);
        return (hash != right) + 2 * (std::memcmp(serial.data(), in.data(), bytes) != 0);
      }();
      gw::deallocate(p, bytes);
    }
    return wrong;
  });
}

}  // namespace
