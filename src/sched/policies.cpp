// The policies that there are, by name. See policies.hpp.
#include "sched/policies.hpp"

#include <algorithm>
#include <cstddef>
#include <new>
#include <string_view>

#include "base/check.hpp"
#include "sched/child.hpp"
#include "sched/continuation.hpp"

namespace godwit::sched {

namespace {

template <class... P, class... C>
constexpr std::size_t largest_worker(policy_list<P...>, policy_list<C...>) noexcept {
  return std::max({sizeof(continuation_worker<on<P, on_processes>>)...,
                   sizeof(continuation_worker<on<P, on_threads>>)..., sizeof(child_worker<C>)...});
}
constexpr std::size_t room_bytes = largest_worker(continuation_policies{}, child_policies{});

// The worker of a process: at the same address in all of them, so that threads that migrate can go on with
// what they know.
alignas(64) std::byte room_[room_bytes];

}  // namespace

const policy_info& policy_of(const options& opts) noexcept {
  const std::string_view name = opts.span ? span_meter::name : opts.policy.c_str();
  for (const auto rows : {continuation_rows(), child_rows()})
    for (const policy_info& p : rows)
      if (p.name == name) return p;
  base::fatal("policy %s has no worker", opts.policy.c_str());
}

worker& make_worker(const options& opts, bool in_place) noexcept {
  const policy_info& policy = policy_of(opts);
  worker* w = in_place ? policy.on_threads(::operator new (room_bytes, std::align_val_t{64}))
                       : policy.on_processes(room_);
  detail::hot().owner = w;
  return *w;
}

void end_worker() noexcept {
  worker& w = this_worker();
  detail::hot().owner = nullptr;
  w.~worker();
  ::operator delete (static_cast<void*>(&w), std::align_val_t{64});
}

}  // namespace godwit::sched
