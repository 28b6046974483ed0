// See give_back.hpp.
#include "stack/give_back.hpp"

#include <cstdint>
#include <sys/mman.h>
#include <unistd.h>

#include "base/blocking_calls.hpp"

namespace godwit::stack {

void give_back(std::byte* low, std::size_t bytes) noexcept {
  static const auto page = static_cast<std::uintptr_t>(sysconf(_SC_PAGESIZE));
  const std::uintptr_t from = (reinterpret_cast<std::uintptr_t>(low) + page - 1) / page * page;
  const std::uintptr_t to = (reinterpret_cast<std::uintptr_t>(low) + bytes) / page * page;
  if (from >= to) return;
  const base::no_blocking_calls::let_through meanwhile;
  madvise(reinterpret_cast<void*>(from), to - from, MADV_DONTNEED);
}

}  // namespace godwit::stack
