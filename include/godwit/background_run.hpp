// background_run: a run on substrate threads beside the program's own OS threads, which hand it work.
//
// For programs that have other threads and no root thread to begin with; godwit/scheduler.hpp puts the
// standard's senders on top. A process has one run at a time, and this is it. docs/scheduler.md. Code:
// src/runtime/background_run.cpp. Test: tests/threads/background_test.cpp.
#pragma once

#include <godwit/detail/cancelled.hpp>
#include <godwit/options.hpp>

#include <memory>
#include <type_traits>
#include <utility>

namespace godwit {

class background_run;

namespace detail {

/// Work that is to be done in a thread of its own; lives until then.
struct submission {
  void (*run)(submission*) noexcept;
  submission* next = nullptr;  ///< in the run's intake. W who submits, R the run
};
/// In a thread of a run: create one of that run. Elsewhere hand it to @p to; null ends the program.
void submit(background_run* to, submission& s) noexcept;

}  // namespace detail

class background_run {
 public:
  /// Workers begin at once, as options (and flags and variables) say, but on substrate threads. Throws what
  /// run throws, also if there is a run already.
  explicit background_run(const options& base = {});
  /// Waits for all threads of the run. Nobody may submit from outside from here on.
  ~background_run();
  background_run(const background_run&) = delete;
  background_run& operator=(const background_run&) = delete;

  /// Call f() in a thread of the run, from any OS thread or thread. f must not throw; below a cancelled scope
  /// it begins, and gw::cancelled ends it. Cost from outside: an allocation, and a system call if the run has
  /// nothing else from outside to begin with.
  template <class F>
  void submit(F&& f) {
    struct task : detail::submission {
      explicit task(F&& fn) : submission{call}, f(std::forward<F>(fn)) {}
      static void call(submission* s) noexcept {
        const std::unique_ptr<task> self(static_cast<task*>(s));
        try {
          std::move(self->f)();
        } catch (const cancelled&) {  // nobody waits for it
        }
      }
      std::decay_t<F> f;
    };
    detail::submit(this, *new task(std::forward<F>(f)));
  }

 private:
  friend void detail::submit(background_run*, detail::submission&) noexcept;
  struct intake;
  std::shared_ptr<intake> in_;  ///< until the last submission has rung
};

}  // namespace godwit
