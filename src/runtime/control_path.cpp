// The functions of control_path.hpp: joins control objects (gas/controls.hpp, which know no scheduler) with
// join records (sched/records.hpp, which know no global memory). Who waits makes a record and leaves its
// name at the object; whoever lets it go on completes the record. docs/protocols/control.md (CO).
#include "gas/controls.hpp"

#include <godwit/detail/control_path.hpp>
#include <godwit/detail/policy_facts.hpp>

#include <cstring>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "base/check.hpp"
#include "runtime/global.hpp"

namespace godwit::detail {

namespace {

using gas::control_answer;
using gas::control_answers;
using gas::control_asks;
using gas::control_request;
using gas::waiter;
using gas::whole_words;
using transport::far::inline_bytes;

gas::memory& memory_of(const char* what, const place& where) {
  auto* m = static_cast<gas::memory*>(hot().memory);
  if (m == nullptr) [[unlikely]]
    base::fatal("a %s was used outside godwit::run at %s:%u: it exists only inside one", what, where.file,
                where.line);
  if (hot().map_locked != 0) [[unlikely]]
    base::fatal(
        "worker %u: a %s was used at %s:%u by a function that is carried out under the lock of another "
        "object "
        "(control, global_map): it would wait for itself. Do it before or afterwards",
        hot().worker, what, where.file, where.line);
  return *m;
}

/// All at one home, and never movable: the blocks are no whole pages.
spread at_home(std::uint32_t home) noexcept {
  spread how;
  how.home = home;
  how.block_bytes = 64;
  return how;
}

/// One exchange with an object. The answer's text, and what it is read with.
class talk {
 public:
  talk(const control_call& c, const place& where)
      : c_(c), where_(where), memory_(memory_of(c.what, where)), home_(memory_.directory.home(c.at)) {
    if (c.may_wait) record_ = sched::this_worker().records().make();
    request_.at = c.at;
    request_.step = c.step;
    request_.what = c.may_wait ? control_asks::step : control_asks::step_or_no;
    request_.closure_bytes = static_cast<std::uint32_t>(c.closure_bytes);
    request_.result_bytes = static_cast<std::uint32_t>(c.result_bytes);
    request_.record = record_;
  }
  talk(const talk&) = delete;
  talk& operator=(const talk&) = delete;

  /// Until the object has said more than that its ring is full.
  const control_answer& ask() {
    // Who reads what this step leaves behind is to see what came before it.
    memory_.access.release();
    for (send(); answer_.what == control_answers::full; send()) make_room();
    if (answer_.what == control_answers::gone) no_object();
    return answer_;
  }
  const control_answer& ask_to_free() {
    request_.what = control_asks::free;
    request_.result_bytes = 0;
    return ask();
  }
  /// Afterwards, if the step was done: its result, and who can go on now goes on. Does not migrate.
  void take_result() noexcept {
    std::memcpy(c_.result, text_ + sizeof(control_answer), c_.result_bytes);
    if (c_.may_know) memory_.access.acquire();
    const std::size_t at = sizeof(control_answer) + whole_words(request_.result_bytes);
    if (answer_.more == 0) return tell(text_ + at, answer_.count);
    // First all, then the first one: as long as we have one of them in hand nobody frees the object.
    std::vector<std::byte> all(text_ + at, text_ + answer_.bytes);
    std::uint32_t count = answer_.count;
    request_.what = control_asks::more;
    request_.closure_bytes = 0;
    while (answer_.more != 0) {
      send();
      all.insert(all.end(), text_ + sizeof(control_answer), text_ + answer_.bytes);
      count += answer_.count;
    }
    tell(all.data(), count);
  }
  void drop_record() noexcept {
    if (record_ == 0) return;
    const base::unexposed inside;
    sched::this_worker().records().free(record_);
  }
  ref record() const noexcept { return record_; }

 private:
  void send() {
    const base::unexposed inside;
    if (memory_.net.is_near(home_)) {
      carry_out(memory_.net.at(0), request_, static_cast<std::byte*>(c_.closure), text_, true);
      read_head();
    } else {
      std::byte request[sizeof request_ + control_most_bytes];
      std::memcpy(request, static_cast<const void*>(&request_), sizeof request_);
      if (request_.closure_bytes != 0)
        std::memcpy(request + sizeof request_, c_.closure, request_.closure_bytes);
      const std::size_t bytes = sizeof request_ + request_.closure_bytes;
      do {
        const auto& e = memory_.net.port().call(transport::worker_no{home_}, gas::control_call_number, bytes,
                                                0, {request, bytes});
        std::memcpy(text_, e.data, e.head.info);
        read_head();
      } while (answer_.what == control_answers::later);  // CO3
    }
    if (answer_.room != 0) old_room_ = answer_.room, old_capacity_ = answer_.capacity;
    request_.room = 0;
    free_room();
  }
  void read_head() noexcept { std::memcpy(static_cast<void*>(&answer_), text_, sizeof answer_); }
  /// More of those that wait than the object has room for: give it more.
  void make_room() {
    request_.capacity = 4 * answer_.capacity;
    request_.room = memory_.allocator.allocate(request_.capacity * sizeof(waiter), sizeof(waiter),
                                               at_home(home_), where_);
  }
  /// Another thread was faster, or it was the smaller one.
  void free_room() {
    if (old_room_ == 0) return;
    memory_.free(std::exchange(old_room_, 0), old_capacity_ * sizeof(waiter), where_);
  }
  /// CO2: they are ours. The records are completed one by one.
  void tell(const std::byte* at, std::uint32_t count) noexcept {
    sched::worker& w = sched::this_worker();
    for (std::uint32_t i = 0; i < count; ++i) {
      ref record;
      std::uint64_t bytes;
      std::memcpy(&record, at, sizeof record);
      std::memcpy(&bytes, at + sizeof record, sizeof bytes);
      at += 2 * sizeof(std::uint64_t);
      w.records().publish(record, outcome::value, at, bytes);
      w.finish(record);
      at += whole_words(bytes);
    }
  }
  [[noreturn]] void no_object() const noexcept {
    base::fatal(
        "worker %u: a %s was used at %s:%u, but there is none at global:0x%llx: it was destroyed before, or "
        "the "
        "handle was never made",
        hot().worker, c_.what, where_.file, where_.line, static_cast<unsigned long long>(c_.at));
  }

  const control_call& c_;
  const place where_;
  gas::memory& memory_;
  const std::uint32_t home_;
  ref record_ = 0;
  global_address old_room_ = 0;
  std::uint32_t old_capacity_ = 0;
  control_request request_{};
  control_answer answer_{};
  alignas(16) std::byte text_[inline_bytes];
};

/// True: done. False: the record will be completed, or it must not wait. Its frame, with the text of a
/// message, does not travel with who waits.
[[gnu::noinline]] bool ask_once(const control_call& c, const place& where, ref& record) {
  talk t(c, where);
  control_answers said;
  try {
    said = t.ask().what;
  } catch (...) {  // no memory for those who wait
    t.drop_record();
    throw;
  }
  if (said == control_answers::done) t.take_result();
  if (said == control_answers::waits)
    record = t.record();
  else
    t.drop_record();
  return said == control_answers::done;
}

}  // namespace

global_address control_make(const void* state, std::size_t bytes, bool alike, std::uint32_t home,
                            place where) {
  gas::memory& m = memory_of("control object", where);
  if (home != ~0u && home >= m.where.homes)
    throw std::invalid_argument("godwit: there is no worker " + std::to_string(home) +
                                " to be the home of a control object: the run has " +
                                std::to_string(m.where.homes));
  const std::uint64_t all = sizeof(gas::control_words) + (bytes + 15) / 16 * 16;
  const bool mine = home == ~0u || home == m.net.me();
  const global_address at =
      mine ? m.allocator.allocate_local(all, alignof(gas::control_words), where)
           : m.allocator.allocate(all, alignof(gas::control_words), at_home(home), where);
  alignas(gas::control_words) std::byte text[sizeof(gas::control_words) + control_most_bytes] = {};
  auto& o = *reinterpret_cast<gas::control_words*>(text);
  o.magic = gas::control_words::live;
  o.alike = alike ? 1 : 0;
  o.capacity = gas::control_words::own_room;
  o.room = at + offsetof(gas::control_words, own);
  o.made = where;
  std::memcpy(o.state(), state, bytes);
  m.net.put(mine ? m.net.me() : home, at, text, all);
  return at;
}

void control_free(const char* what, global_address at, std::size_t bytes, place where) {
  if (at == 0 || hot().memory == nullptr) return;  // the run is over, and its memory with it
  const control_call call{.what = what, .at = at};
  talk t(call, where);
  if (const control_answer& a = t.ask_to_free(); a.what == control_answers::in_use)
    base::fatal(
        "worker %u: a %s, made at %s:%u, was destroyed at %s:%u while a thread waits for it: let all go on "
        "first",
        hot().worker, what, a.made.file, a.made.line, where.file, where.line);
  static_cast<gas::memory*>(hot().memory)
      ->free(at, sizeof(gas::control_words) + (bytes + 15) / 16 * 16, where);
}

bool control_run(const control_call& c, place where) {
  if (c.may_wait) {
    if (hot().checkouts != 0) checkout_held(c.what, where.file, where.line);
    if (hot().memory != nullptr && !facts_of(sched::this_worker().here().opts).has_futures())
      base::fatal(
          "worker %u: this run's policy is %s, where a thread may wait for its own children only, but the "
          "program "
          "waits for a %s at %s:%u: take another policy with --godwit-policy (GODWIT_POLICY)",
          hot().worker, name_of(sched::this_worker().here().opts.policy), c.what, where.file, where.line);
  }
  ref record = 0;
  if (ask_once(c, where, record)) return true;
  if (record == 0) return false;
  const payload p = sched::this_worker().wait(record, where, c.what);  // from here on possibly another worker
  std::memcpy(c.result, p.data, c.result_bytes);
  sched::this_worker().records().release(record);
  return true;
}

void control_release() noexcept { static_cast<gas::memory*>(hot().memory)->access.release(); }

std::uint32_t all_workers() noexcept { return static_cast<gas::memory*>(hot().memory)->where.homes; }

}  // namespace godwit::detail
