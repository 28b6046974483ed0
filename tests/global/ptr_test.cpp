// global_ptr and global_ref: arithmetic, comparison, conversions, printing; what is read and written through
// them.
#include "container_runs.hpp"

#include <algorithm>
#include <compare>
#include <iterator>
#include <sstream>
#include <unordered_set>

using namespace container_runs;

namespace {

struct first {
  int a;
};
struct second {
  int b;
};
struct both : first, second {
  int c;
};

using ptr = gw::global_ptr<int>;
static_assert(std::is_trivially_copyable_v<ptr> && sizeof(ptr) == 8);
static_assert(std::is_convertible_v<ptr, gw::global_ptr<const int>> &&
              !std::is_convertible_v<gw::global_ptr<const int>, ptr>);
static_assert(std::is_convertible_v<ptr, gw::global_ptr<void>> &&
              !std::is_convertible_v<gw::global_ptr<void>, ptr>);
static_assert(std::is_convertible_v<gw::global_ptr<both>, gw::global_ptr<second>>);
static_assert(!std::is_convertible_v<gw::global_ptr<first>, gw::global_ptr<both>>);
static_assert(!std::is_convertible_v<ptr, gw::global_ptr<long>>);
static_assert(std::is_same_v<std::iterator_traits<ptr>::iterator_category, std::random_access_iterator_tag>);

TEST(GlobalPtr, Arithmetic) {
  constexpr ptr p(4096);
  static_assert((p + 3).address() == 4096 + 12 && (3 + p) == p + 3 && (p - 4).address() == 4096 - 16);
  static_assert((p + 7) - p == 7 && p - (p + 7) == -7);
  static_assert(p < p + 1 && p + 1 > p && p <= p && p != p + 1 && (p <=> p) == std::strong_ordering::equal);
  ptr q = p;
  EXPECT_EQ(q++, p);
  EXPECT_EQ(q, p + 1);
  EXPECT_EQ(++q, p + 2);
  EXPECT_EQ(q--, p + 2);
  EXPECT_EQ(--q, p);
  EXPECT_EQ(q += 5, p + 5);
  EXPECT_EQ(q -= 5, p);
  // Far beyond 4 GiB, and back.
  const gw::global_ptr<both> far(std::uint64_t{1} << 44);
  EXPECT_EQ((far + (std::ptrdiff_t{1} << 33)).address() - far.address(), sizeof(both) << 33);
  EXPECT_EQ((far + (std::ptrdiff_t{1} << 33)) - far, std::ptrdiff_t{1} << 33);
}

TEST(GlobalPtr, NullAndConversions) {
  constexpr ptr null;
  static_assert(null == nullptr && !null && null == ptr(nullptr) && null.address() == 0);
  constexpr gw::global_ptr<const int> c = ptr(64);
  static_assert(c == ptr(64) && gw::const_global_cast<int>(c) == ptr(64));
  const gw::global_ptr<both> d(1024);
  const gw::global_ptr<second> base = d;
  EXPECT_EQ(base.address(), 1024 + sizeof(first));
  EXPECT_EQ(gw::static_global_cast<both>(base), d);
  EXPECT_EQ(gw::global_ptr<second>(gw::global_ptr<both>()), nullptr);
  EXPECT_EQ(gw::static_global_cast<both>(gw::global_ptr<second>()), nullptr);
  const gw::global_ptr<void> v = d;
  EXPECT_EQ(gw::static_global_cast<both>(v), d);
  EXPECT_EQ(gw::reinterpret_global_cast<char>(d).address(), 1024u);
}

TEST(GlobalPtr, PrintsAndHashes) {
  std::ostringstream out;
  out << ptr(0xabc0) << ' ' << ptr() << ' ' << 16;
  EXPECT_EQ(out.str(), "global:0xabc0 global:null 16");
  std::unordered_set<ptr> set{ptr(1), ptr(2), ptr(1)};
  EXPECT_EQ(set.size(), 2u);
}

TEST(GlobalPtr, ReferencesReadAndWrite) {
  in_all_runs([] {
    const auto p = gw::allocate<int>(10);
    for (int i = 0; i < 10; ++i) p[i] = i;
    *p += 5;
    p[1] *= 7;
    ++p[2];
    --p[3];
    p[4] -= 4;
    p[8] /= 2;
    p[5] = p[9];  // copies the value, not the place
    WANT(*p == 5 && p[1] == 7 && p[2] == 3 && p[3] == 2 && p[4] == 0 && p[8] == 4 && p[5] == 9);
    WANT(&p[5] == p + 5);
    auto r = p[6];
    r = p[7];
    WANT(p[6] == 7);
    gw::global_ptr<const int> c = p;
    const int read = c[6];
    WANT(read == 7);
    gw::deallocate(p, 10);
  });
}

// a[i]++, the ways to swap, and a standard algorithm that needs them: like elements of a std::vector.
TEST(GlobalPtr, ReferencesAreUsedLikeElements) {
  in_all_runs([] {
    gw::global_array<int> a(5);
    for (int i = 0; i < 5; ++i) a[i] = 10 * i;
    WANT(a[1]++ == 10 && a[1] == 11 && a[2]-- == 20 && a[2] == 19);
    std::swap(a[1], a[2]);
    WANT(a[1] == 19 && a[2] == 11);
    using std::swap;
    swap(a[1], a[2]);
    WANT(a[1] == 11 && a[2] == 19);
    std::iter_swap(a.begin(), a.begin() + 4);
    WANT(a[0] == 40 && a[4] == 0);
    std::sort(a.begin(), a.end());
    WANT(gw::is_sorted(a) && a[4] == 40);
  });
}

struct node {
  int value;
  gw::global_ptr<node> next;
};

TEST(GlobalPtr, ListsInGlobalMemory) {
  in_all_runs([] {
    gw::global_ptr<node> head;
    for (int i = 0; i < 100; ++i) head = gw::spawn([=] { return gw::global_new<node>(i, head); }).join();
    int sum = gw::spawn([=] {
                int s = 0;
                for (auto p = head; p; p = (*p).load().next) s += (*p).load().value;
                return s;
              }).join();
    WANT(sum == 4950);
    while (head) {
      const auto next = (*head).load().next;
      gw::global_delete(head);
      head = next;
    }
  });
}

TEST(GlobalPtr, HomesAreWorkers) {
  in_all_runs([] {
    const auto p = gw::allocate<char>(64 * gw::worker_count(), gw::distribution::cyclic(64));
    for (std::uint32_t w = 0; w < gw::worker_count(); ++w)
      WANT(gw::home_of(p + 64 * static_cast<std::ptrdiff_t>(w)) == w);
    gw::deallocate(p, 64 * gw::worker_count());
  });
}

}  // namespace
