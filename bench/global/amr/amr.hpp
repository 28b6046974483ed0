// Adaptive mesh refinement in two dimensions: a Gaussian is carried over the unit square, which is periodic.
//
// The mesh is a forest of quadtrees over 4 x 4 squares; its leaves are grids of 16 x 16 cells, neighbours at
// most one level apart, in the order of their Morton keys. A step updates all cells by the five-point stencil
// of a finite-volume scheme (Lax-Friedrichs fluxes, forward Euler, one time step for all levels). Where
// levels meet, both sides compute the fluxes of the finer faces from the same two values, and the coarser one
// takes their mean; refining interpolates linearly with limited slopes, coarsening takes means. So what
// leaves a cell enters another, and mass is conserved but for rounding. Every few steps the mesh follows the
// steepest gradients.
//
// The tree (tree.cpp) and the loops over cells (kernels.cpp) are shared by the serial form and ours; results
// are compared bit by bit. Source: Active global address space, 6.2; the sizes are ours, the paper gives
// none. Document: docs/results/README.md. Tests: bench/CMakeLists.txt (bench.global_amr), tests/bench
// (mpi.global_amr).
#pragma once

#include <array>
#include <cstdint>
#include <vector>

namespace amr {

constexpr std::uint32_t side = 16;            ///< cells along a side of a grid
constexpr std::uint32_t cells = side * side;  ///< of a grid
constexpr std::uint32_t base_grids = 4;       ///< along a side of the square, at level 0
constexpr std::uint32_t most_levels = 5;

struct settings {
  std::uint32_t levels = 0;  ///< 1: the base alone
  int steps = 0;
  int every = 4;  ///< steps between two changes of the mesh
  bool moves = false;

  /// Of all cells, so that the smallest ones do not become unstable.
  double time_step() const noexcept;
};

/// In units of grids of its level, from the lower left.
struct place {
  std::uint32_t level = 0, x = 0, y = 0;
  bool operator==(const place&) const = default;
  std::uint64_t key() const noexcept;  ///< Morton; of all levels in one order
};

enum direction : std::uint32_t { west, east, south, north, directions };
constexpr direction opposite(direction d) noexcept { return static_cast<direction>(d ^ 1u); }

/// What lies at one side of a grid: one grid of the same level; half of one of the next coarser; two finer.
struct neighbour {
  enum what : std::uint32_t { same, coarser, finer };
  what level = same;
  std::uint32_t half = 0;               ///< coarser: which of its edge
  std::array<std::uint32_t, 2> slot{};  ///< where grids are stored; both are the same unless finer
  std::uint32_t count() const noexcept { return level == finer ? 2 : 1; }
};

using edge = std::array<double, side>;
/// Two values for each cell along a side: what the two halves of its face have on their other side.
using ghosts = std::array<double, 2 * side>;

/// A grid as it is stored: 2 KiB of cells, their copies along the edges for those who ask, and around them
/// what was asked of others. A page.
struct alignas(4096) grid {
  std::array<double, cells> u;  ///< row by row, from the lower left
  std::array<edge, directions> edges;
  std::array<ghosts, directions> around;
  place where;
  std::array<neighbour, directions> beside;
};
static_assert(sizeof(grid) == 4096);

// kernels.cpp
/// Cells at the beginning.
void begin(const place& p, std::array<double, cells>& u) noexcept;
/// The copies along the edges follow the cells.
void copy_edges(grid& g) noexcept;
/// @p theirs: the edges opposite to side @p d, as many as @p n has grids.
void fill_ghosts(ghosts& to, const neighbour& n, const edge* theirs) noexcept;
/// One time step.
void advance(grid& g, double time_step) noexcept;
/// The largest difference of two cells side by side.
double steepest(const std::array<double, cells>& u) noexcept;
double mass(const grid& g) noexcept;
/// Quadrant @p q (bit 0: right, bit 1: upper) of a coarse grid as a grid of its own.
void refine(const std::array<double, cells>& coarse, std::uint32_t q,
            std::array<double, cells>& fine) noexcept;
/// The other way round: that quadrant of the coarse grid.
void coarsen(const std::array<double, cells>& fine, std::uint32_t q,
             std::array<double, cells>& coarse) noexcept;

// tree.cpp
struct leaf {
  place where;
  std::uint32_t slot = 0;
};
/// A leaf of the next mesh, and what of the last one it is made from.
struct next_leaf {
  enum origin : std::uint32_t { kept, refined, coarsened };
  place where;
  origin how = kept;
  std::uint32_t from = 0;  ///< number of the old leaf; coarsened: of the first of four
};
/// The mesh that the gradients ask for. @p steepness: of each of @p leaves. Grids of one level are never
/// beside such of the level after the next.
std::vector<next_leaf> plan(const std::vector<leaf>& leaves, const std::vector<double>& steepness,
                            std::uint32_t levels);
/// The mesh to begin with; slots are numbers.
std::vector<leaf> first_mesh(const settings& s);
std::vector<std::array<neighbour, directions>> neighbours(const std::vector<leaf>& leaves);

/// A partition of the leaves: in turn each worker takes, until it has its share, the grid of whose ghost
/// cells its own grids use most. @p owners: who has them; of equals those are taken that it has already.
std::vector<std::uint32_t> by_ghosts(const std::vector<leaf>& leaves,
                                     const std::vector<std::uint32_t>& owners, std::uint32_t workers);

/// What a form found out. Plain: it leaves the run.
struct outcome {
  double seconds = 0;       ///< all steps, with the changes of the mesh
  std::uint64_t grids = 0;  ///< at the end
  std::uint64_t most_grids = 0;
  std::uint64_t updates = 0;                 ///< of grids
  std::uint64_t refined = 0, coarsened = 0;  ///< grids that were divided, that came together
  double first_mass = 0, mass_error = 0;     ///< mass_error: at most, over the mass
  // ours
  double most_load = 0;        ///< the most grids of a worker over the mean (in whole grids), at any time
  std::uint64_t foreign = 0;   ///< reads of ghost cells that another worker owned
  std::uint64_t moved = 0;     ///< grids, by gw::move
  std::uint64_t failures = 0;  ///< moves that did not come about
  std::uint64_t wrong = 0;     ///< cells, against the serial form; all of a grid that it does not have

  void see_mass(double m) noexcept;
};

/// The grids at the end of the serial form, by Morton key; made before the run, so that every worker has
/// them.
struct right_grid {
  place where;
  std::array<double, cells> u;
};
extern std::vector<right_grid> right;

outcome serial(const settings& s);
/// As a root thread.
outcome ours(const settings& s);

}  // namespace amr
