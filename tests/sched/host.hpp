// The memory of one host's workers, in this process, for tests of a worker's parts: each one's site and heap,
// and nobody who works.
#pragma once

#include "sched/heap.hpp"
#include "sched/record.hpp"
#include "sched/site.hpp"
#include "sched/words.hpp"
#include "transport/shm/segment.hpp"

#include <godwit/detail/hot.hpp>

#include <deque>
#include <cstdlib>
#include <new>
#include <vector>

namespace host_of_tests {

using namespace godwit::sched;
using godwit::transport::shm::segment;

class host {
 public:
  /// @p hosts: of the run; these workers are the first one's, and of each other one there is one.
  explicit host(std::uint32_t workers, std::uint32_t hosts = 1, std::uint32_t spares = 0) {
    constexpr std::size_t slots = 64 << 10, stacks = 0, heap_room = 4 << 20;
    memory_.create_in_place(
        workers, host_words_first(godwit::transport::shm::plan_in_place(
                     sizeof(godwit::detail::hot_words), all_words_bytes, slots, stacks, heap_room)));
    ranges_.push_back({0, workers});
    for (std::uint32_t h = 1; h < hosts; ++h) ranges_.push_back({workers + h - 1, 1});
    shape_.workers = workers + hosts - 1;
    shape_.hosts = ranges_.data();
    shape_.host_count = hosts;
    shape_.in_process = true;
    shape_.spares = spares;
    hooks_.exit_worker = []() noexcept { std::_Exit(exited); };
    hooks_.unseen_error = [](const godwit::detail::payload&) noexcept { ++unseen_errors; };
    unseen_errors = 0;
    for (std::uint32_t w = 0; w < workers; ++w) {
      views_.push_back(memory_.seen_by(worker_no{w}));
      new (views_.back().common() + memory_.where().host) host_words();
      new (views_.back().common() + memory_.where().words) segment_words();
    }
    for (std::uint32_t w = 0; w < workers; ++w) {
      worker_setup setup;
      setup.memory = &views_[w];
      setup.me = worker_no{w};
      setup.cpus = workers;
      setup.job = &shape_;
      setup.opts = &opts_;
      setup.hooks = hooks_;
      sites_.emplace_back();
      sites_.back().init(setup);
      sites_.back().lock_turn = godwit::base::turn_of;
      heaps_.emplace_back();
      heaps_.back().init(views_[w].common(), views_[w].common() + memory_.where().heap, heap_room,
                         &words(w).live);
    }
  }
  ~host() { memory_.destroy(); }
  host(const host&) = delete;
  host& operator=(const host&) = delete;

  static constexpr int exited = 41;  ///< the status of a process whose worker was told to go
  static inline int unseen_errors = 0;

  /// As worker @p w sees it.
  segment& memory(std::uint32_t w = 0) { return views_[w]; }
  site& here(std::uint32_t w) { return sites_[w]; }
  segment_words& all_words(std::uint32_t w) {
    return *reinterpret_cast<segment_words*>(views_[w].common() + memory_.where().words);
  }
  public_words& words(std::uint32_t w) { return all_words(w).worker; }
  node_words& node() { return sites_[0].own_host_words()->node; }
  job_words& job() { return sites_[0].own_host_words()->job; }
  heap& heap_of(std::uint32_t w) { return heaps_[w]; }
  godwit::detail::hot_words& hot(std::uint32_t w) { return *sites_[0].hot_of(worker_no{w}); }

  /// A suspended thread of worker @p w, without a stack.
  image* new_image(std::uint32_t w) {
    auto* im = static_cast<image*>(heaps_[w].allocate(object_kind::image, sizeof(image)));
    im->sp = 64;  // it has begun
    im->bound = false;
    im->parked_at = nullptr;
    return im;
  }
  ref ref_of(const object* o) { return memory_.ref_of_any(o); }

 private:
  segment memory_;
  std::vector<godwit::transport::shm::near_range> ranges_;
  job_shape shape_;
  godwit::options opts_;
  worker_hooks hooks_;
  std::deque<segment> views_;
  std::deque<site> sites_;
  std::deque<heap> heaps_;
};

}  // namespace host_of_tests
