// The loops over cells. Compiled once, for the serial form and ours.

#include <algorithm>
#include <cmath>

#include "amr.hpp"

namespace amr {

namespace {

constexpr double speed_x = 1, speed_y = 0.5;
/// Of Lax-Friedrichs' viscosity: above both speeds, so that all five points count.
constexpr double spread = 1.25;

double cell_size(std::uint32_t level) noexcept { return 1.0 / (base_grids * side << level); }

double flux(double speed, double before, double after) noexcept {
  return 0.5 * speed * (before + after) - 0.5 * spread * (after - before);
}

/// Fluxes through faces that cross the direction of @p speed: [0] at the beginning of each row or column.
void face_fluxes(double speed, const double* u, std::uint32_t stride, const double* low, const double* high,
                 double* to) noexcept {
  to[0] = 0.5 * (flux(speed, low[0], u[0]) + flux(speed, low[1], u[0]));
  for (std::uint32_t i = 1; i < side; ++i) to[i] = flux(speed, u[(i - 1) * stride], u[i * stride]);
  const double last = u[(side - 1) * stride];
  to[side] = 0.5 * (flux(speed, last, high[0]) + flux(speed, last, high[1]));
}

/// A slope that keeps within both neighbours' values.
double limited(double before, double here, double after) noexcept {
  const double down = here - before, up = after - here;
  if (down * up <= 0) return 0;
  return std::abs(down) < std::abs(up) ? down : up;
}

}  // namespace

double settings::time_step() const noexcept { return 0.35 * cell_size(levels - 1); }

void begin(const place& p, std::array<double, cells>& u) noexcept {
  constexpr double center = 0.4, width = 0.1;
  const double h = cell_size(p.level);
  for (std::uint32_t j = 0; j < side; ++j)
    for (std::uint32_t i = 0; i < side; ++i) {
      const double x = (p.x * side + i + 0.5) * h - center, y = (p.y * side + j + 0.5) * h - center;
      u[j * side + i] = std::exp(-(x * x + y * y) / (2 * width * width));
    }
}

void copy_edges(grid& g) noexcept {
  for (std::uint32_t k = 0; k < side; ++k) {
    g.edges[west][k] = g.u[k * side];
    g.edges[east][k] = g.u[k * side + side - 1];
    g.edges[south][k] = g.u[k];
    g.edges[north][k] = g.u[(side - 1) * side + k];
  }
}

void fill_ghosts(ghosts& to, const neighbour& n, const edge* theirs) noexcept {
  for (std::uint32_t k = 0; k < 2 * side; ++k) switch (n.level) {
      case neighbour::same:
        to[k] = theirs[0][k / 2];
        break;
      case neighbour::coarser:
        to[k] = theirs[0][n.half * (side / 2) + k / 4];
        break;
      case neighbour::finer:
        to[k] = theirs[k / side][k % side];
        break;
    }
}

void advance(grid& g, double time_step) noexcept {
  const double ratio = time_step / cell_size(g.where.level);
  std::array<double, cells> through;  // of each cell, what leaves it
  double fluxes[side + 1];
  for (std::uint32_t j = 0; j < side; ++j) {
    face_fluxes(speed_x, g.u.data() + j * side, 1, &g.around[west][2 * j], &g.around[east][2 * j], fluxes);
    for (std::uint32_t i = 0; i < side; ++i) through[j * side + i] = fluxes[i + 1] - fluxes[i];
  }
  for (std::uint32_t i = 0; i < side; ++i) {
    face_fluxes(speed_y, g.u.data() + i, side, &g.around[south][2 * i], &g.around[north][2 * i], fluxes);
    for (std::uint32_t j = 0; j < side; ++j) through[j * side + i] += fluxes[j + 1] - fluxes[j];
  }
  for (std::uint32_t c = 0; c < cells; ++c) g.u[c] -= ratio * through[c];
  copy_edges(g);
}

double steepest(const std::array<double, cells>& u) noexcept {
  double most = 0;
  for (std::uint32_t j = 0; j < side; ++j)
    for (std::uint32_t i = 0; i < side; ++i) {
      const double here = u[j * side + i];
      if (i != 0) most = std::max(most, std::abs(here - u[j * side + i - 1]));
      if (j != 0) most = std::max(most, std::abs(here - u[(j - 1) * side + i]));
    }
  return most;
}

double mass(const grid& g) noexcept {
  double sum = 0;
  for (const double u : g.u) sum += u;
  const double h = cell_size(g.where.level);
  return sum * h * h;
}

void refine(const std::array<double, cells>& coarse, std::uint32_t q,
            std::array<double, cells>& fine) noexcept {
  constexpr std::uint32_t half = side / 2;
  const std::uint32_t right = q & 1, upper = q >> 1;
  for (std::uint32_t j = 0; j < half; ++j)
    for (std::uint32_t i = 0; i < half; ++i) {
      const std::uint32_t x = right * half + i, y = upper * half + j;
      const double* const u = &coarse[y * side + x];
      const double dx = x == 0 || x == side - 1 ? 0 : limited(u[-1], u[0], u[1]) / 4;
      const double dy = y == 0 || y == side - 1 ? 0 : limited(*(u - side), u[0], u[side]) / 4;
      double* const to = &fine[2 * j * side + 2 * i];
      to[0] = u[0] - dx - dy;
      to[1] = u[0] + dx - dy;
      to[side] = u[0] - dx + dy;
      to[side + 1] = u[0] + dx + dy;
    }
}

void coarsen(const std::array<double, cells>& fine, std::uint32_t q,
             std::array<double, cells>& coarse) noexcept {
  constexpr std::uint32_t half = side / 2;
  for (std::uint32_t j = 0; j < half; ++j)
    for (std::uint32_t i = 0; i < half; ++i) {
      const double* const u = &fine[2 * j * side + 2 * i];
      coarse[((q >> 1) * half + j) * side + (q & 1) * half + i] =
          ((u[0] + u[1]) + (u[side] + u[side + 1])) / 4;
    }
}

}  // namespace amr
