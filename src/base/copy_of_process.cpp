// See copy_of_process.hpp.
#include "base/copy_of_process.hpp"

#include <csignal>
#include <ctime>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/blocking_calls.hpp"

namespace godwit::base {

#if defined(__sparc__)  // where the call tells parent and child apart by a second register
bool done_in_copy(bool (*)(void*), void*, int) noexcept { return false; }
#else
bool done_in_copy(bool (*f)(void* argument), void* argument, int patience_ms) noexcept {
  no_blocking_calls::look(false);  // in a simulation one may wait for this, and not in virtual time
  // By the call itself: fork takes locks that the interrupted code may have.
  const auto copy = static_cast<pid_t>(syscall(SYS_clone, 0, nullptr, nullptr, nullptr, nullptr));
  if (copy == 0) {
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    prctl(PR_SET_DUMPABLE, 0);  // no core file of its own
    _exit(f(argument) ? 0 : 1);
  }
  if (copy < 0) return false;
  constexpr timespec one_ms{0, 1'000'000};
  int status = 1;
  for (int ms = 0; waitpid(copy, &status, __WCLONE | WNOHANG) == 0; ++ms) {
    if (ms == patience_ms) kill(copy, SIGKILL);
    nanosleep(&one_ms, nullptr);
  }
  return status == 0;
}
#endif

}  // namespace godwit::base
