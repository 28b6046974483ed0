// See scopes.hpp.
#include "sched/scopes.hpp"

#include <cstring>

#include "base/clock.hpp"
#include "sched/far_calls.hpp"

namespace godwit::sched {

using transport::ref_worker;

namespace {

constexpr std::uint64_t ask_again = ~std::uint64_t{0};  // of hot_words::cancel_answer
/// Between two questions to another host about a scope that ends at some time.
constexpr std::uint64_t far_time_ns = 200'000;

bool set_request(word& request, std::uint64_t identity) noexcept {
  return request.compare_exchange_strong(identity, identity | 1, std::memory_order_seq_cst);  // CA1
}
void tell_here(const site& here) noexcept {
  tell_host(*here.memory, *here.node);
  if (here.hooks.events != nullptr) here.hooks.events->hasten();  // CA5
  if (here.shape.lazy_spawns) interrupt_host(*here.memory, here.words);
}
std::uint64_t sooner(std::uint64_t a, std::uint64_t b) noexcept {
  return a == 0 || (b != 0 && b < a) ? b : a;
}

}  // namespace

cancel_answer ask_scopes(const transport::shm::segment& memory, ref at) noexcept {
  cancel_answer found;
  for (; at != 0; at = memory.at<scope_node>(at)->parent) {
    if (!memory.reaches(ref_worker(at))) {
      found.ask_on = at;
      return found;
    }
    auto& n = *memory.at<scope_node>(at);
    GODWIT_ASSERT(n.kind <= scope_kind::stand_in, "a scope's node is asked");
    if ((n.request.load(std::memory_order_acquire) & 1) != 0) {  // CA1
      found.cancelled = true;
      return found;
    }
    if (n.kind == scope_kind::shield) return found;
    if (n.deadline_ns != 0 && base::fast_ns() >= n.deadline_ns) {
      set_request(n.request, n.request.load(std::memory_order_relaxed));
      found.cancelled = true;
      return found;
    }
    found.until_ns = sooner(found.until_ns, n.deadline_ns);
  }
  return found;
}

ref taken_along(const transport::shm::segment& memory, ref scope) noexcept {
  while (scope != 0 && memory.reaches(ref_worker(scope))) {
    auto& n = *memory.at<scope_node>(scope);
    // Who is counted last has nobody beside it that could add strands.
    if (n.kind != scope_kind::stand_in || n.references.load(std::memory_order_acquire) != 1) break;
    const ref above = n.parent;
    n.freed.store(freed_marked, std::memory_order_release);  // JH1
    scope = above;
  }
  return scope;
}

ref count_strand_off(const transport::shm::segment& memory, ref scope) noexcept {
  auto& n = *memory.at<scope_node>(scope);
  GODWIT_ASSERT(n.references.load(std::memory_order_relaxed) != 0, "CA3: a strand that ends is counted");
  const bool stands_in = n.kind == scope_kind::stand_in;
  const ref above = n.parent;
  if (n.references.fetch_sub(1, std::memory_order_acq_rel) != 1) return 0;  // CA3
  if (!stands_in) return scope;
  n.freed.store(freed_marked, std::memory_order_release);  // JH1
  return above;
}

void tell_host(const transport::shm::segment& memory, node_words& node) noexcept {
  node.cancellations.fetch_add(2, std::memory_order_seq_cst);
  base::fence();  // CA2: before poll is looked at, which its owner clears before it asks
  const auto& near = memory.near();
  for (std::uint32_t v = near.first; v < near.first + near.count; ++v) ask_for_work(memory, worker_no{v});
}

ref scopes::make(scope_kind kind, std::uint64_t deadline_ns) noexcept {
  auto* n = static_cast<scope_node*>(heap_.allocate(object_kind::record, sizeof(scope_node)));
  clear_record(n);
  // Not what lies there when it is something else: a token that is used too late finds another identity.
  const std::uint64_t identity =
      (std::uint64_t{transport::index(here_.me)} << 40 | ++made_) * 0x9e3779b97f4a7c15;
  n->request.store(identity & ~std::uint64_t{1}, std::memory_order_relaxed);
  n->parent = carried_.scope();
  n->kind = kind;
  n->deadline_ns = deadline_ns;
  n->first.store(0, std::memory_order_relaxed);
  return here_.ref_of(n);
}

ref scopes::near(ref scope) noexcept {
  if (scope == 0 || here_.is_near(scope)) return scope;
  auto* n = static_cast<scope_node*>(heap_.allocate(object_kind::record, sizeof(scope_node)));
  clear_record(n);  // counts the strand that has come, for which `scope` counts this node from now on
  n->request.store(0, std::memory_order_relaxed);
  n->parent = scope;
  n->kind = scope_kind::stand_in;
  n->deadline_ns = 0;
  n->first.store(0, std::memory_order_relaxed);
  return here_.ref_of(n);
}

ref scopes::parent_of(ref scope) noexcept {
  ref parent = 0;
  here_.net.remote_get(ref_worker(scope), &parent, &home(scope)->parent, sizeof parent);
  return parent;
}

bool scopes::is_or_stands_for(ref at, ref scope) const noexcept {
  return at == scope || (at != 0 && here_.at<scope_node>(at)->kind == scope_kind::stand_in);
}

std::uint64_t scopes::identity_of(ref scope) noexcept {
  const word* at = &home(scope)->request;
  return here_.net.remote_load(ref_worker(scope), at, std::memory_order_acquire) & ~std::uint64_t{1};
}

bool scopes::ask_in(ref scope, std::uint64_t& until_ns) noexcept {
  cancel_answer found = ask_scopes(*here_.memory, scope);
  until_ns = found.until_ns;
  bool timed = false;
  while (!found.cancelled && found.ask_on != 0) {
    const auto& e = here_.net.far().call(ref_worker(found.ask_on), call_no::ask_scopes, found.ask_on, 0);
    std::memcpy(static_cast<void*>(&found), e.data, sizeof found);
    timed = timed || found.until_ns != 0;
  }
  if (timed) until_ns = sooner(until_ns, base::fast_ns() + far_time_ns);
  return found.cancelled;
}

bool scopes::ask() noexcept {
  detail::hot_words& hot = detail::hot();
  const std::uint64_t told =
      here_.node->cancellations.load(std::memory_order_seq_cst);  // CA2: before the nodes
  bool yes = false;
  if (until_ns_ == 0 || told != asked_at_ || base::fast_ns() >= until_ns_) {
    yes = ask_in(carried_.scope(), until_ns_);
    asked_at_ = told;
    hot.cancel_answer = yes ? told + 1 : until_ns_ != 0 ? ask_again : told;
  }
  if (yes || until_ns_ != 0) context::look_at_spawns();  // CA4
  return yes;
}

void scopes::changed() noexcept {
  until_ns_ = 0;
  detail::hot_words& hot = detail::hot();
  if (carried_.scope() == 0) {
    hot.cancel_answer = here_.node->cancellations.load(std::memory_order_relaxed);
    return;
  }
  hot.cancel_answer = ask_again;
  context::look_at_spawns();  // CA4
}

bool scopes::request_in_place(const site& here, ref scope, std::uint64_t identity) noexcept {
  if (!set_request(here.at<scope_node>(scope)->request, identity)) return false;
  tell_here(here);
  return true;
}

bool scopes::request(ref scope, std::uint64_t identity) noexcept {
  if (!here_.net.remote_compare_exchange(ref_worker(scope), &home(scope)->request, identity, identity | 1))
    return false;
  tell();
  return true;
}

/// CA2, LZ5: the request is in its place.
void scopes::tell() noexcept {
  tell_here(here_);
  for (std::uint32_t h = 0; h < here_.shape.host_count; ++h)
    if (h != here_.shape.my_host)
      here_.net.far().cast(worker_no{here_.shape.hosts[h].first}, call_no::cancelled, 0);
}

ref scopes::strand_ended(ref scope) noexcept {
  while (scope != 0) {
    const ref next =
        here_.is_near(scope)
            ? count_strand_off(*here_.memory, scope)
            : here_.net.far().call(ref_worker(scope), call_no::count_strand_off, scope, 0).head.result;
    if (next == scope) return scope;
    scope = next;
  }
  return 0;
}

}  // namespace godwit::sched
