// The functions of include/godwit.h: thin calls of the C++ interface. No exception leaves them.
#include <godwit.h>
#include <godwit/condition_variable.hpp>
#include <godwit/mutex.hpp>
#include <godwit/runtime.hpp>
#include <godwit/thread.hpp>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <iterator>
#include <limits>
#include <mutex>
#include <new>

namespace gw = godwit;

struct gw_thread {
  gw::future<void*> result;
};
struct gw_mutex {
  gw::mutex m;
};
struct gw_cond {
  gw::condition_variable c;
};

namespace {

bool inside() noexcept { return gw::detail::on_substrate_threads(); }

constexpr const char* error_texts[] = {"no error", "no memory", "the mutex is held by another thread",
                                       "the time was over first", "a null pointer, or called outside gw_run"};
static_assert(std::size(error_texts) == GW_E_INVALID + 1, "a text for each GW_E number, in their order");

/// As long as a duration can be: a larger number would become a negative one.
std::chrono::nanoseconds duration_of(std::uint64_t ns) {
  return std::chrono::nanoseconds(std::min(ns, std::uint64_t{std::numeric_limits<std::int64_t>::max()}));
}

template <class T>
int make(T** out) noexcept {
  if (out == nullptr) return GW_E_INVALID;
  *out = new (std::nothrow) T;
  return *out != nullptr ? GW_OK : GW_E_NO_MEMORY;
}

}  // namespace

extern "C" {

const char* gw_error_string(int error) {
  if (error < 0 || error > GW_E_INVALID) return "not an error number of godwit";
  return error_texts[error];
}

int gw_run(int argc, char** argv, int (*main_function)(void*), void* arg) {
  if (main_function == nullptr) return 2;
  gw::options o;
  o.substrate = gw::choice::substrate::threads;
  return gw::run(
      argc, argv, [=] { return main_function(arg); }, o);
}

int gw_spawn(gw_thread** thread, void* (*function)(void*), void* arg) {
  if (thread == nullptr || function == nullptr || !inside()) return GW_E_INVALID;
  auto* t = new (std::nothrow) gw_thread;
  if (t == nullptr) return GW_E_NO_MEMORY;
  t->result = gw::create([=] { return function(arg); });
  *thread = t;
  return GW_OK;
}

int gw_join(gw_thread* thread, void** result) {
  if (thread == nullptr || !inside()) return GW_E_INVALID;
  void* value = thread->result.join({"gw_join", "gw_join", 0});
  if (result != nullptr) *result = value;
  delete thread;
  return GW_OK;
}

int gw_detach(gw_thread* thread) {
  if (thread == nullptr || !inside()) return GW_E_INVALID;
  delete thread;
  return GW_OK;
}

void gw_yield(void) { gw::yield(); }

int gw_sleep_ns(uint64_t ns) {
  gw::this_thread::sleep_for(duration_of(ns), {"gw_sleep_ns", "gw_sleep_ns", 0});
  return GW_OK;
}

int gw_mutex_create(gw_mutex** mutex) { return make(mutex); }
void gw_mutex_destroy(gw_mutex* mutex) { delete mutex; }
int gw_mutex_lock(gw_mutex* mutex) {
  if (mutex == nullptr) return GW_E_INVALID;
  mutex->m.lock({"gw_mutex_lock", "gw_mutex_lock", 0});
  return GW_OK;
}
int gw_mutex_trylock(gw_mutex* mutex) {
  if (mutex == nullptr) return GW_E_INVALID;
  return mutex->m.try_lock() ? GW_OK : GW_E_BUSY;
}
int gw_mutex_unlock(gw_mutex* mutex) {
  if (mutex == nullptr) return GW_E_INVALID;
  mutex->m.unlock({"gw_mutex_unlock", "gw_mutex_unlock", 0});
  return GW_OK;
}

int gw_cond_create(gw_cond** cond) { return make(cond); }
void gw_cond_destroy(gw_cond* cond) { delete cond; }
int gw_cond_wait(gw_cond* cond, gw_mutex* mutex) {
  if (cond == nullptr || mutex == nullptr || !inside()) return GW_E_INVALID;
  std::unique_lock lock(mutex->m, std::adopt_lock);
  cond->c.wait(lock, {"gw_cond_wait", "gw_cond_wait", 0});
  lock.release();
  return GW_OK;
}
int gw_cond_timedwait(gw_cond* cond, gw_mutex* mutex, uint64_t ns) {
  if (cond == nullptr || mutex == nullptr || !inside()) return GW_E_INVALID;
  std::unique_lock lock(mutex->m, std::adopt_lock);
  const auto status =
      cond->c.wait_for(lock, duration_of(ns), gw::detail::place{"gw_cond_timedwait", "gw_cond_timedwait", 0});
  lock.release();
  return status == std::cv_status::timeout ? GW_E_TIMED_OUT : GW_OK;
}
int gw_cond_signal(gw_cond* cond) {
  if (cond == nullptr) return GW_E_INVALID;
  cond->c.notify_one();
  return GW_OK;
}
int gw_cond_broadcast(gw_cond* cond) {
  if (cond == nullptr) return GW_E_INVALID;
  cond->c.notify_all();
  return GW_OK;
}

uint32_t gw_worker_id(void) { return gw::worker_id(); }
uint32_t gw_worker_count(void) { return gw::worker_count(); }

}  // extern "C"
