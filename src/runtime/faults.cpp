// See faults.hpp.
#include "runtime/faults.hpp"

#include <cerrno>
#include <csignal>
#include <cstring>
#include <ucontext.h>
#include <unistd.h>

#include "base/check.hpp"
#include "base/pause.hpp"
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

std::uintptr_t program_counter(const void* context) noexcept {
#if defined(__x86_64__)
  return static_cast<std::uintptr_t>(static_cast<const ucontext_t*>(context)->uc_mcontext.gregs[REG_RIP]);
#elif defined(__riscv)
  return static_cast<std::uintptr_t>(static_cast<const ucontext_t*>(context)->uc_mcontext.__gregs[REG_PC]);
#elif defined(__sparc__)  // handlers get a sigcontext here, not a ucontext
  return static_cast<std::uintptr_t>(static_cast<const sigcontext*>(context)->sigc_regs.tpc);
#else
  return static_cast<std::uintptr_t>(static_cast<const ucontext_t*>(context)->uc_mcontext.pc);
#endif
}

/// Returns if the fault has no special meaning.
void explain(std::uintptr_t address, bool write) noexcept {
  if (detail::hot().owner == nullptr) return;  // no worker's thread
  const sched::worker& w = sched::this_worker();
  const unsigned me = transport::index(w.me());
  constexpr std::uintptr_t guard = 1 << 20;
  if (address < w.region_low() && address >= w.region_low() - guard)
    base::fatal(
        "worker %u: stack overflow: the %zu MiB uni-address region is used up by nested spawns and calls: "
        "raise "
        "--godwit-stack-bytes (GODWIT_STACK_BYTES), for example to %zuG",
        me, (w.region_high() - w.region_low()) >> 20, ((w.region_high() - w.region_low()) >> 29) + 1);
  if (const std::uintptr_t low = w.scheduler_stack_low(); address < low && address >= low - 4096)
    base::fatal(
        "worker %u: stack overflow in a function that on_each_worker called on an idle worker: it has %zu KiB there; "
        "spawn a thread from it for deeper work",
        me, stack::scheduler_stack_bytes >> 10);
  const char* policy = w.overflow_of_thread(address);
  if (policy != nullptr && std::strcmp(policy, "threads") == 0)
    base::fatal(
        "worker %u: stack overflow: a thread used up its stack: raise --godwit-thread-stack-bytes (GODWIT_THREAD_STACK_BYTES), or, "
        "for the root thread, --godwit-stack-bytes (GODWIT_STACK_BYTES)",
        me);
  if (policy != nullptr)
    base::fatal(
        "worker %u: policy %s: a thread used up its stack of %lu KiB, which is fixed: move large local variables to "
        "the heap, or use policy greedy",
        me, policy, sched::thread_stack_bytes >> 10);
  if (write && map_.main_stack.holds(address))
    base::fatal(
        "worker %u: a thread wrote to 0x%zx, a local variable of the function that called run (or of its "
        "callers). "
        "Workers are processes of their own, the write would be lost. Give the value back instead: "
        "auto v = godwit::run<T>(argc, argv, [] { ... return v; })",
        me, static_cast<std::size_t>(address));
  if (map_.heap_windows.holds(address) && !map_.own_window.holds(address))
    base::fatal(
        "worker %u: a thread used 0x%zx, heap memory of worker %zu. Its stack migrated while a local "
        "variable owned or "
        "pointed to heap memory (std::string, std::vector, new...): heap does not migrate. Keep such values "
        "away from "
        "spawn and join, or pass them as results",
        me, static_cast<std::size_t>(address),
        static_cast<std::size_t>((address - map_.heap_windows.low) / map_.window_bytes));
}

void on_fault(int signal, siginfo_t* info, void* context) {
  const auto address = reinterpret_cast<std::uintptr_t>(info->si_addr);
  if (signal == SIGSEGV || signal == SIGBUS) explain(address, is_write(context));
  // A fault of the program's own: die of it, so that the status and a core file tell the truth.
  if (detail::hot().in_place != 0 || detail::hot().owner == nullptr) {
    std::signal(signal, SIG_DFL);
    return;
  }
  sched::public_words& mine = sched::this_worker().words();
  mine.fault_address.store(address, std::memory_order_relaxed);
  mine.fault_code.store(program_counter(context), std::memory_order_release);
  struct sigaction dfl {};
  dfl.sa_handler = SIG_DFL;
  sigaction(signal, &dfl, nullptr);
  // Returning re-executes the faulting instruction.
}

void on_expose(int, siginfo_t*, void* context) {
  const int saved = errno;
#if defined(__x86_64__)
  const auto* registers = static_cast<const ucontext_t*>(context)->uc_mcontext.fpregs;
  const std::uint32_t control = registers != nullptr
                                    ? base::pack_float_control(registers->mxcsr, registers->cwd)
                                    : base::float_control();
#else
  static_cast<void>(context);
  const std::uint32_t control = base::float_control();
#endif
  if (detail::hot().owner != nullptr) sched::this_worker().on_expose_signal(control);
  errno = saved;
}

}  // namespace

namespace {
constexpr int handled[] = {SIGSEGV, SIGBUS, SIGURG};
void install_actions(struct sigaction* before) noexcept {
  for (int i = 0; i < 3; ++i) {
    struct sigaction action {};
    action.sa_sigaction = handled[i] == SIGURG ? on_expose : on_fault;
    action.sa_flags = SA_SIGINFO | SA_ONSTACK | (handled[i] == SIGURG ? SA_RESTART : 0);
    sigemptyset(&action.sa_mask);
    sigaction(handled[i], &action, before != nullptr ? before + i : nullptr);
  }
}
}  // namespace

process_handlers::process_handlers() noexcept {
  map_ = fault_map();
  install_actions(before_);
}
process_handlers::~process_handlers() {
  for (int i = 0; i < 3; ++i) sigaction(handled[i], &before_[i], nullptr);
}

alternate_stack::alternate_stack() noexcept {
  stack::map_private(stack::signal_stack_bytes, &low_);
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
  install_actions(nullptr);

  // These go to whole process groups (terminal, batch system); the supervisor decides what they mean.
  std::signal(SIGINT, SIG_IGN);
  std::signal(SIGTERM, SIG_IGN);
  std::signal(SIGHUP, SIG_IGN);
}

}  // namespace godwit::runtime
