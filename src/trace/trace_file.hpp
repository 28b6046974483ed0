// The trace file of a run: raw chunks (file.hpp), then Perfetto packets made from them.
//
// Events are appended worker by worker while they come in (rings of this process, messages of other ranks);
// finish then reads them back from the file, merged by time, twice: to see which threads matter, and to write
// the packets (and once before, if events were dropped: what a worker ran when its events begin shows only
// later). Order in the file: events, strings, info, Perfetto's packets; who wants raw chunks only can stop
// after info. Memory: a buffer per worker and four bytes per thread, however many events there are.
// Called by: src/runtime/trace_output.cpp. Test: tests/trace/file_test.cpp.
#pragma once

#include "trace/file.hpp"
#include "trace/merge.hpp"
#include "trace/model.hpp"
#include "trace/out_file.hpp"

#include <functional>
#include <set>
#include <span>
#include <string>
#include <unordered_map>
#include <unordered_set>
#include <vector>

namespace godwit::trace {

inline constexpr std::uint32_t most_thread_tracks = 2000;

/// What a finished trace holds.
struct summary {
  std::uint64_t events = 0;              ///< in the file
  std::uint64_t dropped = 0;             ///< oldest ones that are not
  std::uint32_t threads = 0;             ///< that were ever separated from their parents
  std::uint32_t threads_left_out = 0;    ///< of these, without a track
  std::uint64_t origin_ns = 0;           ///< time of the first event, and zero in Perfetto's packets
  std::uint64_t end_ns = 0;              ///< time of the last
  std::vector<std::uint64_t> events_of;  ///< by worker
  std::vector<std::uint64_t> dropped_of;
};

/// The zero-terminated text at @p address of this process, "" if nothing readable is there. Never faults,
/// whatever the address. Some system calls.
std::string text_at(std::uint64_t address);

/// What people know addresses in the program's code by, empty where nobody would: base::code_lines.
using code_names = std::function<std::vector<std::string>(std::span<const std::uint64_t> addresses)>;

class trace_file {
 public:
  /// Throws std::invalid_argument (one line) if @p path cannot be written.
  explicit trace_file(const std::string& path);

  /// See out_file. Before the first event; begin may follow once more.
  void pause() { out_.pause(); }
  void resume() {
    out_.resume();
    out_.make_readable();
  }

  void begin(std::uint32_t workers);
  /// The next events of @p worker, times in the first rank's clock.
  void append(std::uint32_t worker, const event* events, std::size_t count);
  void dropped(std::uint32_t worker, std::uint64_t count) { sum_.dropped_of[worker] = count; }

  /// Write the rest. @p names: of the workers' tracks. @p info gives the info chunk's text. @p text: of
  /// addresses. @p code: see code_names; without it such addresses have no texts.
  const summary& finish(const std::vector<std::string>& names,
                        const std::function<std::string(const summary&)>& info,
                        const std::function<std::string(std::uint64_t)>& text = text_at,
                        std::uint32_t most_tracks = most_thread_tracks, const code_names& code = {});
  /// Why the file is not complete; empty: it is.
  const std::string& problem() const noexcept { return out_.problem(); }
  const std::string& path() const noexcept { return out_.path(); }
  bool is_same_file(const out_file& other) const noexcept { return out_.is_same_file(other); }

 private:
  struct piece {
    std::uint64_t at, count;  // bytes, events
  };

  void chunk(trace::chunk what, std::uint32_t worker, std::uint64_t count, const void* data,
             std::size_t bytes);
  merger read_back();
  void write_strings(const std::function<std::string(std::uint64_t)>& text, const code_names& code);
  std::vector<bool> choose(const std::vector<std::uint32_t>& slices_of, std::uint32_t most_tracks);
  const std::string& string_at(std::uint64_t address) const;

  out_file out_;
  std::vector<std::vector<piece>> pieces_;
  std::vector<std::uint64_t> first_ns_;
  std::unordered_map<std::uint64_t, std::string> strings_;
  std::set<std::uint64_t> code_;  // addresses of code
  summary sum_;
};

}  // namespace godwit::trace
