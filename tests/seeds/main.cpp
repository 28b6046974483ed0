// Runs of the real library in the simulator, one for each seed, where each access to a shared word is a point
// at which others may go first (base/schedule_points.hpp). docs/scale.md
//
//   seeds run SEED [--workers N] [--hosts N] [--size N]   one run; what is not said follows from the seed
//   seeds range FIRST COUNT         so many; a failure is repeated, made smaller, and told
//   seeds mistakes MOST [NAME...]   plant each mistake: is it found within so many seeds?
//   seeds same FIRST COUNT          each twice: the same run?
//
// Exit status: 0 all right; 1 a failure (mistakes: more than half are not found); 2 wrong arguments.
#include "base/schedule_points.hpp"
#include "stress/programs.hpp"

#include <godwit/godwit.hpp>
#include <godwit/sim.hpp>

#include <algorithm>
#include <array>
#include <atomic>
#include <charconv>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <optional>
#include <string>
#include <string_view>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>
#include <vector>

std::uint64_t godwit::base::planted_mistake = 0;

namespace {

namespace gw = godwit;
using stress::mix;

/// What a run is like. All of it follows from the seed, but for what the shrinker has made smaller.
struct plan {
  std::uint64_t seed = 1;
  std::uint32_t workers = 2, hosts = 1, size = 3;

  static plan of(std::uint64_t seed) {
    plan p{seed};
    p.hosts = 1 + static_cast<std::uint32_t>(mix(seed) % 8) / 3;  // 1 1 1 2 2 2 3 3
    p.workers = p.hosts + static_cast<std::uint32_t>(mix(seed + 1) % 4);
    p.size = 2 + static_cast<std::uint32_t>(mix(seed + 2) % 4);
    return p;
  }
  std::string text() const {
    return std::to_string(seed) + " --workers " + std::to_string(workers) + " --hosts " +
           std::to_string(hosts) + " --size " + std::to_string(size);
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
    o.sim_seed = seed;
    o.sim_jitter_ns = std::uint64_t{1} << (8 + mix(seed + 3) % 13);  // 256 ns to 1 ms
    o.sim_lead_ns = mix(seed + 4) % 3 == 0 ? 5'000 : 0;
    o.sim_limit_ms = 20'000;
    o.way = ways[mix(seed + 5) % 4];
    o.force_steal = forces[mix(seed + 6) % 5];
    o.spin_us = mix(seed + 7) % 2 == 0 ? 1 : 200;
    o.empty_check = mix(seed + 8) % 4 != 0;
    o.victims = mix(seed + 9) % 3 == 0 ? gw::choice::victims::uniform : gw::choice::victims::near;
    constexpr gw::choice::policy others[] = {
        gw::choice::policy::stalling, gw::choice::policy::stalling, gw::choice::policy::locked_free,
        gw::choice::policy::stalling_locked_free, gw::choice::policy::crude};
    if (mix(seed + 10) % 3 == 0) o.policy = others[mix(seed + 11) % std::size(others)];
    return o;
  }
};

// ---- what is run: each gives back whether its result is right ----

/// Threads, futures of several, exceptions, detached threads.
bool threads(const plan& p) {
  const std::uint64_t program = mix(p.seed + 20);
  const int depth = static_cast<int>(p.size);
  return stress::with_threads(program, depth) == stress::serial(program, depth);
}

/// Threads that are sent to workers, and that go themselves.
std::uint64_t sent(std::uint64_t h, std::uint32_t depth) {
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
bool letters(const plan& p) { return sent(p.seed | 1, p.size) == std::uint64_t{1} << p.size; }

/// Additions to parts of movable memory that go from host to host meanwhile.
bool moves(const plan& p) {
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

/// Work that comes in bursts: workers become idle, sleep, and are woken in between.
std::uint64_t burst(std::uint64_t h, std::uint32_t depth, std::uint64_t longest) {
  gw::sim::charge(mix(h) % longest);
  if (depth == 0) return 1;
  auto a = gw::spawn([=] { return burst(2 * h, depth - 1, longest); });
  const std::uint64_t b = burst(2 * h + 1, depth - 1, longest);
  return a.join() + b;
}
bool bursts(const plan& p) {
  const std::uint64_t longest = std::uint64_t{1} << (10 + mix(p.seed + 40) % 9);  // 1 us to 0.3 ms
  std::uint64_t sum = 0;
  const std::uint32_t n = 4 * p.size;
  for (std::uint32_t i = 0; i < n; ++i) {
    sum += gw::spawn([=] { return burst(p.seed + i, 2, longest); }).join();
    gw::sim::charge(mix(p.seed + i + 50) % (4 * longest));
  }
  return sum == 4 * n;
}

/// One thread after the other, each somewhere else: who waits for it and who ran it have nothing else to do.
bool errands(const plan& p) {
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

/// In this process. False: with a line about it.
bool run(const plan& p) {
  constexpr bool (*programs[])(const plan&) = {threads, letters, moves, bursts, bursts, errands};
  try {
    const auto program = programs[mix(p.seed + 30) % std::size(programs)];
    if (gw::run<bool>([=] { return program(p); }, p.options())) return true;
    std::fprintf(stderr, "a wrong result\n");
  } catch (const std::exception& e) {
    std::fprintf(stderr, "%s\n", e.what());
  }
  return false;
}

// ---- many of them: in processes of their own, which may crash ----

constexpr unsigned patience_s = 30;

/// Where the child is that runs now.
std::atomic<std::uint64_t>& progress() {
  static void* at = mmap(nullptr, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  return *static_cast<std::atomic<std::uint64_t>*>(at);
}

/// f() in a child: does it end well?
template <class F>
bool in_child(bool silent, F&& f) {
  std::fflush(nullptr);
  const pid_t pid = fork();
  if (pid < 0) {
    std::perror("seeds: fork");
    std::exit(2);
  }
  if (pid == 0) {
    if (silent) static_cast<void>(!std::freopen("/dev/null", "w", stderr));
    _exit(f() ? 0 : 1);
  }
  int status = 0;
  waitpid(pid, &status, 0);
  if (!silent && WIFSIGNALED(status))
    std::fprintf(stderr, "seeds: ended by signal %d%s\n", WTERMSIG(status),
                 WTERMSIG(status) == SIGALRM ? " (it took too long)" : "");
  return WIFEXITED(status) && WEXITSTATUS(status) == 0;
}
bool runs_well(const plan& p, bool silent) {
  return in_child(silent, [&] {
    alarm(patience_s);
    return run(p);
  });
}

/// The first seed of [first, first + count) that fails; none: first + count.
std::uint64_t first_failure(std::uint64_t first, std::uint64_t count) {
  progress().store(first);  // made before there are children
  constexpr std::uint64_t in_one_process = 500;
  for (std::uint64_t at = first; at < first + count; at += in_one_process) {
    const std::uint64_t end = std::min(at + in_one_process, first + count);
    const bool well = in_child(true, [&] {
      for (std::uint64_t seed = at; seed < end; ++seed) {
        progress().store(seed);
        alarm(patience_s);
        if (!run(plan::of(seed))) return false;
      }
      return true;
    });
    if (!well) return progress().load();
  }
  return first + count;
}

/// The smallest that still fails, by making one thing smaller at a time.
plan shrunk(plan p) {
  for (bool smaller = true; smaller;) {
    smaller = false;
    for (std::uint32_t plan::*what : {&plan::size, &plan::hosts, &plan::workers}) {
      plan q = p;
      if (q.*what <= 1) continue;
      --(q.*what);
      if (q.workers < q.hosts || runs_well(q, true)) continue;
      p = q;
      smaller = true;
    }
  }
  return p;
}

int range(std::uint64_t first, std::uint64_t count, const char* self) {
  const std::uint64_t seed = first_failure(first, count);
  if (seed == first + count) {
    std::printf("seeds: %llu runs from seed %llu: all right\n", static_cast<unsigned long long>(count),
                static_cast<unsigned long long>(first));
    return 0;
  }
  const plan p = plan::of(seed);
  std::fprintf(stderr, "seeds: FAILED: %s run %s\n", self, p.text().c_str());
  if (runs_well(p, false))
    std::fprintf(stderr, "seeds: by itself it is right: something is left over from the runs before it\n");
  else
    std::fprintf(stderr, "seeds: made smaller: %s run %s\n", self, shrunk(p).text().c_str());
  return 1;
}

// ---- mistakes ----

constexpr std::string_view all_mistakes[] = {
    "deque.owner_looks_once",
    "deque.owner_does_not_lock",
    "deque.thief_claims_last",
    "deque.thief_looks_once",
    "deque.thief_unlocks_first",
    "ready.nobody_locks",
    "join.waiter_is_stored",
    "join.done_is_stored",
    "idle.who_runs_is_not_counted",
    "idle.own_queue_is_not_looked_at",
    "nodes.clears_first",
    "nodes.looks_once",
    "nodes.loses_units",
    "nodes.one_is_not_told",
    "nodes.waiting_elsewhere_is_not_seen",
    "nodes.waiting_may_be_seen_early",
    "mail.is_stored",
    "mail.is_not_counted",
    "mail.has_no_unit",
    "far.sleeps_without_a_look",
    "move.touches_what_left",
};

int mistakes(std::uint64_t most, const std::vector<std::string_view>& names) {
  std::size_t found = 0;
  for (const std::string_view name : names) {
    gw::base::planted_mistake = gw::base::mistake(name).number;
    const std::uint64_t seed = first_failure(1, most);
    const bool is_found = seed != most + 1;
    found += is_found ? 1 : 0;
    std::printf("%-34.*s %s", static_cast<int>(name.size()), name.data(),
                is_found ? "found by seed " : "not found in ");
    std::printf("%llu\n", static_cast<unsigned long long>(is_found ? seed : most));
    std::fflush(stdout);
  }
  std::printf("seeds: %zu of %zu mistakes found\n", found, names.size());
  return found * 2 >= names.size() ? 0 : 1;
}

/// Each seed twice: the line that the simulator prints has the same hash.
int same(std::uint64_t first, std::uint64_t count) {
  for (std::uint64_t seed = first; seed < first + count; ++seed) {
    std::string lines[2];
    for (std::string& line : lines) {
      int fds[2];
      if (pipe(fds) != 0) return 2;
      in_child(false, [&] {
        dup2(fds[1], 2);
        const plan p = plan::of(seed);
        gw::options o = p.options();
        o.quiet = false;
        return gw::run<bool>([=] { return threads(p); }, o);
      });
      close(fds[1]);
      char text[4096];
      for (ssize_t n; (n = read(fds[0], text, sizeof text)) > 0;)
        line.append(text, static_cast<std::size_t>(n));
      close(fds[0]);
      const auto at = line.find("hash ");
      line = at == line.npos ? "" : line.substr(at, 21);
    }
    if (lines[0] == lines[1] && !lines[0].empty()) continue;
    std::fprintf(stderr, "seeds: seed %llu: '%s' and '%s'\n", static_cast<unsigned long long>(seed),
                 lines[0].c_str(), lines[1].c_str());
    return 1;
  }
  std::printf("seeds: %llu runs from seed %llu, each twice: the same\n",
              static_cast<unsigned long long>(count), static_cast<unsigned long long>(first));
  return 0;
}

std::optional<std::uint64_t> number(std::string_view text) {
  std::uint64_t v = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), v);
  if (error != std::errc() || end != text.data() + text.size()) return {};
  return v;
}

int wrong_arguments() {
  std::fprintf(stderr,
               "usage: seeds run SEED [--workers N] [--hosts N] [--size N]\n"
               "       seeds range FIRST COUNT\n"
               "       seeds mistakes MOST [NAME...]\n"
               "       seeds same FIRST COUNT\n");
  return 2;
}

}  // namespace

int main(int argc, char** argv) {
  const std::vector<std::string_view> args(argv + 1, argv + argc);
  if (args.size() < 2) return wrong_arguments();
  const auto first = number(args[1]);
  if (!first || *first == 0) return wrong_arguments();
  if (const char* name = std::getenv("SEEDS_MISTAKE"); name != nullptr)  // of a run that "mistakes" has found
    gw::base::planted_mistake = gw::base::mistake(name).number;
  if (args[0] == "run") {
    plan p = plan::of(*first);
    for (std::size_t i = 2; i < args.size(); i += 2) {
      std::uint32_t* const what = args[i] == "--workers" ? &p.workers
                                  : args[i] == "--hosts" ? &p.hosts
                                  : args[i] == "--size"  ? &p.size
                                                         : nullptr;
      const auto value = i + 1 < args.size() ? number(args[i + 1]) : std::nullopt;
      if (what == nullptr || !value || *value == 0 || *value > 1000) return wrong_arguments();
      *what = static_cast<std::uint32_t>(*value);
    }
    const bool well = run(p);
    std::printf("seeds: run %s: %s\n", p.text().c_str(), well ? "all right" : "FAILED");
    return well ? 0 : 1;
  }
  if (args[0] == "mistakes") {
    std::vector<std::string_view> names(args.begin() + 2, args.end());
    for (const std::string_view name : names)
      if (std::ranges::find(all_mistakes, name) == std::end(all_mistakes)) return wrong_arguments();
    if (names.empty()) names.assign(std::begin(all_mistakes), std::end(all_mistakes));
    return mistakes(*first, names);
  }
  const auto count = args.size() == 3 ? number(args[2]) : std::nullopt;
  if (!count) return wrong_arguments();
  if (args[0] == "range") return range(*first, *count, argv[0]);
  if (args[0] == "same") return same(*first, *count);
  return wrong_arguments();
}
