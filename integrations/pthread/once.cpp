// pthread_once. With exceptions: a function that is cancelled, or throws, is called again.
#include <threads.h>

#include "real.hpp"
#include "thread.hpp"
#include "wait.hpp"

using namespace godwit::pthread;

namespace {
constexpr std::uint32_t once_never = 0, once_running = 1, once_done = 2;
}
GODWIT_EXPORT int pthread_once(pthread_once_t* once, void (*f)()) {
  auto* word = reinterpret_cast<std::uint32_t*>(once);
  for (;;) {
    std::uint32_t state = __atomic_load_n(word, __ATOMIC_ACQUIRE);
    if (state == once_done) return 0;
    if (state == once_running) {
      wait_while(word, once_running, {.what = "call_once"});
      continue;
    }
    if (!__atomic_compare_exchange_n(word, &state, once_running, false, __ATOMIC_ACQUIRE, __ATOMIC_RELAXED))
      continue;
    try {
      f();
    } catch (...) {  // also when the thread is cancelled: somebody else tries again
      __atomic_store_n(word, once_never, __ATOMIC_SEQ_CST);
      wake(word, all_of_them);
      throw;
    }
    __atomic_store_n(word, once_done, __ATOMIC_SEQ_CST);
    wake(word, all_of_them);
    return 0;
  }
}
extern "C" [[gnu::visibility("default"), gnu::alias("pthread_once")]] int __pthread_once(pthread_once_t*,
                                                                                         void (*)());
GODWIT_EXPORT void call_once(once_flag* once, void (*f)()) {
  pthread_once(reinterpret_cast<pthread_once_t*>(once), f);
}
