// global_bytes and global_bytes_view against std::string.
#include "container_runs.hpp"

#include "support/child.hpp"

#include <random>
#include <sstream>
#include <string>

using namespace container_runs;
using namespace std::string_literals;

namespace {

constinit gw::global_bytes never_used;
gw::global_bytes left_over;

static_assert(std::is_trivially_copyable_v<gw::global_bytes_view>);
static_assert(gw::coded<gw::global_bytes> && !std::is_copy_constructible_v<gw::global_bytes>);

int sign(int v) { return (v > 0) - (v < 0); }

TEST(GlobalBytes, HoldsTextAndGivesItBack) {
  in_all_runs([] {
    gw::global_bytes b("godwit");
    WANT(b.size() == 6 && b.str() == "godwit" && b[2] == 'd' && b.at(5) == 't');
    WANT_THROW(b.at(6), std::out_of_range, "there are 6 elements");
    b[0] = 'G';
    b.append(", the bird").append(b.view()).append(""s);
    b += "!";
    b.push_back('?');
    WANT(b == "Godwit, the birdGodwit, the bird!?");
    WANT(b.substr(12, 4).str() == "bird" && b.substr(12).size() == b.size() - 12);
    WANT_THROW(b.substr(99), std::out_of_range, "substr(99)");
    std::ostringstream out;
    out << b << b.substr(0, 2);
    WANT(out.str() == b.str() + "Go");
    b.clear();
    WANT(b.empty() && b.str().empty() && b == "" && b < "a");
    gw::global_bytes none;
    WANT(none == b && none.view().empty() && none.str().empty());
    const std::string zeros("a\0b", 3);
    gw::global_bytes z(zeros);
    WANT(z.size() == 3 && z.str() == zeros && z == zeros);
  });
}

TEST(GlobalBytes, ComparesLikeStdString) {
  in_all_runs([] {
    std::mt19937 random(3);
    for (int i = 0; i < 300; ++i) {
      std::string a, b;
      for (auto n = random() % 6; n != 0; --n) a += "ab\xff"[random() % 3];
      for (auto n = random() % 6; n != 0; --n) b += "ab\xff"[random() % 3];
      const gw::global_bytes x(a), y(b, gw::distribution::cyclic(16));
      WANT(sign(x.compare(y)) == sign(a.compare(b)) && sign(x.compare(b)) == sign(a.compare(b)));
      WANT((x == y) == (a == b) && (x < y) == (a < b) && (x >= b) == (a >= b));
      WANT(x.compare(x.view()) == 0);
    }
    // Longer than the pieces that are looked at.
    std::string l(200'000, 'x');
    gw::global_bytes x(l, gw::distribution::blocked()), y(l, gw::distribution::cyclic());
    WANT(x == y && x == l);
    y[199'999] = 'y';
    WANT(x < y && y > l && x != y);
    l[70'000] = 'a';
    WANT(x > l);
  });
}

TEST(GlobalBytes, ViewsTravelInClosuresAndInGlobalMemory) {
  in_all_runs([] {
    gw::global_bytes words[3] = {gw::global_bytes("one"), gw::global_bytes("two"), gw::global_bytes("three")};
    gw::global_array<gw::global_bytes_view> index(3);
    for (std::size_t i = 0; i < 3; ++i) index[i] = words[i].view();
    const std::string all = gw::spawn([s = index.span()] {
                              std::string text;
                              for (std::uint64_t i = 0; i < s.size(); ++i) text += s[i].load().str();
                              return text;
                            }).join();
    WANT(all == "onetwothree");
  });
}

TEST(GlobalBytes, MovesAndIsReturned) {
  in_all_runs([] {
    auto b = gw::spawn([b = gw::global_bytes("left")]() mutable {
               gw::spawn([] {}).join();
               b.append(" and right");
               return std::move(b);
             }).join();
    WANT(b == "left and right");
    auto f = gw::spawn([](gw::global_bytes c) { return c.str(); }, std::move(b));
    WANT(f.join() == "left and right");
    WANT(b.empty());  // NOLINT: moved from, and says so
  });
}

TEST(GlobalBytes, OutlivesItsRunAndFreesAll) {
  gw::options o;
  o.workers = 2;
  left_over = gw::run<gw::global_bytes>([] { return gw::global_bytes("text"); }, o);
  EXPECT_EQ(left_over.size(), 4u);
  EXPECT_THROW(left_over.str(), std::logic_error);
  EXPECT_THROW(left_over.append("x"), std::logic_error);
  gw::run<void>([] { WANT_THROW(left_over.view(), std::logic_error, "another one"); }, o);
  left_over.reset();
  EXPECT_TRUE(left_over.empty() && never_used.empty());
  const auto c = support::run_child([] {
    return run_checked([] {
      gw::global_bytes a("some"), b(a.view());
      for (int i = 0; i < 1000; ++i) a.append("more");
      b = std::move(a);
    });
  });
  EXPECT_EQ(c.status, 0) << support::show(c);
  EXPECT_FALSE(c.err_has("not freed")) << support::show(c);
}

}  // namespace
