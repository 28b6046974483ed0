// plan_rebalance: whom to give what. Pure arithmetic. See include/godwit/rebalance.hpp.
#include <godwit/rebalance.hpp>

#include "base/random.hpp"
#include "gas/heat.hpp"

#include <algorithm>
#include <cmath>
#include <deque>
#include <stdexcept>
#include <string>

namespace godwit {

namespace {

void check(std::span<const part_load> parts, std::uint32_t workers, const balance_rule& how) {
  if (!(how.threshold >= 1))
    throw std::invalid_argument("godwit: rebalance: a threshold of " + std::to_string(how.threshold) +
                                " times the mean: it must be at least 1");
  if (how.to == balance::user && how.choose == nullptr)
    throw std::invalid_argument(
        "godwit: rebalance: balance::user, but balance_rule::choose is null: give it a function");
  for (std::size_t i = 0; i < parts.size(); ++i) {
    if (!(parts[i].load >= 0) || std::isinf(parts[i].load))
      throw std::invalid_argument("godwit: rebalance: part " + std::to_string(i) + " is a load of " +
                                  std::to_string(parts[i].load) + ": weights must be numbers from 0 on");
    if (parts[i].owner >= workers || (parts[i].wanted_by != ~0u && parts[i].wanted_by >= workers))
      throw std::invalid_argument("godwit: rebalance: part " + std::to_string(i) + " names worker " +
                                  std::to_string(std::max(parts[i].owner, parts[i].wanted_by)) +
                                  ", but there are " + std::to_string(workers));
  }
}

class planner {
 public:
  planner(std::span<const part_load> parts, std::uint32_t workers, const balance_rule& how)
      : parts_(parts), how_(how), loads_(workers), giving_(workers), random_(how.seed) {
    for (std::size_t i = 0; i < parts.size(); ++i) {
      loads_[parts[i].owner] += parts[i].load;
      if (parts[i].load > 0) giving_[parts[i].owner].push_back(i);
    }
    for (auto& mine : giving_)
      std::stable_sort(mine.begin(), mine.end(),
                       [&](std::size_t x, std::size_t y) { return parts[x].load < parts[y].load; });
    for (const double l : loads_) mean_ += l / static_cast<double>(workers);
  }

  balance_plan make() {
    plan_.before = imbalance();
    if (how_.to == balance::affinity) {
      for (std::size_t i = 0; i < parts_.size(); ++i)
        if (const part_load& p = parts_[i]; p.wanted_by != ~0u && p.wanted_by != p.owner)
          give(i, p.wanted_by);
    } else {
      for (std::uint32_t round = 0; round < how_.rounds && go_round(); ++round) {
      }
    }
    plan_.after = imbalance();
    return std::move(plan_);
  }

 private:
  double imbalance() const { return mean_ > 0 ? *std::max_element(loads_.begin(), loads_.end()) / mean_ : 1; }
  void give(std::size_t part, std::uint32_t to) {
    const part_load& p = parts_[part];
    loads_[p.owner] -= p.load;
    loads_[to] += p.load;
    plan_.moves.push_back({part, p.owner, to});
  }
  /// False: nobody gave anything.
  bool go_round() {
    const std::size_t before = plan_.moves.size();
    for (std::uint32_t w = 0; w < loads_.size(); ++w)
      if (mean_ > 0 && loads_[w] >= how_.threshold * mean_) give_lightest(w);
    return plan_.moves.size() != before;
  }
  /// Of those that may go. Where each part has a target of its own, the first that helps.
  void give_lightest(std::uint32_t from) {
    const bool own_targets = how_.to == balance::random || how_.to == balance::user;
    auto& mine = giving_[from];
    for (auto i = mine.begin(); i != mine.end(); ++i) {
      const std::uint32_t to = target(*i, from);
      if (to != from && loads_[to] + parts_[*i].load < loads_[from]) {
        give(*i, to);
        mine.erase(i);
        return;
      }
      if (!own_targets) return;
    }
  }
  std::uint32_t target(std::size_t part, std::uint32_t from) {
    const auto workers = static_cast<std::uint32_t>(loads_.size());
    switch (how_.to) {
      case balance::predecessor:
        return (from + workers - 1) % workers;
      case balance::successor:
        return (from + 1) % workers;
      case balance::random:
        return workers == 1 ? from : (from + 1 + random_.below(workers - 1)) % workers;
      case balance::user: {
        const std::uint32_t to = how_.choose(part, from, loads_);
        if (to >= workers)
          throw std::invalid_argument("godwit: rebalance: balance_rule::choose named worker " +
                                      std::to_string(to) + ", but there are " + std::to_string(workers));
        return to;
      }
      case balance::least_loaded:
      case balance::affinity:
        break;
    }
    return static_cast<std::uint32_t>(std::min_element(loads_.begin(), loads_.end()) - loads_.begin());
  }

  const std::span<const part_load> parts_;
  const balance_rule how_;
  std::vector<double> loads_;                    ///< of each worker
  std::vector<std::deque<std::size_t>> giving_;  ///< its parts that have not gone, lightest first
  double mean_ = 0;
  base::small_random random_;
  balance_plan plan_;
};

}  // namespace

balance_plan plan_rebalance(std::span<const part_load> parts, std::uint32_t workers,
                            const balance_rule& how) {
  check(parts, workers, how);
  if (workers == 0) return {};
  return planner(parts, workers, how).make();
}

std::uint32_t wanted_by(const part_info& part) noexcept {
  const auto word = [](std::uint64_t n) {
    return static_cast<std::uint32_t>(std::min<std::uint64_t>(n, ~0u));
  };
  const part_heat& h = part.heat;
  const bool wanted =
      gas::is_wanted({{}, word(h.near), word(h.far), h.other + 1, word(h.by_other)}, part.bytes);
  return wanted ? h.other : ~0u;
}

}  // namespace godwit
