// Tasks that wait for others of the same parent: depend clauses.
//
// A parent keeps, for each address that its children named, the last child that writes it and those that
// read it since. A child that reads waits for the writer, one that writes for the readers; `mutexinoutset`
// and `inoutset` are taken as `inout`, which orders more than they ask for. Under one lock per parent.
#include <new>
#include <unordered_map>
#include <vector>

#include "settings.hpp"
#include "task.hpp"
#include "team.hpp"

namespace godwit::openmp {

/// One child, as its siblings know it: it may have ended.
struct dependence_node {
  dependences* in;
  task* of;            ///< null: of a task that waits in its parent's place
  unsigned known_by;   ///< entries of the table, and the task itself
  unsigned waits_for;  ///< siblings that have not ended, and one while it is being entered
  bool ended;
  std::vector<dependence_node*> after;  ///< those that wait for it
  thread* waiter;                       ///< of a node without a task
};

struct dependences {
  struct entry {
    dependence_node* writer = nullptr;
    std::vector<dependence_node*> readers;
  };
  std::uint32_t word = 0;
  std::unordered_map<const void*, entry> entries;
};

namespace {

void let_go(dependence_node* n) noexcept {
  if (n != nullptr && --n->known_by == 0) delete n;
}

void wait_for(dependence_node& n, dependence_node* before) {
  if (before == nullptr || before->ended || before == &n) return;
  before->after.push_back(&n);
  ++n.waits_for;
}

void enter(dependences& d, dependence_node& n, const void* address, bool writes) {
  dependences::entry& e = d.entries[address];
  if (!writes) {
    wait_for(n, e.writer);
    std::erase_if(e.readers, [](dependence_node* r) {
      const bool ended = r->ended;
      if (ended) let_go(r);
      return ended;
    });
    e.readers.push_back(&n);
    ++n.known_by;
    return;
  }
  if (e.readers.empty()) wait_for(n, e.writer);
  for (dependence_node* r : e.readers) {
    wait_for(n, r);
    let_go(r);
  }
  e.readers.clear();
  let_go(e.writer);
  e.writer = &n;
  ++n.known_by;
}

/// What the compiler passes: either {all, out, addresses...}, or {0, all, out, mutexinoutset, in,
/// addresses..., depend objects...}; a depend object is an address and its kind.
template <class F>
void for_each_dependence(void** depend, F f) {
  constexpr std::uintptr_t kind_in = 1;
  const auto value = [&](std::size_t i) { return reinterpret_cast<std::uintptr_t>(depend[i]); };
  const bool old_form = value(0) != 0;
  const std::size_t all = value(old_form ? 0 : 1), writes = old_form ? value(1) : value(2) + value(3);
  const std::size_t plain = old_form ? all : writes + value(4);
  void** const first = depend + (old_form ? 2 : 5);
  for (std::size_t i = 0; i < plain; ++i) f(first[i], i < writes);
  for (std::size_t i = plain; i < all; ++i) {
    void** const object = static_cast<void**>(first[i]);
    f(object[0], reinterpret_cast<std::uintptr_t>(object[1]) != kind_in);
  }
}

dependence_node& link(task& parent, task* k, thread* waiter, void** depend) {
  if (parent.of_children == nullptr) parent.of_children = new dependences;
  dependences& d = *parent.of_children;
  auto* n = new dependence_node{&d, k, 1, 1, false, {}, waiter};
  const guard hold(d.word);
  for_each_dependence(depend, [&](const void* address, bool writes) { enter(d, *n, address, writes); });
  return *n;
}

/// It waits for one less. True: for nothing more. Under the lock.
bool one_less(dependence_node& n) noexcept { return --n.waits_for == 0; }

void end(thread& t, dependence_node& n, bool in_task) noexcept {
  std::vector<task*> ready;
  std::vector<thread*> awake;
  {
    const guard hold(n.in->word);
    n.ended = true;
    for (dependence_node* a : n.after) {
      if (!one_less(*a)) continue;
      if (a->of != nullptr)
        ready.push_back(a->of);
      else
        awake.push_back(a->waiter);
    }
    n.after.clear();
    let_go(&n);
  }
  // Not begun at once, inside of the end of what they waited for: a chain would fill the stack.
  for (task* k : ready)
    if (in_task || !push(t, *k)) hand_over(*k);
  for (thread* w : awake) wake(*w);
}

}  // namespace

bool link_dependences(task& k, void** depend) noexcept {
  dependence_node& n = link(*k.parent.load(std::memory_order_relaxed), &k, nullptr, depend);
  k.node = &n;
  const guard hold(n.in->word);
  return one_less(n);
}

void wait_for_dependences(thread& t, void** depend) noexcept {
  dependence_node& n = link(*t.current, nullptr, &t, depend);
  lock(n.in->word);
  bool ready = one_less(n);
  unlock(n.in->word);
  if (!ready)
    wait_running(t, [&] {
      const guard hold(n.in->word);
      return n.waits_for == 0;
    });
  end(t, n, true);
}

void end_dependences(thread& t, task& k, bool in_task) noexcept {
  dependence_node& n = *k.node;
  k.node = nullptr;
  end(t, n, in_task);
}

void free_dependences(dependences* d) noexcept {
  for (auto& [address, e] : d->entries) {
    let_go(e.writer);
    for (dependence_node* r : e.readers) let_go(r);
  }
  delete d;
}

}  // namespace godwit::openmp
