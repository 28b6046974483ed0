// The functions of heat.hpp, rebalance.hpp and on_move.hpp on top of this worker's gas::memory.
//
// A plan lies in global memory, at the worker that made it: the thread that waits for it may go on on another
// host, where a vector would not be. Who is to have parts reads its rows there, pulls, and says in them what
// became of it. Tests: tests/global/rebalance_test.cpp.
#include "runtime/global.hpp"

#include <godwit/on_move.hpp>
#include <godwit/rebalance.hpp>

#include "gas/heat.hpp"
#include "sched/worker.hpp"

#include <algorithm>

namespace godwit::detail {

namespace {

/// A part of a plan. Those that shall move first, by who gets them.
struct balance_row {
  global_address at;
  std::uint64_t bytes;
  double load;
  std::uint32_t from, to;
  move_result result;
};

/// Rows that one worker gets: the call of a letter.
struct pull_rows {
  global_address rows;
  std::uint64_t count;
  std::uint32_t to;
  static void carry_out(const void* closure);
};

/// Parts in use are not waited for longer than a moment.
constexpr std::uint64_t patience_ns = 2'000'000;

std::vector<balance_row> rows_at(global_address at, std::uint64_t count) {
  std::vector<balance_row> rows(count);
  if (count != 0) runtime::memory_of("rebalance").access.get(at, rows.data(), count * sizeof(balance_row));
  return rows;
}

void pull_rows::carry_out(const void* closure) {
  const auto& what = *static_cast<const pull_rows*>(closure);
  gas::memory& m = runtime::memory_of("rebalance");
  std::vector<balance_row> rows = rows_at(what.rows, what.count);
  std::vector<gas::byte_range> ranges;
  for (const balance_row& r : rows) ranges.push_back({r.at, r.bytes});
  const move_result all = m.mover.pull(ranges, what.to, patience_ns);
  for (balance_row& r : rows) {
    const gas::piece p = m.directory.first_piece(r.at, 1);
    const gas::part_state now = p.place(m.net).look(gas::heat_then::stays, m.net.host());
    const bool here = now.place.what == gas::place_says::done &&
                      gas::ownership::from(now.place.owner, p.home).worker == what.to;
    r.result = here ? move_result::moved : std::max(all, move_result::busy);
  }
  m.access.put(what.rows, rows.data(), rows.size() * sizeof(balance_row));
}

constexpr std::size_t most_letters = 64;

/// From row @p next on: workers of this host get theirs at once, others a letter each, as long as there is
/// room in @p done. Gives back how many letters.
[[gnu::noinline]] std::size_t hand_out(const balance_job& job, std::uint64_t& next, ref* done) {
  gas::memory& m = runtime::memory_of("rebalance");
  sched::worker& w = sched::this_worker();
  const std::uint64_t first = next;
  const std::vector<balance_row> rows = rows_at(job.rows + first * sizeof(balance_row), job.moves - first);
  std::size_t letters = 0;
  while (next != job.moves && letters != most_letters) {
    const std::uint32_t to = rows[next - first].to;
    std::uint64_t n = 1;
    while (next + n != job.moves && rows[next - first + n].to == to) ++n;
    const pull_rows what{job.rows + next * sizeof(balance_row), n, to};
    next += n;
    if (m.net.is_near(to)) {
      pull_rows::carry_out(&what);
      continue;
    }
    done[letters] = w.records().make();
    w.send(transport::worker_no{to}, done[letters++], pull_rows::carry_out, &what, sizeof what);
  }
  return letters;
}

double imbalance(const std::vector<double>& loads) {
  double sum = 0, most = 0;
  for (const double l : loads) {
    sum += l;
    most = std::max(most, l);
  }
  return sum > 0 ? most * static_cast<double>(loads.size()) / sum : 1;
}

[[gnu::noinline]] rebalance_result sum_up(const balance_job& job) {
  rebalance_result r;
  std::vector<double> loads(hot_workers());
  const std::vector<balance_row> rows = rows_at(job.rows, job.count);
  for (std::size_t i = 0; i < rows.size(); ++i) {
    const bool planned = i < job.moves, moved = planned && rows[i].result == move_result::moved;
    loads[moved ? rows[i].to : rows[i].from] += rows[i].load;
    r.moves += moved ? 1 : 0;
    r.bytes += moved ? rows[i].bytes : 0;
    r.busy += planned && !moved ? 1 : 0;
  }
  r.before = job.before;
  r.after = imbalance(loads);
  return r;
}

/// Affinity names a host: of its workers that with the least load.
void choose_workers(const gas::reach& net, std::vector<part_load>& parts, std::vector<double> loads) {
  for (part_load& p : parts) {
    if (p.wanted_by == ~0u) continue;
    std::uint32_t best = p.wanted_by;
    for (std::uint32_t w = best; w < loads.size() && net.host_of(w) == net.host_of(p.wanted_by); ++w)
      if (loads[w] < loads[best]) best = w;
    p.wanted_by = best;
    loads[best] += p.load;
  }
}

}  // namespace

std::vector<part_info> global_parts(global_address at, std::uint64_t bytes, bool halve) {
  std::vector<part_info> all;
  if (bytes == 0) return all;
  gas::memory& m = runtime::memory_of("parts_of");
  const gas::descriptor& d = runtime::movable_range(m, at, bytes, "parts_of");
  const auto then = halve ? gas::heat_then::is_halved : gas::heat_then::stays;
  for (const gas::seen_part& s : gas::look_at_parts(m.net, m.directory, d, at, bytes, then)) {
    part_info info{global_ptr<std::byte>(s.p.at),
                   s.p.bytes,
                   s.p.home,
                   gas::ownership::from(s.state.place.owner, s.p.home).worker,
                   {s.state.near, s.state.far}};
    if (s.state.other != 0) {
      info.heat.other = m.net.first_of(s.state.other - 1);
      info.heat.by_other = s.state.lead;
    }
    all.push_back(info);
  }
  return all;
}

void global_on_move(global_address at, std::uint64_t bytes, const move_hook& hook, place where) {
  static_cast<void>(runtime::movable_range(runtime::memory_of("on_move"), at, bytes, "on_move"));
  struct everywhere {
    global_address at;
    move_hook hook;
  } const what{at, hook};
  run_on_each_worker({[](const void* closure) {
                        gas::memory& m = runtime::memory_of("on_move");
                        const auto& w = *static_cast<const everywhere*>(closure);
                        if (m.net.me() == m.net.first_of(m.net.my_host())) m.mover.set_hook(w.at, w.hook);
                      },
                      &what, sizeof what},
                     where);
}

balance_job begin_rebalance(const std::vector<part_info>& parts, const std::vector<double>& loads,
                            const balance_rule& how, place where) {
  gas::memory& m = runtime::memory_of("rebalance");
  if (hot().checkouts != 0) checkout_held("rebalance", where.file, where.line);
  std::vector<part_load> weighed;
  std::vector<double> of_workers(hot_workers());
  for (std::size_t i = 0; i < parts.size(); ++i) {
    weighed.push_back({loads[i], parts[i].owner, wanted_by(parts[i])});
    of_workers[parts[i].owner] += loads[i];
  }
  choose_workers(m.net, weighed, std::move(of_workers));
  balance_plan plan = plan_rebalance(weighed, hot_workers(), how);
  std::stable_sort(plan.moves.begin(), plan.moves.end(),
                   [](const planned_move& x, const planned_move& y) { return x.to < y.to; });
  std::vector<balance_row> rows;
  std::vector<bool> moves(parts.size());
  const auto add = [&](std::size_t i, std::uint32_t to) {
    rows.push_back(
        {parts[i].begin.address(), parts[i].bytes, loads[i], parts[i].owner, to, move_result::already_there});
    moves[i] = true;
  };
  for (const planned_move& p : plan.moves) add(p.part, p.to);
  for (std::size_t i = 0; i < parts.size(); ++i)
    if (!moves[i]) add(i, parts[i].owner);
  balance_job job{0, rows.size(), plan.moves.size(), plan.before};
  if (rows.empty()) return job;
  const std::uint64_t bytes = rows.size() * sizeof(balance_row);
  job.rows = m.allocator.allocate(bytes, alignof(balance_row), {}, where);
  m.access.put(job.rows, rows.data(), bytes);
  return job;
}

rebalance_result finish_rebalance(const balance_job& job, place where) {
  for (std::uint64_t next = 0; next != job.moves;) {
    ref done[most_letters];
    const std::size_t letters = hand_out(job, next, done);
    for (std::size_t i = 0; i < letters; ++i) {
      static_cast<void>(sched::this_worker().wait(done[i], where));
      sched::this_worker().records().release(done[i]);
    }
  }
  const rebalance_result r = sum_up(job);
  if (job.rows != 0) runtime::memory_of("rebalance").free(job.rows, job.count * sizeof(balance_row), where);
  return r;
}

}  // namespace godwit::detail
