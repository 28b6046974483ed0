// See controls.hpp. docs/protocols/control.md:
//   CO1  the state and the list of who waits, under the lock    the next who has the lock
//   CO2  who is taken off the list belongs to who took it       completed after the lock is open, once
//   CO3  a server tries the lock for a while only               its holder, which may be gone
#include "gas/controls.hpp"

#include "base/lock.hpp"
#include "base/thread_sanitizer.hpp"

#include <algorithm>
#include <cstring>

namespace godwit::gas {

using detail::control_says;
using transport::far::inline_bytes;

namespace {

/// As a rule it is held for a few instructions. But the program's function may take long.
constexpr int tries_of_server = 1000;

/// CO3
bool take(std::atomic<std::uint32_t>& lock, bool waits) noexcept {
  const std::uint32_t me = base::holder();
  if (waits) {
    base::lock(lock, me);
    return true;
  }
  base::spin_wait turns;
  for (int i = 0; i < tries_of_server; ++i, turns.turn())
    if (base::try_lock(lock, me)) return true;
  return false;
}

/// A function of the program runs under a lock: spawns, joins and maps in it are found out.
class under_lock {
 public:
  under_lock(control_words& o, bool waits) noexcept
      : o_(o), worker_(detail::hot().workers != 0), is_held_(take(o.lock, waits)) {
    if (!is_held_) return;
    base::happens_after(&o_);
    if (!worker_) return;
    locked_before_ = detail::hot().map_locked;
    detail::hot().map_locked = 1;
    ++detail::hot().checkouts;
  }
  ~under_lock() {
    if (!is_held_) return;
    if (worker_) {
      --detail::hot().checkouts;
      detail::hot().map_locked = locked_before_;
    }
    base::happens_before(&o_);
    base::unlock(o_.lock, base::holder());  // CO1: the last access
  }
  under_lock(const under_lock&) = delete;
  under_lock& operator=(const under_lock&) = delete;
  bool is_held() const noexcept { return is_held_; }

 private:
  control_words& o_;
  const bool worker_;
  const bool is_held_;
  std::uint32_t locked_before_ = 0;
};

/// Writes the answer, part by part.
class answer_text {
 public:
  explicit answer_text(std::byte* out) noexcept : out_(out) {}
  control_answer head{};
  bool has_room(std::size_t bytes) const noexcept { return used_ + whole_words(bytes) <= inline_bytes; }
  std::byte* take(std::size_t bytes) noexcept {
    GODWIT_ASSERT(has_room(bytes), "an answer fits into one message");
    std::byte* p = out_ + used_;
    used_ += whole_words(bytes);
    return p;
  }
  void undo(std::size_t bytes) noexcept { used_ -= whole_words(bytes); }
  std::size_t end() noexcept {
    head.bytes = static_cast<std::uint32_t>(used_);
    std::memcpy(out_, static_cast<const void*>(&head), sizeof head);
    return used_;
  }

 private:
  std::byte* out_;
  std::size_t used_ = sizeof(control_answer);
};

class object {
 public:
  object(std::byte* window, control_words& o) noexcept
      : o_(o), room_(reinterpret_cast<waiter*>(window + o.room)) {}

  waiter& at(std::uint32_t i) const noexcept { return room_[(o_.first + i) % o_.capacity]; }

  /// Into a larger ring; gives back the old one, if it was memory of its own.
  void grow(std::byte* window, const control_request& r, control_answer& answer,
            global_address own) noexcept {
    auto* larger = reinterpret_cast<waiter*>(window + r.room);
    for (std::uint32_t i = 0; i < o_.count; ++i) larger[i] = at(i);
    if (o_.room != own) {
      answer.room = o_.room;
      answer.capacity = o_.capacity;
    }
    o_.room = r.room;
    o_.capacity = r.capacity;
    o_.first = 0;
    room_ = larger;
  }
  void push(const control_request& r, const std::byte* closure) noexcept {
    waiter& w = at(o_.count++);
    w.record = r.record;
    w.step = r.step;
    w.result_bytes = r.result_bytes;
    std::memcpy(w.closure, closure, std::min<std::size_t>(r.closure_bytes, sizeof w.closure));
  }
  /// Take off the list who can go on, into @p out, as long as there is room.
  void let_go(answer_text& out) noexcept {
    out.head.more = 0;
    if (o_.alike != 0) {  // who came first
      while (o_.count != 0 && tell(at(0), out)) {
        o_.first = (o_.first + 1) % o_.capacity;
        --o_.count;
      }
      return;
    }
    // Who goes on may have changed the state for those before it.
    for (bool changed = true; changed && out.head.more == 0;) {
      changed = false;
      std::uint32_t kept = 0;
      for (std::uint32_t i = 0; i < o_.count; ++i) {
        if (out.head.more == 0 && tell(at(i), out)) {
          changed = true;
        } else {
          if (kept != i) at(kept) = at(i);
          ++kept;
        }
      }
      o_.count = kept;
    }
  }

 private:
  /// False: it cannot go on yet, or the message is full.
  bool tell(waiter& w, answer_text& out) noexcept {
    constexpr std::size_t head_bytes = 2 * sizeof(std::uint64_t);
    const std::size_t bytes = head_bytes + w.result_bytes;
    if (!out.has_room(bytes)) {
      out.head.more = 1;
      return false;
    }
    std::byte* p = out.take(bytes);
    if (w.step(o_.state(), w.closure, p + head_bytes) != control_says::done) {
      out.undo(bytes);
      return false;
    }
    std::memcpy(p, &w.record, sizeof w.record);  // CO2
    std::memcpy(p + sizeof w.record, &w.result_bytes, sizeof w.result_bytes);
    ++out.head.count;
    return true;
  }

  control_words& o_;
  waiter* room_;
};

std::byte* control(void* place, transport::far::entry& e, const transport::far::answer_room&) noexcept {
  alignas(16) std::byte text[sizeof(control_request) + detail::control_most_bytes];
  GODWIT_ASSERT(e.head.b >= sizeof(control_request) && e.head.b <= sizeof text,
                "a control object's request came along");
  std::memcpy(text, e.data, e.head.b);
  control_request request;
  std::memcpy(static_cast<void*>(&request), text, sizeof request);
  e.head.info =
      carry_out(static_cast<place_site*>(place)->window, request, text + sizeof request, e.data, false);
  return nullptr;
}

}  // namespace

std::size_t carry_out(std::byte* window, const control_request& r, std::byte* closure, std::byte* out,
                      bool waits) noexcept {
  auto& o = *reinterpret_cast<control_words*>(window + r.at);
  answer_text answer(out);
  control_answer& a = answer.head;
  if (r.room != 0) {  // given back if it is not taken
    a.room = r.room;
    a.capacity = r.capacity;
  }
  const under_lock lock(o, waits);
  if (!lock.is_held()) {
    a.what = control_answers::later;
    return answer.end();
  }
  if (o.magic != control_words::live) {
    a.what = control_answers::gone;
    return answer.end();
  }
  object here(window, o);
  const global_address own = r.at + offsetof(control_words, own);
  if (r.room != 0 && r.capacity > o.capacity) {
    a.room = 0;
    here.grow(window, r, a, own);
  }
  switch (r.what) {
    case control_asks::more:
      here.let_go(answer);
      break;
    case control_asks::free:
      a.made = o.made;
      a.what = o.count != 0 ? control_answers::in_use : control_answers::done;
      if (o.count != 0) break;
      o.magic = control_words::dead;
      if (o.room != own) {
        a.room = o.room;
        a.capacity = o.capacity;
      }
      break;
    case control_asks::step:
    case control_asks::step_or_no:
      if (r.what == control_asks::step && o.count == o.capacity) {
        a.what = control_answers::full;
        if (a.room == 0) a.capacity = o.capacity;
        break;
      }
      if (r.step(o.state(), closure, answer.take(r.result_bytes)) == control_says::done) {
        here.let_go(answer);
      } else if (r.what == control_asks::step_or_no) {
        a.what = control_answers::no;
      } else {
        a.what = control_answers::waits;
        here.push(r, closure);
      }
      break;
  }
  return answer.end();
}

void enter_control_calls(transport::far::call_table& table, place_site& site) {
  table.enter(control_call_number, control, &site);
}

}  // namespace godwit::gas
