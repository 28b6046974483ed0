// The time line of one worker, built from its own events in order and from what thieves took away.
//
// It knows one worker only. What joins workers -- which thread waits for which, chains -- is analyze.cpp,
// which calls this and nobody else does. Test: tests/report/analysis_test.cpp.
#pragma once

#include "analysis.hpp"

#include <vector>

namespace godwit::report {

/// What all lines write into.
struct line_sums {
  worker_totals& totals;
  std::vector<segment>& out;
  std::vector<waiting_place>& places;
  std::uint64_t whole_from;
  bool spare;  ///< it rests when it has nothing to do: that is nobody's loss
};

class worker_line {
 public:
  /// A thread at the bottom of the worker's region.
  struct running {
    std::uint64_t record = 0;
    std::uint32_t thread = nothing;
    std::uint32_t node = nothing;        ///< of the chain graph
    std::uint64_t run_begin = 0;         ///< when the worker got something to run
    std::uint64_t begin = 0;             ///< of the segment
    std::uint64_t depth = 0, since = 0;  ///< length of the chain at the time since
    std::uint32_t other = nothing;
    std::uint32_t name = nothing;  ///< of what it does
    gain begun = gain::none;
    bool offers = false;  ///< something can be taken
    std::uint64_t depth_at(std::uint64_t time) const noexcept {
      return depth + (time > since ? time - since : 0);
    }
  };

  worker_line(line_sums sums, bool first_lost) : sums_(sums), lost_start_(first_lost) {}

  bool busy() const noexcept { return busy_; }
  bool knows_nothing() const noexcept { return lost_start_; }
  running& now() noexcept { return now_; }
  const running& now() const noexcept { return now_; }
  std::uint64_t depth_at(std::uint64_t time) const noexcept {
    return busy_ ? now_.depth_at(time) : last_depth_;
  }
  std::uint32_t last_node() const noexcept { return now_.node; }

  /// It gets a thread at @p at, which took @p took. Whatever ran is over (a task on top: buried until
  /// lose()).
  void get(running r, std::uint64_t at, std::uint64_t took, bool on_top);
  /// It loses the thread.
  /// @p name: of that place.
  void lose(std::uint64_t at, loss how, std::uint32_t place, std::uint32_t name = nothing,
            wait_for kind = wait_for::nothing);
  /// A thief took the bottom thread; @p record is what remains. @p name: of the spawn between them.
  void stolen(std::uint64_t at, std::uint64_t record, std::uint32_t thread, std::uint32_t name);
  /// A continuation can be taken from here on. @p name: of its spawn.
  void offers(std::uint64_t at, std::uint32_t name);
  /// The program calls it so from here on. nothing: no longer.
  void called(std::uint64_t at, std::uint32_t own_name);
  /// It was idle from @p from to @p to: kept until the gap ends, or cut out of a busy time (buried joins).
  void idle(std::uint64_t from, std::uint64_t to, trace::idle_cause why);
  /// From here on its events are known; it is busy with a thread nobody named, or not.
  void first_known(std::uint64_t at, bool busy);
  void finish(std::uint64_t at);

 private:
  struct pause {
    std::uint64_t from, to;
    state cause;
  };
  void put(segment s);
  void put_busy(std::uint64_t to, loss how, std::uint32_t place, std::uint32_t next = nothing);
  void cut(std::uint64_t at, loss how, std::uint32_t next = nothing);
  void put_gap(std::uint64_t to, std::uint64_t took);

  line_sums sums_;
  bool lost_start_;
  bool busy_ = false;
  running now_;
  std::uint32_t own_name_ = nothing;  ///< what the program calls what runs here
  struct buried_thread {
    running r;
    bool was_busy;
  };
  std::vector<buried_thread> buried_;
  std::vector<pause> pauses_;
  std::uint64_t gap_from_ = 0;
  state gap_ = state::no_work;  ///< if no event says more
  std::uint32_t gap_place_ = nothing;
  std::uint64_t last_depth_ = 0;
};

}  // namespace godwit::report
