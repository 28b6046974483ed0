// global_span: views, parts, checkout, travel in closures.
#include "container_runs.hpp"

#include <algorithm>
#include <numeric>

using namespace container_runs;

namespace {

static_assert(std::is_trivially_copyable_v<gw::global_span<double>>);
static_assert(std::is_convertible_v<gw::global_span<int>, gw::global_span<const int>>);
static_assert(!std::is_convertible_v<gw::global_span<const int>, gw::global_span<int>>);
static_assert(std::is_convertible_v<gw::global_array<int>&, gw::global_span<int>>);
static_assert(!std::is_convertible_v<const gw::global_array<int>&, gw::global_span<int>>);
static_assert(std::is_convertible_v<const gw::global_array<int>&, gw::global_span<const int>>);
static_assert(sizeof(gw::global_span<char>) == 16);

TEST(GlobalSpan, Parts) {
  constexpr gw::global_ptr<int> at(1024);
  constexpr gw::global_span<int> s(at, 10);
  static_assert(s.size() == 10 && s.size_bytes() == 40 && !s.empty());
  static_assert(s.first(3).size() == 3 && s.first(3).data() == at);
  static_assert(s.last(3).data() == at + 7 && s.last(3).size() == 3);
  static_assert(s.subspan(4).data() == at + 4 && s.subspan(4).size() == 6);
  static_assert(s.subspan(4, 2).end() == at + 6);
  static_assert(s.subspan(10).empty() && s.end() - s.begin() == 10);
  static_assert(gw::global_span<int>(at, at + 5).size() == 5);
  static_assert(gw::global_span<int>().data() == nullptr && gw::global_span<int>().empty());
  constexpr gw::global_span<const int> c = s;
  static_assert(c.data() == at && c.size() == 10);
}

TEST(GlobalSpan, ReadsAndWritesAnywhere) {
  in_all_runs([] {
    gw::global_array<int> a(5000, gw::distribution::cyclic(256), 0);
    const gw::global_span<int> s = a;
    {
      auto open = s.subspan(100, 4000).checkout(gw::access::write);
      std::iota(open.begin(), open.end(), 100);
    }
    s.front() = -1;
    s.back() = -2;
    WANT(s[100] == 100 && s[4099] == 4099 && s[4100] == 0 && s[0] == -1 && s[4999] == -2);
    gw::global_span<const int> c = s;
    const long total = gw::spawn([c] {
                         const auto open = c.first(4100).checkout(gw::access::read);
                         return std::accumulate(open.begin(), open.end(), 0L);
                       }).join();
    WANT(total == (100L + 4099) * 4000 / 2 - 1);
    // Any algorithm of the standard library that reads and writes by iterators works, element by element.
    WANT(std::find(s.begin(), s.end(), 3000) - s.begin() == 3000);
    WANT(std::count(c.begin(), c.end(), 0) == 5000 - 4000 - 2);
  });
}

TEST(GlobalSpan, TwoThreadsWriteDisjointParts) {
  in_all_runs([] {
    gw::global_array<long> a(2000, gw::distribution::blocked());
    const auto s = a.span();
    gw::invoke(
        [=] {
          for (long& x : s.first(1000).checkout(gw::access::write)) x = 1;
        },
        [=] {
          for (long& x : s.last(1000).checkout(gw::access::write)) x = 2;
        });
    const auto all = s.checkout(gw::access::read);
    WANT(std::accumulate(all.begin(), all.end(), 0L) == 3000);
  });
}

}  // namespace
