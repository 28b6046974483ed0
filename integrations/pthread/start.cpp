// main as a lightweight thread, and the process around it.
//
// The C library starts the program by calling the main that __libc_start_main was given: ours. It starts the
// run on an OS thread of its own. The thread that runs the program's main takes over the initial thread's
// block of thread-local storage -- what constructors put there, pthread_self(), the number that equals the
// process's -- and the initial OS thread goes on with a new one: it is where signals are handled
// (signals.cpp). The run never ends: exit does. docs/decisions/0013-pthread.md.
#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <dlfcn.h>
#include <linux/futex.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <godwit/detail/promise.hpp>
#include <godwit/options.hpp>

#include "base/cpus.hpp"
#include "context/context.hpp"
#include "runtime/substrate.hpp"

#include "foreign.hpp"
#include "identity.hpp"
#include "outputs.hpp"
#include "real.hpp"
#include "report.hpp"
#include "signals.hpp"
#include "thread.hpp"
#include "tls.hpp"
#include "wait.hpp"

GODWIT_REAL(pthread_create);

using main_fn = int(int, char**, char**);
extern "C" int __wrap___libc_start_main(main_fn* main, int argc, char** argv, void (*init)(), void (*fini)(),
                                        void (*rtld_fini)(), void* stack_end);

extern "C" int __sigsetjmp(struct __jmp_buf_tag*, int) noexcept __attribute__((returns_twice));
extern "C" void __pthread_register_cancel(__pthread_unwind_buf_t*);

namespace godwit::pthread {

namespace {

// More than most systems let a process have.
constexpr std::uint64_t usual_most_threads = 65'536;

main_fn* program_ = nullptr;
int argc_ = 0;
char** argv_ = nullptr;
char** envp_ = nullptr;
char* initial_block_ = nullptr;
thread main_thread_;
std::uint32_t go_ = 0;  // futex: the initial thread uses its old block no more

[[gnu::constructor]] void prepare_early() noexcept {
  resolve_all();
  tls::prepare();
}

long futex(std::uint32_t* word, int op, std::uint32_t value) noexcept {
  return ::syscall(SYS_futex, word, op, value, nullptr, nullptr, 0);
}

/// Parked for ever, as something that is woken from outside: signals may come at any time, so the run is
/// never deadlocked.
void outside_entry(void*, std::size_t, detail::ref) {
  detail::park([](void*, detail::waiter*) noexcept { return true; }, nullptr, detail::wakes::outside,
               "program's end", {});
}

[[gnu::noinline]] void call_main() {
  __pthread_unwind_buf_t end;
  if (__sigsetjmp(reinterpret_cast<struct __jmp_buf_tag*>(reinterpret_cast<void*>(end.__cancel_jmp_buf)),
                  0) == 0) {
    __pthread_register_cancel(&end);
    ::exit(program_(argc_, argv_, envp_));
  }
  // pthread_exit in main, or it was cancelled: the process ends with its last thread.
  tls::run_destructors();
  run_key_destructors();
  wait_for_others_and_exit();
}

struct root final : detail::root_task {
  bool needs_threads() const noexcept override { return true; }
  void operator()(writer&) override {
    detail::create_detached(outside_entry, nullptr, 0);
    remember_threads();
    run_as(main_thread_);
    call_main();
  }
};

/// What the run takes of addresses, where the program may not have as many as it likes (ulimit -v).
void fit_addresses(options& o) noexcept {
  rlimit limit{};
  const bool limited = getrlimit(RLIMIT_AS, &limit) == 0 && limit.rlim_cur != RLIM_INFINITY;
  const std::uint64_t most = limited ? limit.rlim_cur : ~std::uint64_t{0};
  // So many threads may block in system calls, or spin, besides as many as there are workers.
  o.spare_workers = static_cast<std::uint32_t>(std::min<std::uint64_t>(64, most >> 31));
  // A quarter of a kilobyte for each thread, and as much again for those that have ended.
  o.heap_bytes = std::clamp<std::uint64_t>(most >> 10, 2 << 20, 64 << 20);
}

void* run(void*) {
  sigset_t all;  // for the workers, and for this thread: signals are the initial one's
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, nullptr);
  while (__atomic_load_n(&go_, __ATOMIC_ACQUIRE) == 0) futex(&go_, FUTEX_WAIT_PRIVATE, 0);
  options opts;
  try {
    options defaults;
    fit_addresses(defaults);
    opts = resolve_options(defaults);
    begin_outputs(opts);
    opts.substrate = choice::substrate::threads;
    // One more than a single CPU: a thread that blocks inside the C library keeps its worker.
    if (opts.workers == 0) opts.workers = std::max(2u, static_cast<unsigned>(base::usable_cpu_count()));
    opts.policy = choice::policy::greedy;
    opts.force_steal = choice::force_steal::none;
    opts.span = false;
    opts.expose_signal = false;  // nothing is spawned
    opts.global_bytes = std::uint64_t{64 + 16 * (opts.workers + opts.spare_workers)} << 20;  // not used
    opts.cache_bytes = std::uint64_t{1} << 20;
    opts.thread_stack_bytes = opts.stack_bytes = thread_stack_bytes();
    install_foreign_wakes();
    watch_io();
    root r;
    static constexpr int made_by_writes[] = {SIGPIPE, SIGXFSZ};  // signals.cpp: on_write
    const auto threads = runtime::make_threads(opts, usual_most_threads, made_by_writes);
    const detail::run_result result = runtime::run_on(*threads, opts, r);
    fail("%s", result.message.c_str());
  } catch (const std::exception& e) {
    fail("%s", e.what());
  }
}

[[gnu::noinline]] int begin(int argc, char** argv, char** envp) noexcept {
  argc_ = argc;
  argv_ = argv;
  envp_ = envp;
  initial_block_ = reinterpret_cast<char*>(pthread_self());
  describe_main(main_thread_, initial_block_);
  begin_signals(main_thread_);
  tls::unregister_from_kernel();
  char* block = tls::make();
  pthread_t runner{};
  pthread_attr_t attributes;
  pthread_attr_init(&attributes);
  pthread_attr_setstacksize(&attributes, 1 << 20);
  running_ = true;
  if (block == nullptr || REAL(pthread_create)(&runner, &attributes, run, nullptr) != 0)
    fail("cannot start a thread: raise the limit on processes (ulimit -u) or on memory (ulimit -v)");
  tls::set_tid(block, getpid());
  context::set_thread_pointer(reinterpret_cast<std::uintptr_t>(block));
  return 0;
}

[[gnu::noinline]] void serve() noexcept {
  static struct __res_state resolver;
  tls::begin_thread(&resolver);
  __atomic_store_n(&go_, 1, __ATOMIC_RELEASE);
  futex(&go_, FUTEX_WAKE_PRIVATE, 1);
  serve_signals();
}

int main_of_initial_thread(int argc, char** argv, char** envp) {
  begin(argc, argv, envp);
  serve();
  return 0;
}

}  // namespace

}  // namespace godwit::pthread

using namespace godwit::pthread;

GODWIT_EXPORT int __libc_start_main(main_fn* main, int argc, char** argv, void (*init)(), void (*fini)(),
                                    void (*rtld_fini)(), void* stack_end) {
  program_ = main;
  return __wrap___libc_start_main(main_of_initial_thread, argc, argv, init, fini, rtld_fini, stack_end);
}
