// run on the substrate mpi: every rank forks its own workers and carries their messages as their companion.
//
// Collective: all ranks call run with the same root. Ranks of one host share one memory file, so that their
// workers see each other as forked workers do; between hosts the companions stand in
// (transport/mpi/companion.hpp). All ranks get the same result. Any rank that finds that the run cannot go on
// tells all others; a rank that is killed is the launcher's business.
// Documents: docs/cluster.md, docs/protocols/far.md, docs/decisions/0007-companions.md. Tests: tests/mpi/.
#include <godwit/runtime.hpp>

#include <algorithm>
#include <bit>
#include <csignal>
#include <cstdio>
#include <cstring>
#include <optional>
#include <stdexcept>
#include <string>
#include <sys/prctl.h>
#include <utility>
#include <vector>

#include "base/check.hpp"
#include "base/options.hpp"
#include "base/clock.hpp"
#include "base/world.hpp"
#include "context/context.hpp"
#include "runtime/libraries.hpp"
#include "runtime/mpi_session.hpp"
#include "runtime/placement.hpp"
#include "runtime/run_common.hpp"
#include "runtime/services.hpp"
#include "runtime/short_turns.hpp"
#include "runtime/trace_gather.hpp"
#include "transport/mpi/companion.hpp"

namespace godwit::runtime {

namespace {

using transport::index;
using transport::worker_no;
using transport::mpi::companion;
using transport::mpi::way;
using transport::shm::near_range;

// What companions do between messages was chosen by measuring steals between hosts (scripts/reproduce --only
// U13) where a companion and a computing worker share a CPU: spinning there uses up the right to be let in
// again, so the next message waits for milliseconds; short sleeps keep it.
constexpr std::uint32_t shortest_sleep_us = 5;    // in practice 30
constexpr std::uint32_t longest_sleep_us = 1000;  // between hosts: what a first request may wait
constexpr std::uint32_t longest_sleep_on_one_host_us = 20'000;  // only failures of others come by message
constexpr std::uint64_t look_every_ns = 500'000;  // at children and signals, while messages keep coming
constexpr std::uint64_t spin_after_request_ns = 5'000;
constexpr std::uint64_t eager_ns = 500'000;  // after an answer that brings another request: only short sleeps
constexpr std::uint64_t spin_while_waiting_ns = 40'000;
constexpr std::uint64_t patience_after_failure_ns = 3'000'000'000;
constexpr std::uint64_t patience_for_sends_ns = 200'000'000;

/// One run of this rank.
class rank_run {
 public:
  /// @p outputs: what the first rank writes; null in the others.
  rank_run(mpi_session& s, const options& opts, detail::root_task& root, run_outputs* outputs)
      : session_(s), opts_(opts), place_(s.ranks(), s.rank(), opts), outputs_(outputs) {
    begin_launch(what_, opts_, root);
  }
  ~rank_run() {
    companion_.reset();  // its receives point into the memory
    if (window_made_) session_.mpi().win_free(&window_);
    what_.memory.destroy();
    what_.global.destroy();
  }

  detail::run_result operator()() {
    what_.seed = shared_number(what_.seed);
    what_.canary = shared_number(base::now_ns() * 0x9E3779B97F4A7C15ull) & ~std::uint64_t{0xff};
    if (session_.rank() == 0 && opts_.seed == 0 && (opts_.delay_us != 0 || opts_.force_steal == "random"))
      std::fprintf(stderr, "godwit: seed %llu\n", static_cast<unsigned long long>(what_.seed));
    share_memory();
    share_window();
    choose_way();
    make_rings();
    const std::uint64_t start_ns = base::now_ns();
    interrupt_guard stop;
    {
      family workers;
      companion_setup(workers);
      fork_workers(workers);
      try {
        if (!problem_at_start_.empty()) fail(base::status_failed, problem_at_start_);
        supervise(workers, stop);
        end_together(stop);
      } catch (const std::runtime_error& e) {  // MPI itself failed: the others cannot be told
        workers.kill_all();
        std::fprintf(stderr, "%s%s\n", who().c_str(), e.what());
        std::fflush(nullptr);
        session_.mpi().abort(base::status_failed);
      }
    }
    last_tick_on_first_rank();
    collect();
    write_outputs(start_ns);
    return std::move(result_);
  }

 private:
  std::uint64_t shared_number(std::uint64_t mine) const {
    session_.check(session_.mpi().bcast(&mine, sizeof mine, 0), "broadcast");
    return mine;
  }
  int leader() const { return place_.ranks_of[place_.my_host].front(); }
  bool is_leader() const { return place_.has_workers() && leader() == session_.rank(); }
  const near_range& mine() const { return place_.of_rank[static_cast<std::size_t>(session_.rank())]; }

  /// The first rank of each host makes the file, the others open it; all map it at one base.
  void share_memory() {
    const auto l = plan_segment(opts_, place_.workers);
    struct {
      char path[64];
      std::uint32_t free_bases;
    } info{{}, ~0u};
    std::string problem;
    const near_range near = place_.has_workers() ? place_.hosts[place_.my_host] : near_range{};
    try {
      if (is_leader()) {
        what_.memory.make_file(near, l);
        std::strncpy(info.path, what_.memory.file_path().c_str(), sizeof info.path - 1);
      }
      if (place_.has_workers())
        info.free_bases =
            transport::shm::segment::free_bases(transport::shm::segment::total_bytes(near.count, l));
    } catch (const std::runtime_error& e) {
      problem = e.what();
    }
    session_.agree(problem);
    std::vector<decltype(info)> all(static_cast<std::size_t>(session_.size()));
    session_.check(session_.mpi().allgather(&info, all.data(), sizeof info), "gather");
    std::uint32_t free = ~0u;
    for (const auto& i : all) free &= i.free_bases;
    if (free == 0)
      throw std::runtime_error(
          "godwit: there is no range of addresses that is free in all ranks: lower --godwit-stack-bytes or "
          "--godwit-heap-bytes, or raise the limit on address space (ulimit -v)");
    try {
      if (place_.has_workers()) {
        if (!is_leader()) what_.memory.open_file(near, l, all[static_cast<std::size_t>(leader())].path);
        what_.memory.map(static_cast<unsigned>(std::countr_zero(free)));
        for (std::uint32_t i = 0; i < mine().count; ++i)
          prepare_words(what_.memory, worker_no{mine().first + i});
      }
    } catch (const std::runtime_error& e) {
      problem = e.what();
    }
    session_.agree(problem);  // from here on everybody may look at everybody's words
  }

  /// The same for global memory.
  void share_window() {
    struct {
      char path[64];
      std::uint32_t free_bases;
    } info{{}, ~0u};
    std::string problem;
    // All ranks use what the poorest has.
    std::uint64_t bytes = place_.has_workers() ? choose_global_bytes(opts_) : opts_.global_bytes;
    std::vector<std::uint64_t> can(static_cast<std::size_t>(session_.size()));
    session_.check(session_.mpi().allgather(&bytes, can.data(), sizeof bytes), "gather");
    bytes = *std::min_element(can.begin(), can.end());
    try {
      what_.global_space = plan_global(opts_, bytes, place_.workers);
      if (is_leader()) {
        what_.global.make_file(bytes);
        std::strncpy(info.path, what_.global.file_path().c_str(), sizeof info.path - 1);
      }
      if (place_.has_workers()) info.free_bases = transport::shm::window::free_bases(bytes);
    } catch (const std::exception& e) {
      problem = e.what();
    }
    session_.agree(problem);
    std::vector<decltype(info)> all(static_cast<std::size_t>(session_.size()));
    session_.check(session_.mpi().allgather(&info, all.data(), sizeof info), "gather");
    std::uint32_t free = ~0u;
    for (const auto& i : all) free &= i.free_bases;
    if (free == 0)
      throw std::runtime_error(
          "godwit: global memory: there is no range of addresses that is free in all ranks: lower "
          "--godwit-global-bytes "
          "(GODWIT_GLOBAL_BYTES), or raise the limit on address space (ulimit -v)");
    try {
      if (place_.has_workers()) {
        if (!is_leader()) what_.global.open_file(bytes, all[static_cast<std::size_t>(leader())].path);
        what_.global.map(static_cast<unsigned>(std::countr_zero(free)));
        what_.memory.set_window(what_.global.base(), what_.global.bytes());
        if (is_leader()) prepare_global(what_.global, opts_);
      }
    } catch (const std::runtime_error& e) {
      problem = e.what();
    }
    session_.agree(problem);
  }

  void make_rings() {
    std::string problem;
    try {
      rings_.emplace(opts_, mine());
    } catch (const std::runtime_error& e) {
      problem = e.what();
    }
    session_.agree(problem);
    what_.rings = &*rings_;
    if (!opts_.trace.empty()) clocks_before_ = compare_clocks(session_);
  }

  void write_outputs(std::uint64_t start_ns) {
    std::vector<host_facts> hosts;
    for (std::size_t h = 0; h < place_.hosts.size(); ++h) {
      const auto& first = session_.ranks()[static_cast<std::size_t>(place_.ranks_of[h].front())];
      hosts.push_back({first.host_name, place_.hosts[h].first, place_.hosts[h].count});
    }
    const run_facts facts = facts_of(opts_, std::move(hosts), start_ns, result_);
    if (outputs_ != nullptr) outputs_->begin(place_.workers);
    if (!opts_.trace.empty())
      gather_events(session_, outputs_, *rings_, place_.of_rank, clocks_before_, compare_clocks(session_));
    if (outputs_ != nullptr) outputs_->write(facts);
  }

  void choose_way() {
    what_.job.workers = place_.workers;
    what_.job.hosts = place_.hosts.data();
    check_policy(opts_, place_.hosts.size());
    what_.job.host_count = static_cast<std::uint32_t>(place_.hosts.size());
    what_.job.my_host = place_.has_workers() ? place_.my_host : 0;  // without workers nobody asks
    if (place_.hosts.size() < 2) return;
    const bool force_rma = opts_.way == "rma";
    const int partner = place_.ranks_of[1].front();
    const auto& q = session_.link(partner, opts_.way == "auto" || force_rma);
    way_ = opts_.way == "server"   ? way::server
           : opts_.way == "assist" ? way::assist
           : opts_.way == "am"     ? way::am
           : force_rma             ? way::rma
                                   : transport::mpi::choose_way(q);
    if (force_rma && !q.rma_works)
      throw std::runtime_error("godwit: way=rma: this MPI has no usable RMA between the hosts (" +
                               q.rma_error +
                               "): leave the choice to the library (way=auto), or see docs/cluster.md");
    if (way_ == way::rma) make_window(force_rma);
    what_.job.whole_host_calls = way_ == way::server || way_ == way::assist;
    what_.job.far_calls = way_ != way::rma && opts_.far_steal == "call";
    what_.job.serves_itself = way_ == way::am;
    announce(q);
  }

  void make_window(bool forced) {
    std::byte* base = nullptr;
    std::size_t bytes = 0;
    if (place_.has_workers()) {
      base = what_.memory.at(worker_no{mine().first}, what_.memory.common());
      bytes = what_.memory.where().span * mine().count;
    }
    const int code = session_.mpi().win_create(base, bytes, &window_);
    std::string problem;
    if (code != 0) {
      char text[256];
      session_.mpi().error_text(code, text, sizeof text);
      problem = "cannot make an RMA window of " + std::to_string(bytes >> 20) + " MiB: " + text +
                ": raise the limit on locked memory (ulimit -l), lower --godwit-stack-bytes and "
                "--godwit-heap-bytes, or "
                "use another way";
    }
    window_made_ = code == 0;
    try {
      session_.agree(problem);
    } catch (const std::runtime_error&) {
      window_made_ = false;  // freeing is collective too: those who have one keep it
      if (forced) throw;
      way_ = way::server;
    }
  }

  void announce(const transport::mpi::link_quality& q) {
    if (session_.announced) return;
    session_.announced = true;
    if (opts_.quiet || session_.rank() != 0) return;
    char rma[160];
    if (q.rma_works)
      std::snprintf(rma, sizeof rma,
                    "RMA %s while its target computes (fetch-and-add %.0f us, target computing %.0f us)",
                    q.rma_is_one_sided() ? "goes on" : "waits", q.atomic_us, q.atomic_busy_us);
    else
      std::snprintf(rma, sizeof rma, "RMA %s", q.rma_error.empty() ? "not tried" : "does not work");
    std::fprintf(stderr, "godwit: %u workers on %zu hosts, %s; round trip %.0f us; %s; way: %s%s\n",
                 place_.workers, place_.hosts.size(), session_.world().library, q.round_trip_us, rma,
                 name_of(way_), opts_.way == "auto" ? "" : " (as asked)");
  }

  /// Rank 0 comes last, and in it worker 0, which starts the root thread: all others are looking for work by
  /// then, and no rank has anything left to do that takes its worker's CPU.
  void fork_workers(family& workers) {
    end_threads_of_libraries();
    flush_output();
    std::string problem;
    if (session_.rank() != 0) problem = fork_own(workers);
    session_.agree(problem);
    if (session_.rank() == 0) problem = fork_own(workers);
    if (!problem.empty()) {
      workers.kill_all();
      problem_at_start_ = problem;
    }
  }
  std::string fork_own(family& workers) {
    for (std::uint32_t i = mine().count; i-- > 0;) {
      what_.job.bell_of = worker_no{way_ == way::server ? what_.memory.near().first : mine().first};
      if (!fork_worker(what_, worker_no{mine().first + i}, workers, result_))
        return std::exchange(result_, {}).message;
    }
    return {};
  }

  void companion_setup(const family& workers) {
    transport::mpi::companion_setup c;
    c.mpi = &session_.mpi();
    c.rank = session_.rank();
    c.size = session_.size();
    c.epoch = session_.next_epoch();
    c.how = way_;
    c.rma_atomics = opts_.rma_atomics;
    c.memory = &what_.memory;
    if (place_.has_workers()) {
      c.words = &const_cast<sched::segment_words*>(common_words(what_.memory))->far;
      services_.emplace(what_, workers);
      c.services = &*services_;
      if (place_.hosts.size() > 1) {
        if (way_ != way::server)
          c.served = mine();
        else if (is_leader())
          c.served = what_.memory.near();
      }
    }
    c.answers_for.resize(place_.workers);
    for (std::size_t h = 0; h < place_.hosts.size(); ++h)
      for (const int r : place_.ranks_of[h]) {
        const near_range& range = place_.of_rank[static_cast<std::size_t>(r)];
        for (std::uint32_t i = 0; i < range.count; ++i)
          c.answers_for[range.first + i] = way_ == way::server ? place_.ranks_of[h].front() : r;
      }
    for (const near_range& range : place_.of_rank) c.first_worker.push_back(range.first);
    c.rma_window = window_;
    companion_.emplace(std::move(c));
  }

  std::string who() const {
    return "godwit: rank " + std::to_string(session_.rank()) + " (" +
           session_.ranks()[static_cast<std::size_t>(session_.rank())].host_name + "): ";
  }

  void fail(int status, const std::string& message) {
    constexpr std::string_view prefix = "godwit: ";
    result_.status = status;
    result_.message = who() + (message.starts_with(prefix) ? message.substr(prefix.size()) : message);
    primary_ = true;
    companion_->tell_failure({status, result_.message});
  }

  /// Until all own workers have ended, or somebody failed.
  void supervise(family& workers, interrupt_guard& stop) {
    prctl(PR_SET_TIMERSLACK, 1000ul);  // sleep for as long as we say (the default adds 50 us)
    const short_turns turns;
    const bool alone = place_.hosts.size() < 2;
    const std::uint32_t longest = alone ? longest_sleep_on_one_host_us : longest_sleep_us;
    std::uint32_t pause = shortest_sleep_us;
    std::uint64_t looked = 0;
    std::uint64_t spin_until = 0;
    std::uint64_t eager_until = 0;
    std::uint64_t next_tick = base::now_ns();
    while (workers.alive() != 0 && result_.status == 0) {
      const bool any = companion_->turn();
      if (companion_->told().status != 0) {
        result_.status = companion_->told().status;
        result_.message = companion_->told().message;
        break;
      }
      const std::uint64_t now = base::now_ns();
      if (!any || now - looked > look_every_ns) {
        looked = now;
        look_at_children(workers, stop);
        if (session_.rank() == 0) tick(next_tick);
      }
      if (any) {
        pause = shortest_sleep_us;
        switch (companion_->take_mood()) {
          case companion::mood::quiet:
            break;
          case companion::mood::expects:
            eager_until = now + eager_ns;
            [[fallthrough]];
          case companion::mood::served:
            spin_until = std::max(spin_until, now + spin_after_request_ns);
        }
        if (companion_->waiting()) spin_until = std::max(spin_until, now + spin_while_waiting_ns);
        continue;
      }
      // Messages come in bursts. Not sched_yield: a computing neighbour would keep the CPU for milliseconds,
      // whereas who sleeps is let in at once when it wakes.
      const bool expecting = companion_->waiting() || companion_->sending();
      if (now < spin_until) {
        base::pause();
      } else {
        if (alone)
          workers.sleep(stop.fd(), static_cast<int>((pause + 999) / 1000));
        else
          companion_->sleep(pause);
        pause = std::min(pause * 2, expecting || now < eager_until ? shortest_sleep_us : longest);
      }
    }
    workers.kill_all();
    prctl(PR_SET_TIMERSLACK, 0ul);
  }

  void look_at_children(family& workers, interrupt_guard& stop) {
    if (const auto got = stop.take(); got.signal != 0) {
      fail(128 + got.signal, interrupted(got));
      return;
    }
    for (family::end e{}; workers.next_end(e);) {
      const verdict v = judge(e, what_.memory);
      if (v.status == 0) continue;
      fail(v.status, v.message);
      return;
    }
  }

  /// Keep serving the others until all have come here.
  void end_together(interrupt_guard& stop) {
    transport::mpi::operation barrier;
    session_.check(session_.mpi().barrier_begin(&barrier), "begin a barrier");
    std::uint64_t deadline = 0;
    for (bool done = false; !done || (companion_->sending() && result_.status == 0);) {
      const bool any = companion_->turn();
      if (!done)
        session_.check(session_.mpi().test(&barrier, &done, nullptr, nullptr, nullptr), "complete a barrier");
      if (result_.status == 0 && companion_->told().status != 0) {
        result_.status = companion_->told().status;
        result_.message = companion_->told().message;
      }
      if (result_.status == 0 && stop.take().signal != 0) fail(128 + SIGTERM, interrupted({SIGTERM, 0, 0}));
      if (result_.status != 0) {  // somebody may never come
        const std::uint64_t now = base::now_ns();
        if (deadline == 0) deadline = now + patience_after_failure_ns;
        if (now > deadline) {
          std::fprintf(stderr, "%s\n", result_.message.c_str());
          std::fflush(nullptr);
          session_.mpi().abort(result_.status);
        }
      }
      if (!any && !done) companion_->sleep(shortest_sleep_us);
    }
    // After a failure: what the last turn sent has not been looked at again. The others are in MPI from now
    // on, too.
    for (const std::uint64_t until = base::now_ns() + patience_for_sends_ns;
         companion_->sending() && base::now_ns() < until;)
      companion_->turn();
    if (companion_->sending()) session_.give_up();  // nobody takes it any more
  }

  void last_tick_on_first_rank() {
    if (session_.rank() == 0) last_tick();
  }

  /// All ranks: the same outcome, the root's value, everybody's counters.
  void collect() {
    const int size = session_.size();
    const auto& mpi = session_.mpi();
    struct {
      int status, primary;
    } outcome{result_.status, primary_ ? 1 : 0};
    std::vector<decltype(outcome)> outcomes(static_cast<std::size_t>(size));
    session_.check(mpi.allgather(&outcome, outcomes.data(), sizeof outcome), "gather");
    for (int r = 0; r < size; ++r)
      if (outcomes[static_cast<std::size_t>(r)].primary != 0) {
        result_.status = outcomes[static_cast<std::size_t>(r)].status;
        result_.message = session_.share_text(result_.message, r);
        break;
      }
    collect_stats();
    if (result_.status != 0) return;
#ifndef NDEBUG
    sched::worker::check_host(what_.memory, what_.job.host_count == 1);
#endif
    struct {
      std::uint64_t object, bytes;
      std::uint32_t threw, unused;
    } root{};
    std::string value;
    if (session_.rank() == 0) {
      const auto& r = what_.memory.at<sched::record>(sched::root_record(what_.memory.where()))->result;
      root = {r.object, r.bytes, r.kind == detail::outcome::error ? 1u : 0u, 0};
      if (r.object == 0) value.assign(reinterpret_cast<const char*>(r.small), r.bytes);
    }
    session_.check(mpi.bcast(&root, sizeof root, 0), "broadcast");
    int owner = 0;
    if (root.object != 0) {
      const auto w = index(transport::ref_worker(root.object));
      for (int r = 0; r < size; ++r) {
        const near_range& range = place_.of_rank[static_cast<std::size_t>(r)];
        if (range.holds(worker_no{w})) owner = r;
      }
      if (owner == session_.rank())
        value.assign(reinterpret_cast<const char*>(what_.memory.at<sched::object>(root.object) + 1),
                     root.bytes);
    }
    value = session_.share_text(value, owner);
    result_.threw = root.threw != 0;
    const auto* bytes = reinterpret_cast<const std::byte*>(value.data());
    result_.bytes.assign(bytes, bytes + value.size());
  }

  void collect_stats() {
    std::uint32_t most = 0;
    for (const near_range& r : place_.of_rank) most = std::max(most, r.count);
    std::vector<worker_stats> own(most);
    std::vector<worker_stats> all(std::size_t{most} * place_.of_rank.size());
    for (std::uint32_t i = 0; i < mine().count; ++i) {
      own[i] = what_.memory.at(worker_no{mine().first + i}, common_words(what_.memory))->worker.stats;
      rings_->count(worker_no{mine().first + i}, own[i]);
    }
    session_.check(session_.mpi().allgather(own.data(), all.data(), most * sizeof(worker_stats)), "gather");
    std::vector<worker_stats> by_worker(place_.workers);
    for (std::size_t r = 0; r < place_.of_rank.size(); ++r)
      for (std::uint32_t i = 0; i < place_.of_rank[r].count; ++i)
        by_worker[place_.of_rank[r].first + i] = all[r * most + i];
    keep_stats(std::move(by_worker));
  }

  mpi_session& session_;
  const options opts_;
  const placement place_;
  launch what_;
  way way_ = way::server;
  transport::mpi::window window_{};
  bool window_made_ = false;
  bool primary_ = false;
  std::string problem_at_start_;
  std::optional<services> services_;
  run_outputs* outputs_;
  std::optional<trace_rings> rings_;
  std::vector<trace::clock_offset> clocks_before_;
  std::optional<companion> companion_;
  detail::run_result result_;
};

}  // namespace

detail::run_result run_mpi(const options& opts, std::string problem, detail::root_task& root) {
  mpi_session& session = mpi_session::get(opts);
  session.meet(false,
               *reinterpret_cast<const std::uintptr_t*>(&root));  // its type, by the address of its table
  if (problem.empty() && session.ranks().size() > 1 && &godwit_ctx_one_image != nullptr)
    problem =
        "godwit: this program was built with GODWIT_CONTEXT=setjmp, and what that saves can be resumed only "
        "in processes forked "
        "from each other, not by other ranks: build it with asm or ucontext, or start one rank";
  std::optional<run_outputs> outputs;
  try {
    if (session.rank() == 0 && problem.empty()) outputs.emplace(opts);
  } catch (const std::invalid_argument& e) {
    problem = e.what();
  }
  try {
    session.agree(problem);
  } catch (const std::runtime_error& e) {
    throw std::invalid_argument(e.what());
  }
  const options agreed = base::read_options(session.share_text(base::write_options(opts), 0));
  return rank_run(session, agreed, root, outputs ? &*outputs : nullptr)();
}

}  // namespace godwit::runtime
