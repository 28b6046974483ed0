// Objects that main makes in a shared_scope or as shared_global: the heap that they lie in, from the first
// scope to the end of the process.
//
// There is one window for it, inherited by the workers of every run on substrate processes, which allocate
// there too. Where it cannot be had, objects lie in main's own memory, as any: good for runs on threads and
// in the simulator, and runs whose workers are processes are refused.
// Called by: run*.cpp, forked.cpp. Document: docs/heap.md. Test:
// tests/heap/shared_scope_test.cpp.
#pragma once

#include "transport/shm/window.hpp"

#include <godwit/options.hpp>

#include <cstdint>
#include <string>

namespace godwit::heap {
struct part;
}

namespace godwit::runtime::shared_objects {

/// A scope was opened in this process: there may be some.
bool exist() noexcept;
/// They lie in main's own memory, because there was no heap.
bool lie_elsewhere() noexcept;

/// The heap for a run of @p workers workers that are processes; null: there are no such objects. Throws
/// std::invalid_argument if there are, and the run cannot have them.
transport::shm::window* for_run(const options& opts, std::uint32_t workers);
/// Why a run whose workers are in several memories, @p where, cannot begin; empty: there are no such
/// objects.
std::string refusal(const std::string& where);

/// After a run that had it: what threads have left and main cannot reach is freed. Not @p in_order: workers
/// were killed, and what they changed may be torn: from now on nothing is freed, and no run has it.
void after_run(bool in_order) noexcept;

/// Before a run whose workers are in this process, which allocate in main's own memory: shared objects may
/// have parts there from now on, so that no run on substrate processes can have them.
void before_run_here() noexcept;

/// In a child that main has forked: it has a copy, which no run can have, and in which nothing is freed.
void after_fork() noexcept;

/// In a process that was forked to be a worker: none of its OS threads is main's, nor of what it forks. A
/// shared_scope does nothing there, whatever calls it; objects that there are can be used as ever.
void in_worker() noexcept;

/// While it lives, the calling OS thread is in no scope: the run's own memory is main's alone.
class pause {
 public:
  pause() noexcept;
  ~pause();
  pause(const pause&) = delete;
  pause& operator=(const pause&) = delete;

 private:
  heap::part* part_;
};

}  // namespace godwit::runtime::shared_objects
