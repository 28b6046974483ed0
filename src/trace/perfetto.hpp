// Writes what the model sees as Perfetto packets.
//
// Tracks: "workers" with one per worker, "threads" with one per thread that was chosen for it, and two
// counters. Times in the file count from an origin, which keeps packets short and is where Perfetto begins to
// show them anyway.
// Called by: trace_file.cpp. Document: docs/tracing.md. Tests: tests/trace/file_test.cpp, perfetto_check.py.
#pragma once

#include "trace/model.hpp"
#include "trace/out_file.hpp"
#include "trace/proto.hpp"

#include <functional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

namespace godwit::trace {

/// Where a place number points to.
struct place_text {
  std::string file, function;
  std::uint32_t line = 0;
};

class perfetto final : public sink {
 public:
  struct setup {
    std::uint64_t origin_ns = 0;
    std::vector<std::string> workers;     ///< names of the tracks
    std::vector<std::uint64_t> dropped;   ///< events, by worker
    std::vector<std::uint64_t> first_ns;  ///< time of the first event left, by worker
    std::vector<bool> shown;              ///< by number: has a track of its own
    std::uint32_t threads_left_out = 0;
    std::function<place_text(std::uint32_t place)> where;
    std::function<std::string(std::uint64_t address)> text;
  };
  perfetto(out_file& out, setup s);

  void on(const worker_slice&) override;
  void on(const thread_slice&) override;
  void on(const instant&) override;
  void on(counter, std::uint64_t time_ns, std::uint32_t value) override;

 private:
  void describe_tracks();
  void track(std::uint64_t uuid, std::string_view name, std::uint64_t parent, std::uint64_t rank,
             bool is_counter);
  void start(std::uint32_t type, std::uint64_t track);
  /// An argument of the event. @p name is a literal.
  void add(std::string_view name, std::uint64_t value);
  void add(std::string_view name, std::string_view text);
  template <class Names>
  std::uint64_t intern(Names& known, std::uint32_t field, std::string_view name);
  void name(std::string_view name);
  void name(const worker_slice& s);
  void name_part(const instant& i);
  void add_place(std::string_view how, std::uint32_t place);
  const std::string& name_of(std::uint32_t place);
  void emit(std::uint64_t time_ns);
  void packet(const message& m);

  out_file& out_;
  setup setup_;
  std::vector<bool> described_;  // threads whose track was
  std::unordered_map<std::string, std::uint64_t> event_names_;
  std::unordered_map<std::string_view, std::uint64_t> argument_names_;
  std::unordered_map<std::uint32_t, std::string> places_;
  message event_, packet_, interned_, part_, head_;
};

}  // namespace godwit::trace
