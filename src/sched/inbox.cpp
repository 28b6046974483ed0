// See inbox.hpp.
#include "sched/inbox.hpp"

#include "base/unexposed.hpp"
#include "context/context.hpp"

#include <godwit/detail/policy_facts.hpp>

namespace godwit::sched {

namespace {

using transport::far::op;
using transport::far::state;

/// Room for an answer that does not fit into its entry.
std::byte* room_in(void* own, std::size_t bytes) noexcept {
  return reinterpret_cast<std::byte*>(
      static_cast<heap*>(own)->allocate(object_kind::bytes, sizeof(object) + bytes) + 1);
}

}  // namespace

void far_inbox::init() {
  serves_ = here_.shape.serves_itself || !here_.one_host();
  if (!here_.shape.serves_itself) return;
  site_ = {here_.memory,
           here_.words,
           here_.node,
           &random_,
           here_.holder(),
           here_.hooks.heap_in_use,
           detail::facts_of(here_.opts).spawns_lazily};
  enter_calls(calls_, site_);
}

/// Substrate sim: somebody may ask for what lies on the stacks of this worker, whose turn it is: others find
/// it in its segment, where it is as it was when the last turn ended.
void far_inbox::keep_region() const noexcept {
  const auto sp = reinterpret_cast<std::uintptr_t>(__builtin_frame_address(0));
  const bool on_thread = sp - here_.region_low < here_.region_high - here_.region_low;
  const std::uintptr_t low = on_thread ? sp : here_.used_from;
  context::sanitizer_forget(low / 64 * 64, here_.region_high);
  here_.memory->keep_stacks(low, here_.region_high);
}

bool far_inbox::serve_next() noexcept {
  if (here_.far == nullptr) return false;  // not set up yet
  transport::far::entry& e = here_.far->inbox_entry(next_);
  if (e.now.load(std::memory_order_acquire) != state::posted) return false;  // FA1
  const base::unexposed inside;
  const std::uint64_t before = base::fast_ns();
  GODWIT_ASSERT(e.head.target == here_.me, "an inbox holds requests for its worker");
  ++next_;
  if (here_.shape.takes_turns) keep_region();
  if (e.head.what == op::call || e.head.what == op::cast || e.head.what == op::deliver) {
    std::byte* big = calls_.carry_out(e, {room_in, &heap_});
    // The companion sends it from there, then marks the object before it as freed.
    if (big != nullptr) e.head.address = reinterpret_cast<std::uint64_t>(big);
    e.head.more[0] = big != nullptr ? 1 : 0;
  } else {
    transport::far::execute_on(*here_.memory, e.head, e.data);
  }
  e.now.store(state::done, std::memory_order_release);  // FA2
  if (!base::planted("far.inbox_is_silent"))
    transport::far::ring_bell(here_.all_words_of(here_.shape.bell_of)->far);
  const std::uint64_t now = base::fast_ns();
  ++here_.words->stats.messages;
  here_.words->stats.message_ns += now - before;
  if (account_.traced()) account_.note(trace::kind::message, now, 0, 0, now - before);
  return true;
}

}  // namespace godwit::sched
