// One heap for all workers of a host: what malloc and its family give to threads (malloc.cpp).
//
// Not the memory that main allocated before the run, which every worker process has a copy of, and not
// what the library itself keeps: that comes from the C library's malloc, as everything does outside of a
// run.
// Called by src/runtime, before the fork and in each worker. Document: docs/decisions/0024-one-heap.md.
// Protocol: docs/protocols/heap.md. Test: tests/heap.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

#include "stack/stack.hpp"

namespace godwit::heap {

/// Whether malloc of this program is the one of malloc.cpp. No: another allocator or a checking tool is in
/// front of it.
bool is_ours() noexcept;
/// If it is not: whose it is, for people: "that of libjemalloc.so.2". Else empty.
std::string other_malloc();

/// From now on there is a heap in @p bytes at @p base, all zero, for @p workers workers, and @p room at most.
/// In this process and those that are forked from it. @p records: who allocates what is remembered, for
/// leaks.hpp. Local.
void begin(std::byte* base, std::uint64_t bytes, std::uint32_t workers, std::uint32_t room = 0,
           bool records = false) noexcept;
/// There are at least @p workers from now on. False: there is no room. While none runs.
bool add_workers(std::uint32_t workers) noexcept;
/// In another process: the heap that begin made at this address.
void adopt(std::byte* base) noexcept;
/// It is no more. Blocks that are left are nothing from now on.
void end() noexcept;

/// There is one: what threads own is valid in all workers.
bool is_shared() noexcept;

/// Of its blocks, or in one.
bool holds(const void* at) noexcept;

/// What words name blocks that have been handed out so far: addresses in them, and where the last one ends,
/// which may be all that somebody has of it. Empty: there is none. Local, from any process that has the heap.
stack::range in_use() noexcept;

/// In a worker: @p word is an address of the heap where nobody has a block. False: somebody may have one, or
/// it is no such address. Cost: some hundred loads at most.
bool is_free(std::uintptr_t word) noexcept;

/// What is called where an allocation is recorded: up to which address the caller's stack can be followed.
using stack_end = std::uintptr_t() noexcept;
/// The calling OS thread is worker @p number and allocates in the heap. @p end: null: to the end.
void enter(std::uint32_t number, stack_end* end = nullptr) noexcept;
struct part;
/// The calling OS thread of main allocates in the heap, in a part of main's until leave_main. Null: all are
/// taken, and nothing has changed.
part* enter_main() noexcept;
void leave_main(part* p) noexcept;
/// Back to the C library's malloc. Gives back what go_on takes.
part* leave() noexcept;
void go_on(part* with) noexcept;
/// While it lives, the calling OS thread allocates from the C library, as for what outlives its turn.
class outside {
 public:
  outside() noexcept : part_(leave()) {}
  ~outside() {
    if (part_ != nullptr) go_on(part_);
  }
  outside(const outside&) = delete;
  outside& operator=(const outside&) = delete;

 private:
  part* part_;
};
/// A worker without work: what others have freed of its blocks is free for all.
void tidy() noexcept;

/// In a forked child that has left, or where workers were killed: what is freed of the heap stays as it is.
void forget() noexcept;

/// A core file of this process will hold what is in use. In a signal handler; others may go on.
void put_into_core_file() noexcept;

/// Why malloc has given out null, at worst, for people; empty: it has not.
std::string why_refused();

/// Blocks that the workers have and nobody has freed, in bytes as handed out. When nobody allocates.
std::uint64_t live_bytes() noexcept;
/// What this process has from the C library's malloc, in bytes. 0: it does not say.
std::uint64_t c_library_bytes() noexcept;
void check_invariants() noexcept;

}  // namespace godwit::heap
