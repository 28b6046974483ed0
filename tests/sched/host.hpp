// The memory of one host's workers, in this process, for tests of a worker's parts: each one's words and heap,
// and nobody who works.
#pragma once

#include "sched/heap.hpp"
#include "sched/record.hpp"
#include "sched/words.hpp"
#include "transport/shm/segment.hpp"

#include <godwit/detail/hot.hpp>

#include <deque>
#include <new>

namespace host_of_tests {

using namespace godwit::sched;
using godwit::transport::shm::segment;

class host {
 public:
  explicit host(std::uint32_t workers) {
    constexpr std::size_t slots = 64 << 10, stacks = 0, heap_room = 1 << 20;
    memory_.create_in_place(
        workers, godwit::transport::shm::plan_in_place(sizeof(godwit::detail::hot_words),
                                                       sizeof(segment_words), slots, stacks, heap_room));
    for (std::uint32_t w = 0; w < workers; ++w) {
      views_.push_back(memory_.seen_by(worker_no{w}));
      new (views_.back().common() + memory_.where().words) segment_words();
      heaps_.emplace_back();
      heaps_.back().init(views_.back().common(), views_.back().common() + memory_.where().heap, heap_room,
                         &words(w).live);
    }
  }
  ~host() { memory_.destroy(); }
  host(const host&) = delete;
  host& operator=(const host&) = delete;

  /// As worker @p w sees it.
  segment& memory(std::uint32_t w = 0) { return views_[w]; }
  segment_words& all_words(std::uint32_t w) {
    return *reinterpret_cast<segment_words*>(views_[w].common() + memory_.where().words);
  }
  public_words& words(std::uint32_t w) { return all_words(w).worker; }
  node_words& node() { return all_words(0).node; }
  heap& heap_of(std::uint32_t w) { return heaps_[w]; }

  /// A suspended thread of worker @p w, without a stack.
  image* new_image(std::uint32_t w) {
    auto* im = static_cast<image*>(heaps_[w].allocate(object_kind::image, sizeof(image)));
    im->sp = 1;  // it has begun
    return im;
  }
  ref ref_of(const object* o) { return memory_.ref_of_any(o); }

 private:
  segment memory_;
  std::deque<segment> views_;
  std::deque<heap> heaps_;
};

}  // namespace host_of_tests
