// See blame.hpp.
#include "analysis.hpp"

#include <algorithm>
#include <map>
#include <queue>
#include <set>

namespace godwit::report {
namespace {

bool is_lost(state s) { return s == state::no_work || s == state::join || s == state::getting; }

class sweep {
 public:
  explicit sweep(const analysis& a) : a_(a), next_(a.workers, 0), lost_(a.workers, 0) {}

  blame run() {
    for (std::uint32_t w = 0; w < a_.workers; ++w) open(w);
    while (!ends_.empty()) {
      const auto [time, w] = ends_.top();
      ends_.pop();
      advance(time);
      close(w);
      open(w);
    }
    for (const auto& [key, c] : by_name_)
      if (c.lost_ns > 0) result_.names.push_back(c);
    std::stable_sort(result_.names.begin(), result_.names.end(),
                     [](const culprit& x, const culprit& y) { return x.lost_ns > y.lost_ns; });
    return std::move(result_);
  }

 private:
  const segment& current(std::uint32_t w) const { return a_.timeline[w][next_[w] - 1]; }
  culprit& of(const segment& s) {
    const bool spawns = s.ended == loss::stolen || s.ended == loss::offered;
    culprit& c = by_name_[{s.name, spawns}];
    c.name = s.name;
    c.own_name = s.own_name;
    c.spawns = spawns;
    return c;
  }

  void open(std::uint32_t w) {
    if (next_[w] == a_.timeline[w].size()) return;
    const segment& s = a_.timeline[w][next_[w]++];
    ends_.emplace(s.end, w);
    lost_[w] = 0;
    offering_ += s.offers;
    if (s.what == state::busy)
      running_.emplace(s.end - s.begin, w);
    else if (is_lost(s.what))
      ++idle_;
  }

  void close(std::uint32_t w) {
    const segment& s = current(w);
    offering_ -= s.offers;
    if (is_lost(s.what)) --idle_;
    if (s.what != state::busy) return;
    running_.erase({s.end - s.begin, w});
    if (s.end <= a_.whole_from) return;
    culprit& c = of(s);
    c.pieces += s.begun == gain::left;
    if (s.end - s.begin > c.longest_ns) {
      c.longest_ns = s.end - s.begin;
      c.resumed = s.begun == gain::resume;
    }
    c.most_lost_ns = std::max(c.most_lost_ns, lost_[w]);
  }

  /// Up to @p time nothing changes.
  void advance(std::uint64_t time) {
    const std::uint64_t from = std::max(now_, a_.whole_from);
    now_ = time;
    if (time <= from || idle_ == 0) return;
    const std::uint64_t lost = (time - from) * idle_;
    result_.lost_ns += lost;
    if (offering_ > 0) result_.offered_ns += lost;
    if (running_.empty() || offering_ > 0) return;
    const std::uint32_t w = running_.rbegin()->second;
    culprit& c = of(current(w));
    c.lost_ns += lost;
    lost_[w] += lost;
    if (running_.size() > 1) return;
    c.alone_ns += time - from;
    if (alone_ != &c || alone_to_ != from) alone_from_ = from;
    alone_ = &c;
    alone_to_ = time;
    if (time - alone_from_ > c.to - c.from) c.from = alone_from_, c.to = time;
  }

  const analysis& a_;
  std::vector<std::size_t> next_;    ///< of each worker's time line
  std::vector<std::uint64_t> lost_;  ///< because of what runs at each worker
  std::priority_queue<std::pair<std::uint64_t, std::uint32_t>,
                      std::vector<std::pair<std::uint64_t, std::uint32_t>>, std::greater<>>
      ends_;
  std::set<std::pair<std::uint64_t, std::uint32_t>> running_;  ///< length of the piece, worker
  std::uint64_t now_ = 0, idle_ = 0, offering_ = 0;
  const culprit* alone_ = nullptr;  ///< up to alone_to_
  std::uint64_t alone_from_ = 0, alone_to_ = 0;
  std::map<std::pair<std::uint32_t, bool>, culprit> by_name_;
  blame result_;
};

}  // namespace

blame what_ran_while_idle(const analysis& a) { return sweep(a).run(); }

std::vector<chain_part> parts_of_chain(const analysis& a) {
  std::map<std::uint32_t, std::uint64_t> by_name;
  for (const path_piece& p : a.path.pieces) {
    if (p.how != gain::none) continue;
    const std::vector<segment>& line = a.timeline[p.worker];
    auto s = std::upper_bound(line.begin(), line.end(), p.begin,
                              [](std::uint64_t time, const segment& x) { return time < x.end; });
    for (; s != line.end() && s->begin < p.end; ++s)
      if (s->what == state::busy && s->name != nothing)
        by_name[s->name] += std::min(s->end, p.end) - std::max(s->begin, p.begin);
  }
  std::vector<chain_part> parts;
  for (const auto& [name, ns] : by_name) parts.push_back({name, ns});
  std::stable_sort(parts.begin(), parts.end(), [](const auto& x, const auto& y) { return x.ns > y.ns; });
  return parts;
}

}  // namespace godwit::report
