// apply_atomic: what a companion does to a word for another host. All functions, 4 and 8 bytes, against plain
// arithmetic; neighbours untouched; many threads at once.
// test: tsan
#include "transport/far/requests.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <limits>
#include <thread>
#include <type_traits>
#include <vector>

namespace {

using godwit::transport::far::apply_atomic;
using godwit::transport::far::atomic_function;
using f = atomic_function;

template <class U>
class FarWord : public testing::Test {};
using widths = testing::Types<std::uint32_t, std::uint64_t>;
TYPED_TEST_SUITE(FarWord, widths);

template <class U>
std::vector<U> values() {
  using S = std::make_signed_t<U>;
  return {0,
          1,
          2,
          0x55,
          static_cast<U>(std::numeric_limits<S>::max()),
          static_cast<U>(std::numeric_limits<S>::min()),
          static_cast<U>(-1),
          static_cast<U>(-2),
          std::numeric_limits<U>::max() / 3};
}

template <class U>
U expected_of(f what, U now, U v, U wanted) {
  using S = std::make_signed_t<U>;
  switch (what) {
    case f::load:
      return now;
    case f::store:
    case f::exchange:
      return v;
    case f::compare_exchange:
      return now == wanted ? v : now;
    case f::fetch_add:
      return static_cast<U>(now + v);
    case f::fetch_and:
      return now & v;
    case f::fetch_or:
      return now | v;
    case f::fetch_xor:
      return now ^ v;
    case f::min_signed:
      return static_cast<U>(std::min(static_cast<S>(now), static_cast<S>(v)));
    case f::max_signed:
      return static_cast<U>(std::max(static_cast<S>(now), static_cast<S>(v)));
    case f::min_unsigned:
      return std::min(now, v);
    case f::max_unsigned:
      return std::max(now, v);
  }
  return 0;
}

TYPED_TEST(FarWord, EveryFunctionOfEveryPair) {
  using U = TypeParam;
  for (const f what :
       {f::load, f::store, f::exchange, f::compare_exchange, f::fetch_add, f::fetch_and, f::fetch_or,
        f::fetch_xor, f::min_signed, f::max_signed, f::min_unsigned, f::max_unsigned})
    for (const U now : values<U>())
      for (const U v : values<U>())
        for (const U wanted : {now, static_cast<U>(now + 1)}) {
          alignas(16) U words[3] = {static_cast<U>(0x1234), now, static_cast<U>(0x5678)};
          // What lies above the width in the operands does not count.
          const std::uint64_t dirt = sizeof(U) == 4 ? 0xabcdef01'00000000ull : 0;
          const std::uint64_t before = apply_atomic(what, &words[1], sizeof(U), v | dirt, wanted | dirt);
          SCOPED_TRACE(testing::Message() << static_cast<int>(what) << " now " << now << " operand " << v);
          ASSERT_EQ(words[1], expected_of(what, now, v, wanted));
          if (what != f::store) {
            ASSERT_EQ(before, std::uint64_t{now}) << "gives back what was there, and no more bits";
          }
          ASSERT_EQ(words[0], static_cast<U>(0x1234));
          ASSERT_EQ(words[2], static_cast<U>(0x5678));
        }
}

TYPED_TEST(FarWord, ManyAtOnce) {
  using U = TypeParam;
  using S = std::make_signed_t<U>;
  constexpr int each = 20'000;
  alignas(64) U sum = 0, bits = 0, low = 0, high = 0, swapped = 0;
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t)
    threads.emplace_back([&, t] {
      for (int i = 0; i < each; ++i) {
        apply_atomic(f::fetch_add, &sum, sizeof(U), 1, 0);
        apply_atomic(f::fetch_xor, &bits, sizeof(U), U{1} << t, 0);
        apply_atomic(f::min_signed, &low, sizeof(U), static_cast<U>(static_cast<S>(-i - t)), 0);
        apply_atomic(f::max_unsigned, &high, sizeof(U), static_cast<U>(i + t), 0);
        for (std::uint64_t now = apply_atomic(f::load, &swapped, sizeof(U), 0, 0);;) {
          const std::uint64_t seen = apply_atomic(f::compare_exchange, &swapped, sizeof(U), now + 1, now);
          if (seen == now) break;
          now = seen;
        }
      }
    });
  for (auto& t : threads) t.join();
  EXPECT_EQ(sum, U{4 * each});
  EXPECT_EQ(bits, 0u);
  EXPECT_EQ(static_cast<S>(low), S{-each + 1 - 3});
  EXPECT_EQ(high, U{each - 1 + 3});
  EXPECT_EQ(swapped, U{4 * each});
}

}  // namespace
