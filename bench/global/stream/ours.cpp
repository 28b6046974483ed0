// The kernels over global memory: loops by halves, a checkout per leaf.

#include "stream.hpp"

namespace stream {

namespace gw = godwit;

namespace {

using array = gw::global_ptr<double>;

array element_at(array p, std::uint64_t i) { return p + static_cast<std::ptrdiff_t>(i); }

/// f(low, n) for leaves, where the memory was first used if asked for.
template <class F>
void each(const settings& s, array home, std::uint64_t size, const F& f) {
  const auto leaf = [=](std::uint64_t low, std::uint64_t high) { f(low, high - low); };
  s.near ? parts::halves_near(home, 0, size, s.grain, leaf) : parts::halves(0, size, s.grain, leaf);
}

/// Sum by halves, near: the two halves' order of execution varies, the order of additions does not.
double total(array a, std::uint64_t low, std::uint64_t high, std::uint64_t grain, bool near) {
  if (high - low <= grain) {
    const auto x = gw::checkout(element_at(a, low), high - low, gw::access::read);
    return sum(x.data(), x.size());
  }
  const std::uint64_t middle = low + (high - low) / 2;
  bool swapped = false;
  if (near) {
    const std::uint32_t first = gw::home_of(element_at(a, low)), last = gw::home_of(element_at(a, high - 1));
    near = first != last;
    swapped = near && gw::worker_id() != first && gw::worker_id() >= gw::home_of(element_at(a, middle));
  }
  const auto lower = [=] { return total(a, low, middle, grain, near); };
  const auto upper = [=] { return total(a, middle, high, grain, near); };
  if (swapped) {
    auto [y, x] = gw::invoke(upper, lower);
    return x + y;
  }
  auto [x, y] = gw::invoke(lower, upper);
  return x + y;
}

void sums(const settings& s, outcome& out) {
  const array a = gw::allocate<double>(s.size, gw::distribution::blocked());
  out.first = parts::measured([=] {
    each(s, a, s.size, [=](std::uint64_t low, std::uint64_t n) {
      const auto x = gw::checkout(element_at(a, low), n, gw::access::write);
      for (std::uint64_t i = 0; i < n; ++i) x[i] = element(low + i);
    });
  });
  for (int t = 0; t < s.times; ++t)
    out.of[k_sum].add(parts::measured([&] { out.total = total(a, 0, s.size, s.grain, s.near); }));
  gw::deallocate(a, s.size);
}

void streams(const settings& s, outcome& out) {
  const auto even = gw::distribution::blocked();
  const array a = gw::allocate<double>(s.stream_size, even), b = gw::allocate<double>(s.stream_size, even),
              c = gw::allocate<double>(s.stream_size, even);
  each(s, a, s.stream_size, [=](std::uint64_t low, std::uint64_t n) {
    const triple start;
    std::ranges::fill(gw::checkout(element_at(a, low), n, gw::access::write), start.a);
    std::ranges::fill(gw::checkout(element_at(b, low), n, gw::access::write), start.b);
    std::ranges::fill(gw::checkout(element_at(c, low), n, gw::access::write), start.c);
  });
  const auto unary = [&](array from, array to, void (*kernel)(const double*, double*, std::size_t)) {
    return parts::measured([=] {
      each(s, a, s.stream_size, [=](std::uint64_t low, std::uint64_t n) {
        const auto x = gw::checkout(element_at(from, low), n, gw::access::read);
        const auto y = gw::checkout(element_at(to, low), n, gw::access::write);
        kernel(x.data(), y.data(), n);
      });
    });
  };
  const auto binary = [&](array from, array and_from, array to,
                          void (*kernel)(const double*, const double*, double*, std::size_t)) {
    return parts::measured([=] {
      each(s, a, s.stream_size, [=](std::uint64_t low, std::uint64_t n) {
        const auto x = gw::checkout(element_at(from, low), n, gw::access::read);
        const auto y = gw::checkout(element_at(and_from, low), n, gw::access::read);
        const auto z = gw::checkout(element_at(to, low), n, gw::access::write);
        kernel(x.data(), y.data(), z.data(), n);
      });
    });
  };
  for (int t = 0; t < s.times; ++t) {
    out.of[k_copy].add(unary(a, c, &copy));
    out.of[k_scale].add(unary(c, b, &scale));
    out.of[k_add].add(binary(a, b, c, &add));
    out.of[k_triad].add(binary(b, c, a, &triad));
  }
  out.bad = parts::sum_of_halves<std::uint64_t>(
      0, s.stream_size, s.grain, [=, times = s.times](std::uint64_t low, std::uint64_t high) {
        const triple right = right_values(times);
        const auto x = gw::checkout(element_at(a, low), high - low, gw::access::read);
        const auto y = gw::checkout(element_at(b, low), high - low, gw::access::read);
        const auto z = gw::checkout(element_at(c, low), high - low, gw::access::read);
        std::uint64_t bad = 0;
        for (std::uint64_t i = 0; i < high - low; ++i)
          bad += x[i] != right.a || y[i] != right.b || z[i] != right.c;
        return bad;
      });
  for (const array p : {a, b, c}) gw::deallocate(p, s.stream_size);
}

}  // namespace

outcome ours(const settings& s) {
  outcome out;
  sums(s, out);
  streams(s, out);
  return out;
}

}  // namespace stream
