// One thread, ordinary memory.

#include <memory>

#include "../../common/clock.hpp"
#include "amr.hpp"

namespace amr {

std::vector<right_grid> right;

namespace {

class mesh {
 public:
  explicit mesh(const settings& s) : s_(s), leaves_(first_mesh(s)), grids_(leaves_.size()) {
    for (const leaf& l : leaves_) {
      grids_[l.slot].where = l.where;
      begin(l.where, grids_[l.slot].u);
    }
    settle();
  }

  void step() {
    for (const leaf& l : leaves_)
      for (std::uint32_t d = 0; d < directions; ++d) {
        grid& g = grids_[l.slot];
        edge theirs[2];
        for (std::uint32_t k = 0; k < g.beside[d].count(); ++k)
          theirs[k] = grids_[g.beside[d].slot[k]].edges[opposite(static_cast<direction>(d))];
        fill_ghosts(g.around[d], g.beside[d], theirs);
      }
    for (const leaf& l : leaves_) advance(grids_[l.slot], s_.time_step());
  }

  void change(outcome& o) {
    std::vector<double> steepness;
    for (const leaf& l : leaves_) steepness.push_back(steepest(grids_[l.slot].u));
    const std::vector<next_leaf> next = plan(leaves_, steepness, s_.levels);
    std::vector<leaf> leaves;
    std::vector<grid> grids(next.size());
    for (std::uint32_t i = 0; i < next.size(); ++i) {
      const next_leaf& n = next[i];
      leaves.push_back({n.where, i});
      grid& to = grids[i];
      to.where = n.where;
      const auto old = [&](std::uint32_t k) -> const grid& { return grids_[leaves_[n.from + k].slot]; };
      if (n.how == next_leaf::kept) {
        to.u = old(0).u;
      } else if (n.how == next_leaf::refined) {
        const std::uint32_t q = n.where.x % 2 + n.where.y % 2 * 2;
        refine(old(0).u, q, to.u);
        o.refined += q == 0;
      } else {
        for (std::uint32_t q = 0; q < 4; ++q) coarsen(old(q).u, q, to.u);
        ++o.coarsened;
      }
    }
    leaves_ = std::move(leaves);
    grids_ = std::move(grids);
    settle();
  }

  double total() const {
    double sum = 0;
    for (const leaf& l : leaves_) sum += mass(grids_[l.slot]);
    return sum;
  }
  std::size_t size() const { return leaves_.size(); }
  std::vector<right_grid> all() const {
    std::vector<right_grid> to;
    for (const leaf& l : leaves_) to.push_back({l.where, grids_[l.slot].u});
    return to;
  }

 private:
  void settle() {
    const auto beside = neighbours(leaves_);
    for (std::size_t i = 0; i < leaves_.size(); ++i) {
      grids_[leaves_[i].slot].beside = beside[i];
      copy_edges(grids_[leaves_[i].slot]);
    }
  }

  const settings s_;
  std::vector<leaf> leaves_;  ///< by Morton key
  std::vector<grid> grids_;   ///< by slot
};

}  // namespace

outcome serial(const settings& s) {
  outcome o;
  mesh m(s);
  o.see_mass(m.total());
  const std::uint64_t start = bench::now_ns();
  for (int i = 0; i < s.steps; ++i) {
    if (i != 0 && i % s.every == 0) {
      m.change(o);
      o.see_mass(m.total());
    }
    o.most_grids = std::max<std::uint64_t>(o.most_grids, m.size());
    o.updates += m.size();
    m.step();
  }
  o.seconds = static_cast<double>(bench::now_ns() - start) * 1e-9;
  o.see_mass(m.total());
  o.grids = m.size();
  right = m.all();
  return o;
}

}  // namespace amr
