// Barriers and spin locks.
#include <climits>
#include <ctime>

#include "real.hpp"
#include "thread.hpp"
#include "wait.hpp"

using namespace godwit::pthread;

namespace {

struct alignas(8) barrier {
  /// one word of 64 bits: who comes must see both as they were at one time
  std::uint32_t arrived_and_round[2];
  std::uint32_t count;
  std::uint32_t inside;  ///< who destroys waits for them
  std::uint32_t shared;  ///< between processes. W init
};
static_assert(sizeof(barrier) <= sizeof(pthread_barrier_t));
barrier& of(pthread_barrier_t* b) noexcept { return *reinterpret_cast<barrier*>(b); }

}  // namespace

GODWIT_EXPORT int pthread_barrier_init(pthread_barrier_t* b, const pthread_barrierattr_t* attr,
                                       unsigned count) noexcept {
  if (count == 0 || count > INT_MAX) return EINVAL;
  of(b) = {{0, 0}, count, 0, 0};
  if (attr != nullptr) {
    int shared = PTHREAD_PROCESS_PRIVATE;
    pthread_barrierattr_getpshared(attr, &shared);
    of(b).shared = shared == PTHREAD_PROCESS_SHARED;
  }
  return 0;
}
GODWIT_EXPORT int pthread_barrier_wait(pthread_barrier_t* bar) noexcept {
  barrier& b = of(bar);
  __atomic_fetch_add(&b.inside, 1, __ATOMIC_SEQ_CST);
  auto* both = reinterpret_cast<std::uint64_t*>(b.arrived_and_round);
  std::uint32_t* round_word = &b.arrived_and_round[1];
  std::uint64_t seen = __atomic_load_n(both, __ATOMIC_SEQ_CST), then;
  bool last;
  do {
    last = static_cast<std::uint32_t>(seen) + 1 == b.count;
    then = last ? ((seen >> 32) + 1) << 32 : seen + 1;
  } while (!__atomic_compare_exchange_n(both, &seen, then, false, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST));
  int result = 0;
  if (last) {
    if (b.shared == 0) wake(round_word, all_of_them);
    result = PTHREAD_BARRIER_SERIAL_THREAD;
  } else {
    const auto round = static_cast<std::uint32_t>(seen >> 32);
    while (__atomic_load_n(round_word, __ATOMIC_SEQ_CST) == round)
      wait_while(round_word, round, {.what = "barrier", .shared = b.shared != 0});
  }
  __atomic_fetch_sub(&b.inside, 1, __ATOMIC_SEQ_CST);
  return result;
}
GODWIT_EXPORT int pthread_barrier_destroy(pthread_barrier_t* b) noexcept {
  while (__atomic_load_n(&of(b).inside, __ATOMIC_SEQ_CST) != 0) give_way();
  return 0;
}

// 1: open; 0 and less: held (glibc's on x86-64, whose unlock and trylock stay in use).
GODWIT_EXPORT int pthread_spin_lock(pthread_spinlock_t* l) noexcept {
  for (unsigned spins = 0; __atomic_exchange_n(l, 0, __ATOMIC_ACQUIRE) != 1;) {
    __builtin_ia32_pause();
    if (++spins % 64 != 0) continue;
    give_way();  // its holder may have to run here
    handle_signals();
    if (thread* t = self(); t != nullptr && t->cancel_type == PTHREAD_CANCEL_ASYNCHRONOUS) test_cancel();
  }
  return 0;
}
