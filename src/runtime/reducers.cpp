// Reducers: what godwit/detail/segment.hpp declares. docs/reducers.md, docs/protocols/segments.md (SE).
// Test: tests/api/reducer_test.cpp.
#include "sched/worker.hpp"

#include <godwit/cancel.hpp>
#include <godwit/codec.hpp>
#include <godwit/detail/segment.hpp>
#include <godwit/reducer.hpp>
#include <godwit/spawn_at.hpp>

#include <algorithm>
#include <atomic>
#include <iterator>
#include <unordered_map>
#include <utility>
#include <vector>

#include "base/check.hpp"
#include "base/text.hpp"
#include "runtime/reducers.hpp"

namespace godwit::runtime {

namespace {

using detail::ref;
using detail::view_type;
using item = sched::segments::item;
using wanted = sched::segments::wanted;
using sched::this_worker;
using sched::value_of;
using transport::index;

std::atomic<std::uint64_t> last_number{0};
std::atomic<std::uint64_t> of_main{0};  ///< reducers that live and were made outside of runs
constexpr int worker_shift = 40;        ///< of a number: above it is the worker that made it, plus one

bool in_run() noexcept { return detail::hot().workers != 0; }

bool workers_share_heap() noexcept { return detail::host_heap() || this_worker().here().shape.in_process; }

/// A view, of no segment yet.
ref make_view(std::uint64_t reducer, const view_type& type) {
  if (type.bytes == 0 && !workers_share_heap())
    base::fatal(
        "worker %u: a reducer's values of type %s lie in the heap that workers share, and in this run they "
        "have "
        "none (--godwit-heap=private, or a program with an allocator of its own): use --godwit-heap=shared "
        "or "
        "--godwit-substrate=threads, or plain bytes as values (docs/reducers.md)",
        detail::hot().worker, base::demangled(type.name()).c_str());
  return this_worker().segments().make_view(reducer, type);
}

struct merges_locked {
  merges_locked() noexcept { this_worker().segments().lock_merges(); }
  ~merges_locked() { this_worker().segments().unlock_merges(); }
  merges_locked(const merges_locked&) = delete;
  merges_locked& operator=(const merges_locked&) = delete;
};

/// All of this host become the identity. They stay: a segment of another host that they go on with must not
/// end before that host has been asked, too. With the lock of merges.
void reset(const std::vector<item>& pieces, const view_type& type) noexcept {
  for (const item& i : pieces)
    if (i.view != 0) type.reset(value_of(this_worker().segments().view_at(i.view)));
}

/// A codec may throw, on any host. Then all hosts keep what they have.
bool codec_may_throw(const view_type& type) noexcept { return type.bytes == 0; }

/// What this host has, as bytes, and taken unless a codec may throw.
std::vector<std::byte> as_bytes(std::uint64_t reducer, const view_type& type) {
  auto& segments = this_worker().segments();
  const auto value = [&](const item& i) { return value_of(segments.view_at(i.view)); };
  writer all;
  const merges_locked whole;
  const std::vector<item> pieces = segments.take(reducer, wanted::positions);
  for (const item& i : pieces) {
    all.put(i.segment);
    all.put(i.origin);
    all.put(i.view != 0);
    if (i.view == 0) continue;
    if (type.write == nullptr) detail::codec_missing(type.name());
    type.write(all, value(i));  // may throw
  }
  if (!codec_may_throw(type)) reset(pieces, type);
  return {all.data(), all.data() + all.size()};
}

void reset_here(std::uint64_t reducer, const view_type& type) noexcept {
  const merges_locked whole;
  reset(this_worker().segments().take(reducer, wanted::positions), type);
}

/// What other hosts have written down.
struct collected {
  std::vector<item> pieces;
  ~collected() {
    for (const item& p : pieces)
      if (p.view != 0) this_worker().segments().free_view(p.view);
  }
};

void append_from_bytes(std::vector<item>& pieces, const std::vector<std::byte>& bytes, std::uint64_t reducer,
                       const view_type& type) {
  reader r(bytes.data(), bytes.size());
  for (const std::byte* const end = bytes.data() + bytes.size(); r.take(0) != end;) {
    item p{};
    p.segment = r.get<ref>();
    p.origin = r.get<ref>();
    p.owned = true;
    if (r.get<bool>()) p.view = make_view(reducer, type);
    pieces.push_back(p);
    if (p.view != 0) type.read(r, value_of(this_worker().segments().view_at(p.view)));  // may throw
  }
}

/// What the other hosts have: a thread on each writes it down, and a second one takes it when all is here if
/// a codec may throw. What has been taken would be lost if it were dropped: nobody cancels that. The caller
/// comes back on the host where it was: `theirs` lies in that host's heap.
std::vector<item> from_other_hosts(std::uint64_t reducer, const view_type& type) {
  if (!detail::host_heap())
    base::fatal(
        "worker %u: the value of a reducer was asked for on several hosts, in a run where hosts have no heap "
        "that keeps the thread in its place (--godwit-heap=private, or a program with an allocator of its "
        "own): use --godwit-heap=shared (docs/reducers.md)",
        detail::hot().worker);
  std::vector<future<std::vector<std::byte>>> theirs;
  std::vector<future<void>> taken;
  collected all;
  const cancel_shield until_all_are_here;
  const auto on_each_other = [shape = &this_worker().here().shape](auto&& f) {
    for (std::uint32_t h = 0; h < shape->host_count; ++h)
      if (h != shape->my_host) f(worker(shape->hosts[h].first));
  };
  on_each_other([&](worker there) {
    theirs.push_back(spawn_at(there, [reducer, what = &type] { return as_bytes(reducer, *what); }));
  });
  for (auto& f : theirs) append_from_bytes(all.pieces, f.join(), reducer, type);
  if (codec_may_throw(type))
    on_each_other([&](worker there) {
      taken.push_back(spawn_at(there, [reducer, what = &type] { reset_here(reducer, *what); }));
    });
  for (auto& f : taken) f.join();
  return std::exchange(all.pieces, {});
}

/// SE4: the views in serial order. A part of a list comes directly behind what its origin holds.
std::vector<item> in_serial_order(const std::vector<item>& pieces) {
  std::unordered_map<ref, std::size_t> parts;  // by origin: where it begins
  std::unordered_map<ref, bool> known;
  for (const item& p : pieces)
    if (p.segment != 0) known[p.segment] = true;
  for (std::size_t i = 0; i < pieces.size(); ++i)
    if (pieces[i].segment == 0 && known.contains(pieces[i].origin)) parts[pieces[i].origin] = i;
  std::vector<item> ordered;
  std::vector<std::size_t> next;  // where to go on, the innermost part last
  for (std::size_t root = 0; root < pieces.size(); ++root) {
    if (pieces[root].segment != 0 || known.contains(pieces[root].origin)) continue;
    next.push_back(root + 1);
    while (!next.empty()) {
      const std::size_t at = next.back()++;
      if (at == pieces.size() || pieces[at].segment == 0) {
        next.pop_back();
        continue;
      }
      if (pieces[at].view != 0) ordered.push_back(pieces[at]);
      if (const auto part = parts.find(pieces[at].segment); part != parts.end())
        next.push_back(part->second + 1);
    }
  }
  return ordered;
}

/// All into the view @p own, which is one of them. With the lock of merges.
void merge_into(ref own, const std::vector<item>& ordered, const view_type& type) noexcept {
  auto& segments = this_worker().segments();
  const auto value = [&](ref view) { return value_of(segments.view_at(view)); };
  void* const all = value(ordered.front().view);
  for (std::size_t i = 1; i < ordered.size(); ++i) type.merge(all, value(ordered[i].view));
  if (all != value(own)) type.move(value(own), all);
  for (const item& p : ordered) {
    if (p.owned)
      segments.free_view(p.view);
    else if (p.view != own)
      type.reset(value(p.view));
  }
}

/// The reducer's end: nobody uses it any more.
void drop_here(std::uint64_t reducer) noexcept {
  auto& segments = this_worker().segments();
  segments.lock_merges();
  for (const item& i : segments.take(reducer, wanted::end)) segments.free_view(i.view);
  segments.unlock_merges();
}

}  // namespace

void track_for_main() noexcept {
  if (of_main.load(std::memory_order_relaxed) != 0) this_worker().segment();
}

}  // namespace godwit::runtime

namespace godwit::detail {

using namespace godwit::runtime;  // what is above

void reduce_failed(const char* type) noexcept {
  base::fatal(
      "worker %u: an operation of a reducer, of type %s, threw an exception where values are merged: nobody "
      "is "
      "there to catch it; let identity and reduce not throw",
      hot().worker, base::demangled(type).c_str());
}

std::uint64_t begin_reducer() {
  const std::uint64_t number = last_number.fetch_add(1, std::memory_order_relaxed) + 1;
  if (!in_run()) {
    of_main.fetch_add(1, std::memory_order_relaxed);
    return number;
  }
  sched::worker& w = this_worker();
  if (w.here().one_host()) w.here().node->reducers.fetch_add(1, std::memory_order_relaxed);
  w.segment();
  return static_cast<std::uint64_t>(index(w.here().me) + 1) << worker_shift | number;
}

void end_reducer(std::uint64_t reducer) noexcept {
  const bool mains = reducer >> worker_shift == 0;
  if (mains) of_main.fetch_sub(1, std::memory_order_relaxed);
  if (!in_run()) return;
  sched::worker& w = this_worker();
  const sched::job_shape& shape = w.here().shape;
  drop_here(reducer);
  const auto drop_there = [](const void* number) { drop_here(*static_cast<const std::uint64_t*>(number)); };
  for (std::uint32_t h = 0; h < shape.host_count; ++h)
    if (h != shape.my_host)
      w.send(transport::worker_no{shape.hosts[h].first}, 0, drop_there, &reducer, sizeof reducer);
  if (!w.here().one_host()) return;  // others may live that were made anywhere: the thread stays tracked
  if (mains || w.here().node->reducers.fetch_sub(1, std::memory_order_relaxed) != 1) return;
  if (of_main.load(std::memory_order_relaxed) == 0) w.end_segment();
}

void* find_view(std::uint64_t reducer, const view_type& type) {
  if (!in_run())
    base::fatal(
        "a reducer's value was updated or read outside godwit::run: use it in the threads of the run, and "
        "hand "
        "what take() gives back to main as the result of run<T> (docs/reducers.md)");
  sched::worker& w = this_worker();
  const ref s = w.segment();
  ref v = w.segments().find(s, reducer);
  if (v == 0) {
    v = make_view(reducer, type);
    w.segments().add(s, v);
  }
  view_slot& slot = hot().views[reducer % view_slots];
  slot = {reducer, value_of(w.segments().view_at(v))};
  return slot.value;
}

void* merge_views(std::uint64_t reducer, const view_type& type) {
  std::vector<item> pieces;
  const bool alone = !in_run() || this_worker().here().one_host();
  if (!alone) pieces = from_other_hosts(reducer, type);
  // From here on nothing is waited for: the thread stays where it is.
  void* const value = find_view(reducer, type);
  auto& segments = this_worker().segments();
  segments.lock_merges();
  std::ranges::copy(segments.take(reducer, alone ? wanted::values : wanted::positions),
                    std::back_inserter(pieces));
  merge_into(segments.find(this_worker().segment(), reducer), alone ? pieces : in_serial_order(pieces), type);
  segments.unlock_merges();
  return value;
}

}  // namespace godwit::detail
