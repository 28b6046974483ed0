// Signals that wait: for a thread (pthread_kill, or given to it by signals.cpp), or for any (all threads
// blocked them when they came). As in the kernel, one of each kind, and any number of those from SIGRTMIN up.
// See signals.hpp.
#include <csignal>
#include <mutex>
#include <unistd.h>

#include "signals.hpp"

namespace godwit::pthread {

std::atomic<std::uint64_t> process_signals_{0};

namespace {

constexpr unsigned most = 1024;
constexpr int first_queued = 32;

struct item {
  thread* to;
  siginfo_t info;
  item* next;
};
item items_[most];
unsigned used_ = 0;
item* free_ = nullptr;
item* first_ = nullptr;
item* last_ = nullptr;
spin_lock lock_;

std::atomic<std::uint64_t>& word_of_thread(thread* t) noexcept {
  return t != nullptr ? t->signals : process_signals_;
}

/// Under lock_. With what is known of it, if that was kept.
void take_first(thread* to, int signal, siginfo_t& out) noexcept {
  item* before = nullptr;
  item* i = first_;
  while (i != nullptr && (i->to != to || i->info.si_signo != signal)) {
    before = i;
    i = i->next;
  }
  bool more = false;
  if (i == nullptr) {
    out = {};
    out.si_signo = signal;
    out.si_code = SI_USER;
  } else {
    out = i->info;
    (before != nullptr ? before->next : first_) = i->next;
    if (last_ == i) last_ = before;
    for (const item* k = i->next; k != nullptr; k = k->next)
      more = more || (k->to == to && k->info.si_signo == signal);
    i->next = free_;
    free_ = i;
  }
  if (!more) word_of_thread(to).fetch_and(~bit_of(signal), std::memory_order_seq_cst);
}

}  // namespace

bool add_signal(thread* to, const siginfo_t& info) noexcept {
  const all_blocked none;
  const std::lock_guard hold(lock_);
  auto& word = word_of_thread(to);
  const std::uint64_t bit = bit_of(info.si_signo);
  if ((word.load(std::memory_order_seq_cst) & bit) != 0 && info.si_signo < first_queued) return true;
  item* i = free_;
  if (i != nullptr)
    free_ = i->next;
  else if (used_ < most)
    i = &items_[used_++];
  if (i == nullptr && info.si_signo >= first_queued) return false;
  if (i != nullptr) {
    *i = {to, info, nullptr};
    (last_ != nullptr ? last_->next : first_) = i;
    last_ = i;
  }
  word.fetch_or(bit, std::memory_order_seq_cst);
  return true;
}

bool take_signal(thread& t, std::uint64_t wanted, bool process_too, siginfo_t& out) noexcept {
  if (((t.signals.load(std::memory_order_seq_cst) |
        (process_too ? process_signals_.load(std::memory_order_seq_cst) : 0)) &
       wanted) == 0)
    return false;
  const all_blocked none;
  const std::lock_guard hold(lock_);
  const std::uint64_t own = t.signals.load(std::memory_order_seq_cst) & wanted,
                      all = process_too ? process_signals_.load(std::memory_order_seq_cst) & wanted : 0;
  if ((own | all) == 0) return false;
  const int signal = __builtin_ctzll(own | all) + 1;
  take_first((own & bit_of(signal)) != 0 ? &t : nullptr, signal, out);
  return true;
}

void forget_signals(thread& t) noexcept {
  if (t.signals.load(std::memory_order_seq_cst) == 0) return;
  const all_blocked none;
  const std::lock_guard hold(lock_);
  siginfo_t info;
  while (const std::uint64_t left = t.signals.load(std::memory_order_seq_cst)) {
    const int signal = __builtin_ctzll(left) + 1;
    take_first(&t, signal, info);
    if (info.si_code != SI_TKILL) ::kill(::getpid(), signal);  // it was sent to the process: somebody else's
  }
}

void forget_all_signals() noexcept {
  lock_.unlock();
  process_signals_.store(0, std::memory_order_seq_cst);
  used_ = 0;
  free_ = first_ = last_ = nullptr;
}

}  // namespace godwit::pthread
