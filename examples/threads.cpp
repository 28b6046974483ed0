// Lightweight threads with a mutex and condition variables: a queue of bounded length between producers and
// consumers, in the standard's shapes.
//
//   example_threads --godwit-workers=4
//
// The workers are threads of this process (substrate threads), so references mean the same in all of them.
// A thread that waits is suspended; its worker runs others meanwhile. docs/threads.md
#include <godwit/godwit.hpp>

#include <deque>
#include <iostream>
#include <mutex>
#include <vector>

namespace gw = godwit;

class queue {
 public:
  void put(long value) {
    std::unique_lock lock(mutex_);
    room_.wait(lock, [this] { return values_.size() < limit; });
    values_.push_back(value);
    some_.notify_one();
  }
  long take() {
    std::unique_lock lock(mutex_);
    some_.wait(lock, [this] { return !values_.empty(); });
    const long value = values_.front();
    values_.pop_front();
    room_.notify_one();
    return value;
  }

 private:
  static constexpr std::size_t limit = 4;
  gw::mutex mutex_;
  gw::condition_variable room_, some_;
  std::deque<long> values_;
};

int main(int argc, char** argv) {
  gw::options options;
  options.substrate = gw::choice::substrate::threads;
  return gw::run(
      argc, argv,
      [] {
        constexpr int pairs = 100, each = 100;
        queue between;
        std::vector<gw::thread> producers;
        std::vector<gw::future<long>> consumers;
        for (int p = 0; p < pairs; ++p) {
          consumers.push_back(gw::create([&between] {
            long sum = 0;
            for (int i = 0; i < each; ++i) sum += between.take();
            return sum;
          }));
          producers.emplace_back([&between, p] {
            for (int i = 0; i < each; ++i) between.put(p * each + i);
          });
        }
        long sum = 0;
        for (auto& c : consumers) sum += c.join();
        for (auto& p : producers) p.join();
        std::cout << pairs * each << " values went through the queue, their sum is " << sum << '\n';
      },
      options);
}
