// A program with one fault, which its first argument names: faults_test.sh looks whether the report's first
// sentence says so, with the line that has a comment here.
#include <godwit/godwit.hpp>

#include <array>
#include <chrono>
#include <cstdio>
#include <map>
#include <mutex>
#include <string>
#include <vector>

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

// Not in a vector: between hosts a thread that owns memory stays.
template <std::size_t n>
using tasks = std::array<gw::future<void>, n>;
template <std::size_t n>
void wait_for(tasks<n>& all) {
  for (auto& one : all) one.join();
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
  static const std::map<std::string, void (*)()> faults{
      {"lock", lock},     {"semaphore", semaphore}, {"sleep", sleep}, {"gets", gets},
      {"serial", serial}, {"named", named},         {"leaf", leaf},   {"fine", fine},
      {"tiny", tiny},     {"uneven", uneven},       {"few", few},     {"nothing", nothing}};
  const auto fault = faults.find(argc > 1 ? argv[1] : "");
  if (fault == faults.end()) {
    std::fprintf(stderr, "report_faults: name a fault: lock, semaphore, ... (faults.cpp)\n");
    return 2;
  }
  return gw::run(argc, argv, fault->second);
}
