// The steps of a run, taken with a substrate that starts no workers: their order, and that whatever a step
// makes is given back when a later one fails. See src/runtime/substrate.hpp. test: once
#include "runtime/substrate.hpp"

#include "runtime/run_common.hpp"

#include <godwit/godwit.hpp>

#include <gtest/gtest.h>

#include <sys/mman.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <fstream>
#include <iterator>
#include <stdexcept>
#include <string>
#include <vector>

namespace {

using namespace godwit;
using runtime::run_state;
using steps = std::vector<std::string>;

struct no_root final : detail::root_task {
  void operator()(writer&) override {}
  bool needs_threads() const noexcept override { return false; }
};

/// Writes down what it is asked to do. One step may throw, or say that the run has failed.
class scripted final : public runtime::substrate {
 public:
  explicit scripted(std::string throws_at = "", std::string fails_at = "")
      : throws_at_(std::move(throws_at)), fails_at_(std::move(fails_at)) {}

  void plan(run_state& r) override {
    r.plan_one_host(2);
    r.what.job.host_count = host_count;
    step("plan", r);
  }
  void together(const std::function<void()>& work) override {
    work();
    taken.push_back("together");
    if (throws_at_ == "together") throw std::runtime_error("together");
  }
  void memory(run_state& r) override {
    r.what.memory.create(r.own.count, runtime::plan_segment(r.what.opts, r.own.count));
    segments_ = r.what.memory.common();
    runtime::complete_memory(r);
    global_ = r.what.global.base();
    step("memory", r);
  }
  void start(run_state& r) override { step("start", r); }
  void supervise(run_state& r) override { step("supervise", r); }
  void collect(run_state& r) override {
    runtime::keep_stats(runtime::own_stats(r));
    // The assertions of a run want to know who decided that it is over.
    runtime::host_words(r.what.memory).failed.store(2, std::memory_order_release);
    step("collect", r);
  }
  void add_events(run_state& r) override {
    substrate::add_events(r);
    step("add_events", r);
  }
  void end(run_state& r) noexcept override {
    if (segments_ != nullptr) {
      EXPECT_EQ(r.what.memory.common(), segments_) << "the memory is still there";
    }
    taken.push_back("end");
  }

  bool left_memory() const { return is_mapped(segments_) || is_mapped(global_); }

  steps taken;
  std::uint32_t host_count = 1;

 private:
  void step(const char* name, run_state& r) {
    taken.push_back(name);
    if (throws_at_ == name) throw std::runtime_error(name);
    if (fails_at_ == name) r.fail(70, std::string("godwit: failed in ") + name);
  }
  static bool is_mapped(std::byte* at) {
    unsigned char resident = 0;
    return at != nullptr && !(mincore(at, 1, &resident) != 0 && errno == ENOMEM);
  }

  const std::string throws_at_, fails_at_;
  std::byte* segments_ = nullptr;
  std::byte* global_ = nullptr;
};

options small() {
  options o;
  o.stack_bytes = o.heap_bytes = std::uint64_t{16} << 20;
  return o;
}

detail::run_result run_steps(scripted& s, const options& o = small(), std::string problem = {}) {
  no_root root;
  return runtime::run_on(s, o, root, std::move(problem));
}

std::string name_of_file(const char* what) {
  return testing::TempDir() + "substrate_" + what + "_" + std::to_string(getpid());
}

std::string text_of(const std::string& file) {
  std::ifstream in(file);
  return {std::istreambuf_iterator<char>(in), std::istreambuf_iterator<char>()};
}

const steps in_order{"plan", "together", "memory", "start", "supervise", "collect"};

TEST(substrate, a_run_takes_all_steps_in_order) {
  scripted s;
  const detail::run_result result = run_steps(s);
  EXPECT_EQ(result.status, 0) << result.message;
  steps expected = in_order;
  expected.push_back("end");
  EXPECT_EQ(s.taken, expected);
  EXPECT_FALSE(s.left_memory());
  EXPECT_EQ(last_run_stats().size(), 2u);
}

TEST(substrate, events_are_added_to_a_traced_run) {
  const std::string file = name_of_file("trace");
  options o = small();
  o.trace = file;
  o.quiet = true;
  scripted s;
  EXPECT_EQ(run_steps(s, o).status, 0);
  steps expected = in_order;
  expected.insert(expected.end(), {"add_events", "end"});
  EXPECT_EQ(s.taken, expected);
  EXPECT_NE(text_of(file), "");
  std::remove(file.c_str());
}

TEST(substrate, a_step_that_throws_is_the_last_one) {
  for (std::size_t i = 0; i < in_order.size(); ++i) {
    scripted s(in_order[i]);
    try {
      run_steps(s);
      ADD_FAILURE() << in_order[i] << " threw, and run_on did not";
    } catch (const std::runtime_error& e) {
      EXPECT_EQ(e.what(), in_order[i]);
    }
    steps expected(in_order.begin(), in_order.begin() + static_cast<std::ptrdiff_t>(i) + 1);
    expected.push_back("end");
    EXPECT_EQ(s.taken, expected);
    EXPECT_FALSE(s.left_memory()) << in_order[i];
  }
}

TEST(substrate, a_run_that_fails_is_collected_and_ended) {
  for (const char* where : {"start", "supervise", "collect"}) {
    const std::string file = name_of_file(where);
    options o = small();
    o.stats_json = file;
    scripted s("", where);
    const detail::run_result result = run_steps(s, o);
    EXPECT_EQ(result.status, 70);
    EXPECT_EQ(result.message, std::string("godwit: failed in ") + where);
    steps expected = in_order;
    expected.push_back("end");
    EXPECT_EQ(s.taken, expected) << where;
    EXPECT_FALSE(s.left_memory()) << where;
    EXPECT_NE(text_of(file).find(std::string("failed in ") + where), std::string::npos);
    std::remove(file.c_str());
  }
}

TEST(substrate, options_that_do_not_fit_the_plan_are_refused_before_there_is_memory) {
  options o = small();
  o.span = true;
  scripted s;
  s.host_count = 2;
  EXPECT_THROW(run_steps(s, o), std::invalid_argument);
  EXPECT_EQ(s.taken, (steps{"plan", "end"}));

  o = small();
  o.stats_json = "/nowhere/file";
  scripted t;
  EXPECT_THROW(run_steps(t, o), std::invalid_argument);
  EXPECT_EQ(t.taken, (steps{"plan", "end"}));
}

// Of a process that is one of several, and reads its options itself: those agree on it while they plan.
TEST(substrate, a_problem_with_the_options_ends_the_run_before_it_has_memory) {
  scripted s;
  try {
    run_steps(s, small(), "godwit: a bad option");
    ADD_FAILURE() << "it went on";
  } catch (const std::invalid_argument& e) {
    EXPECT_STREQ(e.what(), "godwit: a bad option");
  }
  EXPECT_EQ(s.taken, (steps{"plan", "end"}));
}

TEST(substrate, after_runs_that_failed_others_are_as_ever) {
  for (const std::string& name : in_order) {
    scripted s(name);
    EXPECT_THROW(run_steps(s), std::runtime_error);
    for (const char* substrate : {"processes", "threads"}) {
      options o;
      o.workers = 2;
      o.substrate = godwit::choice::named{substrate};
      EXPECT_EQ(run<int>(o, [] { return spawn([] { return 40; }).join() + 2; }), 42) << substrate;
    }
  }
}

}  // namespace
