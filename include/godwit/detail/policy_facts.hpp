// What the policies are: one row each. The words of the option, the types that programs spawn by (policy.hpp)
// and the workers (src/sched/policies.hpp) follow from it. docs/policies.md says what each is for.
#pragma once

#include <godwit/options.hpp>

#include <cstddef>
#include <cstdint>
#include <iterator>

namespace godwit::detail {

/// What a join does whose child runs elsewhere.
enum class joins : std::uint8_t {
  greedy,    ///< who comes second goes on with the parent (003, figure 4)
  stalling,  ///< the parent waits where it suspended, and is looked at in turn (003, III-A)
  on_top     ///< others run on top of the parent until the child has ended (003, IV-B)
};
/// How an object goes back to its owner from elsewhere.
enum class frees : std::uint8_t {
  collected,  ///< by a mark that the owner collects (003, III-B)
  queued      ///< through a locked queue of the owner (003, III-B, "original")
};
/// Where threads have their stacks, if workers are processes.
enum class stacks : std::uint8_t {
  uni_address,  ///< all of a worker in one region, children below their parents (000, 5.2)
  crude,        ///< one at a time in the region, the others copied out (000, 5.1)
  iso_address,  ///< one each, at an address that is unique among all workers (000, 4)
  own           ///< one each, private to the worker
};

struct policy_facts {
  const char* name;
  bool steals_children;  ///< and never continuations: a thread that has begun stays
  joins join;
  frees free;
  stacks stack;
  bool measures_span = false;  ///< a clock at every spawn, join and end
  bool spawns_lazily = false;  ///< a spawn is a plain call, until somebody asks

  /// Threads may wait for threads that are not their children.
  constexpr bool has_futures() const noexcept { return join != joins::on_top; }
  /// Every worker's memory has room for the stacks of all.
  constexpr bool has_all_stacks() const noexcept { return stack == stacks::iso_address; }
  /// Workers may be on several hosts.
  constexpr bool spans_hosts() const noexcept { return stack != stacks::iso_address && !measures_span; }
  /// A debugger finds suspended threads in slots, on the region and in images.
  constexpr bool lists_threads() const noexcept {
    return !steals_children && !spawns_lazily && stack == stacks::uni_address;
  }
};

/// In the order of choice::policy (tests/base/options_test.cpp); after them what options::span asks for.
// clang-format off
inline constexpr policy_facts policy_table[] = {
    {"greedy",               false, joins::greedy,   frees::collected, stacks::uni_address},
    {"stalling",             false, joins::stalling, frees::collected, stacks::uni_address},
    {"locked_free",          false, joins::greedy,   frees::queued,    stacks::uni_address},
    {"stalling_locked_free", false, joins::stalling, frees::queued,    stacks::uni_address},
    {"child_rtc",            true,  joins::on_top,   frees::collected, stacks::uni_address},
    {"child_full",           true,  joins::stalling, frees::collected, stacks::own},
    {"iso",                  false, joins::greedy,   frees::collected, stacks::iso_address},
    {"crude",                false, joins::greedy,   frees::collected, stacks::crude},
    {"lazy",                 false, joins::greedy,   frees::collected, stacks::uni_address, false, true},
    {"span=1",               false, joins::greedy,   frees::collected, stacks::crude, true},
};
// clang-format on
inline constexpr std::size_t span_row = std::size(policy_table) - 1;  ///< the others are choices

constexpr const policy_facts& facts_of(choice::policy p) noexcept {
  return policy_table[static_cast<std::size_t>(p)];
}
/// The row that a run with these options has.
constexpr std::size_t policy_row(const options& o) noexcept {
  return o.span ? span_row : static_cast<std::size_t>(o.policy);
}
constexpr const policy_facts& facts_of(const options& o) noexcept { return policy_table[policy_row(o)]; }

}  // namespace godwit::detail
