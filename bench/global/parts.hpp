// What the programs on global memory share: loops by halves, and phases of a run measured on all its workers.
//
// A run of theirs allocates, fills, computes several times and checks; only a phase of that is the time of a
// sample. Used by bench/global/*. Not an interface of the library.
#pragma once

#include <sys/resource.h>

#include <algorithm>
#include <cstdint>
#include <godwit/godwit.hpp>
#include <vector>

#include "../common/clock.hpp"

namespace parts {

namespace gw = godwit;

/// f as a thread and g here, under the policy @p P; waits for both.
template <class P, class F, class G>
void both(F f, const G& g) {
  auto first = P::spawn(f);
  g();
  first.join();
}

/// f(low, high) for pieces of [low, high) of at most @p grain, in parallel. f is plain bytes.
template <class P = gw::policies::greedy, class F>
void halves(std::uint64_t low, std::uint64_t high, std::uint64_t grain, const F& f) {
  if (high - low <= grain) {
    f(low, high);
    return;
  }
  const std::uint64_t middle = low + (high - low) / 2;
  both<P>([=] { halves<P>(low, middle, grain, f); }, [=] { halves<P>(middle, high, grain, f); });
}

/// The same where every worker shall find the memory that it worked on before: of two halves a worker does
/// that first which begins (or else ends) at itself, and leaves the other to be stolen. @p at: element 0 of a
/// blocked allocation.
template <class T, class F>
void halves_near(gw::global_ptr<T> at, std::uint64_t low, std::uint64_t high, std::uint64_t grain,
                 const F& f) {
  if (high - low <= grain) {
    f(low, high);
    return;
  }
  const std::uint64_t middle = low + (high - low) / 2;
  const auto home = [&](std::uint64_t i) { return gw::home_of(at + static_cast<std::ptrdiff_t>(i)); };
  const std::uint32_t first = home(low), last = home(high - 1);
  if (first == last) return halves(low, high, grain, f);
  const auto lower = [=] { halves_near(at, low, middle, grain, f); };
  const auto upper = [=] { halves_near(at, middle, high, grain, f); };
  const std::uint32_t me = gw::worker_id();
  if (me != first && (me == last || (me >= home(middle) && me <= last)))
    gw::invoke(upper, lower);
  else
    gw::invoke(lower, upper);
}

/// The sum of f(low, high) over the pieces; the order of additions is always the same.
template <class R, class P = gw::policies::greedy, class F>
R sum_of_halves(std::uint64_t low, std::uint64_t high, std::uint64_t grain, const F& f) {
  if (high - low <= grain) return f(low, high);
  const std::uint64_t middle = low + (high - low) / 2;
  auto lower = P::spawn([=] { return sum_of_halves<R, P>(low, middle, grain, f); });
  const R upper = sum_of_halves<R, P>(middle, high, grain, f);
  return lower.join() + upper;
}

/// Part of a computation: its time; CPU time and page faults of all workers meanwhile.
struct phase {
  double seconds = 0, cpu_seconds = 0;
  std::uint64_t faults = 0;
};

struct used {
  std::uint64_t cpu_ns, faults;
};
inline used used_here() noexcept {
  rusage u{};
  getrusage(RUSAGE_SELF, &u);
  return {bench::cpu_ns(), static_cast<std::uint64_t>(u.ru_minflt)};
}
/// By all workers so far. In a run.
inline used used_by_all() {
  const auto sum = gw::allocate<std::uint64_t>(2);
  sum[0] = 0;
  sum[1] = 0;
  gw::on_each_worker([sum] {
    const used u = used_here();
    gw::atomic_fetch_add(sum, u.cpu_ns);
    gw::atomic_fetch_add(sum + 1, u.faults);
  });
  const used all{gw::atomic_load(sum), gw::atomic_load(sum + 1)};
  gw::deallocate(sum, 2);
  return all;
}

/// In a run.
template <class F>
phase measured(const F& f) {
  const used before = used_by_all();
  const std::uint64_t start = bench::now_ns();
  f();
  const std::uint64_t end = bench::now_ns();
  const used after = used_by_all();
  return {static_cast<double>(end - start) * 1e-9, static_cast<double>(after.cpu_ns - before.cpu_ns) * 1e-9,
          after.faults - before.faults};
}
/// In one process, all its threads.
template <class F>
phase measured_plain(const F& f) {
  const used before = used_here();
  const std::uint64_t start = bench::now_ns();
  f();
  const std::uint64_t end = bench::now_ns();
  const used after = used_here();
  return {static_cast<double>(end - start) * 1e-9, static_cast<double>(after.cpu_ns - before.cpu_ns) * 1e-9,
          after.faults - before.faults};
}

inline double median_of(std::vector<double> v) {
  std::sort(v.begin(), v.end());
  return v.empty() ? 0 : (v[(v.size() - 1) / 2] + v[v.size() / 2]) / 2;
}

/// Passes over the same data within one run: what they took, median.
constexpr int most_passes = 16;
struct passes {
  int count = 0;
  phase of[most_passes];
  void add(const phase& p) {
    if (count < most_passes) of[count++] = p;
  }
  phase median() const {
    std::vector<double> seconds, cpu, faults;
    for (int i = 0; i < count; ++i) {
      seconds.push_back(of[i].seconds);
      cpu.push_back(of[i].cpu_seconds);
      faults.push_back(static_cast<double>(of[i].faults));
    }
    return {median_of(seconds), median_of(cpu), static_cast<std::uint64_t>(median_of(faults))};
  }
};

/// A number that depends on nothing but its index and a seed.
inline std::uint64_t scrambled(std::uint64_t i, std::uint64_t seed) noexcept {
  std::uint64_t z = (i + 1) * 0x9e3779b97f4a7c15u + seed * 0xd1342543de82ef95u;
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
  z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
  return z ^ (z >> 31);
}

}  // namespace parts
