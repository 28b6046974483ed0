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

template <class W>
bool make_if(bool wanted) noexcept {
  if (wanted) new (godwit_worker_) W();
  return wanted;
}

}  // namespace

extern "C" {
alignas(64) std::byte godwit_worker_[most_bytes<
    continuation_worker<greedy>, continuation_worker<stalling>, continuation_worker<locked_free>,
    continuation_worker<crude>, continuation_worker<span_meter>, continuation_worker<iso>,
    child_worker<child_rtc>, child_worker<child_full>>];
}

void make_worker(const options& opts) noexcept {
  const std::string_view name = opts.policy;
  const bool made = make_if<continuation_worker<span_meter>>(opts.span) ||
                    make_if<continuation_worker<greedy>>(name == "greedy") ||
                    make_if<continuation_worker<stalling>>(name == "stalling") ||
                    make_if<continuation_worker<locked_free>>(name == "locked_free") ||
                    make_if<continuation_worker<crude>>(name == "crude") ||
                    make_if<continuation_worker<iso>>(name == "iso") ||
                    make_if<child_worker<child_rtc>>(name == "child_rtc") ||
                    make_if<child_worker<child_full>>(name == "child_full");
  GODWIT_CHECK(made, "policy %s has no worker", opts.policy.c_str());
}

}  // namespace godwit::sched
