// Events without a scheduler: written by hand, or by a small simulation that knows the rules of events.hpp.
//
// The simulation plays continuation stealing on n workers: threads are stolen, suspend, are completed and
// resumed, as the scheduler would write it down, thieves sometimes late. It is not the scheduler: it has no
// stacks and no results.
#pragma once

#include "base/random.hpp"
#include "trace/events.hpp"

#include <algorithm>
#include <cstdint>
#include <deque>
#include <map>
#include <vector>

namespace by_hand {

using godwit::trace::event;
using godwit::trace::kind;

struct fields {
  std::uint64_t a = 0, b = 0;
  std::uint32_t duration_ns = 0, bytes = 0, other = 0;
  std::uint16_t detail = 0;
};
inline event make(kind k, std::uint64_t time, const fields& f = {}) {
  return {time, f.a, f.b, f.duration_ns, f.bytes, f.other, static_cast<std::uint16_t>(k), f.detail};
}

/// Events by worker.
using history = std::vector<std::vector<event>>;

struct simulation {
  explicit simulation(std::uint32_t workers, std::uint64_t seed)
      : random(seed), events(workers), states(workers) {}

  /// About @p steps decisions.
  history run(std::size_t steps) {
    states[0] = {first_record, 0, false};
    emit(0, kind::start, {.a = states[0].bottom});
    for (std::uint32_t w = 1; w < states.size(); ++w) states[w].idle_since = now;
    for (std::size_t i = 0; i < steps; ++i) {
      now += 100 + random.below(2000);
      step(random.below(static_cast<std::uint32_t>(states.size())));
    }
    for (auto& of_worker : events)
      std::stable_sort(of_worker.begin(), of_worker.end(),
                       [](const event& x, const event& y) { return x.time_ns < y.time_ns; });
    return events;
  }

  struct waiting_thread {
    std::uint64_t thread, record;
  };
  struct worker_state {
    std::uint64_t bottom = 0;  // 0: none
    std::uint64_t idle_since = 0;
    bool joins = false;
  };

  void step(std::uint32_t w) {
    worker_state& me = states[w];
    if (open.size() > 100) open.erase(open.begin(), open.begin() + 50);  // nobody waits for these
    if (me.bottom == 0) {
      get(w);
      return;
    }
    switch (random.below(6)) {
      case 0: {  // the thread ends; greedily, who waits for it follows
        const std::uint64_t done = me.bottom;
        if (done == first_record) break;  // the root thread lives as long as the run
        const auto waiter =
            std::find_if(waiters.begin(), waiters.end(), [&](auto& x) { return x.record == done; });
        open.erase(std::remove(open.begin(), open.end(), done), open.end());
        emit(w, kind::end, {.a = done, .detail = static_cast<std::uint16_t>(waiter != waiters.end())});
        if (waiter != waiters.end()) {
          me.bottom = waiter->thread;
          waiters.erase(waiter);
          now += 50;
          emit(w, kind::resume, {.a = me.bottom, .b = done, .duration_ns = 40, .bytes = 300, .other = w});
        } else {
          lose(w, false);
        }
        break;
      }
      case 1: {  // it waits for another that is open
        std::vector<std::uint64_t> others;
        for (const std::uint64_t r : open)
          if (r != me.bottom) others.push_back(r);
        if (others.empty()) break;
        const std::uint64_t target = others[random.below(static_cast<std::uint32_t>(others.size()))];
        emit(w, kind::suspend, {.a = me.bottom, .b = target, .bytes = 256});
        emit(w, kind::place, {.a = 0x1000, .b = 0x2000, .other = 7 + random.below(3)});
        if (random.below(8) == 0) {
          emit(w, kind::cancel, {.a = me.bottom});
          break;
        }
        waiters.push_back({me.bottom, target});
        lose(w, true);
        break;
      }
      case 2:
        emit(w, kind::expose, {.bytes = 1});
        break;
      case 3: {  // a child that is not the bottom thread waits, its parent goes on in place
        if (open.empty()) break;
        const std::uint64_t child = next_record();
        emit(w, kind::suspend, {.a = child, .b = me.bottom, .bytes = 128, .detail = 1});
        emit(w, kind::place, {.a = 0x1000, .b = 0x2000, .other = 30});
        waiters.push_back({child, me.bottom});
        open.push_back(child);
        break;
      }
      default:
        break;
    }
  }

  void lose(std::uint32_t w, bool joins) {
    states[w].bottom = 0;
    states[w].idle_since = now;
    states[w].joins = joins;
  }

  void get(std::uint32_t thief) {
    const std::uint32_t v = random.below(static_cast<std::uint32_t>(states.size()));
    if (random.below(3) == 0) emit(thief, kind::sleep, {.duration_ns = 60});
    const bool all_wait = std::all_of(states.begin(), states.end(), [](auto& s) { return s.bottom == 0; });
    if ((all_wait || waiters.size() > 100) && !waiters.empty()) {
      answer(thief);
      return;
    }
    if (v == thief || states[v].bottom == 0) return;
    const std::uint64_t stolen = states[v].bottom;
    const std::uint64_t child = next_record();
    open.push_back(child);
    const std::uint64_t late = random.below(4) == 0 ? random.below(5000) : 0;  // the victim goes on meanwhile
    now += 300;
    idle_until(thief, now + late);
    events[thief].push_back(make(kind::steal, now + late,
                                 {.a = stolen, .b = child, .duration_ns = 200, .bytes = 512, .other = v}));
    states[v].bottom = child;
    states[thief].bottom = stolen;
  }

  /// A record is completed from outside, and if worker @p w has nothing it goes on with who waited.
  void answer(std::uint32_t w) {
    const waiting_thread t = waiters.front();
    emit(w, kind::complete, {.a = t.record});
    if (states[w].bottom != 0) return;
    waiters.pop_front();
    now += 100;
    idle_until(w, now);
    emit(w, kind::resume, {.a = t.thread, .b = t.record, .duration_ns = 30, .bytes = 99, .other = w});
    states[w].bottom = t.thread;
  }

  void idle_until(std::uint32_t w, std::uint64_t time) {
    events[w].push_back(make(
        kind::idle, time,
        {.duration_ns = static_cast<std::uint32_t>(time - states[w].idle_since), .detail = states[w].joins}));
  }

  void emit(std::uint32_t w, kind k, const fields& f = {}) {
    const std::uint64_t after = events[w].empty() ? 0 : events[w].back().time_ns;  // not before a late steal
    events[w].push_back(make(k, std::max(now, after), f));
  }
  std::uint64_t next_record() { return next_record_ += 128; }

  godwit::base::small_random random;
  history events;
  std::vector<worker_state> states;
  std::deque<waiting_thread> waiters;
  std::vector<std::uint64_t> open;  // records of threads that have not ended
  std::uint64_t now = 1'000'000;
  static constexpr std::uint64_t first_record = 4096;
  std::uint64_t next_record_ = first_record;
};

}  // namespace by_hand
