// Tables of worker_local values: one per worker that has any, found by its hot words. See worker_local.hpp.
#include <godwit/worker_local.hpp>

#include <atomic>
#include <mutex>
#include <utility>

#include "base/check.hpp"
#include "sched/worker.hpp"

namespace godwit::detail {

namespace {

std::atomic<std::uint64_t> made_{0};  // in this process. W all
/// Of the process: held by who adds a value, and by who looks at tables of others. A few instructions.
std::mutex tables_;

constexpr std::uint64_t first_places = 16;
constexpr int rounds_at_end = 4;  // destructors may make new values: like thread_specific

local_table* own_table() noexcept { return const_cast<local_table*>(hot().locals); }

/// Where @p number is, or the free place where it would be.
local_value& place_of(const local_table& t, std::uint64_t number) noexcept {
  std::uint64_t i = number;
  while (t.values[i & t.mask].number != number && t.values[i & t.mask].number != 0) ++i;
  return t.values[i & t.mask];
}

/// Another table, twice as large if it needs to be, with what still has a value.
void make_room() {
  local_table* old = own_table();
  std::uint64_t living = 0;
  for (std::uint64_t i = 0; old != nullptr && i <= old->mask; ++i) living += old->values[i].value != nullptr;
  std::uint64_t places = first_places;
  while (places < living * 4) places *= 2;
  auto* fresh = new local_table{new local_value[places], places - 1, living};
  for (std::uint64_t i = 0; old != nullptr && i <= old->mask; ++i)
    if (old->values[i].value != nullptr) place_of(*fresh, old->values[i].number) = old->values[i];
  hot().locals = fresh;
  if (old == nullptr) return;
  delete[] old->values;
  delete old;
}

/// This worker's and, for the first of the host, spare workers', which nobody is sent to. @p take: afterwards
/// they have them no more.
std::vector<local_value> values_here(std::uint64_t number, bool take) {
  const sched::site& here = sched::this_worker().here();
  std::vector<local_value> found;
  const auto look_at = [&](const hot_words& w) {
    if (w.locals == nullptr) return;
    local_value& v = place_of(*w.locals, number);
    if (v.value == nullptr) return;
    found.push_back(v);
    if (take) v.value = nullptr;
  };
  const std::lock_guard whole(tables_);
  look_at(hot());
  if (transport::index(here.me) != here.near.first) return found;
  for (std::uint32_t w = here.regular(); w < here.near.count; ++w)
    look_at(*here.hot_of(transport::worker_no{here.near.first + w}));
  return found;
}

}  // namespace

std::uint64_t new_local_number() noexcept {
  constexpr int worker_bits_from = 40;
  const std::uint64_t n = made_.fetch_add(1, std::memory_order_relaxed) + 1;
  return hot_workers() == 0 ? n : n | std::uint64_t{hot().worker + 1} << worker_bits_from;
}

void add_local(const local_value& v) {
  const std::lock_guard whole(tables_);
  if (const local_table* t = own_table(); t == nullptr || (t->used + 1) * 2 > t->mask + 1) make_room();
  local_value& place = place_of(*own_table(), v.number);
  if (place.value != nullptr)
    base::fatal(
        "worker %u has a value of this worker_local already: what makes the values (the callable, or T's "
        "constructor) spawned, joined or waited, and another thread made one meanwhile; it must not wait",
        hot().worker);
  if (place.number == 0) ++own_table()->used;
  place = v;
}

std::vector<void*> locals_here(std::uint64_t number) {
  std::vector<void*> values;
  for (const local_value& v : values_here(number, false)) values.push_back(v.value);
  return values;
}

void destroy_locals_here(std::uint64_t number) noexcept {
  for (const local_value& v : values_here(number, true)) v.destroy(v.value);
}

void end_locals() noexcept {
  if (own_table() == nullptr) return;
  bool found = true;
  for (int round = 0; found && round < rounds_at_end; ++round) {
    found = false;
    // a destructor may ask for values that were not there: they come into this table, or into a larger one
    for (std::uint64_t i = 0; i <= own_table()->mask; ++i)
      if (local_value& v = own_table()->values[i]; v.value != nullptr) {
        found = true;
        v.destroy(std::exchange(v.value, nullptr));
      }
  }
  const local_table* t = own_table();
  delete[] t->values;
  delete t;
  hot().locals = nullptr;
}

void local_outside_run() noexcept {
  base::fatal(
      "worker_local was asked for a value outside godwit::run: only workers have one; ask in a thread");
}

}  // namespace godwit::detail
