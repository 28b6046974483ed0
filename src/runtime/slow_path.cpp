// The functions of slow_path.hpp and of other seams (park.hpp, global_path.hpp): thin calls into the worker
// that the calling thread runs on.
#include "sched/each_worker.hpp"
#include "sched/worker.hpp"

#include <godwit/detail/global_path.hpp>
#include <godwit/detail/lazy_spawn.hpp>
#include "seams/park.hpp"
#include <godwit/detail/promise.hpp>
#include <godwit/detail/slow_path.hpp>
#include <godwit/future.hpp>
#include <godwit/runtime.hpp>

#include <atomic>
#include <string>
#include <sys/syscall.h>
#include <unistd.h>
#include <utility>

#include "base/check.hpp"
#include "base/text.hpp"
#include "context/context.hpp"
#include "heap/heap.hpp"
#include "runtime/caller.hpp"
#include "runtime/forked.hpp"
#include "runtime/global.hpp"
#include "runtime/references.hpp"

bool godwit::runtime::caller_is_worker() noexcept {
  if (!detail::on_substrate_threads()) return true;
  const sched::site& here = sched::this_worker().here();
  const auto sp = reinterpret_cast<std::uintptr_t>(__builtin_frame_address(0));
  if (here.shape.stacks != nullptr && here.shape.stacks->owns(sp)) return true;
  return here.words->pid.load(std::memory_order_relaxed) == static_cast<std::uint64_t>(syscall(SYS_gettid));
}

namespace godwit::detail {

using sched::this_worker;

/// From godwit_ctx_fork_on_stack.
extern "C" void godwit_more_stacks() noexcept { this_worker().more_stacks(); }

namespace {
void need_run(const char* what) noexcept {
  if (detail::hot().workers == 0) [[unlikely]] {
    if (runtime::in_forked_child())
      base::fatal(
          "process %d, which fork made in a thread, came to a %s: the workers are not there; let it exec "
          "another program, or end by exit or _exit, and have the thread that called fork do the rest",
          static_cast<int>(getpid()), what);
    base::fatal("%s was called outside godwit::run: call it from the root thread that run starts", what);
  }
}
/// A thread may leave here. With a checkout open it would take along pointers to memory that is not where it
/// goes. (Without objects: complete() never ends, and what the address sanitizer marks in its frame would
/// stay marked.)
void need_no_checkout(const char* doing, const char* file = nullptr, unsigned line = 0) noexcept {
  if (detail::hot().checkouts != 0) [[unlikely]]
    checkout_held(doing, file, line);
}
/// A function of on_each_worker may join what is complete: a move to its own worker is.
bool joins_in_call(ref r) noexcept {
  return detail::hot().checkouts == in_call && r != 0 && this_worker().records().is_complete(r);
}
/// Under some policies threads wait for those only that they made, or for the parts of their own tallies.
bool may_wait_for(ref r) noexcept {
  sched::worker& w = this_worker();
  const std::uint64_t me = w.number_of_thread();
  return me == 0 || (transport::ref_worker(r) == w.here().me && w.here().at<sched::record>(r)->made_by == me);
}
/// The calling thread, which has taken its entry off the deque already, is done: what is to be done at its
/// end?
spawn_slot* end_of_thread(spawn_slot* slot) noexcept {
  thread_block* block = this_block();
  if (block == nullptr || block->at_end == nullptr) return slot;
  hot().bottom = slot + 1;  // still a thread: this may suspend
  std::atomic_signal_fence(std::memory_order_seq_cst);
  std::exchange(block->at_end, nullptr)(block);
  spawn_slot* mine = hot().bottom - 1;  // possibly of another worker
  hot().bottom = mine;
  std::atomic_signal_fence(std::memory_order_seq_cst);
  return mine;
}
}  // namespace

void codec_missing(const char* type) noexcept {
  std::string name = base::demangled(type);
  constexpr std::size_t longest = 300;  // then the rest of the sentence matters more
  if (name.size() > longest) name = name.substr(0, longest) + "...";
  base::fatal(
      "worker %u: a value of type %s has to leave its %s as bytes, and there is no godwit::codec for it: in "
      "this run %s (docs/heap.md); specialise godwit::codec for it, or keep such values inside of one thread",
      detail::hot().worker, name.c_str(), host_heap() ? "host" : "worker",
      host_heap()
          ? "each host has a heap of its own"
          : "workers have heaps of their own: --godwit-heap=private, or a program with an allocator of "
            "its own");
}

void need_this_host(const void* object, const char* type) noexcept {
  if (this_worker().here().shape.hosts_heaps.holds(reinterpret_cast<std::uintptr_t>(object)) &&
      !in_host_heap(object))
    codec_missing(type);
}
void need_this_host(const boxed& result, const char* type) noexcept {
  if (result.left_at != boxed::nowhere) codec_missing(type);
  need_this_host(result.object, type);
}
bool in_host_heap(const void* at) noexcept { return heap::holds(at); }

bool spawn_point(bool child_may_leave, bool always_begins) noexcept {
  need_run("spawn or invoke");
  need_no_checkout("spawn");
  child_may_leave = child_may_leave || host_heap();  // what a closure owns is there where it goes
  return this_worker().spawn_point(child_may_leave, always_begins);
}
void lazy_spawn_point() noexcept {
  if (detail::hot().workers == 0) return;
  need_no_checkout("spawn");
  this_worker().lazy_spawn_point();
}
ref pop_public(spawn_slot* slot) noexcept {
  need_run("thread's return");
  slot = end_of_thread(slot);
  return this_worker().pop_public(slot);
}
void publish(ref record, outcome kind, const void* data, std::size_t bytes, owning owns) noexcept {
  this_worker().records().publish(record, kind, data, bytes, owns);
}
void publish_boxed(ref record, outcome kind, boxed what) noexcept {
  this_worker().records().publish_boxed(record, kind, what);
}
ref make_completed_boxed(outcome kind, boxed what) {
  need_run("a future's record");
  return this_worker().records().make_completed_boxed(kind, what);
}
void publish_error(ref record, ref error) noexcept {
  this_worker().records().drop_value(record);
  this_worker().records().publish_error(record, error);
}
void complete(ref record) noexcept {
  need_no_checkout("spawn");  // the parent's: this thread is over, its own are checked in
  this_worker().complete(record);
  __builtin_unreachable();
}
std::uintptr_t resumed(std::uintptr_t status) {
  hot().in_runtime = 0;  // LZ3: where a lazy spawn goes on, this ends what resume has begun
  if (status == not_begun) throw cancelled();
  this_worker().note_callers_of(&status);
  return status;
}
void begin_name(const char* name, const void* scope) noexcept {
  if (detail::hot().workers != 0)
    this_worker().note_name(trace::kind::name, reinterpret_cast<std::uintptr_t>(name), scope);
}
void end_name(const void* scope) noexcept {
  if (detail::hot().workers != 0) this_worker().note_name(trace::kind::name_ends, 0, scope);
}
ref make_completed(outcome kind, const void* data, std::size_t bytes, owning owns) {
  need_run("a future's record");
  return this_worker().records().make_completed(kind, data, bytes, owns);
}
ref make_promised() {
  need_run("coroutine that returns a future");
  return this_worker().records().make();
}
void keep_promise(ref record) noexcept {
  need_run("coroutine's end");
  this_worker().finish(record);
}
std::uintptr_t end_of_frames() noexcept {
  return detail::hot().workers != 0 ? this_worker().end_of_frames() : 0;
}
payload wait(ref record, const char* file, const char* function, unsigned line) noexcept {
  need_run("join");
  if (!joins_in_call(record_in(record))) need_no_checkout("join", file, line);
  payload p =
      this_worker().wait(record_in(record), {file, function, line}, nullptr, record_in(record) != record);
  if (p.kind == outcome::value && this_worker().must_stop()) p.kind = outcome::cancelled;
  return p;
}
bool is_complete(ref record) noexcept { return this_worker().records().is_complete(record); }
void release(ref record) noexcept {
  if (detail::hot().workers != 0)
    this_worker().records().release(record);  // a handle that outlived its run: the memory is gone
}
void free_taken(ref record) noexcept {
  if (detail::hot().workers != 0) this_worker().records().free_taken(record);
}
void retain(ref record) noexcept {
  if (detail::hot().workers != 0) this_worker().records().retain(record);
}
void share(ref record) noexcept {
  if (detail::hot().workers != 0) this_worker().share(record);
}
void detach(ref record) noexcept {
  if (detail::hot().workers == 0) return;
  // what it may refer to is about to go: docs/protocols/cancel.md, Drop
  if (this_worker().must_wait() && may_wait_for(record)) {
    need_no_checkout("end of a future's life in a cancelled scope");
    static_cast<void>(this_worker().wait(record, {"a future that is dropped", "cancelled", 0}));
  }
  this_worker().records().detach(record);
}
void leave_running(ref record) noexcept {
  if (detail::hot().workers != 0) this_worker().records().detach(record);
}

ref make_tally() {
  need_run("group of threads");
  const base::unexposed inside;
  const ref tally = this_worker().records().make_tally();
  this_worker().here().at<sched::record>(tally)->made_by = this_worker().number_of_thread();
  return tally;
}
void free_tally(ref tally) noexcept {
  if (detail::hot().workers == 0) return;  // it outlived its run
  for (ref failed = this_worker().records().take_failed(tally); failed != 0;) {
    const ref next = this_worker().records().look_at_failed(failed).next;
    this_worker().records().detach(failed);  // what it has thrown may wait in its destructor
    failed = next;
  }
  const base::unexposed inside;
  this_worker().records().free(tally);
}
void detach_into(ref record, ref tally) noexcept { this_worker().detach_into(record, tally); }
void wait_for_parts(ref tally, const char* what, const place& where) noexcept {
  need_run("wait");
  need_no_checkout("wait", where.file, where.line);
  if (!may_wait_for(tally) && this_worker().records().is_any_out(tally)) [[unlikely]]
    base::fatal(
        "worker %u: this run's policy is %s, where a thread may wait for its own children only, but the one "
        "at %s:%u waits for a %s that another one made: wait where it was made, or take another policy with "
        "--godwit-policy (GODWIT_POLICY)",
        hot().worker, name_of(this_worker().here().opts.policy), where.file, where.line, what);
  this_worker().wait_for_parts(tally, where, what);
}
ref take_failed(ref tally) noexcept {
  ref first = 0;
  std::uint64_t lowest = ~std::uint64_t{0};
  for (ref failed = this_worker().records().take_failed(tally); failed != 0;) {
    const auto is = this_worker().records().look_at_failed(failed);
    const bool comes_first = is.number < lowest;
    if (comes_first) std::swap(first, failed), lowest = is.number;
    if (failed != 0) this_worker().records().release(failed);  // as above
    failed = is.next;
  }
  return first;
}

void yield_thread() noexcept {
  if (detail::hot().workers == 0) return;
  need_no_checkout("yield");
  this_worker().yield_thread();
}

ref spawn_task(task_entry* entry, const task_bytes& closure) {
  need_run("spawn");
  need_no_checkout("spawn");
  throw_cancelled();
  return this_worker().spawn_task(entry, closure,
                                  reinterpret_cast<std::uintptr_t>(__builtin_return_address(0)));
}
void* new_stack(spawn_slot* slot, const void* closure, std::size_t bytes) noexcept {
  need_run("spawn");
  return this_worker().new_stack(*slot, closure, bytes);
}
void free_stack(void* top) noexcept { this_worker().free_stack(top); }

bool on_worker() noexcept { return on_substrate_threads() && runtime::caller_is_worker(); }
bool park(publish_fn* publish, void* arg, wakes by, const char* what, const place& where) noexcept {
  need_substrate_threads(what);
  if (!runtime::caller_is_worker())
    base::fatal(
        "%s was called, and has to wait, in an OS thread that a thread of the run started (std::thread): "
        "only the run's threads can wait so: use gw::thread, or what the C++ library has",
        what);
  need_no_checkout(what, where.file, where.line);
  return this_worker().park(publish, arg, by, what, where);
}
void unpark(waiter* w, wakes by) noexcept { this_worker().unpark(w, by); }
ref create_thread(task_entry* entry, const void* closure, std::size_t bytes, priority level) {
  if (!on_substrate_threads()) [[unlikely]]
    need_substrate_threads("a thread that begins later");
  throw_cancelled();
  return this_worker().create_thread(entry, closure, bytes, level, false);
}
void create_detached(task_entry* entry, const void* closure, std::size_t bytes) noexcept {
  need_substrate_threads("a thread that begins later");
  leave_running(this_worker().create_thread(entry, closure, bytes, priority::normal, true));
}
bool take_finished(ref record) noexcept {
  if (detail::hot().workers == 0 || detail::hot().checkouts != 0) [[unlikely]]
    return false;
  if (this_worker().records().take_finished(record)) return true;
  return this_worker().run_if_unbegun(record) && !this_worker().must_stop() &&
         this_worker().records().take_finished(record);
}
thread_block* this_block() noexcept {
  if (!on_substrate_threads()) return nullptr;
  return this_worker().here().block_of(reinterpret_cast<std::uintptr_t>(__builtin_frame_address(0)));
}
void at_thread_end(void (*f)(thread_block*) noexcept) noexcept {
  thread_block* block = this_block();
  // Who has its parent above it ends by popping its entry, which looks at nothing: let the parent go on
  // without us.
  while (!this_worker().at_bottom()) this_worker().yield_thread();
  block->at_end = f;
}
void set_thread_pointer(std::uintptr_t value) noexcept {
  this_block()->thread_pointer = value;
  context::set_thread_pointer(value != 0 ? value : this_worker().own_thread_pointer());
}
void need_substrate_threads(const char* what) noexcept {
  need_run(what);
  if (!on_substrate_threads())
    base::fatal(
        "%s needs workers that are threads of one process: run with --godwit-substrate=threads "
        "(GODWIT_SUBSTRATE=threads, or options::substrate), and with a policy that steals continuations",
        what);
}

void announce_own_stack(std::uintptr_t sp) noexcept { this_worker().announce_thread(sp); }

void checkout_held(const char* doing, const char* file, unsigned line) noexcept {
  std::string where;
  if (file != nullptr) where = std::string(" at ") + file + (line != 0 ? ":" + std::to_string(line) : "");
  if (hot().checkouts == in_call)
    base::fatal(
        "worker %u: a function that on_each_worker calls came to a %s%s: it must neither spawn nor wait, "
        "since the worker is in the middle of a thread, or has none; do that in threads (godwit::on_all "
        "makes one for each worker)",
        hot().worker, doing, where.c_str());
  std::string made;
  if (auto* m = static_cast<gas::memory*>(hot().memory)) made = m->checks.open_checkouts();
  base::fatal(
      "worker %u: a checkout%s is held across a %s%s, after which the thread may be on another worker, where "
      "the memory is not: check in before (let the span go out of scope), check out again afterwards",
      detail::hot().worker, made.c_str(), doing, where.c_str());
}

void future_taken_twice() noexcept {
  base::fatal(
      "a shared_future's value holds something that has one owner (a future, a std::unique_ptr), but get() "
      "gives it to many: make the inner one shared as well, or join a future instead");
}

void run_on_each_worker(const broadcast_task& task, place where) {
  need_run("on_each_worker");
  need_no_checkout("call of on_each_worker", where.file, where.line);
  if (task.checkable && runtime::refers_to_stack(task.closure, task.bytes))
    runtime::end_for_reference("on_each_worker", std::string(where.file) + ":" + std::to_string(where.line));
  const ref done = sched::call_on_each_worker(task.call, task.closure, task.bytes);
  static_cast<void>(this_worker().wait(done, where));
  this_worker().records().release(done);
}

}  // namespace godwit::detail
