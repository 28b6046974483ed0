// Tests of the ring of events: order, going round, what is dropped, a reader beside a writer in another
// process.
// test: timeout=60
#include "trace/ring.hpp"

#include "support/child.hpp"
#include "transport/shm/pages.hpp"

#include <gtest/gtest.h>

#include <csignal>
#include <memory>
#include <new>
#include <vector>

namespace {

using namespace godwit::trace;
using godwit::transport::shm::shared_pages;

struct ring_fixture {
  shared_pages pages;
  ring_memory* memory;
  explicit ring_fixture(std::uint64_t capacity) : pages(ring_memory::bytes_for(capacity) + 64, "") {
    memory = new (pages.data()) ring_memory{};
    memory->capacity = capacity;
    memory->written.store(0);
  }
};

event numbered(std::uint64_t i) {
  return {1000 + i, i, ~i, static_cast<std::uint32_t>(i), 7, 3, static_cast<std::uint16_t>(kind::steal), 0};
}

std::vector<event> contents(const ring_memory& m) {
  std::vector<event> all;
  const ring_range r = readable(m);
  for (std::uint64_t i = r.first; i < r.written; ++i) all.push_back(m.events[i % m.capacity]);
  return all;
}

TEST(ring, off_without_memory) {
  ring r;
  r.init(nullptr);
  EXPECT_FALSE(r.on());
}

TEST(ring, keeps_the_newest_in_order_and_counts_the_others) {
  for (const std::uint64_t n : {0u, 1u, 15u, 16u, 17u, 160u, 1601u}) {
    ring_fixture f(16);
    ring r;
    r.init(f.memory);
    ASSERT_TRUE(r.on());
    for (std::uint64_t i = 0; i < n; ++i) r.emit(numbered(i));
    const auto all = contents(*f.memory);
    const std::uint64_t dropped = n < 16 ? 0 : n - 15;  // the slot that is next could be half written
    ASSERT_EQ(all.size(), n - dropped);
    EXPECT_EQ(readable(*f.memory).first, dropped);
    for (std::size_t i = 0; i < all.size(); ++i) {
      EXPECT_EQ(all[i].a, dropped + i);
      EXPECT_EQ(all[i].b, ~(dropped + i));
    }
  }
}

TEST(ring, a_second_handle_goes_on_where_the_first_stopped) {
  ring_fixture f(8);
  ring r;
  r.init(f.memory);
  r.emit(numbered(0));
  ring again;
  again.init(f.memory);
  again.emit(numbered(1));
  ASSERT_EQ(contents(*f.memory).size(), 2u);
  EXPECT_EQ(contents(*f.memory)[1].a, 1u);
}

TEST(ring, what_a_killed_process_wrote_is_there_and_whole) {
  ring_fixture f(1024);
  for (int round = 0; round < 20; ++round) {
    f.memory->written.store(0);
    const auto o = support::run_child(
        [&] {
          ring r;
          r.init(f.memory);
          for (std::uint64_t i = 0;; ++i) r.emit(numbered(i));
          return 0;
        },
        [&](pid_t pid) {
          while (f.memory->written.load() < 5000) usleep(100);
          kill(pid, SIGKILL);
        });
    ASSERT_EQ(o.status, 128 + SIGKILL);
    const ring_range r = readable(*f.memory);
    const auto all = contents(*f.memory);
    ASSERT_EQ(all.size(), 1023u);
    for (std::size_t i = 0; i < all.size(); ++i) {
      ASSERT_EQ(all[i].a, r.first + i) << "not one slot of the readable ones was being written";
      ASSERT_EQ(all[i].b, ~(r.first + i));
      ASSERT_EQ(all[i].time_ns, 1000 + r.first + i);
    }
  }
}

TEST(ring, a_closed_one_keeps_what_it_has) {
  ring_fixture f(8);
  ring r;
  r.init(f.memory);
  for (std::uint64_t i = 0; i < 20; ++i) r.emit(numbered(i));
  f.memory->closed.store(true);
  for (std::uint64_t i = 20; i < 40; ++i) r.emit(numbered(i));
  const ring_range kept = readable(*f.memory);
  EXPECT_EQ(kept.written, 20u);
  for (std::uint64_t i = kept.first; i < kept.written; ++i) EXPECT_EQ(f.memory->events[i % 8].a, i);
}

TEST(ring, a_reader_beside_the_writer_sees_whole_events_up_to_written) {
  ring_fixture f(1 << 16);
  const auto o = support::run_child(
      [&] {
        ring r;
        r.init(f.memory);
        for (std::uint64_t i = 0; i < 60'000; ++i) r.emit(numbered(i));
        return 0;
      },
      [&](pid_t) {
        std::uint64_t seen = 0;
        while (seen < 60'000) {
          const ring_range r = readable(*f.memory);
          ASSERT_EQ(r.first, 0u);
          for (; seen < r.written; ++seen) {
            ASSERT_EQ(f.memory->events[seen].a, seen);
            ASSERT_EQ(f.memory->events[seen].b, ~seen);
          }
        }
      });
  EXPECT_EQ(o.status, 0) << support::show(o);
}

}  // namespace
