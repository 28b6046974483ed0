// Mutexes, condition variables and the like in memory that processes share through the heap: contended, they
// work; nobody sleeps for ever.
// test: timeout=120 skip-asan skip-qemu
#include "heap/memory.hpp"
#include "support/schedule.hpp"

#include <godwit/godwit.hpp>

#include <atomic>
#include <barrier>
#include <chrono>
#include <condition_variable>
#include <cstdlib>
#include <dlfcn.h>
#include <latch>
#include <mutex>
#include <new>
#include <pthread.h>
#include <semaphore.h>
#include <semaphore>
#include <shared_mutex>
#include <sys/wait.h>
#include <unistd.h>

namespace {

using heap_test::memory;
namespace heap = godwit::heap;
namespace gw = godwit;

constexpr std::uint32_t workers = 4;

/// body(worker, *T) in so many processes at once, on one T of the heap; each gives back whether all was
/// right.
template <class T, class F>
void in_all(F&& body) {
  const memory m(workers);
  heap::enter(0);
  void* const at = std::malloc(sizeof(T));
  ASSERT_TRUE(heap::here.holds(at));
  T& shared = *new (at) T();
  heap::leave();
  pid_t pids[workers];
  for (std::uint32_t me = 0; me < workers; ++me) {
    pids[me] = fork();
    if (pids[me] != 0) continue;
    heap::enter(me);
    alarm(100);
    _exit(body(me, shared) ? 0 : 1);
  }
  for (const pid_t pid : pids) {
    int status = 0;
    ASSERT_EQ(waitpid(pid, &status, 0), pid);
    EXPECT_EQ(status, 0);
  }
}

/// Long enough that others come meanwhile.
void linger() { usleep(50); }

TEST(Waits, Mutex) {
  struct both {
    std::mutex m;
    long n = 0;
    std::atomic<long> right{0};
  };
  in_all<both>([](std::uint32_t, both& b) {
    for (int i = 0; i < 300; ++i) {
      const std::lock_guard l(b.m);
      const long n = b.n;
      if (i % 10 == 0) linger();
      b.n = n + 1;
    }
    b.right += 300;
    while (b.right != 300 * workers) usleep(1000);
    return b.n == 300 * workers;
  });
}

TEST(Waits, TimedAndRecursiveMutex) {
  struct both {
    std::recursive_timed_mutex m;
    long n = 0;
    std::atomic<long> right{0};
  };
  in_all<both>([](std::uint32_t, both& b) {
    for (int i = 0; i < 100; ++i) {
      while (!b.m.try_lock_for(std::chrono::seconds(100))) return false;
      const std::lock_guard again(b.m);
      ++b.n;
      linger();
      b.m.unlock();
    }
    b.right += 100;
    while (b.right != 100 * workers) usleep(1000);
    return b.n == 100 * workers;
  });
}

// A token that goes round.
TEST(Waits, ConditionVariable) {
  struct ring {
    std::mutex m;
    std::condition_variable c;
    std::uint32_t turn = 0;
  };
  in_all<ring>([](std::uint32_t me, ring& r) {
    for (int i = 0; i < 100; ++i) {
      std::unique_lock l(r.m);
      if (i % 2 == 0)
        r.c.wait(l, [&] { return r.turn % workers == me; });
      else if (!r.c.wait_for(l, std::chrono::seconds(100), [&] { return r.turn % workers == me; }))
        return false;
      ++r.turn;
      r.c.notify_all();
    }
    return true;
  });
}

TEST(Waits, SharedMutex) {
  struct both {
    std::shared_mutex m;
    long a = 0, b = 0;
  };
  in_all<both>([](std::uint32_t me, both& s) {
    for (int i = 0; i < 200; ++i) {
      if ((me + static_cast<unsigned>(i)) % 4 == 0) {
        const std::lock_guard l(s.m);
        ++s.a;
        linger();
        ++s.b;
      } else {
        const std::shared_lock l(s.m);
        if (s.a != s.b) return false;
        linger();
        if (s.a != s.b) return false;
      }
    }
    return true;
  });
}

// By functions with a time only: they are the first that see the lock.
TEST(Waits, SharedTimedMutex) {
  struct both {
    std::shared_timed_mutex m;
    long n = 0;
    std::atomic<long> right{0};
  };
  in_all<both>([](std::uint32_t, both& s) {
    for (int i = 0; i < 100; ++i) {
      if (!s.m.try_lock_for(std::chrono::seconds(100))) return false;
      ++s.n;
      linger();
      s.m.unlock();
      if (!s.m.try_lock_shared_for(std::chrono::seconds(100))) return false;
      linger();
      s.m.unlock_shared();
    }
    s.right += 100;
    while (s.right != 100 * workers) usleep(1000);
    return s.n == 100 * workers;
  });
}

// Objects that the program loads after there was a heap for the first time.
TEST(Waits, InObjectsThatAreLoadedLater) {
  { const memory first(workers); }
  void* const library = dlopen(GODWIT_WAITS_LIBRARY, RTLD_NOW);
  ASSERT_NE(library, nullptr) << dlerror();
  static auto* const add =
      reinterpret_cast<void (*)(pthread_mutex_t*, long*)>(dlsym(library, "waits_library_add"));
  ASSERT_NE(add, nullptr);
  struct both {
    pthread_mutex_t m = PTHREAD_MUTEX_INITIALIZER;
    long n = 0;
    std::atomic<long> right{0};
  };
  in_all<both>([](std::uint32_t, both& b) {
    for (int i = 0; i < 300; ++i) add(&b.m, &b.n);
    b.right += 300;
    while (b.right != 300 * workers) usleep(1000);
    return b.n == 300 * workers;
  });
}

TEST(Waits, Once) {
  struct both {
    pthread_once_t once = PTHREAD_ONCE_INIT;
    std::atomic<int> calls{0};
  };
  static both* which = nullptr;
  in_all<both>([](std::uint32_t, both& b) {
    which = &b;
    pthread_once(&b.once, [] {
      usleep(20'000);
      ++which->calls;
    });
    return b.calls == 1;
  });
}

// atomic::wait, which libstdc++ does by system calls of its own.
TEST(Waits, AtomicsLatchesBarriersSemaphores) {
  struct all {
    std::atomic<int> word{0};
    std::atomic<long> wide{0};
    std::latch latch{workers};
    std::barrier<> barrier{workers};
    std::counting_semaphore<> semaphore{1};
    long n = 0;
  };
  in_all<all>([](std::uint32_t me, all& a) {
    usleep(me * 5000);
    a.latch.arrive_and_wait();
    for (int i = 0; i < 20; ++i) {
      a.barrier.arrive_and_wait();
      a.semaphore.acquire();
      ++a.n;
      linger();
      a.semaphore.release();
    }
    a.barrier.arrive_and_wait();
    if (a.n != 20 * workers) return false;
    if (me == 0) {
      usleep(20'000);
      a.word = 1;
      a.word.notify_all();
      a.wide = 1;
      a.wide.notify_all();
    } else {
      a.word.wait(0);
      a.wide.wait(0);
    }
    return a.word == 1 && a.wide == 1;
  });
}

// --godwit-check-heap: workers allocate in another way there.
TEST(Waits, AtomicsWhereTheHeapIsChecked) {
  gw::options o = support::schedule(2);
  o.check_heap = true;
  const int found = gw::run<int>(
      [] {
        auto* const word = new std::atomic<int>(0);
        auto* const wide = new std::atomic<long>(0);
        auto waits = gw::spawn([=] {
          word->wait(0);
          wide->wait(0);
          return static_cast<int>(*word + *wide);
        });
        usleep(20'000);  // meanwhile that one waits: this one is on the other worker
        *word = 1;
        word->notify_all();
        *wide = 2;
        wide->notify_all();
        const int sum = waits.join();
        delete word;
        delete wide;
        return sum;
      },
      o);
  EXPECT_EQ(found, 3);
}

TEST(Waits, BarriersAndSemaphoresOfPosix) {
  struct all {
    pthread_barrier_t barrier;
    sem_t semaphore;
    std::atomic<int> ready{0};
    long n = 0;
  };
  in_all<all>([](std::uint32_t me, all& a) {
    if (me == 0) {
      pthread_barrier_init(&a.barrier, nullptr, workers);
      sem_init(&a.semaphore, 0, 1);
      a.ready = 1;
    }
    while (a.ready == 0) usleep(100);
    for (int i = 0; i < 50; ++i) {
      pthread_barrier_wait(&a.barrier);
      sem_wait(&a.semaphore);
      ++a.n;
      linger();
      sem_post(&a.semaphore);
    }
    pthread_barrier_wait(&a.barrier);
    return a.n == 50 * workers;
  });
}

}  // namespace
