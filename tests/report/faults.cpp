// A program with one fault, which its first argument names: faults_test.sh looks whether the report's first
// sentence says so, with the line that has a comment here.
#include <godwit/godwit.hpp>
#include <godwit/io.hpp>

#include <array>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <map>
#include <mutex>
#include <string>
#include <sys/mman.h>
#include <thread>
#include <type_traits>
#include <unistd.h>
#include <utility>

namespace gw = godwit;

namespace {

using namespace std::chrono_literals;
constexpr int threads = 8, rounds = 10;

void compute(std::chrono::steady_clock::duration time) {
  for (const auto end = std::chrono::steady_clock::now() + time; std::chrono::steady_clock::now() < end;) {
  }
}

// Not in a vector: between hosts a thread that owns memory stays.
template <std::size_t n>
using tasks = std::array<gw::future<void>, n>;
template <std::size_t n>
void wait_for(tasks<n>& all) {
  for (auto& one : all) one.join();
}

/// f() or f(number) on each.
template <class F>
void on_all_threads(F f) {
  tasks<threads> all;
  int i = 0;
  for (auto& one : all) {
    one = gw::spawn([f, i] {
      if constexpr (std::is_invocable_v<F, int>)
        f(i);
      else
        f();
    });
    ++i;
  }
  wait_for(all);
}

void lock() {
  gw::mutex m;
  on_all_threads([&] {
    for (int i = 0; i < rounds; ++i) {
      const std::lock_guard hold(m);  // fault: lock
      gw::yield();                    // the others come to the lock, however many workers there are
      compute(2ms);
    }  // end: lock
  });
}

void semaphore() {
  const gw::owned<gw::global_semaphore> one(1);
  on_all_threads([s = one.get()] {
    for (int i = 0; i < rounds; ++i) {
      s.acquire();  // fault: semaphore
      gw::yield();
      compute(2ms);
      s.release();
    }
  });
}

void barrier() {
  const gw::owned<gw::global_barrier> all(threads);
  on_all_threads([b = all.get()](int i) {
    for (int round = 0; round < rounds; ++round) {
      if (i == threads - 1) compute(10ms);
      b.arrive_and_wait();  // fault: barrier
    }
  });
}

void condition() {
  gw::mutex m;
  gw::condition_variable changed;
  int now = 0;
  on_all_threads([&](int i) {
    for (int round = 1; round <= rounds; ++round) {
      if (i == threads - 1) compute(10ms);
      std::unique_lock hold(m);
      if (i == threads - 1) now = round, changed.notify_all();
      changed.wait(hold, [&] { return now >= round; });  // fault: condition
    }
  });
}

void descriptor() {
  std::array<int, 2> ends{};
  if (pipe(ends.data()) != 0) std::abort();
  on_all_threads([ends](int i) {
    char c = 0;
    for (int round = 0; round < rounds; ++round) {
      if (i != 0) {
        if (gw::io::read(ends[0], &c, 1) != 1) std::abort();  // fault: descriptor
        continue;
      }
      gw::this_thread::sleep_for(20ms);
      for (int reader = 1; reader < threads; ++reader)
        if (gw::io::write(ends[1], &c, 1) != 1) std::abort();
    }
  });
}

/// These keep their workers.
void blocking() {
  tasks<threads> all;
  for (auto& one : all)
    one = gw::spawn([] {  // fault: blocking
      for (int i = 0; i < rounds; ++i) std::this_thread::sleep_for(20ms);
    });
  wait_for(all);
}

void pages() {
  tasks<threads> all;
  for (auto& one : all)
    one = gw::spawn([] {  // fault: pages
      constexpr std::size_t page = 4096, bytes = 1024 * page;
      for (int i = 0; i < 4 * rounds; ++i) {
        void* at = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        if (at == MAP_FAILED) std::abort();
        madvise(at, bytes, MADV_NOHUGEPAGE);
        for (std::size_t b = 0; b < bytes; b += page) static_cast<volatile char*>(at)[b] = 1;
        munmap(at, bytes);
      }
    });
  wait_for(all);
}

void sleep() {
  on_all_threads([] {
    for (int i = 0; i < rounds; ++i) gw::this_thread::sleep_for(20ms);  // fault: sleep
  });
}

void gets() {
  constexpr long n = 1 << 14;
  const gw::global_array<long> a(n, gw::distribution::blocked());
  long sum = 0;
  for (long i = 0; i < n; ++i) sum += a[i];  // fault: gets
  if (sum == 1) std::puts("nobody has written there");
}

void serial() {
  compute(150ms);
  tasks<16> all;
  for (auto& one : all) one = gw::spawn([] { compute(2ms); });  // fault: serial
  wait_for(all);
}

void named() {
  const gw::annotate name("reading the input");
  serial();
}

void leaf() {
  tasks<64> all;
  for (auto& one : all) one = gw::spawn([] { compute(1ms); });
  auto big = gw::spawn([] { compute(150ms); });  // fault: leaf
  wait_for(all);
  big.join();
}

void fine() {
  for (int round = 0; round < 1000; ++round) {
    tasks<64> all;
    for (auto& one : all) one = gw::spawn([] { compute(1us); });  // fault: fine
    wait_for(all);
  }
}

void uneven() {
  for (int round = 0; round < rounds; ++round) {
    tasks<5> all;
    auto time = 1ms;
    for (auto& one : all) one = gw::spawn([time] { compute(time); }), time *= 2;  // fault: uneven
    wait_for(all);
  }
}

void few() {
  tasks<3> all;
  for (auto& one : all) one = gw::spawn([] { compute(100ms); });  // fault: few
  wait_for(all);
}

/// With a stalling join: who waits for the first one stays where the root thread computes.
void ready() {
  auto first = gw::spawn([] { compute(20ms); });
  auto waits = gw::spawn([first = std::move(first)]() mutable {
    first.join();  // fault: ready
    compute(20ms);
  });
  compute(150ms);
  waits.join();
}

/// Nobody has to wait or to steal for these to have a name.
template <class Policy>
void child() {
  auto big = Policy::spawn([] { compute(100ms); });  // fault: child
  big.join();
}

void sent() {
  auto big = gw::spawn_at(gw::worker(1), [] { compute(100ms); });  // fault: sent
  big.join();
}

void divide(int depth) {
  if (depth == 0) return compute(100us);
  gw::invoke([=] { divide(depth - 1); }, [=] { divide(depth - 1); });
}

long fib(int n) {
  if (n < 2) return n;
  auto x = gw::spawn([n] { return fib(n - 1); });  // fault: tiny
  const long y = fib(n - 2);
  return x.join() + y;
}
void tiny() {
  if (fib(33) == 1) std::puts("that is wrong");
}

void nothing() { divide(12); }

}  // namespace

int main(int argc, char** argv) {
  static const std::map<std::string, void (*)()> faults{{"lock", lock},
                                                        {"semaphore", semaphore},
                                                        {"barrier", barrier},
                                                        {"condition", condition},
                                                        {"descriptor", descriptor},
                                                        {"blocking", blocking},
                                                        {"pages", pages},
                                                        {"sleep", sleep},
                                                        {"gets", gets},
                                                        {"serial", serial},
                                                        {"named", named},
                                                        {"leaf", leaf},
                                                        {"fine", fine},
                                                        {"tiny", tiny},
                                                        {"uneven", uneven},
                                                        {"few", few},
                                                        {"nothing", nothing},
                                                        {"ready", ready},
                                                        {"sent", sent},
                                                        {"child_full", child<gw::policies::child_full>},
                                                        {"child_rtc", child<gw::policies::child_rtc>}};
  const auto fault = faults.find(argc > 1 ? argv[1] : "");
  if (fault == faults.end()) {
    std::fprintf(stderr, "report_faults: name a fault: lock, semaphore, ... (faults.cpp)\n");
    return 2;
  }
  return gw::run(argc, argv, fault->second);
}
