// What shared mutexes do when somebody has to wait. docs/protocols/mutex.md.
//
// The word: lock bit of the list, writer, waiters, number of readers. With the lock bit or `waiters` set all
// fast paths fail, so whoever holds the lock bit is the only one that changes the word, and opens the list
// with its last access.
#include <godwit/shared_mutex.hpp>

#include "base/check.hpp"
#include "base/thread_sanitizer.hpp"

namespace godwit::detail {

/// Let in whom the state allows, in the order of the list. Gives back the word to store.
std::uint32_t basic_shared_mutex::grant(std::uint32_t word, wake_chain& woken) noexcept {
  GODWIT_ASSERT((word & wait_list::lock_bit) != 0, "whoever changes the word holds the list's lock");
  word &= ~(waiters | wait_list::lock_bit);
  for (wait_node* n = list_.first(); n != nullptr && (word & writer) == 0; n = list_.first()) {
    GODWIT_ASSERT(n->mark == writer || n->mark == reader, "who waits says what for");
    if (n->mark == writer && word != 0) break;  // readers are in
    word += n->mark;
    list_.pop(woken);
  }
  return word | (list_.empty() ? 0 : waiters);
}

/// The list's lock is held, and nobody is before us. True: we are in, and the list is open. False: the others
/// know that we wait.
bool basic_shared_mutex::enter(std::uint32_t who) noexcept {
  const std::uint32_t s = list_.word.load(std::memory_order_relaxed);
  const std::uint32_t in = s & ~(waiters | wait_list::lock_bit);
  if (list_.empty() && (in == 0 || (who == reader && (in & writer) == 0))) {
    list_.word.store(in + who, std::memory_order_release);
    return true;
  }
  list_.word.store(s | waiters, std::memory_order_relaxed);
  return false;
}

void basic_shared_mutex::wait(std::uint32_t who, const place& where) noexcept {
  wait_node n;
  n.mark = who;
  list_.lock();
  if (!enter(who)) list_.wait(n, who == writer ? "shared mutex" : "shared mutex (to read)", where);
  base::happens_after(&list_.word);
}

bool basic_shared_mutex::wait_until(std::uint32_t who, std::uint64_t deadline_ns,
                                    const place& where) noexcept {
  timed_node n(list_, deadline_ns);
  n.mark = who;
  list_.lock();
  const bool in =
      enter(who) || list_.wait(n, who == writer ? "shared mutex" : "shared mutex (to read)", where);
  base::happens_after(&list_.word);
  if (!in) leave(0);  // a writer that gives up may have held back readers
  return in;
}

/// Take @p who off the word and let in others.
void basic_shared_mutex::leave(std::uint32_t who) noexcept {
  base::happens_before(&list_.word);
  wake_chain woken;
  list_.lock();
  const std::uint32_t left = grant(list_.word.load(std::memory_order_relaxed) - who, woken);
  list_.word.store(left, std::memory_order_release);
  woken.wake();
}

void basic_shared_mutex::unlock_slow() noexcept { leave(writer); }
void basic_shared_mutex::unlock_shared_slow() noexcept { leave(reader); }

}  // namespace godwit::detail
