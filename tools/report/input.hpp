// What godwit-report reads: a trace file (GODWIT_TRACE) or a file of counters (GODWIT_STATS_JSON).
//
// The format is src/trace/file.hpp and events.hpp. Packets and fields that are not ours are skipped. The file
// is mapped, not read: events are looked at in place, so ten million of them cost no memory of this process's
// own. Nothing here interprets events; that is analyze.cpp. Called by main.cpp. Document: docs/report.md.
// Test: tests/report/input_test.cpp.
#pragma once

#include "trace/events.hpp"

#include <nlohmann/json.hpp>

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <stdexcept>
#include <string>
#include <unordered_map>
#include <vector>

namespace godwit::report {

/// Something is wrong with a file. what() is one line: which file, what, what to do.
struct input_error : std::runtime_error {
  using std::runtime_error::runtime_error;
};

/// A file in memory, read only. Throws input_error if it cannot be opened or is empty.
class mapped_file {
 public:
  explicit mapped_file(const std::string& path);
  ~mapped_file();
  mapped_file(mapped_file&& other) noexcept;
  mapped_file(const mapped_file&) = delete;
  mapped_file& operator=(const mapped_file&) = delete;
  mapped_file& operator=(mapped_file&&) = delete;
  std::span<const std::byte> bytes() const noexcept { return {data_, size_}; }

 private:
  const std::byte* data_ = nullptr;
  std::size_t size_ = 0;
};

/// Events of one worker, in order, in one or several pieces of the file.
struct event_list {
  std::vector<std::span<const std::byte>> parts;  ///< each a multiple of sizeof(trace::event), unaligned
  std::uint64_t count = 0;
};

/// Walks an event_list. Local, a copy of 40 bytes per event.
class event_cursor {
 public:
  event_cursor() = default;
  explicit event_cursor(const event_list& list) : list_(&list) { skip_empty(); }
  bool done() const noexcept { return list_ == nullptr || part_ == list_->parts.size(); }
  trace::event operator*() const noexcept {
    trace::event e;
    std::memcpy(&e, list_->parts[part_].data() + offset_, sizeof e);
    return e;
  }
  void next() noexcept {
    offset_ += sizeof(trace::event);
    if (offset_ == list_->parts[part_].size()) {
      offset_ = 0;
      ++part_;
      skip_empty();
    }
  }

 private:
  void skip_empty() noexcept {
    while (part_ < list_->parts.size() && list_->parts[part_].empty()) ++part_;
  }
  const event_list* list_ = nullptr;
  std::size_t part_ = 0, offset_ = 0;
};

/// One run as it was written down. Spans point into @c bytes given to parse_*, which must outlive it.
struct recording {
  bool has_events = false;  ///< a trace, not only counters
  nlohmann::json info =
      nlohmann::json::object();  ///< program, arguments, workers, hosts, policy, seconds, ...
  nlohmann::json stats = nlohmann::json::object();         ///< { workers: [...], totals: {...} }, or empty
  std::uint32_t workers = 0;                               ///< rows: spare workers, too, which come last
  std::uint32_t spares = 0;                                ///< of these
  std::vector<event_list> events;                          ///< per worker
  std::unordered_map<std::uint64_t, std::string> strings;  ///< files and functions, by address
  std::vector<std::uint64_t> dropped;                      ///< events lost, per worker
  std::vector<std::uint32_t> host_of;                      ///< per worker; all 0 if unknown

  std::uint64_t event_count() const noexcept;
  std::uint64_t dropped_count() const noexcept;
};

/// Look into a file. @p name is for messages. Throws input_error.
recording parse(std::span<const std::byte> bytes, const std::string& name);

/// A number of a JSON object, or @p otherwise if it is not there or not a number.
double number_of(const nlohmann::json& object, const char* key, double otherwise = 0);
std::uint64_t count_of(const nlohmann::json& object, const char* key);
std::string text_of(const nlohmann::json& object, const char* key);

}  // namespace godwit::report
