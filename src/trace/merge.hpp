// One sequence, by time, from the sequences of all workers. Memory: one buffer per worker.
//
// Within a worker the order stays as it was written, whatever the times say.
// Called by: trace_file.cpp. Test: tests/trace/merge_test.cpp.
#pragma once

#include "trace/events.hpp"

#include <algorithm>
#include <cstddef>
#include <functional>
#include <utility>
#include <vector>

namespace godwit::trace {

/// Where the events of one worker come from, oldest first: up to @p most of them; 0: there are no more.
using event_source = std::function<std::size_t(event* to, std::size_t most)>;

class merger {
 public:
  /// @p buffer_events: of each worker, how many are held at a time.
  merger(std::vector<event_source> sources, std::size_t buffer_events) {
    for (auto& s : sources) {
      streams_.push_back({std::move(s), std::vector<event>(buffer_events), 0, 0, 0});
      push(static_cast<std::uint32_t>(streams_.size() - 1));
    }
  }

  /// The next event and whose it is (the number of the source). False: there are no more.
  bool next(std::uint32_t& worker, event& e) {
    if (heap_.empty()) return false;
    worker = heap_.front().second;
    stream& s = streams_[worker];
    e = s.buffer[s.next++];
    std::pop_heap(heap_.begin(), heap_.end(), std::greater<>());
    heap_.pop_back();
    push(worker);
    return true;
  }

 private:
  struct stream {
    event_source from;
    std::vector<event> buffer;
    std::size_t next, filled;
    std::uint64_t last_ns;
  };
  void push(std::uint32_t worker) {
    stream& s = streams_[worker];
    if (s.next == s.filled) {
      s.next = 0;
      s.filled = s.from(s.buffer.data(), s.buffer.size());
      if (s.filled == 0) {
        s.buffer = {};
        return;
      }
    }
    s.last_ns = std::max(s.last_ns, s.buffer[s.next].time_ns);
    heap_.emplace_back(s.last_ns, worker);
    std::push_heap(heap_.begin(), heap_.end(), std::greater<>());
  }

  std::vector<stream> streams_;
  std::vector<std::pair<std::uint64_t, std::uint32_t>> heap_;
};

}  // namespace godwit::trace
