// Rows of very different length, dealt out evenly, are no even load. Who has too much gives rows away.
//
// Each row is a part of movable memory, and as much work as elements of it are used. The first workers have
// the long rows, the last ones the short ones. rebalance moves rows until nobody has a fifth more than the
// mean; then owners sum up what is theirs. docs/moving.md
#include <godwit/godwit.hpp>

#include <cstdint>
#include <cstdio>

namespace gw = godwit;

constexpr std::uint64_t rows = 128, row = 512;  // 4 KiB each

/// Of row r so many elements are used.
constexpr std::uint64_t length(std::uint64_t r) { return r < rows / 2 ? row - 1 : 1; }

int main(int argc, char** argv) {
  return gw::run(argc, argv, [] {
    gw::distribution even = gw::distribution::blocked();
    const auto table = gw::allocate<std::uint64_t>(rows * row, even.movable(row * sizeof(std::uint64_t)));
    for (std::uint64_t r = 0; r < rows; ++r)
      for (std::uint64_t i = 0; i < length(r); ++i) gw::put(table + r * row + i, r);

    const auto row_of = [table](const gw::part_info& part) {
      return (part.begin.address() - table.address()) / (row * sizeof(std::uint64_t));
    };
    const gw::rebalance_result r =
        gw::rebalance(table, rows * row, {.threshold = 1.2},
                      [&](const gw::part_info& part) { return length(row_of(part)); });

    const auto sum = gw::allocate<std::uint64_t>(1);
    gw::put(sum, 0);
    gw::on_each_worker([=] {
      std::uint64_t mine = 0;
      for (const gw::part_info& part : gw::parts_of(table, rows * row)) {
        if (part.owner != gw::worker_id()) continue;
        const auto s = gw::checkout(table + row_of(part) * row, length(row_of(part)), gw::access::read);
        for (const std::uint64_t x : s) mine += x;
      }
      gw::atomic_fetch_add(sum, mine);
    });
    std::uint64_t right = 0;
    for (std::uint64_t k = 0; k < rows; ++k) right += k * length(k);
    std::printf("largest load / mean: from %.2f to %.2f by %llu moves; the sum is %s\n", r.before, r.after,
                static_cast<unsigned long long>(r.moves), gw::atomic_load(sum) == right ? "right" : "WRONG");
    gw::deallocate(table, rows * row);
    gw::deallocate(sum, 1);
  });
}
