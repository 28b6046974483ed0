// The threads of a storm, and what their words must be afterwards.

#include <array>
#include <vector>

#include "../../common/clock.hpp"
#include "../parts.hpp"
#include "storm.hpp"

namespace storm {

namespace {

using words = gw::global_ptr<std::uint64_t>;
using own_words = std::array<std::uint64_t, runs_of_thread * run_words>;

words at(words p, std::uint64_t i) { return p + static_cast<std::ptrdiff_t>(i); }

/// Where run @p r of thread @p t lies: all over the blocks.
std::uint64_t run_at(const settings& s, std::uint32_t t, std::uint64_t r) {
  const std::uint64_t groups = s.words / group_words, nth = r * s.threads + t;
  return nth * groups / (s.threads * runs_of_thread) * group_words;
}

/// One step of a thread: follows from its number.
struct update {
  enum kind : std::uint64_t { add, put, get, read, write, change, gather, scatter };
  kind what;
  bool ordered;           ///< add
  std::uint64_t counter;  ///< add: which word
  std::uint64_t run;      ///< of the thread's own, or the first of two
  std::uint64_t word;     ///< of the run
  std::uint64_t value;
  bool long_held;  ///< a checkout: movers have to wait for it
};
update update_of(const settings& s, std::uint32_t t, std::uint64_t i) {
  const std::uint64_t die = parts::scrambled(i, s.seed * 64 + t);
  constexpr update::kind kinds[16] = {update::add,   update::add,    update::add,    update::add,
                                      update::add,   update::add,    update::add,    update::add,
                                      update::put,   update::put,    update::get,    update::read,
                                      update::write, update::change, update::gather, update::scatter};
  const std::uint64_t group = (die >> 8) % (s.words / group_words);
  return {kinds[die % 16],
          (die >> 4 & 3) == 0,
          group * group_words + run_words + (die >> 40) % run_words,
          (die >> 50) % runs_of_thread,
          (die >> 55) % run_words,
          (die >> 3) | 1,
          die >> 61 == 0};
}

/// Longer than a mover needs to fetch a block, if it did not wait.
void wait_a_little() {
  for (const std::uint64_t until = bench::now_ns() + 500'000; bench::now_ns() < until;) {
  }
}

/// A thread: its words as they must be, and what it found.
struct thread {
  const settings s;
  const words p;
  const std::uint32_t t;
  own_words own{};
  outcome found{};

  std::uint64_t* own_run(std::uint64_t r) { return own.data() + r % runs_of_thread * run_words; }
  words run_words_at(std::uint64_t r) const { return at(p, run_at(s, t, r % runs_of_thread)); }
  template <class Range>
  void compare(const Range& seen, const std::uint64_t* right) {
    for (std::uint64_t k = 0; k < run_words; ++k) found.wrong_reads += seen[k] != right[k];
  }

  void checkouts(const update& u) {
    std::uint64_t* const mine = own_run(u.run);
    if (u.what == update::read) {
      compare(gw::checkout(run_words_at(u.run), run_words, gw::access::read), mine);
    } else if (u.what == update::write) {
      const auto c = gw::checkout(run_words_at(u.run), run_words, gw::access::write);
      if (u.long_held) wait_a_little();
      for (std::uint64_t k = 0; k < run_words; ++k) c[k] = mine[k] = u.value + k;
    } else {
      const auto c = gw::checkout(run_words_at(u.run), run_words, gw::access::read_write);
      compare(c, mine);
      if (u.long_held) wait_a_little();
      for (std::uint64_t k = 0; k < run_words; ++k) c[k] = mine[k] += u.value;
    }
  }

  /// Two words of two runs, in one request.
  void together(const update& u) {
    const std::array<words, 2> where = {at(run_words_at(u.run), u.word), at(run_words_at(u.run + 1), u.word)};
    std::uint64_t* const mine[2] = {own_run(u.run) + u.word, own_run(u.run + 1) + u.word};
    std::array<std::uint64_t, 2> values{};
    found.accesses += 2;
    if (u.what == update::gather) {
      gw::gather(std::span<const words>(where), std::span<std::uint64_t>(values));
      for (int k = 0; k < 2; ++k) found.wrong_reads += values[k] != *mine[k];
    } else {
      for (int k = 0; k < 2; ++k) values[k] = *mine[k] = u.value + k;
      gw::scatter(std::span<const std::uint64_t>(values), std::span<const words>(where));
    }
  }

  void make(const update& u) {
    std::uint64_t& mine = own_run(u.run)[u.word];
    const words where = at(run_words_at(u.run), u.word);
    ++found.updates;
    switch (u.what) {
      case update::add:
        ++found.accesses;
        gw::atomic_fetch_add(at(p, u.counter), u.value,
                             u.ordered ? std::memory_order_seq_cst : std::memory_order_relaxed);
        break;
      case update::put:
        ++found.accesses;
        gw::put(where, mine = u.value);
        break;
      case update::get:
        ++found.accesses;
        found.wrong_reads += gw::get(where) != mine;
        break;
      case update::gather:
      case update::scatter:
        return together(u);
      default:
        return checkouts(u);
    }
  }

  void count(gw::move_result r) {
    ++(r == gw::move_result::moved           ? found.moved
       : r == gw::move_result::already_there ? found.there
       : r == gw::move_result::busy          ? found.busy
                                             : found.no_room);
  }
  /// One block, or now and then some together, to any worker or to the own.
  gw::future<gw::move_result> move(std::uint64_t i) const {
    const std::uint64_t die = parts::scrambled(i, ~s.seed * 64 + t);
    const std::uint64_t block_words = s.block_bytes() / word_bytes;
    const std::uint64_t first = die % ((s.words + block_words - 1) / block_words) * block_words;
    const std::uint64_t n = (die >> 32) % 8 == 0 ? 3 * block_words : 1;
    const std::uint32_t to =
        (die >> 36) % 4 == 0 ? gw::worker_id() : static_cast<std::uint32_t>((die >> 40) % gw::worker_count());
    return gw::move(at(p, first), std::min(n, s.words - first), to);
  }

  /// Some moves of each thread are under way at a time.
  void run() {
    std::array<gw::future<gw::move_result>, 3> moves;
    std::uint64_t moved = 0;
    for (std::uint64_t i = 0; i < s.updates_each(); ++i) {
      make(update_of(s, t, i));
      if (i * s.percent / 100 == (i + 1) * s.percent / 100) continue;
      auto& f = moves[moved % moves.size()];
      if (f.valid()) count(f.join());
      f = move(moved++);
    }
    for (auto& f : moves)
      if (f.valid()) count(f.join());
  }
};

/// What is in use on the host of each worker.
constexpr std::uint32_t most_hosts = 64;
using budgets = std::array<std::uint64_t, most_hosts>;
budgets budgets_now(words room) {
  gw::on_each_worker([room] {
    if (gw::worker_id() < most_hosts)
      gw::atomic_store(at(room, gw::worker_id()), gw::global_memory_usage().used_bytes);
  });
  budgets all{};
  gw::get(room, all.data(), std::min(most_hosts, gw::worker_count()));
  return all;
}

/// Words that are not what they must be. @p own: of all threads, as they left them.
std::uint64_t wrong_words(const settings& s, words p, words own) {
  std::vector<std::uint64_t> right(s.words), found(s.words);
  for (std::uint32_t t = 0; t < s.threads; ++t) {
    for (std::uint64_t i = 0; i < s.updates_each(); ++i)
      if (const update u = update_of(s, t, i); u.what == update::add) right[u.counter] += u.value;
    for (std::uint64_t r = 0; r < runs_of_thread; ++r)
      gw::get(at(own, (t * runs_of_thread + r) * run_words), right.data() + run_at(s, t, r), run_words);
  }
  gw::get(p, found.data(), s.words);
  std::uint64_t wrong = 0;
  for (std::uint64_t i = 0; i < s.words; ++i) wrong += right[i] != found[i];
  return wrong;
}

void clear(words p, std::uint64_t n) {
  const std::vector<std::uint64_t> zeros(n);
  gw::put(p, zeros.data(), n);
}

/// @p own gets what its words must be.
outcome run_thread(const settings& s, words p, words own, std::uint32_t t) {
  thread one{s, p, t};
  one.run();
  gw::put(at(own, t * one.own.size()), one.own.data(), one.own.size());
  return one.found;
}

/// [first, last)
outcome run_threads(const settings& s, words p, words own, std::uint32_t first, std::uint32_t last) {
  if (last - first == 1) return run_thread(s, p, own, first);
  const std::uint32_t middle = first + (last - first) / 2;
  auto [all, right] = gw::invoke([=] { return run_threads(s, p, own, first, middle); },
                                 [=] { return run_threads(s, p, own, middle, last); });
  all.add(right);
  return all;
}

}  // namespace

outcome run(const settings& s) {
  const std::uint64_t own_count = s.threads * runs_of_thread * run_words;
  const words own = gw::allocate<std::uint64_t>(own_count, gw::distribution::at(0));
  const words room = gw::allocate<std::uint64_t>(most_hosts, gw::distribution::at(0));
  const budgets before = budgets_now(room);
  const words p =
      gw::allocate<std::uint64_t>(s.words, gw::distribution::cyclic(s.block_bytes()).movable(), page_bytes);
  clear(p, s.words);
  const std::uint64_t start = bench::now_ns();
  outcome all = run_threads(s, p, own, 0, s.threads);
  all.seconds = static_cast<double>(bench::now_ns() - start) * 1e-9;
  all.wrong_words = wrong_words(s, p, own);
  gw::deallocate(p, s.words);
  const budgets after = budgets_now(room);
  for (std::uint32_t w = 0; w < most_hosts; ++w) all.wrong_budgets += before[w] != after[w];
  gw::deallocate(room, most_hosts);
  gw::deallocate(own, own_count);
  return all;
}

}  // namespace storm
