// Sleeping and waking, of workers that wait for answers and of companions: FA3. See port.hpp.
#include "transport/far/port.hpp"

#include <csignal>

#include "base/world.hpp"

namespace godwit::transport::far {

void sleep_on(const std::atomic<std::uint32_t>& word, std::uint32_t seen, std::uint32_t timeout_us) noexcept {
  base::wait_on(word, seen, timeout_us != 0 ? std::uint64_t{timeout_us} * 1000 : base::no_limit);
}

void wake_sleepers(const std::atomic<std::uint32_t>& word) noexcept { base::wake(word, base::all_of_them); }

void ring_bell(words& of) noexcept {
  if (!base::planted("far.post_has_no_fence")) base::fence();  // FA3
  const std::uint32_t deaf = of.deaf.load(std::memory_order_relaxed);
  if (deaf == hears) return;
  of.bell.fetch_add(1, std::memory_order_release);
  if (deaf == sleeps_on_bell)
    wake_sleepers(of.bell);
  else
    base::interrupt(static_cast<pid_t>(deaf), SIGURG);
}

}  // namespace godwit::transport::far
