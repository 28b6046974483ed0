// See forked.hpp.
#include "runtime/forked.hpp"

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstring>
#include <pthread.h>
#include <type_traits>
#include <unistd.h>
#include <utility>

#include "base/check.hpp"
#include "context/context.hpp"
#include "heap/heap.hpp"
#include "io/events.hpp"
#include "runtime/family.hpp"
#include "runtime/faults.hpp"
#include "runtime/shared_objects.hpp"
#include "sched/worker.hpp"
#include "stack/private_frames.hpp"

namespace godwit::runtime {

namespace {

// Of the OS thread that forks, between its prepare handler and its parent or child handler. Others may fork
// at the same time: the C library holds no lock while it calls a handler (since glibc 2.36). The child has
// those of the thread that forked it.
[[gnu::tls_model("initial-exec")]] constinit thread_local stack::private_frames frames_;
[[gnu::tls_model("initial-exec")]] constinit thread_local stack::range stack_;  // that the frames are part of
[[gnu::tls_model("initial-exec")]] constinit thread_local std::uintptr_t live_ = 0;  // lowest to be kept
[[gnu::tls_model("initial-exec")]] constinit thread_local heap::part* part_ = nullptr;
static_assert(std::is_trivially_destructible_v<stack::private_frames>);  // else its first use may allocate

sigset_t mask_of_run_;  // of the thread that called run last
bool forked_ = false;
bool is_worker_ = false;                  // this process, whichever of its OS threads forks
transport::shm::window* heap_ = nullptr;  // of the worker's host; null: it has none
thread_local bool forks_worker_ = false;

constexpr std::uintptr_t below = 256 << 10;      // what other handlers of a fork may use of the stack
constexpr std::uintptr_t child_stack = 8 << 20;  // what the child may use below that

[[noreturn]] void no_memory() noexcept {
  base::fatal(
      "fork in a thread: no private memory for the %zu KiB of its stack: %s: raise the limit on memory "
      "(ulimit -v)",
      (stack_.high - live_) >> 10, std::strerror(errno));
}

/// On another stack than the thread's: its frames must keep still.
void call_elsewhere(void (*f)(void*)) noexcept {
  context::flush_windows();
  godwit_ctx_call_on(sched::this_worker().scheduler_stack().end(), f, nullptr);
}

void before_fork() noexcept {
  interrupt_guard::before_fork();
  part_ = heap::leave();  // the child has none, whatever handlers it has before ours
  // not by a worker (but perhaps by another OS thread of one), or in such a child already
  if (detail::hot().owner == nullptr) return;
  const auto here = reinterpret_cast<std::uintptr_t>(__builtin_frame_address(0));
  stack_ = sched::this_worker().shared_stack_of(here);
  if (stack_.high == 0) return;
  sigset_t all;  // no handler may change frames while they are elsewhere
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, nullptr);
  const auto page = static_cast<std::uintptr_t>(sysconf(_SC_PAGESIZE));
  live_ = (here - page) / page * page;  // with what this function calls
  call_elsewhere([](void*) {
    context::sanitizer_forget(live_, stack_.high);  // or copying would be a mistake
    if (!frames_.move_out(stack_, live_ - std::min(below, live_ - stack_.low), live_)) no_memory();
  });
}

void after_in_parent() noexcept {
  if (part_ != nullptr) heap::go_on(std::exchange(part_, nullptr));
  if (detail::hot().owner != nullptr && frames_.moved())
    call_elsewhere([](void*) {
      context::sanitizer_forget(live_, stack_.high);
      if (!frames_.move_back()) no_memory();
    });
  interrupt_guard::after_fork_in_parent();
}

void after_in_child() noexcept {
  part_ = nullptr;
  events::close_ours();
  const bool by_worker = detail::hot().owner != nullptr;  // else another OS thread, or no worker is here
  if (!by_worker && (!is_worker_ || forked_)) {
    interrupt_guard::after_fork_in_child(forks_worker_);
    if (!forks_worker_ && !forked_) shared_objects::after_fork();
    return;
  }
  forked_ = true;
  if (heap_ != nullptr) {
    heap::forget();
    if (!heap_->make_private())
      base::fatal("fork in a thread: no private memory for what threads allocated: %s", std::strerror(errno));
  }
  const bool in_process = by_worker && sched::this_worker().here().shape.in_process;
  if (by_worker && frames_.moved() && !frames_.keep(child_stack)) no_memory();
  context::use_hot_words(nullptr);
  base::set_fatal_hook(nullptr);
  forget_handlers();
  interrupt_guard::after_fork_in_child(false);
  if (in_process) pthread_sigmask(SIG_SETMASK, &mask_of_run_, nullptr);
}

}  // namespace

void watch_forks() noexcept {
  static const int watched = pthread_atfork(before_fork, after_in_parent, after_in_child);
  static_cast<void>(watched);
  pthread_sigmask(SIG_SETMASK, nullptr, &mask_of_run_);
}

pid_t fork_worker() noexcept {
  forks_worker_ = true;
  const pid_t pid = fork();
  forks_worker_ = false;
  if (pid == 0) {
    is_worker_ = true;
    shared_objects::in_worker();
  }
  return pid;
}

void keep_from_children(transport::shm::window& heap) noexcept { heap_ = &heap; }

const sigset_t& mask_of_run() noexcept { return mask_of_run_; }

bool in_forked_child() noexcept { return forked_; }

}  // namespace godwit::runtime
