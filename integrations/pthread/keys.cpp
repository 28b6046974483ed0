// Thread-specific values: pthread_key_create and its like, of all threads.
//
// Not left to the C library because its destructors run inside its own end of a thread only, and its table
// lies in fields that nothing describes. OS threads use the same values; theirs are destroyed by one key of
// the C library's.
#include <climits>
#include <cstdint>
#include <cstdlib>
#include <threads.h>

#include "real.hpp"
#include "thread.hpp"

GODWIT_REAL(pthread_key_create);
GODWIT_REAL(pthread_setspecific);

namespace godwit::pthread {

namespace {

constexpr unsigned most_keys = PTHREAD_KEYS_MAX;
constexpr unsigned first_keys = 16;

/// Odd: in use. A value belongs to its key only if it was set under the same number.
struct key {
  std::atomic<std::uint32_t> number{0};
  void (*destroy)(void*) = nullptr;
};
key keys_[most_keys];

struct value {
  void* p;
  std::uint32_t number;
};

}  // namespace

struct specific_values {
  value first[first_keys];
  value* rest;  ///< of the other keys; null: none set
};

namespace {

__thread specific_values values_ __attribute__((tls_model("initial-exec")));

value* place_of(unsigned k, bool make) noexcept {
  if (k < first_keys) return &values_.first[k];
  if (values_.rest == nullptr && make)
    values_.rest = static_cast<value*>(std::calloc(most_keys - first_keys, sizeof(value)));
  return values_.rest != nullptr ? values_.rest + (k - first_keys) : nullptr;
}

void end_of_os_thread(void*) {
  run_key_destructors();
  end_os_thread();
}

}  // namespace

void watch_os_thread() noexcept {
  static const pthread_key_t key = [] {
    pthread_key_t k{};
    REAL(pthread_key_create)(&k, end_of_os_thread);
    return k;
  }();
  REAL(pthread_setspecific)(key, &values_);
}

void run_key_destructors() noexcept {
  for (int round = 0; round < PTHREAD_DESTRUCTOR_ITERATIONS; ++round) {
    bool any = false;
    for (unsigned k = 0; k < (values_.rest != nullptr ? most_keys : first_keys); ++k) {
      value& v = *place_of(k, false);
      if (v.p == nullptr) continue;
      void* p = v.p;
      v.p = nullptr;
      const std::uint32_t number = keys_[k].number.load(std::memory_order_acquire);
      if (number != v.number || number % 2 == 0 || keys_[k].destroy == nullptr) continue;
      any = true;
      keys_[k].destroy(p);
    }
    if (!any) break;
  }
  std::free(values_.rest);
  values_.rest = nullptr;
}

}  // namespace godwit::pthread

using namespace godwit::pthread;

GODWIT_EXPORT int pthread_key_create(pthread_key_t* out, void (*destroy)(void*)) noexcept {
  for (unsigned k = 0; k < most_keys; ++k) {
    std::uint32_t number = keys_[k].number.load(std::memory_order_relaxed);
    if (number % 2 != 0 ||
        !keys_[k].number.compare_exchange_strong(number, number + 1, std::memory_order_seq_cst))
      continue;
    keys_[k].destroy = destroy;
    *out = k;
    return 0;
  }
  return EAGAIN;
}
GODWIT_EXPORT int pthread_key_delete(pthread_key_t k) noexcept {
  if (k >= most_keys) return EINVAL;
  std::uint32_t number = keys_[k].number.load(std::memory_order_relaxed);
  return number % 2 != 0 &&
                 keys_[k].number.compare_exchange_strong(number, number + 1, std::memory_order_seq_cst)
             ? 0
             : EINVAL;
}
GODWIT_EXPORT void* pthread_getspecific(pthread_key_t k) noexcept {
  if (k >= most_keys) return nullptr;
  const value* v = place_of(k, false);
  return v != nullptr && v->p != nullptr && v->number == keys_[k].number.load(std::memory_order_relaxed)
             ? v->p
             : nullptr;
}
GODWIT_EXPORT int pthread_setspecific(pthread_key_t k, const void* p) noexcept {
  if (k >= most_keys) return EINVAL;
  const std::uint32_t number = keys_[k].number.load(std::memory_order_relaxed);
  if (number % 2 == 0) return EINVAL;
  if (p != nullptr && running_ && self() == nullptr) watch_os_thread();
  value* v = place_of(k, p != nullptr);
  if (v == nullptr) return p != nullptr ? ENOMEM : 0;
  *v = {const_cast<void*>(p), number};
  return 0;
}
extern "C" {
[[gnu::visibility("default"), gnu::alias("pthread_key_create")]] int __pthread_key_create(
    pthread_key_t*, void (*)(void*)) noexcept;
[[gnu::visibility("default"),
  gnu::alias("pthread_getspecific")]] void* __pthread_getspecific(pthread_key_t) noexcept;
[[gnu::visibility("default"), gnu::alias("pthread_setspecific")]] int __pthread_setspecific(
    pthread_key_t, const void*) noexcept;
}

GODWIT_EXPORT int tss_create(tss_t* out, tss_dtor_t destroy) {
  return pthread_key_create(out, destroy) == 0 ? thrd_success : thrd_error;
}
GODWIT_EXPORT void tss_delete(tss_t k) { pthread_key_delete(k); }
GODWIT_EXPORT void* tss_get(tss_t k) { return pthread_getspecific(k); }
GODWIT_EXPORT int tss_set(tss_t k, void* p) {
  return pthread_setspecific(k, p) == 0 ? thrd_success : thrd_error;
}
