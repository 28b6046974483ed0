// Movable memory over time: which worker had which part when, and what moves and waits for them cost.
//
// Fed with the events of the run in the order of time (analyze.cpp), read by page.cpp. Times are
// nanoseconds since the first event. Document: docs/report.md, Moves. Test: tests/report/moves_test.cpp.
#pragma once

#include "trace/events.hpp"

#include <cstddef>
#include <cstdint>
#include <map>
#include <vector>

namespace godwit::report {

inline constexpr std::uint32_t owner_unknown = trace::no_worker;

/// What moves did on a worker. Those of parts are counted where they were carried out: the host that they
/// went to.
struct worker_moves {
  std::uint64_t came = 0;   ///< parts from other hosts
  std::uint64_t given = 0;  ///< from one worker of its host to another
  std::uint64_t bytes = 0;
  std::uint64_t busy = 0, no_room = 0;   ///< parts that stayed
  std::uint64_t ns = 0;                  ///< of bringing parts from other hosts
  std::uint64_t waits = 0, wait_ns = 0;  ///< of accesses here
};

/// A movable allocation, from where it was made, or first seen, to where it was freed, or the end.
struct movable_memory {
  struct change {
    std::uint64_t time;
    std::uint64_t part;
    std::uint32_t from, to;
  };
  /// When it was freed, or at the end: accesses to a part since it came to its owner.
  struct use {
    std::uint64_t part, near, far;
    std::uint32_t by;  ///< a worker of the host that made most of `far`
  };
  struct homes {
    std::uint64_t first, count;
    std::uint32_t home;
  };
  std::uint64_t address = 0, begin = 0, end = 0;
  std::uint64_t part_bytes = 0;  ///< 0: not recorded
  std::uint64_t parts = 0;       ///< as many as are known
  std::uint64_t bytes = 0;       ///< moved between hosts
  std::vector<homes> at_first;   ///< whose they were, as far as recorded
  std::vector<change> changes;   ///< by time
  std::vector<use> uses;         ///< of parts that were used, as far as recorded
};

struct moves_analysis {
  std::vector<worker_moves> by_worker;
  std::vector<movable_memory> memory;  ///< that of which parts moved, stayed or were used; most moves first

  worker_moves total() const noexcept;
  std::uint64_t near_uses() const noexcept;
  std::uint64_t far_uses() const noexcept;
  bool any() const noexcept { return !memory.empty() || total().waits != 0; }
};

class move_events {
 public:
  explicit move_events(std::uint32_t workers) { result_.by_worker.resize(workers); }
  /// An event of worker @p w at @p at; of others than those of moves nothing is taken.
  void event(std::uint32_t w, const trace::event& e, std::uint64_t at);
  moves_analysis finish(std::uint64_t end);

 private:
  struct tracked {
    movable_memory memory;
    bool made = false;  ///< its beginning was seen
    bool stayed = false;
  };
  tracked& of(std::uint64_t address, std::uint64_t at);
  void on_parts(const trace::event& e, std::uint64_t at);
  void on_heat(const trace::event& e, std::uint64_t at);
  void on_part(worker_moves& mine, const trace::event& e, std::uint64_t at);
  void retire(std::map<std::uint64_t, tracked>::iterator which, std::uint64_t at);

  std::map<std::uint64_t, tracked> live_;  ///< by address
  moves_analysis result_;
};

/// Owners of an allocation's parts as a picture: rows are parts, or groups of them, columns pieces of time.
struct owner_map {
  std::uint64_t from = 0, to = 0, group = 1;
  std::uint32_t columns = 0;
  struct run {
    std::uint32_t owner;    ///< of most parts of the group, at the column's end
    std::uint32_t columns;  ///< for so long
  };
  struct row {
    std::vector<run> runs;
    std::map<std::uint32_t, std::uint32_t> moves;  ///< by column, where there were some
  };
  std::vector<row> rows;
};
owner_map map_of(const movable_memory& m, std::uint64_t from, std::uint64_t to, std::uint32_t most_rows,
                 std::uint32_t columns);

/// A part that moved, and how often.
struct moved_part {
  std::uint64_t part, moves;
  std::uint32_t last_owner;
  std::uint32_t owners;  ///< so many different ones
};
/// Most moves first.
std::vector<moved_part> busiest_parts(const movable_memory& m, std::size_t most);
/// Most accesses by other hosts than the owner's first.
std::vector<movable_memory::use> most_used_parts(const movable_memory& m, std::size_t most);

}  // namespace godwit::report
