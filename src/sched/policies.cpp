// The policies that there are, by name. See policies.hpp.
#include "sched/policies.hpp"

#include <algorithm>
#include <new>
#include <string_view>

#include "base/check.hpp"
#include "sched/child.hpp"
#include "sched/continuation.hpp"

namespace godwit::sched {

namespace {

template <class... W>
constexpr std::size_t most_bytes = std::max({sizeof(W)...});

constexpr std::size_t room_bytes =
    most_bytes<continuation_worker<greedy>, continuation_worker<stalling>, continuation_worker<locked_free>,
               continuation_worker<stalling_locked_free>, continuation_worker<crude>,
               continuation_worker<span_meter>, continuation_worker<iso>,
               continuation_worker<greedy_in_place>, continuation_worker<stalling_in_place>,
               continuation_worker<locked_free_in_place>, continuation_worker<stalling_locked_free_in_place>,
               continuation_worker<crude_in_place>, continuation_worker<span_meter_in_place>,
               child_worker<child_rtc>, child_worker<child_full>>;

// The worker of a process: at the same address in all of them, so that threads that migrate can go on with
// what they know.
alignas(64) std::byte room_[room_bytes];

template <class W>
worker* make_if(void* room, bool wanted) noexcept {
  return wanted ? new (room) W() : nullptr;
}

worker* make_in_place(void* room, const options& opts, std::string_view name) noexcept {
  if (worker* w = make_if<continuation_worker<span_meter_in_place>>(room, opts.span)) return w;
  // Every stack has an address of its own here.
  if (worker* w = make_if<continuation_worker<greedy_in_place>>(room, name == "greedy" || name == "iso"))
    return w;
  if (worker* w = make_if<continuation_worker<stalling_in_place>>(room, name == "stalling")) return w;
  if (worker* w = make_if<continuation_worker<locked_free_in_place>>(room, name == "locked_free")) return w;
  if (worker* w =
          make_if<continuation_worker<stalling_locked_free_in_place>>(room, name == "stalling_locked_free"))
    return w;
  return make_if<continuation_worker<crude_in_place>>(room, name == "crude");
}

worker* make(void* room, const options& opts, std::string_view name) noexcept {
  if (worker* w = make_if<continuation_worker<span_meter>>(room, opts.span)) return w;
  if (worker* w = make_if<continuation_worker<greedy>>(room, name == "greedy")) return w;
  if (worker* w = make_if<continuation_worker<stalling>>(room, name == "stalling")) return w;
  if (worker* w = make_if<continuation_worker<locked_free>>(room, name == "locked_free")) return w;
  if (worker* w = make_if<continuation_worker<stalling_locked_free>>(room, name == "stalling_locked_free"))
    return w;
  if (worker* w = make_if<continuation_worker<crude>>(room, name == "crude")) return w;
  return make_if<continuation_worker<iso>>(room, name == "iso");
}

worker* make_child_stealing(void* room, std::string_view name) noexcept {
  if (worker* w = make_if<child_worker<child_rtc>>(room, name == "child_rtc")) return w;
  return make_if<child_worker<child_full>>(room, name == "child_full");
}

}  // namespace

worker& make_worker(const options& opts, bool in_place) noexcept {
  void* room = in_place ? ::operator new (room_bytes, std::align_val_t{64}) : room_;
  worker* w = in_place ? make_in_place(room, opts, opts.policy) : make(room, opts, opts.policy);
  if (w == nullptr) w = make_child_stealing(room, opts.policy);
  GODWIT_CHECK(w != nullptr, "policy %s has no worker", opts.policy.c_str());
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
