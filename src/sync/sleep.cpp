// this_thread::sleep_for and sleep_until. See thread.hpp, timer.hpp.
#include "base/world.hpp"

#include "seams/timer.hpp"
#include <godwit/thread.hpp>

#include <cerrno>

namespace godwit::detail {

void sleep_until_time(std::uint64_t deadline_ns, const place& where) noexcept {
  if (sleep_until_ns(deadline_ns, where)) return;
  base::nap_until(deadline_ns);
}

}  // namespace godwit::detail
