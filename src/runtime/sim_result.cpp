// See sim_result.hpp.
#include "runtime/sim_result.hpp"

#include <cinttypes>
#include <cstdarg>
#include <cstdio>
#include <fstream>
#include <sys/resource.h>
#include <unistd.h>

namespace godwit::runtime {

namespace {

constexpr double most_lateness = 0.005;

double ms(std::uint64_t ns) { return static_cast<double>(ns) / 1e6; }

[[gnu::format(printf, 2, 3)]] void add(std::string& text, const char* format, ...) {
  char part[256];
  std::va_list args;
  va_start(args, format);
  std::vsnprintf(part, sizeof part, format, args);
  va_end(args);
  text += part;
}

}  // namespace

double sim_result::worker_ns() const noexcept { return static_cast<double>(turns.end_ns) * workers; }

double sim_result::efficiency() const noexcept {
  return turns.end_ns != 0 ? static_cast<double>(turns.charged_ns) / worker_ns() : 0;
}

double sim_result::lateness() const noexcept {
  return turns.end_ns != 0 ? static_cast<double>(turns.late_ns) / worker_ns() : 0;
}

std::string sim_result::line() const {
  std::string s;
  add(s, "godwit: sim: %u workers", workers);
  if (net) add(s, " on %u hosts", hosts);
  s += " of " + machine;
  add(s, ": %.3f ms", ms(turns.end_ns));
  if (turns.charged_ns != 0) add(s, ", %.1f %% of it charged", 100 * efficiency());
  add(s, "; %" PRIu64 " events, %" PRIu64 " turns, %.2f s and %.0f MB here; ", turns.events, turns.switches,
      here_seconds, static_cast<double>(memory_bytes) / 1e6);
  if (net)
    add(s, "%" PRIu64 " messages and %" PRIu64 " one-sided operations, %.1f MB, queued %.3f ms together; ",
        net->messages, net->one_sided, static_cast<double>(net->bytes) / 1e6, ms(net->queued_ns));
  if (net) add(s, "to start and end real ranks %.3f ms more; ", ms(collectives_ns));
  if (measured) return s + "time was measured: another run differs\n";
  add(s, "hash %016" PRIx64 "; late: %" PRIu64 " times, %.1f us together, %.1f us at most", turns.hash,
      turns.late, static_cast<double>(turns.late_ns) / 1e3, static_cast<double>(turns.late_max_ns) / 1e3);
  if (lateness() > most_lateness)
    add(s, ": %.1f %% of the time, too much to trust the result: lower --godwit-sim-lead-ns",
        100 * lateness());
  if (turns.charged_ns == 0)
    s += "; the program charged nothing (godwit::sim::charge), so this is the scheduler's time alone";
  return s + '\n';
}

void sim_result::put(base::json_writer& json) const {
  json.begin_object()
      .field("machine", machine)
      .field("time_ns", turns.end_ns)
      .field("charged_ns", turns.charged_ns)
      .field("efficiency", efficiency())
      .field("measured", measured)
      .field("events", turns.events)
      .field("turns", turns.switches)
      .field("late", turns.late)
      .field("late_ns", turns.late_ns)
      .field("lateness", lateness());
  if (!measured) {
    char hash[17];
    std::snprintf(hash, sizeof hash, "%016" PRIx64, turns.hash);
    json.field("hash", hash);
  }
  if (net)
    json.field("messages", net->messages)
        .field("one_sided", net->one_sided)
        .field("bytes", net->bytes)
        .field("queued_ns", net->queued_ns)
        .field("collectives_ns", collectives_ns);
  json.field("here_seconds", here_seconds).field("memory_bytes", memory_bytes).end_object();
}

std::uint64_t resident_bytes() {
  std::uint64_t all = 0, resident = 0;
  std::ifstream("/proc/self/statm") >> all >> resident;
  return resident * static_cast<std::uint64_t>(sysconf(_SC_PAGESIZE));
}

std::uint64_t most_resident_bytes() {
  rusage use{};
  getrusage(RUSAGE_SELF, &use);
  return static_cast<std::uint64_t>(use.ru_maxrss) * 1024;
}

}  // namespace godwit::runtime
