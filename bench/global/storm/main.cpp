// global_storm: storms of updates and moves, each verified to the last word. See storm.hpp.
//
// With several hosts it also counts, and limits, the messages of an access: those in vain too, while a block
// is on its way. One storm is one run, so that counters are its own.

#include <algorithm>
#include <cstdio>
#include <stdexcept>

#include "../../common/godwit_run.hpp"
#include "storm.hpp"

namespace {

constexpr double most_messages = 6;

/// A storm, and what it cost.
struct counted {
  storm::outcome found;
  std::uint64_t messages = 0;  ///< of gets, puts and atomics
  std::uint64_t parts = 0;     ///< that moved

  double messages_each() const {
    return found.accesses == 0 ? 0 : static_cast<double>(messages) / static_cast<double>(found.accesses);
  }
  void add(const counted& c) {
    found.add(c.found);
    messages += c.messages;
    parts += c.parts;
  }
};

counted run_once(const storm::settings& s, unsigned workers) {
  godwit::options o;
  o.workers = workers;
  counted c;
  c.found = godwit::run<storm::outcome>([s] { return storm::run(s); }, o);
  for (const auto& w : godwit::last_run_stats()) {
    c.messages += w.far_gets + w.far_puts + w.far_atomics;
    c.parts += w.moves;
  }
  return c;
}

/// What is to be run: what was left open is another for each storm.
struct campaign {
  storm::settings s;
  std::uint64_t runs = 0;
  unsigned most_words_log2 = 20;

  storm::settings nth(std::uint64_t n) const {
    storm::settings now = s;
    now.seed += n;
    if (now.percent == 0) now.percent = static_cast<unsigned>(now.seed * 37 % 100) + 1;
    if (now.words == 0) now.words = std::uint64_t{1024} << now.seed % (most_words_log2 - 9);
    now.threads =
        static_cast<std::uint32_t>(std::min<std::uint64_t>(now.threads, storm::most_threads(now.words)));
    return now;
  }
};

std::string command_of(const storm::settings& s) {
  return "--runs 1 --seed " + std::to_string(s.seed) + " --words " + std::to_string(s.words) + " --percent " +
         std::to_string(s.percent) + " --moves " + std::to_string(s.moves) + " --threads " +
         std::to_string(s.threads);
}

/// What was wrong, on standard error; in the first rank.
void say_wrong(const storm::settings& s, const storm::outcome& o) {
  if (!godwit::is_first_process()) return;
  std::fprintf(
      stderr,
      "global_storm: %s: %llu reads and %llu words were wrong, %llu budgets changed, %llu moves had no "
      "room\n",
      command_of(s).c_str(), static_cast<unsigned long long>(o.wrong_reads),
      static_cast<unsigned long long>(o.wrong_words), static_cast<unsigned long long>(o.wrong_budgets),
      static_cast<unsigned long long>(o.no_room));
}

void show(bench::program& program, const campaign& c, unsigned workers, std::uint64_t wrong,
          const counted& sum, double worst) {
  const storm::outcome& o = sum.found;
  std::fprintf(program.out(), "%s storms of %s moves each by %u workers: %s right\n",
               bench::grouped(c.runs).c_str(), bench::grouped(c.s.moves).c_str(), workers,
               bench::grouped(c.runs - wrong).c_str());
  program.json()["measurements"].push_back({{"title", "Storms"},
                                            {"rows",
                                             {{{"storms", c.runs},
                                               {"right", c.runs - wrong},
                                               {"workers", workers},
                                               {"updates", o.updates},
                                               {"moved", o.moved},
                                               {"there already", o.there},
                                               {"busy", o.busy},
                                               {"parts", sum.parts},
                                               {"messages_each", sum.messages_each()},
                                               {"messages_worst", worst}}}}});
  program.figure("right", "storms of which every word was right", static_cast<double>(c.runs - wrong), "",
                 "of " + bench::grouped(c.runs));
  program.figure("messages", "messages of an access", sum.messages_each(), "",
                 "mean over all storms, those in vain included; 6 at most");
  program.figure("messages.worst", "the same in one storm", worst, "", "the most");
}

}  // namespace

int main(int argc, char** argv) {
  campaign c;
  c.s.percent = 0;
  bench::program program("global_storm", "Updates of movable memory beside moves of it, verified.", argc,
                         argv);
  program.option("--runs", c.runs, "Storms, each with another seed (default 100; with --quick 20)");
  program.option("--moves", c.s.moves, "Moves in a storm (default 1,000; with --quick 200)");
  program.option("--percent", c.s.percent, "Moves for 100 updates (default: 1 to 100 in turn)",
                 bench::between(0, 100));
  program.option("--words", c.s.words,
                 "Words of 8 bytes (default: 2^10 to 2^20 in turn; with --quick to 2^14)",
                 bench::between(0, 1 << 26));
  program.option("--blocks", c.s.blocks, "Blocks that they are divided into", bench::between(1, 1 << 20));
  program.option("--threads", c.s.threads, "Threads (default: two for every worker)", bench::between(0, 64));
  program.option("--seed", c.s.seed, "Of the first storm");
  program.parse();
  const bool quick = program.options().quick;
  if (c.runs == 0) c.runs = quick ? 20 : 100;
  if (c.s.moves == 0) c.s.moves = quick ? 200 : 1000;
  if (quick) c.most_words_log2 = 14;
  const unsigned w = program.most_workers();
  if (c.s.threads == 0) c.s.threads = std::min(2 * w, 64u);
  if (c.s.words != 0 && storm::most_threads(c.s.words) == 0)
    bench::usage_error("global_storm: --words must be at least 64: a thread has words of its own");
  counted sum;
  std::uint64_t wrong = 0;
  double worst = 0;
  try {
    for (std::uint64_t n = 0; n < c.runs; ++n) {
      const storm::settings s = c.nth(n);
      const counted one = run_once(s, w);
      sum.add(one);
      worst = std::max(worst, one.messages_each());
      if (one.found.right()) continue;
      ++wrong;
      say_wrong(s, one.found);
    }
    if (godwit::is_first_process()) show(program, c, w, wrong, sum, worst);
  } catch (const std::exception& e) {
    std::fprintf(stderr, "global_storm: %s\n", e.what());
    return 1;
  }
  if (wrong != 0) program.wrong("words, reads or budgets were not what they must be");
  if (sum.messages_each() > most_messages) program.wrong("accesses took more messages than allowed");
  return program.finish();
}
