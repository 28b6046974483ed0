// Threads that wait for other things than joins, for in_place_test.cpp: one worker, an OS thread, whose root
// thread holds a mutex and stands still. Two threads wait for it, one for a semaphore, one has not begun.
// gdb_parked_situation FILE: as situation.cpp. Prints 142.
#include <godwit/godwit.hpp>

#include <cstdio>
#include <mutex>
#include <unistd.h>

namespace gw = godwit;

namespace {

const char* file_ = nullptr;
int begun_ = 0, sum_ = 0;  // of the one worker's threads
#define KEEP_FRAME() asm volatile("" ::: "memory")

}  // namespace

extern "C" {

[[gnu::noinline]] void wants_lock(gw::mutex* m, const int* add) {
  ++begun_;
  std::lock_guard guard(*m);  // line: wants_lock
  sum_ += *add;
}
[[gnu::noinline]] void wants_unit(gw::counting_semaphore<>* s, int add) {
  ++begun_;
  s->acquire();  // line: wants_unit
  KEEP_FRAME();
  sum_ += add;
}
[[gnu::noinline]] void stand_still() {
  if (std::FILE* f = std::fopen(file_, "w"); f != nullptr) {
    std::fprintf(f, "ready\n");
    std::fclose(f);
  }
  while (access(file_, F_OK) == 0) usleep(1000);  // line: stand_still
}

[[gnu::noinline]] int root() {
  auto* add = new int(40);  // on the heap, where frames only point
  gw::mutex m;
  gw::counting_semaphore<> units(0);
  m.lock();
  gw::thread a([&] { wants_lock(&m, add); }), b([&] { wants_lock(&m, add); });
  gw::thread c([&] { wants_unit(&units, 50); });
  while (begun_ < 3) gw::yield();
  gw::thread d([&] { sum_ += 12; });
  stand_still();
  m.unlock();
  units.release();
  for (gw::thread* t : {&a, &b, &c, &d}) t->join();
  delete add;
  return sum_;
}
}

int main(int argc, char** argv) {
  if (argc < 2) return 2;
  file_ = argv[1];
  gw::options o;
  o.workers = 1;
  o.substrate = gw::choice::substrate::threads;
  std::printf("%d\n", gw::run<int>(
                          argc, argv, [] { return root(); }, o));
}
