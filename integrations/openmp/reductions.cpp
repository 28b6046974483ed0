// See reductions.hpp.
#include "reductions.hpp"

#include <algorithm>
#include <cstdlib>
#include <cstring>

#include "entry.hpp"
#include "settings.hpp"
#include "task.hpp"
#include "team.hpp"

namespace godwit::openmp {

namespace {

enum word : unsigned {
  variables = 0,
  bytes = 1,
  copies = 2,
  next_list = 4,
  copies_end = 6,
  first_variable = 7
};

void* at(std::uintptr_t a) noexcept {
  return reinterpret_cast<void*>(a);
}  // NOLINT(performance-no-int-to-ptr)
std::uintptr_t* list_at(std::uintptr_t a) noexcept { return static_cast<std::uintptr_t*>(at(a)); }

/// f(array) for each of the list; the last one's link then leads to those around it.
template <class F>
void for_each_new(std::uintptr_t* list, std::uintptr_t* around, F f) {
  for (std::uintptr_t* d = list;;) {
    f(d);
    if (d[next_list] == 0) {
      d[next_list] = reinterpret_cast<std::uintptr_t>(around);
      return;
    }
    d = list_at(d[next_list]);
  }
}

}  // namespace

void make_copies(std::uintptr_t* list, std::uintptr_t* around, unsigned threads) noexcept {
  for_each_new(list, around, [&](std::uintptr_t* d) {
    const std::size_t align = std::max<std::size_t>(d[copies], sizeof(void*)), all = d[bytes] * threads;
    void* p = std::aligned_alloc(align, std::max((all + align - 1) / align * align, align));
    if (p == nullptr) fail("out of memory for the copies of a reduction");
    std::memset(p, 0, all);
    d[copies] = reinterpret_cast<std::uintptr_t>(p);
    d[copies_end] = d[copies] + all;
  });
}
void use_copies(std::uintptr_t* list, std::uintptr_t* around, const std::uintptr_t* other) noexcept {
  for_each_new(list, around, [&](std::uintptr_t* d) {
    d[copies] = other[copies];
    d[copies_end] = other[copies_end];
    other = list_at(other[next_list]);
  });
}
std::uintptr_t* reductions_of(const thread& t) noexcept {
  return t.current->in != nullptr ? t.current->in->reductions : nullptr;
}

namespace {

/// The variable that @p p is, or a copy of: its array, and where in a copy. Null: not in any list.
struct found {
  const std::uintptr_t* list;
  std::uintptr_t offset;
  std::uintptr_t original;
};
found find(const std::uintptr_t* list, std::uintptr_t p) noexcept {
  for (const std::uintptr_t* d = list; d != nullptr; d = list_at(d[next_list])) {
    const bool is_copy = p >= d[copies] && p < d[copies_end];
    const std::uintptr_t offset = is_copy ? (p - d[copies]) % d[bytes] : 0;
    for (std::uintptr_t i = 0; i < d[variables]; ++i) {
      const std::uintptr_t* v = d + first_variable + 3 * i;
      if (v[0] == p || (is_copy && v[1] == offset)) return {d, v[1], v[0]};
    }
    if (is_copy) return {d, offset, 0};
  }
  return {nullptr, 0, 0};
}

void free_copies(std::uintptr_t* list) noexcept {
  const std::uintptr_t* around = nullptr;  // the list's own arrays end where the outer list begins
  const thread& t = self();
  if (const group* g = t.current->in; g != nullptr) around = g->reductions;
  for (std::uintptr_t* d = list; d != nullptr && d != around; d = list_at(d[next_list]))
    std::free(at(d[copies]));
}

}  // namespace

}  // namespace godwit::openmp

using namespace godwit::openmp;

OPENMP_ENTRY void GOMP_taskgroup_reduction_register(std::uintptr_t* list) {
  thread& t = self();
  make_copies(list, reductions_of(t), t.me->of->size);
  t.current->in->reductions = list;
}
/// After the construct's taskgroup: the calling task is in what was around it again.
OPENMP_ENTRY void GOMP_taskgroup_reduction_unregister(std::uintptr_t* list) { free_copies(list); }

/// Each of the pointers becomes that of the calling thread's copy; behind the @p count of them come the
/// originals of the first @p originals.
OPENMP_ENTRY void GOMP_task_reduction_remap(std::size_t count, std::size_t originals, void** pointers) {
  const thread& t = self();
  const std::uintptr_t* list = reductions_of(t);
  for (std::size_t i = 0; i < count; ++i) {
    const found f = find(list, reinterpret_cast<std::uintptr_t>(pointers[i]));
    if (f.list == nullptr)
      fail("a task has in_reduction of a variable that no construct around it reduces (at %p)", pointers[i]);
    pointers[i] = at(f.list[copies] + t.me->number * f.list[bytes] + f.offset);
    if (i < originals) pointers[count + i] = at(f.original);
  }
}

OPENMP_ENTRY void GOMP_workshare_task_reduction_unregister(bool cancelled) {
  thread& t = self();
  std::uintptr_t* list = reductions_of(t);
  end_heap_group(t);
  if (t.me->number == 0) free_copies(list);
  if (!cancelled) barrier(t, false);
}
