// See wait_list.hpp and docs/protocols/park.md. WL1 ... WL6 are explained there; models/wait_list.pml.
#include <godwit/detail/wait_list.hpp>

#include "base/check.hpp"
#include "base/world.hpp"
#include "seams/timer.hpp"

namespace godwit::detail {

void wait_list::lock_slow() noexcept {
  for (base::spin_wait w;;) {
    while ((word.load(std::memory_order_relaxed) & lock_bit) != 0) w.turn();
    if ((word.fetch_or(lock_bit, std::memory_order_acquire) & lock_bit) == 0) return;
  }
}

namespace {
/// For assertions.
[[maybe_unused]] bool is_locked(const wait_list& l) noexcept {
  return (l.word.load(std::memory_order_relaxed) & wait_list::lock_bit) != 0;
}
}  // namespace

void wait_list::push(wait_node& n, bool in_front) noexcept {
  GODWIT_ASSERT(is_locked(*this), "who enlists holds the list's lock");
  GODWIT_ASSERT(n.state != wait_state::listed, "a node is in one list, once");
  wait_node* first = first_.load(std::memory_order_relaxed);
  GODWIT_ASSERT(first == nullptr ? last_ == nullptr : first->prev == nullptr && last_->next == nullptr,
                "a list has two ends");
  n.state = wait_state::listed;
  n.who = nullptr;
  n.next = in_front ? first : nullptr;
  n.prev = in_front ? nullptr : last_;
  (n.next != nullptr ? n.next->prev : last_) = &n;
  if (n.prev != nullptr)
    n.prev->next = &n;
  else
    first_.store(&n, std::memory_order_relaxed);
}

void wait_list::remove(wait_node& n) noexcept {
  GODWIT_ASSERT(is_locked(*this), "who takes a node out holds the list's lock");
  GODWIT_ASSERT(n.state == wait_state::listed, "only a node that is listed is taken out");
  GODWIT_ASSERT(n.prev != nullptr ? n.prev->next == &n : first_.load(std::memory_order_relaxed) == &n,
                "a list is linked both ways");
  GODWIT_ASSERT(n.next != nullptr ? n.next->prev == &n : last_ == &n, "a list is linked both ways");
  if (n.prev != nullptr)
    n.prev->next = n.next;
  else
    first_.store(n.next, std::memory_order_relaxed);
  (n.next != nullptr ? n.next->prev : last_) = n.prev;
}

bool wait_list::pop(wake_chain& woken) noexcept {
  wait_node* n = first_.load(std::memory_order_relaxed);
  if (n == nullptr) return false;
  remove(*n);
  n->state = wait_state::notified;       // WL4: before who can be woken
  if (n->who != nullptr) woken.add(*n);  // WL2: else it will see the state before it suspends
  return true;
}

void wake_chain::wake() noexcept {
  if (first_ == nullptr) return;
  need_substrate_threads("waking a thread that waits");
  for (wait_node* n = first_; n != nullptr;) {
    GODWIT_ASSERT(n->state == wait_state::notified && n->who != nullptr, "who is woken was notified");
    wait_node* next = n->next;  // WL3: its frame is gone as soon as it may run
    unpark(n->who, n->by);
    n = next;
  }
  first_ = last_ = nullptr;
}

namespace {
struct entering {
  wait_list& list;
  wait_node& node;
};

/// The thread is saved. The lock is held since it enlisted itself.
bool publish_held(void* arg, waiter* self) noexcept {
  const auto& e = *static_cast<const entering*>(arg);
  wait_list& list = e.list;
  GODWIT_ASSERT(is_locked(list), "WL1: the lock is held until the thread is saved");
  GODWIT_ASSERT(e.node.state == wait_state::listed && e.node.who == nullptr, "nobody has seen the node");
  e.node.who = self;
  list.unlock();  // WL1: from here on it may run
  return true;
}

/// The lock is not held: what has happened since it enlisted itself?
bool publish_listed(void* arg, waiter* self) noexcept {
  const auto& e = *static_cast<const entering*>(arg);
  wait_list& list = e.list;
  list.lock();
  const bool waits = e.node.state == wait_state::listed;  // WL2 (PK2)
  GODWIT_ASSERT(e.node.state != wait_state::idle && e.node.who == nullptr, "WL2: the node was listed");
  if (waits) e.node.who = self;
  list.unlock();
  return waits;
}
}  // namespace

bool wait_list::enter(wait_node& n, const char* what, const place& where, bool held) noexcept {
  entering e{*this, n};
  park(held ? publish_held : publish_listed, &e, n.by, what, where);
  GODWIT_ASSERT(n.state == wait_state::notified || n.state == wait_state::expired,
                "WL4: who goes on is in no list");
  return n.state == wait_state::notified;  // WL4: without the lock. WL3: then the node is gone
}

bool wait_list::wait(wait_node& n, const char* what, const place& where, bool in_front) noexcept {
  if (n.state == wait_state::expired) {  // before it was listed
    unlock();
    return false;
  }
  push(n, in_front);
  return enter(n, what, where, true);
}

bool wait_list::wait_listed(wait_node& n, const char* what, const place& where) noexcept {
  return enter(n, what, where, false);
}

timed_node::timed_node(wait_list& l, std::uint64_t deadline_ns, bool cancellable) noexcept : list(l) {
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
  cancellable ? start_cancellable_timer(&clock) : start_timer(&clock);  // WL5: before it can be listed
}

timed_node::~timed_node() { stop_timer(&clock); }  // WL5

bool wait_list::notify_one() noexcept {
  if (seems_empty()) return false;
  wake_chain woken;
  lock();
  const bool any = pop(woken);
  unlock();
  woken.wake();
  return any;
}

void wait_list::notify_all() noexcept {
  if (seems_empty()) return;
  wake_chain woken;
  lock();
  pop_all(woken);
  unlock();
  woken.wake();
}

}  // namespace godwit::detail
