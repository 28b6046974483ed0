// Weak calls into a sanitizer runtime that may or may not be there: a user may build with
// -fsanitize=address or -fsanitize=thread and link a library built without it. And, at the same places, what
// valgrind is told. docs/debugging.md. Tests: tests/valgrind, tests/tsan.
#include "context/context.hpp"

#include <atomic>

#include "base/check.hpp"
#include "base/thread_sanitizer.hpp"
#include "base/valgrind.hpp"

extern "C" {
[[gnu::weak]] void __sanitizer_start_switch_fiber(void** save, const void* bottom, std::size_t size);
[[gnu::weak]] void __sanitizer_finish_switch_fiber(void* save, const void** bottom, std::size_t* size);

[[gnu::weak]] void* __tsan_get_current_fiber();
[[gnu::weak]] void* __tsan_create_fiber(unsigned flags);
[[gnu::weak]] void __tsan_destroy_fiber(void* fiber);
[[gnu::weak]] void __tsan_switch_to_fiber(void* fiber, unsigned flags);

// Frames that live in a fake stack on the heap cannot migrate.
[[gnu::weak]] const char* __asan_default_options() {
  return "detect_stack_use_after_return=0:detect_leaks=0";
}
}

namespace godwit::context {

namespace {
/// ThreadSanitizer's fibers: one for each stack of a thread, from its first thread to the end of the run.
/// (Two threads that lie on a stack one after the other are one to it: that hides races between them, and
/// makes up none.) Without locks or allocations, which it would take for those of the program.
class fiber_table {
 public:
  /// Of the stack that begins at @p low, on which only the caller is.
  void* of(std::uintptr_t low) noexcept {
    for (std::size_t i = low * 0x9e37'79b9'7f4a'7c15 >> (64 - bits), n = 0; n < size;
         i = (i + 1) % size, ++n) {
      std::uintptr_t there = all_[i].low.load(std::memory_order_relaxed);
      if (there == 0 && all_[i].low.compare_exchange_strong(there, low, std::memory_order_relaxed)) {
        all_[i].fiber = __tsan_create_fiber(0);
        return all_[i].fiber;
      }
      if (there == low) return all_[i].fiber;
    }
    base::fatal("-fsanitize=thread follows %zu threads at a time at most: have fewer of them wait", size);
  }
  void clear() noexcept {
    for (entry& e : all_)
      if (e.low.exchange(0, std::memory_order_relaxed) != 0) __tsan_destroy_fiber(e.fiber);
  }

 private:
  static constexpr unsigned bits = 15;
  static constexpr std::size_t size = std::size_t{1} << bits;
  struct entry {
    std::atomic<std::uintptr_t> low{0};  ///< of the stack; 0: free. W who comes to it first, R any worker
    void* fiber = nullptr;               ///< W the same, R who is on the stack
  };
  entry all_[size] = {};
};
constinit fiber_table fibers_{};

/// The fiber that the OS thread began as; its scheduler runs on that.
[[gnu::noinline]] void*& own_fiber() noexcept {
  thread_local void* fiber = nullptr;
  return fiber;
}

void enter_fiber(void* fiber) noexcept {
  // With synchronisation: what a worker did is over for whatever it does next.
  if (fiber != __tsan_get_current_fiber()) __tsan_switch_to_fiber(fiber, 0);
}
}  // namespace

const bool watched_ =
    __asan_unpoison_memory_region != nullptr || base::on_thread_sanitizer() || base::on_valgrind();

void sanitizer_forget_now(std::uintptr_t low, std::uintptr_t high) noexcept {
  if (__asan_unpoison_memory_region != nullptr)
    __asan_unpoison_memory_region(reinterpret_cast<void*>(low), high - low);
  if (base::on_valgrind()) base::valgrind_bytes(low, high);
}

void sanitizer_on_stack_now(const void* low, std::size_t bytes, stack_of whose) noexcept {
  if (base::on_thread_sanitizer()) {
    void*& own = own_fiber();
    if (own == nullptr) own = __tsan_get_current_fiber();
    enter_fiber(whose == stack_of::os_thread ? own : fibers_.of(reinterpret_cast<std::uintptr_t>(low)));
  }
  // Both halves before the jump: what runs in between belongs to this library and does not care.
  if (__sanitizer_start_switch_fiber == nullptr || __sanitizer_finish_switch_fiber == nullptr) return;
  __sanitizer_start_switch_fiber(nullptr, low, bytes);
  __sanitizer_finish_switch_fiber(nullptr, nullptr, nullptr);
}

void sanitizer_forget_stacks() noexcept {
  if (base::on_thread_sanitizer()) fibers_.clear();
}

}  // namespace godwit::context
