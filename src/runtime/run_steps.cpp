// The steps of a run. See substrate.hpp.
#include "runtime/substrate.hpp"

#include <cstdio>
#include <stdexcept>
#include <unistd.h>
#include <utility>

#include "base/clock.hpp"
#include "base/cpus.hpp"
#include "base/random.hpp"
#include "heap/heap.hpp"
#include "runtime/run_common.hpp"
#include "runtime/shared_objects.hpp"
#include "sched/lazy_spawns.hpp"
#include "sched/policies.hpp"

namespace godwit::runtime {

namespace {

std::string host_name() {
  char name[256] = {};
  gethostname(name, sizeof name - 1);
  return name;
}

/// What does not depend on the substrate, nor on options that ranks still have to agree on.
void begin(run_state& r, const options& opts, detail::root_task& root, std::string problem) {
  base::prepare_fast_clock();
  launch& what = r.what;
  what.opts = opts;
  what.cpus = base::usable_cpu_count();
  what.root = &root;
  what.supervisor = getpid();
  what.main_stack = stack::system_stack();
  r.problem = std::move(problem);
}

/// Throws std::invalid_argument if the policy cannot be had with so many hosts, or not with the other
/// options.
void check_policy(const options& opts, std::size_t hosts) {
  const std::string asked = opts.span ? "span=1" : "policy=" + std::string(name_of(opts.policy));
  if (opts.span && opts.policy != choice::policy::greedy)
    throw std::invalid_argument(
        "godwit: span=1 measures under a policy of its own: not together with policy=" +
        std::string(name_of(opts.policy)));
  if (detail::facts_of(opts).steals_children && opts.force_steal != choice::force_steal::none)
    throw std::invalid_argument("godwit: force_steal=" + std::string(name_of(opts.force_steal)) +
                                " makes continuations leave, and with " + asked +
                                " there are none to be stolen: use one or the other");
  if (opts.spare_workers != 0 && asked != "policy=greedy")
    throw std::invalid_argument("godwit: " + asked +
                                " has no spare workers: leave spare_workers at 0, or the policy at greedy");
  if (hosts > 1 && !detail::facts_of(opts).spans_hosts())
    throw std::invalid_argument("godwit: " + asked + " works on one host only, and the workers are on " +
                                std::to_string(hosts) + ": start it on one, or leave the policy at greedy");
}

/// Policy lazy, where it cannot be had.
void check_lazy(const options& opts, bool in_process) {
  if (opts.force_steal != choice::force_steal::none && !sched::looks_at_lazy_spawns())
    throw std::invalid_argument(
        "godwit: force_steal=" + std::string(name_of(opts.force_steal)) +
        " makes continuations leave at spawns, and with policy=lazy nobody "
        "looks at those: compile the program with -DGODWIT_LAZY_LOOKS, or use another "
        "policy");
  if (in_process)
    throw std::invalid_argument(
        "godwit: policy=lazy copies stacks between workers that are processes, and here they are threads: "
        "use "
        "--godwit-substrate=processes (GODWIT_SUBSTRATE=processes), or another policy");
  if (const char* why = sched::no_lazy_spawns(); why != nullptr)
    throw std::invalid_argument(std::string("godwit: policy=lazy cannot be had here: ") + why +
                                ". Use policy greedy");
}

/// What the plan decides, and what may fail before there is any memory: files whose names are bad, above all.
void prepare(substrate& s, run_state& r) {
  launch& what = r.what;
  const options& opts = what.opts;
  check_policy(opts, what.job.host_count);
  if (detail::facts_of(opts).spawns_lazily) check_lazy(opts, what.job.in_process);
  if (what.job.host_count > 1)
    if (std::string why = shared_objects::refusal("on several hosts"); !why.empty())
      throw std::invalid_argument(why);
  s.together([&] {
    if (r.speaks) r.outputs.emplace(opts).begin(what.job.workers);
    what.rings.emplace(opts, r.own, what.job.workers);
  });
  if (opts.bind == choice::bind::cores) what.bind_to = base::usable_cpus();
  what.seed = opts.seed != 0 ? opts.seed : base::fresh_seed();
  // so that a failure can be repeated
  if (r.speaks && opts.seed == 0 && (opts.delay_us != 0 || opts.force_steal == choice::force_steal::random))
    std::fprintf(stderr, "godwit: seed %llu\n", static_cast<unsigned long long>(what.seed));
}

run_facts facts_of(const run_state& r) {
  run_facts facts;
  facts.wall_seconds = static_cast<double>(base::now_ns() - r.start_ns) / 1e9;
  facts.cpus = r.cpus != 0 ? r.cpus : base::usable_cpu_count();
  facts.opts = r.what.opts;
  name_program(facts);
  facts.hosts = r.hosts;
  facts.stats = last_run_stats();
  facts.spares = r.spares;
  facts.heat = r.heat;
  facts.sim = r.sim;
  facts.status = r.result.status;
  facts.message = r.result.message;
  return facts;
}

}  // namespace

void write_outputs(substrate& s, run_state& r) {
  const run_facts facts = facts_of(r);
  if (!r.what.opts.trace.empty()) s.add_events(r);
  if (r.outputs) r.outputs->write(facts);
}

detail::run_result run_on(substrate& s, const options& opts, detail::root_task& root, std::string problem) {
  run_state r;
  const struct ending {
    substrate& s;
    run_state& r;
    ~ending() {
      s.end(r);
      r.what.memory.destroy();
      r.what.global.destroy();
    }
  } at_end{s, r};

  begin(r, opts, root, std::move(problem));
  s.plan(r);
  if (!r.problem.empty()) throw std::invalid_argument(r.problem);  // ranks have agreed on it
  prepare(s, r);
  s.memory(r);
  if (!s.notice.empty()) std::fputs(s.notice.c_str(), stderr);
  r.start_ns = base::now_ns();
  s.start(r);
  s.supervise(r);
  if (r.speaks) last_tick();
  s.collect(r);
  r.result.refused = heap::why_refused();
#ifndef NDEBUG
  for (std::uint32_t h = 0; h < r.what.job.host_count; ++h)  // those whose memory is in this process
    if (const transport::shm::near_range& host = r.what.job.hosts[h];
        !r.failed() && r.what.memory.reaches(transport::worker_no{host.first}))
      sched::worker::check_host(r.what.memory, host, r.what.job.host_count == 1);
#endif
  write_outputs(s, r);
  return std::move(r.result);
}

void run_state::plan_one_host(std::uint32_t workers) {
  own = {0, workers};
  what.job.workers = workers;
  what.job.hosts = &own;
  hosts = {{host_name(), 0, workers}};
}

void run_state::fail(int status, std::string message) {
  result.status = status;
  result.message = std::move(message);
}

void substrate::collect(run_state& r) {
  keep_stats(own_stats(r));
  if (!r.failed()) take_root_result(r.what.memory, root_words(r.what.memory), r.result);
}

void substrate::add_events(run_state& r) { r.outputs->add(*r.what.rings, r.own); }

}  // namespace godwit::runtime
