// See references.hpp.
#include "runtime/references.hpp"

#include <cstdint>
#include <cstring>

#include "base/check.hpp"
#include "sched/worker.hpp"

namespace godwit::runtime {

bool refers_to_stack(const void* in, std::size_t bytes) noexcept {
  const sched::site& here = sched::this_worker().here();
  if (!here.opts.check_frames) return false;  // never where every address means the same everywhere
  for (std::size_t i = 0; i + sizeof(std::uintptr_t) <= bytes; i += sizeof(std::uintptr_t)) {
    std::uintptr_t word;
    std::memcpy(&word, static_cast<const std::byte*>(in) + i, sizeof word);
    if (word - here.region_low < here.region_high - here.region_low) return true;
  }
  return false;
}

void end_for_reference(const char* what, const std::string& where) noexcept {
  base::fatal(
      "worker %u: %s in %s: the callable or an argument refers to a local variable of the thread that calls "
      "it, which stays behind: capture by value",
      transport::index(sched::this_worker().here().me), what, where.c_str());
}

}  // namespace godwit::runtime
