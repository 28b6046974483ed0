// See faults.hpp.
#include "runtime/faults.hpp"

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <dlfcn.h>
#include <fcntl.h>
#include <iterator>
#include <string>
#include <sys/auxv.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/interrupted_code.hpp"
#include "base/check.hpp"
#include "base/clock.hpp"
#include "base/copy_of_process.hpp"
#include "base/cpu.hpp"
#include "base/world.hpp"
#include "context/frame_rules.hpp"
#include "gas/space.hpp"
#include "heap/heap.hpp"
#include "runtime/death.hpp"
#include "sched/policies.hpp"

namespace godwit::runtime {

namespace {

fault_map map_;

bool is_write(const void* context) noexcept {
#if defined(__x86_64__)
  return (static_cast<const ucontext_t*>(context)->uc_mcontext.gregs[REG_ERR] & 2) != 0;
#else
  static_cast<void>(context);
  return true;
#endif
}

/// A thread of worker @p me used up its stack, which stays where it is.
[[noreturn]] void explain_own_stack(unsigned me, bool root, const stack::pool& stacks) noexcept {
  if (root)
    base::fatal(
        "worker %u: stack overflow: the root thread used up its %zu MiB: raise --godwit-stack-bytes "
        "(GODWIT_STACK_BYTES), for example to %zuM",
        me, stacks.root_bytes() >> 20, stacks.root_bytes() >> 18);
  base::fatal(
      "worker %u: stack overflow: a thread used up its stack of %zu KiB: raise --godwit-thread-stack-bytes "
      "(GODWIT_THREAD_STACK_BYTES), for example to %zuK",
      me, stacks.stack_bytes() >> 10, stacks.stack_bytes() >> 8);
}

/// Likewise for SIGBUS: the system had no page.
void explain_no_page(std::uintptr_t address) noexcept {
  if (detail::hot().owner == nullptr || !map_.shared_heap.holds(address)) return;
  base::fatal(
      "worker %u: the system has no memory left for a page at 0x%zx, in the heap of what threads allocate: "
      "allocate less, run fewer workers, or raise the limits on shared memory (of the control group; "
      "vm.overcommit_memory)",
      transport::index(sched::this_worker().here().me), static_cast<std::size_t>(address));
}

/// A null pointer was called. In a library that may be because another worker has set it up.
void explain_null_call(const void* context) noexcept {
  if (detail::hot().owner == nullptr || sched::this_worker().here().shape.in_process) return;
  const auto* const caller = reinterpret_cast<const void*>(base::return_address(context));
  Dl_info from{}, program{};
  if (caller == nullptr || dladdr(caller, &from) == 0 ||
      dladdr(reinterpret_cast<const void*>(getauxval(AT_ENTRY)), &program) == 0 ||
      from.dli_fbase == program.dli_fbase)
    return;
  const char* const slash = std::strrchr(from.dli_fname, '/');
  base::fatal(
      "worker %u: %s of %s called a null function pointer. If the library sets itself up at its first call, "
      "that was in another worker, and its variables are each worker's own: call its initializer in main, "
      "before run",
      transport::index(sched::this_worker().here().me),
      from.dli_sname != nullptr ? from.dli_sname : "a function",
      slash != nullptr ? slash + 1 : from.dli_fname);
}

}  // namespace

void end_for_foreign_heap(const char* did, std::uintptr_t address, std::size_t host) noexcept {
  const sched::site& here = sched::this_worker().here();
  base::fatal(
      "worker %u: a thread %s 0x%zx, heap memory of host %zu, at host %u: a pointer to it came here in a way "
      "that is not searched (global memory, a result or an argument of plain bytes, a packed word; in a "
      "simulated run also a global variable). Send the value itself, or put it into global memory",
      transport::index(here.me), did, static_cast<std::size_t>(address), host, here.shape.my_host);
}

namespace {

/// Returns if the fault has no special meaning.
void explain(std::uintptr_t address, bool write) noexcept {
  if (detail::hot().owner == nullptr) return;  // no worker's thread
  const sched::worker& w = sched::this_worker();
  const unsigned me = transport::index(w.here().me);
  constexpr std::uintptr_t guard = 1 << 20;
  if (const stack::pool* stacks = w.here().shape.stacks; stacks != nullptr) {
    // a large frame skips the guard
    const bool root = stacks->is_root(address) || stacks->is_root(address + guard);
    if (root || stacks->in_guard(address)) explain_own_stack(me, root, *stacks);
  } else if (address < w.here().region_low && address >= w.here().region_low - guard) {
    base::fatal(
        "worker %u: stack overflow: the %zu MiB uni-address region is used up by nested spawns and calls: "
        "raise --godwit-stack-bytes (GODWIT_STACK_BYTES), for example to %zuG",
        me, (w.here().region_high - w.here().region_low) >> 20,
        ((w.here().region_high - w.here().region_low) >> 29) + 1);
  }
  if (const std::uintptr_t low = w.scheduler_stack().low(); address < low && address >= low - 4096)
    base::fatal(
        "worker %u: stack overflow in a function that on_each_worker called on an idle worker: it has %zu "
        "KiB there; do deeper work in threads (godwit::on_all makes one for each worker)",
        me, stack::scheduler_stack_bytes >> 10);
  const auto global = reinterpret_cast<std::uintptr_t>(detail::hot().global_base);
  if (global != 0 && address - global < gas::space::null_bytes)
    base::fatal(
        "worker %u: a thread %s global:0x%zx: a null global_ptr, or one that is an offset to null: allocate "
        "first, or give it a value",
        me, write ? "wrote to" : "used", static_cast<std::size_t>(address - global));
  const char* policy = w.overflow_of_thread(address);
  if (policy != nullptr)
    base::fatal(
        "worker %u: policy %s: a thread used up its stack of %lu KiB, which is fixed: move large local "
        "variables to the heap, or use policy greedy",
        me, policy, sched::thread_stack_bytes >> 10);
  if (map_.mpi_code.holds(address)) {
    Dl_info called{};
    const bool named = dladdr(reinterpret_cast<void*>(address), &called) != 0 && called.dli_sname != nullptr;
    base::fatal(
        "worker %u: a thread called %s: a worker is a process that its rank has forked, which MPI does not "
        "know. Call MPI before or after run, or in a function that gw::on_rank calls in each rank",
        me, named ? called.dli_sname : "a function of MPI");
  }
  if (write && map_.main_stack.holds(address))
    base::fatal(
        "worker %u: a thread wrote to 0x%zx, a local variable of the function that called run (or of its "
        "callers). Workers are processes of their own, the write would be lost. Give the value back instead: "
        "auto v = godwit::run<T>(argc, argv, [] { ... return v; })",
        me, static_cast<std::size_t>(address));
  if (map_.hosts_heaps.holds(address) && !map_.shared_heap.holds(address))
    end_for_foreign_heap(write ? "wrote to" : "used", address,
                         (address - map_.hosts_heaps.low) / (map_.shared_heap.high - map_.shared_heap.low));
  if (map_.private_heaps.holds(address) && !map_.own_private_heap.holds(address))
    base::fatal(
        "worker %u: a thread used 0x%zx, heap memory of worker %zu. Its stack migrated while a local "
        "variable owned or pointed to heap memory (std::string, std::vector, new...): heap does not migrate. "
        "Keep such values away from spawn and join, or pass them as results",
        me, static_cast<std::size_t>(address),
        static_cast<std::size_t>((address - map_.private_heaps.low) / map_.private_heap_bytes));
}

bool tells_ = false;  // tell_of_deaths

// What the signals meant before: handled_[i] belongs to before_[i].
constexpr int handled_[] = {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGABRT, SIGURG};
struct sigaction before_[std::size(handled_)];

struct sigaction* meaning_before(int signal) noexcept {
  return &before_[std::find(handled_, std::end(handled_), signal) - handled_];
}

/// Up to where frames on the stack of @p w are those of its thread, and of threads that spawned it and have
/// not been stolen. 0: not known.
std::uintptr_t end_of_frames(const sched::worker& w, const void* context) noexcept {
  const stack::range scheduler = w.scheduler_stack().bytes();
  if (scheduler.holds(base::stack_pointer(context))) return scheduler.high;
  if (w.here().shape.stacks != nullptr) return ~std::uintptr_t{0};  // each thread has one, with an end
  if (!detail::facts_of(w.here().opts).lists_threads()) return 0;
  const std::uintptr_t oldest = w.here().words->top.load(std::memory_order_relaxed);
  return reinterpret_cast<const detail::spawn_slot*>(oldest)[-1].sp;
}

/// Of a fault, or of abort.
void find_frames(cause_of_death& why, const void* context) noexcept {
  const std::uintptr_t code = base::program_counter(context);
  Dl_info in{};
  if (dladdr(reinterpret_cast<void*>(code), &in) == 0)  // what was called is no code, and has no frame
    why.frames[0] = base::return_address(context);
  else
    base::find_callers(code, end_of_frames(sched::this_worker(), context), why.frames);
  // A call of the system that the library has made for the program: in the simulator.
  if (why.code == 0 && why.frames[0] == code) {
    std::shift_left(std::begin(why.frames), std::end(why.frames), 1);
    *std::rbegin(why.frames) = 0;
  }
}

/// Where no other process can: say why this one dies. One line, of the first worker that does. @p context: of
/// the code that did it; null: that was not in a worker's thread.
void tell_of_death(int signal, const cause_of_death& why, const void* context) noexcept {
  if (!tells_) return;
  static std::atomic<bool> told{false};
  while (told.exchange(true, std::memory_order_seq_cst)) base::nap(1'000'000);  // the end is near
  char text[1024];
  const bool at_worker = detail::hot().owner != nullptr;
  int n = at_worker ? std::snprintf(text, sizeof text, "godwit: worker %u",
                                    transport::index(sched::this_worker().here().me))
                    : std::snprintf(text, sizeof text, "godwit: the process");
  n += describe_signal(text + n, sizeof text - static_cast<std::size_t>(n), signal, why);
  struct line {
    const char* begin;
    cause_of_death why;
    const void* context;
  } whole{text, why, context};
  const auto tell = [](void* of) {
    auto& [begin, why, context] = *static_cast<line*>(of);
    heap::leave();
    if (context != nullptr) find_frames(why, context);
    const std::string all = begin + describe_place(why) + "; the run is over\n";
    return write(2, all.data(), all.size()) == static_cast<ssize_t>(all.size());
  };
  if (constexpr int patience_ms = 30'000; base::done_in_copy(tell, &whole, patience_ms)) return;
  if (why.code != 0) {
    n += std::snprintf(text + n, sizeof text - static_cast<std::size_t>(n), ", in ");
    n += describe_code(text + n, sizeof text - static_cast<std::size_t>(n), why.code);
  }
  n += std::snprintf(text + n, sizeof text - static_cast<std::size_t>(n), "; the run is over\n");
  static_cast<void>(!write(2, text, static_cast<std::size_t>(n)));
}

/// As far as limits say; where a program gets them all, they say nothing.
bool makes_core_file() noexcept {
  char first = 0;
  if (const int fd = open("/proc/sys/kernel/core_pattern", O_RDONLY | O_CLOEXEC); fd >= 0) {
    static_cast<void>(!read(fd, &first, 1));
    close(fd);
  }
  rlimit limit{};
  return first == '|' || getrlimit(RLIMIT_CORE, &limit) != 0 || limit.rlim_cur != 0;
}

void on_fault(int signal, siginfo_t* info, void* context) {
  const bool sent = info->si_code <= 0;  // by kill, raise and the like
  const auto address = reinterpret_cast<std::uintptr_t>(info->si_addr);
  const bool at_worker = detail::hot().owner != nullptr;
  if (!sent && signal == SIGBUS) explain_no_page(address);
  if (!sent && signal == SIGSEGV && base::program_counter(context) == 0) explain_null_call(context);
  if (!sent && (signal == SIGSEGV || signal == SIGBUS)) explain(address, is_write(context));
  cause_of_death why;
  why.self = static_cast<std::uint64_t>(getpid());
  if (sent) {
    why.sender = static_cast<std::uint64_t>(info->si_pid) + 1;
    why.user = info->si_uid;
  } else {
    why.address = address;
    why.code = base::program_counter(context);
  }
  const bool own = !sent || (signal == SIGABRT && static_cast<std::uint64_t>(info->si_pid) == why.self);
  // Die of it, so that the status and a core file tell the truth -- or let who handled it before handle it.
  const struct sigaction* before = meaning_before(signal);
  const bool handled_before = !at_worker && before->sa_handler != SIG_DFL;
  if (at_worker && !sched::this_worker().here().shape.in_process) {
    sched::public_words& mine = *sched::this_worker().here().words;
    mine.fault_address.store(why.address, std::memory_order_relaxed);
    mine.fault_user.store(why.user, std::memory_order_relaxed);
    mine.fault_sender.store(why.sender, std::memory_order_relaxed);
    mine.fault_code.store(why.code, std::memory_order_release);
    if (own) find_frames(why, context);  // if that faults, what is known is known
    for (std::size_t i = 0; i < std::size(why.frames); ++i)
      mine.fault_frames[i].store(why.frames[i], std::memory_order_relaxed);
  } else if (!handled_before) {
    tell_of_death(signal, why, at_worker && own ? context : nullptr);
  }
  if (!handled_before && makes_core_file()) {
    heap::put_into_core_file();
    if (at_worker) sched::this_worker().here().memory->put_into_core_file();
  }
  struct sigaction now {};
  now.sa_handler = SIG_DFL;
  sigaction(signal, handled_before ? before : &now, nullptr);
  // Returning executes the faulting instruction again; a signal that was sent is sent again.
  if (sent) base::interrupt(static_cast<pid_t>(syscall(SYS_gettid)), signal);
}

context::frame_registers registers_of([[maybe_unused]] const void* context) noexcept {
#if defined(__x86_64__)
  const auto& r = static_cast<const ucontext_t*>(context)->uc_mcontext.gregs;
  const auto word = [&](int i) { return static_cast<std::uintptr_t>(r[i]); };
  return {word(REG_RBX), word(REG_RBP), word(REG_R12), word(REG_R13),
          word(REG_R14), word(REG_R15), word(REG_RSP), word(REG_RIP)};
#else
  return {};
#endif
}

void on_expose(int, siginfo_t*, void* context) {
  const int saved = errno;
#if defined(__x86_64__)
  const auto* registers = static_cast<const ucontext_t*>(context)->uc_mcontext.fpregs;
  const std::uint32_t control = registers != nullptr
                                    ? base::pack_float_control(registers->mxcsr, registers->cwd)
                                    : base::float_control();
#else
  const std::uint32_t control = base::float_control();
#endif
  const context::frame_registers at = registers_of(context);
  if (detail::hot().owner != nullptr) sched::this_worker().on_expose_signal(control, &at);
  errno = saved;
}

void on_stop(int) {}

#if defined(__GLIBC__)
/// The last of what exit calls. (It goes on with writing what is in the buffers.)
void on_exit_of_process(int status, void*) noexcept {
  if (!tells_ || detail::hot().owner == nullptr || !sched::this_worker().here().shape.in_process) return;
  std::fprintf(
      stderr,
      "godwit: worker %u left the run by exit(%d): end the run by returning from the root thread instead\n",
      transport::index(sched::this_worker().here().me), status);
  std::fflush(nullptr);
  _exit(base::status_failed);
}
[[gnu::constructor(101)]] void watch_exit() { on_exit(on_exit_of_process, nullptr); }
#endif

void install(int signal, bool in_process) noexcept {
  struct sigaction* before = meaning_before(signal);
  sigaction(signal, nullptr, before);
  // Those that mean nothing of ours stay with whom handles them.
  if (signal == SIGFPE || signal == SIGILL || signal == SIGABRT)
    if (before->sa_handler != SIG_DFL || (in_process && !tells_)) return;
  struct sigaction action {};
  action.sa_sigaction = signal == SIGURG ? on_expose : on_fault;
  action.sa_flags = SA_SIGINFO | SA_ONSTACK | (signal == SIGURG ? SA_RESTART : 0);
  sigemptyset(&action.sa_mask);
  sigaction(signal, &action, nullptr);
}

constexpr int stops_[] = {SIGINT, SIGTERM, SIGHUP};

}  // namespace

void tell_of_deaths() noexcept { tells_ = true; }

void install_handlers_of_process() noexcept {
  map_ = fault_map();
  for (const int signal : handled_) install(signal, true);
}

void restore_meanings() noexcept {
  for (const int signal : handled_) sigaction(signal, meaning_before(signal), nullptr);
}

alternate_stack::alternate_stack() noexcept {
  low_ = stack::map_private(stack::signal_stack_bytes);
  stack_t alternate{};
  alternate.ss_sp = low_;
  alternate.ss_size = stack::signal_stack_bytes;
  sigaltstack(&alternate, &before_);
}
alternate_stack::~alternate_stack() {
  if (low_ == nullptr) return;
  sigaltstack(&before_, nullptr);
  stack::unmap_private(low_, stack::signal_stack_bytes);
}

void install_handlers(const fault_map& map) noexcept {
  map_ = map;
  static_cast<void>(*new alternate_stack);  // for the life of the process
  for (const int signal : handled_) install(signal, false);
  // These go to whole process groups (terminal, batch system); the supervisor decides what they mean.
  // Handled, not ignored: programs that a thread starts would ignore them too.
  for (const int signal : stops_) {
    struct sigaction action {};
    sigaction(signal, nullptr, &action);
    if (action.sa_handler == SIG_IGN) continue;
    action.sa_handler = on_stop;
    action.sa_flags = SA_RESTART;
    sigaction(signal, &action, nullptr);
  }
}

void forget_handlers() noexcept {
  restore_meanings();
  for (const int signal : stops_) {
    struct sigaction action {};
    sigaction(signal, nullptr, &action);
    if (action.sa_handler == on_stop) std::signal(signal, SIG_DFL);
  }
}

}  // namespace godwit::runtime
