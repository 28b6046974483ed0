// See leaks.hpp.
#include "heap/leaks.hpp"

#include "heap/heap.hpp"
#include "heap/private_pages.hpp"
#include "heap/record.hpp"
#include "heap/site_lines.hpp"

#include <algorithm>
#include <cstdio>
#include <utility>
#include <vector>

namespace godwit::heap {

namespace {

constexpr std::size_t most_sites = 40;  // whose lines are looked for: the largest

/// Calls f(block) of all blocks that small or large runs have, in use or not.
template <class F>
void each_block(F&& f) {
  const common& all = *here.all;
  for (std::uint64_t i = 0; i < all.fresh; i += all.table[i].spans) {
    const span& s = all.table[i];
    if (s.kind == run_kind::large) f(bytes_of(&s));
    if (s.kind != run_kind::small) continue;
    for (std::uint32_t b = 0; b < s.fresh; ++b) f(bytes_of(&s) + std::uint64_t{b} * s.block_bytes);
  }
}

/// From words of memory to the blocks that they point to, and on.
class search {
 public:
  search() {
    const common& all = *here.all;
    for (std::uint64_t i = 0; i < all.fresh; i += all.table[i].spans)
      if (const run_kind k = all.table[i].kind; k == run_kind::small || k == run_kind::large)
        runs_.push_back(all.table + i);
  }

  void follow(const std::byte* begin, const std::byte* end) {
    look_at(begin, end);
    while (!found_.empty()) {
      const auto [at, bytes] = found_.back();
      found_.pop_back();
      look_at(at, at + bytes);
    }
  }

 private:
  void look_at(const std::byte* begin, const std::byte* end) {
    const auto* word = reinterpret_cast<void* const*>(begin);
    for (auto n = static_cast<std::size_t>(end - begin) / sizeof(void*); n != 0; --n, ++word)
      if (here.holds(*word) && static_cast<const void*>(word) != &here.begin)  // which owns nothing
        reach(static_cast<const std::byte*>(*word));
  }

  void reach(const std::byte* to) {
    const auto behind = std::upper_bound(runs_.begin(), runs_.end(), span_at(to));
    if (behind == runs_.begin()) return;
    const span& s = *behind[-1];
    const std::byte* const first = bytes_of(&s);
    const auto offset = static_cast<std::uint64_t>(to - first);
    if (offset >= std::uint64_t{s.spans} << span_bits) return;
    const std::byte* const block =
        s.kind == run_kind::large ? first : first + offset / s.block_bytes * s.block_bytes;
    // Whoever marks it looks at it: workers search at the same time.
    std::atomic<std::uint64_t>& word = here.all->recorded->of(block).word;
    std::uint64_t was = word.load(std::memory_order_relaxed);
    do
      if ((was & record::in_use) == 0 || (was & record::reached) != 0) return;
    while (!word.compare_exchange_weak(was, was | record::reached, std::memory_order_relaxed));
    found_.emplace_back(block, record::bytes_of(was));
  }

  std::vector<const span*> runs_;  // by address
  std::vector<std::pair<const std::byte*, std::uint64_t>> found_;
};

/// Blocks that one line has allocated, and callers of most of its bytes.
struct leak : site_line {
  sum left;
};

bool has_more(const sum& a, const sum& b) noexcept { return a.bytes > b.bytes; }

/// @p sites: their numbers, and what each has left.
void print_leaks(const allocations& all, std::vector<std::pair<std::uint32_t, sum>> sites) {
  std::stable_sort(sites.begin(), sites.end(),
                   [](const auto& a, const auto& b) { return has_more(a.second, b.second); });
  std::vector<leak> leaks;
  sum rest;
  for (std::size_t i = 0; i < sites.size(); ++i) {
    if (i >= most_sites) {
      rest.add(sites[i].second);
      continue;
    }
    leak l{line_of(all.sites.rows[sites[i].first].callers), sites[i].second};
    const auto same =
        std::find_if(leaks.begin(), leaks.end(), [&](const leak& o) { return o.place == l.place; });
    if (same != leaks.end())
      same->left.add(l.left);
    else
      leaks.push_back(std::move(l));
  }
  std::stable_sort(leaks.begin(), leaks.end(),
                   [](const leak& a, const leak& b) { return has_more(a.left, b.left); });
  if (rest.blocks != 0) leaks.push_back({{"", "other places", ""}, rest});
  for (const leak& l : leaks)
    std::fprintf(stderr, "godwit: heap: %s left by threads, allocated at %s%s\n", l.left.text().c_str(),
                 l.line.c_str(), l.callers.c_str());
}

void report(allocations& all) {
  std::vector<sum> of_site(site_table::count);
  sum reached;
  each_block([&](const std::byte* block) {
    const std::uint64_t word = all.of(block).word.load(std::memory_order_relaxed);
    if ((word & record::in_use) == 0) return;
    ((word & record::reached) != 0 ? reached : of_site[record::site_of(word)])
        .add({1, record::bytes_of(word)});
  });
  std::vector<std::pair<std::uint32_t, sum>> sites;
  for (std::uint32_t i = 0; i < of_site.size(); ++i)
    if (of_site[i].blocks != 0) sites.emplace_back(i, of_site[i]);
  print_leaks(all, std::move(sites));
  if (reached.blocks != 0)
    std::fprintf(stderr, "godwit: heap: still reachable from workers' globals: %s\n", reached.text().c_str());
}

}  // namespace

void report_leaks(const stack::range& own) {
  if (!is_shared() || here.all->recorded == nullptr) return;
  part* const had = leave();  // what is allocated here is the process's own
  allocations& all = *here.all->recorded;
  {
    search s;
    each_private_stretch(own, [&s](const stack::range& r, bool) {
      s.follow(reinterpret_cast<const std::byte*>(r.low), reinterpret_cast<const std::byte*>(r.high));
      return true;
    });
  }
  all.changed.add_own();
  if (all.searched.fetch_add(1, std::memory_order_acq_rel) + 1 == here.all->part_count) {
    report(all);
    all.changed.print();
  }
  go_on(had);
}

}  // namespace godwit::heap
