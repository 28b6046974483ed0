// What cancel.hpp calls: thin calls into the worker that the calling thread runs on.
// docs/protocols/cancel.md
#include "sched/worker.hpp"

#include <godwit/cancel.hpp>
#include <godwit/detail/timer.hpp>

#include "base/check.hpp"
#include "base/clock.hpp"

namespace godwit {

namespace detail {

using sched::scope_kind;
using sched::this_worker;

namespace {
bool in_run() noexcept { return hot().workers != 0; }
sched::scope_node* home(ref scope) noexcept { return this_worker().here().home<sched::scope_node>(scope); }
}  // namespace

bool ask_cancelled() noexcept { return in_run() && this_worker().cancellation().ask(); }

void throw_cancelled() {
  if (in_run() && this_worker().must_stop()) throw cancelled();
}

stop_time when_to_stop() noexcept {
  return in_run() ? this_worker().when_to_stop() : stop_time{false, stop_time::never};
}

scope_handle enter_scope(bool shields, std::uint64_t after_ns) {
  if (!in_run()) base::fatal("a cancel_scope was made outside godwit::run: make it in a thread of the run");
  sched::worker& w = this_worker();
  const std::uint64_t deadline = after_ns != 0 ? base::fast_ns() + after_ns : 0;
  const ref node = w.enter_scope(shields ? scope_kind::shield : scope_kind::scope, deadline);
  return {node, w.cancellation().identity_of(node)};
}
void leave_scope(const scope_handle& scope, const place& where) noexcept {
  if (hot().checkouts != 0) [[unlikely]]
    checkout_held("end of a cancel_scope", where.file, where.line);
  this_worker().run_unbegun_of_scope();
  this_worker().leave_scope(scope.node, where);
}

bool request_cancel(const scope_handle& scope) noexcept {
  return in_run() && scope.node != 0 && this_worker().cancellation().request(scope.node, scope.identity);
}
bool cancel_requested(const scope_handle& scope) noexcept {
  if (!in_run() || scope.node == 0) return false;
  const auto& net = this_worker().here().net;
  const std::uint64_t now = net.remote_load(transport::ref_worker(scope.node), &home(scope.node)->request,
                                            std::memory_order_acquire);
  return now == (scope.identity | 1);
}
bool cancelled_around(const scope_handle& scope) noexcept {
  sched::scopes& all = this_worker().cancellation();
  std::uint64_t until_ns = 0;
  return all.ask_in(all.parent_of(scope.node), until_ns);
}

bool win_race(const scope_handle& scope, std::uint32_t number) noexcept {
  std::uint64_t nobody = 0;
  const auto& net = this_worker().here().net;
  if (!net.remote_compare_exchange(transport::ref_worker(scope.node), &home(scope.node)->first, nobody,
                                   number))
    return false;
  request_cancel(scope);
  return true;
}
std::uint32_t race_winner(const scope_handle& scope) noexcept {
  const auto& net = this_worker().here().net;
  return static_cast<std::uint32_t>(net.remote_load(transport::ref_worker(scope.node),
                                                    &home(scope.node)->first, std::memory_order_acquire));
}

scope_in_place in_place(const scope_handle& scope) {
  need_substrate_threads("cancel_scope of a std::stop_token");
  return {&this_worker().here(), scope};
}
void scope_in_place::operator()() const noexcept {
  static_cast<void>(
      sched::scopes::request_in_place(*static_cast<const sched::site*>(site), scope.node, scope.identity));
}

}  // namespace detail

}  // namespace godwit
