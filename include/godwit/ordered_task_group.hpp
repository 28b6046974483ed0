// ordered_task_group: a task_group whose wait throws the same exception on every schedule, whoever adds
// members.
//
//   gw::ordered_task_group g;
//   visit(root, g);  // members add members: g.run(...)
//   g.wait();        // throws what a serial execution would have met first
//
// What members threw is kept by a reducer (segments.md), so groups whose members are added by one thread do
// not need it: task_group.hpp. Protocol: docs/protocols/tally.md, segments.md. For users:
// docs/writing-programs.md. Tests: tests/api/task_group_test.cpp.
#pragma once

#include <godwit/detail/cancelled.hpp>
#include <godwit/reducer.hpp>
#include <godwit/task_group.hpp>

#include <utility>

namespace godwit {

namespace detail {

/// The record of an exception, the first in serial order; 0: none.
struct first_failure {
  static ref identity() noexcept { return 0; }
  static void reduce(ref& left, ref&& right) noexcept {
    if (left == 0)
      left = right;
    else if (right != 0)
      release(right);
  }
};

/// What members threw and nobody has seen. By its number, which is all that members know of it.
class failures {
 public:
  failures() : number_(begin_reducer()) {}
  failures(const failures&) = delete;
  failures& operator=(const failures&) = delete;
  ~failures() {
    if (const ref unseen = take(); unseen != 0) detach(unseen);
    end_reducer(number_);
  }
  std::uint64_t number() const noexcept { return number_; }
  /// 0: none. When all members have ended.
  ref take() const { return std::exchange(kept::at(merge_views(number_, kept::type)), 0); }
  /// Run @p body; what it throws comes behind all that came before it in serial order.
  template <class F>
  static void keep(std::uint64_t number, F&& body) {
    ref error = 0;
    try {
      static_cast<void>(std::forward<F>(body)());
    } catch (...) {
      error = capture_exception();
    }
    if (error != 0) first_failure::reduce(kept::at(view_of(number, kept::type)), std::move(error));
  }

 private:
  using kept = views<ref, first_failure>;
  const std::uint64_t number_;
};

}  // namespace detail

/// As task_group, but for what wait throws. Cost: a reducer's. While the group lives each steal makes a
/// segment (some 100 ns; between hosts a letter more), also of threads that are no members.
class ordered_task_group {
 public:
  ordered_task_group() = default;

  /// See task_group::run. What nested members threw comes before what their adder throws behind that.
  template <class F, class... Args>
  void run(F&& fn, Args&&... args) const {
    detail::with_closure(
        [this](auto& f) {
          group_.run([number = failures_.number(), f = std::move(f)]() mutable {
            detail::failures::keep(number, std::move(f));
          });
        },
        std::forward<F>(fn), std::forward<Args>(args)...);
  }
  /// The same where the program's policy is @p Policy (policy.hpp).
  template <class Policy, class F, class... Args>
  void run_by(F&& fn, Args&&... args) const {
    detail::with_closure(
        [this](auto& f) {
          group_.run_by<Policy>([number = failures_.number(), f = std::move(f)]() mutable {
            detail::failures::keep(number, std::move(f));
          });
        },
        std::forward<F>(fn), std::forward<Args>(args)...);
  }

  /// Wait until all members have ended. Then throw what that one threw which a serial execution, each member
  /// at its run, would have met first; what others threw is dropped. Otherwise as task_group::wait and
  /// reducer::take.
  void wait(detail::place where = detail::place::here()) const {
    bool refused = false;  // a member was cancelled before it began: what others threw comes first
    try {
      group_.wait(where);
    } catch (const cancelled&) {
      refused = true;
    }
    if (const detail::ref first = failures_.take(); first != 0)
      detail::rethrow(first, detail::wait(first, where.file, where.function, where.line));
    if (refused) throw cancelled();
  }

 private:
  detail::failures failures_;
  task_group group_;  ///< its end, first, waits for the members
};

}  // namespace godwit
