// run on the substrate mpi: every rank forks its own workers and carries their messages as their companion.
//
// Collective: all ranks call run with the same root. Ranks of one host share one memory file, so that their
// workers see each other as forked workers do; between hosts the companions stand in
// (transport/mpi/companion.hpp). All ranks get the same result. Any rank that finds that the run cannot go on
// tells all others; a rank that is killed is the launcher's business.
// Documents: docs/cluster.md, docs/protocols/far.md, docs/decisions/0007-companions.md. Tests: tests/mpi/.
#include <algorithm>
#include <array>
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
#include "base/clock.hpp"
#include "base/cpus.hpp"
#include "base/options.hpp"
#include "base/world.hpp"
#include "context/context.hpp"
#include "heap/heap.hpp"
#include "runtime/companion_rest.hpp"
#include "runtime/libraries.hpp"
#include "runtime/mpi_memory.hpp"
#include "runtime/mpi_session.hpp"
#include "runtime/network.hpp"
#include "runtime/packed_stats.hpp"
#include "runtime/placement.hpp"
#include "runtime/rank_calls.hpp"
#include "runtime/run_common.hpp"
#include "runtime/services.hpp"
#include "runtime/trace_gather.hpp"
#include "transport/mpi/companion.hpp"

namespace godwit::runtime {

namespace {

using transport::worker_no;
using transport::mpi::companion;
using transport::mpi::link_quality;
using transport::mpi::reduction;
using transport::mpi::way;
using transport::shm::near_range;

constexpr std::uint64_t look_every_ns = 500'000;  // at children and signals, while messages keep coming
constexpr std::uint64_t patience_after_failure_ns = 3'000'000'000;
constexpr std::uint64_t patience_for_sends_ns = 200'000'000;

/// One run of this rank.
class ranks final : public substrate {
 public:
  explicit ranks(const options& opts) : session_(mpi_session::get(opts)) {}

  void plan(run_state& r) override {
    session_.meet(false,
                  *reinterpret_cast<const std::uintptr_t*>(r.what.root));  // its type: address of its table
    if (r.problem.empty() && session_.size() > 1 && &godwit_ctx_one_image != nullptr)
      r.problem =
          "godwit: this program was built with GODWIT_CONTEXT=setjmp, and what that saves can be resumed "
          "only in processes forked from each other, not by other ranks: build it with asm or ucontext, or "
          "start one rank";
    session_.agree(r.problem, true);
    launch& what = r.what;
    what.opts = base::read_options(session_.share_bytes(base::write_options(what.opts), 0));

    session_.agree(network::problem_of(what.opts), true);

    place_.emplace(session_.machines(), session_.rank(), what.opts);
    r.speaks = session_.rank() == 0;
    r.own = place_->of_rank[static_cast<std::size_t>(session_.rank())];
    what.job.workers = place_->workers;
    what.job.hosts = place_->hosts.data();
    what.job.host_count = static_cast<std::uint32_t>(place_->hosts.size());
    what.job.ranks = place_->of_rank.data();
    what.job.rank_count = static_cast<std::uint32_t>(place_->of_rank.size());
    if (constexpr int multiple = 3; session_.world().thread_level < multiple)
      what.job.no_rank_calls =
          "MPI was started with less than MPI_THREAD_MULTIPLE: call MPI_Init_thread with that level before "
          "run";
    what.job.my_host = has_workers() ? place_->my_host : 0;  // without workers nobody asks
    for (std::size_t h = 0; h < place_->hosts.size(); ++h)
      r.hosts.push_back(
          {session_.host_name(place_->ranks_of[h].front()), place_->hosts[h].first, place_->hosts[h].count});
  }

  void together(const std::function<void()>& step) override { session_.together(step); }

  void memory(run_state& r) override {
    launch& what = r.what;
    what.seed = session_.share(what.seed);
    what.canary = session_.share(base::now_ns() * 0x9E3779B97F4A7C15ull) & ~std::uint64_t{0xff};
    const mpi_memory all(session_, *place_);
    all.share_segments(r);
    all.share_global(r);
    all.share_heap(r);
    if (what.opts.check_heap) session_.tell_unequal_mains();
    if (!one_host()) choose_way(what, r.own);
    if (!what.opts.trace.empty()) clocks_before_ = clocks(r);
  }

  void choose_way(launch& what, near_range own) {
    choice::way asked = what.opts.way;
    if (what.opts.directory != choice::directory::software ||  // network.hpp
        (asked == choice::way::automatic && what.opts.companions != 1))
      asked = choice::way::server;
    const bool force_rma = asked == choice::way::rma;
    const link_quality& q =
        session_.link(place_->ranks_of[1].front(), asked == choice::way::automatic || force_rma);
    way_ = asked == choice::way::server   ? way::server
           : asked == choice::way::assist ? way::assist
           : asked == choice::way::am     ? way::am
           : force_rma                    ? way::rma
                                          : transport::mpi::choose_way(q);
    if (force_rma && !q.rma_works)
      throw std::runtime_error("godwit: way=rma: this MPI has no usable RMA between the hosts (" +
                               q.rma_error +
                               "): leave the choice to the library (way=auto), or see docs/cluster.md");
    if (way_ == way::rma) make_window(what, own, force_rma);
    companions_ = companions_of_host(way_, what.opts);
    go_by(way_, what);
    announce(what.opts, q);
  }

  void make_window(launch& what, near_range own, bool forced) {
    std::byte* base = nullptr;
    std::size_t bytes = 0;
    if (has_workers()) {
      base = what.memory.at(worker_no{own.first}, what.memory.common());
      bytes = what.memory.where().span * own.count;
    }
    const int code = session_.mpi().win_create(base, bytes, &window_);
    std::string problem;
    if (code != 0) {
      char text[256];
      session_.mpi().error_text(code, text, sizeof text);
      problem = "cannot make an RMA window of " + std::to_string(bytes >> 20) + " MiB: " + text +
                ": raise the limit on locked memory (ulimit -l), lower --godwit-stack-bytes and "
                "--godwit-heap-bytes, or use another way";
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

  void announce(const options& opts, const link_quality& q) {
    if (session_.announced) return;
    session_.announced = true;
    if (opts.quiet || session_.rank() != 0) return;
    char rma[160];
    if (q.rma_works)
      std::snprintf(rma, sizeof rma,
                    "RMA %s while its target computes (fetch-and-add %.0f us, target computing %.0f us)",
                    q.rma_is_one_sided() ? "goes on" : "waits", q.atomic_us, q.atomic_busy_us);
    else
      std::snprintf(rma, sizeof rma, "RMA %s", q.rma_error.empty() ? "not tried" : "does not work");
    const std::string several =
        opts.companions == 1 ? "" : ", " + std::to_string(opts.companions) + " companions of a host";
    std::fprintf(stderr, "godwit: %u workers on %zu hosts, %s; round trip %.0f us; %s; way: %s%s%s\n",
                 place_->workers, place_->hosts.size(), session_.world().library, q.round_trip_us, rma,
                 name_of(way_), several.c_str(), opts.way == choice::way::automatic ? "" : " (as asked)");
  }

  /// Rank 0 comes last, and in it worker 0, which starts the root thread: all others are looking for work by
  /// then, and no rank has anything left to do that takes its worker's CPU.
  void start(run_state& r) override {
    stop_.emplace();
    workers_.emplace();
    if (!one_host() && r.what.opts.directory != choice::directory::software) make_network(r.what);
    make_companion(r);
    end_threads_of_libraries();
    if (has_workers()) r.what.job.bell_of = worker_no{place_->of_rank[own_carrier()].first};
    std::string problem;
    if (session_.rank() != 0) problem = fork_workers(r.what, r.own, *workers_);
    session_.agree(problem);
    if (session_.rank() == 0) problem = fork_workers(r.what, r.own, *workers_);
    if (!problem.empty()) r.fail(base::status_failed, std::move(problem));
  }

  void make_network(const launch& what) {
    const transport::word* const life = is_leader() ? life_of(what.global.base()) : nullptr;
    network_.start(session_, *place_, what.opts, what.canary >> 16, life);
  }

  void make_companion(run_state& r) {
    transport::mpi::companion_setup c;
    c.mpi = &session_.mpi();
    c.rank = session_.rank();
    c.size = session_.size();
    c.epoch = session_.next_epoch();
    c.how = way_;
    c.largest_tag = session_.world().largest_tag;
    c.rma_atomics = r.what.opts.rma_atomics;
    c.memory = &r.what.memory;
    if (has_workers()) {
      c.words = &common_words(r.what.memory)->far;
      c.services = &services_.emplace(r.what, r.what.memory, r.what.global.base(), &*workers_);
      if (!one_host()) c.served = workers_carried_for();
    }
    if (c.served.count != 0) list_partners();
    c.answers_for = answers_for_;
    c.first_worker = first_worker_;
    c.window = window_;
    c.by_block = network_.channel();
    if (c.by_block != nullptr) services_->enter_calls_of(*c.by_block);
    companion_.emplace(std::move(c));
  }

  /// The rank whose companion carries requests for the @p i-th of these.
  int carrier(const std::vector<int>& of_host, std::size_t i) const {
    return of_host[carrier_of(static_cast<std::uint32_t>(i), static_cast<std::uint32_t>(of_host.size()),
                              companions_)];
  }
  std::size_t own_carrier() const {
    const std::vector<int>& of_host = place_->ranks_of[place_->my_host];
    const auto own = std::ranges::find(of_host, session_.rank());
    return static_cast<std::size_t>(carrier(of_host, static_cast<std::size_t>(own - of_host.begin())));
  }
  /// Of this host, by this rank's companion.
  near_range workers_carried_for() const {
    const std::vector<int>& of_host = place_->ranks_of[place_->my_host];
    near_range all{place_->of_rank[static_cast<std::size_t>(session_.rank())].first, 0};
    for (std::size_t i = 0; i < of_host.size(); ++i)
      if (carrier(of_host, i) == session_.rank())
        all.count += place_->of_rank[static_cast<std::size_t>(of_host[i])].count;
    return all;
  }

  /// Whom companions that serve workers ask; the others, most ranks by way server, ask nobody.
  void list_partners() {
    answers_for_.resize(place_->workers);
    for (const std::vector<int>& of_host : place_->ranks_of)
      for (std::size_t i = 0; i < of_host.size(); ++i) {
        const near_range& range = place_->of_rank[static_cast<std::size_t>(of_host[i])];
        std::fill_n(answers_for_.begin() + range.first, range.count, carrier(of_host, i));
      }
    if (way_ == way::rma)
      for (const near_range& range : place_->of_rank) first_worker_.push_back(range.first);
  }

  void supervise(run_state& r) override {
    try {
      if (r.failed()) fail(r, r.result.status, r.result.message);  // in start: the others do not know yet
      carry_messages(r);
      workers_->kill_all();
      end_together(r);
    } catch (const std::runtime_error& e) {  // MPI itself failed: the others cannot be told
      workers_->kill_all();
      std::fprintf(stderr, "godwit: %s: %s\n", session_.who(session_.rank()).c_str(), e.what());
      std::fflush(nullptr);
      session_.mpi().abort(base::status_failed);
    }
  }

  /// The run has failed, and this rank is the one that knows.
  void fail(run_state& r, int status, const std::string& message) {
    r.fail(status, session_.said_by(session_.rank(), message));
    primary_ = true;
    companion_->tell_failure({status, r.result.message});
  }

  void heed_others(run_state& r) {
    if (const auto& told = companion_->told(); !r.failed() && told.status != 0)
      r.fail(told.status, told.message);
  }

  /// Until all own workers have ended, or somebody failed.
  void carry_messages(run_state& r) {
    prctl(PR_SET_TIMERSLACK, 1000ul);  // sleep for as long as we say (the default adds 50 us)
    const short_turns turns;
    std::optional<transport::mpi::arrivals> messages;
    if (!one_host()) messages.emplace();
    companion_rest rest(one_host());
    rank_calls calls(r.what.memory, worker_no{r.own.first});
    std::uint64_t looked = 0;
    std::uint64_t next_tick = base::now_ns();
    while (workers_->alive() != 0 && !r.failed()) {
      const bool any = companion_->turn();
      heed_others(r);
      if (r.failed()) break;
      const std::uint64_t now = base::now_ns();
      if (!any || now - looked > look_every_ns) {
        looked = now;
        if (const verdict v = look_at(*workers_, *stop_, r.what.memory); v.status != 0)
          fail(r, v.status, v.message);
        if (const std::string problem = network_.problem(); !problem.empty())
          fail(r, base::status_failed, problem);
        calls.look();
        if (r.speaks) tick(next_tick);
      }
      if (any) {
        rest.after_work(companion_->take_mood(), companion_->waiting(), now);
        continue;
      }
      const std::uint32_t pause_us = rest.next_us(companion_->waiting() || companion_->sending(), now);
      if (pause_us == 0)
        base::pause();
      else if (one_host())
        workers_->sleep(stop_->fd(), static_cast<int>((pause_us + 999) / 1000));
      else if (companion_->sleep(pause_us, &*messages))
        rest.woken(base::now_ns());
    }
    prctl(PR_SET_TIMERSLACK, 0ul);
  }

  /// Keep serving the others until all have come here.
  void end_together(run_state& r) {
    transport::mpi::operation barrier;
    session_.check(session_.mpi().barrier_begin(&barrier), "begin a barrier");
    std::uint64_t deadline = 0;
    for (bool done = false; !done || (companion_->sending() && !r.failed());) {
      const bool any = companion_->turn();
      if (!done)
        session_.check(session_.mpi().test(&barrier, &done, nullptr, nullptr, nullptr), "complete a barrier");
      heed_others(r);
      if (const auto got = stop_->take(); got.signal != 0 && !r.failed())
        fail(r, 128 + got.signal, interrupted(got));
      if (r.failed()) {  // somebody may never come
        const std::uint64_t now = base::now_ns();
        if (deadline == 0) deadline = now + patience_after_failure_ns;
        if (now > deadline) {
          std::fprintf(stderr, "%s\n", r.result.message.c_str());
          std::fflush(nullptr);
          session_.mpi().abort(r.result.status);
        }
      }
      if (!any && !done) companion_->sleep(companion_rest::shortest_us);
    }
    // After a failure: what the last turn sent has not been looked at again. The others are in MPI from now
    // on, too.
    for (const std::uint64_t until = base::now_ns() + patience_for_sends_ns;
         companion_->sending() && base::now_ns() < until;)
      companion_->turn();
    if (companion_->sending()) session_.give_up();  // nobody takes it any more
  }

  void collect(run_state& r) override {
    agree_on_outcome(r);
    gather_stats(r);
    if (!one_host() && tells_heat(r.what.opts)) gather_heat(r);
    if (!r.what.opts.trace.empty() || !r.what.opts.stats_json.empty()) gather_cpus(r);
    if (!r.failed()) share_root_result(r);
  }

  /// All ranks tell what the first rank says that found the failure itself.
  void agree_on_outcome(run_state& r) {
    const auto [first] = session_.first_where<1>({primary_ && r.result.status != 0});
    if (first == session_.size()) return;
    const int status = session_.share(r.result.status, first);
    r.fail(status, session_.share_bytes(r.result.message, first));
    if (interrupt_guard::is_status_of_signal(status)) stop_->heard();
  }

  /// The first rank gets everybody's, the others what all have together.
  void gather_stats(const run_state& r) {
    const std::vector<worker_stats> own = own_stats(r);
    const worker_stats total = sum_in_ranks(total_of(own));
    std::vector<std::byte> packed = pack(own);
    const std::size_t most = session_.reduce(packed.size(), reduction::most);
    packed.resize(most);
    const std::size_t ranks = session_.rank() == 0 ? place_->of_rank.size() : 0;
    std::vector<std::byte> all(most * ranks);
    session_.check(session_.mpi().gather(packed.data(), all.data(), most, 0), "gather");
    if (session_.rank() != 0) return keep_stats({total});
    std::vector<worker_stats> by_worker(place_->workers);
    for (std::size_t rank = 0; rank < ranks; ++rank) {
      const near_range& range = place_->of_rank[rank];
      unpack(std::span(all).subspan(rank * most, most),
             std::span(by_worker).subspan(range.first, range.count));
    }
    keep_stats(std::move(by_worker));
  }

  worker_stats sum_in_ranks(const worker_stats& mine) const {
    using words = std::array<std::uint64_t, sizeof(worker_stats) / sizeof(std::uint64_t)>;
    words sums = std::bit_cast<words>(mine), largest = sums;
    session_.reduce(sums, reduction::sum);
    session_.reduce(largest, reduction::most);
    auto total = std::bit_cast<worker_stats>(sums);
    for (const counter_field& c : counter_fields())
      if (c.maximum) total.*c.field = std::bit_cast<worker_stats>(largest).*c.field;
    std::ranges::fill(total.stayed_at, worker_stats::stay{});  // places are no numbers
    return total;
  }

  void gather_heat(run_state& r) {
    for (const gas::heat_sums& of_host :
         session_.gather(is_leader() ? heat_of(r.what.global.base()) : gas::heat_sums{}))
      r.heat.add(of_host);
  }

  /// Of all machines: a launcher may give each rank CPUs of its own.
  void gather_cpus(run_state& r) {
    const std::vector<base::cpu_share> of_rank = session_.gather(base::own_cpu_share());
    std::vector<std::vector<base::cpu_share>> of_machine;
    for (std::size_t rank = 0; rank < of_rank.size(); ++rank) {
      const std::size_t machine = session_.machines().of_rank[rank];
      of_machine.resize(std::max(of_machine.size(), machine + 1));
      of_machine[machine].push_back(of_rank[rank]);
    }
    for (const auto& shares : of_machine) r.cpus += base::usable_cpu_count(shares);
  }

  /// The root's record is worker 0's; what it refers to may be another worker's.
  void share_root_result(run_state& r) {
    const transport::shm::segment& memory = r.what.memory;
    const auto root = session_.share(session_.rank() == 0 ? root_words(memory) : sched::result_words{});
    int owner = 0;
    if (root.object != 0) {
      const auto holds = [&](const near_range& range) {
        return range.holds(transport::ref_worker(root.object));
      };
      owner = static_cast<int>(std::find_if(place_->of_rank.begin(), place_->of_rank.end(), holds) -
                               place_->of_rank.begin());
    }
    if (owner == session_.rank()) take_root_result(memory, root, r.result);
    r.result.threw = root.kind == detail::outcome::error;
    r.result.bytes = session_.share_bytes(r.result.bytes, owner);
  }

  void add_events(run_state& r) override {
    gather_events(session_, r.outputs ? &*r.outputs : nullptr, *r.what.rings, place_->of_rank, clocks_before_,
                  clocks(r));
  }

  void end(run_state& r) noexcept override {
    workers_.reset();
    if (r.what.heap != nullptr) heap::end();
    companion_.reset();  // its receives point into the memory
    if (std::exchange(window_made_, false)) session_.mpi().win_free(&window_);
  }

 private:
  std::vector<trace::clock_offset> clocks(const run_state& r) const {
    return compare_clocks(session_, r.what.rings->sample(), place_->of_rank);
  }
  bool has_workers() const { return place_->has_workers(); }
  bool one_host() const { return place_->hosts.size() < 2; }
  int leader() const { return place_->ranks_of[place_->my_host].front(); }
  bool is_leader() const { return has_workers() && leader() == session_.rank(); }

  mpi_session& session_;
  std::optional<placement> place_;
  way way_ = way::server;
  std::uint32_t companions_ = 1;  // of a host, that carry requests
  transport::mpi::rma_window window_{};
  bool window_made_ = false;
  bool primary_ = false;  // this rank found that the run has failed
  std::vector<trace::clock_offset> clocks_before_;
  std::optional<interrupt_guard> stop_;
  std::optional<family> workers_;
  std::vector<int> answers_for_;             // by worker; empty where no worker is served
  std::vector<std::uint32_t> first_worker_;  // by rank; way rma
  std::optional<services> services_;
  network network_;
  std::optional<companion> companion_;
};

}  // namespace

std::unique_ptr<substrate> make_mpi(const options& opts) { return std::make_unique<ranks>(opts); }

}  // namespace godwit::runtime
