// See mpi_memory.hpp.
#include "runtime/mpi_memory.hpp"

#include <bit>
#include <cstring>
#include <stdexcept>

#include "heap/heap.hpp"

namespace godwit::runtime {

namespace {
using transport::mpi::reduction;
using transport::shm::near_range;
constexpr int path_tag = 10;  // trace_gather.cpp: 8 and 9; companions: 1, and from 16 on
}  // namespace

/// The first rank of each host makes the file of @p memory, of this @p kind; all ranks agree on a base that
/// is free in each for @p bytes, and map it there. @p mapped: what is to be done then.
template <class Memory, class Mapped, class... Kind>
void mpi_memory::share(Memory& memory, std::uint64_t bytes, const char* no_base, Mapped&& mapped,
                       const Kind&... kind) const {
  std::uint64_t free = ~0u;
  session_.together([&] {
    if (is_leader()) memory.make_file(kind...);
    if (has_workers()) free = memory.free_bases(bytes);
  });
  free = session_.reduce(free, reduction::common_bits);
  if (free == 0) throw std::runtime_error(no_base);
  const std::string path = path_in_host(is_leader() ? memory.file_path() : "");
  session_.together([&] {
    if (!has_workers()) return;
    if (!is_leader()) memory.open_file(kind..., path);
    memory.map(static_cast<unsigned>(std::countr_zero(free)));
    mapped();
  });
}

/// The @p path of this host's first rank, in all its ranks.
std::string mpi_memory::path_in_host(const std::string& path) const {
  if (!has_workers()) return {};
  char text[64] = {};
  if (is_leader()) {
    std::strncpy(text, path.c_str(), sizeof text - 1);
    for (const int rank : place_.ranks_of[place_.my_host])
      if (rank != leader()) session_.send(text, sizeof text, rank, path_tag);
  } else {
    session_.receive(text, sizeof text, leader(), path_tag);
  }
  return text;
}

void mpi_memory::share_segments(run_state& r) const {
  auto& memory = r.what.memory;
  const near_range near = has_workers() ? place_.hosts[place_.my_host] : near_range{};
  auto l = plan_segment(r.what.opts, place_.workers);
  l.front = 0;  // a window of MPI is one range
  share(
      memory, memory.total_bytes(near.count, l),
      "godwit: there is no range of addresses that is free in all ranks: lower --godwit-stack-bytes or "
      "--godwit-heap-bytes, or raise the limit on address space (ulimit -v)",
      [&] { prepare_words(memory, r.own); }, near, l);
  // from here on everybody may look at everybody's words
}

void mpi_memory::share_global(run_state& r) const {
  launch& what = r.what;
  auto& global = what.global;
  // All ranks use what the poorest has.
  const std::uint64_t bytes = session_.reduce(
      has_workers() ? choose_global_bytes(what.opts) : what.opts.global_bytes, reduction::least);
  session_.together([&] { what.global_space = plan_global(what.opts, bytes, place_.workers); });
  share(
      global, bytes,
      "godwit: global memory: there is no range of addresses that is free in all ranks: lower "
      "--godwit-global-bytes (GODWIT_GLOBAL_BYTES), or raise the limit on address space (ulimit -v)",
      [&] {
        what.memory.set_window(global.base(), global.bytes());
        if (is_leader()) prepare_global(global.base(), what.opts);
      },
      bytes);
}

void mpi_memory::share_heap(run_state& r) const {
  const auto hosts = static_cast<std::uint32_t>(place_.hosts.size());
  // All ranks have the same answer: that of the poorest.
  const std::uint64_t bytes = session_.reduce(
      has_workers() ? possible_heap_bytes(r.what.opts, hosts) : std::uint64_t{1} << 62, reduction::least);
  if (!wants_heap(r.what.opts, bytes)) return;
  auto& heap = r.what.own_heap;
  heap.lie_beside(has_workers() ? place_.my_host : 0, hosts);
  share(
      heap, bytes * hosts,
      "godwit: there is no range of addresses for a shared heap that is free in all ranks: use "
      "--godwit-heap=private (GODWIT_HEAP)",
      [&] {
        r.what.heap = &heap;
        if (is_leader())
          heap::begin(heap.base(), bytes, place_.hosts[place_.my_host].count, 0, r.what.opts.check_heap);
      },
      bytes);
  if (!has_workers()) return;
  if (!is_leader()) heap::adopt(heap.base());
  const auto all = reinterpret_cast<std::uintptr_t>(heap.base_of_all());
  if (hosts > 1) r.what.job.hosts_heaps = {all, all + heap.bytes_of_all()};
}

}  // namespace godwit::runtime
