// setuid and its like: the C library changes all OS threads that it knows, and waits for each. Of ours it
// knows only some, by blocks of thread-local storage that others use by now, so it would wait for ever. Here
// every OS thread of the process makes the system call: it is sent the signal that the C library keeps for
// this, one thread after the other. Test: tests/pthread/programs/identity.c
#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <dirent.h>
#include <grp.h>
#include <linux/futex.h>
#include <sched.h>
#include <sys/syscall.h>
#include <unistd.h>
#include <vector>

#include "identity.hpp"
#include "real.hpp"
#include "report.hpp"
#include "thread.hpp"

GODWIT_REAL(setuid);
GODWIT_REAL(setgid);
GODWIT_REAL(seteuid);
GODWIT_REAL(setegid);
GODWIT_REAL(setreuid);
GODWIT_REAL(setregid);
GODWIT_REAL(setresuid);
GODWIT_REAL(setresgid);
GODWIT_REAL(setgroups);

// Where the handler returns to: the kernel takes none of its own on x86-64.
extern "C" [[gnu::visibility("hidden")]] void godwit_pthread_end_of_handler();
asm(R"(
        .text
        .type   godwit_pthread_end_of_handler, @function
godwit_pthread_end_of_handler:
        movl    $15, %eax
        syscall
)");

namespace godwit::pthread {

namespace {

constexpr int the_signal = 33;  // the C library's own for this (SIGSETXID): nobody blocks it

struct request {
  long number;
  unsigned long arguments[3];
};

std::atomic<std::uint32_t> lock_{0};
request request_;            // W under lock_; R handlers, one at a time
std::uint32_t answers_ = 0;  // futex: raised by each handler
long answer_ = 0;            // of the last handler
std::vector<int>* known_ = nullptr;

// The handler may find any thread-local storage, and must not touch errno.
long raw(long number, unsigned long a, unsigned long b, unsigned long c) noexcept {
  long r;
  register unsigned long r10 asm("r10") = 0;
  asm volatile("syscall" : "=a"(r) : "a"(number), "D"(a), "S"(b), "d"(c), "r"(r10) : "rcx", "r11", "memory");
  return r;
}

long perform(const request& r) noexcept {
  return raw(r.number, r.arguments[0], r.arguments[1], r.arguments[2]);
}

void on_request(int) noexcept {
  answer_ = perform(request_);
  __atomic_add_fetch(&answers_, 1, __ATOMIC_RELEASE);
  raw(SYS_futex, reinterpret_cast<unsigned long>(&answers_), FUTEX_WAKE_PRIVATE, 1);
}

struct kernel_action {
  void (*handler)(int) noexcept;
  unsigned long flags;
  void (*restorer)();
  unsigned long mask;
};
constexpr unsigned long with_restorer = 0x04000000;  // SA_RESTORER

/// While it lives, the signal asks for request_.
class take_signal {
 public:
  take_signal() noexcept {
    const kernel_action mine{on_request, SA_RESTART | SA_ONSTACK | with_restorer,
                             godwit_pthread_end_of_handler, ~0ul};
    ::syscall(SYS_rt_sigaction, the_signal, &mine, &before_, sizeof before_.mask);
  }
  ~take_signal() { ::syscall(SYS_rt_sigaction, the_signal, &before_, nullptr, sizeof before_.mask); }
  take_signal(const take_signal&) = delete;

 private:
  kernel_action before_{};
};

/// Numbers of the OS threads that there are. False: /proc is not there.
bool list_threads(std::vector<int>& out) {
  DIR* dir = opendir("/proc/self/task");
  if (dir == nullptr) return false;
  out.clear();
  while (const dirent* e = readdir(dir))
    if (const int tid = std::atoi(e->d_name); tid > 0) out.push_back(tid);
  closedir(dir);
  return !out.empty();
}

/// Has OS thread @p tid perform the request; 0 too if it has ended meanwhile.
long ask(int tid) noexcept {
  const std::uint32_t before = __atomic_load_n(&answers_, __ATOMIC_ACQUIRE);
  if (::syscall(SYS_tgkill, getpid(), tid, the_signal) != 0) return 0;
  while (__atomic_load_n(&answers_, __ATOMIC_ACQUIRE) == before) {
    constexpr timespec a_while{0, 10'000'000};
    ::syscall(SYS_futex, &answers_, FUTEX_WAIT_PRIVATE, before, &a_while, nullptr, 0);
    if (::syscall(SYS_tgkill, getpid(), tid, 0) != 0) return 0;
  }
  return answer_;
}

/// @p number with these arguments, by all OS threads of the process.
int change(long number, unsigned long a, unsigned long b = 0, unsigned long c = 0) noexcept {
  lock_identity();
  const request wanted{number, {a, b, c}};
  request_ = wanted;
  long r = perform(wanted);
  if (r == 0) {
    const take_signal taken;
    const int me = static_cast<int>(::syscall(SYS_gettid));
    std::vector<int> done{me}, now;
    // Again until all are done: one that had not been asked yet may have started another.
    for (bool more = true; more;) {
      more = false;
      if (!list_threads(now) && known_ != nullptr) now = *known_;
      for (const int tid : now) {
        if (std::find(done.begin(), done.end(), tid) != done.end()) continue;
        if (const long other = ask(tid); other != 0)
          fail("an OS thread cannot change its user or groups as the others did: error %ld", -other);
        done.push_back(tid);
        more = true;
      }
    }
  }
  unlock_identity();
  if (r == 0) return 0;
  errno = static_cast<int>(-r);
  return -1;
}

/// The C library's own function does: before the run, and in a forked child.
bool alone() noexcept { return !running_ || (self() != nullptr && !is_light()); }

}  // namespace

void lock_identity() noexcept {
  while (lock_.exchange(1, std::memory_order_acquire) != 0) ::sched_yield();
}
void unlock_identity() noexcept { lock_.store(0, std::memory_order_release); }

void remember_threads() {
  static std::vector<int>& known = *new std::vector<int>;  // never destroyed: threads go on during exit
  if (list_threads(known)) known_ = &known;
}

}  // namespace godwit::pthread

using namespace godwit::pthread;

GODWIT_EXPORT int setuid(uid_t id) noexcept { return alone() ? REAL(setuid)(id) : change(SYS_setuid, id); }
GODWIT_EXPORT int setgid(gid_t id) noexcept { return alone() ? REAL(setgid)(id) : change(SYS_setgid, id); }
GODWIT_EXPORT int setreuid(uid_t real, uid_t effective) noexcept {
  return alone() ? REAL(setreuid)(real, effective) : change(SYS_setreuid, real, effective);
}
GODWIT_EXPORT int setregid(gid_t real, gid_t effective) noexcept {
  return alone() ? REAL(setregid)(real, effective) : change(SYS_setregid, real, effective);
}
GODWIT_EXPORT int setresuid(uid_t real, uid_t effective, uid_t saved) noexcept {
  return alone() ? REAL(setresuid)(real, effective, saved) : change(SYS_setresuid, real, effective, saved);
}
GODWIT_EXPORT int setresgid(gid_t real, gid_t effective, gid_t saved) noexcept {
  return alone() ? REAL(setresgid)(real, effective, saved) : change(SYS_setresgid, real, effective, saved);
}
GODWIT_EXPORT int seteuid(uid_t id) noexcept {
  if (alone()) return REAL(seteuid)(id);
  if (id != static_cast<uid_t>(-1)) return setresuid(static_cast<uid_t>(-1), id, static_cast<uid_t>(-1));
  errno = EINVAL;
  return -1;
}
GODWIT_EXPORT int setegid(gid_t id) noexcept {
  if (alone()) return REAL(setegid)(id);
  if (id != static_cast<gid_t>(-1)) return setresgid(static_cast<gid_t>(-1), id, static_cast<gid_t>(-1));
  errno = EINVAL;
  return -1;
}
GODWIT_EXPORT int setgroups(std::size_t count, const gid_t* groups) noexcept {
  return alone() ? REAL(setgroups)(count, groups)
                 : change(SYS_setgroups, count, reinterpret_cast<unsigned long>(groups));
}
GODWIT_EXPORT int initgroups(const char* user, gid_t group) {
  int count = 64;
  std::vector<gid_t> groups(static_cast<std::size_t>(count));
  while (getgrouplist(user, group, groups.data(), &count) < 0) {
    const auto more = std::max(groups.size() * 2, static_cast<std::size_t>(count));
    groups.resize(more);
    count = static_cast<int>(more);
  }
  const long most = sysconf(_SC_NGROUPS_MAX);
  return setgroups(static_cast<std::size_t>(most > 0 ? std::min<long>(count, most) : count), groups.data());
}
