// Loops of the algorithms on several simulated hosts: a worker begins with the part whose memory is its own;
// results and exceptions are those of any other order. Test of include/godwit/algorithm/blocks.hpp
// (near_memory) and indices.hpp.
// test: skip-qemu timeout=60
#include "sim/simulated_runs.hpp"

#include <gtest/gtest.h>

#include <cstdint>
#include <functional>
#include <stdexcept>
#include <string>

namespace {

using namespace simulated_runs;

constexpr std::uint64_t elements = 64, rounds = 10;

/// f(span) at the last worker, which has the last part of the span, again and again: how many in a thousand
/// of all elements were worked on where they lie. f counts in element i.
template <class F>
std::uint64_t per_mille_at_home(std::uint32_t hosts, const F& f) {
  return gw::run<std::uint64_t>(
      [f] {
        gw::global_array<std::uint64_t> counts(elements, gw::distribution::blocked(), 0);
        for (std::uint64_t r = 0; r < rounds; ++r)
          gw::spawn_at(gw::worker(gw::worker_count() - 1), [f, s = counts.span()] { f(s); }).join();
        return gw::reduce(counts) * 1000 / (elements * rounds);
      },
      on_hosts(hosts, hosts, gw::choice::way::server));
}

/// Element i is worked on, and here.
void work_on(gw::global_span<std::uint64_t> s, std::uint64_t i) {
  const bool here = gw::home_of(s.data() + static_cast<std::ptrdiff_t>(i)) == gw::worker_id();
  gw::sim::charge(1'000'000);
  if (here) gw::atomic_fetch_add(s.data() + static_cast<std::ptrdiff_t>(i), std::uint64_t{1});
}

TEST(loops_near_memory, workers_begin_with_what_is_theirs) {
  for (const std::uint32_t hosts : {2u, 3u, 4u}) {
    const auto anywhere = per_mille_at_home(hosts, [](gw::global_span<std::uint64_t> s) {
      gw::for_each(
          gw::indices(elements), [s](std::uint64_t i) { work_on(s, i); }, gw::grain{1});
    });
    const auto near = per_mille_at_home(hosts, [](gw::global_span<std::uint64_t> s) {
      gw::for_each(
          gw::indices(elements).near(s), [s](std::uint64_t i) { work_on(s, i); }, gw::grain{1});
    });
    const auto summed = per_mille_at_home(hosts, [](gw::global_span<std::uint64_t> s) {
      const auto sum = gw::transform_reduce(
          gw::indices(elements).near(s), std::uint64_t{0}, std::plus<>(),
          [s](std::uint64_t i) {
            work_on(s, i);
            return i;
          },
          gw::grain{1});
      EXPECT_EQ(sum, elements * (elements - 1) / 2);
    });
    EXPECT_GT(2 * near, 3 * anywhere) << hosts << " hosts";
    EXPECT_GT(2 * summed, 3 * anywhere) << hosts << " hosts";
    EXPECT_EQ(hosts == 2 ? near : 1000, 1000u);
  }
}

TEST(loops_near_memory, half_as_many_indices_as_elements_go_with_two_each) {
  const auto near = per_mille_at_home(2, [](gw::global_span<std::uint64_t> s) {
    gw::for_each(
        gw::indices(elements / 2).near(s),
        [s](std::uint64_t i) {
          work_on(s, 2 * i);
          work_on(s, 2 * i + 1);
        },
        gw::grain{1});
  });
  EXPECT_GT(near, 800u);
}

TEST(loops_near_memory, the_order_does_not_show) {
  const auto in_order = gw::run<std::string>(
      [] {
        gw::global_array<char> letters(26, gw::distribution::blocked(16));
        gw::generate(letters, [](std::uint64_t i) { return static_cast<char>('a' + i); });
        auto all = gw::spawn_at(gw::worker(1), [s = letters.span()] {
          return gw::transform_reduce(s, std::string("-"), std::plus<>(),
                                      [](char c) { return std::string(1, c); });
        });
        return all.join();
      },
      on_hosts(2, 2, gw::choice::way::server));
  EXPECT_EQ(in_order, "-abcdefghijklmnopqrstuvwxyz");
  const auto thrown = gw::run<std::string>(
      [] {
        gw::global_array<std::uint64_t> a(elements, gw::distribution::blocked());
        auto text = gw::spawn_at(gw::worker(1), [s = a.span()]() -> std::string {
          try {
            gw::for_each(
                gw::indices(elements).near(s),
                [](std::uint64_t i) {
                  if (i == 3 || i == elements - 2) throw std::out_of_range(std::to_string(i));
                },
                gw::grain{1});
          } catch (const std::out_of_range& e) {
            return e.what();
          }
          return "none";
        });
        return text.join();
      },
      on_hosts(2, 2, gw::choice::way::server));
  EXPECT_EQ(thrown, "3");
}

}  // namespace
