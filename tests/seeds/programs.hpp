// What a seed means: the options of its run, and the program. Part of main.cpp.
#pragma once

#include "base/schedule_points.hpp"
#include "seeds/owners.hpp"
#include "stress/programs.hpp"

#include <godwit/godwit.hpp>
#include <godwit/policy.hpp>
#include <godwit/sim.hpp>

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstdio>
#include <exception>
#include <string>
#include <string_view>

namespace seeds {

namespace gw = godwit;
using stress::mix;

/// The simulator's, and late stores (base/schedule_points.hpp), which are this tester's.
inline constexpr std::string_view fault_names[] = {"delay", "stall", "slow",  "spurious",
                                                   "late",  "small", "stores"};

/// What a run is like. All of it follows from the seed, but for what the shrinker has made smaller.
struct plan {
  static constexpr std::uint64_t programs = 9;  // see run; the last three are `reuses` and `few`
  std::uint64_t seed = 1;
  std::uint32_t workers = 2, hosts = 1, size = 3;
  std::uint32_t faults = 0;  // bits: which of fault_names
  bool crashes = false;      // the simulator's fault crash, too
  bool owns = false;         // threads own memory, and each host has a heap (owners.hpp)

  static plan of(std::uint64_t seed, bool owns = false) {
    plan p{seed};
    p.owns = owns;
    p.hosts = 1 + static_cast<std::uint32_t>(mix(seed) % 8) / 3;  // 1 1 1 2 2 2 3 3
    p.workers = p.hosts + static_cast<std::uint32_t>(mix(seed + 1) % 4);
    if (owns) p.hosts = 2 + static_cast<std::uint32_t>(mix(seed) % 2);
    if (owns) p.workers = p.hosts + static_cast<std::uint32_t>(mix(seed + 1) % 5);
    if (p.runs_few() || p.reuses()) {  // what it is for takes two hosts, and two workers on one of them
      p.hosts = std::max(p.hosts, 2u);
      p.workers = std::max(p.workers, p.hosts + 1);
    }
    p.size = 2 + static_cast<std::uint32_t>(mix(seed + 2) % 4);
    if (mix(seed + 11) % 3 != 0)  // none in a third of the runs, else each in a third
      for (std::size_t i = 0; i < std::size(fault_names); ++i)
        p.faults |= mix(seed + 60 + i) % 3 == 0 ? 1u << i : 0u;
    return p;
  }
  std::uint64_t program() const { return mix(seed + 30) % programs; }
  bool reuses() const { return !owns && program() == programs - 3; }
  bool runs_few() const { return !owns && program() >= programs - 2; }
  std::string text() const {
    return (owns ? "owners " : "run ") + std::to_string(seed) + " --workers " + std::to_string(workers) +
           " --hosts " + std::to_string(hosts) + " --size " + std::to_string(size) + " --faults " +
           (faults == 0 ? "none" : fault_list());
  }
  bool stores_are_late() const { return (faults >> (std::size(fault_names) - 1) & 1) != 0; }
  std::string fault_list(std::size_t first_of = std::size(fault_names)) const {
    std::string list;
    for (std::size_t i = 0; i < first_of; ++i)
      if ((faults >> i & 1) != 0) list += (list.empty() ? "" : ",") + std::string(fault_names[i]);
    return list;
  }
  /// False: @p list is none.
  bool set_faults(std::string_view list) {
    faults = 0;
    if (list == "none") return true;
    while (!list.empty()) {
      const auto* const at = std::ranges::find(fault_names, list.substr(0, list.find(',')));
      if (at == std::end(fault_names)) return false;
      faults |= 1u << (at - fault_names);
      list.remove_prefix(std::min(at->size() + 1, list.size()));
    }
    return true;
  }
  gw::options options() const {
    constexpr gw::choice::way ways[] = {gw::choice::way::server, gw::choice::way::assist, gw::choice::way::am,
                                        gw::choice::way::rma};
    constexpr gw::choice::force_steal forces[] = {
        gw::choice::force_steal::none, gw::choice::force_steal::none, gw::choice::force_steal::random,
        gw::choice::force_steal::parents, gw::choice::force_steal::children};
    gw::options o;
    o.substrate = gw::choice::substrate::sim;
    o.quiet = true;
    o.workers = workers;
    o.sim_hosts = hosts;
    o.sim_machine = "example";
    o.sim_seed = seed;
    o.sim_jitter_ns = std::uint64_t{1} << (runs_few() ? 15 + mix(seed + 3) % 6
                                                      : 8 + mix(seed + 3) % 13);  // 256 ns (32 us) to 1 ms
    o.sim_lead_ns = mix(seed + 4) % 3 == 0 ? 5'000 : 0;
    o.sim_limit_ms = 20'000;
    o.sim_faults = fault_list(std::size(fault_names) - 1);
    if (crashes) o.sim_faults += o.sim_faults.empty() ? "crash" : ",crash";
    o.way = ways[mix(seed + 5) % 4];
    if (o.way == gw::choice::way::server) o.companions = 1 + mix(seed + 16) % 3;
    o.force_steal = forces[mix(seed + 6) % 5];
    o.spin_us = mix(seed + 7) % 2 == 0 ? 1 : 200;
    const bool checks = mix(seed + 12) % 8 == 0 && !reuses();  // looks at a long table for each checkout
    o.check_global = checks ? gw::choice::check_global::on : gw::choice::check_global::off;
    o.cache_bytes = 1 << 20;  // all of it is looked through at the end
    o.global_bytes = 256 << 20;
    o.empty_check = mix(seed + 8) % 4 != 0;
    o.victims = mix(seed + 9) % 3 == 0 ? gw::choice::victims::uniform : gw::choice::victims::near;
    constexpr gw::choice::policy others[] = {
        gw::choice::policy::stalling, gw::choice::policy::stalling, gw::choice::policy::locked_free,
        gw::choice::policy::stalling_locked_free, gw::choice::policy::crude};
    if (mix(seed + 10) % 3 == 0) o.policy = others[mix(seed + 11) % std::size(others)];
    if (under_iso()) o.policy = gw::choice::policy::iso;
    if (!owns) return o;
    o.heap = gw::choice::heap::shared;
    if (mix(seed + 14) % 4 == 0) {
      o.policy = mix(seed + 15) % 2 == 0 ? gw::choice::policy::child_full : gw::choice::policy::child_rtc;
      o.force_steal = gw::choice::force_steal::none;
    }
    return o;
  }
  /// On one host, and with programs that spawn as this policy asks them to: bursts, errands.
  bool under_iso() const {
    return !owns && hosts == 1 && (program() == 3 || program() == 4) && mix(seed + 13) % 3 == 0;
  }
};

// ---- what is run: each gives back whether its result is right ----

/// Threads, futures of several, exceptions, detached threads.
inline bool threads(const plan& p) {
  const std::uint64_t program = mix(p.seed + 20);
  const int depth = static_cast<int>(p.size);
  return stress::with_threads(program, depth) == stress::serial(program, depth);
}

/// Threads that are sent to workers, and that go themselves.
inline std::uint64_t sent(std::uint64_t h, std::uint32_t depth) {
  if (depth == 0) return 1;
  const std::uint32_t n = gw::worker_count();
  auto a = gw::spawn_at(gw::worker(static_cast<std::uint32_t>(mix(h) % n)),
                        [=] { return sent(2 * h, depth - 1); });
  auto b = gw::spawn([=] {
    if (h % 3 == 0) gw::migrate_to(gw::worker(static_cast<std::uint32_t>(mix(h + 1) % n)));
    return sent(2 * h + 1, depth - 1);
  });
  return a.join() + b.join();
}
inline bool letters(const plan& p) { return sent(p.seed | 1, p.size) == std::uint64_t{1} << p.size; }

/// Additions to parts of movable memory that go from host to host meanwhile.
inline bool moves(const plan& p) {
  constexpr std::uint64_t words_of_page = 512, parts = 3;
  const std::uint64_t each = 4 * p.size;
  const std::uint32_t n = gw::worker_count();
  const auto at =
      gw::allocate<std::uint64_t>(parts * words_of_page, gw::distribution::cyclic(4096).movable(4096));
  for (std::uint64_t i = 0; i < parts; ++i) gw::put(at + i * words_of_page, 0);
  std::array<gw::future<void>, 4> all;
  for (std::uint64_t t = 0; t < 2; ++t) {
    all[2 * t] = gw::spawn([=] {
      for (std::uint64_t i = 0; i < each; ++i)
        gw::atomic_fetch_add(at + mix(t * each + i) % parts * words_of_page, std::uint64_t{1});
    });
    all[2 * t + 1] = gw::spawn([=] {
      for (std::uint64_t i = 0; i < each / 2; ++i)
        gw::move(at + mix(t + 100 * i) % parts * words_of_page,
                 static_cast<std::uint32_t>(mix(7 * t + i) % n))
            .join();
    });
  }
  for (auto& f : all) f.join();
  std::uint64_t sum = 0;
  for (std::uint64_t i = 0; i < parts; ++i) sum += gw::get(at + i * words_of_page);
  gw::deallocate(at, parts * words_of_page);
  return sum == 2 * each;
}

/// Memory whose addresses are used again, each time with other blocks near, beside threads that fill the
/// cache: units of what was freed leave it when the next allocation is written there.
inline bool reuses(const plan& p) {
  constexpr std::uint64_t blocks = 24;  // all begin in one set of the cache, which has no room for them
  constexpr std::uint64_t little = 64 << 10, large = 4 << 20;  // of the large ones there is no room for two
  const auto word_of = [](gw::global_ptr<std::uint64_t> at, std::uint64_t b, std::uint64_t size) {
    return at + b * size / sizeof(std::uint64_t);
  };
  const std::uint32_t n = gw::worker_count();
  const std::uint64_t words = blocks * little / sizeof(std::uint64_t),
                      large_words = blocks * large / sizeof(std::uint64_t);
  const auto others = gw::allocate<std::uint64_t>(words, gw::distribution::cyclic(little));
  gw::put(others, 1);  // 0: it is over
  std::array<gw::future<void>, 2> fill;
  for (std::uint32_t t = 0; t < 2; ++t)
    fill[t] = gw::spawn_at(gw::worker((n - 2) * t), [=] {
      for (std::uint64_t i = t; gw::atomic_load(others) != 0; ++i) {
        gw::sim::charge(1'000);
        gw::yield();
        for (std::uint64_t b = 1; b < blocks; ++b)
          static_cast<void>(gw::global_span(word_of(others, (i + 5 * b) % (blocks - 1) + 1, little), 1)
                                .checkout(gw::access::read));
      }
    });
  auto again = gw::spawn_at(gw::worker(n - 1), [=] {
    bool right = true;
    for (std::uint32_t round = 0; round < 2 + p.size; ++round) {
      const auto turned = [round](std::uint64_t b, std::uint64_t, std::uint32_t homes) {
        return static_cast<std::uint32_t>((b + round) % homes);
      };
      const auto at = gw::allocate<std::uint64_t>(large_words, gw::distribution::user(large, turned));
      for (std::uint64_t b = 0; b < blocks; ++b) gw::put(word_of(at, b, large), b + round);
      for (std::uint64_t b = 0; b < blocks; ++b)
        right = gw::global_span(word_of(at, b, large), 1).checkout(gw::access::read)[0] == b + round && right;
      gw::sim::charge(100'000);
      for (std::uint64_t b = 0; b < blocks; ++b) right = gw::get(word_of(at, b, large)) == b + round && right;
      gw::deallocate(at, large_words);
    }
    return right;
  });
  const bool right = again.join();
  gw::atomic_store(others, std::uint64_t{0});
  for (auto& f : fill) f.join();
  gw::deallocate(others, words);
  return right;
}

/// One thread after the other, each somewhere else: who waits for it and who ran it have nothing else to do.
inline bool errands(const plan& p) {
  const std::uint64_t longest = std::uint64_t{1} << (14 + mix(p.seed + 60) % 8);
  const std::uint32_t n = gw::worker_count(), count = 4 * p.size;
  std::uint64_t sum = 0;
  for (std::uint64_t i = 0; i < count; ++i) {
    const std::uint64_t h = mix(p.seed + 61) + i;
    sum += gw::spawn_at(gw::worker(static_cast<std::uint32_t>(mix(h) % n)), [=] {
             gw::sim::charge(mix(h + 1) % longest);
             auto inner = gw::spawn_at(gw::worker(static_cast<std::uint32_t>(mix(h + 2) % n)), [=] {
               gw::sim::charge(mix(h + 3) % longest);
               return std::uint64_t{1};
             });
             return inner.join();
           }).join();
  }
  return sum == count;
}

/// Work that comes in bursts: workers become idle, sleep, and are woken in between.
template <class Policy>
std::uint64_t burst(std::uint64_t h, std::uint32_t depth, std::uint64_t longest) {
  gw::sim::charge(mix(h) % longest);
  if (depth == 0) return 1;
  auto a = Policy::spawn([=] { return burst<Policy>(2 * h, depth - 1, longest); });
  const std::uint64_t b = burst<Policy>(2 * h + 1, depth - 1, longest);
  return a.join() + b;
}
template <class Policy>
bool bursts_under(const plan& p) {
  const std::uint64_t longest = std::uint64_t{1} << (10 + mix(p.seed + 40) % 9);  // 1 us to 0.3 ms
  std::uint64_t sum = 0;
  const std::uint32_t n = 4 * p.size;
  for (std::uint32_t i = 0; i < n; ++i) {
    sum += Policy::spawn([=] { return burst<Policy>(p.seed + i, 2, longest); }).join();
    gw::sim::charge(mix(p.seed + i + 50) % (4 * longest));
  }
  return sum == 4 * n;
}
inline bool bursts(const plan& p) {
  // Policies that steal continuations have one spawn, but for this one.
  return p.under_iso() ? bursts_under<gw::policies::iso>(p) : bursts_under<gw::policies::greedy>(p);
}

/// At each time one thread has something to do, on this host or that, and all others are idle: who counts
/// hosts wrongly believes that the run is over.
inline bool alone(const plan& p) {
  const std::uint64_t longest = std::uint64_t{1} << (14 + mix(p.seed + 41) % 9);  // 16 us to 4 ms
  const std::uint32_t n = 6 * p.size;
  std::uint64_t done = 0;
  for (std::uint32_t i = 0; i < n; ++i) {
    const std::uint64_t h = mix(p.seed + 1000 * i), first = mix(h + 1) % longest, then = mix(h + 2) % longest;
    const gw::worker there(static_cast<std::uint32_t>(mix(h + 3) % gw::worker_count()));
    const auto child = [=] {
      gw::sim::charge(first / 8);
      return std::uint64_t{1};
    };
    switch (h % 4) {
      case 0:
      case 1: {  // whoever takes the continuation is alone as soon as the child ends
        auto f = gw::spawn(child);
        gw::sim::charge(then);
        done += f.join();
        break;
      }
      case 2:
        done += gw::spawn_at(there, child).join();
        break;
      case 3:
        gw::migrate_to(there);
        gw::sim::charge(then);
        ++done;
        break;
    }
  }
  return done == n;
}

/// Two or three threads at a time: hosts become idle and busy again at the same moments. Who takes the
/// continuation of the second spawn is often alone afterwards.
inline bool few(const plan& p) {
  const std::uint32_t n = 3 * p.size;
  std::uint64_t done = 0;
  for (std::uint32_t i = 0; i < n; ++i) {
    const std::uint64_t h = mix(p.seed + 1000 * i);
    const auto time = [&](std::uint64_t which) {  // up to 8 us ... 4 ms, each limit as likely as twice that
      return mix(h + which) % (std::uint64_t{1} << (13 + mix(h + which + 10) % 10));
    };
    const auto compute = [](std::uint64_t ns) {
      return [ns] {
        gw::sim::charge(ns);
        return std::uint64_t{1};
      };
    };
    const gw::worker there(static_cast<std::uint32_t>(mix(h) % gw::worker_count()));
    auto elsewhere = gw::spawn_at(there, compute(time(1)));
    gw::sim::charge(time(2));
    auto here = gw::spawn(compute(time(3)));
    gw::sim::charge(time(4));
    done += elsewhere.join() + here.join();
  }
  return done == 2 * n;
}

/// Threads that own.
template <class Policy>
bool owns_under(const plan& p) {
  const std::uint64_t longest = std::uint64_t{1} << (10 + mix(p.seed + 42) % 9);  // 1 us to 0.3 ms
  return owners<Policy>{longest}.node(p.seed | 1, p.size) == (std::uint64_t{2} << p.size) - 1;
}
inline bool owns(const plan& p) {
  switch (p.options().policy) {
    case gw::choice::policy::child_full:
      return owns_under<gw::policies::child_full>(p);
    case gw::choice::policy::child_rtc:
      return owns_under<gw::policies::child_rtc>(p);
    default:  // these have one spawn
      return owns_under<gw::policies::greedy>(p);
  }
}

/// In this process. False: with a line about it.
inline bool run(const plan& p) {
  constexpr bool (*all[plan::programs])(const plan&) = {threads, letters, moves, bursts, errands,
                                                        alone,   reuses,  few,   few};
  gw::base::stores_are_late = p.stores_are_late();
  try {
    const auto program = p.owns ? owns : all[p.program()];
    if (gw::run<bool>([=] { return program(p); }, p.options())) return true;
    std::fprintf(stderr, "a wrong result\n");
  } catch (const std::exception& e) {
    std::fprintf(stderr, "%s\n", e.what());
  }
  return false;
}

}  // namespace seeds
