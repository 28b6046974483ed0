// Whether a history of operations on one word can have happened one after the other.
//
// Each operation began and ended at a time; one that ended before another began must come before it. The
// search (Wing and Gong 1993, with Lowe's memory of what was seen) goes through all orders that the times
// allow. Clients are sequential, so where it stands is how far each client is, and the value.
#pragma once

#include <algorithm>
#include <cstdint>
#include <set>
#include <string>
#include <utility>
#include <vector>

namespace support {

enum class word_op : std::uint32_t { get, put, add, exchange, compare_exchange };

struct word_call {
  std::uint64_t began, ended;  ///< ns
  word_op op;
  std::uint32_t client;
  std::uint64_t operand, expected;
  std::uint64_t result;  ///< what it said; of put nothing
};

class history_search {
 public:
  /// @p calls of each client in its order.
  history_search(std::vector<std::vector<word_call>> calls, std::uint64_t first) : calls_(std::move(calls)) {
    done_.resize(calls_.size());
    possible_ = search(first);
  }
  bool possible() const { return possible_; }
  /// How far an order could be found, for the message of a failure.
  std::size_t longest() const { return longest_; }

 private:
  static bool apply(const word_call& c, std::uint64_t& value) {
    const std::uint64_t before = value;
    switch (c.op) {
      case word_op::get:
        break;
      case word_op::put:
        value = c.operand;
        return true;
      case word_op::add:
        value += c.operand;
        break;
      case word_op::exchange:
        value = c.operand;
        break;
      case word_op::compare_exchange:
        if (before == c.expected) value = c.operand;
        break;
    }
    return c.result == before;
  }
  bool search(std::uint64_t value) {
    std::uint64_t first_end = ~std::uint64_t{0};
    std::size_t so_far = 0;
    for (std::size_t i = 0; i < calls_.size(); ++i) {
      so_far += done_[i];
      if (done_[i] < calls_[i].size()) first_end = std::min(first_end, calls_[i][done_[i]].ended);
    }
    longest_ = std::max(longest_, so_far);
    if (first_end == ~std::uint64_t{0}) return true;
    if (!seen_.insert({done_, value}).second) return false;
    for (std::size_t i = 0; i < calls_.size(); ++i) {
      if (done_[i] == calls_[i].size() || calls_[i][done_[i]].began > first_end) continue;
      std::uint64_t next = value;
      if (!apply(calls_[i][done_[i]], next)) continue;
      ++done_[i];
      if (search(next)) return true;
      --done_[i];
    }
    return false;
  }

  const std::vector<std::vector<word_call>> calls_;
  std::vector<std::size_t> done_;
  std::set<std::pair<std::vector<std::size_t>, std::uint64_t>> seen_;
  std::size_t longest_ = 0;
  bool possible_ = false;
};

}  // namespace support
