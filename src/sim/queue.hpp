// Who is due when: a queue by virtual time, in which each seat stands once at most.
//
// A radix queue: times never lie before the one that was taken out last, so a seat stands in a list by the
// uppermost digit (of 12 bits) in which its time differs from that one, and by what this digit is. When no
// time is left that differs in the last digit only, the next list is opened, and its seats move down. A seat
// moves a few times whatever the number of seats, and the next ones are known beforehand. Equal times always
// stand in the same list: first come, first served.
#pragma once

#include "base/check.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace godwit::sim {

class queue {
 public:
  static constexpr std::uint32_t none = ~0u;

  explicit queue(std::uint32_t seats) : nodes_(seats), levels_((64 + digit_bits - 1) / digit_bits) {}

  bool empty() const noexcept { return count_ == 0; }
  bool holds(std::uint32_t seat) const noexcept { return nodes_[seat].before != absent; }
  std::uint64_t first_time() noexcept {
    if (!first_known_) find_first();
    return first_;
  }

  /// Of the one that was popped last.
  std::uint64_t last_time() const noexcept { return now_; }

  /// Who is due next, and who after @p seat, if that is known already.
  std::uint32_t soon() const noexcept { return first_from(0); }
  std::uint32_t after(std::uint32_t seat) const noexcept {
    const node& n = nodes_[seat];
    return n.next != none ? n.next : first_from(digit(n.time, 0) + 1);
  }

  /// @p time: not before last_time().
  void push(std::uint32_t seat, std::uint64_t time) noexcept {
    GODWIT_CHECK(time >= now_, "sim: nobody is due before those whose turn has been");
    nodes_[seat].time = time;
    append(seat);
    ++count_;
    if (first_known_) first_ = std::min(first_, time);
  }
  std::uint32_t pop() noexcept {
    const std::uint64_t time = first_time();
    if (levels_[0].some == 0) open(time);
    now_ = time;
    const std::uint32_t seat = levels_[0].lists[digit(time, 0)].first;
    take_out(seat);
    return seat;
  }
  void remove(std::uint32_t seat) noexcept {
    if (nodes_[seat].time == later_) later_known_ = false;
    take_out(seat);
  }

 private:
  static constexpr unsigned digit_bits = 12;
  static constexpr unsigned values = 1u << digit_bits;  // of a digit
  static constexpr std::uint32_t absent = none - 1;

  struct node {
    std::uint64_t time = 0;
    std::uint32_t next = none, before = absent;
  };
  struct list {
    std::uint32_t first = none, last = none;
  };
  /// By one digit. Bit i of word w: list 64 w + i has somebody. Bit w of `some`: a bit of word w is set.
  struct level {
    std::uint64_t some = 0;
    std::array<std::uint64_t, values / 64> words{};
    std::array<list, values> lists;
  };

  static unsigned digit(std::uint64_t time, unsigned level) noexcept {
    return static_cast<unsigned>(time >> level * digit_bits) % values;
  }
  unsigned level_of(std::uint64_t time) const noexcept {
    return time == now_ ? 0 : (63 - static_cast<unsigned>(std::countl_zero(time ^ now_))) / digit_bits;
  }
  /// Of @p l, which has somebody.
  static unsigned first_list(const level& l) noexcept {
    const auto w = static_cast<unsigned>(std::countr_zero(l.some));
    return 64 * w + static_cast<unsigned>(std::countr_zero(l.words[w]));
  }

  std::uint32_t first_from(unsigned list) const noexcept {
    const level& l = levels_[0];
    for (unsigned w = list / 64, skip = list % 64; w < l.words.size(); ++w, skip = 0)
      if (const std::uint64_t here = l.words[w] >> skip << skip; here != 0)
        return l.lists[64 * w + static_cast<unsigned>(std::countr_zero(here))].first;
    return none;
  }

  void append(std::uint32_t seat) noexcept {
    node& n = nodes_[seat];
    const unsigned at = level_of(n.time), d = digit(n.time, at);
    level& l = levels_[at];
    list& to = l.lists[d];
    n.next = none;
    n.before = to.last;
    (to.last == none ? to.first : nodes_[to.last].next) = seat;
    to.last = seat;
    l.words[d / 64] |= std::uint64_t{1} << d % 64;
    l.some |= std::uint64_t{1} << d / 64;
    if (at != 0 && later_known_) later_ = std::min(later_, n.time);
  }

  void take_out(std::uint32_t seat) noexcept {
    node& n = nodes_[seat];
    const unsigned at = level_of(n.time), d = digit(n.time, at);
    level& l = levels_[at];
    list& from = l.lists[d];
    (n.before == none ? from.first : nodes_[n.before].next) = n.next;
    (n.next == none ? from.last : nodes_[n.next].before) = n.before;
    n.before = absent;
    if (from.first == none) empties(l, d);
    --count_;
    if (n.time == first_) first_known_ = false;
  }
  static void empties(level& l, unsigned d) noexcept {
    l.words[d / 64] &= ~(std::uint64_t{1} << d % 64);
    if (l.words[d / 64] == 0) l.some &= ~(std::uint64_t{1} << d / 64);
  }

  void find_first() noexcept {
    first_known_ = true;
    if (count_ == 0)
      first_ = ~std::uint64_t{0};
    else if (levels_[0].some != 0)
      first_ = now_ / values * values + first_list(levels_[0]);
    else
      first_ = first_later();
  }
  /// The least time that differs from now_ in more than the last digit.
  std::uint64_t first_later() noexcept {
    if (later_known_) return later_;
    const auto l =
        std::find_if(levels_.begin() + 1, levels_.end(), [](const level& x) { return x.some != 0; });
    later_ = ~std::uint64_t{0};
    for (std::uint32_t s = l->lists[first_list(*l)].first; s != none; s = nodes_[s].next)
      later_ = std::min(later_, nodes_[s].time);
    later_known_ = true;
    return later_;
  }
  /// @p time is next, and no list of the last digit has anybody: those who stand in its list move down.
  void open(std::uint64_t time) noexcept {
    const unsigned at = level_of(time), d = digit(time, at);
    list& from = levels_[at].lists[d];
    std::uint32_t seat = from.first;
    from = {};
    empties(levels_[at], d);
    now_ = time;
    later_known_ = false;
    while (seat != none) {
      const std::uint32_t next = nodes_[seat].next;
      append(seat);
      seat = next;
    }
  }

  std::vector<node> nodes_;    // by seat
  std::vector<level> levels_;  // from the last digit on
  std::uint32_t count_ = 0;
  std::uint64_t now_ = 0;    // the time of the one that was popped last
  std::uint64_t first_ = 0;  // of all
  std::uint64_t later_ = 0;  // of those in all levels but the first
  bool first_known_ = false, later_known_ = false;
};

}  // namespace godwit::sim
