// What OS threads that are no workers have to do with tasks: communication threads, and the initial thread
// before the first run.
//
// Only a worker may make tasks ready. So others leave tasks to be woken in a stack, and data of tasks to be
// begun in a list. Workers come by when they look for events; those that may not create tasks there wake one
// that can (serve). It is parked as waiting for something outside, so the run does not end and is not
// deadlocked meanwhile.
#include "internal.hpp"

#include <mutex>
#include <utility>

#include <godwit/thread.hpp>

#include "io/events.hpp"
#include "seams/timer.hpp"

namespace godwit::chapel::outside {

namespace {

bool expected_ = false;

std::atomic<waiting*> to_wake_{nullptr};

spin_lock lock_;  // of the next three
std::vector<void*>& to_begin_ = *new std::vector<void*>;
detail::waiter* server_ = nullptr;  // suspended
bool stopping_ = false;
thread& serving_ = *new thread;  // not destroyed: the process may end while it runs

bool server_has_work() noexcept { return !to_begin_.empty() || stopping_; }

bool something_left() noexcept {
  if (to_wake_.load(std::memory_order_acquire) != nullptr) return true;
  const std::lock_guard guard(lock_);
  return server_ != nullptr && server_has_work();
}

thread_local bool others_too_ = false;  // the worker's: the usual source has some as well

bool collect(std::int64_t wait_ns) noexcept {
  others_too_ = events::source().collect(something_left() ? 0 : wait_ns);
  return others_too_ || something_left();
}

void deliver() noexcept {
  for (waiting* w = to_wake_.exchange(nullptr, std::memory_order_acquire); w != nullptr;) {
    waiting* next = w->next;  // its frame is gone once it may run
    detail::unpark(w->who, detail::wakes::inside);
    w = next;
  }
  lock_.lock();
  detail::waiter* server = server_has_work() ? std::exchange(server_, nullptr) : nullptr;
  lock_.unlock();
  if (server != nullptr) detail::unpark(server, detail::wakes::outside);
  if (others_too_) events::source().deliver();
}

void interrupt() noexcept { events::source().interrupt(); }
void hasten() noexcept { events::source().hasten(); }

constexpr detail::event_source source_{collect, deliver, interrupt, hasten};

bool publish(void*, detail::waiter* me) noexcept {
  const std::lock_guard guard(lock_);
  if (server_has_work()) return false;
  server_ = me;
  return true;
}

void serve() {
  for (;;) {
    begin_those_left();
    {
      const std::lock_guard guard(lock_);
      if (stopping_ && to_begin_.empty()) return;
    }
    detail::park(publish, nullptr, detail::wakes::outside, "other OS threads", {});
  }
}

}  // namespace

void begin_later(void* data) {
  {
    const std::lock_guard guard(lock_);
    to_begin_.push_back(data);
  }
  if (expected_) interrupt();
}

void wake_later(waiting& w) noexcept {
  w.next = to_wake_.load(std::memory_order_relaxed);
  while (!to_wake_.compare_exchange_weak(w.next, &w, std::memory_order_release, std::memory_order_relaxed)) {
  }
  interrupt();
}

void begin_those_left() {
  std::vector<void*> all;
  {
    const std::lock_guard guard(lock_);
    all.swap(to_begin_);
  }
  for (void* data : all) begin_inside(data);
}

void start() {
  stopping_ = false;
  serving_ = thread(serve);
}

void stop() noexcept {
  // Others may still wait for an OS thread to wake them.
  for (gwchpl_counts c = gwchpl_count(); c.queued + c.running != 0; c = gwchpl_count()) gwchpl_sleep(1e-3);
  lock_.lock();
  stopping_ = true;
  detail::waiter* server = std::exchange(server_, nullptr);
  lock_.unlock();
  if (server != nullptr) detail::unpark(server, detail::wakes::outside);
  serving_.join();
}

bool expected() noexcept { return expected_; }

}  // namespace godwit::chapel::outside

extern "C" void gwchpl_outside(void) {
  godwit::chapel::outside::expected_ = true;
  godwit::detail::set_event_source(&godwit::chapel::outside::source_);
}
