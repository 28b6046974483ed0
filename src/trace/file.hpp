// The trace file: Perfetto packets for people, and the raw events for godwit-report, in one file.
//
// A Perfetto trace is a sequence of TracePackets (field 1 of the message Trace, length-delimited). Beside the
// packets that Perfetto shows, some carry one field that it does not know and skips, number raw_field, wire
// type 2: a chunk.
//   chunk = raw_header, then header.bytes bytes:
//     info      the run as JSON text: program, arguments, workers, hosts, worker_stats, options, clock,
//               dropped
//     events    header.count events of worker header.worker, in order, times already in the first rank's
//               clock
//     strings   entries { u64 address; u32 length; char text[length] } of what events name: files, functions,
//               what was waited for; of code: "function (file.cpp:12)", and no entry if that is the
//               library's
// Order: events (per worker as many chunks as needed, of at most 1 MiB), strings, info, then Perfetto's
// packets, whose times count from info's origin_ns.
#pragma once

#include <cstdint>

namespace godwit::trace {

inline constexpr std::uint32_t raw_field = 47001;
inline constexpr char raw_magic[8] = {'g', 'o', 'd', 'w', 'i', 't', '0', '2'};

enum class chunk : std::uint32_t { info = 1, events, strings };

struct raw_header {
  char magic[8];
  chunk what;
  std::uint32_t worker;
  std::uint64_t count;
  std::uint64_t bytes;  ///< that follow
};
static_assert(sizeof(raw_header) == 32);

}  // namespace godwit::trace
