// global_new and global_delete, whose common case is inlined: values, room, who may free, and mistakes, which
// must be told as they are told without inlining. Of the lists themselves: tests/gas/arena_test.cpp.
// test: timeout=240 skip-qemu
#include <gtest/gtest.h>
#include <godwit/godwit.hpp>

#include "mistakes.hpp"
#include "support/schedule.hpp"

#include <algorithm>
#include <array>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <vector>

namespace gw = godwit;

namespace {

constexpr std::uint64_t MiB = 1 << 20;

gw::options workers(std::uint32_t n) {
  gw::options o;
  o.workers = n;
  o.check_global = gw::choice::check_global::off;  // with checks nothing is inlined
  return o;
}

template <std::size_t Bytes, std::size_t Alignment = 1>
struct alignas(Alignment) object {
  std::array<unsigned char, Bytes> at;
  explicit object(unsigned char v) { at.fill(v); }
};

/// Objects of one type among those of others: each keeps its value, and is aligned. How many do not.
template <class T>
std::uint64_t made_and_released() {
  std::uint64_t wrong = 0;
  std::vector<gw::global_ptr<T>> all;
  for (unsigned round = 0; round < 3; ++round) {
    for (unsigned i = 0; i < 300; ++i) {
      const auto p = gw::global_new<T>(static_cast<unsigned char>(i));
      wrong += p.address() % alignof(T) != 0;
      all.push_back(p);
    }
    for (unsigned i = 0; i < all.size(); ++i) {
      const T value = gw::get(all[i]);
      for (const unsigned char c : value.at) wrong += c != static_cast<unsigned char>(i);
    }
    for (const auto p : all) gw::global_delete(p);
    all.clear();
  }
  return wrong;
}

// What has a list and what has not: around every limit, and aligned to more than a header.
TEST(Objects, KeepTheirValues) {
  for (const std::uint32_t n : {1u, 3u})
    EXPECT_EQ(gw::run<std::uint64_t>(
                  [] {
                    return made_and_released<object<1>>() + made_and_released<object<16>>() +
                           made_and_released<object<17>>() + made_and_released<object<1007>>() +
                           made_and_released<object<1008>>() + made_and_released<object<1009>>() +
                           made_and_released<object<1024, 16>>() + made_and_released<object<32, 32>>() +
                           made_and_released<object<64, 64>>() + made_and_released<object<20000>>() +
                           made_and_released<object<4096, 4096>>();
                  },
                  workers(n)),
              0u);
}

// A header takes 16 bytes; what is released is used again, whoever released it.
TEST(Objects, TakeLittleRoom) {
  struct sizes {
    std::uint64_t first, most;
  };
  // Between hosts each release by the other is a round trip.
  const int count = support::number_from_environment("STRESS_SHORT", 0) == 0 ? 200'000 : 20'000;
  const sizes used = gw::run<sizes>(
      [count] {
        using small = object<32>;
        std::uint64_t most = 0, first = 0;
        const auto list = gw::allocate<gw::global_ptr<small>>(count);
        for (int round = 0; round < 4; ++round) {
          for (int i = 0; i < count; ++i) gw::put(list + i, gw::global_new<small>(std::uint8_t{1}));
          const std::uint64_t now = gw::global_memory_usage().used_bytes;
          if (round == 0) first = now;
          most = std::max(most, now);
          const std::uint32_t owner = gw::worker_id();
          gw::on_each_worker([=] {
            if ((round % 2 == 0) != (gw::worker_id() == owner)) return;  // by itself, by the other
            for (int i = 0; i < count; ++i) gw::global_delete(gw::get(list + i));
          });
        }
        gw::deallocate(list, count);
        return sizes{first, most};
      },
      workers(2));
  EXPECT_LT(used.first, count * 48 + count * 8 + 3 * MiB);
  EXPECT_LT(used.most, 2 * used.first) << "threads may go on at the other worker, which then needs as much";
}

TEST(Objects, NoRoomIsAnException) {
  gw::options o = workers(1);
  o.global_limit = 8 * MiB;
  const auto made = gw::run<std::uint64_t>(
      [] {
        std::uint64_t n = 0;
        try {
          for (; n < 10'000'000; ++n) gw::global_new<object<48>>(std::uint8_t{1});
        } catch (const gw::global_bad_alloc&) {
        }
        return n;
      },
      o);
  EXPECT_GT(made, 8 * MiB / 64 / 2);
  EXPECT_LT(made, 8 * MiB / 64 + 1);
}

void expect_caught(const std::function<void()>& body, const mistakes::words& says) {
  mistakes::expect_caught(body, says, "off");
}

TEST(Objects, MistakesAreTold) {
  using four = std::array<long, 4>;
  using ptr = gw::global_ptr<four>;
  const mistakes::words twice = {"freed twice", "objects_test.cpp:"};
  const mistakes::words no_object = {"not the beginning of an allocation", "objects_test.cpp:"};
  expect_caught(
      [] {
        const ptr p = gw::global_new<four>();
        gw::global_delete(p);
        gw::global_delete(p);
      },
      twice);
  expect_caught(
      [] {
        const ptr p = gw::global_new<four>(), q = gw::global_new<four>();
        gw::global_delete(p);
        gw::global_delete(q);
        gw::global_delete(p);
      },
      twice);
  expect_caught(  // of the same list
      [] { gw::global_delete(gw::global_ptr<std::array<int, 7>>(gw::global_new<four>().address())); },
      {"allocated as 32 bytes, but freed as 28", "objects_test.cpp:"});
  expect_caught([] { gw::deallocate(gw::global_new<four>(), 2); },
                {"allocated as 32 bytes, but freed as 64"});
  expect_caught([] { gw::global_delete(ptr(gw::global_new<four>().address() + 8)); }, no_object);
  expect_caught([] { gw::global_delete(ptr(gw::global_new<four>().address() + 16)); }, no_object);
  expect_caught([] { gw::global_delete(ptr(gw::global_new<four>().address() + 3)); }, no_object);
  expect_caught([] { gw::global_delete(ptr(8)); }, {"free 32 bytes at global:0x8"});
  expect_caught([] { gw::global_delete(ptr(std::uint64_t{1} << 60)); }, {"free 32 bytes"});
  expect_caught([] { gw::global_delete(gw::allocate<four>(2)); }, {"allocated as 64 bytes", "freed as 32"});
  expect_caught([] { gw::global_delete(gw::allocate<four>(100, gw::distribution::cyclic()) + 1); },
                {"not the beginning of a live allocation"});
  expect_caught(  // by two workers, one after the other
      [] {
        const ptr p = gw::global_new<four>();
        gw::global_delete(p);
        gw::on_each_worker([=] { gw::global_delete(p); });
      },
      twice);
}

TEST(Objects, NullAndTheEndOfTheRunAreNothing) {
  gw::global_ptr<long> left;
  left = gw::run<gw::global_ptr<long>>(
      [] {
        gw::global_delete(gw::global_ptr<long>());
        return gw::global_new<long>(1);
      },
      workers(1));
  gw::global_delete(left);
}

}  // namespace
