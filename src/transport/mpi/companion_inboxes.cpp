// Members of companion: what workers carry out themselves: in way am all that others ask of them, else what
// is to be delivered to them. See companion.hpp and
// docs/protocols/far.md, FA.
#include "transport/mpi/companion.hpp"

#include <atomic>
#include <cstring>

#include "base/check.hpp"
#include "base/clock.hpp"

namespace godwit::transport::mpi {

using far::entry;
using far::op;
using far::state;

void companion::fill_inbox(inbox& box, worker_no w) {
  while (!box.backlog.empty()) {
    mail& letter = box.backlog.front();
    const bool large = is_large_put(letter.text);  // not through the worker, but after what went before it
    if (!large) box.gone = box.gone || !setup_.services->runs(w);  // it has ended: its memory is still here
    if (large || box.gone) {
      if (!box.inside.empty()) return;  // first what it may still have been doing: serve_inboxes
      execute_here(letter.text, letter.from);
      box.backlog.pop_front();
      continue;
    }
    entry& e = words_of(w).inbox_entry(box.next);
    if (box.inside.size() == words_of(w).inbox_size() || e.now.load(std::memory_order_acquire) != state::free)
      return;
    if (base::planted("far.posted_first")) {
      e.now.store(state::posted, std::memory_order_release);
      base::schedule_point();
    }
    e.head = letter.text.head;
    std::memcpy(e.data, letter.text.data, letter.text.inline_bytes);
    if (!base::planted("far.posted_first")) e.now.store(state::posted, std::memory_order_release);  // FA1
    ++box.next;
    box.inside.splice(box.inside.end(), box.backlog, box.backlog.begin());
    setup_.services->alert(w);
    box.alerted_ns = base::now_ns();
  }
}

/// Whoever was starting, or was interrupted in the middle of the runtime, has not heard of it.
void companion::remind(inbox& box, worker_no w) {
  constexpr std::uint64_t patience_ns = 1'000'000;
  const std::uint64_t now = base::now_ns();
  if (now - box.alerted_ns < patience_ns) return;
  box.alerted_ns = now;
  setup_.services->alert(w);
}

bool companion::serve_inboxes() {
  bool any = false;
  for (std::uint32_t i = 0; i < setup_.served.count; ++i) {
    inbox& box = inboxes_[i];
    const worker_no w{setup_.served.first + i};
    while (!box.inside.empty()) {
      GODWIT_ASSERT(
          box.next - box.oldest == box.inside.size() && box.inside.size() <= words_of(w).inbox_size(),
          "entries of the inbox are filled and emptied in turn");
      entry& e = words_of(w).inbox_entry(box.oldest);
      const mail& letter = box.inside.front();
      box.gone = box.gone || !setup_.services->runs(w);  // before the entry: what it did last is there then
      const bool done = e.now.load(std::memory_order_acquire) == state::done;  // FA2
      if (!done) {
        if (!box.gone) {
          remind(box, w);
          break;
        }
        execute_here(letter.text, letter.from);
      } else if (!send_on(letter.text, e)) {
        const bool by_itself = e.head.what == op::call && e.head.more[0] != 0;
        answer(letter.text, letter.from, e, by_itself ? alias<std::byte>(w, e.head.address) : nullptr,
               nullptr, by_itself);
      }
      e.now.store(state::free, std::memory_order_release);
      ++box.oldest;
      box.inside.pop_front();
      any = true;
    }
    if (!box.backlog.empty()) fill_inbox(box, w);
  }
  return any;
}

}  // namespace godwit::transport::mpi
