// The other hosts as a thread of the test that answers worker 0's requests by a script, for tests of what a
// worker asks them. With real ones: tests/mpi/.
#pragma once

#include "sched/host.hpp"

#include <atomic>
#include <cstring>
#include <functional>
#include <thread>

namespace host_of_tests {

namespace far_words = godwit::transport::far;

/// Answers requests of worker 0.
class others {
 public:
  explicit others(host& all) : words_(all.all_words(0).far), thread_([this] { serve(); }) {
    site& here = all.here(0);
    here.net.far().init(*here.memory, here.me, here.far, here.far, nullptr, nullptr, true);
  }
  ~others() {
    over_ = true;
    thread_.join();
  }
  std::function<void(far_words::entry&)> answer = [](far_words::entry&) {};
  std::atomic<int> asked{0};

 private:
  void serve() {
    while (!over_) {
      for (far_words::entry& e : words_.ring) {
        if (e.now.load(std::memory_order_acquire) != far_words::state::posted) continue;
        e.head.result = e.head.info = e.head.bytes = 0;
        std::memset(e.head.more + 1, 0, sizeof e.head.more - sizeof e.head.more[0]);  // [0]: an argument
        answer(e);
        ++asked;
        if (e.head.what == far_words::op::cast) {
          e.now.store(far_words::state::free, std::memory_order_release);
          continue;
        }
        e.now.store(far_words::state::done, std::memory_order_release);
        words_.answers.fetch_add(1, std::memory_order_seq_cst);
        godwit::base::wake(words_.answers, 1);
      }
      std::this_thread::yield();
    }
  }
  far_words::words& words_;
  std::atomic<bool> over_{false};
  std::thread thread_;
};

}  // namespace host_of_tests
