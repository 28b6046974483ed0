// What valgrind has to be told: where stacks are, and that bytes of a stack are replaced. Nothing is done,
// and nothing but a flag is read, in a process that valgrind does not run.
//
// Needs valgrind's header when the library is built (Debian: package valgrind); without it fit_to_valgrind
// says so when it matters. Called by: src/context/sanitizer.cpp, src/stack, src/sched/worker.cpp,
// src/runtime/run.cpp. docs/debugging.md. Test: tests/valgrind.
#pragma once

#include <godwit/options.hpp>

#include <cstdint>

namespace godwit::base {

/// Does valgrind run this process, and can it be told of stacks? Local.
bool on_valgrind() noexcept;
/// Not by valgrind's own means: is it there? Its tools come in by LD_PRELOAD. Local.
bool seems_to_be_valgrind() noexcept;
/// One of both. Local.
inline bool runs_under_valgrind() noexcept { return on_valgrind() || seems_to_be_valgrind(); }

/// [low, high) is a stack from now on. The number is for valgrind_stack_gone. Local.
unsigned valgrind_stack(std::uintptr_t low, std::uintptr_t high) noexcept;
void valgrind_stack_gone(unsigned number) noexcept;

/// The bytes of [low, high) may be read and written, and are what they are. Local.
void valgrind_bytes(std::uintptr_t low, std::uintptr_t high) noexcept;

/// Under valgrind: sizes that are still the default become smaller (memcheck keeps a record per page of
/// mapped addresses, used or not). Local.
void fit_to_valgrind(options& opts) noexcept;

}  // namespace godwit::base
