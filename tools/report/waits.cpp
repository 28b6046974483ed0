// See waits.hpp.
#include "waits.hpp"

#include <algorithm>
#include <array>
#include <map>
#include <set>
#include <string_view>

namespace godwit::report {
namespace {

constexpr std::array kinds{wait_for::lock, wait_for::event, wait_for::outside};

bool is_one_of(std::string_view what, std::initializer_list<std::string_view> names) {
  return std::find(names.begin(), names.end(), what) != names.end();
}

bool can_be_explained(const segment& s) {
  return s.what != state::busy && s.what != state::getting && s.what != state::transport &&
         s.what != state::unknown;
}

/// Something begins or ends.
struct change {
  std::uint64_t time;
  bool begins;
  bool is_wait;
  std::uint32_t number;  ///< of the wait, or of the worker
  const segment* idle;   ///< of the worker
};

class divider {
 public:
  divider(analysis& a, std::vector<one_wait> waits) : a_(a), waits_(std::move(waits)), out_(a.workers) {}

  void run() {
    for (waiting_place& p : a_.places) p.idle_ns = 0;
    for (const change& c : changes()) {
      advance(c.time);
      if (c.is_wait)
        wait_changes(c);
      else
        worker_changes(c);
    }
    advance(a_.end);
    name_holders();
    put_together();
  }

 private:
  wait_for kind_of_place(const one_wait& w) const { return a_.places[w.place].kind; }

  std::vector<change> changes() const {
    std::vector<change> list;
    for (std::uint32_t i = 0; i < waits_.size(); ++i) {
      if (waits_[i].to <= waits_[i].from) continue;  // it was over at once
      list.push_back({waits_[i].from, true, true, i, nullptr});
      list.push_back({waits_[i].to, false, true, i, nullptr});
    }
    for (std::uint32_t w = 0; w < a_.workers; ++w)
      for (const segment& s : a_.timeline[w]) {
        if (s.what == state::busy) {
          list.push_back({s.begin, true, false, w, nullptr});
          list.push_back({s.end, false, false, w, nullptr});
        } else if (can_be_explained(s)) {
          list.push_back({s.begin, true, false, w, &s});
          list.push_back({s.end, false, false, w, &s});
        }
      }
    // What ends makes room first.
    std::stable_sort(list.begin(), list.end(), [](const change& x, const change& y) {
      return x.time != y.time ? x.time < y.time : x.begins < y.begins;
    });
    return list;
  }

  void wait_changes(const change& c) {
    const one_wait& w = waits_[c.number];
    auto& now = open_[static_cast<std::size_t>(kind_of_place(w))];
    waiting_place& p = a_.places[w.place];
    if (c.begins) {
      now.insert({w.from, c.number});
      p.most_at_once = std::max(p.most_at_once, ++at_once_[w.place]);
    } else if (now.erase({w.from, c.number}) != 0) {
      --at_once_[w.place];
    }
  }

  void worker_changes(const change& c) {
    if (c.idle == nullptr)
      busy_ += c.begins ? 1 : -1;
    else if (c.begins)
      idle_.push_back({c.number, c.idle});
    else
      std::erase_if(idle_, [&](const auto& i) { return i.first == c.number; });
  }

  /// Up to @p time nothing changes: who explains which of the idle workers?
  void advance(std::uint64_t time) {
    if (time <= now_) return;
    std::size_t next = 0;  // of the idle workers
    for (const wait_for kind : kinds) {
      if (kind == wait_for::outside && busy_ > 0) continue;
      for (const auto& [from, number] : open_[static_cast<std::size_t>(kind)]) {
        if (next == idle_.size()) break;
        put(idle_[next++].first, time, state_of(kind), waits_[number].place);
      }
    }
    for (; next < idle_.size(); ++next) {
      const segment& own = *idle_[next].second;
      const bool waits = own.what == state::lock || own.what == state::event || own.what == state::outside;
      put(idle_[next].first, time, waits ? state::no_work : own.what, waits ? nothing : own.place);
    }
    now_ = time;
  }

  void put(std::uint32_t worker, std::uint64_t to, state what, std::uint32_t place) {
    const std::uint64_t from = std::max(now_, a_.whole_from);
    if (place != nothing && to > from) a_.places[place].idle_ns += to - from;
    std::vector<segment>& line = out_[worker];
    if (!line.empty() && line.back().end == now_ && line.back().what == what && line.back().place == place)
      line.back().end = to;
    else
      line.push_back({now_, to, nothing, nothing, place, what, gain::none, loss::none});
  }

  /// Of each lock: the code that let go of it most often.
  void name_holders() {
    std::map<std::pair<std::uint32_t, std::uint32_t>, std::uint64_t> counts;
    for (const one_wait& w : waits_)
      if (w.woken_by != nothing) ++counts[{w.place, w.woken_by}];
    std::map<std::uint32_t, std::uint64_t> most;
    for (const auto& [which, count] : counts)
      if (count > most[which.first]) {
        most[which.first] = count;
        a_.places[which.first].held_by = which.second;
      }
  }

  void put_together() {
    for (std::uint32_t w = 0; w < a_.workers; ++w) {
      std::vector<segment>& line = a_.timeline[w];
      std::erase_if(line, can_be_explained);
      line.insert(line.end(), out_[w].begin(), out_[w].end());
      std::stable_sort(line.begin(), line.end(),
                       [](const segment& x, const segment& y) { return x.begin < y.begin; });
      auto& ns = a_.totals[w].ns;
      for (const state s : {state::no_work, state::join, state::lock, state::event, state::outside})
        ns[static_cast<std::size_t>(s)] = 0;
      for (const segment& s : out_[w])
        if (s.end > a_.whole_from)
          ns[static_cast<std::size_t>(s.what)] += s.end - std::max(s.begin, a_.whole_from);
    }
  }

  analysis& a_;
  std::vector<one_wait> waits_;
  std::vector<std::vector<segment>> out_;
  std::array<std::set<std::pair<std::uint64_t, std::uint32_t>>, 5> open_;  // by kind: begin, number
  std::map<std::uint32_t, std::uint64_t> at_once_;                         // by place
  std::vector<std::pair<std::uint32_t, const segment*>> idle_;
  int busy_ = 0;
  std::uint64_t now_ = 0;
};

}  // namespace

wait_for kind_of(const std::string& what) {
  if (what == "program's end") return wait_for::nothing;  // of godwit-pthread: that is no waiting
  if (is_one_of(what, {"", "group", "task_group", "team", "pthread_join", "pthread_exit in main"}))
    return wait_for::join;
  if (is_one_of(what, {"mutex", "shared mutex", "shared mutex (to read)", "call_once",
                       "lock of a sync variable"}))  // the last one: Chapel's
    return wait_for::lock;
  if (is_one_of(what, {"condition variable", "semaphore", "latch", "barrier", "futex", "global_latch",
                       "global_semaphore", "global_barrier", "reduction", "all_reduce", "control object",
                       "sync variable to be full", "sync variable to be empty"}))
    return wait_for::event;
  return wait_for::outside;
}

state state_of(wait_for kind) {
  switch (kind) {
    case wait_for::join:
      return state::join;
    case wait_for::lock:
      return state::lock;
    case wait_for::event:
      return state::event;
    case wait_for::outside:
      return state::outside;
    case wait_for::access:
    case wait_for::nothing:
      break;
  }
  return state::no_work;
}

void explain_idleness(analysis& a, std::vector<one_wait> waits) {
  if (!waits.empty()) divider(a, std::move(waits)).run();
}

}  // namespace godwit::report
