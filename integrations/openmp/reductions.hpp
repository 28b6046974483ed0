// Reductions whose copies tasks share: task_reduction, in_reduction, reduction(task, ...).
//
// The compiler describes them by a list of arrays of words; one array is (as this library uses it): 0: how
// many variables, 1: bytes of one thread's copies, 2: alignment, then where the copies of all threads are
// (zeros), 4: the next array, in the end those around it, 6: where the copies end; from 7 on three words for
// each variable: its address, where its copy is in a thread's, and one for the library.
#pragma once

#include "thread.hpp"

namespace godwit::openmp {

/// Copies for @p threads; those around it are @p around (or null).
void make_copies(std::uintptr_t* list, std::uintptr_t* around, unsigned threads) noexcept;
/// The same list as @p other, of another thread in the same construct: its copies.
void use_copies(std::uintptr_t* list, std::uintptr_t* around, const std::uintptr_t* other) noexcept;
/// Those around the calling task. Null: none.
std::uintptr_t* reductions_of(const thread& t) noexcept;

}  // namespace godwit::openmp
