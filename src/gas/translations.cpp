// See translations.hpp.
#include "gas/translations.hpp"

#include "base/check.hpp"
#include "base/lock.hpp"
#include "base/unexposed.hpp"

#include <algorithm>

namespace godwit::gas {

using choice::translations_lock;
using choice::translations_replace;

translation_table::translation_table(const translation_setup& how)
    : how_(how), count_(sets_of(how.entries)), sets_(reinterpret_cast<set*>(how.shared)) {
  GODWIT_CHECK(how.entries != 0, "a table has entries");
  GODWIT_CHECK((how.lock == translations_lock::none) == (how.shared == nullptr),
               "a table with a lock is the host's");
  if (sets_ != nullptr) return;
  own_.reset(new set[count_]());
  sets_ = own_.get();
}

/// f(s), with the lock that it needs.
template <class F>
bool translation_table::with_lock(set& s, F&& f) noexcept {
  if (how_.lock == translations_lock::none) return f();
  const base::unexposed inside;
  std::atomic<std::uint32_t>& word = how_.lock == translations_lock::single_lock ? sets_[0].lock : s.lock;
  base::lock(word, base::holder());
  const bool result = f();
  base::unlock(word, base::holder());
  return result;
}

bool translation_table::find(const place_words* part, std::uint64_t age, std::uint64_t& owner) noexcept {
  set& s = set_of(part);
  return with_lock(s, [&] {
    for (entry& e : s.of) {
      if (e.part != part || e.age != age) continue;
      if (how_.replace == translations_replace::lru) e.used = ++s.clock;
      owner = e.owner;
      return true;
    }
    return false;
  });
}

bool translation_table::enter(const place_words* part, std::uint64_t age, std::uint64_t owner) noexcept {
  set& s = set_of(part);
  return with_lock(s, [&] {
    entry* at =
        std::find_if(std::begin(s.of), std::end(s.of), [&](const entry& e) { return e.part == part; });
    if (at == std::end(s.of)) at = &victim(s, ways_of(s));
    const bool other = at->part != nullptr && at->part != part && at->age == age;
    const bool random = how_.replace == translations_replace::random;
    *at = {part, age, owner, random ? 0 : ++s.clock};
    return other;
  });
}

/// The entry of a set that becomes another's.
translation_table::entry& translation_table::victim(set& s, std::uint64_t ways) const noexcept {
  entry* const end = s.of + ways;
  entry* const empty = std::find_if(s.of, end, [](const entry& e) { return e.part == nullptr; });
  if (empty != end) return *empty;
  if (how_.replace == translations_replace::lru)
    return *std::min_element(s.of, end, [](const entry& x, const entry& y) { return x.used < y.used; });
  s.clock = s.clock * 6364136223846793005 + 1442695040888963407;
  return s.of[(s.clock >> 33) % ways];
}

namespace {
/// Of entries: memory that is given out again has new parts at the same addresses.
std::uint64_t age_of(const reach& net) noexcept { return net.host().reuses.load(std::memory_order_acquire); }
}  // namespace

/// A home has its own directory, and who had a part knows who took it.
translations::found translations::find(const reach& net, const part& p) noexcept {
  const ownership flat = p.place(net).owner(p.home);
  if (table_ == nullptr || net.is_near(p.home)) return {flat, true};
  if (std::uint64_t owner = 0; table_->find(p.words, age_of(net), owner)) {
    const ownership who = ownership::from(owner, p.home);
    return {net.is_near(who.worker) ? flat : who, true};
  }
  if (table_->enter(p.words, age_of(net), 0)) ++stats_.translation_evictions;
  return {{0, p.home}, false};
}

void translations::look_up(const reach& net, part& p) noexcept {
  GODWIT_ASSERT(p.words != nullptr, "only what moves needs a translation");
  const found f = find(net, p);
  p.guess_from(net, f.who);
  p.guess = f.known ? part::guesses::known : part::guesses::unknown;
}

void translations::answered(const reach& net, part& p, const place_answer& said) noexcept {
  const std::uint32_t hops = said.hops - std::min<std::uint32_t>(said.hops, p.redirects);
  if (p.guess != part::guesses::none) {
    ++stats_.translations;
    const bool right = hops == 0 && said.what != place_says::elsewhere;
    ++(p.guess == part::guesses::unknown ? stats_.translation_misses
       : right                           ? stats_.translation_hits
                                         : stats_.translation_stale);
    p.guess = part::guesses::none;
  }
  stats_.forwards += hops;
  if (hops != 0 && said.what == place_says::done) learn(net, p, ownership::from(said.owner, p.home));
}

void translations::learn(const reach& net, const part& p, ownership told) noexcept {
  p.place(net).learn(told);  // MV1
  if (table_ != nullptr && !net.is_near(p.home) && table_->enter(p.words, age_of(net), told.packed()))
    ++stats_.translation_evictions;
}

std::uint32_t translations::guess(const reach& net, const part& p) noexcept {
  const found f = find(net, p);
  ++stats_.translations;
  ++(f.known ? stats_.translation_hits : stats_.translation_misses);
  return f.who.worker;
}

}  // namespace godwit::gas
