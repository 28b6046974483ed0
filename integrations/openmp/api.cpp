// Entry points: the functions of omp.h that ask about threads and settings, and change these. Fortran's names
// end in an underscore, and take their arguments by address.
//
// What is not here and not in not_done.cpp comes from libgomp, which the program brings along: clocks,
// allocators, devices.
#include <algorithm>
#include <cstdint>
#include <cstdio>

#include "entry.hpp"
#include "settings.hpp"
#include "team.hpp"

using namespace godwit::openmp;

namespace {

template <class F>
void change(F f) noexcept {
  change_settings(self(), f);
}
const settings& now() noexcept { return settings_of(*self().current); }
const team& here() noexcept { return *self().me->of; }
int limited(unsigned n) noexcept { return static_cast<int>(std::min(n, 0x7FFFFFFFu)); }
/// The calling thread's place in the region of that level. Null: there is no such level.
const member* at_level(int level) noexcept {
  const member* me = self().me;
  if (level < 0 || static_cast<unsigned>(level) > me->of->level) return nullptr;
  while (me->of->level > static_cast<unsigned>(level)) me = me->of->outer;
  return me;
}

constexpr unsigned monotonic = 0x80000000u;

}  // namespace

#define ASK(name, value)                    \
  OPENMP_ENTRY int name() { return value; } \
  OPENMP_ENTRY int name##_() { return value; }
ASK(omp_get_thread_num, limited(self().me->number))
ASK(omp_get_num_threads, limited(here().size))
ASK(omp_get_max_threads, limited(now().threads))
ASK(omp_get_num_procs, limited(usable_threads()))
ASK(omp_in_parallel, here().active_level > 0 ? 1 : 0)
ASK(omp_in_final, self().current->final ? 1 : 0)
ASK(omp_get_dynamic, now().dynamic ? 1 : 0)
ASK(omp_get_nested, now().most_active_levels > std::max(1u, here().active_level) ? 1 : 0)
ASK(omp_get_thread_limit, limited(now().thread_limit))
ASK(omp_get_max_active_levels, limited(now().most_active_levels))
ASK(omp_get_supported_active_levels, supported_levels)
ASK(omp_get_level, limited(here().level))
ASK(omp_get_active_level, limited(here().active_level))
ASK(omp_get_cancellation, environment_.cancellation ? 1 : 0)
ASK(omp_get_max_task_priority, 0)
ASK(omp_get_team_num, limited(now().team_number))
ASK(omp_get_num_teams, limited(now().team_count))
ASK(omp_get_max_teams, limited(default_teams_))
ASK(omp_get_teams_thread_limit, limited(teams_thread_limit_))
// Threads have no places: omp_proc_bind_false, and none.
ASK(omp_get_proc_bind, 0)
ASK(omp_get_num_places, 0)
ASK(omp_get_place_num, -1)
ASK(omp_get_partition_num_places, 0)
OPENMP_ENTRY int omp_get_place_num_procs(int) { return 0; }
OPENMP_ENTRY void omp_get_place_proc_ids(int, int*) {}
OPENMP_ENTRY void omp_get_partition_place_nums(int*) {}
OPENMP_ENTRY int omp_get_place_num_procs_(const std::int32_t*) { return 0; }
OPENMP_ENTRY int omp_get_place_num_procs_8_(const std::int64_t*) { return 0; }
OPENMP_ENTRY void omp_get_place_proc_ids_(const std::int32_t*, std::int32_t*) {}
OPENMP_ENTRY void omp_get_place_proc_ids_8_(const std::int64_t*, std::int64_t*) {}
OPENMP_ENTRY void omp_get_partition_place_nums_(std::int32_t*) {}
OPENMP_ENTRY void omp_get_partition_place_nums_8_(std::int64_t*) {}

#define CHANGE(name, statement)                                  \
  OPENMP_ENTRY void name(int n) { statement; }                   \
  OPENMP_ENTRY void name##_(const std::int32_t* p) { name(*p); } \
  OPENMP_ENTRY void name##_8_(const std::int64_t* p) { name(static_cast<int>(*p)); }
CHANGE(omp_set_num_threads, change([&](settings& s) { s.threads = static_cast<unsigned>(std::max(n, 1)); }))
CHANGE(omp_set_dynamic, change([&](settings& s) { s.dynamic = n != 0; }))
CHANGE(omp_set_max_active_levels, if (n >= 0) change([&](settings& s) {
         s.most_active_levels = std::min(static_cast<unsigned>(n), supported_levels);
       }))
CHANGE(omp_set_nested, change([&](settings& s) { s.most_active_levels = n != 0 ? supported_levels : 1u; }))
CHANGE(omp_set_num_teams, default_teams_ = static_cast<unsigned>(std::max(n, 0)))
CHANGE(omp_set_teams_thread_limit, teams_thread_limit_ = static_cast<unsigned>(std::max(n, 0)))

#define ASK_LEVEL(name, value)                                                 \
  OPENMP_ENTRY int name(int level) {                                           \
    const member* m = at_level(level);                                         \
    return m != nullptr ? limited(value) : -1;                                 \
  }                                                                            \
  OPENMP_ENTRY int name##_(const std::int32_t* level) { return name(*level); } \
  OPENMP_ENTRY int name##_8_(const std::int64_t* level) { return name(static_cast<int>(*level)); }
ASK_LEVEL(omp_get_ancestor_thread_num, m->number)
ASK_LEVEL(omp_get_team_size, m->of->size)

OPENMP_ENTRY void omp_set_schedule(unsigned kind, int chunk) {
  const unsigned plain = kind & ~monotonic;
  if (plain < 1 || plain > 4) return;
  change([&](settings& s) {
    s.schedule = static_cast<schedule_kind>(plain);
    s.chunk = s.schedule == schedule_kind::automatic ? 0
              : s.schedule == schedule_kind::fixed   ? std::max(chunk, 0)
                                                     : std::max(chunk, 1);
  });
}
OPENMP_ENTRY void omp_get_schedule(unsigned* kind, int* chunk) {
  const settings& s = now();
  *kind = static_cast<unsigned>(s.schedule);
  *chunk = static_cast<int>(s.chunk);
}
OPENMP_ENTRY void omp_set_schedule_(const std::int32_t* kind, const std::int32_t* chunk) {
  omp_set_schedule(static_cast<unsigned>(*kind), *chunk);
}
OPENMP_ENTRY void omp_set_schedule_8_(const std::int32_t* kind, const std::int64_t* chunk) {
  omp_set_schedule(static_cast<unsigned>(*kind), static_cast<int>(*chunk));
}
OPENMP_ENTRY void omp_get_schedule_(std::int32_t* kind, std::int32_t* chunk) {
  unsigned k = 0;
  omp_get_schedule(&k, chunk);
  *kind = static_cast<std::int32_t>(k);
}
OPENMP_ENTRY void omp_get_schedule_8_(std::int32_t* kind, std::int64_t* chunk) {
  std::int32_t c = 0;
  omp_get_schedule_(kind, &c);
  *chunk = c;
}

// Nothing is kept between regions that could be given back.
OPENMP_ENTRY int omp_pause_resource(unsigned, int) { return 0; }
OPENMP_ENTRY int omp_pause_resource_all(unsigned) { return 0; }
OPENMP_ENTRY int omp_pause_resource_(const std::int32_t*, const std::int32_t*) { return 0; }
OPENMP_ENTRY int omp_pause_resource_all_(const std::int32_t*) { return 0; }
