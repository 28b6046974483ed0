// Waits and looks at a clock by itself: base/world.hpp does that.
void waits() {
  sched_yield();
  syscall(SYS_futex, 0);
  clock_gettime(CLOCK_MONOTONIC, nullptr);
  _mm_pause();
  rand();
}
