// Who is due when: a queue by virtual time, in which each seat stands once at most.
//
// A heap of seats that knows where each stands, so that one who is woken early can be moved. Equal times:
// first come, first served. With 100,000 seats no cache has it all: four children each make it half as deep.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace godwit::sim {

class queue {
 public:
  explicit queue(std::uint32_t seats) : place_(seats, absent) { heap_.reserve(seats); }

  bool empty() const noexcept { return heap_.empty(); }
  bool holds(std::uint32_t seat) const noexcept { return place_[seat] != absent; }
  std::uint64_t first_time() const noexcept { return heap_.empty() ? ~std::uint64_t{0} : heap_[0].time; }

  /// Who is due @p at-th or soon after: 0 is the first.
  std::uint32_t soon(std::size_t at) const noexcept { return at < heap_.size() ? heap_[at].seat : none; }
  static constexpr std::uint32_t none = ~0u;

  void push(std::uint32_t seat, std::uint64_t time) noexcept {
    heap_.push_back({time, order_++, seat});
    up(heap_.size() - 1);
  }
  std::uint32_t pop() noexcept {
    const std::uint32_t seat = heap_[0].seat;
    take_out(0);
    return seat;
  }
  void remove(std::uint32_t seat) noexcept { take_out(place_[seat]); }

 private:
  struct entry {
    std::uint64_t time, order;
    std::uint32_t seat;
    bool before(const entry& o) const noexcept { return time != o.time ? time < o.time : order < o.order; }
  };
  static constexpr std::uint32_t absent = ~0u;
  static constexpr std::size_t children = 4;

  void take_out(std::size_t at) noexcept {
    place_[heap_[at].seat] = absent;
    const entry last = heap_.back();
    heap_.pop_back();
    if (at == heap_.size()) return;
    heap_[at] = last;
    up(at);
    down(place_[last.seat]);
  }
  void up(std::size_t at) noexcept {
    const entry e = heap_[at];
    for (std::size_t above; at != 0 && e.before(heap_[above = (at - 1) / children]); at = above)
      put(at, heap_[above]);
    put(at, e);
  }
  void down(std::size_t at) noexcept {
    const entry e = heap_[at];
    for (std::size_t first; (first = children * at + 1) < heap_.size();) {
      std::size_t least = first;
      for (std::size_t i = first + 1; i < std::min(first + children, heap_.size()); ++i)
        if (heap_[i].before(heap_[least])) least = i;
      if (!heap_[least].before(e)) break;
      put(at, heap_[least]);
      at = least;
    }
    put(at, e);
  }
  void put(std::size_t at, const entry& e) noexcept {
    heap_[at] = e;
    place_[e.seat] = static_cast<std::uint32_t>(at);
  }

  std::vector<entry> heap_;
  std::vector<std::uint32_t> place_;  // by seat
  std::uint64_t order_ = 0;
};

}  // namespace godwit::sim
