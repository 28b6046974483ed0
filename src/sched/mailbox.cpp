// See mailbox.hpp.
#include "sched/mailbox.hpp"

#include <cstring>

#include "sched/far_calls.hpp"

namespace godwit::sched {

using transport::ref_worker;

bool mailbox::send(worker_no to, ref done, void (*call)(const void*), std::span<const std::byte> head,
                   std::span<const std::byte> rest) noexcept {
  const base::unexposed inside;
  here_.release_writes();
  const bool near = here_.net.is_near(to);
  GODWIT_ASSERT(index(to) < here_.workers, "a letter goes to a worker of the run");
  auto* m = static_cast<message*>(
      heap_.allocate(object_kind::message, sizeof(message) + head.size() + rest.size()));
  m->done = done;
  m->call = call;
  m->bytes = head.size() + rest.size();
  m->between_hosts = near ? 0 : 1;
  auto* const closure = reinterpret_cast<std::byte*>(m + 1);
  if (!head.empty()) std::memcpy(closure, head.data(), head.size());
  if (!rest.empty()) std::memcpy(closure + head.size(), rest.data(), rest.size());
  count(!near, ~std::uint64_t{0});  // ID2, IN4: a letter on its way counts like a running worker
  std::uint64_t newest = here_.net.remote_load(to, &here_.words->mailbox, std::memory_order_relaxed);
  do m->next = newest;
  while (!here_.net.remote_compare_exchange(to, &here_.words->mailbox, newest, here_.ref_of(m)));
  if (near)
    here_.hot_of(to)->poll.store(1, std::memory_order_relaxed);
  else
    here_.net.far().cast(to, call_no::nudge, 0);
  return near;
}

mailbox::letter mailbox::open(ref m) const noexcept {
  message head;
  here_.net.remote_get(ref_worker(m), static_cast<void*>(&head), here_.home<message>(m), sizeof head);
  GODWIT_ASSERT(head.kind == object_kind::message, "a mailbox holds letters");
  GODWIT_ASSERT((head.between_hosts == 0) == here_.is_near(m), "a letter is counted where its way says");
  letter l{head.next, head.done, head.call, head.between_hosts != 0, nullptr, {}};
  if (here_.is_near(m)) {
    l.near_closure = here_.at<message>(m)->closure();
  } else {
    l.fetched.resize(head.bytes / sizeof(closure_line) + 1);
    here_.net.remote_get(ref_worker(m), l.fetched.data(), here_.home<message>(m)->closure(), head.bytes);
  }
  return l;
}

void mailbox::count(bool between_hosts, std::uint64_t change) noexcept {
  if (between_hosts)
    here_.net.remote_fetch_add(worker_no{0}, &here_.job->idle_nodes, change);
  else
    here_.node->idle.fetch_add(change, std::memory_order_seq_cst);
}

}  // namespace godwit::sched
