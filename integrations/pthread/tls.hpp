// Thread-local storage as the C library lays it out, for threads that it does not know: what the segment
// register fs leads to.
//
// A block holds a thread's variables (thread_local, __thread) of all modules and, behind them, the C
// library's own description of a thread (struct pthread). Blocks are made by the functions that the dynamic
// loader itself uses and are never given back, only used again: so the C library's caches in them (of malloc,
// above all) go to the next thread instead of being lost. Where fields lie is read from the tables that the C
// library has for debuggers. Called by thread.cpp, start.cpp. docs/decisions/0013-pthread.md.
#pragma once

#include <cstdint>

namespace godwit::pthread::tls {

/// Find what is needed of the C library; ends the program with a message if it is not there. Before main, on
/// the initial thread.
void prepare() noexcept;

/// A new block. Null: no memory.
char* make() noexcept;
/// The same as new, but for the C library's own variables.
void clean(char* block) noexcept;

/// The C library believes this to be the number of the block's thread: its recursive locks compare it.
void set_tid(char* block, int tid) noexcept;
int tid_of(const char* block) noexcept;
/// Of an OS thread's block: what the C library knows of its cancellation.
struct cancel_bits {
  bool asked, ends;
};
cancel_bits cancel_bits_of(const char* block) noexcept;

/// On the block's thread, once, first of all: what the C library does at the begin of a thread.
void begin_thread(void* resolver_state) noexcept;
/// On the block's thread: destructors of thread_local variables.
void run_destructors() noexcept;

/// The block does not belong to the OS thread that the kernel told about it.
void forget_kernel(char* block) noexcept;
/// The calling OS thread will not use its block any more: some other thread will.
void unregister_from_kernel() noexcept;

}  // namespace godwit::pthread::tls
