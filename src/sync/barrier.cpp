// See barrier.hpp. Everything is changed under the list's lock.
#include <godwit/barrier.hpp>

#include "base/check.hpp"
#include "base/thread_sanitizer.hpp"

namespace godwit::detail {

basic_barrier::phase basic_barrier::arrive(std::ptrdiff_t n, bool drop, bool& last) noexcept {
  list_.lock();
  const phase now = phase_;
  const bool fits = n >= 0 && n <= left_;
  left_ -= n;
  if (drop) --expected_;
  last = left_ == 0 && n != 0;
  base::happens_before(&list_.word);
  if (last) base::happens_after(&list_.word);  // the completion sees what all did
  list_.unlock();
  if (!fits)
    base::fatal(
        "a barrier: %td arrived in a phase that expects fewer: more threads use it than it was made for", n);
  return now;
}

/// All have arrived and none can before this: the lock was open while the completion ran.
void basic_barrier::end_phase() noexcept {
  wake_chain woken;
  base::happens_before(&list_.word);
  list_.lock();
  GODWIT_ASSERT(left_ == 0, "a phase ends when all have arrived");
  GODWIT_ASSERT(expected_ >= 0, "no more leave than there are");
  ++phase_;
  left_ = expected_;
  list_.pop_all(woken);
  list_.unlock();  // the last access: the others may destroy it
  woken.wake();
}

void basic_barrier::wait(phase p, const place& where) noexcept {
  wait_node n;
  list_.lock();
  if (phase_ != p)
    list_.unlock();
  else
    list_.wait(n, "barrier", where);
  base::happens_after(&list_.word);
}

}  // namespace godwit::detail
