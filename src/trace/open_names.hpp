// Which of the program's own names (include/godwit/annotate.hpp) hold for what runs where.
//
// A worker's list has the scopes of all threads in its stack region, the outermost first. A thread that
// leaves takes those of its level along; a child that leaves or is left behind inherits the innermost of its
// parent's. A thief writes its steal down when it is over. Meanwhile the victim may run something else, and
// other thieves may have taken what this one left: so each list knows which thread is at its bottom, and
// lists with a bottom thread that is still to be taken are kept. Called by: model.cpp, tools/report. Test:
// tests/trace/open_names_test.cpp.
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
  explicit open_names(std::uint32_t workers) : here_(workers), gone_(workers) {}

  /// The next event of all, in the order of time.
  void event(std::uint32_t w, const trace::event& e) {
    region& here = here_[w];
    switch (static_cast<kind>(e.what)) {
      case kind::name:
        here.scopes.push_back({e.a, e.b, e.detail, false});
        break;
      case kind::name_ends: {
        list& l = here.scopes;
        const auto found = std::find_if(l.rbegin(), l.rend(), [&](auto& s) { return s.id == e.b; });
        if (found != l.rend()) l.erase(std::next(found).base());
        break;
      }
      case kind::start:
        begins(w, e.a, {});
        break;
      case kind::task:
        if (e.detail == 0) begins(w, e.a, {});
        if (e.detail == 2) here.bottom = e.a;
        break;
      case kind::steal:
        begins(w, e.a, stolen(w, e));
        break;
      case kind::resume:
        resume(w, e.a);
        break;
      case kind::end:
        if (e.a == here.bottom) here = {};
        break;
      case kind::suspend:
        suspend(here, e);
        break;
      case kind::cancel:
        cancel(here, e.a);
        break;
      default:
        break;
    }
  }

  /// The text that what runs there is called by, an address; 0: none.
  std::uint64_t of(std::uint32_t w) const noexcept { return innermost(here_[w].scopes); }

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
  /// The threads of a worker's stack region.
  struct region {
    std::uint64_t bottom = 0;  ///< 0: none, or not known
    list scopes;
    std::uint64_t taken = 0, left = 0;            ///< from above the bottom; what is there now
    std::vector<std::uint64_t> waits_below = {};  ///< threads that others run on top of
  };
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

  static void all_at_bottom(list& l) {
    for (scope& s : l) s.bottom = true;
  }

  /// @p thread runs in an empty region. What is there is still to be taken.
  void begins(std::uint32_t w, std::uint64_t thread, list scopes) {
    constexpr std::size_t most_late = 8;
    if (here_[w].bottom != 0 && !here_[w].scopes.empty()) {
      std::vector<region>& gone = gone_[w];
      if (gone.size() == most_late) gone.erase(gone.begin());
      gone.push_back(std::move(here_[w]));
    }
    all_at_bottom(scopes);
    here_[w] = {thread, std::move(scopes)};
  }

  void resume(std::uint32_t w, std::uint64_t thread) {
    std::vector<std::uint64_t>& below = here_[w].waits_below;
    if (!below.empty() && below.back() == thread)
      below.pop_back();
    else
      begins(w, thread, taken(thread));
  }

  /// The bottom thread leaves @p here, where @p child(scope) are of those above it. Gives back its own.
  template <class Child>
  static list bottom_leaves(list& here, Child&& child) {
    const auto stays = std::stable_partition(here.begin(), here.end(),
                                             [&](const scope& s) { return s.bottom || !child(s); });
    list own(here.begin(), stays), left = inherited(own);
    left.insert(left.end(), stays, here.end());
    here = std::move(left);
    return own;
  }

  /// A thread at @p level leaves, and the thief that takes the one below it has not written that down yet.
  static list middle_leaves(list& here, std::uint16_t level) {
    const auto own_from = std::stable_partition(
        here.begin(), here.end(), [&](const scope& s) { return s.bottom || above(s, level) < 0; });
    const auto child_from =
        std::stable_partition(own_from, here.end(), [&](const scope& s) { return above(s, level) == 0; });
    list below(here.begin(), own_from), own = inherited(below);
    own.insert(own.end(), own_from, child_from);
    const list children(child_from, here.end());
    here = std::move(below);
    if (!own.empty()) here.push_back({own.back().text, 0, static_cast<std::uint16_t>(level + 1), false});
    here.insert(here.end(), children.begin(), children.end());
    return own;
  }

  /// What a thief takes along.
  list stolen(std::uint32_t thief, const trace::event& e) {
    if (e.other >= here_.size() || e.other == thief) return {};
    region* from = &here_[e.other];
    if (from->bottom != 0 && from->bottom != e.a) {
      std::vector<region>& gone = gone_[e.other];
      const auto late =
          std::find_if(gone.rbegin(), gone.rend(), [&](const region& r) { return r.bottom == e.a; });
      if (late == gone.rend()) {
        from->taken = e.a, from->left = e.b;
        return e.detail != 0 ? middle_leaves(from->scopes, e.detail) : inherited(from->scopes);
      }
      from = &*late;
    }
    from->bottom = e.b == from->taken ? std::exchange(from->left, 0) : e.b;
    return bottom_leaves(from->scopes,
                         [&](const scope& s) { return e.detail != 0 && above(s, e.detail) > 0; });
  }

  /// Of the thread at @p level, which is not at the bottom: the others stay.
  static list top_leaves(list& here, std::uint16_t level) {
    const auto leaves = std::stable_partition(
        here.begin(), here.end(), [&](const scope& s) { return s.bottom || above(s, level) < 0; });
    const list leaving(leaves, here.end());
    here.erase(leaves, here.end());
    list own = inherited(here);
    own.insert(own.end(), leaving.begin(), leaving.end());
    return own;
  }

  void suspend(region& here, const trace::event& e) {
    constexpr std::uint16_t parent_goes_on = 1, stays_below = 2, child_stays = 4;
    const auto level = static_cast<std::uint16_t>(e.other);
    list own;
    if (e.detail == stays_below) {
      here.waits_below.push_back(e.a);
    } else if (e.detail == child_stays) {
      own = bottom_leaves(here.scopes, [&](const scope& s) { return above(s, level) > 0; });
    } else if (e.detail == parent_goes_on || (here.bottom != 0 && here.bottom != e.a)) {
      own = top_leaves(here.scopes, level);
    } else {
      own = std::move(here.scopes);
      here = {};
    }
    if (!own.empty()) left_[e.a] = std::move(own);
  }

  void cancel(region& here, std::uint64_t thread) {
    list back = taken(thread);
    if (!here.scopes.empty()) std::erase_if(back, [](const scope& s) { return s.id == 0; });
    if (here.bottom == 0) here.bottom = thread;
    here.scopes.insert(here.scopes.end(), back.begin(), back.end());
  }

  std::vector<region> here_;
  std::vector<std::vector<region>> gone_;  ///< by victim: a thief has not written down yet that it came
  std::unordered_map<std::uint64_t, list> left_;  ///< of suspended threads
};

}  // namespace godwit::trace
