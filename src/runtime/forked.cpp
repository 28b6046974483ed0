// See forked.hpp.
#include "runtime/forked.hpp"

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstring>
#include <pthread.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/check.hpp"
#include "context/context.hpp"
#include "runtime/faults.hpp"
#include "sched/worker.hpp"

namespace godwit::runtime {

namespace {

// Written by the thread that forks, between its prepare handler and its parent or child handler. Workers that are threads of one
// process fork one at a time: the C library holds a lock meanwhile.
stack::range moved_;              // the frames that are in private memory; empty: none are
std::byte* shared_ = nullptr;     // where the shared pages of that range are meanwhile
stack::range stack_;              // all of the stack that the frames are part of
std::byte* switch_to_ = nullptr;  // a stack to stand on while the frames are moved
sigset_t mask_;                   // of the thread that forks
sigset_t
    mask_of_run_;  // of the thread that called run last: workers that are threads block what is not theirs
bool forked_ = false;

std::uintptr_t below_ = 0;  // of moved_, what lies below the frames

constexpr std::uintptr_t most_below = 256 << 10;  // for what other handlers of a fork call
constexpr std::uintptr_t child_stack = 8 << 20;   // what the child may use below that

void* at(std::uintptr_t a) noexcept { return reinterpret_cast<void*>(a); }

void* move_pages(void* from, std::size_t bytes, void* to) noexcept {
  return mremap(from, bytes, bytes, MREMAP_MAYMOVE | MREMAP_FIXED, to);
}

void* map_private(void* where, std::size_t bytes, int protection) noexcept {
  return mmap(where, bytes, protection,
              MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | (where != nullptr ? MAP_FIXED : 0), -1, 0);
}

[[noreturn]] void no_memory() noexcept {
  base::fatal(
      "fork in a thread: no private memory for the %zu KiB of its stack: %s: raise the limit on memory "
      "(ulimit -v)",
      (moved_.high - moved_.low) >> 10, std::strerror(errno));
}

// These run on another stack: the frames must keep still.
void move_out(void*) noexcept {
  const std::size_t bytes = moved_.high - moved_.low;
  void* copy = map_private(nullptr, bytes, PROT_READ | PROT_WRITE);
  shared_ = static_cast<std::byte*>(map_private(nullptr, bytes, PROT_NONE));
  if (copy == MAP_FAILED || static_cast<void*>(shared_) == MAP_FAILED) no_memory();
  context::sanitizer_forget(moved_.low, moved_.high);
  std::memcpy(static_cast<std::byte*>(copy) + below_, at(moved_.low + below_), bytes - below_);
  if (move_pages(at(moved_.low), bytes, shared_) == MAP_FAILED ||
      move_pages(copy, bytes, at(moved_.low)) == MAP_FAILED)
    no_memory();
}
void move_back(void*) noexcept {
  const std::size_t bytes = moved_.high - moved_.low;
  context::sanitizer_forget(moved_.low, moved_.high);
  std::memcpy(shared_ + below_, at(moved_.low + below_), bytes - below_);
  if (move_pages(shared_, bytes, at(moved_.low)) == MAP_FAILED) no_memory();
}

void before_fork() noexcept {
  if (detail::hot().owner == nullptr) return;  // not in a worker, or in such a child already
  const sched::worker& w = sched::this_worker();
  moved_ = {};
  const auto here = reinterpret_cast<std::uintptr_t>(__builtin_frame_address(0));
  stack_ = w.shared_stack_of(here);
  if (stack_.high == 0) return;
  sigset_t all;  // no handler may change frames while they are elsewhere
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &mask_);
  context::flush_windows();
  const auto page = static_cast<std::uintptr_t>(sysconf(_SC_PAGESIZE));
  const std::uintptr_t low = (here - page) / page * page;  // what this function calls included
  below_ = std::min(most_below, low - stack_.low);
  moved_ = {low - below_, stack_.high};
  switch_to_ = w.scheduler_stack();
  godwit_ctx_call_on(
      switch_to_, [](void* a) { move_out(a); }, nullptr);
}

void after_in_parent() noexcept {
  if (detail::hot().owner == nullptr || moved_.high == 0) return;
  context::flush_windows();
  godwit_ctx_call_on(
      switch_to_, [](void* a) { move_back(a); }, nullptr);
  moved_ = {};
  pthread_sigmask(SIG_SETMASK, &mask_, nullptr);
}

void after_in_child() noexcept {
  if (detail::hot().owner == nullptr) return;
  forked_ = true;
  const bool in_process = sched::this_worker().in_process();
  if (moved_.high != 0) {
    // Below the frames the stack is shared still.
    const std::uintptr_t usable = moved_.low - std::min(moved_.low - stack_.low, child_stack);
    const bool done =
        (usable == moved_.low ||
         map_private(at(usable), moved_.low - usable, PROT_READ | PROT_WRITE) != MAP_FAILED) &&
        (usable == stack_.low || map_private(at(stack_.low), usable - stack_.low, PROT_NONE) != MAP_FAILED);
    if (!done) no_memory();
    munmap(shared_, moved_.high - moved_.low);
  }
  context::use_hot_words(nullptr);
  base::set_fatal_hook(nullptr);
  forget_handlers();
  if (in_process)
    pthread_sigmask(SIG_SETMASK, &mask_of_run_, nullptr);
  else if (moved_.high != 0)
    pthread_sigmask(SIG_SETMASK, &mask_, nullptr);
}

}  // namespace

void watch_forks() noexcept {
  static const int watched = pthread_atfork(before_fork, after_in_parent, after_in_child);
  static_cast<void>(watched);
  pthread_sigmask(SIG_SETMASK, nullptr, &mask_of_run_);
}

bool in_forked_child() noexcept { return forked_; }

}  // namespace godwit::runtime
