// hints: would hints of place and of weight help? Cilksort and the forces of Barnes and Hut's method, as they
// are and with either hint made of what there is. hints cilksort|nbody none|near|weight SIZE [--godwit-...]
//
// near: gw::near. weight: of two halves, the heavier one is left for thieves; weights are those that the
// leaves are charged on substrate sim. Each is run five times, with other seeds; what is written is the time
// of the parallel part.
// Document: docs/decisions/0027-hints.md.

#include <godwit/godwit.hpp>
#include <godwit/sim.hpp>

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>

#include "../global/cilksort/cilksort.hpp"
#include "../global/nbody/nbody.hpp"

namespace {

namespace gw = godwit;

enum class hint { none, near, weight };

std::uint64_t real_ns() {
  return static_cast<std::uint64_t>(std::chrono::steady_clock::now().time_since_epoch().count());
}
std::uint64_t now_ns() { return gw::detail::simulated ? gw::sim::now_ns() : real_ns(); }

template <class T, class F>
gw::future<void> start(hint h, gw::global_ptr<T> data, F f) {
  return h == hint::near ? gw::spawn(gw::near{data}, f) : gw::spawn(f);
}
/// Both, f at p and g at q, of these weights.
template <class T, class F, class G>
void both(hint h, gw::global_ptr<T> p, double weight_f, F f, gw::global_ptr<T> q, double weight_g, G g) {
  if (h == hint::weight && weight_f > weight_g) return both(h, q, 0, g, p, 0, f);
  auto first = start(h, p, f);
  auto second = start(h, q, g);
  second.join();
  first.join();
}

// Cilksort on global memory; a number a nanosecond to merge, and 1.3 for each level to sort.
using ints = gw::global_span<int>;
constexpr std::uint64_t leaf = 8192;

std::uint64_t below(ints s, int v) {
  std::uint64_t low = 0, high = s.size();
  while (low < high) {
    const std::uint64_t middle = low + (high - low) / 2;
    (s[middle] < v ? low : high) = s[middle] < v ? middle + 1 : middle;
  }
  return low;
}

void merge(hint h, ints a, ints b, gw::global_ptr<int> to) {
  if (a.size() + b.size() <= leaf) {
    const auto x = a.checkout(gw::access::read), y = b.checkout(gw::access::read);
    const auto z = gw::checkout(to, a.size() + b.size(), gw::access::write);
    gw::sim::charge(z.size());
    return cilksort::merge_leaf(x.data(), x.size(), y.data(), y.size(), z.data());
  }
  if (a.size() < b.size()) std::swap(a, b);
  const std::uint64_t i = a.size() / 2, j = below(b, a[i]);
  const auto second = to + static_cast<std::ptrdiff_t>(i + j);
  both(
      h, to, static_cast<double>(i + j), [=] { merge(h, a.first(i), b.first(j), to); }, second,
      static_cast<double>(a.size() - i + b.size() - j),
      [=] { merge(h, a.subspan(i), b.subspan(j), second); });
}

void sort(hint h, ints a, ints other, bool back) {
  const std::uint64_t n = a.size(), half = n / 2;
  if (n <= leaf) {
    const auto x = a.checkout(gw::access::read_write);
    const auto y = gw::checkout(other.data(), n, gw::access::write);
    gw::sim::charge(n * 17);
    cilksort::sort_leaf(x.data(), n);
    if (!back) std::copy(x.data(), x.data() + n, y.data());
    return;
  }
  both(
      h, a.data(), static_cast<double>(half), [=] { sort(h, a.first(half), other.first(half), !back); },
      a.subspan(half).data(), static_cast<double>(n - half),
      [=] { sort(h, a.subspan(half), other.subspan(half), !back); });
  const ints from = back ? other : a;
  merge(h, from.first(half), from.subspan(half), back ? a.data() : other.data());
}

double cilksort_ms(hint h, std::uint64_t n) {
  const ints a(gw::allocate<int>(n, gw::distribution::blocked()), n);
  const ints other(gw::allocate<int>(n, gw::distribution::blocked()), n);
  std::vector<int> numbers(n);
  for (std::uint64_t i = 0; i < n; ++i) numbers[i] = cilksort::element(i, 1);
  gw::put(a.data(), numbers.data(), n);
  const std::uint64_t from = now_ns();
  sort(h, a, other, true);
  const std::uint64_t took = now_ns() - from;
  const auto sorted = a.checkout(gw::access::read);
  if (!std::is_sorted(sorted.data(), sorted.data() + n)) std::printf("NOT SORTED\n");
  return static_cast<double>(took) / 1e6;
}

// Forces: made by main, so all workers have the tree; bodies come and go by global memory.
std::vector<nbody::body> bodies;
nbody::plain_cell root;
std::vector<double> block_ns, sum_ns;  ///< what blocks took; and those before
constexpr std::uint64_t block = 64;

nbody::vec force_on(const nbody::vec& at) { return nbody::acceleration_serial(root, bodies, at, 0.5); }

/// Bodies and cells that pull at @p at.
double pulls(const nbody::plain_cell& c, const nbody::vec& at) {
  if (nbody::is_far(c, at, 0.5)) return 1;
  if (c.children == 0) return c.count;
  double n = 1;
  for (std::uint32_t k = 0; k < c.children; ++k) n += pulls(c.child[k], at);
  return n;
}

void prepare_forces(std::uint64_t n) {
  nbody::problem p;
  p.bodies = n;
  for (std::uint64_t i = 0; i < n; ++i) bodies.push_back(nbody::first_body(p, i));
  root = nbody::build_serial(bodies);
  sum_ns.push_back(0);
  for (std::uint64_t b = 0; b < n / block; ++b) {
    double ns = 0;
    for (std::uint64_t i = b * block; i < (b + 1) * block; ++i) ns += 10 * pulls(root, bodies[i].at);
    block_ns.push_back(ns);
    sum_ns.push_back(sum_ns.back() + ns);
  }
}

using body_ptr = gw::global_ptr<nbody::body>;
using vec_ptr = gw::global_ptr<nbody::vec>;

void forces(hint h, body_ptr from, vec_ptr to, std::uint64_t first, std::uint64_t last) {
  if (last - first == 1) {
    const auto at = static_cast<std::ptrdiff_t>(first * block);
    const auto in = gw::checkout(from + at, block, gw::access::read);
    const auto out = gw::checkout(to + at, block, gw::access::write);
    gw::sim::charge(static_cast<std::uint64_t>(block_ns[first]));
    if (!gw::detail::simulated)
      for (std::uint64_t i = 0; i < block; ++i) out[i] = force_on(in[i].at);
    return;
  }
  const std::uint64_t middle = first + (last - first) / 2;
  const auto weight = [](std::uint64_t a, std::uint64_t b) { return sum_ns[b] - sum_ns[a]; };
  both(
      h, from + static_cast<std::ptrdiff_t>(first * block), weight(first, middle),
      [=] { forces(h, from, to, first, middle); }, from + static_cast<std::ptrdiff_t>(middle * block),
      weight(middle, last), [=] { forces(h, from, to, middle, last); });
}

double forces_ms(hint h, std::uint64_t n) {
  auto from = gw::allocate<nbody::body>(n, gw::distribution::blocked());
  auto to = gw::allocate<nbody::vec>(n, gw::distribution::blocked());
  gw::put(from, bodies.data(), n);
  const std::uint64_t begin = now_ns();
  forces(h, from, to, 0, n / block);
  return static_cast<double>(now_ns() - begin) / 1e6;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 4) return std::fprintf(stderr, "hints cilksort|nbody none|near|weight SIZE [options]\n"), 2;
  hint what = hint::none;
  const bool sorts = std::strcmp(argv[1], "cilksort") == 0;
  what = std::strcmp(argv[2], "near") == 0     ? hint::near
         : std::strcmp(argv[2], "weight") == 0 ? hint::weight
                                               : hint::none;
  const std::uint64_t n = std::strtoull(argv[3], nullptr, 0) / block * block;
  const gw::options o = [&] {
    gw::take_options(argc, argv);
    return gw::resolve_options();
  }();
  if (!sorts) prepare_forces(n);
  for (std::uint64_t seed = 1; seed <= 5; ++seed) {
    gw::options with = o;
    with.sim_seed = with.seed = seed;
    const double ms =
        gw::run<double>([=] { return sorts ? cilksort_ms(what, n) : forces_ms(what, n); }, with);
    std::printf("%s %s %.3f ms", argv[1], argv[2], ms);
    if (!sorts)
      std::printf(", efficiency %.1f %%",
                  sum_ns.back() / 1e6 / ms / static_cast<double>(gw::last_run_stats().size()) * 100);
    std::printf("\n");
  }
}
