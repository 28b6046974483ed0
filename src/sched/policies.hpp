// The policies: named combinations of how threads are stolen, joined and freed, and of where stacks lie.
//
// Each is instantiated once (policies.cpp) and chosen when a run starts; programs see
// include/godwit/policy.hpp. What they have in common is class worker. docs/policies.md says what each is for
// and where the papers describe it.
#pragma once

namespace godwit::sched {

enum class joins { greedy, stalling };
enum class frees { collected, queued };
enum class stacks { uni_address, crude, iso_address, in_place, in_place_crude };

/// Continuation stealing. Span: crude with a clock at every spawn and join (options::span).
template <joins Joins, frees Frees, stacks Stacks, bool Span = false>
struct continuations {
  static constexpr bool stalls = Joins == joins::stalling;
  static constexpr bool queued_frees = Frees == frees::queued;
  static constexpr bool iso = Stacks == stacks::iso_address;
  static constexpr bool crude = Stacks == stacks::crude || Stacks == stacks::in_place_crude;
  /// Workers are threads of one process: stacks and what they hold are everybody's, and nothing is ever
  /// copied.
  static constexpr bool in_place = Stacks == stacks::in_place || Stacks == stacks::in_place_crude;
  static constexpr bool spans = Span;
};

using greedy = continuations<joins::greedy, frees::collected, stacks::uni_address>;
using stalling = continuations<joins::stalling, frees::collected, stacks::uni_address>;
using locked_free = continuations<joins::greedy, frees::queued, stacks::uni_address>;
using stalling_locked_free = continuations<joins::stalling, frees::queued, stacks::uni_address>;
using crude = continuations<joins::greedy, frees::collected, stacks::crude>;
using span_meter = continuations<joins::greedy, frees::collected, stacks::crude, true>;
using iso = continuations<joins::greedy, frees::collected, stacks::iso_address>;
// Substrate threads.
using greedy_in_place = continuations<joins::greedy, frees::collected, stacks::in_place>;
using stalling_in_place = continuations<joins::stalling, frees::collected, stacks::in_place>;
using locked_free_in_place = continuations<joins::greedy, frees::queued, stacks::in_place>;
using stalling_locked_free_in_place = continuations<joins::stalling, frees::queued, stacks::in_place>;
using crude_in_place = continuations<joins::greedy, frees::collected, stacks::in_place_crude>;
using span_meter_in_place = continuations<joins::greedy, frees::collected, stacks::in_place_crude, true>;

/// Child stealing: threads that run to completion on top of a waiting one, or on stacks of their own.
template <bool Full>
struct children {
  static constexpr bool full = Full;
};
using child_rtc = children<false>;
using child_full = children<true>;

/// Stacks of single threads (iso, child_full): 32 KiB as in the papers' comparison (003, IV-B).
inline constexpr unsigned long thread_stack_bytes = 32 << 10;

}  // namespace godwit::sched
