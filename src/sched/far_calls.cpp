// See far_calls.hpp.
#include "sched/far_calls.hpp"

#include <csignal>
#include <cstring>
#include <optional>
#include <unistd.h>

#include "context/context.hpp"
#include "sched/deque.hpp"
#include "sched/frames.hpp"
#include "sched/lazy_spawns.hpp"
#include "sched/ready_queue.hpp"
#include "sched/record_calls.hpp"
#include "sched/segment_list.hpp"
#include "base/world.hpp"

namespace godwit::sched {

using transport::index;
using transport::far::answer_room;
using transport::far::entry;
using transport::far::inline_bytes;

void ask_for_work(const transport::shm::segment& memory, worker_no w) noexcept {
  auto& poll = memory.at(w, memory.hot<detail::hot_words>())->poll;
  // Looking first: many ask in vain, and a store would take the line from its owner each time.
  if (poll.load(std::memory_order_relaxed) != 1) poll.store(1, std::memory_order_relaxed);
}

void signal_hoarders_of(const transport::shm::segment& memory, const public_words* words, worker_no from,
                        worker_no to, worker_no except, bool hidden) noexcept {
  auto* hot = memory.hot<detail::hot_words>();
  for (std::uint32_t v = index(from); v < index(to); ++v) {
    if (worker_no{v} == except) continue;
    detail::hot_words* theirs = memory.at(worker_no{v}, hot);
    // A racy look at the owner's words: a wrong guess costs one signal.
    const bool hoards = __atomic_load_n(&theirs->bottom, __ATOMIC_RELAXED) >
                        __atomic_load_n(&theirs->split, __ATOMIC_RELAXED);
    if (hoards || (hidden && __atomic_load_n(&theirs->in_runtime, __ATOMIC_RELAXED) == 0)) {
      const auto pid =
          static_cast<pid_t>(memory.at(worker_no{v}, words)->pid.load(std::memory_order_relaxed));
      if (pid > 0) base::interrupt(pid, SIGURG);
    }
  }
}

void wake_one_of(node_words& node) noexcept {
  if (node.sleepers.load(std::memory_order_seq_cst) == 0) return;
  node.wake.fetch_add(1, std::memory_order_release);
  base::wake(node.wake, 1);
}

void wake_all_of(node_words& node) noexcept {
  node.wake.fetch_add(1, std::memory_order_release);
  base::wake(node.wake, base::all_of_them);
  wake_spares_of(node, ~0u);
}

void wake_spares_of(node_words& node, std::uint32_t bits) noexcept {
  node.spare_wake.fetch_add(
      1, std::memory_order_seq_cst);  // MO2: what they are to see, then spare_wake, then resting
  if (node.resting.load(std::memory_order_seq_cst) != 0) base::wake_bits(node.spare_wake, bits);
}

namespace {

/// What is filled in for the asker.
struct answer {
  entry& e;
  const answer_room& room;
  std::byte* big = nullptr;  ///< bytes that do not fit into the entry
};

/// Lay out @p info, a loot or an image, and room for the stack's bytes behind it; gives back where these go.
template <class Info>
std::byte* answer_with(answer& to, const Info& info, std::size_t bytes) noexcept {
  entry& e = to.e;
  std::memcpy(e.data, static_cast<const void*>(&info), sizeof info);
  e.head.info = sizeof info;
  e.head.bytes = bytes;
  e.head.local = info.low;
  GODWIT_ASSERT(info.low < info.top && info.top <= info.bytes_end && bytes == info.bytes_end - info.low,
                "a thread has a stack, and its ancestors' frames lie above it");
  GODWIT_ASSERT(info.own_record != 0, "a thread that moves completes a record");
  if (sizeof info + bytes <= inline_bytes) return e.data + sizeof info;
  return to.big = to.room(bytes);
}

ready_queue queue_of(const call_site& site, worker_no w) noexcept {
  return {*site.memory, const_cast<public_words&>(*site.memory->at(w, site.words)), site.holder};
}

// What fits into an answer behind the line that says where the part is.
constexpr std::uint64_t most_parcel_bytes = inline_bytes - sizeof(closure_line);

/// What a thread that goes to another host leaves behind on this one. Those of a later kind are taken only if
/// nobody here is of an earlier one. docs/protocols/parcels.md
enum class leaves : std::uint8_t {
  nothing,     ///< as far as is known
  no_data,     ///< it has not begun, and the part that it was sent to goes along
  data_there,  ///< it will be far from what it was sent to
  host,        ///< it stays
};

/// Another host wants it: is it bound to this one?
bool stays(const image& im) noexcept {
  im.wanted = true;
  return im.bound;
}

bool stays(const call_site& site, const parcel& p) noexcept {
  const auto closure = reinterpret_cast<std::uintptr_t>(p.closure());
  return names(closure, closure + p.bytes, site.heap());
}

leaves kind_of(call_site& site, const image& im) noexcept {
  if (im.sp != not_begun) {
    if (stays(im)) return leaves::host;
    return im.data.bytes == 0 ? leaves::nothing : leaves::data_there;
  }
  const parcel& what = static_cast<const parcel_image&>(im).what;
  if (im.data.bytes == 0 || what.all_bytes() > most_parcel_bytes || stays(site, what)) return leaves::host;
  const auto& near = site.memory->near();  // PA5: a part that a thread here works on stays
  for (std::uint32_t i = 0; i < near.count; ++i)
    if (site.memory->at(worker_no{near.first + i}, site.words)->data() == im.data) return leaves::host;
  return leaves::no_data;
}

/// Bytes that move with a thread, or will have to; `never`: it is of another kind.
std::uint64_t weight(call_site& site, const image& im, leaves what) noexcept {
  if (kind_of(site, im) != what) return ready_queue::never;
  return im.bytes_end - im.low + im.data.bytes;
}

/// @p first, and those behind it that were sent to the same part, as many as fit.
void take_parcels(call_site& site, ready_queue& queue, ref first, answer& to) noexcept {
  entry& e = to.e;
  const data_part part = site.memory->at<image>(first)->data;
  std::memcpy(e.data, &part, sizeof part);
  e.head.info = sizeof(closure_line);
  const auto end_of = [&](const image& im) {
    return e.head.info + static_cast<const parcel_image&>(im).what.all_bytes();
  };
  for (ref r = first; r != 0;) {
    auto* im = site.memory->at<parcel_image>(r);
    std::memcpy(e.data + e.head.info, static_cast<const void*>(&im->what), sizeof(parcel) + im->what.bytes);
    e.head.info = end_of(*im);
    im->freed.store(freed_marked, std::memory_order_release);  // JH1
    r = queue.pop_lightest([&](const image& other) {
      return other.sp == not_begun && other.data == part && end_of(other) <= inline_bytes &&
                     !stays(site, static_cast<const parcel_image&>(other).what)
                 ? 0
                 : ready_queue::never;
    });
  }
  e.head.result = static_cast<std::uint64_t>(loot_kind::parcels);
  e.head.more[1] = 1;  // a move of the part follows
}

bool take_ready(call_site& site, worker_no victim, leaves what, answer& to) noexcept {
  const auto& memory = *site.memory;
  ready_queue queue = queue_of(site, victim);
  if (queue.empty()) return false;
  const ref r = queue.pop_lightest([&](const image& im) { return weight(site, im, what); });
  if (r == 0) return false;
  if (what == leaves::no_data) {
    take_parcels(site, queue, r, to);
    return true;
  }
  image* im = memory.at<image>(r);
  GODWIT_ASSERT(im->kind == object_kind::image, "ready queues between hosts hold images");
  GODWIT_ASSERT(im->freed.load(std::memory_order_relaxed) == freed_not, "an image is freed by who takes it");
  GODWIT_ASSERT(heap::room_of(*im) >= sizeof(image) + (im->bytes_end - im->low), "an image holds its stack");
  const loot info{im->sp,
                  im->fp,
                  im->extra,
                  im->low,
                  im->top,
                  im->bytes_end,
                  im->own_record,
                  im->fork ? im->status : im->waited_for,
                  im->float_control,
                  {taken_along(memory, im->takes.scope), im->takes.segment}};
  const std::size_t bytes = im->bytes_end - im->low;
  std::memcpy(answer_with(to, info, bytes), im->bytes(), bytes);
  to.e.head.result = static_cast<std::uint64_t>(im->fork ? loot_kind::fork : loot_kind::suspended);
  im->freed.store(freed_marked, std::memory_order_release);  // JH1: also by the owner, which then collects it
  return true;
}

/// Are the continuations of @p w of that kind?
bool are_of(const public_words& w, leaves what) noexcept {
  return what != leaves::no_data && (w.data().bytes != 0) == (what == leaves::data_there);
}

/// SE1: for a continuation that leaves the deque of @p victim, which is locked, and the host. 0: none is
/// ready, and the victim is to make one; or the list is locked. Who has locked it may be gone, and the caller
/// is who has to tell.
ref part_of_segment(const call_site& site, worker_no victim, ref s) noexcept {
  const segment_list list(*site.memory, *site.node, site.holder);
  if (!list.try_lock()) return 0;
  auto& theirs = const_cast<public_words&>(*site.memory->at(victim, site.words));
  const ref made = theirs.spare_segment.exchange(0, std::memory_order_acquire);
  if (made != 0) list.link(made, s);
  list.unlock();
  return made;
}

bool take_continuation(call_site& site, worker_no victim, leaves what, answer& to) noexcept {
  entry& e = to.e;
  if (!are_of(*site.memory->at(victim, site.words), what)) return false;
  const auto& memory = *site.memory;
  const bool check = (e.head.b & call_scope::skip_check) == 0;
  const auto outcome = steal(
      memory, site.holder, victim, site.words, check, [] {},
      [&](const spawn_slot& own, const spawn_slot& above, spawn_slot* place, ref segment) {
        if (own.sp == 0) {
          if (own.extra != 0) return false;
          e.head.result = static_cast<std::uint64_t>(loot_kind::task);
          e.head.info = sizeof own.record;
          std::memcpy(e.data, &own.record, sizeof own.record);
          return true;
        }
        const auto there =
            reinterpret_cast<std::uintptr_t>(memory.at(victim, reinterpret_cast<std::byte*>(own.sp)));
        const stack::range heap = site.heap();
        if (!base::planted("stay.companion_does_not_search") &&
            (names_heap(own, own.bytes_end, heap, there - own.sp) ||
             (site.lazy && names_heap(*memory.at(victim, lazy_site_of(own)), heap)))) {
          const_cast<public_words*>(memory.at(victim, site.words))
              ->put_aside.store(1, std::memory_order_relaxed);
          ask_for_work(memory, victim);
          e.head.result = static_cast<std::uint64_t>(loot_kind::later);
          return false;
        }
        const public_words& victims = *memory.at(victim, site.words);
        if (segment != 0 && (segment = part_of_segment(site, victim, segment)) == 0) {
          ask_for_work(memory, victim);
          e.head.result = static_cast<std::uint64_t>(loot_kind::later);
          return false;
        }
        carried takes = carried_along(memory, victims, own);
        takes.segment = segment;
        e.head.result = static_cast<std::uint64_t>(loot_kind::fork);
        const std::uint64_t low = own.sp - (site.lazy ? lazy_spawns::bytes_below : context::fork_bytes_below);
        const std::size_t bytes = own.bytes_end - low;
        const loot info{site.lazy ? low : own.sp,
                        own.fp,
                        own.extra,
                        low,
                        above.sp,
                        own.bytes_end,
                        above.record,
                        own.record,
                        own.float_control,
                        takes};
        std::byte* answer = answer_with(to, info, bytes);
        memory.remote_get(victim, answer, reinterpret_cast<const void*>(low), bytes);
        if (site.lazy) lazy_spawns::put_below(answer, own, *memory.at(victim, lazy_site_of(own)), own.record);
        if ((e.head.b & call_scope::hash_frames) != 0)
          memory.at(victim, place)->frame_hash =
              frame_hash(answer + (own.sp - low), above.sp - own.sp - sizeof(std::uintptr_t));
        return true;
      });
  return outcome == steal_outcome::taken;
}

/// The kinds that are taken for @p e.
template <class F>
bool any_kind(const entry& e, F&& f) noexcept {
  const bool with_data = (e.head.b & call_scope::with_data) != 0;
  return f(leaves::nothing) || (with_data && f(leaves::no_data)) || f(leaves::data_there);
}

bool has_work(call_site& site, worker_no v, const entry& e) noexcept {
  if (site.memory->at(v, site.words)->shares_work()) return true;
  return any_kind(e, [&](leaves what) {
    return queue_of(site, v).has([&](const image& im) { return weight(site, im, what); });
  });
}

call_site& site_of(void* place, [[maybe_unused]] const entry& e) noexcept {
  auto& site = *static_cast<call_site*>(place);
  GODWIT_ASSERT(site.memory->near().holds(e.head.target), "a call is carried out at its target's host");
  return site;
}

/// The workers that steal and look ask.
struct victims {
  std::uint32_t base, count, first;
  victims(call_site& site, const entry& e) noexcept {
    const auto& near = site.memory->near();
    const bool all = (e.head.b & call_scope::whole_host) != 0;
    base = all ? near.first : index(e.head.target);
    count = all ? near.count : 1;
    first = count > 1 ? site.random->below(count) : 0;
  }
  worker_no number(std::uint32_t i) const noexcept { return worker_no{base + (first + i) % count}; }
  /// There was nothing to take. Gives back whether nobody of the host has anything to do.
  bool ask_for_work(const call_site& site, const entry& e) const noexcept {
    for (std::uint32_t i = 0; i < count; ++i) sched::ask_for_work(*site.memory, worker_no{base + i});
    if ((e.head.b & call_scope::urgent) != 0)
      signal_hoarders_of(*site.memory, site.words, worker_no{base}, worker_no{base + count}, worker_no{~0u},
                         site.lazy);
    return is_full(site.node->idle.load(std::memory_order_relaxed), site.memory->near().count);
  }
};

/// Of the continuations that a host shares, that of the oldest thread: one with little stack above it has
/// much work before it, as a rule. A guess, since owners and thieves go on meanwhile.
constexpr int most_compared = 8;
std::optional<worker_no> who_shares_oldest(const call_site& site, const victims& all, leaves what) noexcept {
  std::optional<worker_no> oldest;
  std::uintptr_t highest = 0;
  for (std::uint32_t i = 0, compared = 0; i < all.count && compared < most_compared; ++i) {
    const worker_no v = all.number(i);
    const public_words& theirs = *site.memory->at(v, site.words);
    if (!theirs.shares_work() || !are_of(theirs, what)) continue;
    ++compared;
    const spawn_slot& slot = *site.memory->at(v, as_slot(theirs.top.load(std::memory_order_relaxed)));
    // As its owner writes it, perhaps.
    const std::uintptr_t sp =
        std::atomic_ref(const_cast<spawn_slot&>(slot).sp).load(std::memory_order_relaxed);
    if (sp > highest) highest = sp, oldest = v;
  }
  return oldest;
}

std::byte* steal_any(void* place, entry& e, const answer_room& room) noexcept {
  call_site& site = site_of(place, e);
  const victims all(site, e);
  answer to{e, room};
  const bool forks = (e.head.b & call_scope::ready_only) == 0;
  const bool taken = any_kind(e, [&](leaves what) {
    if (forks && all.count > 1)
      if (const auto v = who_shares_oldest(site, all, what); v && take_continuation(site, *v, what, to))
        return true;
    for (std::uint32_t i = 0; i < all.count; ++i)
      if (take_ready(site, all.number(i), what, to) ||
          (forks && take_continuation(site, all.number(i), what, to)))
        return true;
    return false;
  });
  if (!taken)
    if (all.ask_for_work(site, e) && e.head.result == 0)
      e.head.result = static_cast<std::uint64_t>(loot_kind::all_idle);
  return to.big;
}

/// For who completed the record that it waits for. JN3
std::byte* take_waiter(call_site& site, const completion& what, entry& e, const answer_room& room) noexcept {
  auto* im = site.memory->at<image>(what.waiter);
  GODWIT_ASSERT(im->kind == object_kind::image && im->freed.load(std::memory_order_relaxed) == freed_not,
                "what waits for a record is a thread, and is resumed once");
  const std::size_t bytes = im->bytes_end - im->low;
  if (stays(*im) || (what.in_answer && sizeof *im + bytes > inline_bytes)) {
    std::memcpy(e.data, static_cast<const void*>(im), sizeof *im);
    e.head.info = sizeof *im;
    e.head.bytes = 0;
    return nullptr;
  }
  answer to{e, room};
  im->takes.scope = taken_along(*site.memory, im->takes.scope);
  GODWIT_ASSERT(heap::room_of(*im) >= sizeof(image) + bytes, "an image holds its stack");
  std::memcpy(answer_with(to, *im, bytes), im->bytes(), bytes);
  im->freed.store(freed_marked, std::memory_order_release);  // JH1
  return to.big;
}

std::byte* complete(void* place, entry& e, const answer_room& room) noexcept {
  call_site& site = site_of(place, e);
  completion what;
  std::memcpy(&what, e.data, sizeof what);
  const bool first = what.waiter == 0;
  if (first) {
    record* rec = site.memory->at<record>(e.head.b);
    GODWIT_ASSERT(rec->kind == object_kind::record, "a record is completed");
    what.waiter = rec->state.exchange(state_done, std::memory_order_acq_rel);  // JN1, JN2
    GODWIT_ASSERT(what.waiter != state_done, "a record is completed once");
  }
  e.head.result = what.waiter;
  if (!is_image(what.waiter) || what.near.holds(transport::ref_worker(what.waiter))) return nullptr;
  if (site.memory->near().holds(transport::ref_worker(what.waiter))) return take_waiter(site, what, e, room);
  GODWIT_ASSERT(first, "the call goes on once, to where the waiter is");
  std::memcpy(e.data, &what, sizeof what);
  e.head.target = transport::ref_worker(what.waiter);
  return nullptr;
}

void look(call_site& site, entry& e) noexcept {
  const victims all(site, e);
  for (std::uint32_t i = 0; i < all.count; ++i)
    if (has_work(site, all.number(i), e)) {
      e.head.result = static_cast<std::uint64_t>(sight::work);
      e.head.more[1] = 1;  // it will come back and take it
      return;
    }
  e.head.result = static_cast<std::uint64_t>(all.ask_for_work(site, e) ? sight::all_idle : sight::nothing);
}

void count_off(call_site& site, entry& e) noexcept {
  e.head.result = count_off_from(*site.memory->at<record>(e.head.b));
}

void ask(call_site& site, entry& e) noexcept {
  const cancel_answer found = ask_scopes(*site.memory, e.head.b);
  e.head.info = sizeof found;
  std::memcpy(e.data, static_cast<const void*>(&found), sizeof found);
}

void strand_off(call_site& site, entry& e) noexcept {
  e.head.result = count_strand_off(*site.memory, e.head.b);
}

void cancelled(call_site& site, entry&) noexcept {
  tell_host(*site.memory, *site.node);
  if (site.lazy) interrupt_host(*site.memory, site.words);
}

void nudge(call_site& site, entry& e) noexcept {
  ask_for_work(*site.memory, e.head.target);
  wake_all_of(*site.node);
}

void wave(call_site& site, entry&) noexcept {
  GODWIT_ASSERT(site.node->wave.load(std::memory_order_relaxed) == wave_none, "IN3: one wave at a time");
  site.node->wave.store(wave_asked, std::memory_order_seq_cst);
  wake_one_of(*site.node);
}

void wave_answer(call_site& site, entry& e) noexcept {
  const std::uint64_t more = e.head.b - 1;
  if (answers_missing(site.node->answers.fetch_add(more, std::memory_order_seq_cst) + more) == 0)
    wake_one_of(*site.node);
}

void shut_down(call_site& site, entry&) noexcept {
  site.node->shutdown.store(shutdown_told, std::memory_order_release);
  wake_all_of(*site.node);
}

/// The handler of a call whose answer fits into the entry.
template <void (*Do)(call_site&, entry&) noexcept>
std::byte* in_entry(void* place, entry& e, const answer_room&) noexcept {
  Do(site_of(place, e), e);
  return nullptr;
}

}  // namespace

void enter_calls(transport::far::call_table& table, call_site& site) {
  table.enter(call_no::steal, steal_any, &site);
  table.enter(call_no::look, in_entry<look>, &site);
  table.enter(call_no::read_record, in_entry<read_record>, &site);
  table.enter(call_no::complete, complete, &site);
  table.enter(call_no::release, in_entry<release_record>, &site);
  table.enter(call_no::release_read, in_entry<release_read_records>, &site);
  table.enter(call_no::count_off, in_entry<count_off>, &site);
  table.enter(call_no::ask_scopes, in_entry<ask>, &site);
  table.enter(call_no::count_strand_off, in_entry<strand_off>, &site);
  table.enter(call_no::cancelled, in_entry<cancelled>, &site);
  table.enter(call_no::nudge, in_entry<nudge>, &site);
  table.enter(call_no::wave, in_entry<wave>, &site);
  table.enter(call_no::wave_answer, in_entry<wave_answer>, &site);
  table.enter(call_no::shut_down, in_entry<shut_down>, &site);
}

}  // namespace godwit::sched
