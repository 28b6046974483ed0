// Runs of the real library in the simulator, one for each seed, where each access to a shared word is a point
// at which others may go first (base/schedule_points.hpp). docs/scale.md
//
//   seeds run SEED [--workers N] [--hosts N] [--size N] [--faults LIST|none]   one run; what is not said
//                                   follows from the seed
//   seeds owners SEED [...]         likewise one in which threads own memory, and each host has a heap
//   seeds range FIRST COUNT         so many of `run`; a failure is repeated, made smaller, and told
//   seeds owners_range FIRST COUNT  so many of `owners`
//   seeds mistakes MOST [NAME...]   plant each mistake: is it found within so many seeds?
//   seeds same FIRST COUNT          each twice: the same run?
//   seeds crashes FIRST COUNT       in each a worker or companion dies: is that the only reason that is told?
//   seeds names                     the mistakes
//
// Exit status: 0 all right; 1 a failure (mistakes: more than half are not found); 2 wrong arguments.
#include "base/check.hpp"
#include "base/schedule_points.hpp"
#include "seeds/programs.hpp"

#include <algorithm>
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
#include <utility>
#include <vector>

std::uint64_t godwit::base::planted_mistake = 0;
bool godwit::base::stores_are_late = false;

namespace {

namespace gw = godwit;
using seeds::fault_names;
using seeds::plan;
using seeds::run;

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

/// The first seed of [first, first + count) that fails; none: first + count. @p owns: see plan.
std::uint64_t first_failure(std::uint64_t first, std::uint64_t count, bool owns) {
  progress().store(first);  // made before there are children
  constexpr std::uint64_t in_one_process = 500;
  for (std::uint64_t at = first; at < first + count; at += in_one_process) {
    const std::uint64_t end = std::min(at + in_one_process, first + count);
    const bool well = in_child(true, [&] {
      for (std::uint64_t seed = at; seed < end; ++seed) {
        progress().store(seed);
        alarm(patience_s);
        if (!run(plan::of(seed, owns))) return false;
      }
      return true;
    });
    if (!well) return progress().load();
  }
  return first + count;
}

/// The smallest that still fails, by making one thing smaller at a time.
plan shrunk(plan p) {
  bool smaller = true;
  const auto attempt = [&](const plan& q) {
    if (q.workers < q.hosts || runs_well(q, true)) return;
    p = q;
    smaller = true;
  };
  while (std::exchange(smaller, false)) {
    for (std::uint32_t plan::*what : {&plan::size, &plan::hosts, &plan::workers}) {
      plan q = p;
      if (q.*what > 1 && --(q.*what) != 0) attempt(q);
    }
    for (std::size_t i = 0; i < std::size(fault_names); ++i) {
      plan q = p;
      q.faults &= ~(1u << i);
      if (q.faults != p.faults) attempt(q);
    }
  }
  return p;
}

int range(std::uint64_t first, std::uint64_t count, bool owns, const char* self) {
  const std::uint64_t seed = first_failure(first, count, owns);
  if (seed == first + count) {
    std::printf("seeds: %llu runs from seed %llu: all right\n", static_cast<unsigned long long>(count),
                static_cast<unsigned long long>(first));
    return 0;
  }
  const plan p = plan::of(seed, owns);
  std::fprintf(stderr, "seeds: FAILED: %s %s\n", self, p.text().c_str());
  if (runs_well(p, false))
    std::fprintf(stderr, "seeds: by itself it is right: something is left over from the runs before it\n");
  else
    std::fprintf(stderr, "seeds: made smaller: %s %s\n", self, shrunk(p).text().c_str());
  return 1;
}

// ---- mistakes ----

constexpr std::string_view all_mistakes[] = {
    "deque.split_first",
    "deque.owner_has_no_fence",
    "deque.thief_has_no_fence",
    "deque.owner_looks_once",
    "deque.owner_does_not_lock",
    "deque.thief_claims_last",
    "deque.thief_looks_once",
    "deque.thief_unlocks_first",
    "ready.nobody_locks",
    "join.waiter_is_stored",
    "join.frees_while_running",
    "join.next_after_publish",
    "join.done_is_stored",
    "join.copies_are_kept",
    "idle.who_runs_is_not_counted",
    "idle.own_queue_is_not_looked_at",
    "nodes.one_wave_is_enough",
    "nodes.may_be_busy",
    "nodes.answers_first",
    "nodes.answers_are_reset_late",
    "nodes.unclean_is_lost",
    "nodes.nobody_locks",
    "nodes.what_was_seen_is_not_kept",
    "nodes.letters_are_not_summed",
    "nodes.letters_are_looked_at_late",
    "nodes.one_is_not_told",
    "nodes.waiting_elsewhere_is_not_seen",
    "nodes.waiting_may_be_seen_early",
    "nodes.delivery_is_not_counted",
    "nodes.letter_is_here_before_it_counts",
    "mail.is_stored",
    "mail.is_not_counted",
    "mail.is_not_counted_between_hosts",
    "far.sleeps_without_a_look",
    "far.post_has_no_fence",
    "far.posted_first",
    "far.does_not_serve_in_wait",
    "far.inbox_is_silent",
    "far.nobody_takes_over",
    "move.touches_what_left",
    "move.freezes_before_drain",
    "stay.companion_does_not_search",
    "stay.thief_does_not_search",
    "stay.heap_end_is_told_once",
    "stay.images_are_not_searched",
    "stay.closures_are_not_searched",
    "stay.claim_is_kept",
};

int mistakes(std::uint64_t most, const std::vector<std::string_view>& names) {
  std::size_t found = 0;
  for (const std::string_view name : names) {
    gw::base::planted_mistake = gw::base::mistake(name).number;
    const std::uint64_t seed = first_failure(1, most, name.starts_with("stay."));
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

/// f() in a child: how it ended, and what it said to standard error.
template <class F>
std::pair<int, std::string> said_by(F&& f) {
  std::fflush(nullptr);
  int fds[2];
  if (pipe(fds) != 0) std::exit(2);
  const pid_t pid = fork();
  if (pid < 0) std::exit(2);
  if (pid == 0) {
    dup2(fds[1], 2);
    alarm(patience_s);
    _exit(f() ? 0 : 1);
  }
  close(fds[1]);
  std::string text;
  char piece[4096];
  for (ssize_t n; (n = read(fds[0], piece, sizeof piece)) > 0;)
    text.append(piece, static_cast<std::size_t>(n));
  close(fds[0]);
  int status = 0;
  waitpid(pid, &status, 0);
  return {status, text};
}

/// Each seed twice: the line that the simulator prints has the same hash.
int same(std::uint64_t first, std::uint64_t count) {
  for (std::uint64_t seed = first; seed < first + count; ++seed) {
    std::string lines[2];
    for (std::string& line : lines) {
      line = said_by([&] {
               const plan p = plan::of(seed, seed % 4 == 0);
               gw::options o = p.options();
               o.quiet = false;
               return gw::run<bool>(
                   [=] {
                     return p.owns ? seeds::owns(p) : p.under_iso() ? seeds::bursts(p) : seeds::threads(p);
                   },
                   o);
             }).second;
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

/// Until the death is noticed all others go on, and nobody takes what is missing for something else: a run
/// that is over, threads that wait for each other.
int crashes(std::uint64_t first, std::uint64_t count) {
  std::uint64_t died = 0;
  for (std::uint64_t seed = first; seed < first + count; ++seed) {
    plan p = plan::of(seed, seed % 4 == 0);
    p.crashes = true;
    const auto [status, text] = said_by([&] { return run(p); });
    const bool over_before = WIFEXITED(status) && WEXITSTATUS(status) == 0 && text.empty();
    const bool told = WIFEXITED(status) && WEXITSTATUS(status) == gw::base::status_failed &&
                      text.find(" is dead (fault crash") != text.npos && std::ranges::count(text, '\n') == 1;
    died += told ? 1 : 0;
    if (over_before || told) continue;
    std::fprintf(stderr, "seeds: FAILED: crashes %llu 1: status %#x, said: %s\n",
                 static_cast<unsigned long long>(seed), static_cast<unsigned>(status), text.c_str());
    return 1;
  }
  std::printf("seeds: %llu runs from seed %llu, a death in %llu, each told as what it was\n",
              static_cast<unsigned long long>(count), static_cast<unsigned long long>(first),
              static_cast<unsigned long long>(died));
  return died * 2 >= count ? 0 : 1;  // else nothing has been tested
}

std::optional<std::uint64_t> number(std::string_view text) {
  std::uint64_t v = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), v);
  if (error != std::errc() || end != text.data() + text.size()) return {};
  return v;
}

int wrong_arguments() {
  std::fprintf(stderr,
               "usage: seeds run|owners SEED [--workers N] [--hosts N] [--size N] [--faults LIST|none]\n"
               "       seeds range|owners_range FIRST COUNT\n"
               "       seeds mistakes MOST [NAME...]\n"
               "       seeds same FIRST COUNT\n"
               "       seeds crashes FIRST COUNT\n"
               "       seeds names\n");
  return 2;
}

}  // namespace

int main(int argc, char** argv) {
  const std::vector<std::string_view> args(argv + 1, argv + argc);
  if (args.size() == 1 && args[0] == "names") {
    for (const std::string_view name : all_mistakes)
      std::printf("%.*s\n", static_cast<int>(name.size()), name.data());
    return 0;
  }
  if (args.size() < 2) return wrong_arguments();
  const auto first = number(args[1]);
  if (!first || *first == 0) return wrong_arguments();
  if (const char* name = std::getenv("SEEDS_MISTAKE"); name != nullptr)  // of a run that "mistakes" has found
    gw::base::planted_mistake = gw::base::mistake(name).number;
  if (args[0] == "run" || args[0] == "owners") {
    plan p = plan::of(*first, args[0] == "owners");
    for (std::size_t i = 2; i < args.size(); i += 2) {
      if (args[i] == "--faults" && i + 1 < args.size() && p.set_faults(args[i + 1])) continue;
      std::uint32_t* const what = args[i] == "--workers" ? &p.workers
                                  : args[i] == "--hosts" ? &p.hosts
                                  : args[i] == "--size"  ? &p.size
                                                         : nullptr;
      const auto value = i + 1 < args.size() ? number(args[i + 1]) : std::nullopt;
      if (what == nullptr || !value || *value == 0 || *value > 1000) return wrong_arguments();
      *what = static_cast<std::uint32_t>(*value);
    }
    const bool well = run(p);
    std::printf("seeds: %s: %s\n", p.text().c_str(), well ? "all right" : "FAILED");
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
  if (args[0] == "range" || args[0] == "owners_range")
    return range(*first, *count, args[0] == "owners_range", argv[0]);
  if (args[0] == "same") return same(*first, *count);
  if (args[0] == "crashes") return crashes(*first, *count);
  return wrong_arguments();
}
