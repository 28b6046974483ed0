// What the lost time went to: a finding for each cause. See explainer.hpp.
#include "explainer.hpp"

#include "trace/verdict.hpp"

#include <algorithm>

namespace godwit::report {

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
  x.advice =
      "The threads waited for were late: divide the children before those joins more evenly, spawn the "
      "largest first, or do something else between spawn and join.";
  out.push_back(x);
}

void explainer::ready() {
  finding x{level::cause,
            "Ready threads that nobody ran: " + format_percent(ready_share()) + " of the lost time",
            "Threads could have gone on while workers were idle.", ready_advice()};
  if (const waiting_place* p = readiest_place(); p != nullptr)
    x.text += " Most of it after waits at " + format_place(*p) + ": " +
              format_time(static_cast<double>(p->ready_ns)) + " in all.";
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

void explainer::lock(double share) {
  finding x{level::cause, "Locks: " + format_percent(share) + " of the lost time", "", ""};
  x.text = "Workers had nothing to run while threads waited for locks.";
  if (const waiting_place* p = worst_place(a, wait_for::lock); p != nullptr) {
    x.text += " Most of it for " + waited_for(*p) + ": " + plural(static_cast<double>(p->count), "wait") +
              ", " +
              format_time(static_cast<double>(p->wait_ns) /
                          static_cast<double>(std::max<std::uint64_t>(p->count, 1))) +
              " each, up to " + plural(static_cast<double>(p->most_at_once), "thread") + " at once";
    x.text += held_by(*p) + ".";
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

void explainer::access(double share) {
  finding x{level::cause, "Single accesses to other hosts: " + format_percent(share) + " of the lost time",
            "", ""};
  x.text = "Threads waited for one value after the other.";
  if (const waiting_place* p = worst_access(); p != nullptr)
    x.text += " Most of it for " + accesses_of(*p) + " at " + format_place(*p) + ", " +
              format_time(static_cast<double>(p->wait_ns) /
                          static_cast<double>(std::max<std::uint64_t>(p->count, 1))) +
              " each.";
  x.advice = "Check out the range (checkout) and read it there; gather and scatter combine what lies apart.";
  out.push_back(x);
}

void explainer::blocked(double share) {
  std::string text = waited_in_system() + ". ";
  text[0] = 'T';
  out.push_back({level::cause,
                 "Waits in the operating system: " + format_percent(share) + " of the lost time",
                 text + "Workers had threads, and these could not go on.", waits_keep_workers});
}

void explainer::kernel(double share) {
  std::string text = kernel_worked() + ".";
  text[0] = 'T';
  out.push_back({level::cause, "Work of the operating system: " + format_percent(share) + " of the lost time",
                 text, kernel_works});
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
  if (ready_share() > trace::much) ready();
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
    if (s == state::blocked) blocked(share);
    if (s == state::kernel) kernel(share);
  }
}

}  // namespace godwit::report
