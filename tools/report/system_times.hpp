// What the operating system kept of the time in which workers had threads: waits in system calls, other
// programs on the CPU, work of the kernel.
//
// A trace says for pieces of a worker's time how much of each was kept, not when. So it goes to the threads
// that ran in the piece, by how long they did. Called by: walker.hpp, read by verdict.cpp and hints.cpp.
// Document: docs/report.md. Test: tests/report/system_test.cpp.
#pragma once

#include "trace/events.hpp"

#include <array>
#include <cstdint>
#include <vector>

namespace godwit::report {

struct analysis;

using by_system_kind = std::array<std::uint64_t, trace::system_kinds>;  ///< ns, by trace::system_kind
constexpr std::size_t at(trace::system_kind k) { return static_cast<std::size_t>(k); }

/// Of the time from @p begin to @p end of a worker, @p ns.
struct system_piece {
  std::uint32_t worker;
  std::uint64_t begin, end, ns;
  trace::system_kind kind;
  std::uint64_t faults;  ///< of pages, in the same time
};

struct system_times {
  by_system_kind ns{};
  std::uint64_t faults = 0;
  struct of_name {
    std::uint32_t name;  ///< index into analysis::names
    by_system_kind ns{};
  };
  std::vector<of_name> names;                                ///< what ran then
  std::uint32_t worst(trace::system_kind k) const noexcept;  ///< the name that has most of it
};

/// Moves what is no work from busy to its own states (analysis::totals). What others had the CPU for stays
/// there: it says nothing about the program.
system_times divide_system_times(analysis& a, const std::vector<system_piece>& pieces);

}  // namespace godwit::report
