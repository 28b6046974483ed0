// A program with one fault, which its first argument names: faults_test.sh looks whether the report's first
// sentence says so, with the line that has a comment here.
#include <godwit/godwit.hpp>

#include <chrono>
#include <cstdio>
#include <mutex>
#include <string>

namespace gw = godwit;

namespace {

using namespace std::chrono_literals;
constexpr int threads = 8, rounds = 10;

void compute(std::chrono::steady_clock::duration time) {
  for (const auto end = std::chrono::steady_clock::now() + time; std::chrono::steady_clock::now() < end;) {
  }
}

template <class F>
void on_all_threads(F f) {
  std::vector<gw::future<void>> all;
  for (int i = 0; i < threads; ++i) all.push_back(gw::spawn(f));
  for (auto& one : all) one.join();
}

void lock() {
  gw::mutex m;
  on_all_threads([&] {
    for (int i = 0; i < rounds; ++i) {
      const std::lock_guard hold(m);  // fault: lock
      gw::yield();                    // the others come to the lock, however many workers there are
      compute(2ms);
    }
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

}  // namespace

int main(int argc, char** argv) {
  const std::string fault = argc > 1 ? argv[1] : "";
  return gw::run(argc, argv, [=] {
    if (fault == "lock") lock();
    if (fault == "semaphore") semaphore();
    if (fault == "sleep") sleep();
    if (fault == "gets") gets();
  });
}
