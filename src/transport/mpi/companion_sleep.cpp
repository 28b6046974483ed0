// How a companion sleeps: FA3 of docs/protocols/far.md. See companion.hpp.
#include "transport/mpi/companion.hpp"

#include "base/world.hpp"
#include "transport/far/port.hpp"

namespace godwit::transport::mpi {

using far::state;

bool companion::sleep(std::uint32_t timeout_us, arrivals* messages) noexcept {
  if (messages != nullptr && !messages->usable()) messages = nullptr;
  if (!writes_.empty()) timeout_us = static_cast<std::uint32_t>(flush_after_ns / 1000);
  if (setup_.served.count == 0) {  // nobody can ring
    if (messages != nullptr) return messages->wait(timeout_us);
    base::nap(std::uint64_t{timeout_us} * 1000);
    return false;
  }
  far::words& mine = words_of(worker_no{setup_.served.first});
  const std::uint32_t seen = mine.bell.load(std::memory_order_relaxed);
  mine.deaf.store(messages != nullptr ? messages->os_thread() : far::sleeps_on_bell,
                  std::memory_order_relaxed);
  base::fence();  // FA3
  bool woken = base::planted("far.sleeps_without_a_look") ? false : has_mail();
  if (!woken && messages != nullptr)
    woken = messages->wait(timeout_us);
  else if (!woken)
    far::sleep_on(mine.bell, seen, timeout_us);
  mine.deaf.store(far::hears, std::memory_order_relaxed);
  return woken;
}

/// A request of our workers waits, or an answer of one that has carried out a request.
bool companion::has_mail() const noexcept {
  for (std::uint32_t i = 0; i < setup_.served.count; ++i) {
    far::words& words = words_of(worker_no{setup_.served.first + i});
    if (posted_by(i) != nullptr) return true;
    if (!inboxes_[i].inside.empty() &&
        words.inbox_entry(inboxes_[i].oldest).now.load(std::memory_order_acquire) == state::done)
      return true;
  }
  return false;
}

}  // namespace godwit::transport::mpi
