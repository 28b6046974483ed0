// See moves.hpp.
#include "moves.hpp"

#include <algorithm>
#include <set>
#include <unordered_map>
#include <utility>

namespace godwit::report {

using trace::event;
using trace::kind;
using trace::part_result;

namespace {
/// Of an allocation, in the map: what lies behind is counted only.
constexpr std::uint64_t most_parts = 1 << 26;
}  // namespace

worker_moves moves_analysis::total() const noexcept {
  worker_moves all;
  for (const worker_moves& w : by_worker) {
    all.came += w.came;
    all.given += w.given;
    all.bytes += w.bytes;
    all.busy += w.busy;
    all.no_room += w.no_room;
    all.ns += w.ns;
    all.waits += w.waits;
    all.wait_ns += w.wait_ns;
  }
  return all;
}

std::uint64_t moves_analysis::near_uses() const noexcept {
  std::uint64_t sum = 0;
  for (const movable_memory& m : memory)
    for (const movable_memory::use& u : m.uses) sum += u.near;
  return sum;
}
std::uint64_t moves_analysis::far_uses() const noexcept {
  std::uint64_t sum = 0;
  for (const movable_memory& m : memory)
    for (const movable_memory::use& u : m.uses) sum += u.far;
  return sum;
}

void move_events::event(std::uint32_t w, const trace::event& e, std::uint64_t at) {
  worker_moves& mine = result_.by_worker[w];
  switch (static_cast<kind>(e.what)) {
    case kind::parts:
      return on_parts(e, at);
    case kind::part:
      return on_part(mine, e, at);
    case kind::heat:
      if (trace::part_of(e.b) < most_parts) on_heat(e, at);
      return;
    case kind::moves:
      mine.ns += e.duration_ns;
      return;
    case kind::part_wait:
      ++mine.waits;
      mine.wait_ns += e.duration_ns;
      return;
    default:
      return;
  }
}

move_events::tracked& move_events::of(std::uint64_t address, std::uint64_t at) {
  const auto [found, added] = live_.try_emplace(address);
  if (added) found->second.memory.address = address, found->second.memory.begin = at;
  return found->second;
}

/// Moves that other workers' clocks put before the beginning belong to what begins.
void move_events::on_parts(const trace::event& e, std::uint64_t at) {
  if (e.other == 0) {
    if (const auto found = live_.find(e.a); found != live_.end()) retire(found, at);
    return;
  }
  const std::uint64_t first = trace::part_of(e.b);
  if (const auto found = live_.find(e.a); first == 0 && found != live_.end() && found->second.made)
    retire(found, at);
  tracked& t = of(e.a, at);
  t.made = t.made || first == 0;
  t.memory.part_bytes = e.bytes;
  const std::uint64_t count = std::min<std::uint64_t>(e.other, most_parts - std::min(first, most_parts));
  t.memory.parts = std::max(t.memory.parts, count != 0 ? first + count : 0);
  if (count != 0 && trace::worker_of(e.b) != trace::no_worker)
    t.memory.at_first.push_back({first, count, trace::worker_of(e.b)});
}

void move_events::on_heat(const trace::event& e, std::uint64_t at) {
  movable_memory& m = of(e.a, at).memory;
  const std::uint64_t part = trace::part_of(e.b);
  m.parts = std::max(m.parts, part + 1);
  m.uses.push_back({part, e.bytes, e.other, trace::worker_of(e.b)});
}

void move_events::on_part(worker_moves& mine, const trace::event& e, std::uint64_t at) {
  tracked& t = of(e.a, at);
  const std::uint64_t part = trace::part_of(e.b);
  if (part < most_parts) t.memory.parts = std::max(t.memory.parts, part + 1);
  switch (static_cast<part_result>(e.detail)) {
    case part_result::came:
      ++mine.came;
      mine.bytes += e.bytes;
      t.memory.bytes += e.bytes;
      break;
    case part_result::given:
      ++mine.given;
      break;
    case part_result::busy:
      ++mine.busy;
      t.stayed = true;
      return;
    case part_result::no_room:
      ++mine.no_room;
      t.stayed = true;
      return;
  }
  if (part >= most_parts) return;
  t.memory.changes.push_back({at, part, e.other, trace::worker_of(e.b)});
}

void move_events::retire(std::map<std::uint64_t, tracked>::iterator which, std::uint64_t at) {
  tracked& t = which->second;
  t.memory.end = at;
  if (t.stayed || !t.memory.changes.empty() || !t.memory.uses.empty())
    result_.memory.push_back(std::move(t.memory));
  live_.erase(which);
}

moves_analysis move_events::finish(std::uint64_t end) {
  while (!live_.empty()) retire(live_.begin(), end);
  std::stable_sort(result_.memory.begin(), result_.memory.end(),
                   [](const auto& x, const auto& y) { return x.changes.size() > y.changes.size(); });
  return std::move(result_);
}

namespace {

/// How many parts of a group each owner has.
class owners {
 public:
  void add(std::uint32_t owner, std::int64_t n) {
    if (n != 0 && (counts_[owner] += n) == 0) counts_.erase(owner);
  }
  /// The one with most; of equals the one before, if it is one of them, so that nothing flickers.
  std::uint32_t most(std::uint32_t before) const {
    std::uint32_t best = owner_unknown;
    std::int64_t n = 0;
    for (const auto& [owner, count] : counts_)
      if (count > n || (count == n && owner == before)) best = owner, n = count;
    return best;
  }

 private:
  std::map<std::uint32_t, std::int64_t> counts_;
};

/// Whose each part was at first: as told, else from where it came when it moved.
std::vector<std::uint32_t> first_owners(const movable_memory& m) {
  std::vector<std::uint32_t> owner(m.parts, owner_unknown);
  for (const movable_memory::homes& h : m.at_first)
    std::fill_n(owner.begin() + static_cast<std::ptrdiff_t>(h.first), h.count, h.home);
  for (const movable_memory::change& c : m.changes)
    if (owner[c.part] == owner_unknown) owner[c.part] = c.from;
  return owner;
}

}  // namespace

owner_map map_of(const movable_memory& m, std::uint64_t from, std::uint64_t to, std::uint32_t most_rows,
                 std::uint32_t columns) {
  owner_map map;
  map.from = std::max(from, m.begin);
  map.to = std::max(map.from + 1, std::min(to, m.end));
  map.group = std::max<std::uint64_t>(1, (m.parts + most_rows - 1) / most_rows);
  map.columns = static_cast<std::uint32_t>(std::min<std::uint64_t>(columns, map.to - map.from));
  map.rows.resize((m.parts + map.group - 1) / map.group);
  std::vector<std::uint32_t> owner = first_owners(m);
  std::vector<owners> of_row(map.rows.size());
  for (std::uint64_t p = 0; p < m.parts; ++p) of_row[p / map.group].add(owner[p], 1);
  const auto end_of = [&](std::uint32_t column) {
    return map.from + (map.to - map.from) * (column + 1) / map.columns;
  };
  std::size_t next = 0;
  const auto apply = [&](const movable_memory::change& c) {
    owners& row = of_row[c.part / map.group];
    row.add(owner[c.part], -1);
    row.add(owner[c.part] = c.to, 1);
  };
  for (; next < m.changes.size() && m.changes[next].time < map.from; ++next) apply(m.changes[next]);
  for (std::uint32_t column = 0; column < map.columns; ++column) {
    const bool last = column + 1 == map.columns;
    for (; next < m.changes.size() &&
           (m.changes[next].time < end_of(column) || (last && m.changes[next].time == map.to));
         ++next) {
      apply(m.changes[next]);
      ++map.rows[m.changes[next].part / map.group].moves[column];
    }
    for (std::size_t r = 0; r < map.rows.size(); ++r) {
      auto& runs = map.rows[r].runs;
      const std::uint32_t now = of_row[r].most(runs.empty() ? owner_unknown : runs.back().owner);
      if (!runs.empty() && runs.back().owner == now)
        ++runs.back().columns;
      else
        runs.push_back({now, 1});
    }
  }
  return map;
}

std::vector<moved_part> busiest_parts(const movable_memory& m, std::size_t most) {
  struct seen {
    std::uint64_t moves = 0;
    std::uint32_t last = owner_unknown;
    std::set<std::uint32_t> owners;
  };
  std::unordered_map<std::uint64_t, seen> parts;
  for (const movable_memory::change& c : m.changes) {
    seen& s = parts[c.part];
    ++s.moves;
    s.last = c.to;
    s.owners.insert({c.from, c.to});
  }
  std::vector<moved_part> list;
  for (const auto& [part, s] : parts)
    list.push_back({part, s.moves, s.last, static_cast<std::uint32_t>(s.owners.size())});
  std::sort(list.begin(), list.end(), [](const moved_part& x, const moved_part& y) {
    return x.moves != y.moves ? x.moves > y.moves : x.part < y.part;
  });
  list.resize(std::min(list.size(), most));
  return list;
}

std::vector<movable_memory::use> most_used_parts(const movable_memory& m, std::size_t most) {
  std::vector<movable_memory::use> list = m.uses;
  std::sort(list.begin(), list.end(), [](const auto& x, const auto& y) {
    if (x.far != y.far) return x.far > y.far;
    return x.near != y.near ? x.near > y.near : x.part < y.part;
  });
  list.resize(std::min(list.size(), most));
  return list;
}

}  // namespace godwit::report
