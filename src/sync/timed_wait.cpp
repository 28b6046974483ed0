// Waiting in a list until a time: see wait_list.hpp, timer.hpp and docs/protocols/park.md.
#include <godwit/detail/wait_list.hpp>

#include "seams/timer.hpp"

namespace godwit::detail {

timed_node::timed_node(wait_list& l, std::uint64_t deadline_ns) noexcept : list(l) {
  by = wakes::outside;
  clock.deadline_ns = deadline_ns;
  clock.arg = this;
  clock.expired = [](timer* t) noexcept {
    auto& self = *static_cast<timed_node*>(t->arg);
    wait_list& waits_in = self.list;
    waiter* who = nullptr;
    waits_in.lock();
    if (self.state == wait_state::listed) {  // WL5: else somebody else woke it, or it waits no more
      waits_in.remove(self);
      who = self.who;
    }
    if (self.state != wait_state::notified) self.state = wait_state::expired;
    waits_in.unlock();
    if (who != nullptr) unpark(who, wakes::outside);
  };
  need_substrate_threads("a wait with a time limit");
  start_timer(&clock);  // WL5: before it can be listed
}

timed_node::~timed_node() { stop_timer(&clock); }  // WL5

}  // namespace godwit::detail
