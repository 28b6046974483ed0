// On global memory: each grid is a movable part, and the worker that owns it computes it.
//
// The first grids are dealt out cyclically; those that are made later go to the worker that has the fewest.
// With moves the mesh is then divided anew by who uses whose ghost cells (by_ghosts), and each worker moves
// to itself what is to be its own: the paper's pin_remote_cells. The root thread has the tree; what it
// decides travels on cards. A phase is done by all workers (on_each_worker) rather than by threads that could
// be stolen: so what is far for whom does not depend on the schedule.

#include <algorithm>
#include <godwit/godwit.hpp>
#include <span>
#include <stdexcept>

#include "../../common/clock.hpp"
#include "amr.hpp"

namespace amr {

namespace gw = godwit;

namespace {

/// What the workers are told of a grid.
struct card {
  leaf at;
  std::uint32_t owner = 0;
  bool bring = false;  ///< its slot is still somebody else's
  next_leaf::origin how = next_leaf::kept;
  std::array<std::uint32_t, 4> from{};  ///< slots of the grids that it is made from
  std::array<neighbour, directions> beside{};
};
struct report {
  double steepness, mass;
};
struct slot_state {
  std::uint32_t owner;
  bool used;
};

/// What this worker computes. Heap of the worker: used in phases only, never across a spawn or join.
struct own_grid {
  std::uint32_t slot, number;  ///< number: of its card
};
std::vector<own_grid>& own_grids() {
  static thread_local std::vector<own_grid> grids;
  return grids;
}

/// Plain: phases carry it to all workers.
struct mesh {
  settings s;
  std::uint32_t most = 0;   ///< grids that there can be
  std::uint32_t slots = 0;  ///< more: old and new ones are there together
  gw::global_ptr<grid> grids;
  // At worker 0, where the root thread is.
  gw::global_ptr<card> cards;
  gw::global_ptr<report> reports;  ///< one for each card
  gw::global_ptr<slot_state> states;
  gw::global_ptr<std::uint64_t> failures, wrong;
  std::uint32_t count = 0;    ///< of cards
  std::uint64_t foreign = 0;  ///< reads of ghost cells of other workers, in a step

  gw::global_ptr<grid> at(std::uint32_t slot) const { return grids + static_cast<std::ptrdiff_t>(slot); }
  template <class T>
  gw::global_ptr<T> member(std::uint32_t slot, std::size_t offset) const {
    return gw::global_ptr<T>(at(slot).address() + offset);
  }
  gw::global_ptr<edge> edge_of(std::uint32_t slot, std::uint32_t d) const {
    return member<edge>(slot, offsetof(grid, edges)) + static_cast<std::ptrdiff_t>(d);
  }
  auto cells_of(std::uint32_t slot) const {
    return member<std::array<double, cells>>(slot, offsetof(grid, u));
  }
  auto around(std::uint32_t slot) const {
    return member<std::array<ghosts, directions>>(slot, offsetof(grid, around));
  }
  auto beside(std::uint32_t slot) const {
    return member<std::array<neighbour, directions>>(slot, offsetof(grid, beside));
  }

  // Phases: by each worker.
  void fill_first() const;
  void exchange() const;
  void advance_own() const;
  void report_own() const;
  void fill_own() const;
  void take_own() const;
  void compare_own() const;

  // By the root thread.
  void first(outcome& o);
  void change(outcome& o);
  void divide(outcome& o);
  double total() const;

 private:
  template <class F>
  void each_card(F&& f) const {
    std::vector<card> all(count);  // no checkout is held: f may move
    gw::get(cards, all.data(), count);
    for (const card& c : all) f(c);
  }
  void bring(const card& c) const {
    if (gw::move(at(c.at.slot), gw::worker_id()).join() != gw::move_result::moved)
      gw::atomic_fetch_add(failures, std::uint64_t{1});
  }
  void enter(const std::vector<card>& next, outcome& o);
};

void mesh::fill_first() const {
  each_card([&](const card& c) {
    if (c.owner != gw::worker_id()) return;
    const auto g = gw::checkout(at(c.at.slot), 1, gw::access::write);
    g[0] = grid{};
    g[0].where = c.at.where;
    begin(c.at.where, g[0].u);
  });
}

void mesh::exchange() const {
  for (const auto [slot, number] : own_grids()) {
    const auto n = gw::get(beside(slot));
    std::array<ghosts, directions> to;
    for (std::uint32_t d = 0; d < directions; ++d) {
      edge theirs[2];
      for (std::uint32_t k = 0; k < n[d].count(); ++k)
        theirs[k] = gw::get(edge_of(n[d].slot[k], opposite(static_cast<direction>(d))));
      fill_ghosts(to[d], n[d], theirs);
    }
    gw::put(around(slot), to);
  }
}

void mesh::advance_own() const {
  for (const auto [slot, number] : own_grids())
    advance(gw::checkout(at(slot), 1, gw::access::read_write)[0], s.time_step());
}

void mesh::report_own() const {
  for (const auto [slot, number] : own_grids()) {
    const auto g = gw::checkout(at(slot), 1, gw::access::read);
    gw::put(reports + static_cast<std::ptrdiff_t>(number), report{steepest(g[0].u), mass(g[0])});
  }
}

/// The cells of what is new.
void mesh::fill_own() const {
  each_card([&](const card& c) {
    if (c.owner != gw::worker_id() || c.how == next_leaf::kept) return;
    if (c.bring) bring(c);
    std::array<double, cells> from;
    const auto g = gw::checkout(at(c.at.slot), 1, gw::access::write);
    g[0] = grid{};
    g[0].where = c.at.where;
    if (c.how == next_leaf::refined) {
      gw::get(cells_of(c.from[0]), &from, 1);
      refine(from, c.at.where.x % 2 + c.at.where.y % 2 * 2, g[0].u);
    } else {
      for (std::uint32_t q = 0; q < 4; ++q) {
        gw::get(cells_of(c.from[q]), &from, 1);
        coarsen(from, q, g[0].u);
      }
    }
  });
}

/// What this worker has from now on, and who is beside it.
void mesh::take_own() const {
  own_grids().clear();
  std::uint32_t number = 0;
  each_card([&](const card& c) {
    ++number;
    if (c.owner != gw::worker_id()) return;
    if (c.bring) bring(c);
    own_grids().push_back({c.at.slot, number - 1});
    const auto g = gw::checkout(at(c.at.slot), 1, gw::access::read_write);
    g[0].beside = c.beside;
    copy_edges(g[0]);
  });
}

void mesh::compare_own() const {
  std::uint64_t found = 0;
  for (const auto [slot, number] : own_grids()) {
    const auto g = gw::checkout(at(slot), 1, gw::access::read);
    const auto r =
        std::lower_bound(right.begin(), right.end(), g[0].where.key(),
                         [](const right_grid& x, std::uint64_t key) { return x.where.key() < key; });
    if (r == right.end() || r->where != g[0].where)
      found += cells;
    else
      for (std::uint32_t i = 0; i < cells; ++i) found += g[0].u[i] != r->u[i];
  }
  if (found != 0) gw::atomic_fetch_add(wrong, found);
}

/// Cards for the workers, with the neighbours; and what that means.
void mesh::enter(const std::vector<card>& next, outcome& o) {
  std::vector<leaf> leaves;
  for (const card& c : next) leaves.push_back(c.at);
  const auto beside_each = neighbours(leaves);
  count = static_cast<std::uint32_t>(next.size());
  std::vector<std::uint64_t> loads(gw::worker_count());
  std::vector<std::uint32_t> owner_of(slots);
  for (const card& c : next) owner_of[c.at.slot] = c.owner;
  foreign = 0;
  const auto to = gw::checkout(cards, count, gw::access::write);
  for (std::uint32_t i = 0; i < count; ++i) {
    to[i] = next[i];
    to[i].beside = beside_each[i];
    ++loads[next[i].owner];
    for (const neighbour& n : beside_each[i])
      for (std::uint32_t k = 0; k < n.count(); ++k) foreign += owner_of[n.slot[k]] != next[i].owner;
  }
  const std::uint64_t even = (count + loads.size() - 1) / loads.size();
  o.most_load = std::max(o.most_load, static_cast<double>(*std::max_element(loads.begin(), loads.end())) /
                                          static_cast<double>(even));
}

/// Slots are dealt out cyclically, and so are the first grids.
void mesh::first(outcome& o) {
  std::vector<card> next;
  const auto all = gw::checkout(states, slots, gw::access::write);
  for (std::uint32_t i = 0; i < slots; ++i) all[i] = {i % gw::worker_count(), false};
  for (const leaf& l : first_mesh(s)) {
    all[l.slot].used = true;
    next.push_back({.at = l, .owner = all[l.slot].owner});
  }
  enter(next, o);
}

/// After the workers have reported: the next mesh. New grids go to who has the fewest.
void mesh::change(outcome& o) {
  std::vector<card> old(count);
  gw::get(cards, old.data(), count);
  std::vector<leaf> leaves;
  for (const card& c : old) leaves.push_back(c.at);
  std::vector<double> steepness;
  for (const report& r : gw::checkout(reports, count, gw::access::read)) steepness.push_back(r.steepness);
  const std::vector<next_leaf> planned = plan(leaves, steepness, s.levels);
  std::vector<std::uint32_t> loads(gw::worker_count());
  for (const next_leaf& n : planned)
    if (n.how == next_leaf::kept) ++loads[old[n.from].owner];
  const auto all = gw::checkout(states, slots, gw::access::read_write);
  std::vector<std::vector<std::uint32_t>> free(loads.size());
  for (std::uint32_t i = slots; i-- > 0;)
    if (!all[i].used) free[all[i].owner].push_back(i);
  std::vector<card> next;
  for (const next_leaf& n : planned) {
    card c{.at = {n.where, 0}, .how = n.how};
    const std::uint32_t olds = n.how == next_leaf::coarsened ? 4 : 1;
    for (std::uint32_t k = 0; k < olds; ++k) c.from[k] = old[n.from + k].at.slot;
    if (n.how == next_leaf::kept) {
      c.at.slot = c.from[0];
      c.owner = old[n.from].owner;
    } else {
      c.owner = static_cast<std::uint32_t>(std::min_element(loads.begin(), loads.end()) - loads.begin());
      ++loads[c.owner];
      auto* from = &free[c.owner];
      if (from->empty())  // moves took them elsewhere
        from = &*std::max_element(free.begin(), free.end(),
                                  [](const auto& a, const auto& b) { return a.size() < b.size(); });
      if (from->empty()) throw std::runtime_error("no slot is free for a new grid");
      c.at.slot = from->back();
      from->pop_back();
      c.bring = all[c.at.slot].owner != c.owner;
      o.moved += c.bring;
      all[c.at.slot].owner = c.owner;
      o.coarsened += n.how == next_leaf::coarsened;
      o.refined += n.how == next_leaf::refined && n.where.x % 2 + n.where.y % 2 == 0;
    }
    next.push_back(c);
  }
  for (auto& state : all) state.used = false;
  for (const card& c : next) all[c.at.slot].used = true;
  enter(next, o);
}

/// Who is to have what, by the ghost cells that are used.
void mesh::divide(outcome& o) {
  std::vector<card> next(count);
  gw::get(cards, next.data(), count);
  std::vector<leaf> leaves;
  std::vector<std::uint32_t> owners;
  for (const card& c : next) {
    leaves.push_back(c.at);
    owners.push_back(c.owner);
  }
  const std::vector<std::uint32_t> to = by_ghosts(leaves, owners, gw::worker_count());
  const auto all = gw::checkout(states, slots, gw::access::read_write);
  for (std::uint32_t i = 0; i < count; ++i) {
    next[i].bring = to[i] != owners[i];
    next[i].owner = all[next[i].at.slot].owner = to[i];
    o.moved += next[i].bring;
  }
  enter(next, o);
}

double mesh::total() const {
  double sum = 0;
  for (const report& r : gw::checkout(reports, count, gw::access::read)) sum += r.mass;
  return sum;
}

/// Everybody has what is their own; with moves, what is to be.
void settle(mesh& m, outcome& o) {
  if (m.s.moves && gw::worker_count() > 1) m.divide(o);
  gw::on_each_worker([m] { m.take_own(); });
}

}  // namespace

outcome ours(const settings& s) {
  outcome o;
  mesh m{.s = s};
  const std::uint32_t workers = gw::worker_count();
  m.most = base_grids * base_grids << 2 * (s.levels - 1);
  m.slots = (2 * m.most / workers + 16) * workers;
  m.grids = gw::allocate<grid>(m.slots, gw::distribution::cyclic(sizeof(grid)).movable());
  const auto here = gw::distribution::at(0);
  m.cards = gw::allocate<card>(m.most, here);
  m.reports = gw::allocate<report>(m.most, here);
  m.states = gw::allocate<slot_state>(m.slots, here);
  m.failures = gw::allocate<std::uint64_t>(2, here);
  m.wrong = m.failures + 1;
  gw::put(m.failures, 0);
  gw::put(m.wrong, 0);
  m.first(o);
  gw::on_each_worker([m] { m.fill_first(); });
  settle(m, o);
  gw::on_each_worker([m] { m.report_own(); });
  o.see_mass(m.total());
  const std::uint64_t start = bench::now_ns();
  for (int i = 0; i < s.steps; ++i) {
    if (i != 0 && i % s.every == 0) {
      gw::on_each_worker([m] { m.report_own(); });
      o.see_mass(m.total());
      m.change(o);
      gw::on_each_worker([m] { m.fill_own(); });
      settle(m, o);
    }
    o.most_grids = std::max<std::uint64_t>(o.most_grids, m.count);
    o.updates += m.count;
    o.foreign += m.foreign;
    gw::on_each_worker([m] { m.exchange(); });
    gw::on_each_worker([m] { m.advance_own(); });
  }
  o.seconds = static_cast<double>(bench::now_ns() - start) * 1e-9;
  gw::on_each_worker([m] { m.report_own(); });
  o.see_mass(m.total());
  o.grids = m.count;
  gw::on_each_worker([m] { m.compare_own(); });
  o.failures = gw::get(m.failures);
  o.wrong =
      gw::get(m.wrong) + (o.grids > right.size() ? o.grids - right.size() : right.size() - o.grids) * cells;
  gw::deallocate(m.failures, 2);
  gw::deallocate(m.states, m.slots);
  gw::deallocate(m.reports, m.most);
  gw::deallocate(m.cards, m.most);
  gw::deallocate(m.grids, m.slots);
  return o;
}

}  // namespace amr
