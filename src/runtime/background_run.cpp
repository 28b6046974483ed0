// The intake of a run that goes on in the background: OS threads push submissions and ring an eventfd; the
// run's root thread reads that, suspended meanwhile, and creates a thread for each. See background_run.hpp.
#include <godwit/background_run.hpp>

#include <godwit/detail/promise.hpp>
#include <godwit/io.hpp>
#include <godwit/run.hpp>
#include <godwit/thread.hpp>

#include <atomic>
#include <cerrno>
#include <future>
#include <sys/eventfd.h>
#include <system_error>
#include <thread>
#include <unistd.h>

#include "base/check.hpp"
#include "runtime/caller.hpp"

namespace godwit {

struct background_run::intake {
  std::atomic<detail::submission*> newest{nullptr};  // W all, R the root thread
  std::atomic<bool> is_open{true};                   // W who ends it, R the root thread
  int bell = eventfd(0, EFD_CLOEXEC);
  std::thread runs;

  intake() {
    if (bell < 0) throw std::system_error(errno, std::generic_category(), "godwit: background_run: eventfd");
  }
  ~intake() { close(bell); }
  void ring() noexcept {
    constexpr std::uint64_t one = 1;
    static_cast<void>(!write(bell, &one, sizeof one));  // (it would wait after 2^64 rings)
  }
  void serve() noexcept;
};

namespace {
void begin(detail::submission* s) noexcept {
  detail::create_detached(
      [](void* closure, std::size_t, detail::ref) {
        auto* what = *static_cast<detail::submission**>(closure);
        what->run(what);
      },
      &s, sizeof s);
}
}  // namespace

/// The root thread.
void background_run::intake::serve() noexcept {
  for (bool open = true; open;) {
    std::uint64_t rings;
    io::read(bell, &rings, sizeof rings);
    open = is_open.load(std::memory_order_acquire);  // before the last look
    detail::submission* s = newest.exchange(nullptr, std::memory_order_acquire);
    detail::submission* oldest = nullptr;
    while (s != nullptr) {
      detail::submission* next = std::exchange(s->next, oldest);
      oldest = std::exchange(s, next);
    }
    while (oldest != nullptr) begin(std::exchange(oldest, oldest->next));
  }
}

background_run::background_run(const options& base) : in_(std::make_shared<intake>()) {
  std::promise<void> begun;
  in_->runs = std::thread([&begun, in = in_.get(), o = base]() mutable {
    o.substrate = choice::substrate::threads;
    bool is_up = false;
    try {
      run<int>(
          [&] {
            detail::need_substrate_threads("background_run");
            is_up = true;
            begun.set_value();
            in->serve();
            return 0;
          },
          o);
    } catch (...) {
      if (is_up) throw;  // nobody is there to be told
      begun.set_exception(std::current_exception());
    }
  });
  try {
    begun.get_future().get();
  } catch (...) {
    in_->runs.join();
    throw;
  }
}

background_run::~background_run() {
  in_->is_open.store(false, std::memory_order_release);
  in_->ring();
  in_->runs.join();
}

void detail::submit(background_run* to, submission& s) noexcept {
  if (hot_workers() != 0 && runtime::caller_is_worker()) return begin(&s);
  if (to == nullptr)
    base::fatal(
        "a godwit::scheduler was used outside godwit::run: take that of a godwit::background_run there");
  // Once s is there the run may end it, and whoever waited for that the background_run.
  const std::shared_ptr<background_run::intake> in = to->in_;
  submission* before = in->newest.load(std::memory_order_relaxed);
  do s.next = before;  // afterwards s is the run's, and may be gone
  while (!in->newest.compare_exchange_weak(before, &s, std::memory_order_release, std::memory_order_relaxed));
  if (before == nullptr) in->ring();
}

}  // namespace godwit
