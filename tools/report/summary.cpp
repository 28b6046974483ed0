// Figures and findings. See summary.hpp.
#include "summary.hpp"

#include <algorithm>
#include <cstdio>
#include <numeric>
#include <set>

namespace godwit::report {
namespace {

using level = finding::level;
using nlohmann::json;

constexpr std::size_t at(state s) { return static_cast<std::size_t>(s); }

std::string plural(double n, const char* one) { return format_count(n) + " " + one + (n == 1 ? "" : "s"); }

std::string decimals(double value) {
  char text[64];
  std::snprintf(text, sizeof text, "%.*f", value < 100 ? 2 : 0, value);
  return text;
}

/// A worker's counters say how long it lived and why it was idle; steals are part of that idleness.
void add_counters(run_figures& f, const json& worker) {
  std::array<double, states> ns{};
  const double life = number_of(worker, "life_ns");
  const double join = number_of(worker, "idle_join_ns"), transport = number_of(worker, "idle_transport_ns");
  const double no_work = number_of(worker, "idle_no_work_ns"), waits = number_of(worker, "idle_wait_ns");
  const double idle = std::min(join + transport + no_work + waits, life);
  ns[at(state::access)] = std::min(number_of(worker, "far_single_ns"), life - idle);
  ns[at(state::busy)] = life - idle - ns[at(state::access)];
  const double timed = number_of(worker, "steals_timed");  // some of them only
  const double near =
      number_of(worker, "steals") - std::min(number_of(worker, "steals"), number_of(worker, "far_steals"));
  const double steal_ns = number_of(worker, "steal_ns") * (timed > 0 ? std::max(1.0, near / timed) : 1.0);
  ns[at(state::getting)] = std::min(steal_ns + number_of(worker, "far_steal_ns"), no_work);
  ns[at(state::no_work)] = no_work - ns[at(state::getting)];
  ns[at(state::join)] = join;
  ns[at(state::event)] = waits;  // of which kind, counters do not say
  ns[at(state::transport)] = transport;
  f.by_worker.push_back(ns);
  f.sleep.push_back(0);
  f.wall = std::max(f.wall, life);
}

void add_span(run_figures& f, const json& stats) {
  const auto list = stats.find("workers");
  if (list == stats.end() || !list->is_array()) return;
  double work = 0, span = 0;
  for (const json& w : *list) {
    if (!w.is_object()) continue;
    work += number_of(w, "work_ns");
    span = std::max(span, number_of(w, "span_ns"));
  }
  if (span > 0 && work > 0) f.span = span, f.work = work;
}

constexpr state causes_of_loss[] = {state::getting, state::no_work,   state::join,    state::lock,
                                    state::event,   state::transport, state::outside, state::access};

/// How idle workers' time divides among causes; each cause explains itself.
struct explainer {
  const run_figures& f;
  const recording& r;
  const analysis* a;
  std::vector<finding> out;

  double lost_share(state s) const { return f.lost() > 0 ? f.total[at(s)] / f.lost() : 0; }
  /// Of the time, while all workers had none to run because of what is outside.
  double quiet() const { return f.known() > 0 ? f.total[at(state::outside)] / f.known() : 0; }
  double lost_in_all() const { return f.known() > 0 ? f.lost() / f.known() : 0; }
  void headline();
  void causes();
  void no_work(double share);
  void join(double share);
  void transport(double share);
  void getting(double share);
  void lock(double share);
  void event(double share);
  void outside(double share);
  void access(double share);
  std::string verdict() const;
  /// Of the time in which workers had threads, those waited for single values of other hosts.
  double access_share() const {
    const double all = f.busy() + f.total[at(state::access)];
    return all > 0 ? f.total[at(state::access)] / all : 0;
  }
  bool accesses_rule() const { return access_share() > 0.5; }
  /// Of the places of single accesses, the one that took longest.
  const waiting_place* worst_access() const {
    const waiting_place* worst = nullptr;
    if (a != nullptr)
      for (const waiting_place& p : a->places)
        if (p.kind == wait_for::access && (worst == nullptr || p.wait_ns > worst->wait_ns)) worst = &p;
    return worst;
  }
  void parallelism();
  void oversubscribed();
  void asleep();
  void messages();
  void global_memory();
  void moves();
  void stayed();
  void caveats();
};

/// Of the places where threads wait for that, the one that cost most.
const waiting_place* worst_place(const analysis* a, wait_for kind = wait_for::join) {
  const waiting_place* worst = nullptr;
  if (a != nullptr)
    for (const waiting_place& p : a->places)
      if (p.kind == kind && p.idle_ns > 0 && (worst == nullptr || p.idle_ns > worst->idle_ns)) worst = &p;
  return worst;
}

void explainer::headline() {
  finding h{level::good, "", "", ""};
  h.title = plural(f.workers, "worker") + (f.hosts > 1 ? " on " + plural(f.hosts, "host") : "") + ", ";
  if (f.by_worker.empty() || f.wall <= 0) {
    h.title += f.whole_run > 0 ? format_time(f.whole_run) : "no times";
    h.text = "The file does not say how the workers' time divides, so nothing can be concluded.";
    out.push_back(h);
    return;
  }
  h.title = verdict() + h.title;
  h.title += format_time(f.wall) + ": " + decimals(f.speed_up()) +
             " × faster than the work done by one (T1/TP), efficiency " +
             format_percent(f.speed_up() / std::max(1u, f.workers));
  h.text = "On average " + decimals(f.speed_up()) + " of " + plural(f.workers, "worker") +
           " had a thread to run. " + format_percent(lost_in_all()) + " of the workers' time (" +
           format_time(f.lost()) + " of " + format_time(f.known()) + ") was lost.";
  std::vector<std::pair<double, state>> shares;
  for (const state s : causes_of_loss) shares.emplace_back(lost_share(s), s);
  std::sort(shares.rbegin(), shares.rend(), [](const auto& x, const auto& y) { return x.first < y.first; });
  std::string list;
  for (const auto& [share, s] : shares) {
    if (share < 0.03) continue;
    list += (list.empty() ? " Of that: " : "; ") + format_percent(share) + " ";
    if (s == state::getting) list += "getting threads from other workers";
    if (s == state::no_work) list += "having nothing to run";
    if (s == state::transport) list += "waiting for other hosts";
    if (s == state::lock) list += "with nothing to run while threads waited for locks";
    if (s == state::event) list += "with nothing to run while threads waited for others";
    if (s == state::outside) list += "while no thread wanted a CPU";
    if (s == state::access) list += "waiting for single values of other hosts";
    if (s == state::join) {
      const waiting_place* p = worst_place(a);
      list += "waiting for outstanding joins";
      if (p != nullptr) list += " (most of it at " + format_place(*p) + ")";
    }
  }
  if (lost_in_all() >= 0.005 && !list.empty()) h.text += list + ".";
  if (lost_in_all() > 0.05) h.what = level::cause;
  out.push_back(h);
}

void explainer::no_work(double share) {
  finding x{level::cause, "Too little to run: " + format_percent(share) + " of the lost time", "", ""};
  x.text = "Workers' last threads had ended, and nobody had a continuation to steal.";
  if (a != nullptr && a->wall() > 0) {
    const double serial = static_cast<double>(a->ns_by_busy[0] + a->ns_by_busy[std::min(1u, a->workers)]) /
                          static_cast<double>(a->wall());
    if (f.workers > 1 && serial > 0.05) {
      x.text += " During " + format_percent(serial) +
                " of the time at most one worker was busy: the program was serial then.";
      x.advice =
          "Look at where 'busy workers over time' is low: what runs there? Start creating threads earlier, "
          "divide that part too, or let it overlap with something else.";
    }
  }
  if (x.advice.empty())
    x.advice =
        "Divide the work into more and smaller threads (a lower cut-off), so that everybody finds some until "
        "the end; a few large threads at the end leave the others idle.";
  out.push_back(x);
}

void explainer::join(double share) {
  finding x{level::cause, "Outstanding joins: " + format_percent(share) + " of the lost time", "", ""};
  x.text =
      "Workers' last threads waited at a join for a thread that another worker had not finished, and there "
      "was "
      "nothing else to run.";
  if (const waiting_place* p = worst_place(a); p != nullptr) {
    const double part =
        f.total[at(state::join)] > 0 ? static_cast<double>(p->idle_ns) / f.total[at(state::join)] : 0;
    x.text += " " + format_percent(part) + " of it follows joins at " + format_place(*p) +
              (p->function.empty() ? "" : " (" + p->function + ")") + ", " +
              plural(static_cast<double>(p->count), "outstanding join") + ".";
  }
  const double ready =
      a != nullptr && f.lost() > 0 ? static_cast<double>(a->ready_while_idle_ns) / f.lost() : 0;
  if (ready > 0.1) {
    x.text += " For " + format_percent(ready) +
              " of the lost time threads could have gone on while workers were idle.";
    x.advice = "Ready threads were not run: that is the joining strategy" +
               (f.policy.empty() ? std::string() : " (policy " + f.policy + ")") +
               ". GODWIT_POLICY=greedy runs them at once.";
  } else {
    x.advice =
        "The threads waited for were late: divide the children before those joins more evenly, spawn the "
        "largest first, or do something else between spawn and join.";
  }
  out.push_back(x);
}

void explainer::transport(double share) {
  finding x{level::cause, "Other hosts: " + format_percent(share) + " of the lost time", "", ""};
  x.text = "Workers waited for answers from other hosts.";
  if (a != nullptr && a->far_steal_ns.count > 0)
    x.text += " A steal from there took " + format_time(a->far_steal_ns.quantile(0.5)) + " (median of " +
              format_count(static_cast<double>(a->far_steal_ns.count)) + ").";
  x.advice =
      "Larger threads need fewer steals between hosts; GODWIT_VICTIMS=near asks the own host first; "
      "docs/cluster.md compares the ways between hosts (GODWIT_WAY).";
  out.push_back(x);
}

void explainer::getting(double share) {
  finding x{level::cause, "Overhead of stealing: " + format_percent(share) + " of the lost time", "", ""};
  x.text = "Workers were busy moving threads to themselves.";
  if (a != nullptr && a->steal_ns.count + a->far_steal_ns.count > 0) {
    const histogram& h = a->steal_ns.count >= a->far_steal_ns.count ? a->steal_ns : a->far_steal_ns;
    x.text += " " + plural(static_cast<double>(a->steal_ns.count + a->far_steal_ns.count), "steal") +
              ", median " + format_time(h.quantile(0.5)) + " and " + format_bytes(a->stolen_bytes.mean()) +
              " of stack each; what a worker then ran before it lost it lasted " +
              format_time(a->run_ns.quantile(0.5)) + " (median).";
  }
  x.advice =
      "Make threads larger (a higher cut-off), so that one steal brings more work; keep large arrays out of "
      "the "
      "frames of threads that are stolen.";
  out.push_back(x);
}

/// "a mutex at file.cpp:13"
std::string waited_for(const waiting_place& p) {
  return (p.what.empty() ? "the end of a thread" : "a " + p.what) + " at " + format_place(p);
}

void explainer::lock(double share) {
  finding x{level::cause, "Locks: " + format_percent(share) + " of the lost time", "", ""};
  x.text = "Workers had nothing to run while threads waited for locks.";
  if (const waiting_place* p = worst_place(a, wait_for::lock); p != nullptr) {
    x.text += " Most of it for " + waited_for(*p) + ": " + plural(static_cast<double>(p->count), "wait") +
              ", " +
              format_time(static_cast<double>(p->wait_ns) /
                          static_cast<double>(std::max<std::uint64_t>(p->count, 1))) +
              " each, up to " + plural(static_cast<double>(p->most_at_once), "thread") + " at once";
    if (p->woken_at != nothing)
      x.text +=
          "; it was mostly held by threads that had waited last at " + format_place(a->places[p->woken_at]);
    x.text += ".";
  }
  x.advice =
      "Hold the lock for less: compute before taking it. Or give each part of the data a lock of its own, or "
      "each thread a result of its own that is combined at the end (reduce).";
  out.push_back(x);
}

void explainer::event(double share) {
  finding x{level::cause, "Waiting for other threads: " + format_percent(share) + " of the lost time", "",
            ""};
  x.text = "Workers had nothing to run while threads waited for what others do.";
  if (const waiting_place* p = worst_place(a, wait_for::event); p != nullptr)
    x.text += " Most of it for " + waited_for(*p) + ": " + plural(static_cast<double>(p->count), "wait") +
              ", up to " + plural(static_cast<double>(p->most_at_once), "thread") + " at once.";
  x.advice =
      "Look at what lets them go on: do that earlier, let more threads pass at a time, or give the waiting "
      "threads something to do before they wait.";
  out.push_back(x);
}

void explainer::outside(double share) {
  finding x{level::cause, "No thread wanted a CPU for " + format_percent(share) + " of the lost time", "",
            ""};
  x.text = "All threads waited for something outside of the program.";
  if (const waiting_place* p = worst_place(a, wait_for::outside); p != nullptr)
    x.text += " Most of it: " + p->what + " at " + format_place(*p) + ", " +
              plural(static_cast<double>(p->count), "wait") + ", up to " +
              plural(static_cast<double>(p->most_at_once), "thread") + " at once.";
  x.advice =
      "More workers do not help. Wait for less, or let more threads wait at the same time: they cost no "
      "worker.";
  out.push_back(x);
}

/// "131,072 single gets of memory of worker 1's host"
std::string accesses_of(const waiting_place& p) {
  return format_count(static_cast<double>(p.count)) + " single " + p.what + "s of memory of worker " +
         std::to_string(p.owner) + "'s host";
}

void explainer::access(double share) {
  finding x{level::cause, "Single accesses to other hosts: " + format_percent(share) + " of the lost time",
            "", ""};
  x.text = "Threads waited for one value after the other.";
  if (const waiting_place* p = worst_access(); p != nullptr)
    x.text += " Most of it for " + accesses_of(*p) + " at " + format_place(*p) + ", " +
              format_time(static_cast<double>(p->wait_ns) / static_cast<double>(p->count)) + " each.";
  x.advice = "Check out the range (checkout) and read it there; gather and scatter combine what lies apart.";
  out.push_back(x);
}

/// The one thing that explains most of what is lost, if it is a wait; else empty.
std::string explainer::verdict() const {
  if (a == nullptr || lost_in_all() < 0.1) return {};
  const waiting_place* p = nullptr;
  if (accesses_rule() && (p = worst_access()) != nullptr)
    return accesses_of(*p) + " at " + format_place(*p) + " took " + format_percent(access_share()) +
           " of the threads' time: check out the range. ";
  if (lost_share(state::lock) > 0.5 && (p = worst_place(a, wait_for::lock)) != nullptr)
    return "Locks: up to " + plural(static_cast<double>(p->most_at_once), "thread") + " at once waited for " +
           waited_for(*p) + ". ";
  if (lost_share(state::event) > 0.5 && (p = worst_place(a, wait_for::event)) != nullptr)
    return "Waiting: up to " + plural(static_cast<double>(p->most_at_once), "thread") +
           " at once waited for " + waited_for(*p) + ". ";
  if (lost_share(state::outside) > 0.5 && (p = worst_place(a, wait_for::outside)) != nullptr)
    return "No thread wanted a CPU for " + format_percent(quiet()) + " of the time: " + p->what + " at " +
           format_place(*p) + ". ";
  return {};
}

void explainer::causes() {
  if (f.by_worker.empty() || lost_in_all() < 0.02) {
    if (!f.by_worker.empty())
      out.push_back(
          {level::good, "Nothing to gain from scheduling",
           "Workers had threads to run for " + format_percent(1 - lost_in_all()) + " of their time.",
           "If the program is slower than expected all the same, compare the work (T1) with a serial "
           "program: threads may be so small that creating them counts, or memory may be the limit."});
    return;
  }
  std::vector<std::pair<double, state>> shares;
  for (const state s : causes_of_loss) shares.emplace_back(lost_share(s), s);
  std::sort(shares.rbegin(), shares.rend(), [](const auto& x, const auto& y) { return x.first < y.first; });
  // What keeps the threads that there are comes before what there are too few of.
  if (accesses_rule())
    std::stable_partition(shares.begin(), shares.end(), [](auto& x) { return x.second == state::access; });
  bool first = true;
  for (const auto& [share, s] : shares) {
    if (!first && share < 0.15) break;
    first = false;
    if (s == state::getting) getting(share);
    if (s == state::no_work) no_work(share);
    if (s == state::join) join(share);
    if (s == state::transport) transport(share);
    if (s == state::lock) lock(share);
    if (s == state::event) event(share);
    if (s == state::outside) outside(share);
    if (s == state::access) access(share);
  }
}

void explainer::parallelism() {
  if (f.span <= 0 || f.workers < 2) return;
  const double most = f.t1() / f.span;
  finding x{level::hint, "Parallelism T1/T∞ = " + decimals(most), "", ""};
  x.text = "Work " + format_time(f.t1()) + ", span " + format_time(f.span) +
           " (measured with GODWIT_SPAN): no number of "
           "workers can be more than " +
           decimals(most) + " × faster than one.";
  if (most < 2.0 * f.workers) {
    x.what = level::cause;
    x.advice = "That is little for " + plural(f.workers, "worker") +
               ". Only a shorter span helps: divide further what "
               "the longest chain of threads does.";
  }
  out.push_back(x);
}

void explainer::oversubscribed() {
  if (f.cpus <= 0 || f.workers <= f.cpus) return;
  out.push_back(
      {level::cause, plural(f.workers, "worker") + " on " + plural(f.cpus, "CPU"),
       "There were more workers than CPUs. A worker that the system has put aside still counts as busy, so "
       "times of threads and of steals are longer than what they need.",
       "Start one worker per CPU (GODWIT_WORKERS=0) when measuring."});
}

void explainer::asleep() {
  // While no thread wanted a CPU there was nothing to be awake for.
  const double slept = f.total_sleep - f.total[at(state::outside)];
  if (f.known() <= 0 || slept / f.known() < 0.02) return;
  out.push_back(
      {level::hint, "Workers slept for " + format_percent(slept / f.known()) + " of the time",
       "Idle workers that find nothing sleep, so that others get the CPU; waking one takes 5 to 50 µs.",
       "If many sleeps are short, a longer GODWIT_SPIN_US keeps workers awake between bursts of work."});
}

void explainer::messages() {
  if (a == nullptr || f.busy() <= 0) return;
  double ns = 0;
  for (const worker_totals& w : a->totals) ns += static_cast<double>(w.message_ns);
  if (ns / f.busy() < 0.02) return;
  out.push_back({level::hint, "Messages took " + format_percent(ns / f.busy()) + " of the busy time",
                 "Workers carried out requests of other hosts between their threads' spawns.",
                 "GODWIT_WAY=server or rma takes that off the workers (docs/cluster.md)."});
}

/// Waiting for global memory of other hosts happens inside threads: it counts as busy time.
void explainer::global_memory() {
  const auto list = r.stats.find("workers");
  if (f.busy() <= 0 || list == r.stats.end() || !list->is_array()) return;
  auto sum = [&](const char* name) {
    double n = 0;
    for (const json& w : *list)
      if (w.is_object()) n += number_of(w, name);
    return n;
  };
  double life = sum("life_ns");
  for (const char* idle : {"idle_no_work_ns", "idle_join_ns", "idle_wait_ns", "idle_transport_ns"})
    life -= sum(idle);
  const double fetch = sum("global_fetch_ns"), back = sum("global_write_back_ns");
  if (life > 0 && (fetch + back) / life >= 0.02) {
    const double fetches = sum("global_fetches"), hits = sum("global_hits"),
                 evictions = sum("global_evictions");
    finding x{
        level::cause,
        "Global memory of other hosts took " + format_percent((fetch + back) / life) + " of the busy time",
        "Threads waited " + format_time(fetch) + " for " + format_bytes(sum("global_fetched_bytes")) +
            " to be fetched, and " + format_time(back) + " for " + format_bytes(sum("global_written_bytes")) +
            " to be written back. " + format_percent(hits / std::max(1.0, hits + fetches)) +
            " of what they looked for was in the cache.",
        ""};
    if (evictions > 0.1 * fetches)
      x.advice = format_count(evictions) +
                 " units were thrown out of the cache to make room: raise GODWIT_CACHE_BYTES, or "
                 "work on smaller parts at a time.";
    else if (back > fetch)
      x.advice =
          "Changed bytes are written back whenever a thread may leave: let threads write memory of their own "
          "host, and "
          "larger pieces of it.";
    else
      x.advice =
          "Give threads more to do with what they fetch: distribute as the work is divided (blocked), and "
          "check out "
          "larger ranges at once.";
    out.push_back(x);
  }
}

/// So does bringing parts of movable memory, and waiting for them.
void explainer::moves() {
  if (a == nullptr || f.busy() <= 0) return;
  const std::uint64_t far = a->moves.far_uses();
  if (far > 1000 && far > 2 * a->moves.near_uses())
    out.push_back({level::hint,
                   "Movable memory was used " + format_count(static_cast<double>(far)) +
                       " times by other hosts, " + format_count(static_cast<double>(a->moves.near_uses())) +
                       " times by those that had it",
                   "Each such access is a message, and memory that may move can be where it is used.",
                   "gw::rebalance with balance::affinity, or --godwit-rebalance, brings parts to who uses "
                   "them; spawn_at sends the threads to the parts."});
  const worker_moves all = a->moves.total();
  const auto share = [&](std::uint64_t ns) { return static_cast<double>(ns) / f.busy(); };
  if (share(all.ns + all.wait_ns) < 0.02) return;
  finding x{level::cause,
            "Moves of memory took " + format_percent(share(all.ns + all.wait_ns)) + " of the busy time", "",
            ""};
  x.text = "Bringing " + plural(static_cast<double>(all.came), "part") + " (" +
           format_bytes(static_cast<double>(all.bytes)) + ") from other hosts took " +
           format_time(static_cast<double>(all.ns)) + "; accesses waited " +
           plural(static_cast<double>(all.waits), "time") + " for parts on their way, " +
           format_time(static_cast<double>(all.wait_ns)) + " in all.";
  if (all.busy > all.came / 4)
    x.advice = plural(static_cast<double>(all.busy), "part") +
               " stayed because they were in use: move what nobody has checked out.";
  else
    x.advice =
        "Moves shows which parts go to and fro: leave those where they are, or send the threads to them; "
        "move many parts with one call.";
  out.push_back(x);
}

void explainer::stayed() {
  const auto totals = r.stats.find("totals"), places = r.stats.find("stayed_at");
  if (totals == r.stats.end() || places == r.stats.end() || !places->is_array()) return;
  const double all = number_of(*totals, "threads_stayed");
  if (all <= 0) return;
  finding x{level::hint, plural(all, "thread") + " stayed on their host for its heap", "", ""};
  bool any_stale = false;
  for (const json& p : *places) {
    const bool stale = p.value("stale", false);
    any_stale |= stale;
    x.text += (x.text.empty() ? "They had spawned or waited at " : ", ") + text_of(p, "place") + " (" +
              format_count(number_of(p, "count")) + (stale ? ", by stale words)" : ")");
  }
  x.text += ". Other hosts would have taken them, but their stacks name memory that threads have allocated.";
  x.advice =
      "Allocate in functions that have returned by the next spawn, in leaves or before run; give values with "
      "codecs as arguments and results.";
  if (any_stale)
    x.advice +=
        " Stale words are pointers to freed memory that a function has left in the frame: let it be one "
        "that is not inlined, and returns before the spawn.";
  out.push_back(x);
}

void explainer::caveats() {
  if (number_of(r.info, "status") != 0)
    out.push_back(
        {level::caveat, "The run failed",
         text_of(r.info, "message") + " (status " + format_count(number_of(r.info, "status")) + ").", ""});
  if (a == nullptr) {
    out.push_back(
        {level::caveat, "Counters only",
         "Sums over the whole run. Which places waited, when workers were idle, who stole from whom and the "
         "chain that ended last are in a trace.",
         "Run again with GODWIT_TRACE=trace.pftrace and give that file to godwit-report."});
    return;
  }
  if (a->dropped > 0)
    out.push_back({level::caveat, format_count(static_cast<double>(a->dropped)) + " events were dropped",
                   "The oldest events did not fit into memory. Everything on this page, but for the "
                   "counters, describes "
                   "the last " +
                       format_time(static_cast<double>(a->wall())) + " of " +
                       format_time(static_cast<double>(a->end)) + ", where all workers' events are there.",
                   "GODWIT_TRACE_BYTES=256M (per worker) keeps more; or trace a shorter run."});
  if (static_cast<double>(a->odd) > 0.001 * static_cast<double>(a->events))
    out.push_back({level::caveat,
                   format_count(static_cast<double>(a->odd)) + " events contradict earlier ones",
                   "The file may be incomplete, or clocks of different hosts disagree. Small numbers on this "
                   "page may be "
                   "wrong.",
                   ""});
}

}  // namespace

double run_figures::known() const noexcept {
  return std::accumulate(total.begin(), total.end(), 0.0) - total[at(state::unknown)];
}

run_figures figures_of(const recording& r, const analysis* a) {
  run_figures f;
  f.program = text_of(r.info, "program");
  f.policy = text_of(r.info, "policy");
  f.workers = r.workers;
  f.hosts = static_cast<std::uint32_t>(std::set(r.host_of.begin(), r.host_of.end()).size());
  f.cpus = number_of(r.info, "cpus", -1);
  if (const double s = number_of(r.info, "seconds", -1); s > 0) f.whole_run = s * 1e9;
  if (a != nullptr) {
    f.wall = static_cast<double>(a->wall());
    f.longest_chain = static_cast<double>(a->longest_chain_ns);
    for (const worker_totals& w : a->totals) {
      auto& mine = f.by_worker.emplace_back();
      std::copy(w.ns.begin(), w.ns.end(), mine.begin());
      f.sleep.push_back(static_cast<double>(w.sleep_ns));
    }
  } else if (const auto list = r.stats.find("workers"); list != r.stats.end() && list->is_array()) {
    for (const json& w : *list)
      if (w.is_object() && number_of(w, "life_ns") > 0) add_counters(f, w);
    if (f.by_worker.size() != r.workers) f.by_worker.clear(), f.sleep.clear();
  }
  for (const auto& w : f.by_worker)
    for (std::size_t s = 0; s < states; ++s) f.total[s] += w[s];
  f.total_sleep = std::accumulate(f.sleep.begin(), f.sleep.end(), 0.0);
  add_span(f, r.stats);
  return f;
}

std::vector<finding> explain(const run_figures& f, const recording& r, const analysis* a) {
  explainer e{f, r, a, {}};
  e.headline();
  e.causes();
  e.parallelism();
  e.oversubscribed();
  e.asleep();
  e.messages();
  e.global_memory();
  e.moves();
  e.stayed();
  e.caveats();
  return std::move(e.out);
}

}  // namespace godwit::report
