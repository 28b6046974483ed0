// The mesh: which grids there are, who is beside whom, and who is to have them.

#include <algorithm>
#include <stdexcept>
#include <unordered_map>

#include "amr.hpp"

namespace amr {

namespace {

/// Gradients, as differences of two cells: from here on a grid is divided; below it four come together.
constexpr double steep = 0.01, flat = 0.004;

std::uint64_t spread_bits(std::uint64_t v) noexcept {
  std::uint64_t to = 0;
  for (unsigned bit = 0; bit < 24; ++bit) to |= (v >> bit & 1) << 2 * bit;
  return to;
}

std::uint64_t name_of(const place& p) noexcept {
  return std::uint64_t{p.level} << 48 | std::uint64_t{p.y} << 24 | p.x;
}
place parent_of(const place& p) noexcept { return {p.level - 1, p.x / 2, p.y / 2}; }
place child_of(const place& p, std::uint32_t q) noexcept {
  return {p.level + 1, 2 * p.x + (q & 1), 2 * p.y + (q >> 1)};
}
/// The place of the same size beside it; the square is periodic.
place beside(const place& p, direction d) noexcept {
  const std::uint32_t n = base_grids << p.level;
  switch (d) {
    case west:
      return {p.level, (p.x + n - 1) % n, p.y};
    case east:
      return {p.level, (p.x + 1) % n, p.y};
    case south:
      return {p.level, p.x, (p.y + n - 1) % n};
    default:
      return {p.level, p.x, (p.y + 1) % n};
  }
}

/// Leaves by their place.
class finder {
 public:
  explicit finder(const std::vector<leaf>& leaves) {
    for (std::uint32_t i = 0; i < leaves.size(); ++i) numbers_[name_of(leaves[i].where)] = i;
  }
  /// What is at side @p d of @p p; slots are numbers of leaves.
  neighbour at(const place& p, direction d) const {
    const place next = beside(p, d);
    if (const auto* one = find(next)) return {neighbour::same, 0, {*one, *one}};
    if (p.level != 0) {
      if (const auto* one = find(parent_of(next)))
        return {neighbour::coarser, d == west || d == east ? p.y % 2 : p.x % 2, {*one, *one}};
    }
    // Of its children those at the common edge, in the order of the cells along it.
    const std::uint32_t far = d == west || d == south ? 1 : 0;
    neighbour n{neighbour::finer, 0, {}};
    for (std::uint32_t k = 0; k < 2; ++k) {
      const auto* one = find(child_of(next, d == west || d == east ? far | k << 1 : far << 1 | k));
      if (one == nullptr) throw std::logic_error("the mesh has a gap, or levels that differ too much");
      n.slot[k] = *one;
    }
    return n;
  }

 private:
  const std::uint32_t* find(const place& p) const {
    const auto it = numbers_.find(name_of(p));
    return it == numbers_.end() ? nullptr : &it->second;
  }
  std::unordered_map<std::uint64_t, std::uint32_t> numbers_;
};

/// Four leaves from @p i on are all the children of one place.
bool siblings_from(const std::vector<leaf>& leaves, std::size_t i) {
  const place& first = leaves[i].where;
  if (first.level == 0 || i + 4 > leaves.size()) return false;
  for (std::uint32_t q = 0; q < 4; ++q)
    if (leaves[i + q].where != child_of(parent_of(first), q)) return false;
  return true;
}

/// The level that each leaf's cells are to have. Raises what is too coarse for its neighbours, or coarser
/// alone than with its siblings, until nothing changes.
std::vector<std::uint32_t> levels_wanted(const std::vector<leaf>& leaves,
                                         const std::vector<double>& steepness, std::uint32_t levels) {
  std::vector<std::uint32_t> wanted(leaves.size());
  for (std::size_t i = 0; i < leaves.size(); ++i) {
    const std::uint32_t now = leaves[i].where.level;
    wanted[i] = steepness[i] > steep && now + 1 < levels ? now + 1
                : steepness[i] < flat && now != 0        ? now - 1
                                                         : now;
  }
  const finder where(leaves);
  for (bool changed = true; changed;) {
    changed = false;
    const auto raise = [&](std::size_t i, std::uint32_t to) {
      if (wanted[i] >= to) return;
      wanted[i] = to;
      changed = true;
    };
    for (std::size_t i = 0; i < leaves.size(); ++i)
      for (std::uint32_t d = 0; d < directions; ++d) {
        const neighbour n = where.at(leaves[i].where, static_cast<direction>(d));
        for (std::uint32_t k = 0; k < n.count(); ++k)
          if (wanted[n.slot[k]] != 0) raise(i, wanted[n.slot[k]] - 1);
      }
    for (std::size_t i = 0; i < leaves.size();) {
      const std::size_t n = siblings_from(leaves, i) ? 4 : 1;
      const std::uint32_t now = leaves[i].where.level;
      const bool together =
          n == 4 && std::all_of(&wanted[i], &wanted[i] + n, [&](std::uint32_t w) { return w < now; });
      for (std::size_t k = 0; k < n && !together; ++k) raise(i + k, now);
      i += n;
    }
  }
  return wanted;
}

}  // namespace

std::uint64_t place::key() const noexcept {
  return (spread_bits(x) | spread_bits(y) << 1) << 2 * (most_levels - level);
}

std::vector<next_leaf> plan(const std::vector<leaf>& leaves, const std::vector<double>& steepness,
                            std::uint32_t levels) {
  const std::vector<std::uint32_t> wanted = levels_wanted(leaves, steepness, levels);
  std::vector<next_leaf> next;
  for (std::uint32_t i = 0; i < leaves.size();) {
    const place& p = leaves[i].where;
    if (wanted[i] < p.level) {
      next.push_back({parent_of(p), next_leaf::coarsened, i});
      i += 4;
      continue;
    }
    if (wanted[i] == p.level) {
      next.push_back({p, next_leaf::kept, i});
    } else {
      for (std::uint32_t q = 0; q < 4; ++q) next.push_back({child_of(p, q), next_leaf::refined, i});
    }
    ++i;
  }
  return next;
}

std::vector<leaf> first_mesh(const settings& s) {
  std::vector<leaf> leaves;
  for (std::uint32_t y = 0; y < base_grids; ++y)
    for (std::uint32_t x = 0; x < base_grids; ++x) leaves.push_back({{0, x, y}, 0});
  std::sort(leaves.begin(), leaves.end(),
            [](const leaf& a, const leaf& b) { return a.where.key() < b.where.key(); });
  for (std::uint32_t round = 1; round < s.levels; ++round) {
    std::vector<double> steepness;
    for (const leaf& l : leaves) {
      std::array<double, cells> u;
      begin(l.where, u);
      steepness.push_back(steepest(u));
    }
    std::vector<leaf> next;
    for (const next_leaf& n : plan(leaves, steepness, s.levels)) next.push_back({n.where, 0});
    leaves = std::move(next);
  }
  for (std::uint32_t i = 0; i < leaves.size(); ++i) leaves[i].slot = i;
  return leaves;
}

std::vector<std::array<neighbour, directions>> neighbours(const std::vector<leaf>& leaves) {
  const finder where(leaves);
  std::vector<std::array<neighbour, directions>> all(leaves.size());
  for (std::size_t i = 0; i < leaves.size(); ++i)
    for (std::uint32_t d = 0; d < directions; ++d) {
      neighbour n = where.at(leaves[i].where, static_cast<direction>(d));
      for (auto& slot : n.slot) slot = leaves[slot].slot;
      all[i][d] = n;
    }
  return all;
}

std::vector<std::uint32_t> by_ghosts(const std::vector<leaf>& leaves,
                                     const std::vector<std::uint32_t>& owners, std::uint32_t workers) {
  const finder where(leaves);
  const auto each_beside = [&](std::size_t i, auto&& f) {
    for (std::uint32_t d = 0; d < directions; ++d) {
      const neighbour n = where.at(leaves[i].where, static_cast<direction>(d));
      for (std::uint32_t k = 0; k < n.count(); ++k) f(n.slot[k]);
    }
  };
  constexpr std::uint32_t nobody = ~0u;
  std::vector<std::uint32_t> to(leaves.size(), nobody);
  std::vector<int> used(leaves.size());  // of its neighbours, what who takes now has
  std::vector<int> open(leaves.size());  // those that nobody has yet: where it would be needed, too
  for (std::size_t i = 0; i < leaves.size(); ++i) each_beside(i, [&](std::uint32_t) { ++open[i]; });
  for (std::uint32_t w = 0; w < workers; ++w) {
    const std::size_t share = leaves.size() * (w + 1) / workers - leaves.size() * w / workers;
    std::fill(used.begin(), used.end(), 0);
    for (std::size_t n = 0; n < share; ++n) {
      std::size_t best = leaves.size();
      int best_score = 0;
      for (std::size_t i = 0; i < leaves.size(); ++i) {
        const int score = 8 * used[i] - 4 * open[i] + (owners[i] == w ? 1 : 0);
        if (to[i] != nobody || (best != leaves.size() && score <= best_score)) continue;
        best = i;
        best_score = score;
      }
      to[best] = w;
      each_beside(best, [&](std::uint32_t i) {
        ++used[i];
        --open[i];
      });
    }
  }
  return to;
}

void outcome::see_mass(double m) noexcept {
  if (first_mass == 0) first_mass = m;
  mass_error = std::max(mass_error, (m > first_mass ? m - first_mass : first_mass - m) / first_mass);
}

}  // namespace amr
