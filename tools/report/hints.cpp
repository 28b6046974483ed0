// What else there is to know about a run. See explainer.hpp.
#include "explainer.hpp"

namespace godwit::report {

using nlohmann::json;

/// What the run would have to do faster, whatever the number of workers.
void explainer::chain() {
  if (a == nullptr || lost_in_all() < 0.1) return;
  const std::vector<chain_part> parts = parts_of_chain(*a);
  if (parts.empty()) return;
  constexpr std::size_t most = 3;
  finding x{level::hint, "The chain of threads that ended last", "", ""};
  x.text = "From the end back to the start, each thread made the next possible. It ran for " +
           format_time(static_cast<double>(a->path.running_ns)) + ", most of that:";
  for (std::size_t i = 0; i < std::min(parts.size(), most); ++i)
    x.text +=
        (i == 0 ? " " : "; ") + name_of(parts[i].name) + ", " + format_time(static_cast<double>(parts[i].ns));
  x.text += ".";
  out.push_back(x);
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
  for (const json& p : *places)
    x.text += (x.text.empty() ? "They had spawned or waited at " : ", ") + text_of(p, "place") + " (" +
              format_count(number_of(p, "count")) + ")";
  x.text += ". Other hosts would have taken them, but their stacks name memory that threads have allocated.";
  x.advice =
      "Allocate in functions that have returned by the next spawn, in leaves or before run; give values with "
      "codecs as arguments and results.";
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

}  // namespace godwit::report
