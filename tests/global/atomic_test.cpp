// Atomics on global memory: include/godwit/global_atomic.hpp. Runs under MPI as well (tests/mpi).
#include <gtest/gtest.h>
#include <godwit/godwit.hpp>

#include "support/schedule.hpp"

#include <cstdint>
#include <limits>
#include <string>

namespace gw = godwit;

namespace {

template <class T>
std::string all_functions() {
  const auto p = gw::allocate<T>(8, gw::distribution::cyclic(16));
  for (int i = 0; i < 8; ++i)
    for (const auto order : {std::memory_order_seq_cst, std::memory_order_relaxed}) {
      const auto w = p + i;
      gw::atomic_store(w, T(12), order);
      if (gw::atomic_load(w, order) != T(12)) return "store";
      if (gw::atomic_exchange(w, T(10), order) != T(12)) return "exchange";
      T expected = 9;
      if (gw::atomic_compare_exchange(w, expected, T(1), order) || expected != T(10))
        return "compare_exchange, other";
      if (!gw::atomic_compare_exchange(w, expected, T(6), order)) return "compare_exchange";
      if (gw::atomic_fetch_add(w, T(5), order) != T(6)) return "fetch_add";
      if (gw::atomic_fetch_sub(w, T(1), order) != T(11)) return "fetch_sub";
      if (gw::atomic_fetch_and(w, T(14), order) != T(10)) return "fetch_and";
      if (gw::atomic_fetch_or(w, T(5), order) != T(10)) return "fetch_or";
      if (gw::atomic_fetch_xor(w, T(3), order) != T(15)) return "fetch_xor";
      if (gw::atomic_fetch_min(w, T(20), order) != T(12) || gw::atomic_fetch_min(w, T(4), order) != T(12))
        return "fetch_min";
      if (gw::atomic_fetch_max(w, T(1), order) != T(4) || gw::atomic_fetch_max(w, T(9), order) != T(4))
        return "fetch_max";
      if (gw::get(w) != T(9)) return "what get sees";
      // as unsigned the largest, as signed -1 is less
      gw::atomic_store(w, std::numeric_limits<T>::max(), order);
      if (gw::atomic_fetch_min(w, T(-1), order) != std::numeric_limits<T>::max()) return "fetch_min";
      if (gw::atomic_load(w, order) != std::min(std::numeric_limits<T>::max(), T(-1)))
        return "fetch_min, sign";
    }
  gw::deallocate(p, 8);
  return "";
}

TEST(GlobalAtomic, AllFunctionsOnAllTypes) {
  support::for_each_schedule([](const gw::options& o) {
    EXPECT_EQ(gw::run<std::string>(all_functions<std::int32_t>, o), "");
    EXPECT_EQ(gw::run<std::string>(all_functions<std::uint32_t>, o), "");
    EXPECT_EQ(gw::run<std::string>(all_functions<std::int64_t>, o), "");
    EXPECT_EQ(gw::run<std::string>(all_functions<std::uint64_t>, o), "");
  });
}

TEST(GlobalAtomic, ValuesThatAreNoIntegers) {
  EXPECT_EQ(gw::run<std::string>([] {
              struct pair {
                float a, b;
              };
              const auto p = gw::global_new<pair>(1.f, 2.f);
              pair e{1.f, 2.f};
              if (!gw::atomic_compare_exchange(p, e, pair{3.f, 4.f}) || gw::atomic_load(p).b != 4.f)
                return std::string("pair");
              gw::global_delete(p);
              const auto d = gw::global_new<double>(0.5);
              if (gw::atomic_exchange(d, 1.5) != 0.5 || *d != 1.5) return std::string("double");
              gw::global_delete(d);
              return std::string();
            }),
            "");
}

struct tree {
  static void add(gw::global_ptr<long> sum, gw::global_ptr<int> most, int depth, int number) {
    if (depth == 0) {
      gw::atomic_fetch_add(sum, 1L);
      gw::atomic_fetch_max(most, number);
      return;
    }
    gw::invoke([=] { add(sum, most, depth - 1, number * 2); },
               [=] { add(sum, most, depth - 1, number * 2 + 1); });
  }
};

TEST(GlobalAtomic, NothingIsLostAmongManyThreads) {
  support::for_each_schedule([](const gw::options& o) {
    EXPECT_EQ(gw::run<long>(
                  [] {
                    const auto sum = gw::allocate<long>(1, gw::distribution::at(gw::worker_count() - 1));
                    const auto most = gw::global_new<int>(-1);
                    gw::put(sum, 0L);
                    tree::add(sum, most, 8, 0);
                    const long result = gw::atomic_load(sum) * 1000 + gw::atomic_load(most);
                    gw::deallocate(sum, 1);
                    gw::global_delete(most);
                    return result;
                  },
                  o),
              256 * 1000 + 255);
  });
}

}  // namespace
