// Everything for users: fork-join and futures whose threads migrate, and the global memory they share. But
// io.hpp, coroutine.hpp, scheduler.hpp, background_run.hpp and sim.hpp are included by who needs them.
#pragma once

#include <godwit/detail/language.hpp>  // first: it says what is missing

#include <godwit/algorithm.hpp>
#include <godwit/annotate.hpp>
#include <godwit/cancel.hpp>
#include <godwit/checkout.hpp>
#include <godwit/codec.hpp>
#include <godwit/control.hpp>
#include <godwit/error.hpp>
#include <godwit/freeze.hpp>
#include <godwit/future.hpp>
#include <godwit/global_access.hpp>
#include <godwit/global_array.hpp>
#include <godwit/global_atomic.hpp>
#include <godwit/global_bytes.hpp>
#include <godwit/global_map.hpp>
#include <godwit/global_memory.hpp>
#include <godwit/global_ptr.hpp>
#include <godwit/global_span.hpp>
#include <godwit/global_vector.hpp>
#include <godwit/group.hpp>
#include <godwit/heat.hpp>
#include <godwit/map_file.hpp>
#include <godwit/move.hpp>
#include <godwit/on_move.hpp>
#include <godwit/on_rank.hpp>
#include <godwit/options.hpp>
#include <godwit/ordered_task_group.hpp>
#include <godwit/parallel_for.hpp>
#include <godwit/policy.hpp>
#include <godwit/rebalance.hpp>
#include <godwit/reducer.hpp>
#include <godwit/run.hpp>
#include <godwit/runtime.hpp>
#include <godwit/shared.hpp>
#include <godwit/spawn_at.hpp>
#include <godwit/task.hpp>
#include <godwit/task_group.hpp>
#include <godwit/team.hpp>
#include <godwit/threads.hpp>
#include <godwit/worker_local.hpp>
