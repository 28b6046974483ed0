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
  report::verdict verdict() const;
  report::verdict waits_and_accesses() const;
  report::verdict what_ran() const;
  report::verdict fine(const std::string& what) const;
  report::verdict serial(const culprit& c) const;
  std::string name_of(std::uint32_t name) const;
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
