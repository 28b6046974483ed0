// global_nbody: some steps of Barnes and Hut's method with bodies and octree in global memory, beside plain
// serial code. Every run's bodies are the serial ones bit by bit, and forces on some of them are compared
// with direct sums.

#include <cstdio>

#include "../timed_parts.hpp"
#include "ours.hpp"

namespace {

using namespace nbody;

/// What is right: made before the run, so that all workers have it.
struct reference {
  std::vector<body> begin, end;
  double error = 0;  ///< of forces, over direct sums
};
reference right;

enum part : std::size_t { trees, forces, part_count };
using times = bench::parts<part_count>;

/// Root mean square of the differences, over that of the forces. force(i): of body i by the tree.
template <class Force>
double force_error(const body* bodies, std::uint64_t n, const Force& force) {
  double off = 0, all = 0;
  for (std::uint64_t k = 0; k < std::min(sample, n); ++k) {
    const std::uint64_t i = k * n / std::min(sample, n);
    const vec exact = direct(bodies, n, bodies[i].at);
    off += (force(i) - exact).squared();
    all += exact.squared();
  }
  return all == 0 ? 0 : std::sqrt(off / all);
}

times serial(const problem& p) {
  times t;
  std::vector<body> now = right.begin, next(now.size());
  for (unsigned i = 0; i < p.steps; ++i) {
    const plain_cell root = t.time(trees, [&] { return build_serial(now); });
    t.time(forces, [&] { step_serial(root, now, next, p); });
    t.time(trees, [&] { destroy_serial(root); });
    now.swap(next);
  }
  t.correct = now == right.end;
  return t;
}

[[gnu::noinline]] void store(body_ptr to, const std::vector<body>& from) {
  gw::put(to, from.data(), from.size());
}

[[gnu::noinline]] bool is_right(body_ptr bodies) {
  auto have = gw::checkout(bodies, right.end.size(), gw::access::read);
  return std::equal(have.begin(), have.end(), right.end.begin());
}

[[gnu::noinline]] double error_of(const global_cell& root, body_ptr bodies, const problem& p) {
  auto all = gw::checkout(bodies, p.bodies, gw::access::read);
  return force_error(all.data(), p.bodies,
                     [&](std::uint64_t i) { return acceleration(root, bodies, all[i].at, p.theta); });
}

times ours(const problem& p) {
  times t;
  auto now = gw::allocate<body>(p.bodies, gw::distribution::blocked());
  auto next = gw::allocate<body>(p.bodies, gw::distribution::blocked());
  store(now, right.begin);
  for (unsigned i = 0; i < p.steps; ++i) {
    const auto root = t.time(trees, [=] { return build(now, p.bodies); });
    t.time(forces, [=] { step(root, now, next, p); });
    t.time(trees, [=] { destroy(root); });
    std::swap(now, next);
  }
  t.correct = is_right(now);
  const auto root = build(now, p.bodies);
  const double error = error_of(root, now, p);
  t.correct &= error <= allowed_error(p.theta) && error == right.error;
  destroy(root);
  gw::deallocate(now, p.bodies);
  gw::deallocate(next, p.bodies);
  return t;
}

reference make_reference(const problem& p) {
  reference r;
  r.begin.resize(p.bodies);
  for (std::uint64_t i = 0; i < p.bodies; ++i) r.begin[i] = first_body(p, i);
  std::vector<body> now = r.begin, next(now.size());
  for (unsigned i = 0; i < p.steps; ++i) {
    const plain_cell root = build_serial(now);
    step_serial(root, now, next, p);
    destroy_serial(root);
    now.swap(next);
  }
  r.end = now;
  const plain_cell root = build_serial(now);
  r.error = force_error(now.data(), now.size(),
                        [&](std::uint64_t i) { return acceleration_serial(root, now, now[i].at, p.theta); });
  destroy_serial(root);
  return r;
}

void compare(bench::program& program, const problem& p) {
  right = make_reference(p);
  if (!(right.error <= allowed_error(p.theta)))
    program.wrong("the serial tree's forces are off by " + std::to_string(right.error));
  const auto all =
      bench::measure_parts(program, bench::ways_of<part_count>(
                                        program, [p] { return serial(p); }, [p] { return ours(p); }));
  const std::string what = bench::grouped(p.bodies) + " bodies, " + std::to_string(p.steps) + " steps: ";
  const bench::ordered_json parameters = {
      {"bodies", p.bodies}, {"steps", p.steps}, {"theta", p.theta}, {"dt", p.dt}, {"seed", p.seed}};
  program.show(what + "trees built and destroyed", parameters, all[trees]);
  bench::show_ratios(program, "tree", "trees", all[trees]);
  program.show(what + "forces", parameters, all[forces]);
  bench::show_ratios(program, "force", "forces", all[forces]);
  program.figure(
      "error", "forces by the tree", 100 * right.error, "% off",
      "root mean square of the differences to direct sums / of the forces, for some bodies; allowed: " +
          std::to_string(100 * allowed_error(p.theta)).substr(0, 5) + " %");
}

}  // namespace

int main(int argc, char** argv) {
  problem p;
  bench::program program("global_nbody", "Barnes-Hut N-body simulation in global memory.", argc, argv);
  program.option("--size", p.bodies, "Bodies (default 200000; with --quick 20000)",
                 bench::between(1, std::uint64_t{1} << 31));
  program.option("--steps", p.steps, "Steps", bench::between(1, 100000));
  program.option("--theta", p.theta, "Opening angle; 0: direct sums", bench::between(0, 1.5));
  program.option("--dt", p.dt, "Length of a step", bench::between(0, 1));
  program.option("--seed", p.seed, "Of the bodies");
  program.parse();
  if (p.bodies == 0) p.bodies = program.options().quick ? 20'000 : 200'000;
  try {
    compare(program, p);
  } catch (const std::exception& e) {
    std::fprintf(stderr, "global_nbody: %s\n", e.what());
    return 1;
  }
  return program.finish();
}
