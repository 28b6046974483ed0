// Records that no thread completes: what coroutines and senders give threads to wait for, and threads that
// others count on. Not an interface for users. Implemented in src/runtime/slow_path.cpp; used by
// coroutine.hpp, scheduler.hpp, background_run.cpp, group.hpp and thread.hpp.
#pragma once

#include <godwit/detail/slow_path.hpp>

namespace godwit::detail {

/// One for one consumer.
ref make_promised();
/// Complete it: its waiters become ready. The calling thread goes on.
void keep_promise(ref record) noexcept;

/// A thread as of create_thread (park.hpp) that nobody joins. It begins in a cancelled scope as well, if
/// @p entry does.
void create_detached(task_entry* entry, const void* closure, std::size_t bytes) noexcept;

/// As detach (slow_path.hpp), but it waits in no scope: of a thread that others wait for, or that needs
/// nothing of the calling one's.
void leave_running(ref record) noexcept;

}  // namespace godwit::detail
