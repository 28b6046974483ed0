// Trace files for tests: events added by hand or by a simulated schedule, written in the format of
// src/trace/file.hpp.
//
// It is a writer of its own, not the library's: what it knows of the format is what the header says. Used by
// the tests of this folder and by generate.cpp.
#pragma once

#include "trace/events.hpp"

#include <nlohmann/json.hpp>

#include <cstdint>
#include <map>
#include <string>
#include <vector>

namespace report_test {

struct trace_builder {
  nlohmann::json info = nlohmann::json::object();
  std::vector<std::vector<godwit::trace::event>> events;  ///< per worker
  std::map<std::uint64_t, std::string> strings;

  explicit trace_builder(std::uint32_t workers) : events(workers) { info["workers"] = workers; }

  void start(std::uint32_t w, std::uint64_t t, std::uint64_t thread, std::uint32_t took = 0);
  void steal(std::uint32_t w, std::uint64_t t, std::uint64_t thread, std::uint64_t child,
             std::uint32_t victim, std::uint32_t took, std::uint32_t bytes = 512);
  void resume(std::uint32_t w, std::uint64_t t, std::uint64_t thread, std::uint64_t awaited,
              std::uint32_t from, std::uint32_t took);
  void task(std::uint32_t w, std::uint64_t t, std::uint64_t thread, std::uint32_t from, std::uint32_t took,
            bool on_top);
  void end(std::uint32_t w, std::uint64_t t, std::uint64_t thread, bool waiter = false);
  /// With a place if @p line is not 0; its file is strings[1], its function strings[2].
  void suspend(std::uint32_t w, std::uint64_t t, std::uint64_t thread, std::uint64_t awaited,
               std::uint32_t line = 0, bool parent_goes_on = false);
  /// At strings[1], line @p line.
  void stay(std::uint32_t w, std::uint64_t t, std::uint64_t thread, std::uint32_t line);
  /// Suspended, for something else than a join: @p what, as "mutex".
  void wait(std::uint32_t w, std::uint64_t t, std::uint64_t thread, const std::string& what,
            std::uint32_t line, bool parent_goes_on = false);
  /// Thieves can take something from here on.
  /// @p where: of the spawn, as "visit(int) (file.cpp:12)".
  void expose(std::uint32_t w, std::uint64_t t, const std::string& where = "");
  void wake(std::uint32_t w, std::uint64_t t, std::uint64_t thread);
  /// A get that took @p duration, for eight; its place is the text @p where.
  void access(std::uint32_t w, std::uint64_t t, std::uint32_t owner, std::uint32_t duration,
              const std::string& where);
  /// Up to @p t the operating system kept what ran there for @p kept of @p interval.
  void system(std::uint32_t w, std::uint64_t t, std::uint64_t interval, std::uint64_t kept,
              godwit::trace::system_kind kind, std::uint32_t faults = 0);
  /// In @p ns up to @p t, @p count spawns, the last one at @p where.
  void spawns(std::uint32_t w, std::uint64_t t, std::uint64_t ns, std::uint32_t count,
              const std::string& where);
  /// Behind a steal: where the thread had spawned, as "visit(int) (file.cpp:12)".
  void spawned(std::uint32_t w, std::uint64_t t, const std::string& where);
  /// What the program calls what runs there at that level, in the scope @p scope; "": it ends.
  void name(std::uint32_t w, std::uint64_t t, const std::string& text, std::uint64_t scope,
            std::uint16_t level = 1);
  void cancel(std::uint32_t w, std::uint64_t t, std::uint64_t thread);
  void idle(std::uint32_t w, std::uint64_t t, std::uint32_t duration, godwit::trace::idle_cause cause);
  void sleep(std::uint32_t w, std::uint64_t t, std::uint32_t duration);
  void complete(std::uint32_t w, std::uint64_t t, std::uint64_t record);
  /// Parts [first, first + count) of movable memory at @p address with the home @p home; count 0: freed.
  void parts(std::uint32_t w, std::uint64_t t, std::uint64_t address, std::uint64_t first,
             std::uint32_t count, std::uint32_t home, std::uint32_t part_bytes = 65536);
  void part(std::uint32_t w, std::uint64_t t, std::uint64_t address, std::uint64_t number, std::uint32_t from,
            std::uint32_t to, godwit::trace::part_result how = godwit::trace::part_result::came,
            std::uint32_t bytes = 65536);
  void moves(std::uint32_t w, std::uint64_t t, std::uint64_t address, std::uint32_t count,
             std::uint32_t duration);
  void heat(std::uint32_t w, std::uint64_t t, std::uint64_t address, std::uint64_t number, std::uint32_t near,
            std::uint32_t far, std::uint32_t by);
  void part_wait(std::uint32_t w, std::uint64_t t, std::uint64_t address, std::uint32_t duration);
  void add(std::uint32_t w, const godwit::trace::event& e) { events[w].push_back(e); }

  std::uint64_t event_count() const;
  /// The file. Between our chunks lie packets and fields that a reader has to skip.
  std::string bytes() const;
  void write(const std::string& path) const;
};

/// A fork-join program on workers that steal, in simulated time. Deterministic for a seed.
struct schedule {
  std::uint32_t workers = 4;
  std::uint64_t events = 100'000;  ///< about how many
  double grain_ns = 20'000;        ///< mean size of a piece that is not divided further
  double latency_ns = 900;         ///< of a steal, median
  double serial = 0;               ///< part of the work before anything can be stolen
  bool greedy = true;              ///< whoever completes a record runs the waiter; else its worker, later
  std::uint32_t hosts = 1;         ///< steals between them take 30 times as long
  std::uint64_t seed = 1;
};
trace_builder simulate(const schedule& s);
/// Two allocations whose parts wander while the rest of @p t happens: one of few parts, one of many.
void add_moves(trace_builder& t, std::uint64_t moves, std::uint64_t seed);

}  // namespace report_test
