// Entry points: the locks of omp.h. A plain one is a word; one that nests has its holder, which is a task.
#include <new>
#include <omp.h>

#include "entry.hpp"
#include "idle.hpp"
#include "settings.hpp"
#include "thread.hpp"

using namespace godwit::openmp;

namespace {

struct nesting {
  std::uint32_t word;
  std::uint32_t count;  ///< W and R the holder
  const task* holder;   ///< atomic
};
static_assert(sizeof(std::uint32_t) <= sizeof(omp_lock_t) && sizeof(nesting) <= sizeof(omp_nest_lock_t));

std::uint32_t& word_of(void* l) noexcept { return *static_cast<std::uint32_t*>(l); }
nesting& nest(omp_nest_lock_t* l) noexcept { return *reinterpret_cast<nesting*>(l); }
nesting& nest_(nesting** l) noexcept { return **l; }

/// The calling task holds it, and does so once more.
bool again(nesting& n) noexcept {
  if (__atomic_load_n(&n.holder, __ATOMIC_RELAXED) != self().current) return false;
  ++n.count;
  return true;
}
void take(nesting& n) noexcept {
  __atomic_store_n(&n.holder, self().current, __ATOMIC_RELAXED);
  n.count = 1;
}

void set_nest(nesting& n) noexcept {
  if (again(n)) return;
  lock(n.word);
  take(n);
}
void unset_nest(nesting& n) noexcept {
  if (--n.count != 0) return;
  __atomic_store_n(&n.holder, nullptr, __ATOMIC_RELAXED);
  unlock(n.word);
}
int test_nest(nesting& n) noexcept {
  if (again(n)) return static_cast<int>(n.count);
  if (!try_lock(n.word)) return 0;
  take(n);
  return 1;
}

}  // namespace

#define PLAIN(end, type)                                                          \
  OPENMP_ENTRY void omp_init_lock##end(type* l) noexcept { word_of(l) = 0; }      \
  OPENMP_ENTRY void omp_destroy_lock##end(type*) noexcept {}                      \
  OPENMP_ENTRY void omp_set_lock##end(type* l) noexcept { lock(word_of(l)); }     \
  OPENMP_ENTRY void omp_unset_lock##end(type* l) noexcept { unlock(word_of(l)); } \
  OPENMP_ENTRY int omp_test_lock##end(type* l) noexcept { return try_lock(word_of(l)) ? 1 : 0; }
PLAIN(, omp_lock_t)
PLAIN(_, void)

#define NESTED(end, type)                                                                    \
  OPENMP_ENTRY void omp_set_nest_lock##end(type* l) noexcept { set_nest(nest##end(l)); }     \
  OPENMP_ENTRY void omp_unset_nest_lock##end(type* l) noexcept { unset_nest(nest##end(l)); } \
  OPENMP_ENTRY int omp_test_nest_lock##end(type* l) noexcept { return test_nest(nest##end(l)); }
NESTED(, omp_nest_lock_t)
OPENMP_ENTRY void omp_init_nest_lock(omp_nest_lock_t* l) noexcept { nest(l) = {}; }
OPENMP_ENTRY void omp_destroy_nest_lock(omp_nest_lock_t*) noexcept {}
// Fortran's has eight bytes: room for an address.
NESTED(_, nesting*)
OPENMP_ENTRY void omp_init_nest_lock_(nesting** l) noexcept {
  *l = new (std::nothrow) nesting{};
  if (*l == nullptr) fail("out of memory for a lock");
}
OPENMP_ENTRY void omp_destroy_nest_lock_(nesting** l) noexcept { delete *l; }
