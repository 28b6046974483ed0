// The program that gdb_test.cpp debugs: two workers in a situation that does not change until it is let go.
//
//   worker 0: holder (its parent, root, was stolen) > level_one > level_two > spins in leaf
//   worker 1: root > spins in spinner; three waiters suspended in wait_inner until holder is done; a yielder
// The steps order themselves through counters in shared memory, never by time. situation FILE: writes
// "ready" into FILE when everybody is in place and goes on when FILE is gone. Prints the result, 142.
// Workers must be forked from one process. Lines that the test names carry a comment `// line: NAME`. Empty
// asm statements keep frames apart: no tail calls.
#include "support/shared.hpp"

#include <godwit/godwit.hpp>

#include <alloca.h>
#include <atomic>
#include <cstddef>
#include <cstdio>
#include <memory>
#include <sched.h>
#include <unistd.h>

namespace gw = godwit;

namespace {

struct steps {
  std::atomic<int> parent_left{0};
  std::atomic<int> spinner_runs{0};
  std::atomic<int> released{0};
};
std::unique_ptr<support::shared<steps>> shared_;  // made before run: every worker has it
const char* file_ = nullptr;

steps& step() { return **shared_; }
#define KEEP_FRAME() asm volatile("" ::: "memory")

void tell_ready() {
  if (std::FILE* f = std::fopen(file_, "w"); f != nullptr) {
    std::fprintf(f, "ready\n");
    std::fclose(f);
  }
}

}  // namespace

// C names: the same words in every compiler's backtrace.
extern "C" {

[[gnu::noinline]] int leaf(int n) {
  tell_ready();
  while (access(file_, F_OK) == 0) sched_yield();  // line: leaf
  step().released.store(1);
  return n;
}
[[gnu::noinline]] int level_two(int n) {
  auto f = gw::spawn([n] { return leaf(n); });  // line: level_two
  const int v = f.join();
  KEEP_FRAME();
  return v + 1;
}
[[gnu::noinline]] int level_one(int n) {
  void* room = alloca(static_cast<std::size_t>(n) * 64);  // its frame hangs on the frame pointer in the slot
  asm volatile("" ::"r"(room) : "memory");
  auto f = gw::spawn([n] { return level_two(n); });  // line: level_one
  const int v = f.join();
  KEEP_FRAME();
  return v + 1;
}
[[gnu::noinline]] int holder(int n) {
  while (step().parent_left.load() == 0) sched_yield();
  while (step().spinner_runs.load() == 0) sched_yield();
  const int v = level_one(n);  // nobody starves any more: what is spawned from here on stays here
  KEEP_FRAME();
  return v + 1;
}

[[gnu::noinline]] int wait_inner(gw::shared_future<int> s, int n) {
  char ballast[3000];
  ballast[0] = static_cast<char>(n);
  asm volatile("" ::"r"(ballast) : "memory");
  const int v = s.get();  // line: wait_inner
  asm volatile("" ::"r"(ballast) : "memory");
  return v + ballast[0] - static_cast<char>(n);
}
[[gnu::noinline]] int wait_middle(gw::shared_future<int> s, int n) {
  const int v = wait_inner(s, n);  // line: wait_middle
  KEEP_FRAME();
  return v + n;
}
[[gnu::noinline]] int wait_outer(gw::shared_future<int> s, int n) {
  const int v = wait_middle(s, n);  // line: wait_outer
  KEEP_FRAME();
  return v + 0;
}

[[gnu::noinline]] int yielder(int n) {
  gw::yield();  // line: yielder
  KEEP_FRAME();
  return n;
}
[[gnu::noinline]] int spinner(int n) {
  step().spinner_runs.store(1);
  while (step().released.load() == 0) sched_yield();  // line: spinner
  return n;
}

[[gnu::noinline]] int root() {
  auto h = gw::spawn([] { return holder(1); });
  step().parent_left.store(1);  // holder waits for this: only a thief can have come here
  gw::shared_future<int> s = std::move(h);
  auto a = gw::spawn([s] { return wait_outer(s, 10); });
  auto b = gw::spawn([s] { return wait_outer(s, 20); });
  auto c = gw::spawn([s] { return wait_outer(s, 30); });
  auto y = gw::spawn([] { return yielder(50); });
  auto p = gw::spawn([] { return spinner(16); });  // line: root
  const int v = a.join() + b.join() + c.join() + y.join() + p.join() + s.get();
  KEEP_FRAME();
  return v;
}
}

int main(int argc, char** argv) {
  if (argc < 2) return 2;
  file_ = argv[1];
  shared_ = std::make_unique<support::shared<steps>>();
  gw::options o;
  o.workers = 2;
  std::printf("%d\n", gw::run<int>(
                          argc, argv, [] { return root(); }, o));
}
