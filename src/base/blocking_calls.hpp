// System calls that would block are refused in a simulated run.
//
// All workers take turns on one OS thread: while a call of the program blocks, nothing goes on, and no
// virtual time passes. So the thread that simulates asks the kernel to turn its system calls into signals
// (syscall user dispatch: Linux 5.11, on AArch64 later). The handler makes the call in the program's place,
// without waiting where the call can wait; if there is nothing to be had without waiting, the run ends with
// an error.
//
// Nothing of it is inherited: not by other OS threads, not by child processes, not through exec. (A seccomp
// filter would be, and could never be taken off.) Where the kernel cannot do it, and under valgrind, calls
// block as they do anywhere. Made by runtime/run_sim.cpp. docs/scale.md. Test: tests/sim/blocking_test.cpp.
#pragma once

#include <cstdint>
#include <span>

namespace godwit::base {

/// A call that would block.
struct blocking_call {
  const char* name;    ///< of the system call
  const char* advice;  ///< what to do instead: the end of a sentence that begins with "instead"
  std::span<const std::uintptr_t>
      callers;  ///< return addresses, the innermost first; libraries' are left out
};

/// On the calling thread, as long as it lives. One at a time in a process.
class no_blocking_calls {
 public:
  /// @p refuse is called, in a signal handler, for a call that would block. It does not come back.
  explicit no_blocking_calls(void (*refuse)(const blocking_call&) noexcept) noexcept;
  ~no_blocking_calls();
  no_blocking_calls(const no_blocking_calls&) = delete;
  no_blocking_calls& operator=(const no_blocking_calls&) = delete;

  /// Calls of the thread that simulates are looked at from now on, or not. (Local: a store.)
  static void look(bool at_calls) noexcept { looks_ = at_calls ? 1 : 0; }
  /// Calls of the library itself that do not block, and may be frequent: nobody looks at them.
  class let_through {
   public:
    let_through() noexcept { looks_ = 0; }
    ~let_through() { looks_ = looked_; }
    let_through(const let_through&) = delete;
    let_through& operator=(const let_through&) = delete;

   private:
    const char looked_ = looks_;
  };

 private:
  static inline volatile char looks_ = 0;  // the kernel reads it at each call: 1 (block) or 0 (allow)
};

}  // namespace godwit::base
