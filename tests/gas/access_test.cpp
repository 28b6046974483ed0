// Access by itself, on a directory without an allocator: memory of this host, in a run of one host and of
// two. (Other hosts' memory: tests/global under MPI.)
#include "gas/access.hpp"
#include "gas/one_host.hpp"

#include <gtest/gtest.h>

#include <cstring>
#include <numeric>
#include <vector>

namespace {

using godwit::detail::access_mode;
using godwit::detail::atomic_op;
using godwit::detail::global_piece;
using godwit::detail::opened;
using godwit::gas::global_address;
using namespace gas_test;

class Access : public testing::TestWithParam<std::uint32_t> {
 protected:
  one_host host{2, 4 * GiB, GiB, GetParam()};
  const godwit::gas::reach net{host.setup(0)};
  godwit::gas::directory blocks{net, host.where};
  godwit::gas::checks check{net, host.where, blocks, false};
  godwit::worker_stats stats;
  godwit::gas::access data{
      net, blocks, check, {net.at<godwit::gas::unit>(host.where.units_low), cache_units, &stats, nullptr}};
  /// The last bytes of worker 0's memory, and behind them worker 1's.
  const global_address at = host.where.local_begin(1) - 8 * KiB;
};

TEST_P(Access, GetAndPut) {
  std::vector<std::uint32_t> out(4 * KiB), in(out.size());
  std::iota(out.begin(), out.end(), 1u);
  data.put(at, out.data(), out.size() * 4);  // over the border between two homes
  EXPECT_EQ(std::memcmp(host.at(at), out.data(), out.size() * 4), 0);
  data.get(at, in.data(), in.size() * 4);
  EXPECT_EQ(in, out);
  data.get(at, nullptr, 0);
  EXPECT_EQ(stats.far_gets + stats.far_puts, 0u);
}

TEST_P(Access, CopyOverItself) {
  std::vector<std::uint32_t> v(1000);
  std::iota(v.begin(), v.end(), 1u);
  data.put(at, v.data(), 4000);
  data.copy(at + 4, at, 4000 - 4);
  std::uint32_t x[3];
  data.get(at, x, sizeof x);
  EXPECT_EQ(x[0], 1u);
  EXPECT_EQ(x[1], 1u);
  EXPECT_EQ(x[2], 2u);
}

TEST_P(Access, Atomics) {
  for (const bool relaxed : {false, true}) {
    EXPECT_EQ(data.atomic(atomic_op::exchange, at, 8, 5, 0, relaxed), relaxed ? 7u : 0u);
    EXPECT_EQ(data.atomic(atomic_op::fetch_add, at, 8, 2, 0, relaxed), 5u);
    EXPECT_EQ(data.atomic(atomic_op::compare_exchange, at, 8, 9, 6, relaxed), 7u);
    EXPECT_EQ(data.atomic(atomic_op::load, at, 4, 0, 0, relaxed), 7u);
  }
}

TEST_P(Access, GatherAndScatter) {
  std::uint64_t values[] = {1, 2, 3}, back[3] = {};
  const global_address places[] = {at, at + 8 * KiB, at + 4 * KiB};
  std::vector<global_piece> out, in;
  for (int i = 0; i < 3; ++i) {
    out.push_back({places[i], 8, &values[i]});
    in.push_back({places[i], 8, &back[i]});
  }
  data.scatter(out.data(), 3);
  data.gather(in.data(), 3);
  EXPECT_EQ(std::memcmp(values, back, sizeof back), 0);
}

TEST_P(Access, CheckoutOfThisHostsMemoryIsTheMemory) {
  const std::uint32_t before = godwit::detail::hot().checkouts;
  const opened got = data.checkout(at, 16 * KiB, access_mode::read_write, here);
  EXPECT_EQ(got.data, host.at(at));
  EXPECT_EQ(got.ticket, at) << "no cache is involved";
  EXPECT_EQ(godwit::detail::hot().checkouts, before + 1);
  data.checkin(got.ticket, 16 * KiB, access_mode::read_write);
  EXPECT_EQ(godwit::detail::hot().checkouts, before);
  EXPECT_EQ(data.try_local(at, 16 * KiB), host.at(at));
  EXPECT_FALSE(data.must_release());
  data.release();
  data.acquire();
  data.check_invariants();
}

TEST_P(Access, WhoOwnsItIsAskedOfTheDirectory) {
  std::uint32_t owner = ~0u;
  EXPECT_FALSE(data.single_far_owner(at, 8, owner));
  if (GetParam() == 1) return;
  const global_address far = host.where.local_begin(2) + 100;
  EXPECT_TRUE(data.single_far_owner(far, 8, owner));
  EXPECT_EQ(owner, 2u);
  EXPECT_EQ(data.try_local(far, 8), nullptr);
  EXPECT_FALSE(data.single_far_owner(host.where.local_begin(3) - 4, 8, owner)) << "two owners";
}

INSTANTIATE_TEST_SUITE_P(Hosts, Access, testing::Values(1u, 2u));

}  // namespace
