// See port.hpp and docs/protocols/far.md. Orderings:
//   FA1  post: contents before now = posted (release);           companion: now (acquire) before contents
//   FA2  answer: contents before now = done (release);           worker: now (acquire) before contents
//   FA3  sleep: waiting (deaf) = 1, fence, look again, sleep;    answer: now = done, fence, look at waiting
//   FA4  begin again: all free, then ring[0] posted, it begins;  companion: the next one, then ring[0]
#include "transport/far/port.hpp"

#include "base/check.hpp"
#include "base/world.hpp"
#include "transport/shm/file_pages.hpp"

#include <algorithm>
#include <cstring>
#include <utility>

namespace godwit::transport::far {

void port::init(const shm::segment& memory, worker_no me, words* mine, words* bell_of, void (*idle)(void*),
                void* idle_arg, bool spin) noexcept {
  *this = port();
  memory_ = &memory;
  me_ = me;
  mine_ = mine;
  bell_ = bell_of;
  idle_ = idle;
  idle_arg_ = idle_arg;
  spin_ = spin;
}

/// With no request under way the next one is made at the ring's begin (FA4): as a rule always in one entry,
/// whose memory is in use. True: it is made there for that reason.
bool port::begin_again() noexcept {
  const auto used = static_cast<std::uint32_t>(std::min<std::uint64_t>(next_ - begun_, mine_->entries()));
  for (std::uint32_t i = used; i != 0; --i)
    if (mine_->entry_of(next_ - i).now.load(std::memory_order_relaxed) != state::free) return false;
  const std::uint32_t rest = mine_->slot_of(0 - next_);
  skipped_ += rest, begun_ = next_ += rest;
  return true;
}

void port::rest() noexcept {
  if (next_ == begun_ || mine_->ring_halvings == 0 || !begin_again()) return;
  shm::segment::discard(mine_->ring, mine_->entries() * sizeof(entry));
}

entry& port::prepare(op what, worker_no w, const void* at) noexcept {
  const bool begins = begin_again();
  entry& e = mine_->entry_of(next_++);
  // A request without an answer may still be under way here: wait until the companion has taken it. Or one of
  // begin: nobody will ask for its answer before this worker is back in its scheduler, so that it is put
  // aside.
  for (int i = 0;; ++i) {
    const state now = e.now.load(std::memory_order_acquire);
    if (now == state::free) break;
    if (now == state::done) {
      GODWIT_ASSERT(next_ > mine_->entries(), "an answer in the way belongs to an earlier request");
      kept_answer& kept = kept_.emplace_back();
      kept.ticket = next_ - 1 - mine_->entries();
      kept.answer.head = e.head;
      std::memcpy(kept.answer.data, e.data, sizeof e.data);
      e.now.store(state::free, std::memory_order_relaxed);
      break;
    }
    idle();
    if (spin_ && i < spins_before_sleep)
      base::pause();
    else
      base::give_way();
  }
  e.begins = begins ? 1 : 0;
  e.head = header{};
  e.head.what = what;
  e.head.target = w;
  e.head.address = reinterpret_cast<std::uint64_t>(at);
  return e;
}

void port::post(entry& e) noexcept {
  GODWIT_ASSERT(e.now.load(std::memory_order_relaxed) == state::free,
                "a request is posted into a free entry");
  e.now.store(state::posted, std::memory_order_release);  // FA1
  ring_bell(*bell_);
}

template <class F>
void port::wait_until(F&& done) noexcept {
  for (int i = 0; spin_ && i < spins_before_sleep && !done(); ++i) {
    idle();
    base::pause();
  }
  while (!done()) {
    const std::uint32_t seen = mine_->answers.load(std::memory_order_relaxed);
    mine_->waiting.store(1, std::memory_order_relaxed);
    base::fence();  // FA3
    idle();         // whoever posts into our inbox from now on wakes us
    if (!done()) sleep_on(mine_->answers, seen, 2000);
    mine_->waiting.store(0, std::memory_order_relaxed);
  }
}

void port::wait(entry& e) noexcept {
  GODWIT_ASSERT(e.now.load(std::memory_order_relaxed) != state::free, "who waits has asked");
  wait_until([&] { return e.now.load(std::memory_order_acquire) == state::done; });  // FA2
  e.now.store(state::free, std::memory_order_relaxed);                               // only this worker posts
}

const entry& port::ask(entry& e) noexcept {
  post(e);
  wait(e);
  return e;
}

std::uint64_t port::word_request(op what, worker_no w, const word* at, std::uint64_t a,
                                 std::uint64_t b) noexcept {
  GODWIT_ASSERT(what == op::fence || (reinterpret_cast<std::uintptr_t>(at) & (sizeof(word) - 1)) == 0,
                "a word is aligned");
  entry& e = prepare(what, w, at);
  e.head.a = a;
  e.head.b = b;
  return ask(e).head.result;
}

std::uint64_t port::load(worker_no w, const word* at) noexcept { return word_request(op::load, w, at, 0, 0); }
std::uint64_t port::exchange(worker_no w, const word* at, std::uint64_t v) noexcept {
  return word_request(op::exchange, w, at, v, 0);
}
std::uint64_t port::fetch_add(worker_no w, const word* at, std::uint64_t v) noexcept {
  return word_request(op::fetch_add, w, at, v, 0);
}
bool port::compare_exchange(worker_no w, const word* at, std::uint64_t& expected, std::uint64_t v) noexcept {
  const std::uint64_t before = word_request(op::compare_exchange, w, at, expected, v);
  const bool swapped = before == expected;
  expected = before;
  return swapped;
}
void port::store(worker_no w, const word* at, std::uint64_t v) noexcept {
  entry& e = prepare(op::store, w, at);
  e.head.a = v;
  post(e);
}
void port::fence(worker_no w) noexcept { word_request(op::fence, w, nullptr, 0, 0); }

entry& port::prepare_call(op what, worker_no w, std::uint64_t number, std::uint64_t argument,
                          std::uint64_t argument2, std::span<const std::byte> data) noexcept {
  GODWIT_ASSERT(data.size() <= inline_bytes, "what a call brings fits into a request");
  entry& e = prepare(what, w, nullptr);
  e.head.a = number;
  e.head.b = argument;
  e.head.more[0] = argument2;
  e.head.bytes = data.size();
  if (!data.empty()) std::memcpy(e.data, data.data(), data.size());
  return e;
}

const entry& port::call(worker_no w, std::uint64_t number, std::uint64_t argument, std::uint64_t argument2,
                        std::span<const std::byte> data) noexcept {
  return ask(prepare_call(op::call, w, number, argument, argument2, data));
}
const entry& port::call_by_block(worker_no w, std::uint64_t block, std::uint64_t number,
                                 std::uint64_t argument, std::span<const std::byte> data) noexcept {
  entry& e = prepare_call(op::call, w, number, argument, 0, data);
  e.head.more[2] = block;
  return ask(e);
}
void port::cast(worker_no w, std::uint64_t number, std::uint64_t argument, std::uint64_t argument2,
                std::span<const std::byte> data) noexcept {
  post(prepare_call(op::cast, w, number, argument, argument2, data));
}

void port::deliver(worker_no w, std::uint64_t number, std::span<const std::byte> data) noexcept {
  post(prepare_call(op::deliver, w, number, 0, 0, data));
}

// Bytes from or to private memory pass through the bounce buffer, in pieces that are under way while others
// are copied.
void port::get(worker_no w, void* to, const void* from, std::size_t n) noexcept {
  auto* at = static_cast<std::byte*>(to);
  const auto* source = static_cast<const std::byte*>(from);
  if (n <= inline_bytes || memory_->owns(to, n) || memory_->in_window(to)) {
    if (n == 0) return;
    entry& e = prepare(op::get, w, source);
    e.head.bytes = n;
    e.head.local = n <= inline_bytes ? 0 : reinterpret_cast<std::uint64_t>(at);
    ask(e);
    if (n <= inline_bytes) std::memcpy(at, e.data, n);
    return;
  }
  get_by_pieces(w, from, n,
                {at, [](void* to_begin, std::size_t offset, const std::byte* bytes, std::size_t now) {
                   std::memcpy(static_cast<std::byte*>(to_begin) + offset, bytes, now);
                 }});
}

void port::get_by_pieces(worker_no w, const void* from, std::size_t n, const taker& take) noexcept {
  const auto* source = static_cast<const std::byte*>(from);
  entry* under_way[bounce_pieces];
  std::size_t asked = 0, taken = 0;
  for (std::size_t i = 0; taken < n; ++i) {
    if (i >= bounce_pieces || asked == n) {  // the oldest
      const std::size_t now = std::min(n - taken, bounce_piece);
      const std::size_t slot = taken / bounce_piece % bounce_pieces;
      wait(*under_way[slot]);
      take.f(take.argument, taken, bounce() + slot * bounce_piece, now);
      taken += now;
    }
    if (asked == n) continue;
    const std::size_t now = std::min(n - asked, bounce_piece);
    const std::size_t slot = asked / bounce_piece % bounce_pieces;
    entry& e = prepare(op::get, w, source + asked);
    e.head.bytes = now;
    e.head.local = reinterpret_cast<std::uint64_t>(bounce() + slot * bounce_piece);
    under_way[slot] = &e;
    post(e);
    asked += now;
  }
}

void port::put(worker_no w, void* to, const void* from, std::size_t n) noexcept {
  auto* target = static_cast<std::byte*>(to);
  const auto* at = static_cast<const std::byte*>(from);
  if (n <= inline_bytes || memory_->owns(from, n) ||
      (memory_->in_window(from) && !shm::is_of_file(from))) {  // the companion sees them there, too
    if (n == 0) return;
    entry& e = prepare(op::put, w, target);
    e.head.bytes = n;
    if (n <= inline_bytes)
      std::memcpy(e.data, at, n);
    else
      e.head.local = reinterpret_cast<std::uint64_t>(at);
    post(e);
    if (n > inline_bytes) wait(e);
    return;
  }
  entry* under_way[bounce_pieces] = {};
  for (std::size_t done = 0; done < n; done += bounce_piece) {
    const std::size_t now = std::min(n - done, bounce_piece);
    const std::size_t slot = done / bounce_piece % bounce_pieces;
    if (under_way[slot] != nullptr) wait(*std::exchange(under_way[slot], nullptr));
    entry& e = prepare(op::put, w, target + done);
    e.head.bytes = now;
    if (now <= inline_bytes) {
      // The end of it, with an answer: a fence would be one more entry than the smallest ring has.
      std::memcpy(e.data, at + done, now);
      e.head.info = 1;
    } else {
      std::memcpy(bounce() + slot * bounce_piece, at + done, now);
      e.head.local = reinterpret_cast<std::uint64_t>(bounce() + slot * bounce_piece);
    }
    under_way[slot] = &e;
    post(e);
  }
  for (entry* e : under_way)
    if (e != nullptr) wait(*e);
}

namespace {
void fill_atomic(entry& e, atomic_function f, unsigned width, std::uint64_t a,
                 std::uint64_t expected) noexcept {
  GODWIT_ASSERT((width == 4 || width == 8) && (e.head.address & (width - 1)) == 0,
                "an atomic is of an aligned word");
  e.head.info = static_cast<std::uint64_t>(f);
  e.head.bytes = width;
  e.head.a = a;
  e.head.b = expected;
}
}  // namespace

std::uint64_t port::atomic(worker_no w, atomic_function f, const void* at, unsigned width, std::uint64_t a,
                           std::uint64_t expected) noexcept {
  entry& e = prepare(op::atomic, w, at);
  fill_atomic(e, f, width, a, expected);
  return ask(e).head.result;
}

/// The entry that prepare_one(i) gives is asked, then take(i, answer), in their order.
template <class Prepare, class Take>
void port::ask_all(std::size_t n, Prepare&& prepare_one, Take&& take) noexcept {
  entry* under_way[ring_entries];
  const std::size_t most = mine_->entries();
  for (std::size_t asked = 0, taken = 0; taken < n;) {
    if (asked < n && asked - taken < most) {
      entry& e = *(under_way[asked % most] = &prepare_one(asked));
      ++asked;
      post(e);
    } else {
      entry& e = *under_way[taken % most];
      wait(e);
      take(taken++, e);
    }
  }
}

void port::atomics(atomic_function f, const void* at, std::span<far_word> where) noexcept {
  ask_all(
      where.size(),
      [&](std::size_t i) -> entry& {
        entry& e = prepare(op::atomic, where[i].w, at);
        fill_atomic(e, f, 8, where[i].a, where[i].expected);
        return e;
      },
      [&](std::size_t i, const entry& e) { where[i].result = e.head.result; });
}

void port::discard(std::span<const worker_no> where, const void* at, std::uint64_t bytes) noexcept {
  ask_all(
      where.size(),
      [&](std::size_t i) -> entry& {
        entry& e = prepare(op::discard, where[i], at);
        e.head.a = bytes;
        return e;
      },
      [](std::size_t, const entry&) {});
}

const std::byte* port::gather(worker_no w, const piece* pieces, std::size_t count) noexcept {
  GODWIT_ASSERT(count * sizeof(piece) <= inline_bytes, "the list of pieces fits into a request");
  entry& e = prepare(op::gather, w, nullptr);
  e.head.bytes = count * sizeof(piece);
  std::memcpy(e.data, pieces, e.head.bytes);
  return ask(e).data;
}

void port::scatter(worker_no w, const std::byte* packed, std::size_t bytes) noexcept {
  GODWIT_ASSERT(bytes <= inline_bytes, "the pieces fit into a request");
  entry& e = prepare(op::scatter, w, nullptr);
  e.head.bytes = bytes;
  std::memcpy(e.data, packed, bytes);
  ask(e);
}

std::uint64_t port::begin(op what, worker_no w, const void* at, const void* data,
                          std::size_t bytes) noexcept {
  GODWIT_ASSERT(what == op::get || (what == op::put && bytes <= inline_bytes),
                "gets and small puts need not be waited for");
  GODWIT_ASSERT(bytes <= inline_bytes || memory_->owns(data, bytes) || memory_->in_window(data),
                "large bytes come to where companions reach");
  entry& e = prepare(what, w, at);
  e.head.bytes = bytes;
  if (bytes > inline_bytes) e.head.local = reinterpret_cast<std::uint64_t>(data);
  if (what == op::put) {
    std::memcpy(e.data, data, bytes);
    e.head.info = 1;  // with an answer
  }
  e.head.more[1] = 1;
  post(e);
  return next_ - 1;
}

const entry* port::ended(std::uint64_t ticket) const noexcept {
  for (const kept_answer& k : kept_)
    if (k.ticket == ticket) return &k.answer;
  GODWIT_ASSERT(ticket < next_ && next_ - ticket <= mine_->entries(),
                "an answer that was not kept is in the ring");
  const entry& e = mine_->entry_of(ticket);
  return e.now.load(std::memory_order_acquire) == state::done ? &e : nullptr;  // FA2
}

const entry& port::await(std::uint64_t ticket) noexcept {
  const entry* answer = nullptr;
  wait_until([&] { return (answer = ended(ticket)) != nullptr; });
  return *answer;
}

void port::forget(std::uint64_t ticket) noexcept {
  if (std::erase_if(kept_, [&](const kept_answer& k) { return k.ticket == ticket; }) != 0) return;
  mine_->entry_of(ticket).now.store(state::free, std::memory_order_relaxed);
}

}  // namespace godwit::transport::far
