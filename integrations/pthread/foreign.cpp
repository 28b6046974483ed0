// See foreign.hpp. Wake-ups from outside the run go through its source of events: workers look there.
#include "foreign.hpp"

#include <atomic>

#include <godwit/detail/hot.hpp>

#include "io/events.hpp"

#include "thread.hpp"

namespace godwit::pthread {

namespace {

// A stack of suspended threads. Few: a list of small blocks would be wasted on it. W foreign threads, R
// workers.
constexpr unsigned most = 4096;
std::atomic<std::uint32_t> lock_{0};
std::atomic<std::uint32_t> count_{0};
struct one {
  detail::waiter* who;
  detail::wakes by;
};
one waiting_[most];

// the worker's: its own source has some as well
__thread bool others_too_ __attribute__((tls_model("initial-exec"))) = false;

void lock() noexcept {
  while (lock_.exchange(1, std::memory_order_acquire) != 0) __builtin_ia32_pause();
}
void unlock() noexcept { lock_.store(0, std::memory_order_release); }

bool collect(std::int64_t wait_ns) noexcept {
  if (count_.load(std::memory_order_acquire) != 0) wait_ns = 0;
  others_too_ = events::source().collect(wait_ns);
  return others_too_ || count_.load(std::memory_order_acquire) != 0;
}

void deliver() noexcept {
  while (count_.load(std::memory_order_acquire) != 0) {
    one w{};
    lock();
    if (const std::uint32_t n = count_.load(std::memory_order_relaxed); n != 0) {
      w = waiting_[n - 1];
      count_.store(n - 1, std::memory_order_release);
    }
    unlock();
    if (w.who != nullptr) detail::unpark(w.who, w.by);
  }
  if (others_too_) events::source().deliver();
}

void interrupt() noexcept { events::source().interrupt(); }
void hasten() noexcept { events::source().hasten(); }

constexpr detail::event_source source_{collect, deliver, interrupt, hasten};

}  // namespace

void resume_waiter(detail::waiter* w, detail::wakes by) noexcept {
  if (is_light() || detail::on_worker()) {
    detail::unpark(w, by);
    return;
  }
  for (;;) {
    lock();
    const std::uint32_t n = count_.load(std::memory_order_relaxed);
    if (n < most) {
      waiting_[n] = {w, by};
      count_.store(n + 1, std::memory_order_release);
    }
    unlock();
    interrupt();
    if (n < most) return;
    __builtin_ia32_pause();
  }
}

void install_foreign_wakes() noexcept { detail::set_event_source(&source_); }

}  // namespace godwit::pthread
