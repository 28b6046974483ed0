// An MPI in memory (transport/mpi/component.hpp) for tests of the companion: all ranks in one process.
//
// Messages of one pair of ranks and one tag keep their order, as in MPI; all else is drawn by seed: when a
// message arrives, from whom first, when a send is over. `current` says whose calls these are. RMA takes
// effect at the flush, in any order; its addresses count from the asker's base. Thread-safe; no collectives.
// Used by tests/transport/far_test.cpp.
#pragma once

#include "base/random.hpp"
#include "transport/mpi/component.hpp"
#include "transport/transport.hpp"

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <deque>
#include <functional>
#include <mutex>
#include <vector>

namespace far_network {

namespace mpi = godwit::transport::mpi;
using godwit::transport::word;
using std::byte;
using std::size_t;
using std::uint32_t;
using std::uint64_t;
inline constexpr int most_ranks = 4;

struct message {
  std::vector<byte> bytes;
  int from, tag;
};
struct pending {
  uint64_t id;
  int rank, from, tag;  // receives; from -2: a send
  byte* to;
  size_t room;
};
struct one_sided_operation {
  int target;
  std::function<void()> effect;
};
struct network {
  std::recursive_mutex one;  // companions may be threads
  godwit::base::small_random random{1};
  std::vector<message> to[most_ranks];  // in the order of sending
  std::deque<pending> asked;
  uint64_t next_id = 1;
  byte* base[most_ranks] = {};
  bool corrupted = false;  // a message longer than its receive
  uint64_t received[most_ranks] = {};
  std::vector<one_sided_operation> one_sided[most_ranks];  // begun, by origin
};
inline network net;
inline thread_local int current = 0;  // whose turn it is

inline int begin(int from, int tag, byte* to, size_t room, mpi::operation* out) {
  out->value = net.next_id++;
  net.asked.push_back({out->value, current, from, tag, to, room});
  return 0;
}
inline int isend(const void* data, size_t n, int to, int tag, mpi::operation* out) {
  const std::lock_guard guard(net.one);
  const auto* at = static_cast<const byte*>(data);
  net.to[to].push_back({{at, at + n}, current, tag});
  return begin(-2, tag, nullptr, 0, out);
}
inline int irecv(void* data, size_t n, int from, int tag, mpi::operation* out) {
  const std::lock_guard guard(net.one);
  return begin(from, tag, static_cast<byte*>(data), n, out);
}
inline bool fits(const pending& p, const message& s) {
  return (p.from == mpi::any_source || p.from == s.from) && (p.tag == mpi::any_tag || p.tag == s.tag);
}
inline int test(mpi::operation* op, bool* done, int* source, int* tag, size_t* bytes) {
  const std::lock_guard guard(net.one);
  *done = false;
  if (net.random.below(3) == 0) return 0;  // not yet
  const auto p = std::find_if(net.asked.begin(), net.asked.end(), [&](auto& a) { return a.id == op->value; });
  if (p->from != -2) {
    auto& box = net.to[current];
    // Candidates: per sender the oldest message that fits; which sender comes first is open.
    std::vector<size_t> found;
    for (size_t i = 0; i < box.size(); ++i)
      if (fits(*p, box[i]) &&
          std::none_of(found.begin(), found.end(), [&](size_t f) { return box[f].from == box[i].from; }))
        found.push_back(i);
    if (found.empty()) return 0;
    const size_t i = found[net.random.below(static_cast<uint32_t>(found.size()))];
    // An older receive that fits has the right to it.
    for (auto q = net.asked.begin(); q != p; ++q)
      if (q->rank == current && q->from != -2 && fits(*q, box[i])) return 0;
    if (box[i].bytes.size() > p->room) net.corrupted = true;
    std::memcpy(p->to, box[i].bytes.data(), std::min(p->room, box[i].bytes.size()));
    if (source != nullptr) *source = box[i].from;
    if (tag != nullptr) *tag = box[i].tag;
    if (bytes != nullptr) *bytes = box[i].bytes.size();
    ++net.received[current];
    box.erase(box.begin() + static_cast<std::ptrdiff_t>(i));
  }
  net.asked.erase(p);
  op->value = 0;
  *done = true;
  return 0;
}
inline int cancel(mpi::operation* op) {
  const std::lock_guard guard(net.one);
  std::erase_if(net.asked, [&](auto& a) { return a.id == op->value; });
  return 0;
}
/// What MPI leaves open: when before the flush, and in which order. What is to be written is read as late.
inline int one_sided(int target, std::function<void()> effect) {
  net.one_sided[current].push_back({target, std::move(effect)});
  return 0;
}
inline int rma_get(const mpi::rma_window*, void* to, size_t n, int target, uint64_t at) {
  return one_sided(target, [=, base = net.base[current]] { std::memcpy(to, base + at, n); });
}
inline int rma_put(const mpi::rma_window*, const void* from, size_t n, int target, uint64_t at) {
  return one_sided(target, [=, base = net.base[current]] { std::memcpy(base + at, from, n); });
}
inline int rma_op(const mpi::rma_window*, mpi::rma_op what, const uint64_t* v, uint64_t* result, int target,
                  uint64_t at) {
  return one_sided(target, [=, base = net.base[current]] {
    auto& w = *reinterpret_cast<word*>(base + at);
    *result = what == mpi::rma_op::add ? w.fetch_add(*v) : w.exchange(*v);
  });
}
inline int rma_swap(const mpi::rma_window*, const uint64_t* v, const uint64_t* expected, uint64_t* result,
                    int target, uint64_t at) {
  return one_sided(target, [=, base = net.base[current]] {
    *result = *expected;
    reinterpret_cast<word*>(base + at)->compare_exchange_strong(*result, *v);
  });
}
inline int rma_flush(const mpi::rma_window*, int target) {
  auto& all = net.one_sided[current];
  for (size_t left;
       (left = static_cast<size_t>(std::ranges::count(all, target, &one_sided_operation::target)));) {
    auto next = all.begin();
    for (uint32_t skip = net.random.below(static_cast<uint32_t>(left));; ++next)
      if (next->target == target && skip-- == 0) break;
    next->effect();
    all.erase(next);
  }
  return 0;
}
inline const mpi::component& table() {
  static const mpi::component t = [] {
    mpi::component p{};
    p.abi = mpi::component_abi;
    p.name = "fake";
    p.isend = isend;
    p.irecv = irecv;
    p.test = test;
    p.cancel = cancel;
    p.get = rma_get;
    p.put = rma_put;
    p.fetch_op = rma_op;
    p.compare_swap = rma_swap;
    p.flush = rma_flush;
    p.error_text = [](int, char* text, size_t n) { std::snprintf(text, n, "fake"); };
    return p;
  }();
  return t;
}

}  // namespace far_network
