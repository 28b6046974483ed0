// Ordinary memory that parallel algorithms were called with: do all workers of the run see it? Then it has an
// address like global memory's, behind the end of that. docs/algorithms.md (Ordinary memory). Called by
// algorithm/ordinary.hpp. Test: tests/algorithm/ordinary_test.cpp.
#include "base/check.hpp"
#include "base/code_place.hpp"
#include "heap/heap.hpp"
#include "runtime/global.hpp"
#include "sched/worker.hpp"
#include "transport/shm/file_pages.hpp"

#include <godwit/detail/global_path.hpp>

#include <cstdint>
#include <sys/syscall.h>
#include <unistd.h>

namespace godwit {

namespace {
bool is_mapped(const std::byte* at) noexcept {
  const auto page =
      reinterpret_cast<std::uintptr_t>(at) & -static_cast<std::uintptr_t>(sysconf(_SC_PAGESIZE));
  unsigned char in_memory = 0;
  return syscall(SYS_mincore, page, 1, &in_memory) == 0;
}
}  // namespace

std::byte* runtime::ordinary(detail::global_address at) noexcept {
  const auto* m = static_cast<const gas::memory*>(detail::hot().memory);
  if (m == nullptr || at < m->where.bytes) return nullptr;
  auto* const raw = detail::global_raw<std::byte>(at);
  return m->checks.on() && !is_mapped(raw) ? nullptr : raw;  // the check names a wild global_ptr
}

namespace detail {

namespace {

/// Null: they see it. Else why they do not, and what to do.
const char* why_not(const void* at, global_address place, bool writes) noexcept {
  sched::worker& me = sched::this_worker();
  const sched::job_shape& shape = me.here().shape;
  const auto address = reinterpret_cast<std::uintptr_t>(at);
  const stack::range region{me.here().region_low, me.here().region_high};
  if (region.holds(address) || me.private_stack().holds(address))
    return "it lies in the frame of a thread, of which other workers have copies at most: use a std::vector, "
           "a "
           "gw::global_array, or substrate threads";
  const gas::memory& global = runtime::memory_of("a parallel algorithm");
  if (transport::shm::is_of_file(at) && (shape.host_count > 1 || global.checks.on()))
    return "it lies in a mapped file: call the algorithm with a gw::index_range, and read the file in the "
           "function";
  if (place < global.where.bytes)  // global memory, by its raw address
    return shape.host_count == 1 ? nullptr
                                 : "it is this host's copy of global memory: call the algorithm with the "
                                   "gw::global_span that it was checked out of";
  if (heap::holds(at)) {
    if (shape.host_count == 1) return nullptr;
    return "it is heap memory of this host, and the run has others: use a gw::global_array or "
           "gw::global_vector";
  }
  if (!host_heap() && me.own_heap().holds(address))
    return "workers have heaps of their own in this run (docs/heap.md): use a gw::global_array or "
           "gw::global_vector";
  if (!writes || (shape.takes_turns && shape.host_count == 1)) return nullptr;
  return "it is main's, of which every worker has a copy, and the algorithm writes there: make it in a "
         "gw::shared_scope, or in a thread, or use a gw::global_array";
}

}  // namespace

global_address ordinary_address(const void* at, bool writes) noexcept {
  const auto caller = reinterpret_cast<std::uintptr_t>(__builtin_return_address(0));
  if (hot().workers == 0) [[unlikely]]
    base::fatal("a parallel algorithm was called outside godwit::run in %s: call it in a run",
                base::code_place(caller).c_str());
  const auto place = static_cast<global_address>(static_cast<const std::byte*>(at) - hot().global_base);
  if (hot().in_place != 0) return place;
  if (const char* const reason = why_not(at, place, writes))
    base::fatal("worker %u: a parallel algorithm was called with ordinary memory in %s: %s", hot().worker,
                base::code_place(caller).c_str(), reason);
  return place;
}

}  // namespace detail
}  // namespace godwit
