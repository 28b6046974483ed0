// Names that a program gives to what it does: written down with a trace, nothing without one.
// test: timeout=60 skip-qemu
#include "trace/open_names.hpp"
#include "trace/trace_reader.hpp"

#include <godwit/annotate.hpp>
#include <godwit/task.hpp>

#include <gtest/gtest.h>

#include <cstdio>
#include <map>
#include <set>
#include <string>
#include <unistd.h>

namespace {

namespace gw = godwit;
using gw::trace::event;
using gw::trace::kind;

[[gnu::noinline]] long fib(int n) {
  if (n < 2) return n;
  auto x = gw::spawn([n] {
    const gw::annotate name("the left one");
    return fib(n - 1);
  });
  const long y = fib(n - 2);
  return x.join() + y;
}

long named(int n) {
  const gw::annotate name("all of it");
  return fib(n);
}

struct places : testing::TestWithParam<gw::choice::substrate> {
  std::string file = testing::TempDir() + "godwit_annotate_test." + std::to_string(getpid());
  ~places() override { std::remove(file.c_str()); }
  gw::options options() const {
    gw::options o;
    o.workers = 3;
    o.substrate = GetParam();
    return o;
  }
};

TEST_P(places, are_in_the_trace_by_pairs) {
  gw::options o = options();
  o.trace = file;
  EXPECT_EQ(gw::run<long>([] { return named(16); }, o), 987);
  const auto c = support::read_trace(file);
  std::set<std::uint64_t> texts;
  std::map<std::uint64_t, long> open;  // by scope: begun, less ended
  for (const auto& [w, all] : c.events)
    for (const event& e : all) {
      if (e.what == static_cast<std::uint16_t>(kind::name)) ++open[e.b], texts.insert(e.a);
      if (e.what == static_cast<std::uint16_t>(kind::name_ends)) --open[e.b];
    }
  for (const auto& [scope, n] : open) EXPECT_EQ(n, 0) << scope;
  std::set<std::string> names;
  for (const std::uint64_t text : texts) names.insert(c.strings.at(text));
  EXPECT_EQ(names, (std::set<std::string>{"all of it", "the left one"}));
}

TEST_P(places, are_those_of_each_thread_where_parents_leave) {
  gw::options o = options();
  o.workers = 1;
  o.force_steal = gw::choice::force_steal::parents;
  o.trace = file;
  EXPECT_EQ(gw::run<long>([] { return named(10); }, o), 55);
  gw::trace::open_names names(1);
  std::map<std::uint64_t, std::uint64_t> texts;  // by scope
  const auto c = support::read_trace(file);
  for (const event& e : c.events.at(0)) {
    if (e.what == static_cast<std::uint16_t>(kind::name)) {
      EXPECT_TRUE(texts.empty() || names.of(0) != 0) << "all threads are inside of the outermost";
      texts[e.b] = e.a;
    }
    if (e.what == static_cast<std::uint16_t>(kind::name_ends)) {
      EXPECT_EQ(names.of(0), texts[e.b]);
    }
    names.event(0, e);
  }
  EXPECT_GT(texts.size(), 1u);
}

TEST_P(places, cost_nothing_that_is_seen_without_a_trace) {
  EXPECT_EQ(gw::run<long>([] { return named(16); }, options()), 987);
  const gw::annotate outside("outside of a run");
}

INSTANTIATE_TEST_SUITE_P(annotate, places,
                         testing::Values(gw::choice::substrate::processes, gw::choice::substrate::threads),
                         [](const auto& i) { return std::string(gw::choice::name_of(i.param)); });

}  // namespace
