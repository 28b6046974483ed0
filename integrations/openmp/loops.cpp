// Entry points: loops and sections. What they share is in share.cpp.
#include <algorithm>
#include <cstdarg>
#include <cstdlib>
#include <iterator>

#include "entry.hpp"
#include "idle.hpp"
#include "reductions.hpp"
#include "settings.hpp"
#include "task.hpp"
#include "team.hpp"

using namespace godwit::openmp;

using function = void(void*);
using ull = unsigned long long;

namespace {

constexpr auto fixed = schedule_kind::fixed, dynamic = schedule_kind::dynamic, guided = schedule_kind::guided,
               run_time = schedule_kind::run_time;

/// The member's iterations as the program counts them.
template <class T>
bool give(thread& t, T* begin, T* end) noexcept {
  const member& me = *t.me;
  if (me.chunk_begin == me.chunk_end) return false;
  const share& s = *me.in;
  *begin = static_cast<T>(s.start + me.chunk_begin * s.step);
  *end = static_cast<T>(me.chunk_end == s.count ? s.finish : s.start + me.chunk_end * s.step);
  return true;
}
template <class T>
bool next(T* begin, T* end) noexcept {
  thread& t = self();
  return next_chunk(t) && give(t, begin, end);
}
template <class T>
bool next_ordered(T* begin, T* end) noexcept {
  pass_turn(self());
  return next(begin, end);
}
template <class T>
bool start(const loop& l, T* begin, T* end) noexcept {
  enter_share(self(), [&](share& s) { set_loop(s, l); });
  return next(begin, end);
}

void run_region(function* f, void* data, unsigned threads, const loop& l) noexcept {
  loop copy = l;
  begin_region(
      f, data, region_size(threads), nullptr,
      [](share& s, void* p) { set_loop(s, *static_cast<const loop*>(p)); }, &copy);
}

}  // namespace

// The schedules that are named in a loop's entry points; `monotonic` or not makes no difference here.
#define WITH_CHUNK(X)              \
  X(static, fixed)                 \
  X(dynamic, dynamic)              \
  X(guided, guided)                \
  X(nonmonotonic_dynamic, dynamic) \
  X(nonmonotonic_guided, guided)
#define WITHOUT_CHUNK(X)            \
  X(runtime, run_time)              \
  X(nonmonotonic_runtime, run_time) \
  X(maybe_nonmonotonic_runtime, run_time)
#define ORDERED_WITH_CHUNK(X) X(static, fixed) X(dynamic, dynamic) X(guided, guided)

#define NEXT(name, kind)                                                             \
  OPENMP_ENTRY bool GOMP_loop_##name##_next(long* b, long* e) { return next(b, e); } \
  OPENMP_ENTRY bool GOMP_loop_ull_##name##_next(ull* b, ull* e) { return next(b, e); }
WITH_CHUNK(NEXT)
WITHOUT_CHUNK(NEXT)

#define START(name, kind)                                                                                    \
  OPENMP_ENTRY bool GOMP_loop_##name##_start(long from, long to, long by, long chunk, long* b, long* e) {    \
    return start(loop_of(kind, from, to, by, chunk), b, e);                                                  \
  }                                                                                                          \
  OPENMP_ENTRY bool GOMP_loop_ull_##name##_start(bool up, ull from, ull to, ull by, ull chunk, ull* b,       \
                                                 ull* e) {                                                   \
    return start(loop_of(kind, up, from, to, by, chunk), b, e);                                              \
  }                                                                                                          \
  OPENMP_ENTRY void GOMP_parallel_loop_##name(function* f, void* data, unsigned threads, long from, long to, \
                                              long by, long chunk, unsigned) {                               \
    run_region(f, data, threads, loop_of(kind, from, to, by, chunk));                                        \
    f(data);                                                                                                 \
    end_region();                                                                                            \
  }
WITH_CHUNK(START)

#define START_WITHOUT(name, kind)                                                                            \
  OPENMP_ENTRY bool GOMP_loop_##name##_start(long from, long to, long by, long* b, long* e) {                \
    return start(loop_of(kind, from, to, by, 0), b, e);                                                      \
  }                                                                                                          \
  OPENMP_ENTRY bool GOMP_loop_ull_##name##_start(bool up, ull from, ull to, ull by, ull* b, ull* e) {        \
    return start(loop_of(kind, up, from, to, by, 0), b, e);                                                  \
  }                                                                                                          \
  OPENMP_ENTRY void GOMP_parallel_loop_##name(function* f, void* data, unsigned threads, long from, long to, \
                                              long by, unsigned) {                                           \
    run_region(f, data, threads, loop_of(kind, from, to, by, 0));                                            \
    f(data);                                                                                                 \
    end_region();                                                                                            \
  }
WITHOUT_CHUNK(START_WITHOUT)

#define ORDERED_NEXT(name)                                                                           \
  OPENMP_ENTRY bool GOMP_loop_ordered_##name##_next(long* b, long* e) { return next_ordered(b, e); } \
  OPENMP_ENTRY bool GOMP_loop_ull_ordered_##name##_next(ull* b, ull* e) { return next_ordered(b, e); }
#define ORDERED(name, kind)                                                                            \
  OPENMP_ENTRY bool GOMP_loop_ordered_##name##_start(long from, long to, long by, long chunk, long* b, \
                                                     long* e) {                                        \
    return start(loop_of(kind, from, to, by, chunk), b, e);                                            \
  }                                                                                                    \
  OPENMP_ENTRY bool GOMP_loop_ull_ordered_##name##_start(bool up, ull from, ull to, ull by, ull chunk, \
                                                         ull* b, ull* e) {                             \
    return start(loop_of(kind, up, from, to, by, chunk), b, e);                                        \
  }                                                                                                    \
  ORDERED_NEXT(name)
ORDERED_WITH_CHUNK(ORDERED)
ORDERED_NEXT(runtime)
OPENMP_ENTRY bool GOMP_loop_ordered_runtime_start(long from, long to, long by, long* b, long* e) {
  return start(loop_of(run_time, from, to, by, 0), b, e);
}
OPENMP_ENTRY bool GOMP_loop_ull_ordered_runtime_start(bool up, ull from, ull to, ull by, ull* b, ull* e) {
  return start(loop_of(run_time, up, from, to, by, 0), b, e);
}

// Of gcc before 4.9: the program calls the function and GOMP_parallel_end itself.
#define OLD_REGION(name, kind)                                                                              \
  OPENMP_ENTRY void GOMP_parallel_loop_##name##_start(function* f, void* data, unsigned threads, long from, \
                                                      long to, long by, long chunk) {                       \
    run_region(f, data, threads, loop_of(kind, from, to, by, chunk));                                       \
  }
ORDERED_WITH_CHUNK(OLD_REGION)
OPENMP_ENTRY void GOMP_parallel_loop_runtime_start(function* f, void* data, unsigned threads, long from,
                                                   long to, long by) {
  run_region(f, data, threads, loop_of(run_time, from, to, by, 0));
}

OPENMP_ENTRY void GOMP_loop_end_nowait() { leave_share(self()); }
OPENMP_ENTRY void GOMP_loop_end() {
  leave_share(self());
  barrier(self(), false);
}
OPENMP_ENTRY bool GOMP_loop_end_cancel() {
  leave_share(self());
  return barrier(self(), true);
}

// Sections are a loop over their numbers, from 1.
namespace {
unsigned next_section() noexcept {
  unsigned long long begin = 0, end = 0;
  return next(&begin, &end) ? static_cast<unsigned>(begin) : 0;
}
loop sections_of(unsigned count) noexcept { return loop_of(dynamic, true, 1, ull{count} + 1, 1, 1); }
}  // namespace
OPENMP_ENTRY unsigned GOMP_sections_start(unsigned count) {
  enter_share(self(), [&](share& s) { set_loop(s, sections_of(count)); });
  return next_section();
}
OPENMP_ENTRY unsigned GOMP_sections_next() { return next_section(); }
OPENMP_ENTRY void GOMP_parallel_sections_start(function* f, void* data, unsigned threads, unsigned count) {
  run_region(f, data, threads, sections_of(count));
}
OPENMP_ENTRY void GOMP_parallel_sections(function* f, void* data, unsigned threads, unsigned count,
                                         unsigned) {
  run_region(f, data, threads, sections_of(count));
  f(data);
  end_region();
}
OPENMP_ENTRY void GOMP_sections_end() { GOMP_loop_end(); }
OPENMP_ENTRY void GOMP_sections_end_nowait() { GOMP_loop_end_nowait(); }
OPENMP_ENTRY bool GOMP_sections_end_cancel() { return GOMP_loop_end_cancel(); }

// Constructs with task reductions, or with memory for all members: `memory` holds how many bytes, then where.
namespace {
void* zeros(std::size_t bytes) noexcept {
  void* p = std::calloc(1, std::max<std::size_t>(bytes, 1));
  if (p == nullptr) fail("out of memory for a loop's %zu bytes", bytes);
  return p;
}
template <class F>
void enter_with_extras(std::uintptr_t* reductions, void** memory, F prepare) noexcept {
  thread& t = self();
  share& s = enter_share(t, [&](share& first) {
    prepare(first);
    if (memory != nullptr) first.memory = zeros(reinterpret_cast<std::uintptr_t>(*memory));
    if (reductions != nullptr) {
      make_copies(reductions, reductions_of(t), t.me->of->size);
      first.reductions = reductions;
    }
  });
  if (memory != nullptr) *memory = s.memory;
  if (reductions == nullptr) return;
  if (s.reductions != reductions) use_copies(reductions, reductions_of(t), s.reductions);
  begin_heap_group(t).reductions = reductions;
}
schedule_kind kind_of(long schedule) noexcept {
  constexpr unsigned monotonic = 0x80000000u;
  return static_cast<schedule_kind>(static_cast<unsigned>(schedule) & ~monotonic);
}
/// Loops that the compiler divides by itself come only for what their members share: without iterations.
template <class T>
bool begin_loop(const loop& l, T* b, T* e, std::uintptr_t* reductions, void** memory) noexcept {
  enter_with_extras(reductions, memory, [&](share& s) { set_loop(s, l); });
  return b == nullptr || next(b, e);
}
}  // namespace
OPENMP_ENTRY bool GOMP_loop_start(long from, long to, long by, long schedule, long chunk, long* b, long* e,
                                  std::uintptr_t* reductions, void** memory) {
  return begin_loop(loop_of(kind_of(schedule), from, to, by, chunk), b, e, reductions, memory);
}
OPENMP_ENTRY bool GOMP_loop_ull_start(bool up, ull from, ull to, ull by, long schedule, ull chunk, ull* b,
                                      ull* e, std::uintptr_t* reductions, void** memory) {
  return begin_loop(loop_of(kind_of(schedule), up, from, to, by, chunk), b, e, reductions, memory);
}
OPENMP_ENTRY bool GOMP_loop_ordered_start(long from, long to, long by, long schedule, long chunk, long* b,
                                          long* e, std::uintptr_t* reductions, void** memory) {
  return begin_loop(loop_of(kind_of(schedule), from, to, by, chunk), b, e, reductions, memory);
}
OPENMP_ENTRY bool GOMP_loop_ull_ordered_start(bool up, ull from, ull to, ull by, long schedule, ull chunk,
                                              ull* b, ull* e, std::uintptr_t* reductions, void** memory) {
  return begin_loop(loop_of(kind_of(schedule), up, from, to, by, chunk), b, e, reductions, memory);
}
OPENMP_ENTRY unsigned GOMP_sections2_start(unsigned count, std::uintptr_t* reductions, void** memory) {
  enter_with_extras(reductions, memory, [&](share& s) { set_loop(s, sections_of(count)); });
  return next_section();
}
OPENMP_ENTRY void GOMP_scope_start(std::uintptr_t* reductions) {
  enter_with_extras(reductions, nullptr, [](share& s) { set_loop(s, sections_of(0)); });
  leave_share(self());
}

// Loops whose iterations wait for others: doacross.
namespace {

template <class T>
void set_doacross(share& s, unsigned dimensions, const T* extents) noexcept {
  constexpr std::uint64_t most_cells = std::uint64_t{1} << 32;
  if (dimensions > std::size(s.extents))
    fail("a loop with ordered(%u) is not done: up to %zu dimensions are", dimensions, std::size(s.extents));
  s.dimensions = dimensions;
  s.cells = 1;
  for (unsigned i = 0; i < dimensions; ++i) {
    s.extents[i] = static_cast<std::uint64_t>(extents[i]);
    s.cells *= s.extents[i];
    if (s.extents[i] > most_cells || s.cells > most_cells)
      fail("a loop with ordered(%u) and depend over more than 2^32 iterations is not done", dimensions);
  }
  s.posted = static_cast<std::atomic<unsigned char>*>(zeros(s.cells));
}
/// The compiler counts these iterations from 0 in steps of 1.
template <class T>
bool begin_doacross(schedule_kind kind, unsigned dimensions, const T* extents, T chunk, T* b, T* e,
                    std::uintptr_t* reductions, void** memory) noexcept {
  const loop l = loop_of(kind, true, 0, static_cast<ull>(extents[0]), 1, static_cast<ull>(chunk));
  enter_with_extras(reductions, memory, [&](share& s) {
    set_loop(s, l);
    set_doacross(s, dimensions, extents);
  });
  return b == nullptr || next(b, e);
}
template <class T>
void post(const T* at) noexcept {
  thread& t = self();
  share& s = *t.me->in;
  std::uint64_t cell = 0;
  for (unsigned i = 0; i < s.dimensions; ++i) cell = cell * s.extents[i] + static_cast<std::uint64_t>(at[i]);
  s.posted[cell].store(1, std::memory_order_seq_cst);
  wake_all(*t.me->of);
}
void wait_for_cell(thread& t, std::uint64_t cell) noexcept {
  share& s = *t.me->in;
  if (cell >= s.cells) return;
  const std::atomic<bool>& cancelled = t.me->of->cancelled;  // members that would post it may have left
  wait_until(t, [&] {
    return s.posted[cell].load(std::memory_order_acquire) != 0 || cancelled.load(std::memory_order_acquire);
  });
}

}  // namespace

#define DOACROSS(name, kind)                                                                           \
  OPENMP_ENTRY bool GOMP_loop_doacross_##name##_start(unsigned n, long* extents, long chunk, long* b,  \
                                                      long* e) {                                       \
    return begin_doacross(kind, n, extents, chunk, b, e, nullptr, nullptr);                            \
  }                                                                                                    \
  OPENMP_ENTRY bool GOMP_loop_ull_doacross_##name##_start(unsigned n, ull* extents, ull chunk, ull* b, \
                                                          ull* e) {                                    \
    return begin_doacross(kind, n, extents, chunk, b, e, nullptr, nullptr);                            \
  }
ORDERED_WITH_CHUNK(DOACROSS)
OPENMP_ENTRY bool GOMP_loop_doacross_runtime_start(unsigned n, long* extents, long* b, long* e) {
  return begin_doacross(run_time, n, extents, 0L, b, e, nullptr, nullptr);
}
OPENMP_ENTRY bool GOMP_loop_ull_doacross_runtime_start(unsigned n, ull* extents, ull* b, ull* e) {
  return begin_doacross(run_time, n, extents, 0ull, b, e, nullptr, nullptr);
}
OPENMP_ENTRY bool GOMP_loop_doacross_start(unsigned n, long* extents, long schedule, long chunk, long* b,
                                           long* e, std::uintptr_t* reductions, void** memory) {
  return begin_doacross(kind_of(schedule), n, extents, chunk, b, e, reductions, memory);
}
OPENMP_ENTRY bool GOMP_loop_ull_doacross_start(unsigned n, ull* extents, long schedule, ull chunk, ull* b,
                                               ull* e, std::uintptr_t* reductions, void** memory) {
  return begin_doacross(kind_of(schedule), n, extents, chunk, b, e, reductions, memory);
}
OPENMP_ENTRY void GOMP_doacross_post(long* at) { post(at); }
OPENMP_ENTRY void GOMP_doacross_ull_post(ull* at) { post(at); }
OPENMP_ENTRY void GOMP_doacross_wait(long first, ...) {
  thread& t = self();
  const share& s = *t.me->in;
  va_list rest;
  va_start(rest, first);
  auto cell = static_cast<std::uint64_t>(first);
  for (unsigned i = 1; i < s.dimensions; ++i)
    cell = cell * s.extents[i] + static_cast<std::uint64_t>(va_arg(rest, long));
  va_end(rest);
  wait_for_cell(t, cell);
}
OPENMP_ENTRY void GOMP_doacross_ull_wait(ull first, ...) {
  thread& t = self();
  const share& s = *t.me->in;
  va_list rest;
  va_start(rest, first);
  std::uint64_t cell = first;
  for (unsigned i = 1; i < s.dimensions; ++i) cell = cell * s.extents[i] + va_arg(rest, ull);
  va_end(rest);
  wait_for_cell(t, cell);
}
