// C++ threads: std::thread, mutexes, conditions, futures, thread_local objects, exceptions, call_once; and
// C11's through <threads.h>.
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdio>
#include <future>
#include <mutex>
#include <numeric>
#include <queue>
#include <semaphore>
#include <shared_mutex>
#include <stdexcept>
#include <string>
#include <barrier>
#include <latch>
#include <thread>
#include <threads.h>
#include <vector>

using namespace std::chrono_literals;

namespace {

std::atomic<int> alive{0};
struct counted {
  std::string text = "a string that is too long for its small buffer";
  counted() { ++alive; }
  ~counted() { --alive; }
};
thread_local counted local;
thread_local std::vector<int> numbers;

long total = 0;
std::mutex total_mutex;

void add(int n) {
  for (int i = 0; i < n; ++i) {
    std::lock_guard hold(total_mutex);
    ++total;
  }
  local.text += "!";
  for (int i = 0; i < 100; ++i) {
    numbers.push_back(i);
    if (i % 10 == 0) std::this_thread::yield();
  }
  if (std::accumulate(numbers.begin(), numbers.end(), 0) != 4950) std::puts("thread_local mixed up");
}

template <class T>
class channel {
 public:
  void put(T v) {
    {
      std::lock_guard hold(m_);
      q_.push(std::move(v));
    }
    c_.notify_one();
  }
  T take() {
    std::unique_lock hold(m_);
    c_.wait(hold, [&] { return !q_.empty(); });
    T v = std::move(q_.front());
    q_.pop();
    return v;
  }

 private:
  std::mutex m_;
  std::condition_variable c_;
  std::queue<T> q_;
};

int deep(int n) {
  if (n == 0) throw std::runtime_error("from the depth");
  std::this_thread::yield();
  try {
    return deep(n - 1) + 1;
  } catch (const std::logic_error&) {
    return 0;
  }
}

int c11_add(void* p) {
  auto* m = static_cast<mtx_t*>(p);
  for (int i = 0; i < 1000; ++i) {
    mtx_lock(m);
    ++total;
    mtx_unlock(m);
  }
  thrd_yield();
  return 5;
}

}  // namespace

int main() {
  {
    std::vector<std::jthread> threads;
    for (int i = 0; i < 100; ++i) threads.emplace_back(add, 100);
  }
  std::printf("total %ld, objects %d\n", total, alive.load());

  channel<int> there, back;
  std::thread server([&] {
    for (int v; (v = there.take()) != 0;) back.put(v * v);
  });
  long sum = 0;
  for (int i = 1; i <= 1000; ++i) {
    there.put(i);
    sum += back.take();
  }
  there.put(0);
  server.join();
  std::printf("squares %ld\n", sum);

  std::vector<std::future<int>> results;
  for (int i = 0; i < 50; ++i)
    results.push_back(std::async(std::launch::async, [i] { return i % 10 == 3 ? deep(i) : i; }));
  int good = 0, thrown = 0;
  for (auto& r : results) try {
      good += r.get();
    } catch (const std::exception& e) {
      thrown += std::string(e.what()) == "from the depth";
    }
  std::printf("futures %d, exceptions %d\n", good, thrown);

  std::once_flag once;
  std::atomic<int> attempts{0}, ran{0};
  {
    std::vector<std::jthread> threads;
    for (int i = 0; i < 20; ++i)
      threads.emplace_back([&] {
        try {
          std::call_once(once, [&] {
            if (++attempts < 3) throw 1;
            ++ran;
          });
        } catch (int) {
        }
      });
  }
  std::printf("once %d\n", ran.load());

  std::timed_mutex timed;
  timed.lock();
  std::thread([&] { std::printf("timed %d\n", timed.try_lock_for(3ms)); }).join();
  std::shared_timed_mutex shared;
  shared.lock_shared();
  std::thread([&] {
    const bool got = shared.try_lock_shared();
    if (got) shared.unlock_shared();
    std::printf("shared %d %d\n", got, shared.try_lock_for(2ms));
  }).join();
  std::condition_variable_any any;
  std::unique_lock hold(shared, std::defer_lock);
  shared.unlock_shared();
  hold.lock();
  std::printf("waited %d\n", any.wait_for(hold, 2ms) == std::cv_status::timeout);

  std::barrier barrier(10);
  std::latch latch(10);
  std::counting_semaphore<5> slots(5);
  std::atomic<int> word{0};
  {
    std::vector<std::jthread> threads;
    for (int i = 0; i < 10; ++i)
      threads.emplace_back([&] {
        for (int k = 0; k < 20; ++k) barrier.arrive_and_wait();
        slots.acquire();
        std::this_thread::sleep_for(1ms);
        slots.release();
        latch.count_down();
        word.wait(0);
      });
    latch.wait();
    word = 1;
    word.notify_all();
  }
  std::puts("barrier, latch, atomic wait");
  std::jthread stopped([&](std::stop_token token) {
    std::mutex m;
    std::condition_variable_any c;
    std::unique_lock l(m);
    std::printf("stopped: %d\n", !c.wait(l, token, [] { return false; }));
  });
  stopped.request_stop();
  stopped.join();

  mtx_t m;
  mtx_init(&m, mtx_plain);
  thrd_t t[10];
  total = 0;
  int all = 0;
  for (auto& i : t)
    if (thrd_create(&i, c11_add, &m) != thrd_success) return 1;
  for (auto& i : t) {
    int r = 0;
    thrd_join(i, &r);
    all += r;
  }
  std::printf("c11 %ld %d\n", total, all);
  try {
    std::thread([] {
      try {
        deep(20);
      } catch (...) {
        std::puts("caught");
      }
    }).join();
    throw 5;
  } catch (int n) {
    std::printf("main caught %d\n", n);
  }
  return 0;
}
