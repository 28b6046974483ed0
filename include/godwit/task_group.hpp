// task_group: any number of threads, added one after the other by whomever, and one wait for all of them.
//
//   gw::task_group g;
//   for (node n : children) g.run([n, &g] { visit(n, g); });  // visit may add more: g.run(...)
//   g.wait();                                                 // throws what the first that failed threw
//
// Threads have no futures. One whose parent stays costs what spawn costs, and nothing where it ends; only
// those that were separated from their parents are counted. For groups whose handle is copied, stored, or
// sent to other hosts: group.hpp. docs/control.md says when which.
// Protocol: docs/protocols/tally.md. Tests: tests/api/task_group_test.cpp.
#pragma once

#include <godwit/task.hpp>

#include <exception>
#include <utility>

namespace godwit {

/// Threads that are waited for together. Lies in a frame, or on the heap; members get a reference, also where
/// workers are processes: its bytes do not change, what changes lies in memory that all workers have.
class task_group {
 public:
  /// Without members. Only inside a run. Cost: an object of 128 bytes, local.
  task_group() : tally_(detail::make_tally()) {}
  task_group(const task_group&) = delete;
  task_group& operator=(const task_group&) = delete;
  /// Waits. What members threw and nobody has seen is reported, as of a future that is dropped; not while
  /// another exception is on its way.
  ~task_group() {
    settle(detail::place{"godwit::task_group", "~task_group", 0});
    detail::free_tally(tally_);
  }

  /// Create a thread that runs `fn(args...)` and is a member. As spawn; what fn gives back is dropped. By any
  /// thread that has a reference: the owner, members, others whose calls have returned before wait is called.
  /// Cost: spawn's, and two atomics if the caller is stolen meanwhile.
  template <class F, class... Args>
  [[gnu::always_inline]] void run(F&& fn, Args&&... args) const {
    const detail::ref tally = tally_;
    add(godwit::spawn(std::forward<F>(fn), std::forward<Args>(args)...), tally);
  }
  /// The same where the program's policy is @p Policy (policy.hpp).
  template <class Policy, class F, class... Args>
  void run_by(F&& fn, Args&&... args) const {
    const detail::ref tally = tally_;
    add(Policy::spawn(std::forward<F>(fn), std::forward<Args>(args)...), tally);
  }

  /// Wait until all members have ended, also those that members added meanwhile. Then throw what the one
  /// threw that was added first of those that failed; what others threw is dropped. Of members that one
  /// thread adds it is the same on every schedule. The group can be used again. One thread waits at a time,
  /// and no member. May migrate the thread. Cost: a load if no member was stolen, else a join.
  void wait(detail::place where = detail::place::here()) const {
    const detail::ref tally = tally_;
    settle(where);
    const detail::ref failed = detail::take_failed(tally);
    if (failed == 0) [[likely]]
      return;
    detail::rethrow(failed, detail::wait(failed, where.file, where.function, where.line));
  }

 private:
  template <class T>
  [[gnu::always_inline]] static void add(future<T> member, detail::ref tally) {
    if (detail::future_access::state(member) != detail::in_frame) [[unlikely]]
      detail::detach_into(detail::future_access::take_record(member), tally);
  }
  void settle(const detail::place& where) const { detail::wait_for_parts(tally_, "task_group", where); }

  const detail::ref tally_;
};

}  // namespace godwit
