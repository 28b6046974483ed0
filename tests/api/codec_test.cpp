// Tests of the codecs: every standard type there and back, nested ones, a user's, truncated input; and
// through threads.
// test: timeout=120 skip-qemu
#include "support/substrate.hpp"
#include "support/schedule.hpp"
#include "support/shared.hpp"

#include <godwit/godwit.hpp>

#include <gtest/gtest.h>

#include <atomic>
#include <cstdlib>

#include <limits>
#include <numeric>
#include <string>
#include <utility>

namespace {

namespace gw = godwit;

// Where workers have one heap, nothing is written by codecs.
[[maybe_unused]] const int private_heaps = setenv("GODWIT_HEAP", "private", 1);

template <class T>
T there_and_back(const T& value) {
  static_assert(gw::migratable<T>);
  gw::writer w;
  w.put(value);
  gw::reader r(w.data(), w.size());
  T back = r.template get<T>();
  EXPECT_THROW(r.take(1), std::length_error) << "something was left over";
  return back;
}

template <class T>
class round_trip : public testing::Test {};

template <class T>
std::vector<T> samples();

using namespace std::string_literals;
#define SAMPLES(TYPE, ...)            \
  template <>                         \
  std::vector<TYPE> samples<TYPE>() { \
    return {__VA_ARGS__};             \
  }
using int_pair = std::pair<int, double>;
using string_pair = std::pair<std::string, int>;
using plain_tuple = std::tuple<int, char, double>;
using mixed_tuple = std::tuple<std::string, int, std::vector<std::string>>;
using empty_tuple = std::tuple<>;
using string_array = std::array<std::string, 3>;
using int_array = std::array<int, 4>;
using plain_variant = std::variant<int, double>;
using mixed_variant = std::variant<std::monostate, int, std::string, std::vector<int>>;
using string_map = std::map<std::string, std::vector<int>>;
using string_hash_map = std::unordered_map<int, std::string>;
using deep =
    std::map<int, std::optional<std::vector<std::pair<std::string, std::variant<int, std::string>>>>>;
SAMPLES(int, 0, -1, std::numeric_limits<int>::max())
SAMPLES(double, 0.0, -0.5, std::numeric_limits<double>::infinity())
SAMPLES(std::string, "", "short", std::string(100000, 'z'), "with\0nul"s)
SAMPLES(std::wstring, L"", L"w\u00e4rme")
SAMPLES(std::u32string, U"", U"\U0001F426 godwit")
SAMPLES(std::vector<int>, {}, {1, 2, 3}, std::vector<int>(10000, 9))
SAMPLES(std::vector<bool>, {}, {true}, {true, false, false, true, true, false, true, false, true})
SAMPLES(std::vector<std::string>, {}, {"", "a", std::string(50, 'b')})
SAMPLES(std::vector<std::vector<std::vector<int>>>, {}, {{{1}, {}}, {}, {{2, 3}}})
SAMPLES(std::deque<int>, {}, {3, 2, 1})
SAMPLES(std::deque<std::string>, {}, {"x", std::string(40, 'y')})
SAMPLES(std::list<std::string>, {}, {"l", "i", "s", "t"})
SAMPLES(std::set<std::string>, {}, {"b", "a", "c"})
SAMPLES(std::unordered_set<int>, {}, {5, 6, 7})
SAMPLES(string_map, {}, {{"one", {1}}, {"none", {}}, {"three", {1, 2, 3}}})
SAMPLES(string_hash_map, {}, {{1, "one"}, {2, std::string(99, 't')}})
SAMPLES(int_pair, {1, 2.5})
SAMPLES(string_pair, {"first", 2}, {"", 0})
SAMPLES(plain_tuple, {1, 'c', 2.5})
SAMPLES(mixed_tuple, {"t", 7, {"u", "v"}})
SAMPLES(empty_tuple, {})
SAMPLES(int_array, {1, 2, 3, 4})
SAMPLES(string_array, {"a", "", std::string(30, 'c')})
SAMPLES(std::optional<int>, std::nullopt, 4)
SAMPLES(std::optional<std::string>, std::nullopt, "some")
SAMPLES(plain_variant, 1, 2.5)
SAMPLES(mixed_variant, std::monostate(), 4, "text"s, std::vector<int>{1, 2})
SAMPLES(deep, {}, {{1, std::nullopt}, {2, {{{"k", 1}, {"l", "text"s}}}}})

using types =
    testing::Types<int, double, std::string, std::wstring, std::u32string, std::vector<int>,
                   std::vector<bool>, std::vector<std::string>, std::vector<std::vector<std::vector<int>>>,
                   std::deque<int>, std::deque<std::string>, std::list<std::string>, std::set<std::string>,
                   std::unordered_set<int>, string_map, string_hash_map, int_pair, string_pair, plain_tuple,
                   mixed_tuple, empty_tuple, int_array, string_array, std::optional<int>,
                   std::optional<std::string>, plain_variant, mixed_variant, deep>;
TYPED_TEST_SUITE(round_trip, types);

TYPED_TEST(round_trip, gives_the_same_value) {
  for (const TypeParam& value : samples<TypeParam>()) EXPECT_EQ(there_and_back(value), value);
}

TYPED_TEST(round_trip, as_result_and_argument_of_threads) {
  const std::vector<TypeParam> values = samples<TypeParam>();
  for (const char* force : {"none", "parents", "children"})
    for (const std::uint32_t workers : {1u, 3u}) {
      const gw::options o = support::schedule(workers, force);
      SCOPED_TRACE(support::describe(o));
      for (const TypeParam& value : values)
        EXPECT_EQ(gw::run<TypeParam>(
                      [v = &value] {
                        auto f = gw::spawn([v] { return *v; });
                        auto g = gw::spawn([](gw::future<TypeParam> h) { return h.join(); }, std::move(f));
                        return g.join();
                      },
                      o),
                  value);
    }
}

// Threads that are given the value itself: it lies in their frame when they begin.
TYPED_TEST(round_trip, as_argument_by_value) {
  for (const char* force : {"none", "parents"}) {
    const std::vector<TypeParam> values = samples<TypeParam>();
    const gw::options o = support::schedule(2, force);
    SCOPED_TRACE(support::describe(o));
    for (const TypeParam& value : values)
      EXPECT_EQ(
          gw::run<TypeParam>([v = &value] { return gw::spawn([](TypeParam t) { return t; }, *v).join(); }, o),
          value);
  }
}

TEST(codec, unique_ptr) {
  const auto some = there_and_back(std::make_unique<std::string>(60, 'u'));
  ASSERT_TRUE(some);
  EXPECT_EQ(*some, std::string(60, 'u'));
  EXPECT_EQ(there_and_back(std::unique_ptr<int>()), nullptr);
  const auto chain = there_and_back(std::make_unique<std::unique_ptr<int>>(std::make_unique<int>(5)));
  EXPECT_EQ(**chain, 5);
  std::vector<std::unique_ptr<int>> many;
  for (int i = 0; i < 4; ++i) many.push_back(i == 2 ? nullptr : std::make_unique<int>(i));
  gw::writer w;
  w.put(many);
  gw::reader r(w.data(), w.size());
  const auto back = r.get<std::vector<std::unique_ptr<int>>>();
  ASSERT_EQ(back.size(), 4u);
  EXPECT_EQ(*back[3], 3);
  EXPECT_EQ(back[2], nullptr);
}

struct base_class {
  virtual ~base_class() = default;
};
TEST(codec, what_has_none) {
  static_assert(!gw::encodable<std::unique_ptr<base_class>>);
  static_assert(!gw::encodable<std::shared_ptr<int>>);
  static_assert(!gw::encodable<std::function<void()>>);
  static_assert(!gw::encodable<std::vector<std::shared_ptr<int>>>);
  static_assert(!gw::encodable<std::pair<int, std::shared_ptr<int>>>);
  // Their order is not written: read would make a set with another one.
  static_assert(!gw::encodable<std::set<int, bool (*)(int, int)>>);
  static_assert(!gw::encodable<std::map<int, int, std::function<bool(int, int)>>>);
  static_assert(!gw::encodable<std::unordered_set<int, std::size_t (*)(int)>>);
  static_assert(gw::encodable<std::map<int, int, std::greater<>>>);
  static_assert(!gw::migratable<int&>);
  static_assert(gw::plain<std::pair<int, long>> && gw::plain<std::tuple<int, char>> && gw::plain<int*>);
  SUCCEED();
}

// A user's types: one with a codec, one that holds it, and one that needs no default constructor.
struct shape {
  std::string name;
  std::vector<std::pair<double, double>> points;
  std::unique_ptr<shape> next;
};
struct positive {
  explicit positive(int v) : value(v) {}
  positive(const positive& o) : value(o.value) {}  // not trivial on purpose
  int value;
};

}  // namespace

template <>
struct godwit::codec<shape> {
  static void write(writer& w, const shape& s) {
    w.put(s.name);
    w.put(s.points);
    w.put(s.next != nullptr);
    if (s.next) write(w, *s.next);
  }
  static shape read(reader& r) {
    shape s;
    s.name = r.get<std::string>();
    s.points = r.get<std::vector<std::pair<double, double>>>();
    if (r.get<bool>()) s.next = std::make_unique<shape>(read(r));
    return s;
  }
};
template <>
struct godwit::codec<positive> {
  static void write(writer& w, const positive& p) { w.put(p.value); }
  static positive read(reader& r) { return positive(r.get<int>()); }
};

namespace {

TEST(codec, of_a_user) {
  support::for_each_schedule([](const gw::options& o) {
    const shape s = gw::run<shape>(
        [] {
          auto f = gw::spawn([] {
            shape made{"outer", {{1, 2}, {3, 4}}, nullptr};
            made.next = std::make_unique<shape>(shape{std::string(200, 'i'), {}, nullptr});
            return made;
          });
          auto g = gw::spawn([] { return std::vector<positive>(3, positive(7)); });
          auto h = gw::spawn([] { return std::array<positive, 2>{positive(1), positive(2)}; });
          int sum = static_cast<int>(g.join().size());
          sum += h.join()[1].value;
          shape back = f.join();
          back.points.emplace_back(sum, 0);
          return back;
        },
        o);
    EXPECT_EQ(s.name, "outer");
    ASSERT_EQ(s.points.size(), 3u);
    EXPECT_EQ(s.points[2].first, 5);
    ASSERT_TRUE(s.next);
    EXPECT_EQ(s.next->name, std::string(200, 'i'));
  });
}

TEST(codec, truncated_input_throws) {
  gw::writer w;
  w.put(std::map<std::string, std::vector<int>>{{"key", {1, 2, 3}}});
  for (std::size_t n = 0; n < w.size(); ++n) {
    gw::reader r(w.data(), n);
    EXPECT_THROW((r.get<std::map<std::string, std::vector<int>>>()), std::length_error) << n;
  }
  gw::writer bad;
  bad.put(std::uint64_t{9});
  gw::reader r(bad.data(), bad.size());
  EXPECT_THROW((r.get<std::variant<int, std::string>>()), std::length_error);
}

struct liar {
  std::string s;
};
}  // namespace
template <>
struct godwit::codec<liar> {
  static void write(writer& w, const liar& l) { w.put(static_cast<int>(l.s.size())); }
  static liar read(reader& r) { return {r.get<std::string>()}; }
};
struct unwritable {
  std::string s;
};
template <>
struct godwit::codec<unwritable> {
  static void write(writer&, const unwritable&) { throw std::domain_error("cannot be written"); }
  static unwritable read(reader&) { return {}; }
};
/// One of those that are counted, wherever it is; written, it lives on in the bytes.
struct counted {
  explicit counted(std::atomic<int>* alive) : all(alive) { all->fetch_add(1); }
  counted(counted&& other) noexcept : all(std::exchange(other.all, nullptr)) {}
  ~counted() {
    if (all != nullptr) all->fetch_sub(1);
  }
  std::atomic<int>* all;
};
template <>
struct godwit::codec<counted> {
  static void write(writer& w, counted& c) {
    w.hands_over();
    w.put(std::exchange(c.all, nullptr));
  }
  static counted read(reader& r) {
    auto* const all = r.get<std::atomic<int>*>();
    if (r.again()) return counted(all);
    all->fetch_sub(1);
    return counted(all);
  }
};
namespace {

TEST(codec, that_reads_more_than_it_wrote_throws_from_join) {
  GODWIT_NEEDS_PROCESSES("no codec runs");
  for (const char* force : {"parents", "children"})
    EXPECT_THROW(gw::run<int>(
                     [] {
                       auto f = gw::spawn([] { return liar{"abc"}; });
                       return static_cast<int>(f.join().s.size());
                     },
                     support::schedule(2, force)),
                 std::length_error);
}

TEST(codec, that_throws_at_a_member_of_a_group_ends_the_wait) {
  GODWIT_NEEDS_PROCESSES("no codec runs");
  for (const auto policy : {gw::choice::policy::greedy, gw::choice::policy::child_full}) {
    gw::options o = support::schedule(2);
    o.policy = policy;
    EXPECT_THROW(gw::run<int>(
                     [policy] {
                       const gw::owned<gw::group> g;
                       const auto one = [](liar l) { static_cast<void>(l); };
                       if (policy == gw::choice::policy::greedy)
                         g->spawn_at(gw::worker(1), one, liar{"abc"});
                       else
                         g->spawn_by<gw::policies::child_full>(one, liar{"abc"});
                       g->wait();
                       return 0;
                     },
                     o),
                 std::length_error);
  }
}

TEST(codec, whose_writer_throws_gives_that_exception) {
  GODWIT_NEEDS_PROCESSES("no codec runs");
  EXPECT_THROW(gw::run<int>(
                   [] {
                     auto f = gw::spawn([] { return unwritable{"abc"}; });
                     return static_cast<int>(f.join().s.size());
                   },
                   support::schedule(2, "parents")),
               std::domain_error);
}

// The value lies in a frame that has to leave before anybody joins: join throws the same.
TEST(codec, whose_writer_throws_where_the_value_waits_in_a_frame) {
  GODWIT_NEEDS_PROCESSES("no codec runs");
  EXPECT_THROW(gw::run<int>(
                   [] {
                     auto f = gw::spawn([] { return unwritable{"abc"}; });
                     gw::spawn_at(gw::worker(0), [] {}).join();
                     return static_cast<int>(f.join().s.size());
                   },
                   support::schedule(1)),
               std::domain_error);
  EXPECT_THROW(gw::run<int>(
                   [] {
                     const gw::shared_future<unwritable> f = gw::spawn([] { return unwritable{"abc"}; });
                     return static_cast<int>(f.get().s.size());
                   },
                   support::schedule(1)),
               std::domain_error);
}

TEST(codec, that_hands_over_is_read_once_if_nobody_takes_the_result) {
  for (const auto heap : {gw::choice::heap::automatic, gw::choice::heap::separate})
    for (const char* force : {"none", "parents", "children", "random"}) {
      gw::options o = support::schedule(2, force);
      o.heap = heap;
      SCOPED_TRACE(support::describe(o));
      const support::shared<std::atomic<int>> alive;
      gw::run<void>(
          [all = alive.get()] {
            const gw::cancel_scope until_they_end;
            for (int i = 0; i < 20; ++i) {
              const auto make = [all, i] {
                if (i % 2 == 0) gw::yield();
                return counted(all);
              };
              static_cast<void>(gw::spawn(make));
              gw::spawn(make).join();
              const auto whole = gw::spawn([make] {
                                   counted one = make();  // first: the vector could not follow its thread
                                   return std::pair(std::move(one), std::vector<int>(100));
                                 }).share();
              const auto copy = whole;
            }
          },
          o);
      EXPECT_EQ(alive->load(), 0);
    }
}

}  // namespace
