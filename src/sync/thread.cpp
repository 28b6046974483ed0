// See thread.hpp.
#include <godwit/thread.hpp>

#include <system_error>

#include "base/cpus.hpp"
#include "base/world.hpp"
#include "seams/timer.hpp"

namespace godwit::detail {

std::uint64_t this_thread_number() noexcept {
  const thread_block* block = this_block();
  if (block == nullptr) {
    if (hot_workers() != 0) need_substrate_threads("this_thread::get_id");
    return 0;
  }
  // A thread that was created later has its record's location; others are named by their stack.
  return block->number != 0 ? block->number : reinterpret_cast<std::uint64_t>(block) | 1;
}

void not_joinable() {
  throw std::system_error(
      std::make_error_code(std::errc::invalid_argument),
      "godwit::thread: it is not joinable (joined, detached, moved from, or never started)");
}
void joins_itself() {
  throw std::system_error(std::make_error_code(std::errc::resource_deadlock_would_occur),
                          "godwit::thread: it would join itself");
}

void sleep_until_time(std::uint64_t deadline_ns, const place& where) {
  do {
    throw_cancelled();
    if (!doze_until_ns(deadline_ns, where)) base::nap_until(deadline_ns);
  } while (base::now_ns() < deadline_ns);
}

unsigned usable_cpus() noexcept { return base::usable_cpu_count(); }

}  // namespace godwit::detail
