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
  /// In the ring's order, as a companion takes them (FA4).
  void serve() {
    std::uint64_t next = 0;
    const auto is_posted = [&](std::uint64_t at) {
      return words_.entry_of(at).now.load(std::memory_order_acquire) == far_words::state::posted;
    };
    while (!over_) {
      const bool goes_on = is_posted(next);
      if (is_posted(0) && words_.ring[0].begins != 0) {
        next = 0;
      } else if (!goes_on) {
        std::this_thread::yield();
        continue;
      }
      far_words::entry& e = words_.entry_of(next++);
      const bool is_answered = far_words::has_answer(e.head);
      e.head.result = e.head.info = e.head.bytes = 0;
      std::memset(e.head.more + 1, 0, sizeof e.head.more - sizeof e.head.more[0]);  // [0]: an argument
      answer(e);
      ++asked;
      e.now.store(is_answered ? far_words::state::done : far_words::state::free, std::memory_order_release);
      if (!is_answered) continue;
      words_.answers.fetch_add(1, std::memory_order_seq_cst);
      godwit::base::wake(words_.answers, 1);
    }
  }
  far_words::words& words_;
  std::atomic<bool> over_{false};
  std::thread thread_;
};

}  // namespace host_of_tests
