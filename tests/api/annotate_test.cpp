// Names that a program gives to what it does: written down with a trace, nothing without one.
// test: timeout=60 skip-qemu
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

TEST_P(places, cost_nothing_that_is_seen_without_a_trace) {
  EXPECT_EQ(gw::run<long>([] { return named(16); }, options()), 987);
  const gw::annotate outside("outside of a run");
}

INSTANTIATE_TEST_SUITE_P(annotate, places,
                         testing::Values(gw::choice::substrate::processes, gw::choice::substrate::threads),
                         [](const auto& i) { return std::string(gw::choice::name_of(i.param)); });

}  // namespace
