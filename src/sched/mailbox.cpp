// See mailbox.hpp.
#include "sched/mailbox.hpp"

#include <cstring>

namespace godwit::sched {

using transport::ref_worker;
using transport::far::inline_bytes;

namespace {

/// What travels to another host; the closure follows, unless it is too large.
struct far_letter {
  void (*call)(const void*);
  ref done;
  ref elsewhere;
  std::uint64_t bytes;
};
static_assert(inline_bytes - sizeof(far_letter) == mailbox::most_in_message);

/// Then the caller asks the owner to look, by poll: who sees that, and clears it, sees the letter as well.
/// (Some CPUs let a store pass a compare-exchange before it.)
void link(word& box, message* m, ref r) noexcept {
  m->next = box.load(std::memory_order_relaxed);
  if (base::planted("mail.is_stored")) return box.store(r, std::memory_order_seq_cst);
  while (!box.compare_exchange_weak(m->next, r, std::memory_order_seq_cst, std::memory_order_relaxed)) {
  }
  base::fence();
}

void join_pieces(std::byte* to, std::span<const std::byte> head, std::span<const std::byte> rest) noexcept {
  if (!head.empty()) std::memcpy(to, head.data(), head.size());
  if (!rest.empty()) std::memcpy(to + head.size(), rest.data(), rest.size());
}

}  // namespace

bool mailbox::send(worker_no to, ref done, void (*call)(const void*), std::span<const std::byte> head,
                   std::span<const std::byte> rest) noexcept {
  const base::unexposed inside;
  here_.release_writes();
  GODWIT_ASSERT(index(to) < here_.workers, "a letter goes to a worker of the run");
  if (!here_.net.is_near(to)) {
    send_far(to, done, call, head, rest);
    return false;
  }
  const std::size_t bytes = head.size() + rest.size();
  auto* m = static_cast<message*>(heap_.allocate(object_kind::message, sizeof(message) + bytes));
  m->done = done;
  m->call = call;
  m->bytes = bytes;
  m->elsewhere = 0;
  base::happens_after(m);  // of whoever was there before
  join_pieces(reinterpret_cast<std::byte*>(m + 1), head, rest);
  if (!base::planted("mail.is_not_counted"))
    here_.node->idle.fetch_sub(1, std::memory_order_seq_cst);  // ID2: counts like a running worker
  push(to, m);
  here_.hot_of(to)->poll.store(1, std::memory_order_relaxed);
  return true;
}

ref mailbox::write_for_later(void (*call)(const void*)) noexcept {
  const base::unexposed inside;
  auto* m = static_cast<message*>(heap_.allocate(object_kind::message, sizeof(message)));
  m->done = 0;
  m->call = call;
  m->bytes = 0;
  m->elsewhere = 0;
  here_.node->idle.fetch_sub(1, std::memory_order_seq_cst);  // ID2: counts like a running worker
  return here_.ref_of(m);
}

void mailbox::post(const transport::shm::segment& memory, public_words* words, node_words& node, worker_no to,
                   ref letter) noexcept {
  link(memory.at(to, words)->mailbox, memory.at<message>(letter), letter);
  ask_for_work(memory, to);
  base::fence();
  if (node.sleepers.load(std::memory_order_relaxed) != 0) wake_all_of(node);
}

/// @p m lies in the own heap.
void mailbox::push(worker_no to, message* m) noexcept {
  base::happens_before(m);
  link(here_.words_of(to)->mailbox, m, here_.ref_of(m));
}

void mailbox::send_far(worker_no to, ref done, void (*call)(const void*), std::span<const std::byte> head,
                       std::span<const std::byte> rest) noexcept {
  std::byte text[inline_bytes];
  far_letter l{call, done, 0, head.size() + rest.size()};
  std::size_t size = sizeof l;
  if (size + l.bytes <= sizeof text) {
    join_pieces(text + size, head, rest);
    size += l.bytes;
  } else {
    object* kept = heap_.allocate(object_kind::bytes, sizeof(object) + l.bytes);
    join_pieces(reinterpret_cast<std::byte*>(kept + 1), head, rest);
    l.elsewhere = here_.ref_of(kept);
  }
  std::memcpy(text, static_cast<const void*>(&l), sizeof l);
  if (!base::planted("mail.is_not_counted_between_hosts"))
    here_.node->letters.fetch_add(1, std::memory_order_seq_cst);  // IN4
  here_.net.far().deliver(to, call_no::letter, {text, size});
}

/// At the worker that it is for, whatever that is doing. It may count as idle: then it is made to look.
std::byte* mailbox::receive(void* place, transport::far::entry& e,
                            const transport::far::answer_room&) noexcept {
  auto& own = *static_cast<mailbox*>(place);
  far_letter l;
  std::memcpy(static_cast<void*>(&l), e.data, sizeof l);
  const std::size_t here = l.elsewhere != 0 ? 0 : l.bytes;
  auto* m = static_cast<message*>(own.heap_.allocate(object_kind::message, sizeof(message) + here));
  m->done = l.done;
  m->call = l.call;
  m->bytes = l.bytes;
  m->elsewhere = l.elsewhere;
  if (here != 0) std::memcpy(static_cast<void*>(m + 1), e.data + sizeof l, here);
  node_words& node = *own.here_.node;
  const auto is_here = [&] { node.letters.fetch_sub(1, std::memory_order_seq_cst); };
  const bool here_first = base::planted("nodes.letter_is_here_before_it_counts");
  if (here_first) is_here();
  if (!base::planted("nodes.delivery_is_not_counted"))
    node.idle.fetch_sub(1, std::memory_order_seq_cst);  // IN4: a letter of this host,
  if (!here_first) is_here();                           // then none between hosts,
  own.push(own.here_.me, m);                            // then let it be seen
  own.here_.hot_of(own.here_.me)->poll.store(1, std::memory_order_relaxed);
  return nullptr;
}

mailbox::letter mailbox::open(ref r) const noexcept {
  const message& m = *here_.at<message>(r);
  GODWIT_ASSERT(m.kind == object_kind::message, "a mailbox holds letters");
  letter l{m.next, m.done, m.elsewhere, m.call, m.closure(), {}};
  if (m.elsewhere != 0) {
    l.fetched.resize(m.bytes / sizeof(closure_line) + 1);
    here_.net.remote_get(ref_worker(m.elsewhere), l.fetched.data(),
                         here_.home<std::byte>(m.elsewhere) + sizeof(object), m.bytes);
    l.closure = l.fetched.data();
  }
  return l;
}

}  // namespace godwit::sched
