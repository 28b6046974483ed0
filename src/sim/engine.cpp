// See engine.hpp.
#include "sim/engine.hpp"

#include <algorithm>
#include <cstring>
#include <utility>

#include "base/blocking_calls.hpp"
#include "base/check.hpp"
#include "context/context.hpp"
#include "heap/heap.hpp"
#include "stack/give_back.hpp"
#include "stack/stack.hpp"

namespace godwit::sim {

namespace {
constexpr std::size_t stack_bytes = 64 << 10;
constexpr std::uint64_t part_of_wait = 32;
constexpr std::uint32_t most_stalls = 4;  // in a run
constexpr std::size_t most_late_stores = 8;
constexpr std::uint64_t ms = 1'000'000;  // ns

std::uint64_t sum_to(std::uint64_t a, std::uint64_t b) noexcept {
  return b < ~std::uint64_t{0} - a ? a + b : ~std::uint64_t{0};
}
}  // namespace

engine::engine(const engine_setup& setup)
    : setup_(setup), seats_(setup.seats), due_(setup.seats), random_(setup.seed * 2654435761u + 1) {
  stack_ = stack::map_private(stack_bytes);
  exceptions_ = context::exceptions_here().state;
  if (setup_.faults.stall) {
    stalls_left_ = 1 + random_.below(most_stalls);
    events_to_stall_ = 1 + random_.below(1u << (4 + random_.below(11)));
  }
  if (setup_.faults.crash) events_to_crash_ = 1 + random_.below(1u << (4 + random_.below(11)));
}

engine::~engine() { stack::unmap_private(stack_, stack_bytes); }

void engine::sit(std::uint32_t number, detail::hot_words* hot, void (*begin)(void*), void* arg,
                 std::byte* region, std::byte* kept, const void* beside) noexcept {
  seat& s = seats_[number];
  s.hot = hot;
  s.begin = begin;
  s.arg = arg;
  s.distance = reinterpret_cast<std::uintptr_t>(kept) - reinterpret_cast<std::uintptr_t>(region);
  s.beside = beside;
  due_.push(number, 0);
  ++here_;
}

void engine::run() noexcept {
  const context::exception_state before = *exceptions_;
  running_ = true;
  godwit_ctx_suspend(
      stack_ + stack_bytes,
      [](void* self, std::uintptr_t sp) {
        auto* e = static_cast<engine*>(self);
        e->way_back_ = sp;
        e->turn_ = e->due_.pop();
        e->sit_down();
      },
      this);
  running_ = false;
  *exceptions_ = before;
}

void engine::leave() noexcept {
  measure();
  settle();
  seats_[turn_].left = true;
  tally_.end_ns = std::max(tally_.end_ns, seats_[turn_].now);
  if (--here_ == 0) godwit_ctx_resume_suspended(way_back_, 0);
  if (due_.empty()) all_sleep();
  turn_ = due_.pop();
  // On another stack: the next one may go on where this one stands.
  godwit_ctx_start(
      stack_ + stack_bytes, [](void* e) { static_cast<engine*>(e)->sit_down(); }, this);
}

// ---- turns ----

/// Where time is measured: what has passed since the last look is its own.
void engine::measure() noexcept {
  if (setup_.clock == nullptr || !running_) return;
  const std::uint64_t now = setup_.clock->ns();
  seats_[turn_].now += now - measured_from_;
  measured_from_ = now;
}

void engine::count_event() noexcept {
  ++tally_.events;
  if (stalls_left_ != 0 && --events_to_stall_ == 0) stall();
  if (events_to_crash_ != 0 && --events_to_crash_ == 0) crash();
  const seat& s = seats_[turn_];
  tally_.hash = (tally_.hash ^ (s.now * 0x9E3779B97F4A7C15ull + turn_)) * 0x100000001b3ull;
}

/// Of the faults: the caller stands still for 1 ms to 1 s.
void engine::stall() noexcept {
  --stalls_left_;
  events_to_stall_ = 1 + random_.below(1u << (4 + random_.below(11)));
  seat& s = seats_[turn_];
  s.now += ms << random_.below(11);
}

/// Of the faults: the caller goes no further. It is missed after 0.1 to 12.8 ms, or when others wake it.
void engine::crash() noexcept {
  seats_[turn_].now += ms / 10 << random_.below(8);
  end_turn(true);
  setup_.on_death();
}

/// When @p ns more have passed for the caller. Past the end of virtual time the run is over.
std::uint64_t engine::later(std::uint64_t ns) noexcept {
  const std::uint64_t then = sum_to(seats_[turn_].now, ns);
  if (then == base::no_limit) too_long();
  return then;
}

/// The caller waits for so long.
void engine::pass(std::uint64_t ns) noexcept {
  settle();
  seat& s = seats_[turn_];
  s.now = later(ns);
  if (setup_.jitter_ns != 0) s.now = later(random_.below(setup_.jitter_ns + 1));
  count_event();
  if (s.now >= due_.first_time()) end_turn(true);
}

/// With many seats each turn begins with what no cache has. So while this one goes on, what the next few need
/// is on its way: first what says where the rest is.
void engine::fetch_ahead() const noexcept {
  constexpr int seats_ahead = 6, hot_ahead = 4, stacks_ahead = 2;
  constexpr std::size_t stack_bytes_ahead = 1024;  // what follows the processor fetches by itself
  const auto fetch = [](const void* at, std::size_t bytes) {
    for (std::size_t i = 0; i < bytes; i += 64) __builtin_prefetch(static_cast<const std::byte*>(at) + i);
  };
  std::uint32_t n = due_.soon();
  for (int i = 0; i < seats_ahead && n != queue::none; ++i, n = due_.after(n)) {
    const seat& s = seats_[n];
    if (i >= hot_ahead) {
      fetch(&s, offsetof(seat, begin));
    } else if (i >= stacks_ahead) {
      fetch(s.hot, offsetof(detail::hot_words, views));
      __builtin_prefetch(s.beside);
    } else if (s.used.low < s.used.high) {
      fetch(reinterpret_cast<const std::byte*>(s.used.low + s.distance),
            std::min<std::size_t>(s.used.high - s.used.low, stack_bytes_ahead));
      const auto slots = reinterpret_cast<std::uintptr_t>(s.hot->bottom);
      fetch(reinterpret_cast<const void*>(slots - sizeof(detail::spawn_slot)),
            2 * sizeof(detail::spawn_slot));
    } else {
      fetch(reinterpret_cast<const void*>(s.sp), 256);
    }
  }
}

/// Until its time comes again; @p comes_back: at seat::now, else when somebody wakes it.
void engine::end_turn(bool comes_back) noexcept {
  if (comes_back) due_.push(turn_, seats_[turn_].now);
  if (due_.empty()) all_sleep();
  const std::uint32_t next = due_.pop();
  fetch_ahead();
  if (seats_[next].now > setup_.limit_ns) too_long();
  if (next != turn_) {
    ++tally_.switches;
    const std::uint32_t before = std::exchange(turn_, next);
    struct {
      engine* self;
      std::uint32_t before;
    } change{this, before};
    godwit_ctx_suspend(
        stack_ + stack_bytes,
        [](void* arg, std::uintptr_t sp) {
          const auto c = *static_cast<decltype(change)*>(arg);
          seat& s = c.self->seats_[c.before];
          s.sp = sp;
          s.exceptions = *c.self->exceptions_;
          c.self->keep(s, sp);
          c.self->sit_down();
        },
        &change);
    // `this` is the same for all: the engine.
    if (setup_.on_turn != nullptr)
      setup_.on_turn(reinterpret_cast<std::uintptr_t>(__builtin_frame_address(0)));
  }
  base::no_blocking_calls::look(true);  // also if something was let through in the last turn
  if (setup_.clock != nullptr) measured_from_ = setup_.clock->ns();
}

/// On the stack between turns; the hot words are those of @p s still.
void engine::keep(seat& s, std::uintptr_t sp) noexcept {
  s.used = s.distance != 0 ? setup_.in_use(sp) : bytes_in_use{};
  give_back_unused(s);
  if (s.used.low >= s.used.high) return;
  context::sanitizer_forget(s.used.low / 64 * 64, s.used.high);
  auto* const to = reinterpret_cast<std::byte*>(s.used.low + s.distance);
  const std::size_t bytes = s.used.high - s.used.low;
  // Frames of an earlier run may have been there, whose memory was laid out otherwise.
  context::sanitizer_forget(reinterpret_cast<std::uintptr_t>(to) / 64 * 64,
                            reinterpret_cast<std::uintptr_t>(to) + bytes);
  std::memcpy(to, reinterpret_cast<const void*>(s.used.low), bytes);
}

/// Where bytes of the region were kept that are not in use any more, pages go back to the system, two or more
/// at a time. (Who waits for bytes that others put there comes by here before they can.)
void engine::give_back_unused(seat& s) noexcept {
  constexpr std::uintptr_t page = 4096;
  if (s.used.low >= s.used.high) s.used.low = s.used.high = s.touched.low;
  const bytes_in_use used{s.used.low / page * page, (s.used.high + page - 1) / page * page};
  bytes_in_use& all = s.touched;
  if (all.low == all.high) all = used;
  all = {std::min(all.low, used.low), std::max(all.high, used.high)};
  if (all.high - all.low < used.high - used.low + 2 * page) return;
  stack::give_back(reinterpret_cast<std::byte*>(all.low + s.distance), used.low - all.low);
  stack::give_back(reinterpret_cast<std::byte*>(used.high + s.distance), all.high - used.high);
  all = used;
}

// Does not come back. (Not marked so: see leave.)
void engine::sit_down() noexcept {
  seat& s = seats_[turn_];
  no_longer_waits(turn_);
  if (setup_.on_change != nullptr) setup_.on_change(turn_);
  context::use_hot_words(s.hot);
  *exceptions_ = s.exceptions;
  if (!std::exchange(s.has_begun, true)) {
    base::no_blocking_calls::look(true);
    if (setup_.clock != nullptr) measured_from_ = setup_.clock->ns();
    s.begin(s.arg);
  }
  if (s.used.low < s.used.high) {
    context::sanitizer_forget(s.used.low / 64 * 64, s.used.high);
    std::memcpy(reinterpret_cast<void*>(s.used.low), reinterpret_cast<const void*>(s.used.low + s.distance),
                s.used.high - s.used.low);
  }
  godwit_ctx_resume_suspended(s.sp, 0);
}

void engine::all_sleep() noexcept {
  base::fatal(
      "sim: all workers wait without a limit, and nothing will wake them: does a thread wait for another by "
      "something else than a join?");
}

void engine::too_long() noexcept {
  base::fatal(
      "sim: the run is not over after %llu ms of virtual time (--godwit-sim-limit-ms): does it wait for what "
      "nobody does, or is it larger than that?",
      static_cast<unsigned long long>(setup_.limit_ns / 1'000'000));
}

// ---- what those whose turn it is ask for ----

std::uint64_t engine::now_ns() noexcept {
  measure();
  return seats_[turn_].now;
}

/// Who does nothing but look looks less and less often: each time for a part of how long it has waited. Some
/// wait at a lock whose holder waits for another host.
void engine::pause() noexcept {
  measure();
  seat& s = seats_[turn_];
  if (s.now != s.paused_until) s.paused_from = s.now;
  const std::uint64_t waited = s.now - s.paused_from;
  pass(std::max(setup_.model->look_ns, waited / part_of_wait));
  seats_[turn_].paused_until = seats_[turn_].now;
}

void engine::nap_until(std::uint64_t deadline_ns) noexcept {
  measure();
  settle();
  seat& s = seats_[turn_];
  s.now = std::max(s.now, deadline_ns);
  count_event();
  if (s.now >= due_.first_time()) end_turn(true);
}

void engine::charge(std::uint64_t ns) noexcept {
  settle();
  if (setup_.clock != nullptr) return;
  tally_.charged_ns += ns;
  seat& s = seats_[turn_];
  const std::uint64_t until = later(ns);
  do {
    s.now = until;
    count_event();
    if (s.now >= sum_to(due_.first_time(), setup_.lead_ns)) {
      if (s.distance != 0 && setup_.on_charge != nullptr) setup_.on_charge();
      s.charging = true;
      end_turn(true);  // may come back early, interrupted
      s.charging = false;
    }
    if (!std::exchange(s.interrupted, false)) return;
    setup_.on_interrupt();
  } while (s.now < until);
}

void engine::take(std::uint64_t ns) noexcept {
  if (setup_.clock == nullptr) seats_[turn_].now = later(ns);
}

void engine::spend(base::step what) noexcept { take(setup_.model->step_ns[static_cast<std::size_t>(what)]); }

void engine::catch_up() noexcept {
  measure();
  if (seats_[turn_].now <= due_.first_time()) return;
  count_event();
  const std::uint64_t before = due_.first_time(), ahead = seats_[turn_].now - before;
  end_turn(true);
  // Somebody asked it for work meanwhile: without the lead it would have noticed earlier.
  if (setup_.lead_ns != 0 && detail::hot().poll.load(std::memory_order_relaxed) != 0) {
    ++tally_.late;
    tally_.late_ns += ahead;
    tally_.late_max_ns = std::max(tally_.late_max_ns, ahead);
  }
}

/// Most accesses follow each other at once, and some take a while. In each run a few places of the code are
/// slow, and others get far while somebody stands there: so some windows between two steps are wide open.
void engine::access() noexcept {
  if (!running_ || setup_.jitter_ns == 0) return;
  const auto sp = reinterpret_cast<std::uintptr_t>(__builtin_frame_address(0));
  if (sp - reinterpret_cast<std::uintptr_t>(stack_) < stack_bytes) return;  // a seat that is about to begin
  // Wherever the program lies this time.
  const std::uintptr_t place = reinterpret_cast<std::uintptr_t>(__builtin_return_address(0)) -
                               reinterpret_cast<std::uintptr_t>(&godwit_ctx_start);
  const bool slow = ((place ^ setup_.seed * 0xBF58476D1CE4E5B9ull) * 0x9E3779B97F4A7C15ull) >> 60 == 0;
  if (std::vector<late_store>& late = seats_[turn_].late_stores; !late.empty() && one_of(4)) {
    late.front().carry_out();
    late.erase(late.begin());
  }
  const std::uint64_t chance = random_.next() >> 32;
  if (chance % (slow ? 2 : 4) != 0) return;
  const std::uint64_t most = slow ? setup_.jitter_ns : setup_.jitter_ns / 64;
  seat& s = seats_[turn_];
  s.now += 1 + random_.below(static_cast<std::uint32_t>(most) + 1);
  if (s.now > due_.first_time()) {
    count_event();
    end_turn(true);
  }
}

void engine::late_store::carry_out() const noexcept {
  if (bytes == sizeof(std::uint64_t))
    static_cast<std::atomic<std::uint64_t>*>(word)->store(value, std::memory_order_release);
  else
    static_cast<std::atomic<std::uint32_t>*>(word)->store(static_cast<std::uint32_t>(value),
                                                          std::memory_order_release);
}

bool engine::put_off(void* word, unsigned bytes, std::uint64_t value) noexcept {
  GODWIT_ASSERT(bytes == sizeof(std::uint64_t) || bytes == sizeof(std::uint32_t), "words have 4 or 8 bytes");
  if (!running_) return false;
  std::vector<late_store>& late = seats_[turn_].late_stores;
  if (late.capacity() == 0) {
    const heap::outside o;
    late.reserve(most_late_stores);
  }
  if (late.size() == most_late_stores) settle();
  late.push_back({word, bytes, value});
  return true;
}

bool engine::own_store(const void* word, std::uint64_t& value) const noexcept {
  if (!running_) return false;
  for (const late_store& s : seats_[turn_].late_stores)
    if (s.word == word) value = s.value;
  return std::ranges::any_of(seats_[turn_].late_stores, [=](const late_store& s) { return s.word == word; });
}

void engine::settle() noexcept {
  if (!running_) return;
  for (const late_store& s : seats_[turn_].late_stores) s.carry_out();
  seats_[turn_].late_stores.clear();
}

engine::waiters& engine::waiters_for(const base::wait_word& word) noexcept {
  if (const auto known = waiters_.find(&word); known != waiters_.end()) return known->second;
  const heap::outside o;
  return waiters_[&word];
}

/// Who waits so that it hears (class waiting) looks for so long before it sleeps.
void engine::wait(const base::wait_word& word, std::uint32_t seen, std::uint64_t limit_ns,
                  std::uint64_t looks_for) noexcept {
  measure();
  settle();
  // What others did before this moment has to be seen.
  if (seats_[turn_].now > due_.first_time()) end_turn(true);
  if (word.load(std::memory_order_seq_cst) != seen) return;
  seat& s = seats_[turn_];
  waiters& all = waiters_for(word);
  s.waits_among = &all;
  s.next = nobody;
  s.before = all.last;
  (all.last == nobody ? all.first : seats_[all.last].next) = turn_;
  all.last = turn_;
  count_event();
  s.since = s.now;
  s.looks_for = looks_for;
  if (setup_.faults.spurious && one_of(4))
    limit_ns = std::min<std::uint64_t>(limit_ns, random_.below(1u << (6 + random_.below(17))));
  if (!hears(turn_)) limit_ns = sum_to(limit_ns, setup_.model->nap_ns);
  s.now = sum_to(s.now, limit_ns);
  if (hears(turn_) && s.rouse_at < s.now) s.now = waking_ns(s, s.rouse_at);
  end_turn(s.now != base::no_limit);
  no_longer_waits(turn_);  // whose turn followed on its own
  s.rouse_at = base::no_limit;
}

/// When does who waits go on if it has a reason to at @p at_ns?
std::uint64_t engine::waking_ns(const seat& s, std::uint64_t at_ns) const noexcept {
  const std::uint64_t at = std::max(at_ns, s.since);
  const bool looks =
      s.how == waiting::looks || (s.how == waiting::looks_first && at - s.since <= s.looks_for);
  return sum_to(at, looks ? setup_.model->look_ns : setup_.model->wake_ns);
}

void engine::rouse(std::uint32_t number, std::uint64_t at_ns) noexcept {
  seat& s = seats_[number];
  if (!hears(number)) return;
  s.rouse_at = std::min(s.rouse_at, at_ns);
  if (s.waits_among == nullptr) return;
  // What came before it waited may be told now only: by another rank of its node.
  const std::uint64_t when = std::max(waking_ns(s, at_ns), due_.last_time());
  if (when >= s.now) return;
  if (due_.holds(number)) due_.remove(number);
  s.now = when;
  due_.push(number, when);
}

void engine::no_longer_waits(std::uint32_t number) noexcept {
  seat& s = seats_[number];
  if (s.waits_among == nullptr) return;
  waiters& all = *s.waits_among;
  (s.before == nobody ? all.first : seats_[s.before].next) = s.next;
  (s.next == nobody ? all.last : seats_[s.next].before) = s.before;
  s.waits_among = nullptr;
}

int engine::wake(const base::wait_word& word, int most) noexcept {
  measure();
  settle();
  const auto all = waiters_.find(&word);
  if (all == waiters_.end()) return 0;
  int woken = 0;
  while (woken < most && all->second.first != nobody) {
    const std::uint32_t number = all->second.first;
    no_longer_waits(number);
    if (due_.holds(number)) due_.remove(number);
    seat& s = seats_[number];
    std::uint64_t when = waking_ns(s, seats_[turn_].now);
    if (setup_.faults.late && one_of(4)) when = s.now != base::no_limit ? s.now : when + 4 * ms;
    s.now = std::min(s.now, when);
    due_.push(number, s.now);
    ++woken;
  }
  return woken;
}

/// A signal: who computes does at once what its handler does, all others at their next spawn.
void engine::interrupt(pid_t who, int) noexcept {
  measure();
  settle();
  const auto number = static_cast<std::uint32_t>(who - 1);
  GODWIT_CHECK(number < seats_.size(), "sim: who is interrupted sits here");
  seat& s = seats_[number];
  if (number == turn_ || s.left) return;
  if (!s.charging) {  // what the handler does where it must not interfere
    s.hot->poll.store(1, std::memory_order_relaxed);
    return;
  }
  s.interrupted = true;
  const std::uint64_t when = seats_[turn_].now + setup_.model->signal_ns;
  if (s.now <= when) return;
  due_.remove(number);
  s.now = when;
  due_.push(number, when);
}

}  // namespace godwit::sim
