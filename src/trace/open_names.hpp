// Which of the program's own names (include/godwit/annotate.hpp) hold for what runs where.
//
// A worker's list has the scopes of all threads in its stack region, the outermost first. A thread that
// leaves takes those of its level along; a child that leaves or is left behind inherits the innermost of its
// parent's. Called by: model.cpp, tools/report. Test: tests/trace/open_names_test.cpp.
#pragma once

#include "trace/events.hpp"

#include <algorithm>
#include <cstdint>
#include <unordered_map>
#include <utility>
#include <vector>

namespace godwit::trace {

class open_names {
 public:
  explicit open_names(std::uint32_t workers) : here_(workers) {}

  /// The next event of all, in the order of time.
  void event(std::uint32_t w, const trace::event& e) {
    list& here = here_[w];
    switch (static_cast<kind>(e.what)) {
      case kind::name:
        here.push_back({e.a, e.b, e.detail, false});
        break;
      case kind::name_ends: {
        const auto found = std::find_if(here.rbegin(), here.rend(), [&](auto& s) { return s.id == e.b; });
        if (found != here.rend()) here.erase(std::next(found).base());
        break;
      }
      case kind::steal:
        steal(w, e);
        break;
      case kind::suspend:
        suspend(here, e);
        break;
      case kind::cancel: {
        list back = taken(e.a);
        if (!here.empty()) std::erase_if(back, [](const scope& s) { return s.id == 0; });
        here.insert(here.end(), back.begin(), back.end());
        break;
      }
      case kind::resume:
        here = taken(e.a);
        for (scope& s : here) s.bottom = true;
        break;
      case kind::start:
        here.clear();
        break;
      case kind::task:
        if (e.detail == 0) here.clear();
        break;
      default:
        break;
    }
  }

  /// The text that what runs there is called by, an address; 0: none.
  std::uint64_t of(std::uint32_t w) const noexcept { return innermost(here_[w]); }

 private:
  struct scope {
    std::uint64_t text, id;
    std::uint16_t level;
    bool bottom;  ///< of the thread at the bottom of the region, whatever the level
  };
  using list = std::vector<scope>;

  static std::uint64_t innermost(const list& l) noexcept { return l.empty() ? 0 : l.back().text; }
  static list inherited(const list& from) {
    return from.empty() ? list() : list{{from.back().text, 0, 0, true}};
  }
  static int above(const scope& s, std::uint16_t level) noexcept {
    return static_cast<std::int16_t>(s.level - level);
  }
  list taken(std::uint64_t record) {
    const auto found = left_.find(record);
    if (found == left_.end()) return {};
    list l = std::move(found->second);
    left_.erase(found);
    return l;
  }

  /// The bottom thread leaves @p here, where @p child(scope) are of those above it. Gives back its own.
  template <class Child>
  static list bottom_leaves(list& here, Child&& child) {
    const auto stays = std::stable_partition(here.begin(), here.end(),
                                             [&](const scope& s) { return s.bottom || !child(s); });
    list own(here.begin(), stays), left = inherited(own);
    left.insert(left.end(), stays, here.end());
    here = std::move(left);
    for (scope& s : own) s.bottom = true;
    return own;
  }

  void steal(std::uint32_t thief, const trace::event& e) {
    list own;
    if (e.other < here_.size() && e.other != thief)
      own = bottom_leaves(here_[e.other],
                          [&](const scope& s) { return e.detail != 0 && above(s, e.detail) > 0; });
    here_[thief] = std::move(own);
  }

  void suspend(list& here, const trace::event& e) {
    constexpr std::uint16_t parent_goes_on = 1, stays_below = 2, child_stays = 4;
    list own;
    if (e.detail == parent_goes_on) {
      const auto leaves = std::stable_partition(here.begin(), here.end(), [&](const scope& s) {
        return s.bottom || above(s, static_cast<std::uint16_t>(e.other)) < 0;
      });
      const list leaving(leaves, here.end());
      here.erase(leaves, here.end());
      own = inherited(here);
      own.insert(own.end(), leaving.begin(), leaving.end());
    } else if (e.detail == child_stays) {
      own = bottom_leaves(here,
                          [&](const scope& s) { return above(s, static_cast<std::uint16_t>(e.other)) > 0; });
    } else {
      own = here;
      if (e.detail != stays_below) here.clear();
    }
    if (!own.empty()) left_[e.a] = std::move(own);
  }

  std::vector<list> here_;
  std::unordered_map<std::uint64_t, list> left_;  ///< of suspended threads
};

}  // namespace godwit::trace
