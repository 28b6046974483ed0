// check_global: each mistake ends the run with a line that names it, and the place where there is one.
// Nothing hangs, nothing stays behind. Test of src/gas/checks.cpp. Checkouts held across a spawn:
// held_test.cpp.
// test: timeout=240 skip-qemu
#include <gtest/gtest.h>
#include <godwit/godwit.hpp>

#include "mistakes.hpp"
#include "support/shared.hpp"

#include <cstdlib>

namespace gw = godwit;

namespace {

using mistakes::words;

support::outcome with_checks(const std::function<void()>& body, const char* check = "on") {
  return mistakes::outcome_of(body, check);
}
void expect_caught(const std::function<void()>& body, const words& says, const char* check = "on") {
  mistakes::expect_caught(body, says, check);
}

struct places {
  const char* name;
  gw::global_ptr<long> (*make)();
};
const places every_place[] = {
    {"local", [] { return gw::allocate<long>(100); }},
    {"at another worker", [] { return gw::allocate<long>(100, gw::distribution::at(1)); }},
    {"cyclic", [] { return gw::allocate<long>(100, gw::distribution::cyclic(64)); }},
    {"blocked", [] { return gw::allocate<long>(100, gw::distribution::blocked()); }},
};

TEST(Misuse, UseAfterFree) {
  for (const auto& [name, make] : every_place) {
    SCOPED_TRACE(name);
    auto freed = [make = make] {
      auto p = make();
      gw::deallocate(p, 100);
      return p;
    };
    expect_caught([=] { gw::get(freed()); }, {"read 8 bytes", "no live allocation"});
    expect_caught([=] { gw::put(freed(), 1L); }, {"write 8 bytes", "no live allocation"});
    expect_caught([=] { *freed() = 5; }, {"write 8 bytes", "no live allocation"});
    expect_caught([=] { gw::atomic_fetch_add(freed(), 1L); }, {"change atomically", "no live allocation"});
    expect_caught([=] { auto s = gw::checkout(freed(), 10, gw::access::read); },
                  {"check out 80 bytes", "no live allocation"});
    expect_caught([=] { gw::try_local(freed(), 10); }, {"no live allocation"});
    expect_caught(
        [=] {
          auto q = gw::allocate<long>(10);
          gw::copy_n(freed(), 10, q);
        },
        {"copy", "no live allocation"});
  }
}

volatile long sink;

// Without checks, where access is a plain load or store, and with them.
TEST(Misuse, NullPointer) {
  struct point {
    long x, y;
  };
  for (const char* check : {"off", "on"}) {
    SCOPED_TRACE(check);
    const words says = {"null global_ptr"};
    using ptr = gw::global_ptr<long>;
    expect_caught([] { sink = gw::get(ptr()); }, says, check);
    expect_caught([] { sink = *ptr(); }, says, check);
    expect_caught([] { *ptr() = 5; }, says, check);
    expect_caught([] { gw::put(ptr(), 5L); }, says, check);
    expect_caught([] { ptr()[1000] = 5; }, says, check);
    expect_caught([] { gw::put(gw::global_ptr<point>(), point{1, 2}); }, says, check);
    expect_caught(
        [] {
          long room[10];
          gw::get(ptr(), room, 10);
          sink = room[5];
        },
        says, check);
    expect_caught([] { gw::atomic_fetch_add(ptr(), 1L); }, says, check);
    expect_caught([] { static_cast<void>(gw::atomic_load(ptr())); }, says, check);
    expect_caught([] { gw::checkout(ptr(), 10, gw::access::write)[3] = 1; }, says, check);
    expect_caught([] { sink = gw::get_async(ptr()).join(); }, says, check);
    expect_caught(
        [] {
          auto q = gw::allocate<long>(10);
          gw::copy_n(q, 10, ptr());
        },
        says, check);
    expect_caught(
        [] {
          auto f = gw::spawn([] { *ptr() = 5; });
          f.join();
        },
        says, check);
  }
}

TEST(Misuse, OutOfRange) {
  for (const auto& [name, make] : every_place) {
    SCOPED_TRACE(name);
    expect_caught([make = make] { gw::get(make() + 102); }, {"read 8 bytes", "no live allocation"});
    expect_caught(
        [make = make] {
          long room[110];
          gw::get(make(), room, 110);
        },
        {"read 880 bytes", "no live allocation"});
    expect_caught([make = make] { auto s = gw::checkout(make() + 50, 60, gw::access::write); },
                  {"check out 480 bytes"});
    expect_caught([make = make] { auto s = gw::checkout(make(), std::size_t{1} << 50, gw::access::read); },
                  {"check out"});
  }
  expect_caught([] { gw::get(gw::global_ptr<long>()); }, {"read 8 bytes", "global:0x0", "null global_ptr"});
  expect_caught([] { gw::get(gw::global_ptr<long>(~0ull - 100)); }, {"read 8 bytes"});
  expect_caught([] { gw::put(gw::global_ptr<long>(64), 1L); }, {"write 8 bytes", "null global_ptr"});
}

TEST(Misuse, DoubleFree) {
  for (const auto& [name, make] : every_place) {
    SCOPED_TRACE(name);
    for (const char* check : {"on", "off"})
      expect_caught(
          [make = make] {
            auto p = make();
            gw::deallocate(p, 100);
            gw::deallocate(p, 100);
          },
          {"freed", "misuse_test.cpp:"}, check);
  }
}

// The owner and another worker, or two others, at once: one of them is told.
TEST(Misuse, DoubleFreeAtOnce) {
  for (const int pairs : {0, 1})
    for (int round = 0; round < 5; ++round)
      expect_caught(
          [=] {
            const auto d = pairs == 0 ? gw::distribution::local() : gw::distribution::cyclic();
            for (int i = 0; i < 200; ++i) {
              auto p = gw::allocate<long>(10, d);
              gw::on_each_worker([=] { gw::deallocate(p, 10); });
            }
          },
          {"freed", "misuse_test.cpp:"});
}

TEST(Misuse, WrongSize) {
  for (const auto& [name, make] : every_place) {
    SCOPED_TRACE(name);
    for (const char* check : {"on", "off"})
      expect_caught([make = make] { gw::deallocate(make(), 99); },
                    {"allocated as 800 bytes", "freed as 792", "misuse_test.cpp:"}, check);
  }
}

TEST(Misuse, ForeignAndInteriorPointers) {
  for (const auto& [name, make] : every_place) {
    SCOPED_TRACE(name);
    for (const char* check : {"on", "off"})
      expect_caught([make = make] { gw::deallocate(make() + 10, 90); },
                    {"not the beginning of a", "misuse_test.cpp:"}, check);
  }
  for (const char* check : {"on", "off"}) {
    expect_caught([] { gw::deallocate(gw::global_ptr<long>(8), 1); }, {"free 8 bytes at global:0x8"}, check);
    expect_caught([] { gw::deallocate(gw::global_ptr<long>(std::uint64_t{1} << 60), 1); }, {"free 8 bytes"},
                  check);
  }
}

TEST(Misuse, PointerOfAnEarlierRun) {
  for (const bool shared : {false, true}) {
    const auto o = support::run_child([=] {
      gw::options opts;
      opts.workers = 2;
      opts.check_global = gw::choice::check_global::on;
      unsetenv("GODWIT_CHECK_GLOBAL");
      auto old = gw::run<gw::global_ptr<long>>(
          [=] {
            return gw::allocate<long>(10, shared ? gw::distribution::cyclic() : gw::distribution::local());
          },
          opts);
      return gw::run(
          0, nullptr, [=] { std::printf("%ld\n", gw::get(old)); }, opts);
    });
    EXPECT_NE(o.status, 0) << show(o);
    EXPECT_TRUE(o.err_has("no live allocation")) << show(o);
    EXPECT_TRUE(o.err_has("earlier run")) << show(o);
  }
}

TEST(Misuse, LeaksAreReportedWithTheirPlace) {
  for (const bool shared : {false, true}) {
    const auto o = with_checks([=] {
      const auto d = shared ? gw::distribution::cyclic() : gw::distribution::local();
      auto freed = gw::allocate<long>(500, d);
      gw::allocate<long>(10, d);
      gw::allocate<long>(100, d);
      gw::deallocate(freed, 500);
    });
    EXPECT_EQ(o.status, 0) << "not an error" << show(o);
    EXPECT_TRUE(o.err_has("2 allocations of global memory, 880 bytes in all, were not freed")) << show(o);
    EXPECT_TRUE(o.err_has("the largest, of 800 bytes, was made at")) << show(o);
    EXPECT_TRUE(o.err_has("misuse_test.cpp:")) << show(o);
  }
}
TEST(Misuse, NoLeaksAreReportedWhereThereAreNone) {
  const auto o = with_checks([] {
    for (int i = 0; i < 50; ++i) {
      auto p = gw::allocate<long>(10);
      auto q = gw::allocate<long>(10, gw::distribution::cyclic());
      auto table = gw::allocate<long>(100, gw::distribution::user(16, [](auto b, auto, auto homes) {
                                        return static_cast<std::uint32_t>(b % homes);
                                      }));
      auto f = gw::spawn([=] {
        gw::yield();  // the freeing thread is nearly always another worker's
        gw::deallocate(p, 10);
        gw::deallocate(q, 10);
        gw::deallocate(table, 100);
      });
      f.join();
    }
  });
  EXPECT_EQ(o.status, 0) << show(o);
  EXPECT_FALSE(o.err_has("not freed")) << show(o);
}
TEST(Misuse, LeaksAreNotLookedForWithoutChecks) {
  const auto o = with_checks([] { gw::allocate<long>(10); }, "off");
  EXPECT_EQ(o.status, 0) << show(o);
  EXPECT_FALSE(o.err_has("not freed")) << show(o);
}

TEST(Misuse, OverlappingCheckouts) {
  expect_caught(
      [] {
        auto p = gw::allocate<long>(100, gw::distribution::cyclic(64));
        auto a = gw::checkout(p, 50, gw::access::read);
        auto b = gw::checkout(p + 49, 10, gw::access::write);
      },
      {"overlaps one", "misuse_test.cpp:", "one of them writes"});
  expect_caught(
      [] {
        auto p = gw::allocate<long>(100);
        auto a = gw::checkout(p, 50, gw::access::write);
        auto b = gw::checkout(p, 50, gw::access::write);
      },
      {"overlaps one"});
  // By two workers at once.
  support::shared<std::atomic<int>> both;
  expect_caught(
      [&] {
        auto p = gw::allocate<long>(100, gw::distribution::cyclic(64));
        std::atomic<int>* in = both.get();
        auto hold = [=] {
          auto a = gw::checkout(p, 50, gw::access::read_write);
          in->fetch_add(1);
          while (in->load() < 2) {
          }
        };
        auto f = gw::spawn(hold);  // computes until the other worker has taken the continuation
        hold();
        f.join();
      },
      {"overlaps one", "worker"});
}
TEST(Misuse, CheckoutsThatDoNotConflict) {
  const auto o = with_checks([] {
    auto p = gw::allocate<long>(100, gw::distribution::cyclic(64));
    {
      auto a = gw::checkout(p, 50, gw::access::read);
      auto b = gw::checkout(p, 100, gw::access::read);
      auto c = gw::checkout(p + 50, 0, gw::access::write);
    }
    {
      auto a = gw::checkout(p, 50, gw::access::write);
      auto b = gw::checkout(p + 50, 50, gw::access::write);
      a.checkin();
      auto c = gw::checkout(p, 50, gw::access::read);
    }
    auto again = gw::checkout(p, 100, gw::access::write);
    auto moved = std::move(again);
    moved.checkin();
    gw::deallocate(p, 100);
  });
  EXPECT_EQ(o.status, 0) << show(o);
  EXPECT_FALSE(o.err_has("worker")) << show(o);
}

TEST(Misuse, AtomicsWantAlignment) {
  expect_caught(
      [] {
        auto p = gw::allocate<char>(100);
        gw::atomic_fetch_add(gw::global_ptr<long>(p.address() + 4), 1L);
      },
      {"not aligned"});
}

TEST(Misuse, OutsideARun) {
  for (const int what : {0, 1, 2, 3, 4, 5}) {
    const auto o = support::run_child([=] {
      const gw::global_ptr<long> p(1 << 20);
      switch (what) {
        case 0:
          gw::allocate<long>(1);
          break;
        case 1:
          gw::get(p);
          break;
        case 2:
          gw::put(p, 1L);
          break;
        case 3:
          gw::atomic_load(p);
          break;
        case 4:
          gw::checkout(p, 1, gw::access::read);
          break;
        case 5:
          gw::home_of(p);
          break;
      }
      return 0;
    });
    EXPECT_NE(o.status, 0) << what << show(o);
    EXPECT_TRUE(o.err_has("outside godwit::run")) << what << show(o);
  }
}
TEST(Misuse, FreeingAfterTheRunIsNothing) {
  const auto o = support::run_child([] {
    auto p = gw::run<gw::global_ptr<long>>([] { return gw::allocate<long>(10); });
    gw::deallocate(p, 10);  // a container that outlived its run
    return 0;
  });
  EXPECT_EQ(o.status, 0) << show(o);
}

}  // namespace
