// Weak calls into a sanitizer runtime that may or may not be there: a user may build with
// -fsanitize=address and link a library built without it. And, at the same places, what valgrind is told.
#include "context/context.hpp"

#include "base/valgrind.hpp"

extern "C" {
[[gnu::weak]] void __sanitizer_start_switch_fiber(void** save, const void* bottom, std::size_t size);
[[gnu::weak]] void __sanitizer_finish_switch_fiber(void* save, const void** bottom, std::size_t* size);

// Frames that live in a fake stack on the heap cannot migrate.
[[gnu::weak]] const char* __asan_default_options() {
  return "detect_stack_use_after_return=0:detect_leaks=0";
}
}

namespace godwit::context {

const bool watched_ = __asan_unpoison_memory_region != nullptr || base::on_valgrind();

void sanitizer_forget_now(std::uintptr_t low, std::uintptr_t high) noexcept {
  if (__asan_unpoison_memory_region != nullptr)
    __asan_unpoison_memory_region(reinterpret_cast<void*>(low), high - low);
  if (base::on_valgrind()) base::valgrind_bytes(low, high);
}

void sanitizer_on_stack_now(const void* low, std::size_t bytes) noexcept {
  // Both halves before the jump: what runs in between belongs to this library and does not care.
  if (__sanitizer_start_switch_fiber == nullptr || __sanitizer_finish_switch_fiber == nullptr) return;
  __sanitizer_start_switch_fiber(nullptr, low, bytes);
  __sanitizer_finish_switch_fiber(nullptr, nullptr, nullptr);
}

}  // namespace godwit::context
