// The workers of each policy, and the substrates that they can stand on.
//
// A policy is a row of facts (godwit/detail/policy_facts.hpp): that makes its workers (continuation.cpp,
// child.cpp). What policies have in common is class worker. docs/policies.md says what each is for and where
// the papers describe it.
#pragma once

#include <godwit/detail/policy_facts.hpp>

#include "context/lazy.hpp"

#include <array>
#include <new>
#include <type_traits>
#include <utility>

namespace godwit::sched {

class worker;

using context::lazy_spawns_exist;
using detail::policy_table;
/// A policy where types are: its row of the table.
using policy_rows = std::make_index_sequence<std::size(policy_table)>;

/// Continuation stealing.
template <std::size_t Row>
struct continuations {
  static constexpr bool stalls = policy_table[Row].join == detail::joins::stalling;
  static constexpr bool queued_frees = policy_table[Row].free == detail::frees::queued;
  static constexpr bool iso_address = policy_table[Row].stack == detail::stacks::iso_address;
  static constexpr bool crude_scheme = policy_table[Row].stack == detail::stacks::crude;
  static constexpr bool spans = policy_table[Row].measures_span;
  static constexpr bool lazy = policy_table[Row].spawns_lazily && lazy_spawns_exist;
};

/// Child stealing: threads that run to completion on top of a waiting one, or on stacks of their own.
template <std::size_t Row>
struct children {
  static constexpr bool full = policy_table[Row].stack == detail::stacks::own;
};

// The substrates, as policies that steal continuations see them.
struct on_processes {
  /// stacks of suspended threads stay where they are, with their images: nothing of a thread is ever copied
  static constexpr bool stacks_stay = false;
  /// threads wait for more than records: other threads, time, descriptors; and may begin later than they are
  /// made
  static constexpr bool can_park = false;
  /// workers take turns in virtual time: what they do is charged, and the region is whose turn it is
  static constexpr bool takes_turns = false;
};
struct on_sim {
  static constexpr bool stacks_stay = false;
  static constexpr bool can_park = false;
  static constexpr bool takes_turns = true;
};
struct on_threads {
  static constexpr bool stacks_stay = true;
  static constexpr bool can_park = true;
  static constexpr bool takes_turns = false;
};

/// A policy on a substrate.
template <class Policy, class Substrate>
struct on : Policy, Substrate {};

/// What makes the workers of a policy, in room for the largest.
struct worker_makers {
  worker* (*on_processes)(void* room) noexcept;
  worker* (*on_threads)(void* room) noexcept;
  worker* (*on_sim)(void* room) noexcept;
};
using maker_rows = std::array<worker_makers, std::size(policy_table)>;
template <class Worker>
worker* made(void* room) noexcept {
  return new (room) Worker();
}
/// What @p f gives for each row, which it is handed as a constant.
template <std::size_t... Row, class F>
constexpr auto of_each_row(std::index_sequence<Row...>, F f) noexcept {
  return std::array{f(std::integral_constant<std::size_t, Row>{})...};
}
/// Filled in are the rows that steal continuations (continuation.cpp), or children (child.cpp).
const maker_rows& continuation_makers() noexcept;
const maker_rows& child_makers() noexcept;

/// Stacks of single threads (iso, child_full): 32 KiB as in the papers' comparison (003, IV-B).
inline constexpr unsigned long thread_stack_bytes = 32 << 10;

}  // namespace godwit::sched
