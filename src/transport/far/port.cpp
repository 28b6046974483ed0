// See port.hpp and docs/protocols/far.md. Orderings:
//   R1  post: contents before now = posted (release);           companion: now (acquire) before contents
//   R2  answer: contents before now = done (release);           worker: now (acquire) before contents
//   R3  sleep: waiting (deaf) = 1, fence, look again, sleep;    answer: now = done (posted), fence, look at
// waiting
#include "transport/far/port.hpp"

#include "base/pause.hpp"

#include <algorithm>
#include <cerrno>
#include <climits>
#include <cstring>
#include <ctime>
#include <linux/futex.h>
#include <sched.h>
#include <sys/syscall.h>
#include <unistd.h>

namespace godwit::transport::far {

namespace {
// Some microseconds: the companion may need this very CPU.
constexpr int spins_before_sleep = 50;
}  // namespace

void sleep_on(const std::atomic<std::uint32_t>& word, std::uint32_t seen, std::uint32_t timeout_us) noexcept {
  const timespec t{static_cast<time_t>(timeout_us / 1'000'000),
                   static_cast<long>(timeout_us % 1'000'000) * 1000};
  syscall(SYS_futex, reinterpret_cast<const std::uint32_t*>(&word), FUTEX_WAIT, seen,
          timeout_us != 0 ? &t : nullptr, nullptr, 0);
}

void wake_sleepers(const std::atomic<std::uint32_t>& word) noexcept {
  syscall(SYS_futex, reinterpret_cast<const std::uint32_t*>(&word), FUTEX_WAKE, INT_MAX, nullptr, nullptr, 0);
}

void ring_bell(words& of) noexcept {
  std::atomic_thread_fence(std::memory_order_seq_cst);  // R3
  if (of.deaf.load(std::memory_order_relaxed) == 0) return;
  of.bell.fetch_add(1, std::memory_order_release);
  wake_sleepers(of.bell);
}

void execute_on(const shm::segment& memory, header& head, const std::byte* data) noexcept {
  constexpr auto order = std::memory_order_seq_cst;
  auto* at = memory.at(head.target, reinterpret_cast<word*>(head.address));
  switch (head.what) {
    case op::load:
      head.result = at->load(order);
      break;
    case op::store:
      at->store(head.a, order);
      break;
    case op::exchange:
      head.result = at->exchange(head.a, order);
      break;
    case op::compare_exchange: {
      std::uint64_t expected = head.a;
      at->compare_exchange_strong(expected, head.b, order, order);
      head.result = expected;
      break;
    }
    case op::fetch_add:
      head.result = at->fetch_add(head.a, order);
      break;
    case op::put:
      std::memcpy(reinterpret_cast<std::byte*>(at), data, head.bytes);
      std::atomic_thread_fence(order);
      break;
    case op::get:
    case op::fence:
      std::atomic_thread_fence(order);
      break;
    case op::call:
    case op::cast:
      break;  // a higher layer's
  }
}

void port::init(const shm::segment& memory, worker_no me, words* mine, words* bell_of, void (*idle)(void*),
                void* idle_arg, bool spin) noexcept {
  *this = port();
  memory_ = &memory;
  me_ = me;
  mine_ = mine;
  bell_ = bell_of;
  idle_ = idle;
  idle_arg_ = idle_arg;
  spin_ = spin;
}

entry& port::prepare(op what, worker_no w, const void* at) noexcept {
  entry& e = mine_->ring[next_++ % ring_entries];
  // Only requests without an answer can still be under way here: wait until the companion has taken it.
  for (int i = 0; e.now.load(std::memory_order_acquire) != state::free; ++i) {
    if (idle_ != nullptr) idle_(idle_arg_);
    if (spin_ && i < spins_before_sleep)
      base::spin_pause();
    else
      sched_yield();
  }
  e.head = header{};
  e.head.what = what;
  e.head.target = w;
  e.head.address = reinterpret_cast<std::uint64_t>(at);
  return e;
}

void port::post(entry& e) noexcept {
  e.now.store(state::posted, std::memory_order_release);  // R1
  ring_bell(*bell_);
}

void port::wait(entry& e) noexcept {
  auto done = [&] { return e.now.load(std::memory_order_acquire) == state::done; };  // R2
  for (int i = 0; spin_ && i < spins_before_sleep && !done(); ++i) {
    if (idle_ != nullptr) idle_(idle_arg_);
    base::spin_pause();
  }
  while (!done()) {
    const std::uint32_t seen = mine_->answers.load(std::memory_order_relaxed);
    mine_->waiting.store(1, std::memory_order_relaxed);
    std::atomic_thread_fence(std::memory_order_seq_cst);  // R3
    if (idle_ != nullptr) idle_(idle_arg_);               // whoever posts into our inbox from now on wakes us
    if (!done()) sleep_on(mine_->answers, seen, 2000);
    mine_->waiting.store(0, std::memory_order_relaxed);
  }
  e.now.store(state::free, std::memory_order_relaxed);  // only this worker posts
}

std::uint64_t port::word_request(op what, worker_no w, const word* at, std::uint64_t a,
                                 std::uint64_t b) noexcept {
  entry& e = prepare(what, w, at);
  e.head.a = a;
  e.head.b = b;
  post(e);
  wait(e);
  return e.head.result;
}

std::uint64_t port::load(worker_no w, const word* at) noexcept { return word_request(op::load, w, at, 0, 0); }
std::uint64_t port::exchange(worker_no w, const word* at, std::uint64_t v) noexcept {
  return word_request(op::exchange, w, at, v, 0);
}
std::uint64_t port::fetch_add(worker_no w, const word* at, std::uint64_t v) noexcept {
  return word_request(op::fetch_add, w, at, v, 0);
}
bool port::compare_exchange(worker_no w, const word* at, std::uint64_t& expected, std::uint64_t v) noexcept {
  const std::uint64_t before = word_request(op::compare_exchange, w, at, expected, v);
  const bool swapped = before == expected;
  expected = before;
  return swapped;
}
void port::store(worker_no w, const word* at, std::uint64_t v) noexcept {
  entry& e = prepare(op::store, w, at);
  e.head.a = v;
  post(e);
}
void port::fence(worker_no w) noexcept { word_request(op::fence, w, nullptr, 0, 0); }

const entry& port::call(worker_no w, std::uint64_t number, std::uint64_t argument,
                        std::uint64_t argument2) noexcept {
  entry& e = prepare(op::call, w, nullptr);
  e.head.a = number;
  e.head.b = argument;
  e.head.more[0] = argument2;
  post(e);
  wait(e);
  return e;
}
void port::cast(worker_no w, std::uint64_t number, std::uint64_t argument, std::uint64_t argument2) noexcept {
  entry& e = prepare(op::cast, w, nullptr);
  e.head.a = number;
  e.head.b = argument;
  e.head.more[0] = argument2;
  post(e);
}

void port::get(worker_no w, void* to, const void* from, std::size_t n) noexcept {
  auto* at = static_cast<std::byte*>(to);
  const auto* source = static_cast<const std::byte*>(from);
  const bool direct = memory_->owns(to, n);
  while (n != 0) {
    const bool small = n <= inline_bytes;
    const std::size_t now = direct || small ? n : std::min(n, bounce_bytes);
    entry& e = prepare(op::get, w, source);
    e.head.bytes = now;
    e.head.local = small ? 0 : reinterpret_cast<std::uint64_t>(direct ? at : mine_->bounce);
    post(e);
    wait(e);
    if (small)
      std::memcpy(at, e.data, now);
    else if (!direct)
      std::memcpy(at, mine_->bounce, now);
    at += now;
    source += now;
    n -= now;
  }
}

void port::put(worker_no w, void* to, const void* from, std::size_t n) noexcept {
  auto* target = static_cast<std::byte*>(to);
  const auto* at = static_cast<const std::byte*>(from);
  const bool direct = memory_->owns(from, n);
  while (n != 0) {
    const bool small = n <= inline_bytes;
    const std::size_t now = direct || small ? n : std::min(n, bounce_bytes);
    entry& e = prepare(op::put, w, target);
    e.head.bytes = now;
    if (small) {
      std::memcpy(e.data, at, now);
    } else {
      e.head.local = reinterpret_cast<std::uint64_t>(direct ? at : mine_->bounce);
      if (!direct) std::memcpy(mine_->bounce, at, now);
    }
    post(e);
    if (has_answer(op::put, now)) wait(e);
    at += now;
    target += now;
    n -= now;
  }
}

}  // namespace godwit::transport::far
