// The sort on global memory. A leaf checks out what it needs; the search for where to split a merge reads
// single elements.

#include "cilksort.hpp"

namespace cilksort {

namespace gw = godwit;

namespace {

using ints = gw::global_span<int>;

/// Elements of @p s that are less than @p v.
std::uint64_t below(ints s, int v) {
  std::uint64_t low = 0, high = s.size();
  while (low < high) {
    const std::uint64_t middle = low + (high - low) / 2;
    if (s[middle] < v)
      low = middle + 1;
    else
      high = middle;
  }
  return low;
}

template <class P>
void merge(ints a, ints b, gw::global_ptr<int> to, std::uint64_t leaf) {
  if (a.size() + b.size() <= leaf) {
    const auto x = a.checkout(gw::access::read), y = b.checkout(gw::access::read);
    const auto z = gw::checkout(to, a.size() + b.size(), gw::access::write);
    return merge_leaf(x.data(), x.size(), y.data(), y.size(), z.data());
  }
  if (a.size() < b.size()) std::swap(a, b);
  const std::uint64_t i = a.size() / 2, j = below(b, a[i]);
  parts::both<P>(
      [=] { merge<P>(a.first(i), b.first(j), to, leaf); },
      [=] { merge<P>(a.subspan(i), b.subspan(j), to + static_cast<std::ptrdiff_t>(i + j), leaf); });
}

template <class P>
void sort(ints a, ints other, std::uint64_t small, std::uint64_t leaf) {
  const std::uint64_t n = a.size();
  if (n <= small) {
    const auto x = a.checkout(gw::access::read_write);
    return sort_leaf(x.data(), n);
  }
  const std::uint64_t q = n / 4, h = 2 * q;
  const auto half = [=](std::uint64_t low, std::uint64_t size) {
    parts::both<P>(
        [=] { sort<P>(a.subspan(low, q), other.subspan(low, q), small, leaf); },
        [=] { sort<P>(a.subspan(low + q, size - q), other.subspan(low + q, size - q), small, leaf); });
    merge<P>(a.subspan(low, q), a.subspan(low + q, size - q), other.subspan(low).data(), leaf);
  };
  parts::both<P>([=] { half(0, h); }, [=] { half(h, n - h); });
  merge<P>(other.first(h), other.subspan(h), a.data(), leaf);
}

template <class P>
outcome ours(const settings& s) {
  const auto even = gw::distribution::blocked();
  const ints a(gw::allocate<int>(s.size, even), s.size), other(gw::allocate<int>(s.size, even), s.size);
  const std::uint64_t grain = std::max<std::uint64_t>(s.merge_leaf, 1 << 16);
  outcome out;
  for (parts::phase* p : {&out.first, &out.second}) {
    parts::halves<P>(0, s.size, grain, [=, seed = s.seed](std::uint64_t low, std::uint64_t high) {
      const auto x = a.subspan(low, high - low).checkout(gw::access::write);
      for (std::uint64_t i = 0; i < x.size(); ++i) x[i] = element(low + i, seed);
    });
    *p = parts::measured([&] { sort<P>(a, other, s.sort_leaf, s.merge_leaf); });
    out.wrong +=
        parts::sum_of_halves<std::uint64_t, P>(0, s.size, grain, [=](std::uint64_t low, std::uint64_t high) {
          const auto x = a.subspan(low, high - low).checkout(gw::access::read);
          std::uint64_t wrong = 0;
          for (std::uint64_t i = 0; i < x.size(); ++i) wrong += x[i] != right[low + i];
          return wrong;
        });
  }
  gw::deallocate(a.data(), s.size);
  gw::deallocate(other.data(), s.size);
  return out;
}

}  // namespace

outcome (*ours_under(const std::string& policy))(const settings& s) {
  return gw::with_policy(gw::choice::named{policy}, [](auto p) { return &ours<decltype(p)>; });
}

}  // namespace cilksort
