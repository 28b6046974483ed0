// The policies: named combinations of how threads are stolen, joined and freed, and of where stacks lie; and
// the substrates that a worker of a policy can stand on.
//
// A policy is a type with its facts, named in one of the lists below: that makes its workers
// (continuation.cpp, child.cpp) and its row of the table that all others ask (policy_of). With its name in
// the options table (src/base/options.cpp) and in include/godwit/policy.hpp it can be chosen when a run
// starts. What policies have in common is class worker. docs/policies.md says what each is for and where the
// papers describe it.
#pragma once

#include <cstddef>
#include <span>

namespace godwit {
struct options;
}

namespace godwit::sched {

class worker;

template <class... P>
struct policy_list {};

enum class joins { greedy, stalling };
enum class frees { collected, queued };
/// Of workers that are processes: at which address threads run, and where they wait.
enum class scheme { uni_address, crude, iso_address };

/// Continuation stealing. Span: crude with a clock at every spawn and join (options::span).
template <joins Joins, frees Frees, scheme Scheme, bool Span = false>
struct continuations {
  static constexpr bool stalls = Joins == joins::stalling;
  static constexpr bool queued_frees = Frees == frees::queued;
  static constexpr bool iso_address = Scheme == scheme::iso_address;
  static constexpr bool crude_scheme = Scheme == scheme::crude;
  static constexpr bool spans = Span;
};

struct greedy : continuations<joins::greedy, frees::collected, scheme::uni_address> {
  static constexpr const char* name = "greedy";
};
struct stalling : continuations<joins::stalling, frees::collected, scheme::uni_address> {
  static constexpr const char* name = "stalling";
};
struct locked_free : continuations<joins::greedy, frees::queued, scheme::uni_address> {
  static constexpr const char* name = "locked_free";
};
struct stalling_locked_free : continuations<joins::stalling, frees::queued, scheme::uni_address> {
  static constexpr const char* name = "stalling_locked_free";
};
struct crude : continuations<joins::greedy, frees::collected, scheme::crude> {
  static constexpr const char* name = "crude";
};
struct iso : continuations<joins::greedy, frees::collected, scheme::iso_address> {
  static constexpr const char* name = "iso";
};
/// Not asked for by name, but by options::span.
struct span_meter : continuations<joins::greedy, frees::collected, scheme::crude, true> {
  static constexpr const char* name = "span=1";
};
using continuation_policies =
    policy_list<greedy, stalling, locked_free, stalling_locked_free, crude, iso, span_meter>;

/// Child stealing: threads that run to completion on top of a waiting one, or on stacks of their own.
struct child_rtc {
  static constexpr const char* name = "child_rtc";
  static constexpr bool full = false;
};
struct child_full {
  static constexpr const char* name = "child_full";
  static constexpr bool full = true;
};
using child_policies = policy_list<child_rtc, child_full>;

// The substrates, as policies that steal continuations see them.
struct on_processes {
  /// stacks of suspended threads stay where they are, with their images: nothing of a thread is ever copied
  static constexpr bool stacks_stay = false;
  /// threads wait for more than records: other threads, time, descriptors; and may begin later than they are
  /// made
  static constexpr bool can_park = false;
};
struct on_threads {
  static constexpr bool stacks_stay = true;
  static constexpr bool can_park = true;
};

/// A policy on a substrate.
template <class Policy, class Substrate>
struct on : Policy, Substrate {};

/// What there is to know of a policy without its worker.
struct policy_info {
  const char* name;
  bool
      steals_children;  ///< and never continuations: nothing that can be forced to leave, no stacks that stay
  bool has_all_stacks;  ///< every worker's memory has room for the stacks of all
  bool lists_threads;   ///< a debugger finds suspended threads in slots, on the region and in images
  worker* (*on_processes)(void* room) noexcept;
  worker* (*on_threads)(void* room) noexcept;
};
const policy_info& policy_of(const options& opts) noexcept;

/// The rows of each list: continuation.cpp, child.cpp.
std::span<const policy_info> continuation_rows() noexcept;
std::span<const policy_info> child_rows() noexcept;

/// Stacks of single threads (iso, child_full): 32 KiB as in the papers' comparison (003, IV-B).
inline constexpr unsigned long thread_stack_bytes = 32 << 10;

}  // namespace godwit::sched
