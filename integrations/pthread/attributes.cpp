// What a program may ask of a thread, or tell it: name, stack, CPU, priority.
#include <cstring>
#include <sched.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "real.hpp"
#include "report.hpp"
#include "thread.hpp"

GODWIT_REAL(pthread_getattr_np);
GODWIT_REAL(pthread_setname_np);
GODWIT_REAL(pthread_getname_np);
GODWIT_REAL(pthread_getaffinity_np);
GODWIT_REAL(pthread_setaffinity_np);
GODWIT_REAL(pthread_getschedparam);
GODWIT_REAL(pthread_setschedparam);
GODWIT_REAL(pthread_setschedprio);
GODWIT_REAL(pthread_getcpuclockid);
GODWIT_REAL(gettid);

using namespace godwit::pthread;

namespace {
/// Null: an OS thread, the C library knows.
thread* light(pthread_t th) noexcept {
  thread* t = thread_of(th);
  return t != nullptr && !t->heavy ? t : nullptr;
}
}  // namespace

GODWIT_EXPORT int pthread_getattr_np(pthread_t th, pthread_attr_t* attr) noexcept {
  const thread* t = light(th);
  if (t == nullptr) return REAL(pthread_getattr_np)(th, attr);
  pthread_attr_init(attr);
  // A thread that has not begun has no stack yet: the size is known.
  if (t->program_stack != nullptr)
    pthread_attr_setstack(attr, t->program_stack, t->program_stack_bytes);
  else if (t->stack_low != nullptr)
    pthread_attr_setstack(attr, t->stack_low, static_cast<std::size_t>(t->stack_high - t->stack_low));
  else
    pthread_attr_setstacksize(attr, thread_stack_bytes());
  pthread_attr_setguardsize(attr, 4096);
  const bool detached = t->what_then.load(std::memory_order_relaxed) == thread::fate::detached;
  pthread_attr_setdetachstate(attr, detached ? PTHREAD_CREATE_DETACHED : PTHREAD_CREATE_JOINABLE);
  return 0;
}
GODWIT_EXPORT int pthread_setname_np(pthread_t th, const char* name) noexcept {
  thread* t = light(th);
  if (t == nullptr) return REAL(pthread_setname_np)(th, name);
  const std::size_t n = std::strlen(name);
  if (n >= sizeof t->name) return ERANGE;
  std::memcpy(t->name, name, n + 1);
  return 0;
}
GODWIT_EXPORT int pthread_getname_np(pthread_t th, char* name, std::size_t bytes) noexcept {
  const thread* t = light(th);
  if (t == nullptr) return REAL(pthread_getname_np)(th, name, bytes);
  if (bytes < sizeof t->name) return ERANGE;
  std::memcpy(name, t->name, sizeof t->name);
  return 0;
}
// A thread runs on any worker: what CPUs it may use are those of the process.
GODWIT_EXPORT int pthread_getaffinity_np(pthread_t th, std::size_t bytes, cpu_set_t* set) noexcept {
  if (light(th) == nullptr) return REAL(pthread_getaffinity_np)(th, bytes, set);
  return sched_getaffinity(0, bytes, set) == 0 ? 0 : errno;
}
GODWIT_EXPORT int pthread_setaffinity_np(pthread_t th, std::size_t bytes, const cpu_set_t* set) noexcept {
  if (light(th) == nullptr) return REAL(pthread_setaffinity_np)(th, bytes, set);
  static bool said = false;
  not_supported(said, "binding a thread to CPUs",
                "threads run wherever there is a worker (bind those: GODWIT_BIND=cores)");
  return 0;
}
GODWIT_EXPORT int pthread_getschedparam(pthread_t th, int* policy, sched_param* param) noexcept {
  if (light(th) == nullptr) return REAL(pthread_getschedparam)(th, policy, param);
  *policy = SCHED_OTHER;
  *param = {};
  return 0;
}
namespace godwit::pthread {
int check_scheduling(int policy, int priority) noexcept {
  const int least = sched_get_priority_min(policy), most = sched_get_priority_max(policy);
  if (least < 0 || priority < least || priority > most) return EINVAL;
  if (policy != SCHED_FIFO && policy != SCHED_RR) return 0;
  rlimit limit{};
  if (geteuid() != 0 && (getrlimit(RLIMIT_RTPRIO, &limit) != 0 || limit.rlim_cur == 0)) return EPERM;
  static bool said = false;
  not_supported(said, "SCHED_FIFO or SCHED_RR for a thread", "threads take turns on their workers");
  return ENOTSUP;
}
}  // namespace godwit::pthread
GODWIT_EXPORT int pthread_setschedparam(pthread_t th, int policy, const sched_param* param) noexcept {
  if (light(th) == nullptr) return REAL(pthread_setschedparam)(th, policy, param);
  return check_scheduling(policy, param->sched_priority);
}
GODWIT_EXPORT int pthread_setschedprio(pthread_t th, int priority) noexcept {
  if (light(th) == nullptr) return REAL(pthread_setschedprio)(th, priority);
  return priority == 0 ? 0 : EINVAL;
}
GODWIT_EXPORT int pthread_getcpuclockid(pthread_t th, clockid_t* clock) noexcept {
  if (light(th) == nullptr) return REAL(pthread_getcpuclockid)(th, clock);
  static bool said = false;
  not_supported(said, "the CPU time of a thread", "its clock is that of the whole process");
  *clock = CLOCK_PROCESS_CPUTIME_ID;
  return 0;
}
GODWIT_EXPORT pid_t gettid() noexcept {
  const thread* t = self();
  return t != nullptr && !t->heavy ? t->tid : REAL(gettid)();
}
