// A fork-join program on simulated workers, as events. See trace_builder.hpp.
//
// A thread has work left and children to join. A thief takes a worker's thread and leaves a new child of it
// there: what was left to do is divided among the two. At its end a thread joins its children, the last
// first.
#include "trace_builder.hpp"

#include <algorithm>
#include <deque>
#include <queue>
#include <random>
#include <unordered_map>

namespace report_test {
namespace {

using godwit::trace::idle_cause;

struct thread_state {
  std::uint64_t record = 0;
  double left = 0;                      ///< work, ns
  std::vector<std::uint64_t> children;  ///< to join
};

struct worker_state {
  bool busy = false;
  thread_state now;
  double since = 0;  ///< the work of `now` goes on since then; idle since then
  idle_cause cause = idle_cause::no_work;
  std::uint64_t version = 0;  ///< of the event in the queue that counts
  int misses = 0;
  std::deque<thread_state> ready;  ///< not greedy: threads that it has to go on with
  double slept = 0;
};

class simulation {
 public:
  simulation(const schedule& s, double work)
      : s_(s), out_(s.workers), random_(s.seed), workers_(s.workers), work_(work) {}

  trace_builder run() {
    describe();
    serial_until_ = s_.serial * work_;
    begin(0, {.record = new_record(), .left = work_, .children = {}}, 1000);
    root_ = workers_[0].now.record;
    out_.start(0, 1000, root_, 900);
    for (std::uint32_t w = 1; w < s_.workers; ++w) plan(w, 500 + 10 * w);
    while (!over_ && !queue_.empty()) {
      const auto [time, w, version] = queue_.top();
      queue_.pop();
      if (version == workers_[w].version) step(w, time);
    }
    for (std::uint32_t w = 0; w < s_.workers; ++w)
      if (!workers_[w].busy) note_idle(w, end_);
    out_.info["seconds"] = (end_ + 2e6) / 1e9;
    return std::move(out_);
  }

 private:
  using due = std::tuple<double, std::uint32_t, std::uint64_t>;

  void describe() {
    out_.info["program"] = "simulated";
    out_.info["arguments"] = {"--depth", "13", "<&>"};
    out_.info["policy"] = s_.greedy ? "greedy" : "stalling";
    out_.info["clock"] = "simulated";
    out_.info["dropped"] = std::vector<std::uint64_t>(s_.workers, 0);
    const std::uint32_t per_host = (s_.workers + s_.hosts - 1) / s_.hosts;
    for (std::uint32_t first = 0; first < s_.workers; first += per_host)
      out_.info["hosts"].push_back({first, std::min(per_host, s_.workers - first)});
    out_.strings[1] = "/home/someone/programs/tree/search.cpp";
    out_.strings[2] = "visit(const node&, int)";
  }
  std::uint32_t host(std::uint32_t w) const { return w / ((s_.workers + s_.hosts - 1) / s_.hosts); }
  std::uint64_t new_record() {
    if (free_.empty()) return 0x100000 + 64 * made_++;
    const std::uint64_t r = free_.back();
    free_.pop_back();
    return r;
  }
  double uniform() { return std::uniform_real_distribution<double>(0, 1)(random_); }
  void plan(std::uint32_t w, double time) { queue_.push({time, w, ++workers_[w].version}); }

  void begin(std::uint32_t w, thread_state t, double time) {
    worker_state& me = workers_[w];
    me.busy = true;
    me.now = std::move(t);
    me.since = time;
    me.misses = 0;
    plan(w, time + me.now.left);
  }
  void note_idle(std::uint32_t w, double until) {
    worker_state& me = workers_[w];
    if (until <= me.since) return;
    if (me.slept > 0)
      out_.sleep(w, static_cast<std::uint64_t>(until),
                 static_cast<std::uint32_t>(std::min(me.slept, until - me.since)));
    me.slept = 0;
    out_.idle(w, static_cast<std::uint64_t>(until), static_cast<std::uint32_t>(until - me.since), me.cause);
  }
  void go_idle(std::uint32_t w, double time, idle_cause cause) {
    workers_[w].busy = false;
    workers_[w].since = time;
    workers_[w].cause = cause;
    plan(w, time + 200 * (1 + uniform()));
  }

  void step(std::uint32_t w, double time) {
    if (workers_[w].busy)
      work_done(w, time);
    else
      look(w, time);
  }
  void work_done(std::uint32_t w, double time) {
    worker_state& me = workers_[w];
    const auto t = static_cast<std::uint64_t>(time);
    if (!me.now.children.empty()) {
      const std::uint64_t child = me.now.children.back();
      if (done_.erase(child) > 0) {
        me.now.children.pop_back();
        free_.push_back(child);
        me.now.left = 50 + 300 * uniform();
        me.since = time;
        plan(w, time + me.now.left);
        return;
      }
      out_.suspend(w, t, me.now.record, child, child % 3 == 0 ? 57u : 123u);
      home_[child] = w;
      waiting_.emplace(child, std::move(me.now));
      go_idle(w, time, idle_cause::join);
      return;
    }
    const std::uint64_t record = me.now.record;
    if (record == root_) over_ = true;
    end_ = std::max(end_, time);
    const auto waiter = waiting_.find(record);
    const bool at_once = waiter != waiting_.end() && s_.greedy;
    out_.end(w, t, record, at_once);
    me.busy = false;
    me.since = time;
    if (waiter == waiting_.end()) {
      done_.emplace(record, true);
      go_idle(w, time, idle_cause::no_work);
      return;
    }
    thread_state next = std::move(waiter->second);
    waiting_.erase(waiter);
    next.children.pop_back();
    next.left = 100 + 2 * s_.grain_ns * uniform() * uniform();
    if (at_once) {
      out_.resume(w, t + 400, next.record, record, w, 400);
      free_.push_back(record);
      begin(w, std::move(next), time + 400);
    } else {
      awaited_[next.record] = record;
      workers_[home_[record]].ready.push_back(std::move(next));
      go_idle(w, time, idle_cause::no_work);
    }
  }

  void look(std::uint32_t w, double time) {
    worker_state& me = workers_[w];
    if (!me.ready.empty() && me.misses > 0) {
      note_idle(w, time);
      thread_state next = std::move(me.ready.front());
      me.ready.pop_front();
      const std::uint64_t awaited = awaited_[next.record];
      out_.resume(w, static_cast<std::uint64_t>(time) + 300, next.record, awaited, w, 300);
      free_.push_back(awaited);
      begin(w, std::move(next), time + 300);
      return;
    }
    auto victim = static_cast<std::uint32_t>(uniform() * s_.workers) % s_.workers;
    worker_state& other = workers_[victim];
    const double left = other.busy ? other.now.left - (time - other.since) : 0;
    if (victim == w || left < 2 * s_.grain_ns || other.since > time || time < serial_until_) {
      // One at a time at first, then asleep for longer and longer.
      const double pause = me.misses < 30 ? 300 + 200 * uniform() : std::min(1e6, 2000.0 * (me.misses - 29));
      if (me.misses >= 30) me.slept += pause;
      ++me.misses;
      plan(w, time + pause);
      return;
    }
    take(w, victim, time, left);
  }
  void take(std::uint32_t w, std::uint32_t victim, double time, double left) {
    worker_state& other = workers_[victim];
    note_idle(w, time);
    std::lognormal_distribution<double> slow(0, 0.5);
    double latency = s_.latency_ns * slow(random_) * (host(w) == host(victim) ? 1 : 30);
    const std::uint64_t child = new_record();
    thread_state stolen = std::move(other.now);
    // Mostly a small child, sometimes a large one: as in unbalanced trees.
    std::exponential_distribution<double> small(1 / s_.grain_ns);
    const double most = uniform() < 0.97 ? small(random_) : 200 * s_.grain_ns * uniform();
    const double part = std::min(0.6, most / left);
    stolen.left = left * (1 - part);
    stolen.children.push_back(child);
    const auto bytes = static_cast<std::uint32_t>(200 + 3000 * uniform() * uniform());
    out_.steal(w, static_cast<std::uint64_t>(time + latency), stolen.record, child, victim,
               static_cast<std::uint32_t>(latency), bytes);
    out_.spawned(w, static_cast<std::uint64_t>(time + latency), "tree(int) (simulated.cpp:1)");
    other.now = {.record = child, .left = left * part, .children = {}};
    other.since = time;
    plan(victim, time + other.now.left);
    begin(w, std::move(stolen), time + latency);
  }

  schedule s_;
  trace_builder out_;
  std::mt19937_64 random_;
  std::vector<worker_state> workers_;
  std::priority_queue<due, std::vector<due>, std::greater<>> queue_;
  std::unordered_map<std::uint64_t, bool> done_;
  std::unordered_map<std::uint64_t, thread_state> waiting_;  // by the record they wait for
  std::unordered_map<std::uint64_t, std::uint32_t> home_;
  std::unordered_map<std::uint64_t, std::uint64_t> awaited_;
  std::vector<std::uint64_t> free_;
  std::uint64_t made_ = 0, root_ = 0;
  double work_, serial_until_ = 0, end_ = 0;
  bool over_ = false;
};

}  // namespace

trace_builder simulate(const schedule& s) {
  // How many events an amount of work gives depends on the chances of stealing: seen, then scaled.
  double work = static_cast<double>(s.events) * s.grain_ns / 2.8;
  for (int attempt = 0;; ++attempt) {
    trace_builder t = simulation(s, work).run();
    const double ratio = static_cast<double>(s.events) / static_cast<double>(t.event_count());
    if (attempt == 6 || (ratio > 0.7 && ratio < 1.3)) return t;
    work *= ratio;
  }
}

void add_moves(trace_builder& t, std::uint64_t moves, std::uint64_t seed) {
  using godwit::trace::event;
  const auto workers = static_cast<std::uint32_t>(t.events.size());
  std::uint64_t begin = ~std::uint64_t{0}, end = 0;
  for (const auto& list : t.events)
    for (const event& e : list) {
      begin = std::min(begin, e.time_ns);
      end = std::max(end, e.time_ns);
    }
  std::mt19937_64 random(seed);
  constexpr struct {
    std::uint64_t address;
    std::uint32_t parts;
  } memory[] = {{0x10000000, 24}, {0x20000000, 500}};
  for (const auto& m : memory) {
    std::vector<std::uint32_t> owner(m.parts);
    for (std::uint32_t p = 0; p < m.parts; ++p) owner[p] = p * workers / m.parts;
    for (std::uint32_t first = 0, p = 0; p < m.parts; first = p) {
      while (p < m.parts && owner[p] == owner[first]) ++p;
      t.parts(0, begin, m.address, first, p - first, owner[first]);
    }
    for (std::uint64_t i = 1; i <= moves; ++i) {
      const std::uint64_t at = begin + (end - begin) * i / (moves + 1);
      // Neighbours, and more and more of them to worker 0: a picture with a shape.
      const std::uint64_t p = (i * 7 + random() % 5) % m.parts;
      const std::uint32_t to =
          random() % moves < i ? 0 : static_cast<std::uint32_t>((owner[p] + 1 + random() % 2) % workers);
      if (to == owner[p]) continue;
      t.part(to, at, m.address, p, owner[p], to);
      if (i % 4 == 0) t.moves(to, at, m.address, 1, 20'000);
      if (i % 9 == 0) t.part_wait(owner[p], at, m.address + p * 65536, 15'000);
      owner[p] = to;
    }
  }
  for (auto& list : t.events)
    std::stable_sort(list.begin(), list.end(),
                     [](const event& x, const event& y) { return x.time_ns < y.time_ns; });
}

}  // namespace report_test
