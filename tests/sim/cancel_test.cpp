// Cancellation on several simulated hosts: scopes of threads that go to other hosts and come back, in every
// way, and how soon the others hear of it.
// test: skip-qemu timeout=120
#include "sim/simulated_runs.hpp"
#include "support/cancel_tree.hpp"

#include <gtest/gtest.h>

#include <cstdint>

namespace {

using namespace simulated_runs;

TEST(simulated_cancellation, stops_who_is_below_and_nobody_else) {
  for (const auto way : all_ways)
    for (const std::uint32_t hosts : {1u, 2u, 3u, 6u})
      for (const char* steal : {"none", "parents", "random"})
        for (std::uint64_t seed = 1; seed < 4; ++seed) {
          SCOPED_TRACE(std::to_string(hosts) + " hosts, steal " + steal + ", way " +
                       std::to_string(static_cast<int>(way)) + ", seed " + std::to_string(seed));
          const auto got = gw::run<cancel_tree::seen>([] { return cancel_tree::trees(6); },
                                                      on_hosts(6, hosts, way, seed, steal));
          EXPECT_EQ(got.wrong, 0);
          EXPECT_GT(got.cancelled, 0);
          if (HasFailure()) return;
        }
}

/// Spawns until it is stopped; how long that took since @p from.
std::uint64_t stopped_after(std::uint64_t from) {
  for (;;) {
    gw::sim::charge(1'000);
    try {
      gw::spawn([] {}).join();
    } catch (const gw::cancelled&) {
      return gw::sim::now_ns() - from;
    }
    if (gw::sim::now_ns() > from + 1'000'000'000) return gw::sim::now_ns() - from;
  }
}

TEST(simulated_cancellation, reaches_every_host_in_one_message) {
  for (const auto way : all_ways) {
    const auto longest = gw::run<std::uint64_t>(
        [] {
          gw::cancel_scope scope;
          std::vector<gw::future<std::uint64_t>> all;
          const std::uint64_t from = gw::sim::now_ns() + 2'000'000;
          for (std::uint32_t w = 1; w < gw::worker_count(); ++w)
            all.push_back(gw::spawn_at(gw::worker(w), [from] { return stopped_after(from); }));
          while (gw::sim::now_ns() < from) gw::sim::charge(10'000), gw::yield();
          scope.cancel();
          std::uint64_t most = 0;
          gw::cancel_shield to_the_end;
          for (auto& f : all) most = std::max(most, f.join());
          return most;
        },
        on_hosts(6, 3, way));
    EXPECT_LT(longest, 1'000'000u) << static_cast<int>(way);
  }
}

TEST(simulated_cancellation, a_deadline_ends_threads_of_all_hosts) {
  for (const auto way : all_ways)
    EXPECT_TRUE(gw::run<bool>(
        [] {
          const std::uint64_t from = gw::sim::now_ns();
          const auto got = gw::with_deadline(std::chrono::milliseconds(2), [from] {
            auto there =
                gw::spawn_at(gw::worker(gw::worker_count() - 1), [from] { return stopped_after(from); });
            return there.join();
          });
          return !got && gw::sim::now_ns() - from < 10'000'000;
        },
        on_hosts(4, 2, way)));
}

int written = 0, read_again = 0;  // workers of a simulation share a process
/// What goes to another host by a codec, which makes the bytes the owner.
struct noted {
  std::string text;  // so it is not plain bytes
};

}  // namespace

template <>
struct godwit::codec<noted> {
  static void write(writer& w, const noted& n) {
    ++written;
    w.put(n.text);
  }
  static noted read(reader& r) {
    ++read_again;
    return {r.get<std::string>()};
  }
};

namespace {

TEST(simulated_cancellation, what_was_encoded_is_decoded_whether_it_begins_or_not) {
  for (const auto way : all_ways) {
    gw::options o = on_hosts(2, 2, way);
    o.heap = gw::choice::heap::separate;
    written = read_again = 0;
    const int refused = gw::run<int>(
        [] {
          int n = 0;
          const auto to_the_other = [](std::uint32_t w) {
            return gw::spawn_at(
                gw::worker(w), [](const noted& x) { return x.text.size(); }, noted{"abc"});
          };
          EXPECT_EQ(to_the_other(1).join(), 3u);
          try {
            to_the_other(17).join();  // there is none
          } catch (const std::invalid_argument&) {
            ++n;
          }
          gw::cancel_scope scope;
          auto late = to_the_other(1);
          scope.cancel();
          try {
            late.join();
          } catch (const gw::cancelled&) {
            ++n;
          }
          try {
            to_the_other(1).join();
          } catch (const gw::cancelled&) {
            ++n;
          }
          return n;
        },
        o);
    EXPECT_EQ(refused, 3);
    EXPECT_GE(written, 3);
    EXPECT_EQ(read_again, written) << static_cast<int>(way);
  }
}

// Letters are carried out inside whatever runs there, which may be cancelled.
TEST(simulated_cancellation, leaves_alone_what_is_done_for_others) {
  for (const auto way : {gw::choice::way::server, gw::choice::way::am})
    EXPECT_EQ(
        gw::run<std::uint64_t>(
            [] {
              const std::uint32_t far = gw::worker_count() - 1;
              const auto all = gw::allocate<std::uint64_t>(1, gw::distribution::at(far));
              const auto stop = gw::allocate<std::uint64_t>(1, gw::distribution::at(far));
              gw::put(all, std::uint64_t{0});
              gw::atomic_store(stop, 0);
              auto busy = gw::spawn_at(gw::worker(far), [stop] {
                gw::cancel_scope scope;
                scope.cancel();
                while (gw::atomic_load(stop) == 0) {
                  gw::sim::charge(500);
                  try {
                    gw::yield();
                  } catch (const gw::cancelled&) {
                  }
                }
                bool told = false;  // and is still cancelled
                try {
                  gw::yield();
                } catch (const gw::cancelled&) {
                  told = true;
                }
                return told;
              });
              for (int i = 0; i < 100; ++i) {
                gw::sim::charge(3000);
                gw::with(all, 1, gw::access::read_write, [](std::span<std::uint64_t> s) { ++s[0]; }).join();
              }
              gw::atomic_store(stop, 1);
              const bool told = busy.join();
              return told ? gw::atomic_load(all) : 0;
            },
            on_hosts(4, 2, way)),
        100u);
}

TEST(simulated_cancellation, threads_that_are_sent_and_do_not_begin_leave_nothing) {
  gw::options o = on_hosts(2, 2, gw::choice::way::server);
  o.heap_bytes = 4 << 20;
  EXPECT_EQ(gw::run<int>(
                [] {
                  const gw::worker far(1);
                  int begun = 0;
                  for (int round = 0; round < 200; ++round) {
                    auto busy = gw::spawn_at(far, [] { gw::sim::charge(2'000'000); });
                    gw::cancel_scope scope;
                    static_cast<void>(scope.run([&] {
                      std::vector<gw::future<int>> all;
                      for (int i = 0; i < 30; ++i)
                        all.push_back(gw::spawn_at(
                            far, [](const std::string& s) { return static_cast<int>(s.size()); },
                            std::string(1000, 's')));
                      gw::sim::charge(500'000);
                      scope.cancel();
                      for (auto& f : all) begun += f.join();
                    }));
                    gw::cancel_shield until_it_has_ended;
                    busy.join();
                  }
                  return begun;
                },
                o),
            0);
}

TEST(simulated_cancellation, what_threads_below_wrote_is_seen_after_the_scope) {
  for (const auto way : all_ways)
    EXPECT_EQ(gw::run<int>(
                  [] {
                    const std::uint32_t far = gw::worker_count() - 1;
                    const auto at = gw::allocate<long>(64, gw::distribution::at(far));
                    const auto read = [at] { return gw::checkout(at, 1, gw::access::read)[0]; };
                    const auto write = [at](long v) { gw::checkout(at, 1, gw::access::write)[0] = v; };
                    int stale = 0;
                    write(0);
                    for (int i = 1; i <= 20; ++i) {
                      static_cast<void>(read());
                      {
                        gw::cancel_scope scope;
                        static_cast<void>(gw::spawn_at(gw::worker(far), [write, i] { write(i); }));
                        gw::sim::charge(200'000);  // it has ended before
                      }
                      stale += read() != i;
                    }
                    return stale;
                  },
                  on_hosts(2, 2, way)),
              0);
}

}  // namespace
