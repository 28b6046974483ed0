// What happens in a simulated run that seldom happens on a good day: option sim_faults. None of it may change
// what a program computes; a crash ends the run.
//
// How often, when and how much is drawn from the run's seed. Each fault is carried out where its matter is:
// stall, crash, spurious and late by the engine, delay by the network, slow and small by
// runtime/sim_hosts.cpp.
// docs/scale.md, "Faults". Test: tests/sim/run_hosts_test.cpp; tests/seeds has some of them in each run.
#pragma once

#include <string_view>

namespace godwit::sim {

struct faults {
  bool delay = false;     ///< some messages, or links, take up to a thousand times as long; those behind wait
  bool stall = false;     ///< a worker or companion stands still for up to a second, some times in a run
  bool crash = false;     ///< one stands still for good, and some time later the run ends for that reason
  bool slow = false;      ///< one companion takes long for everything
  bool spurious = false;  ///< who sleeps wakes without a reason
  bool late = false;      ///< who is woken sleeps on until its time-out
  bool small = false;     ///< rings and inboxes have few entries, and few receives are posted
  /// @p list: names of them with commas between; "all" is all but crash. Throws std::invalid_argument for
  /// anything else.
  static faults of(std::string_view list);
};

}  // namespace godwit::sim
