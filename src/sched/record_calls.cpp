// See record_calls.hpp.
#include "sched/record_calls.hpp"

#include <cstring>

namespace godwit::sched {

using transport::far::entry;
using transport::far::inline_bytes;

namespace {

/// What is in @p r if that is a record of this host, complete, and its result is all there. It is the word of
/// a stack, and may name nothing any more (RA2): then it is not looked at closer, or nobody will use what it
/// gives.
bool copy_result(const call_site& site, ref r, result_words& to) noexcept {
  const transport::shm::layout& l = site.memory->where();
  const std::uint64_t offset = transport::ref_offset(r);
  if (!site.memory->reaches(transport::ref_worker(r)) || offset % heap::grain != 0 || offset < l.heap ||
      offset + sizeof(record) > l.heap + l.heap_bytes)
    return false;
  const record* at = site.memory->at<record>(r);
  if (at->kind != object_kind::record || at->state.load(std::memory_order_acquire) != state_done)  // JN1
    return false;
  to = at->result;
  return to.object == 0 && to.owns != detail::owning::box;
}

}  // namespace

void read_record(call_site& site, entry& e) noexcept {
  const record* r = site.memory->at<record>(e.head.b);
  GODWIT_ASSERT(r->kind == object_kind::record, "a record is read");
  if (r->state.load(std::memory_order_acquire) != state_done) return;  // JN1
  ref others[most_read_along];
  const std::uint64_t count = e.head.more[0];
  GODWIT_ASSERT(count <= most_read_along, "an answer has room for all that are read along");
  std::memcpy(others, e.data, count * sizeof(ref));
  std::byte* to = e.data;
  const auto put = [&](const void* from, std::size_t bytes) {
    std::memcpy(to, from, bytes);
    to += bytes;
  };
  const result_words result = r->result;
  GODWIT_ASSERT(result.object != 0 || result.bytes <= sizeof result.small, "a result lies where it fits");
  e.head.result = 1;
  put(&result, sizeof result);
  for (std::uint64_t i = 0; i < count; ++i)
    if (result_words other; copy_result(site, others[i], other)) {
      e.head.result |= std::uint64_t{2} << i;
      put(&other, sizeof other);
    }
  const auto room = static_cast<std::size_t>(e.data + inline_bytes - to);
  if (result.object != 0 && site.memory->reaches(transport::ref_worker(result.object)) &&
      result.bytes <= room)
    put(site.memory->at<object>(result.object) + 1, result.bytes);
  e.head.info = static_cast<std::uint64_t>(to - e.data);
}

void release_record(call_site& site, entry& e) noexcept {
  record* rec = site.memory->at<record>(e.head.b);
  GODWIT_ASSERT(rec->kind == object_kind::record, "a record is released");
  GODWIT_ASSERT(rec->references.load(std::memory_order_relaxed) != 0, "who releases holds a reference");
  if (rec->references.fetch_sub(1, std::memory_order_acq_rel) != 1) return;
  std::uint64_t state = state_none;
  if (rec->state.compare_exchange_strong(state, state_detached, std::memory_order_acq_rel,
                                         std::memory_order_acquire))
    return;  // JN4: the child will free it
  GODWIT_CHECK(state == state_done, "a future was destroyed while a thread waits for it");
  if (rec->result.owns != detail::owning::nothing && (e.head.more[0] & release_as::taken) == 0) {
    e.head.result = owns_values;
    return;
  }
  const ref result = rec->result.object;
  if ((e.head.more[0] & release_as::queued) != 0) {
    e.head.result = result;
    e.head.info = sizeof result;
    std::memcpy(e.data, &result, sizeof result);
    return;
  }
  if (result != 0 && site.memory->reaches(transport::ref_worker(result)))
    site.memory->at<object>(result)->freed.store(freed_marked, std::memory_order_release);
  else
    e.head.result = result;
  rec->freed.store(freed_marked, std::memory_order_release);  // JH1
}

void release_read_records(call_site& site, entry& e) noexcept {
  ref records[most_read_along];
  const std::uint64_t count = e.head.b;
  GODWIT_ASSERT(count <= most_read_along, "as many are given back at a time as are read");
  std::memcpy(records, e.data, count * sizeof(ref));
  for (std::uint64_t i = 0; i < count; ++i) {
    record* rec = site.memory->at<record>(records[i]);
    GODWIT_ASSERT(
        rec->kind == object_kind::record && rec->state.load(std::memory_order_relaxed) == state_done,
        "what was read is a complete record");
    GODWIT_ASSERT(rec->references.load(std::memory_order_relaxed) != 0, "who releases holds a reference");
    if (rec->references.fetch_sub(1, std::memory_order_acq_rel) == 1)
      rec->freed.store(freed_marked, std::memory_order_release);  // JH1
  }
}

}  // namespace godwit::sched
