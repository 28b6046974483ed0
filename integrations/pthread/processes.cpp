// Starting and waiting for other processes. A program that is started inherits the mask of the OS thread that
// starts it, and workers block everything: so the caller's own mask is put in its place first.
#include <cerrno>
#include <cstdarg>
#include <cstdio>
#include <spawn.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>
#include <vector>

#include <godwit/io.hpp>

#include "real.hpp"
#include "signals.hpp"
#include "thread.hpp"
#include "wait.hpp"

GODWIT_REAL(posix_spawn);
GODWIT_REAL(posix_spawnp);
GODWIT_REAL(popen);
GODWIT_REAL(system);
GODWIT_REAL(execve);
GODWIT_REAL(execvpe);
GODWIT_REAL(fexecve);
GODWIT_REAL(wait4);
GODWIT_REAL(waitid);

using namespace godwit::pthread;

namespace {

sigset_t mask_of_caller() noexcept {
  sigset_t mask;
  change_signal_mask(SIG_SETMASK, nullptr, &mask);
  return mask;
}

/// The worker has the caller's mask, for the length of one call that does not suspend.
class with_callers_mask {
 public:
  with_callers_mask() noexcept {
    if (!is_light()) return;
    use_real_mask(*self(), &before_);
    changed_ = true;
  }
  ~with_callers_mask() {
    if (changed_) set_real_mask(before_);
  }
  with_callers_mask(const with_callers_mask&) = delete;

 private:
  sigset_t before_{};
  bool changed_ = false;
};

using spawn_fn = decltype(::posix_spawn);
int spawn(spawn_fn* f, pid_t* pid, const char* path, const posix_spawn_file_actions_t* actions,
          const posix_spawnattr_t* attr, char* const argv[], char* const envp[]) noexcept {
  posix_spawnattr_t own;
  if (attr != nullptr)
    own = *attr;
  else
    posix_spawnattr_init(&own);
  short flags = 0;
  posix_spawnattr_getflags(&own, &flags);
  if ((flags & POSIX_SPAWN_SETSIGMASK) == 0) {
    const sigset_t mask = mask_of_caller();
    posix_spawnattr_setsigmask(&own, &mask);
    posix_spawnattr_setflags(&own, static_cast<short>(flags | POSIX_SPAWN_SETSIGMASK));
  }
  return f(pid, path, actions, &own, argv, envp);
}

/// f() with WNOHANG, until it says something else than "none yet".
template <class F>
auto wait_for_child(pid_t pid, F f) {
  const int fd = pid > 0 ? static_cast<int>(::syscall(SYS_pidfd_open, pid, 0)) : -1;
  for (std::uint64_t pause_ns = 100'000;; pause_ns = pause_ns < 5'000'000 ? pause_ns * 2 : pause_ns) {
    const auto r = f();
    if (r != 0 || !is_light()) {
      const int error = errno;
      if (r > 0) settle_handled(SIGCHLD);  // it was sent before
      if (fd >= 0) godwit::io::close(fd);
      errno = error;
      return r;
    }
    waited w = waited::woken;
    if (fd >= 0 && !self()->to_be_cancelled()) {
      pollfd p{fd, POLLIN, 0};
      on_own_stack([&] {
        if (godwit::io::poll(&p, 1, 1000) < 0 && errno == EINTR) w = waited::interrupted;
      });
    } else {
      w = wait_under(&r, {.deadline_ns = now_ns() + pause_ns,
                          .cancellable = true,
                          .interruptible = true,
                          .what = "child process"});
    }
    if (self()->to_be_cancelled()) {  // first: it interrupts as a signal does
      if (fd >= 0) godwit::io::close(fd);
      end_by_cancel();
    }
    if (w == waited::interrupted && handle_signals()) {
      if (fd >= 0) godwit::io::close(fd);
      errno = EINTR;
      return decltype(r)(-1);
    }
  }
}

}  // namespace

GODWIT_EXPORT pid_t vfork() noexcept { return ::fork(); }

GODWIT_EXPORT int posix_spawn(pid_t* __restrict pid, const char* __restrict path,
                              const posix_spawn_file_actions_t* __restrict actions,
                              const posix_spawnattr_t* __restrict attr, char* const argv[],
                              char* const envp[]) {
  return spawn(REAL(posix_spawn), pid, path, actions, attr, argv, envp);
}
GODWIT_EXPORT int posix_spawnp(pid_t* pid, const char* path, const posix_spawn_file_actions_t* actions,
                               const posix_spawnattr_t* attr, char* const argv[], char* const envp[]) {
  return spawn(REAL(posix_spawnp), pid, path, actions, attr, argv, envp);
}
GODWIT_EXPORT FILE* popen(const char* command, const char* mode) {
  const with_callers_mask m;
  return REAL(popen)(command, mode);
}
GODWIT_EXPORT int system(const char* command) {
  if (!is_light()) return REAL(system)(command);
  if (command == nullptr) return 1;
  struct sigaction ignore {
  }, interrupt{}, quit{};
  ignore.sa_handler = SIG_IGN;
  change_signal_action(SIGINT, &ignore, &interrupt);
  change_signal_action(SIGQUIT, &ignore, &quit);
  posix_spawnattr_t attr;
  posix_spawnattr_init(&attr);
  sigset_t defaults, block, mask;
  sigemptyset(&defaults);
  if (interrupt.sa_handler != SIG_IGN) sigaddset(&defaults, SIGINT);
  if (quit.sa_handler != SIG_IGN) sigaddset(&defaults, SIGQUIT);
  sigemptyset(&block);
  sigaddset(&block, SIGCHLD);
  change_signal_mask(SIG_BLOCK, &block, &mask);
  posix_spawnattr_setsigdefault(&attr, &defaults);
  posix_spawnattr_setsigmask(&attr, &mask);
  posix_spawnattr_setflags(&attr, POSIX_SPAWN_SETSIGDEF | POSIX_SPAWN_SETSIGMASK);
  const char* argv[] = {"sh", "-c", command, nullptr};
  pid_t pid = 0;
  int status = -1;
  if (posix_spawn(&pid, "/bin/sh", nullptr, &attr, const_cast<char**>(argv), environ) != 0)
    status = 127 << 8;
  else
    while (waitpid(pid, &status, 0) < 0 && errno == EINTR) {
    }
  change_signal_action(SIGINT, &interrupt, nullptr);
  change_signal_action(SIGQUIT, &quit, nullptr);
  change_signal_mask(SIG_SETMASK, &mask, nullptr);
  return status;
}

GODWIT_EXPORT int execve(const char* path, char* const argv[], char* const envp[]) noexcept {
  const with_callers_mask m;
  return REAL(execve)(path, argv, envp);
}
GODWIT_EXPORT int execv(const char* path, char* const argv[]) noexcept { return execve(path, argv, environ); }
GODWIT_EXPORT int execvpe(const char* file, char* const argv[], char* const envp[]) noexcept {
  const with_callers_mask m;
  return REAL(execvpe)(file, argv, envp);
}
GODWIT_EXPORT int execvp(const char* file, char* const argv[]) noexcept {
  return execvpe(file, argv, environ);
}
GODWIT_EXPORT int fexecve(int fd, char* const argv[], char* const envp[]) noexcept {
  const with_callers_mask m;
  return REAL(fexecve)(fd, argv, envp);
}
namespace {
std::vector<char*> rest_of(const char* first, va_list args) {
  std::vector<char*> all{const_cast<char*>(first)};
  while (all.back() != nullptr) all.push_back(va_arg(args, char*));
  return all;
}
}  // namespace
GODWIT_EXPORT int execl(const char* path, const char* arg, ...) noexcept {
  va_list args;
  va_start(args, arg);
  const auto argv = rest_of(arg, args);
  va_end(args);
  return execve(path, argv.data(), environ);
}
GODWIT_EXPORT int execlp(const char* file, const char* arg, ...) noexcept {
  va_list args;
  va_start(args, arg);
  const auto argv = rest_of(arg, args);
  va_end(args);
  return execvpe(file, argv.data(), environ);
}
GODWIT_EXPORT int execle(const char* path, const char* arg, ...) noexcept {
  va_list args;
  va_start(args, arg);
  const auto argv = rest_of(arg, args);
  char* const* envp = va_arg(args, char* const*);
  va_end(args);
  return execve(path, argv.data(), envp);
}

/// (The header says that wait4 throws nothing: cancellation has to come from a function that may.)
static pid_t wait_until(pid_t pid, int* status, int options, rusage* usage) {
  if (!is_light() || (options & WNOHANG) != 0) return REAL(wait4)(pid, status, options, usage);
  return wait_for_child(pid, [=] { return REAL(wait4)(pid, status, options | WNOHANG, usage); });
}
GODWIT_EXPORT pid_t wait4(pid_t pid, int* status, int options, rusage* usage) noexcept {
  return wait_until(pid, status, options, usage);
}
GODWIT_EXPORT pid_t wait3(int* status, int options, rusage* usage) noexcept {
  return wait_until(-1, status, options, usage);
}
GODWIT_EXPORT pid_t waitpid(pid_t pid, int* status, int options) {
  test_cancel();
  return wait_until(pid, status, options, nullptr);
}
GODWIT_EXPORT pid_t wait(int* status) { return waitpid(-1, status, 0); }
GODWIT_EXPORT int waitid(idtype_t type, id_t id, siginfo_t* info, int options) {
  if (!is_light() || (options & WNOHANG) != 0) return REAL(waitid)(type, id, info, options);
  siginfo_t own{};
  const int r = wait_for_child(type == P_PID ? static_cast<pid_t>(id) : -1, [&] {
    own.si_pid = 0;
    const int n = REAL(waitid)(type, id, &own, options | WNOHANG);
    return n < 0 ? -1 : own.si_pid != 0 ? 1 : 0;
  });
  if (r > 0 && info != nullptr) *info = own;
  return r > 0 ? 0 : r;
}
