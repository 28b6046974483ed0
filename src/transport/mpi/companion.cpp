// See companion.hpp and docs/protocols/far.md.
#include "transport/mpi/companion.hpp"

#include <algorithm>
#include <atomic>
#include <cstring>
#include <stdexcept>

#include "base/check.hpp"
#include "base/clock.hpp"
#include "base/world.hpp"
#include "transport/far/port.hpp"

namespace godwit::transport::mpi {

using far::entry;
using far::header;
using far::op;
using far::state;

namespace {
// One tag for everything small keeps the order of requests between two ranks: messages of one tag do not
// overtake.
constexpr int head_tag = 1;
constexpr int first_data_tag = 16;
// Never started over: a failed run may leave messages behind.
std::atomic<std::uint64_t> next_tag_{0};  // tests have companions in threads
constexpr std::size_t largest_message = std::size_t{1} << 30;
}  // namespace

const char* name_of(way w) noexcept {
  constexpr const char* names[] = {"rma", "server", "assist", "am"};
  return names[static_cast<std::uint32_t>(w)];
}

companion::companion(companion_setup setup) : setup_(std::move(setup)), ring_(new posted[setup_.receives]) {
  for (std::uint32_t i = 0; i < setup_.served.count; ++i)
    next_.push_back(words_of(worker_no{setup_.served.first + i}).ring);
  started_ns_.resize(std::size_t{setup_.served.count} * far::ring_entries);
  inboxes_.resize(setup_.served.count);
  for (std::size_t i = 0; i < setup_.receives; ++i)
    check(setup_.mpi->irecv(&ring_[i].text, sizeof(message), any_source, head_tag, &ring_[i].op), "receive");
}

companion::~companion() {
  for (std::size_t i = 0; i < setup_.receives; ++i) setup_.mpi->cancel(&ring_[i].op);
  for (auto& r : receives_) setup_.mpi->cancel(&r.op);
}

void companion::check(int code, const char* what) const {
  if (code == 0) return;
  char text[512];
  setup_.mpi->error_text(code, text, sizeof text);
  throw std::runtime_error(std::string("godwit: MPI failed to ") + what + ": " + text);
}

bool companion::turn() {
  bool any = take_requests();
  any |= receive();
  if (setup_.by_block != nullptr) any |= setup_.by_block->turn(*this);
  if (!receives_.empty()) any |= finish_receives();
  if (!sends_.empty()) any |= finish_sends();
  if (!inboxes_.empty()) any |= serve_inboxes();
  if (!writes_.empty() && base::now_ns() - first_write_ns_ >= flush_after_ns) {
    complete_writes();
    any = true;
  }
  return any;
}

// ---------------------------------------------------------------- requests of our workers

/// The next request of the served worker of that number, or null. It is where the ring goes on; or where it
/// begins, if all before it had ended (FA4).
entry* companion::posted_by(std::uint32_t served) const noexcept {
  const auto is_posted = [](const entry* e) {
    return e->now.load(std::memory_order_acquire) == state::posted;  // FA1
  };
  entry* const next = next_[served];
  entry* const first = words_of(worker_no{setup_.served.first + served}).ring;
  const bool goes_on = is_posted(next);  // before the look at the other one, which may be older
  if (next != first && is_posted(first) && first->begins != 0) return first;
  return goes_on ? next : nullptr;
}

/// Of bytes that may travel by themselves. Drawn by the asker. Bytes of a put come from it, those of an
/// answer go to it: two ranges, or two ranks that draw the same number would mix them up. A tag comes again
/// when all have been drawn, and messages of the first time may be there: so none is drawn in vain.
std::uint32_t companion::draw_tag(const header& h) const noexcept {
  const bool large = (h.what == op::get || h.what == op::put) && h.bytes > far::inline_bytes;
  if (!large && h.what != op::call) return 0;
  const auto tags = static_cast<std::uint32_t>(setup_.largest_tag - first_data_tag) / 2;
  return first_data_tag + 2 * static_cast<std::uint32_t>(next_tag_++ % tags) + (h.what == op::put ? 0 : 1);
}

bool companion::take_requests() {
  bool any = false;
  for (std::uint32_t i = 0; i < setup_.served.count; ++i) {
    const worker_no w{setup_.served.first + i};
    while (entry* const posted = posted_by(i)) {
      entry& e = *posted;
      far::words& words = words_of(w);
      const auto slot = static_cast<std::uint32_t>(&e - words.ring);
      next_[i] = &words.entry_of(slot + 1);
      e.now.store(state::taken, std::memory_order_relaxed);
      start(w, e, slot);
      any = true;
    }
  }
  return any;
}

void companion::start(worker_no w, entry& e, std::uint32_t slot) {
  const bool answered = has_answer(e.head);
  GODWIT_ASSERT(index(e.head.target) < setup_.answers_for.size(), "a request is for a worker of the run");
  GODWIT_ASSERT(far::inline_of_request(e.head) <= far::inline_bytes, "what travels inline has room there");
  if (answered) ++unanswered_;
  if (e.head.what == op::call)
    started_ns_[(index(w) - setup_.served.first) * far::ring_entries + slot] = base::now_ns();
  if (setup_.by_block != nullptr && net::channel::takes(e.head)) return setup_.by_block->ask(w, e, slot);
  const int to = setup_.answers_for[index(e.head.target)];
  if (setup_.how == way::rma) {
    const bool one_sided = goes_by_rma(e.head);
    // Requests to one target stay in order, and a fence is for all.
    if (!one_sided || std::ranges::any_of(writes_, [&](const write& x) { return x.target == to; }))
      complete_writes();
    if (one_sided) {
      by_rma(w, e, to);
      if (answered) {
        check(setup_.mpi->flush(&setup_.window, to), "flush");
        return finish(w, slot);
      }
      if (writes_.empty()) first_write_ns_ = base::now_ns();
      writes_.push_back({to, &e});
      return;
    }
  }
  const message_head request{.what = kind::request,
                             .epoch = setup_.epoch,
                             .asker = index(w),
                             .slot = slot,
                             .data_tag = draw_tag(e.head),
                             .inline_bytes = static_cast<std::uint32_t>(far::inline_of_request(e.head)),
                             .head = e.head};
  const auto tag = static_cast<int>(request.data_tag);
  const bool large = request.head.bytes > far::inline_bytes;
  if (request.head.what == op::get && large)
    expect_bytes(to, tag, alias<std::byte>(w, request.head.local), request.head.bytes, request);
  send(to, request, e.data);
  if (!answered) e.now.store(state::free, std::memory_order_release);
  if (request.head.what == op::deliver) mood_ = mood::wrote;
  if (request.head.what == op::put && large)
    send_bytes(to, tag, alias<std::byte>(w, request.head.local), request.head.bytes, {});
}

bool companion::goes_by_rma(const header& h) const noexcept {
  if (setup_.memory->in_window(reinterpret_cast<const void*>(h.address))) return false;  // not an RMA one
  switch (h.what) {
    case op::load:
    case op::store:
    case op::get:
    case op::put:
      return true;
    case op::exchange:
    case op::fetch_add:
    case op::compare_exchange:
      return setup_.rma_atomics;
    case op::fence:  // casts went by message
    case op::call:
    case op::cast:
    case op::atomic:
    case op::gather:
    case op::scatter:
    case op::discard:
    case op::deliver:
      return false;
  }
  __builtin_unreachable();
}

/// Not complete before it is flushed.
void companion::by_rma(worker_no w, entry& e, int target) {
  const component& mpi = *setup_.mpi;
  const std::uint64_t displacement =
      setup_.memory->where().span *
          (index(e.head.target) - setup_.first_worker[static_cast<std::size_t>(target)]) +
      setup_.memory->offset_in_any(reinterpret_cast<const void*>(e.head.address));
  const rma_window& win = setup_.window;
  std::byte* const here = e.head.local != 0 ? alias<std::byte>(w, e.head.local) : e.data;
  switch (e.head.what) {
    case op::load:
      check(mpi.get(&win, &e.head.result, 8, target, displacement), "get");
      break;
    case op::store:
      check(mpi.put(&win, &e.head.a, 8, target, displacement), "put");
      break;
    case op::get:
      check(mpi.get(&win, here, e.head.bytes, target, displacement), "get");
      break;
    case op::put:
      check(mpi.put(&win, here, e.head.bytes, target, displacement), "put");
      break;
    case op::exchange:
      check(mpi.fetch_op(&win, rma_op::replace, &e.head.a, &e.head.result, target, displacement), "exchange");
      break;
    case op::fetch_add:
      check(mpi.fetch_op(&win, rma_op::add, &e.head.a, &e.head.result, target, displacement),
            "fetch and add");
      break;
    case op::compare_exchange:
      check(mpi.compare_swap(&win, &e.head.b, &e.head.a, &e.head.result, target, displacement),
            "compare and swap");
      break;
    default:
      GODWIT_CHECK(false, "goes_by_rma has said so: %u", static_cast<unsigned>(e.head.what));
  }
}

void companion::complete_writes() {
  for (const write& x : writes_) {
    check(setup_.mpi->flush(&setup_.window, x.target), "flush");
    x.from->now.store(state::free, std::memory_order_release);
  }
  writes_.clear();
}

void companion::finish(worker_no asker, std::uint32_t slot) {
  GODWIT_ASSERT(setup_.served.holds(asker) && slot < far::ring_entries, "answers go to who asked");
  GODWIT_ASSERT(unanswered_ != 0, "each request is answered once");
  far::words& words = words_of(asker);
  GODWIT_ASSERT(words.ring[slot].now.load(std::memory_order_relaxed) == state::taken,
                "what is answered was taken");
  header& head = words.ring[slot].head;
  if (head.what == op::call)
    head.more[2] =
        base::now_ns() - started_ns_[(index(asker) - setup_.served.first) * far::ring_entries + slot];
  // the head is the worker's again after FA2
  const bool unawaited = head.what != op::call && head.more[1] != 0;
  words.ring[slot].now.store(state::done, std::memory_order_release);  // FA2
  base::fence();                                                       // FA3
  if (words.waiting.load(std::memory_order_relaxed) != 0) {
    words.answers.fetch_add(1, std::memory_order_release);
    far::wake_sleepers(words.answers);
  }
  --unanswered_;
  if (unawaited) setup_.services->alert(asker);
}

// ---------------------------------------------------------------- messages

companion::message_head companion::reply_to(const message_head& m) noexcept {
  message_head reply = m;
  reply.what = kind::reply;
  reply.inline_bytes = 0;
  return reply;
}

// No more memory than the message has: a companion that has much to do has many under way.
void companion::send(int to, const message_head& head, const std::byte* data) {
  const std::size_t bytes = sizeof head + head.inline_bytes;
  outgoing out;
  out.text.reset(new std::byte[bytes]);
  std::memcpy(out.text.get(), &head, sizeof head);
  if (head.inline_bytes != 0) std::memcpy(out.text.get() + sizeof head, data, head.inline_bytes);
  check(setup_.mpi->isend(out.text.get(), bytes, to, head_tag, &out.op), "send");
  sends_.push_back(std::move(out));
}

// Bytes of any length as messages of up to 1 GiB of one tag; both sides cut alike. What depends on the
// transfer is done when all pieces are.
void companion::send_bytes(int to, int tag, const std::byte* from, std::size_t bytes, outgoing extra) {
  const auto whole = std::make_shared<outgoing>(std::move(extra));
  for (std::size_t done = 0; done < bytes; done += largest_message) {
    outgoing out;
    out.part_of = whole;
    check(setup_.mpi->isend(from + done, std::min(largest_message, bytes - done), to, tag, &out.op), "send");
    sends_.push_back(std::move(out));
  }
}

void companion::expect_bytes(int from, int tag, std::byte* to, std::size_t bytes, const message_head& about) {
  const auto whole = std::make_shared<transfer>(transfer{about, from});
  for (std::size_t done = 0; done < bytes; done += largest_message) {
    incoming in;
    in.part_of = whole;
    ++whole->left;
    check(setup_.mpi->irecv(to + done, std::min(largest_message, bytes - done), from, tag, &in.op),
          "receive");
    receives_.push_back(std::move(in));
  }
}

/// Takes out what is complete, and calls then(it). True: there was something.
template <class Operation, class F>
bool companion::take_complete(std::deque<Operation>& all, const char* what, F then) {
  bool any = false;
  for (std::size_t i = 0; i < all.size();) {
    bool done = false;
    check(setup_.mpi->test(&all[i].op, &done, nullptr, nullptr, nullptr), what);
    if (!done) {
      ++i;
      continue;
    }
    const Operation complete = std::move(all[i]);
    all.erase(all.begin() + static_cast<std::ptrdiff_t>(i));
    any = true;
    then(complete);
  }
  return any;
}

bool companion::finish_sends() {
  return take_complete(sends_, "complete a send", [&](const outgoing& out) {
    const auto& whole = out.part_of;
    if (whole && whole.use_count() == 1 && whole->workers_room != nullptr)
      setup_.services->release_room(whole->room_of, whole->workers_room);
  });
}

bool companion::finish_receives() {
  return take_complete(receives_, "complete a receive", [&](const incoming& piece) {
    transfer& in = *piece.part_of;
    GODWIT_ASSERT(in.left != 0, "a transfer has as many pieces as were counted");
    if (--in.left != 0) return;
    if (in.about.head.what == op::put) {  // the bytes of another's put have arrived here
      base::fence();
      send(in.from, reply_to(in.about), nullptr);
    } else {
      finish(worker_no{in.about.asker}, in.about.slot);
    }
  });
}

bool companion::receive() {
  bool any = false;
  for (;;) {
    posted& head = ring_[ring_head_];
    bool done = false;
    int from = 0;
    std::size_t bytes = 0;
    check(setup_.mpi->test(&head.op, &done, &from, nullptr, &bytes), "receive");
    if (!done) return any;
    any = true;
    const message& m = head.text;
    if (bytes >= sizeof(message_head) && m.epoch == setup_.epoch) {
      switch (m.what) {
        case kind::request:
          handle_request(m, setup_.answers_for[m.asker]);  // it may have been sent on by another
          break;
        case kind::reply:
          handle_reply(m, from);
          break;
        case kind::failed:
          if (told_.status == 0)
            told_ = {static_cast<int>(m.head.a),
                     std::string(reinterpret_cast<const char*>(m.data), m.inline_bytes)};
          break;
      }
    }
    check(setup_.mpi->irecv(&head.text, sizeof(message), any_source, head_tag, &head.op), "receive");
    ring_head_ = (ring_head_ + 1) % setup_.receives;
  }
}

bool companion::is_large_put(const message_head& m) noexcept {
  return m.head.what == op::put && m.head.bytes > far::inline_bytes;
}

void companion::handle_request(const message& m, int from) {
  if (mood_ == mood::quiet) mood_ = mood::served;
  if (setup_.how == way::am || m.head.what == op::deliver) {
    const worker_no target = m.head.target;
    GODWIT_ASSERT(setup_.served.holds(target), "a rank answers for its own workers");
    inbox& box = inboxes_[index(target) - setup_.served.first];
    box.backlog.push_back({m, from});
    fill_inbox(box, target);
  } else {
    execute_here(m, from);
  }
}

void companion::execute_here(const message& m, int from) {
  if (m.head.what == op::deliver) return;  // the worker is gone: so is the run, without its end
  if (is_large_put(m)) {
    expect_bytes(from, static_cast<int>(m.data_tag), alias<std::byte>(m.head.target, m.head.address),
                 m.head.bytes, m);
    return;
  }
  entry e;
  e.head = m.head;
  std::memcpy(e.data, m.data, m.inline_bytes);
  std::unique_ptr<std::byte[]> room;
  std::byte* big = nullptr;
  if (m.head.what == op::call || m.head.what == op::cast) {
    const std::uint64_t before = base::now_ns();
    big = setup_.services->carry_out(e, room);
    e.head.more[3] = base::now_ns() - before;
    if (send_on(m, e)) return;
    if (e.head.more[1] != 0) mood_ = mood::expects;
  } else
    far::execute_on(*setup_.memory, e.head, e.data);
  answer(m, from, e, big, std::move(room), false);
}

/// Who was asked may name another worker instead of answering @p m (calls.hpp). False: it has answered.
bool companion::send_on(const message& m, const entry& e) {
  if (e.head.target == m.head.target) return false;
  GODWIT_ASSERT(m.head.what == op::call, "calls are sent on: their answers go to who asked");
  GODWIT_ASSERT(index(e.head.target) < setup_.answers_for.size() &&
                    setup_.answers_for[index(e.head.target)] != setup_.rank,
                "a call is sent on to a worker of another host");
  message_head on = m;
  on.head.target = e.head.target;
  send(setup_.answers_for[index(e.head.target)], on, e.data);
  return true;
}

/// @p e holds the answer to @p m. @p big: bytes of a call's answer that are not in e.data.
void companion::answer(const message& m, int from, entry& e, std::byte* big,
                       std::unique_ptr<std::byte[]> room, bool workers_room) {
  const op what = m.head.what;
  GODWIT_ASSERT(what != op::call || e.head.info + (big == nullptr ? e.head.bytes : 0) <= far::inline_bytes,
                "an answer has room where it is");
  if (!has_answer(m.head)) return;
  const auto tag = static_cast<int>(m.data_tag);
  const bool get = what == op::get;
  const std::byte* source = get ? alias<std::byte>(m.head.target, m.head.address) : nullptr;
  if (get && m.head.bytes > far::inline_bytes) {  // straight from where they are: no other answer
    send_bytes(from, tag, source, m.head.bytes, {});
    return;
  }
  message_head reply = reply_to(m);
  reply.head = e.head;
  reply.head.what = what;
  std::size_t here = 0;  // bytes that travel along
  if (get)
    here = m.head.bytes;
  else if (what == op::gather)
    here = e.head.info;
  else if (what == op::call)
    here = e.head.info + (big == nullptr ? e.head.bytes : 0);
  reply.inline_bytes = static_cast<std::uint32_t>(here);
  send(from, reply, get ? source : e.data);
  if (big != nullptr) {
    outgoing extra;
    extra.room = std::move(room);
    if (workers_room) {
      extra.workers_room = big;
      extra.room_of = m.head.target;
    }
    send_bytes(from, tag, big, e.head.bytes, std::move(extra));
  }
}

void companion::handle_reply(const message& m, int from) {
  const worker_no asker{m.asker};
  GODWIT_ASSERT(setup_.served.holds(asker) && m.slot < far::ring_entries, "answers go to who asked");
  GODWIT_ASSERT(m.inline_bytes <= far::inline_bytes, "what travels inline has room there");
  entry& e = words_of(asker).ring[m.slot];
  e.head.result = m.head.result;
  if (m.head.what == op::get) {
    std::memcpy(e.head.local != 0 ? alias<std::byte>(asker, e.head.local) : e.data, m.data, m.inline_bytes);
  } else if (m.head.what == op::gather) {
    std::memcpy(e.data, m.data, m.inline_bytes);
  } else if (m.head.what == op::call) {
    e.head.bytes = m.head.bytes;
    e.head.info = m.head.info;
    e.head.more[3] = m.head.more[3];
    std::memcpy(e.data, m.data, m.inline_bytes);
    if (m.inline_bytes < m.head.info + m.head.bytes) {  // the bytes come by themselves, to where they belong
      expect_bytes(from, static_cast<int>(m.data_tag), alias<std::byte>(asker, m.head.local), m.head.bytes,
                   m);
      return;
    }
  }
  finish(asker, m.slot);
}

void companion::tell_failure(const failure& why) {
  if (told_.status == 0) told_ = why;
  for (int r = 0; r < setup_.size; ++r) {
    if (r == setup_.rank) continue;
    message_head m{.what = kind::failed, .epoch = setup_.epoch};
    m.head.a = static_cast<std::uint64_t>(why.status);
    m.inline_bytes = static_cast<std::uint32_t>(std::min(why.message.size(), far::inline_bytes));
    send(r, m, reinterpret_cast<const std::byte*>(why.message.data()));
  }
}

}  // namespace godwit::transport::mpi
