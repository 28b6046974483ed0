// What explain() (summary.hpp) is made of. Used by summary.cpp, verdict.cpp, causes.cpp and hints.cpp.
#pragma once

#include "summary.hpp"

#include <string>
#include <vector>

namespace godwit::report {

using level = finding::level;

constexpr std::size_t at(state s) { return static_cast<std::size_t>(s); }

std::string plural(double n, const char* one);  ///< "3 workers"
std::string decimals(double value);             ///< "1.03", "103"
/// Of the places where threads wait for that, the one that cost most; null: none.
const waiting_place* worst_place(const analysis* a, wait_for kind = wait_for::join);
std::string waited_for(const waiting_place& p);   ///< "a mutex at file.cpp:13"
std::string accesses_of(const waiting_place& p);  ///< "131,072 single gets of memory of worker 1's host"

/// One thing that explains most of what was lost.
struct verdict {
  std::string text, advice;  ///< text: behind "speed-up 1.03 on 4 workers: "
};

constexpr state causes_of_loss[] = {state::getting, state::no_work,   state::join,    state::lock,
                                    state::event,   state::transport, state::outside, state::access,
                                    state::blocked, state::kernel};

inline constexpr const char* waits_keep_workers =
    "Such a wait keeps the worker. Run on substrate threads, with gw::mutex, gw::this_thread::sleep_for, and "
    "gw's reads and writes: there they suspend the thread (docs/threads.md, docs/io.md).";
inline constexpr const char* kernel_works =
    "Keep memory and use it again, instead of allocating and freeing large blocks; make fewer and larger "
    "system calls.";

/// How idle workers' time divides among causes; each cause explains itself.
struct explainer {
  const run_figures& f;
  const recording& r;
  const analysis* a;
  std::vector<finding> out;

  double lost_share(state s) const { return f.lost() > 0 ? f.total[at(s)] / f.lost() : 0; }
  /// Of the time, while all workers had none to run because of what is outside.
  double quiet() const { return f.known() > 0 ? f.total[at(state::outside)] / f.known() : 0; }
  /// Of what was lost, while threads could have gone on.
  double ready_share() const {
    return a != nullptr && f.lost() > 0 ? static_cast<double>(a->ready_while_idle_ns) / f.lost() : 0;
  }
  /// Where those had waited that could go on for longest.
  const waiting_place* readiest_place() const {
    const waiting_place* most = nullptr;
    for (const waiting_place& p : a->places)
      if (p.ready_ns > (most == nullptr ? 0 : most->ready_ns)) most = &p;
    return most;
  }
  double lost_in_all() const { return f.known() > 0 ? f.lost() / f.known() : 0; }
  void headline();
  void causes();
  void no_work(double share);
  void join(double share);
  void ready();
  void transport(double share);
  void getting(double share);
  void lock(double share);
  void event(double share);
  void outside(double share);
  void access(double share);
  void blocked(double share);
  void kernel(double share);
  report::verdict verdict() const;
  report::verdict waits_and_accesses() const;
  report::verdict what_ran() const;
  report::verdict kept_by_system() const;
  report::verdict nobody_ran() const;
  std::string ready_advice() const;
  std::string waited_in_system() const;  ///< "threads waited in the operating system for ..."
  std::string kernel_worked() const;
  std::string system_sentence(const report::verdict& first)
      const;  ///< "Threads waited in the operating system for ..."; empty: rarely
  culprit first_culprit() const;
  report::verdict fine(const std::string& what, std::uint32_t name) const;
  report::verdict fine_by_spawns() const;
  std::uint32_t mostly_left() const;
  bool one_piece_rules() const;
  report::verdict serial(const culprit& c) const;
  std::string name_of(std::uint32_t name) const;
  std::string held_by(const waiting_place& lock) const;  ///< ", held by read at file.cpp:12"; empty: unknown
  /// The time in which workers had threads.
  double had_threads() const {
    return f.busy() + f.total[at(state::access)] + f.total[at(state::blocked)] + f.total[at(state::kernel)];
  }
  /// Of that, others had the CPUs.
  double put_aside() const {
    return a != nullptr ? static_cast<double>(a->system.ns[at(trace::system_kind::aside)]) : 0;
  }
  /// Of the rest, which is the threads' own.
  double share_of_own_time(double ns) const {
    const double own = had_threads() - put_aside();
    return own > 0 ? ns / own : 0;
  }
  double share_of_threads(double ns) const { return had_threads() > 0 ? ns / had_threads() : 0; }
  /// Of that, they waited for single values of other hosts.
  double access_share() const { return share_of_threads(f.total[at(state::access)]); }
  bool accesses_rule() const { return access_share() > 0.5; }
  /// Of the places of single accesses, the one that took longest.
  const waiting_place* worst_access() const {
    const waiting_place* worst = nullptr;
    if (a != nullptr)
      for (const waiting_place& p : a->places)
        if (p.kind == wait_for::access && (worst == nullptr || p.wait_ns > worst->wait_ns)) worst = &p;
    return worst;
  }
  void chain();
  void parallelism();
  void oversubscribed();
  void asleep();
  void messages();
  void global_memory();
  void moves();
  void stayed();
  void caveats();
};

}  // namespace godwit::report
