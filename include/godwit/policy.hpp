// Scheduling policies: the same program under each of the papers' schedulers.
//
// Programs use the free functions (spawn, invoke), which are the policy `greedy`. A program that wants to compare
// takes the policy as a template parameter, and the name of the run's policy from the options:
//
//   template <class P> long fib(int n) {
//     if (n < 2) return n;
//     auto x = P::spawn([n] { return fib<P>(n - 1); });
//     const long y = fib<P>(n - 2);
//     return x.join() + y;
//   }
//   godwit::with_policy(godwit::resolve_options().policy, [&](auto p) { run(... fib<decltype(p)>(n) ...); });
//
// A run with one policy whose threads are spawned by another ends with a message.
// Sources: "Distributed continuation stealing is more scalable than you might think" III, IV-B; "Uni-address threads"
// 4, 5.1. Documents: docs/policies.md. Tests: tests/api/policy_test.cpp.
#pragma once

#include <godwit/task.hpp>

#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>

namespace godwit {

namespace policies {

/// What all policies have that steal continuations: the free functions themselves.
struct continuation_stealing {
  template <class T>
  using future = godwit::future<T>;
  template <class T>
  using shared_future = godwit::shared_future<T>;
  static constexpr bool has_futures = true;  ///< threads may wait for threads that are not their children
  static constexpr bool migrates = true;     ///< a thread may go on at another worker

  template <class F, class... Args>
  [[gnu::always_inline]] static auto spawn(F&& fn, Args&&... args) {
    return godwit::spawn(std::forward<F>(fn), std::forward<Args>(args)...);
  }
};

/// The default: greedy join (003, figure 4), local collection of remotely freed objects (003, III-B).
struct greedy : continuation_stealing {
  static constexpr const char* name = "greedy";
};
/// Stalling join (003, III-A): who waits is looked at in turn, after failed steals, by the worker where it suspended.
struct stalling : continuation_stealing {
  static constexpr const char* name = "stalling";
};
/// Greedy join; objects are given back through a locked queue of their owner (003, III-B, "original").
struct locked_free : continuation_stealing {
  static constexpr const char* name = "locked_free";
};
/// The crude uni-address scheme: at every spawn the parent's stack is copied out, at every end the next one in.
struct crude : continuation_stealing {
  static constexpr const char* name = "crude";
};

}  // namespace policies

/// Call f(policy) with the policy called @p name; gives back what f does. Throws std::invalid_argument.
template <class F>
decltype(auto) with_policy(std::string_view name, F&& f) {
  if (name == policies::greedy::name) return f(policies::greedy{});
  if (name == policies::stalling::name) return f(policies::stalling{});
  if (name == policies::locked_free::name) return f(policies::locked_free{});
  if (name == policies::crude::name) return f(policies::crude{});
  throw std::invalid_argument("godwit: there is no policy called " + std::string(name));
}

}  // namespace godwit
