// From events to pictures: who ran where and when, what threads waited for, who took what from whom.
//
// Events come merged by time (merge.hpp). The model keeps, per worker, the thread in its stack region (with
// child stealing run to completion several, one on top of the other) and, per thread, its state; when a state
// ends, it hands a slice to a sink. It believes an event over what it knows already, because what it knows
// may be incomplete: rings lose their oldest events, a thief writes its steal down later than the victim may
// notice it, and clocks of different hosts agree to some microseconds only. So slices of a worker never
// overlap, whatever the events. Memory: what threads are alive at a time, not how many events there are.
// Called by: trace_file.cpp. Test: tests/trace/model_test.cpp.
#pragma once

#include "trace/events.hpp"
#include "trace/open_names.hpp"

#include <array>
#include <compare>
#include <map>
#include <span>
#include <unordered_map>
#include <utility>
#include <variant>
#include <vector>

namespace godwit::trace {

inline constexpr std::uint32_t nobody = ~0u;  ///< no worker

/// What a worker did for a while.
enum class activity : std::uint8_t {
  thread,     ///< ran a thread
  named,      ///< inside thread: what the program calls a name of its own
  below,      ///< inside thread: that waits, others run on top of it
  idle,       ///< had none; slice::cause says why
  sleep,      ///< inside idle
  getting,    ///< inside idle: the steal or resume that ended it
  far_call,   ///< inside any
  message,    ///< inside any
  global,     ///< inside any
  moves,      ///< inside any: brought parts of movable memory here
  part_wait,  ///< inside any: waited for such parts
  access,     ///< inside any: waited for a single value of another host
};

/// What a thread did for a while.
enum class state : std::uint8_t { none, running, ready, yielded, waiting };

struct worker_slice {
  std::uint32_t worker = 0;
  activity what = activity::thread;
  std::uint64_t begin_ns = 0, end_ns = 0;
  std::uint32_t thread = 0;  ///< number of the thread, 0: none
  std::uint64_t record = 0;  ///< of it
  std::uint32_t began = 0;   ///< place of the spawn or wait behind which it began, 0: unknown
  std::uint32_t place = 0;   ///< where it stopped to wait or spawned last, 0: unknown
  kind how = kind::count_;   ///< thread, getting: the event that brought it; count_: began before the events
  kind why = kind::count_;   ///< thread: the event that ended it; count_: the events end
  std::uint32_t from = nobody;   ///< the worker it came from, or that was called
  std::uint32_t bytes = 0;       ///< copied to get it; global: moved
  std::uint32_t copied_out = 0;  ///< copied when it left
  std::uint32_t latency_ns = 0;  ///< of the steal or resume
  std::uint16_t detail = 0;      ///< idle: idle_cause; far_call: number; global: global_access
  std::uint64_t flow = 0;        ///< ends here
  std::uint64_t address = 0;     ///< named: of the text; moves: of the allocation; part_wait: what was waited
                                 ///< for, 0: several
  std::uint64_t part = 0;        ///< moves: the first
  std::uint32_t count = 0;       ///< moves: parts that came
  std::uint32_t to = nobody;     ///< moves
};

struct thread_slice {
  std::uint32_t thread = 0;
  state what = state::none;
  std::uint32_t worker = nobody;  ///< where it ran
  std::uint64_t begin_ns = 0, end_ns = 0;
  std::uint32_t place = 0;      ///< where it waits
  std::uint64_t waits_for = 0;  ///< what for, if it is no join: kind::waits
};

enum class mark : std::uint8_t {
  stolen,     ///< the thread left for worker `other`
  done,       ///< what others wait for is there
  wakes,      ///< a thread that waits for something else than a join can go on
  suspended,  ///< the thread left, its parent goes on in place
  exposed,    ///< continuations were made public
  stayed,     ///< another host would have taken the thread, if it did not name this one's heap
  part,       ///< of movable memory: it went from one worker to another, or stayed
  allocated,  ///< movable memory: parts that have one home
  freed,
  kept,  ///< the operating system kept what ran here, for `ns` of the time before
  used,  ///< a part, by its owner's host `bytes` times, by others `count` times
};

struct instant {
  std::uint32_t worker = 0;
  mark what = mark::stolen;
  std::uint64_t time_ns = 0;
  std::uint32_t thread = 0;
  std::uint32_t other = nobody;
  std::uint32_t bytes = 0;  ///< suspended: copied out; exposed: how many; part: moved; allocated: of a part
  std::uint32_t place = 0;
  bool by_signal = false;
  std::span<const std::uint64_t> flows = {};  ///< begin here
  std::uint64_t address = 0;                  ///< part, allocated, freed: of the allocation
  std::uint64_t part = 0;                     ///< part; allocated: the first of `count`
  std::uint32_t to = nobody;                  ///< part; allocated: the home
  std::uint32_t count = 0;                    ///< allocated, used; kept: page faults
  std::uint32_t took_ns = 0;                  ///< part
  part_result result = part_result::came;     ///< part
  system_kind how = system_kind::waits;       ///< kept
  std::uint64_t ns = 0;                       ///< kept
};

enum class counter : std::uint8_t { busy_workers, ready_joins };

struct place {
  std::uint64_t file = 0, function = 0;
  std::uint32_t line = 0;
  std::array<std::uint64_t, 6> callers{};  ///< instead of those: kind::callers
  auto operator<=>(const place&) const = default;
};

struct sink {
  virtual ~sink() = default;
  virtual void on(const worker_slice&) = 0;
  virtual void on(const thread_slice&) = 0;
  virtual void on(const instant&) = 0;
  virtual void on(counter, std::uint64_t time_ns, std::uint32_t value) = 0;
};

class model {
 public:
  /// @p initial: of an earlier pass over the same events, what each worker ran when its events begin.
  model(std::uint32_t workers, sink& out, std::vector<std::uint64_t> initial = {});
  void event(std::uint32_t worker, const event& e);
  /// Close what is open.
  void finish(std::uint64_t end_ns);

  const std::vector<std::uint64_t>& initial() const noexcept { return initial_; }
  std::uint32_t threads() const noexcept { return next_number_ - 1; }
  const place& where(std::uint32_t number) const noexcept { return places_[number]; }

 private:
  struct thread_info {
    std::uint32_t number = 0;
    state what = state::none;
    std::uint32_t worker = nobody;
    std::uint64_t since_ns = 0;
    std::uint64_t waits_for = 0;
    std::uint64_t waits_for_what = 0;  // kind::waits
    std::uint32_t place = 0;           // where it waits, or spawned or waited before what it does now
    bool fresh = false;                // known since its suspension only
    bool undoable = false;             // `before` has not been handed out yet
    thread_slice before{};
    std::uint64_t flow = 0;  // that its next run ends
  };
  struct running {
    worker_slice slice;
    std::uint64_t below_since_ns = 0;  // waits under others since then
  };
  struct worker_info {
    bool seen = false;
    bool known = false;  // what it ran when its events began
    bool busy = false;
    std::vector<running> stack;
    std::uint64_t floor_ns = 0;                                   // slices before are closed
    std::variant<std::monostate, worker_slice, instant> closing;  // waits for its place
    std::uint64_t last_suspended = 0;                             // its place follows
    std::uint64_t last_began = 0;  // likewise: of the steal or resume just written
    std::uint64_t left_child = 0;  // with that steal, at `victim`
    std::uint32_t victim = nobody;
    place last_place{};                         // of that
    std::uint64_t name = 0, name_since_ns = 0;  // open_names
    std::vector<std::pair<std::uint64_t, std::uint64_t>> sleeps;
    std::uint64_t early[16] = {};  // threads whose ends came before the steal that they follow from
    std::uint32_t next_early = 0;
    std::pair<std::uint64_t, std::uint64_t> late_steal{};  // thread, child: of a thread not known to be here
  };

  thread_info& get(std::uint64_t record);
  void hand_out(thread_info& t);
  void move(thread_info& t, state to, std::uint64_t time, std::uint32_t worker);
  void end_thread(std::uint64_t record, std::uint64_t time);
  void stop_waiting(std::uint64_t record, thread_info& t);
  void complete(std::uint32_t w, std::uint64_t record, std::uint64_t time, bool waiter_follows);

  void slept(std::uint32_t w, const trace::event& e);
  void about_last(std::uint32_t w, const trace::event& e);
  void began_at(worker_info& me, std::uint32_t place);
  void rename(std::uint32_t w, const trace::event& e);
  void update_name(std::uint32_t w, std::uint64_t time);
  void wake(std::uint32_t w, const trace::event& e);
  void first_look(std::uint32_t w, const trace::event& e);
  void put(std::uint32_t w, std::uint64_t record, std::uint64_t time, kind how);
  void gain(std::uint32_t w, const trace::event& e);
  std::uint64_t flow_to(std::uint32_t w, const trace::event& e);
  void surface(std::uint32_t w, const trace::event& e);
  void leave_victim(std::uint32_t w, const trace::event& e);
  void lose(std::uint32_t w, const trace::event& e);
  void close_top(std::uint32_t w, std::uint64_t time, kind why);
  void suspend(std::uint32_t w, const trace::event& e);
  void expose(std::uint32_t w, const trace::event& e);
  void kept(std::uint32_t w, const trace::event& e);
  void stay(std::uint32_t w, const trace::event& e);
  void cancel(std::uint32_t w, const trace::event& e);
  void idle(std::uint32_t w, const trace::event& e);
  void nested(std::uint32_t w, const trace::event& e);
  void about_parts(std::uint32_t w, const trace::event& e);
  void flush(std::uint32_t w);
  void flush_sleeps(std::uint32_t w);
  void update_busy(std::uint32_t w, std::uint64_t time);
  std::uint32_t intern(const place& p);

  sink& out_;
  std::vector<worker_info> workers_;
  open_names names_;
  std::vector<std::uint64_t> initial_;
  bool second_pass_;
  std::unordered_map<std::uint64_t, thread_info> threads_;
  std::unordered_multimap<std::uint64_t, std::uint64_t> waiters_;  // record -> thread
  struct completion {
    std::uint64_t record, flow;
  };
  std::vector<completion> early_completions_;  // direct-mapped: those whose waiter came later in the sequence
  std::vector<std::uint64_t> flows_;
  std::uint64_t next_flow_ = 1;
  std::uint32_t next_number_ = 1;
  std::uint32_t busy_ = 0;
  std::uint32_t ready_joins_ = 0;
  std::vector<place> places_{1};
  std::map<place, std::uint32_t> place_numbers_;
};

}  // namespace godwit::trace
