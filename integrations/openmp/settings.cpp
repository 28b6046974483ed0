// See settings.hpp.
#include "settings.hpp"

#include <algorithm>
#include <cctype>
#include <cstdarg>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <sched.h>
#include <strings.h>
#include <unistd.h>
#include <unordered_set>

#include "idle.hpp"

namespace godwit::openmp {

environment environment_;
unsigned default_teams_ = 0, teams_thread_limit_ = 0;

namespace {

void put(const char* format, va_list args) noexcept {
  char text[1024], line[1100];
  std::vsnprintf(text, sizeof text, format, args);
  const int n = std::snprintf(line, sizeof line, "godwit-openmp: %s\n", text);
  static_cast<void>(!::write(2, line, static_cast<std::size_t>(n)));
}

}  // namespace

void say(const char* format, ...) noexcept {
  va_list args;
  va_start(args, format);
  put(format, args);
  va_end(args);
}
void fail(const char* format, ...) noexcept {
  va_list args;
  va_start(args, format);
  put(format, args);
  _exit(70);
}

unsigned usable_threads() noexcept {
  static const unsigned count = [] {
    cpu_set_t set;
    if (sched_getaffinity(0, sizeof set, &set) == 0) return static_cast<unsigned>(CPU_COUNT(&set));
    return 1u;
  }();
  return count;
}

namespace {

struct settings_hash {
  std::size_t operator()(const settings& s) const noexcept {
    std::uint64_t h = 0;
    for (const std::uint64_t v : {std::uint64_t{s.threads}, std::uint64_t{s.most_active_levels},
                                  static_cast<std::uint64_t>(s.schedule), static_cast<std::uint64_t>(s.chunk),
                                  std::uint64_t{s.thread_limit}, std::uint64_t{s.team_number}})
      h = (h ^ v) * 0x9E3779B97F4A7C15u;
    return h ^ (h >> 32);
  }
};
std::uint32_t kept_lock_ = 0;

}  // namespace

const settings* keep(const settings& s) noexcept {
  static auto& kept = *new std::unordered_set<settings, settings_hash>;  // asked by threads at exit, too
  const guard hold(kept_lock_);
  return &*kept.insert(s).first;
}

namespace {

/// The variable's value. Null: not set, or empty.
const char* value_of(const char* name) noexcept {
  const char* v = std::getenv(name);
  while (v != nullptr && std::isspace(static_cast<unsigned char>(*v)) != 0) ++v;
  return v != nullptr && *v != '\0' ? v : nullptr;
}
void refuse(const char* name, const char* value, const char* wanted) noexcept {
  say("%s=%s is ignored: %s", name, value, wanted);
}
void skip_space(const char*& text) noexcept {
  while (std::isspace(static_cast<unsigned char>(*text)) != 0) ++text;
}
/// A number from @p least up at @p text, which goes behind it and the space there. False: none.
bool number(const char*& text, unsigned long& n, unsigned long least = 1) noexcept {
  skip_space(text);
  char* end = nullptr;
  n = std::strtoul(text, &end, 10);
  if (end == text || n < least || *text == '-') return false;
  text = end;
  skip_space(text);
  return true;
}
bool starts(const char*& text, const char* word) noexcept {
  const std::size_t n = std::strlen(word);
  if (::strncasecmp(text, word, n) != 0) return false;
  text += n;
  skip_space(text);
  return true;
}
bool truth(const char* name, bool otherwise) noexcept {
  const char* v = value_of(name);
  if (v == nullptr) return otherwise;
  const char* rest = v;
  if (starts(rest, "true") && *rest == '\0') return true;
  if (starts(rest, "false") && *rest == '\0') return false;
  refuse(name, v, "it is true or false");
  return otherwise;
}
unsigned count(const char* name, unsigned otherwise, unsigned least = 1) noexcept {
  const char* v = value_of(name);
  if (v == nullptr) return otherwise;
  const char* rest = v;
  unsigned long n = 0;
  if (number(rest, n, least) && *rest == '\0') return static_cast<unsigned>(std::min(n, 0x7FFFFFFFul));
  refuse(name, v, least == 0 ? "it is a number from 0 up" : "it is a number from 1 up");
  return otherwise;
}

void read_threads(environment& e) noexcept {
  const char* v = value_of("OMP_NUM_THREADS");
  e.initial.threads = usable_threads();
  if (v == nullptr) return;
  const char* rest = v;
  bool right = true, more = true;
  for (unsigned long n = 0; more && (right = number(rest, n)); rest += more ? 1 : 0) {
    if (e.level_count < std::size(e.threads_of_level))  // deeper ones have as many as the last
      e.threads_of_level[e.level_count++] = static_cast<unsigned>(std::min(n, 0xFFFFul));
    more = *rest == ',';
  }
  if (!right || *rest != '\0') {
    e.level_count = 0;
    refuse("OMP_NUM_THREADS", v, "it is a number from 1 up, or several with commas");
    return;
  }
  e.initial.threads = e.threads_of_level[0];
}

void read_schedule(environment& e) noexcept {
  e.initial.schedule = schedule_kind::dynamic;
  e.initial.chunk = 1;
  const char* v = value_of("OMP_SCHEDULE");
  if (v == nullptr) return;
  const char* rest = v;
  if (!starts(rest, "monotonic:")) starts(rest, "nonmonotonic:");
  schedule_kind kind;
  if (starts(rest, "static"))
    kind = schedule_kind::fixed;
  else if (starts(rest, "dynamic"))
    kind = schedule_kind::dynamic;
  else if (starts(rest, "guided"))
    kind = schedule_kind::guided;
  else if (starts(rest, "auto"))
    kind = schedule_kind::automatic;
  else
    return refuse("OMP_SCHEDULE", v,
                  "it is static, dynamic, guided or auto, then perhaps a comma and a number");
  unsigned long chunk = 0;
  if (*rest == ',' && (++rest, !number(rest, chunk))) rest = "?";
  if (*rest != '\0') return refuse("OMP_SCHEDULE", v, "behind the comma is a number from 1 up");
  e.initial.schedule = kind;
  e.initial.chunk = chunk != 0 ? static_cast<std::int64_t>(chunk) : kind == schedule_kind::fixed ? 0 : 1;
}

void read_stack(environment& e) noexcept {
  const char* v = value_of("OMP_STACKSIZE");
  if (v == nullptr) return;
  const char* rest = v;
  unsigned long n = 0;
  unsigned shift = 10;
  if (!number(rest, n))
    return refuse("OMP_STACKSIZE", v, "it is a number of kilobytes, or with B, K, M or G");
  if (starts(rest, "b"))
    shift = 0;
  else if (starts(rest, "m"))
    shift = 20;
  else if (starts(rest, "g"))
    shift = 30;
  else
    starts(rest, "k");
  if (*rest != '\0') return refuse("OMP_STACKSIZE", v, "behind the number comes B, K, M or G");
  e.stack_bytes = n << shift;
}

void read_wait_policy() noexcept {
  const char* v = value_of("OMP_WAIT_POLICY");
  if (v == nullptr) return;
  const char* rest = v;
  const bool active = starts(rest, "active"), passive = !active && starts(rest, "passive");
  if ((!active && !passive) || *rest != '\0') return refuse("OMP_WAIT_POLICY", v, "it is active or passive");
  choose_limits(active, passive);
}

/// Those that place threads on CPUs: a thread runs wherever there is a worker.
void refuse_places() noexcept {
  for (const char* name : {"OMP_PROC_BIND", "OMP_PLACES", "GOMP_CPU_AFFINITY"}) {
    const char* v = value_of(name);
    const char* rest = v;
    if (v != nullptr && !starts(rest, "false"))
      refuse(name, v, "threads run on any worker (to bind those: GODWIT_BIND=cores)");
  }
}

[[gnu::constructor]] void read_environment() noexcept {
  environment& e = environment_;
  read_threads(e);
  read_schedule(e);
  read_stack(e);
  read_wait_policy();
  refuse_places();
  e.initial.dynamic = truth("OMP_DYNAMIC", false);
  e.initial.thread_limit = count("OMP_THREAD_LIMIT", 0x7FFFFFFF);
  e.initial.team_count = 1;
  default_teams_ = count("OMP_NUM_TEAMS", 0);
  teams_thread_limit_ = count("OMP_TEAMS_THREAD_LIMIT", 0);
  e.cancellation = truth("OMP_CANCELLATION", false);
  const bool nested = truth("OMP_NESTED", e.level_count > 1);
  const unsigned levels = count("OMP_MAX_ACTIVE_LEVELS", nested ? supported_levels : 1, 0);
  e.initial.most_active_levels = std::min(levels, supported_levels);
}

}  // namespace

}  // namespace godwit::openmp
