// Mutexes and the like that lie in the heap: they work between workers.
//
// The C library's (and so std::mutex, std::condition_variable...) are made for one process: who waits
// sleeps on an address of its own process, and who wakes reaches only its own. In memory that workers
// share they are told that others may be other processes, whenever one of them is about to be taken. What
// waits by system calls of its own, such as std::atomic::wait, looks again every millisecond instead, in
// workers.
// Called by heap.cpp and shared_objects.cpp. Document: docs/heap.md. Test: tests/heap/waits_test.cpp.
#pragma once

namespace godwit::heap {

/// From now on, in this process and its children, for all objects that are loaded now. Before the workers of
/// each run start: others may have been loaded since the last one. Cost where none was: a few loads.
void watch_waits() noexcept;

}  // namespace godwit::heap
