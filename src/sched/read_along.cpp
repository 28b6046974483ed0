// See read_along.hpp.
#include "sched/read_along.hpp"

#include <godwit/future.hpp>

#include <algorithm>
#include <cstring>
#include <span>

namespace godwit::sched {

using transport::ref_worker;
using transport::far::entry;

namespace {

// The innermost frames, which are joined first: longer ones are not searched to the end for each join.
constexpr std::uintptr_t most_searched = 64 << 10;

}  // namespace

const result_words* read_along::copy_of(ref r) const noexcept {
  const auto found = std::ranges::find(copies_, r, &copy::of);
  return found != copies_.end() ? &found->result : nullptr;
}

/// Frames are looked at as bytes, and may hold words of futures that are gone. RA2
__attribute__((no_sanitize("address"))) std::size_t read_along::look_for(
    ref r, const stack::range& frames, ref (&found)[most_read_along]) const noexcept {
  const transport::shm::near_range& host = here_.shape.host_of(ref_worker(r));
  const std::uintptr_t high = std::min(frames.high, frames.low + most_searched);
  std::size_t count = 0;
  for (std::uintptr_t at = (frames.low + 7) / 8 * 8; at + 8 <= high && count != most_read_along; at += 8) {
    const std::uintptr_t word = *reinterpret_cast<const std::uintptr_t*>(at);
    if ((word & state_bits) != detail::unmoved) continue;
    const ref other = detail::record_in(word);
    if (other == r || !host.holds(ref_worker(other)) || copy_of(other) != nullptr) continue;
    if (std::find(found, found + count, other) == found + count) found[count++] = other;
  }
  return count;
}

const entry& read_along::ask(ref r, const stack::range& frames) noexcept {
  ref others[most_read_along];
  const std::size_t count = look_for(r, frames, others);
  const entry& e = here_.net.far().call(ref_worker(r), call_no::read_record, r, count,
                                        std::as_bytes(std::span(others, count)));
  const std::byte* from = e.data + sizeof(result_words);
  for (std::size_t i = 0; i < count; ++i) {
    if ((e.head.result & std::uint64_t{2} << i) == 0) continue;
    copies_.push_back({others[i], {}});
    std::memcpy(&copies_.back().result, from, sizeof(result_words));
    from += sizeof(result_words);
  }
  return e;
}

void read_along::release(ref r) noexcept {
  released_.push_back(r);
  if (released_.size() == most_read_along) send_releases();
}

void read_along::send_releases() noexcept {
  for (auto first = released_.begin(); first != released_.end();) {
    const transport::shm::near_range& host = here_.shape.host_of(ref_worker(*first));
    const auto end = std::partition(first, released_.end(), [&](ref r) { return host.holds(ref_worker(r)); });
    const std::span together(first, end);
    here_.net.far().cast(ref_worker(*first), call_no::release_read, together.size(), 0,
                         std::as_bytes(together));
    first = end;
  }
  released_.clear();
}

}  // namespace godwit::sched
