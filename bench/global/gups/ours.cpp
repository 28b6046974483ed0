// The updates on global memory: by values, by atomics, and in batches, which need few messages where hosts
// are several.

#include <array>

#include "gups.hpp"

namespace gups {

namespace gw = godwit;

namespace {

using table = gw::global_ptr<std::uint64_t>;

table word(table t, std::uint64_t i) { return t + static_cast<std::ptrdiff_t>(i); }

void by_values(table t, std::uint64_t mask, std::uint64_t low, std::uint64_t high) {
  std::uint64_t r = at(low + 1);
  for (std::uint64_t i = low; i < high; ++i, r = next(r)) {
    const table p = word(t, r & mask);
    gw::put(p, gw::get(p) ^ r);
  }
}

void by_atomics(table t, std::uint64_t mask, std::uint64_t low, std::uint64_t high) {
  std::uint64_t r = at(low + 1);
  for (std::uint64_t i = low; i < high; ++i, r = next(r))
    gw::atomic_fetch_xor(word(t, r & mask), r, std::memory_order_relaxed);
}

/// A word that comes twice in a batch, or in those of two workers at once, loses an update: HPCC's 1 % is for
/// that.
void by_batches(table t, std::uint64_t mask, std::uint64_t low, std::uint64_t high, std::uint64_t batch) {
  std::array<table, most_batch> where;
  std::array<std::uint64_t, most_batch> value, numbers;
  std::uint64_t r = at(low + 1);
  for (std::uint64_t i = low; i < high;) {
    const std::uint64_t n = std::min(batch, high - i);
    for (std::uint64_t k = 0; k < n; ++k, r = next(r)) {
      numbers[k] = r;
      where[k] = word(t, r & mask);
    }
    const std::span<const table> places(where.data(), n);
    gw::gather(places, std::span<std::uint64_t>(value.data(), n));
    for (std::uint64_t k = 0; k < n; ++k) value[k] ^= numbers[k];
    gw::scatter(std::span<const std::uint64_t>(value.data(), n), places);
    i += n;
  }
}

void update(const settings& s, table t, way how) {
  const std::uint64_t mask = s.words - 1;
  parts::halves(0, s.updates, s.grain, [=, batch = s.batch](std::uint64_t low, std::uint64_t high) {
    switch (how) {
      case way::values:
        return by_values(t, mask, low, high);
      case way::atomics:
        return by_atomics(t, mask, low, high);
      case way::batches:
        return by_batches(t, mask, low, high, batch);
    }
  });
}

/// Atomic updates restore exactly. Between hosts each is a round trip, so batches undo batches there, and
/// what they lose counts as well.
way check_by(const settings& s, table t, way how) {
  return how == way::batches && gw::try_local(t, s.words) == nullptr ? way::batches : way::atomics;
}

}  // namespace

outcome ours(const settings& s, way how) {
  constexpr std::uint64_t page_bytes = page_words * sizeof(std::uint64_t);
  gw::distribution d = gw::distribution::cyclic(page_bytes);
  if (s.movable) d.movable(page_bytes);
  const table t = gw::allocate<std::uint64_t>(s.words, d);
  const std::uint64_t grain = std::min(s.words, page_words * 16);
  parts::halves(0, s.words, grain, [=](std::uint64_t low, std::uint64_t high) {
    const auto x = gw::checkout(word(t, low), high - low, gw::access::write);
    for (std::uint64_t i = 0; i < high - low; ++i) x[i] = low + i;
  });
  outcome out;
  out.updates = parts::measured([&] { update(s, t, how); });
  update(s, t, check_by(s, t, how));
  out.wrong =
      parts::sum_of_halves<std::uint64_t>(0, s.words, grain, [=](std::uint64_t low, std::uint64_t high) {
        const auto x = gw::checkout(word(t, low), high - low, gw::access::read);
        std::uint64_t wrong = 0;
        for (std::uint64_t i = 0; i < high - low; ++i) wrong += x[i] != low + i;
        return wrong;
      });
  gw::deallocate(t, s.words);
  return out;
}

}  // namespace gups
