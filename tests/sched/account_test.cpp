// Tests of a worker's account: who had a thread when, and what is written down of it.
#include "sched/account.hpp"

#include "base/clock.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <csignal>
#include <memory>
#include <sys/mman.h>
#include <thread>
#include <vector>

namespace {

using namespace std::chrono_literals;

using namespace godwit;
using sched::account;
using trace::idle_cause;
using trace::kind;

struct accounts : testing::Test {
  worker_stats stats{};
  account a;
  std::vector<std::byte> room = std::vector<std::byte>(trace::ring_memory::bytes_for(64) + 64);
  trace::ring_memory* ring = nullptr;

  void begin(bool traced) {
    if (traced) {
      void* at = room.data();
      std::size_t bytes = room.size();
      ring = new (std::align(64, bytes - 64, at, bytes)) trace::ring_memory();
      ring->capacity = 64;
    }
    a.init(stats, ring);
  }
  std::vector<trace::event> events() const { return {ring->events, ring->events + ring->written.load()}; }
};

TEST_F(accounts, time_without_a_thread_goes_to_its_cause) {
  begin(false);
  EXPECT_FALSE(a.traced());
  EXPECT_FALSE(a.is_idle());
  a.end_idle(base::fast_ns());  // there was a thread
  EXPECT_EQ(stats.idle_no_work_ns + stats.idle_join_ns, 0u);
  a.begin_idle(idle_cause::join);
  EXPECT_TRUE(a.is_idle());
  a.end_idle(base::fast_ns() + 1'000'000);
  EXPECT_FALSE(a.is_idle());
  EXPECT_GE(stats.idle_join_ns, 1'000'000u);
  EXPECT_EQ(stats.idle_no_work_ns, 0u);
  a.begin_idle(idle_cause::no_work);
  a.end_idle(base::fast_ns() + 1'000'000);
  EXPECT_GE(stats.idle_no_work_ns, 1'000'000u);
}

TEST_F(accounts, others_see_it_as_of_now) {
  begin(true);
  const std::uint64_t began = base::fast_ns();
  EXPECT_TRUE(a.idle_until(began).empty()) << "it has a thread";
  EXPECT_GE(a.as_of(began + 5'000'000).life_ns, 5'000'000u);
  a.begin_idle(idle_cause::wait);
  const std::uint64_t now = base::fast_ns() + 3'000'000;
  ASSERT_EQ(a.idle_until(now).size(), 1u);
  const trace::event open = a.idle_until(now)[0];
  EXPECT_GE(open.duration_ns, 3'000'000u);
  EXPECT_EQ(open.time_ns, now);
  EXPECT_EQ(open.what, static_cast<std::uint16_t>(kind::idle));
  EXPECT_EQ(open.detail, static_cast<std::uint16_t>(idle_cause::wait));
  EXPECT_EQ(a.as_of(now).idle_wait_ns, open.duration_ns);
  EXPECT_EQ(stats.idle_wait_ns + stats.life_ns, 0u) << "a look changes nothing";
  EXPECT_TRUE(events().empty());
  const std::uint64_t later = now + 10'000'000'000;  // an event holds 4 s
  const std::vector<trace::event> pieces = a.idle_until(later);
  std::uint64_t told = 0;
  for (const trace::event& e : pieces) told += e.duration_ns;
  EXPECT_EQ(told, open.duration_ns + 10'000'000'000);
  EXPECT_EQ(a.as_of(later).idle_wait_ns, told);
  ASSERT_EQ(pieces.size(), 3u);
  EXPECT_EQ(pieces[1].time_ns, later - pieces[2].duration_ns) << "one after the other";
  EXPECT_EQ(pieces[2].time_ns, later);
  a.finish();
  EXPECT_EQ(a.as_of(now + 9'000'000'000).life_ns, stats.life_ns) << "it has ended";
}

TEST_F(accounts, a_wait_has_a_kind_and_a_place) {
  begin(true);
  const detail::place mine{"program.cpp", "f", 12};
  a.waits_at(mine, ~std::uintptr_t{0});
  a.note_wait(5, "mutex", mine);
  a.waits_at(mine, ~std::uintptr_t{0});
  a.note_wait(6, nullptr, mine);
  const detail::place header{"/usr/include/c++/12/bits/std_mutex.h", "lock", 250};
  a.waits_at(header, ~std::uintptr_t{0});
  a.note_wait(7, "mutex", header);
  a.begin_idle(idle_cause::wait);
  a.end_idle(base::fast_ns() + 1'000'000);
  EXPECT_GE(stats.idle_wait_ns, 1'000'000u);
  const auto seen = events();
  ASSERT_GE(seen.size(), 6u);
  EXPECT_EQ(seen[0].what, static_cast<std::uint16_t>(kind::waits));
  EXPECT_STREQ(reinterpret_cast<const char*>(seen[0].a), "mutex");
  EXPECT_EQ(seen[1].what, static_cast<std::uint16_t>(kind::place));
  EXPECT_EQ(seen[1].other, 12u);
  EXPECT_EQ(seen[2].what, static_cast<std::uint16_t>(kind::place)) << "a join";
  EXPECT_EQ(seen[3].what, static_cast<std::uint16_t>(kind::waits));
  EXPECT_EQ(seen[4].what, static_cast<std::uint16_t>(kind::callers)) << "whoever called the header";
  EXPECT_NE(seen[4].a, 0u);
  EXPECT_EQ(seen.back().detail, static_cast<std::uint16_t>(idle_cause::wait));
}

TEST_F(accounts, of_that_what_waited_for_other_hosts_counts_apart) {
  begin(true);
  const std::uint64_t before = base::fast_ns();
  a.begin_idle(idle_cause::no_work);
  const std::uint64_t begun = base::fast_ns();
  const std::uint64_t now =
      a.count_transport(before - 5'000'000, transport::worker_no{3}, trace::far_request::look, true);
  EXPECT_GE(now, begun);
  a.end_idle(begun + 6'000'000);
  EXPECT_GE(stats.idle_transport_ns, 5'000'000u);
  EXPECT_LE(stats.idle_no_work_ns, 1'000'000u);
  const auto seen = events();
  ASSERT_EQ(seen.size(), 2u);
  EXPECT_EQ(seen[0].what, static_cast<std::uint16_t>(kind::far_call));
  EXPECT_EQ(seen[0].other, 3u);
  EXPECT_EQ(seen[0].detail, 2u) << "what was asked for";
  EXPECT_EQ(seen[1].what, static_cast<std::uint16_t>(kind::idle));
  EXPECT_EQ(seen[1].detail, static_cast<std::uint16_t>(idle_cause::transport)) << "most of it waited";
}

TEST_F(accounts, an_answer_that_brings_nothing_is_lack_of_work) {
  begin(true);
  a.begin_idle(idle_cause::no_work);
  const std::uint64_t begun = base::fast_ns();
  a.count_transport(begun - 5'000'000, transport::worker_no{3}, trace::far_request::steal, false);
  a.end_idle(begun + 6'000'000);
  EXPECT_EQ(stats.idle_transport_ns, 0u);
  EXPECT_GE(stats.idle_no_work_ns, 5'000'000u);
  const auto seen = events();
  ASSERT_EQ(seen.size(), 2u);
  EXPECT_EQ(seen[1].detail, static_cast<std::uint16_t>(idle_cause::no_work));
}

TEST_F(accounts, what_an_event_cannot_hold_is_cut_or_told_in_pieces) {
  begin(true);
  constexpr std::uint64_t longest = ~std::uint32_t{0};
  a.note(kind::steal, 1, 2, 3, longest + 5, longest + 6);
  a.begin_idle(idle_cause::no_work);
  const std::uint64_t from = base::fast_ns();
  a.end_idle(from + 2 * longest + 7);
  const auto seen = events();
  ASSERT_EQ(seen.size(), 4u);
  EXPECT_EQ(seen[0].duration_ns, longest);
  EXPECT_EQ(seen[0].bytes, longest);
  std::uint64_t told = 0;
  for (std::size_t i = 1; i < seen.size(); ++i) told += seen[i].duration_ns;
  EXPECT_GE(told, 2 * longest + 7);
}

/// Of that kind, in all events.
std::uint64_t kept(const std::vector<trace::event>& events, trace::system_kind k) {
  std::uint64_t ns = 0;
  for (const trace::event& e : events)
    if (e.what == static_cast<std::uint16_t>(kind::system) && e.detail == static_cast<std::uint16_t>(k))
      ns += e.b;
  return ns;
}

TEST_F(accounts, a_thread_that_waits_in_the_operating_system_is_told_from_one_that_computes) {
  begin(true);
  a.begin_idle(idle_cause::no_work);
  std::this_thread::sleep_for(300ms);  // nobody's
  const std::uint64_t from = base::fast_ns();
  a.end_idle(from);
  std::this_thread::sleep_for(20ms);
  const std::uint64_t now = base::fast_ns();
  a.note(kind::end, now, 1);
  // It may have been put aside as well.
  EXPECT_GE(kept(events(), trace::system_kind::waits) + kept(events(), trace::system_kind::aside),
            15'000'000u);
  EXPECT_LE(kept(events(), trace::system_kind::waits), now - from) << "without a thread it may sleep";
  EXPECT_EQ(events().back().what, static_cast<std::uint16_t>(kind::end))
      << "what belongs behind it comes behind";
  const std::size_t before = events().size();
  a.note(kind::end, now + sched::system_use::least_ns - 1, 2);
  EXPECT_EQ(events().size(), before + 1) << "too short to be looked at";
}

TEST_F(accounts, page_faults_of_a_thread_are_counted) {
  begin(true);
  a.begin_idle(idle_cause::no_work);
  a.end_idle(base::fast_ns());
  constexpr std::size_t bytes = 8 << 20, page = 4096;
  void* const fresh = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  ASSERT_NE(fresh, MAP_FAILED);
  for (std::size_t i = 0; i < bytes; i += page) static_cast<volatile char*>(fresh)[i] = 1;
  std::this_thread::sleep_for(1ms);
  a.note(kind::suspend, base::fast_ns(), 1);
  munmap(fresh, bytes);
  const auto seen = events();
  const auto kernel =
      std::find_if(seen.begin(), seen.end(), [](const trace::event& e) { return e.other != 0; });
  ASSERT_NE(kernel, seen.end());
  EXPECT_EQ(kernel->detail, static_cast<std::uint16_t>(trace::system_kind::kernel));
  EXPECT_GE(kernel->other, 1u) << "some systems have larger pages";
}

TEST_F(accounts, outstanding_joins_count_from_when_they_could_go_on) {
  begin(false);
  a.count_outstanding(0, 100);  // not known
  EXPECT_EQ(stats.outstanding_resumed, 0u);
  a.count_outstanding(60, 100);
  a.count_outstanding(120, 100);  // clocks of two CPUs
  EXPECT_EQ(stats.outstanding_resumed, 2u);
  EXPECT_EQ(stats.outstanding_ns, 40u);
}

TEST_F(accounts, spawns_are_looked_at_now_and_then) {
  begin(true);
  detail::hot().poll.store(0);
  a.begin_idle(idle_cause::no_work);
  constexpr std::uint64_t every_ns = sched::spawn_sample::every_ns;
  const std::uint64_t from = base::fast_ns();
  a.end_idle(from);
  EXPECT_EQ(detail::hot().poll.load(), 2u) << "the next spawn is to be told";
  for (unsigned i = 0; i < sched::spawn_sample::spawns; ++i) {
    ASSERT_TRUE(a.samples_spawns()) << i;
    detail::hot().poll.store(0);
    a.note_spawn(0x1000 + i);
  }
  EXPECT_FALSE(a.samples_spawns());
  EXPECT_EQ(detail::hot().poll.load(), 0u);
  const trace::event sample = events().back();
  EXPECT_EQ(sample.what, static_cast<std::uint16_t>(kind::spawns));
  EXPECT_EQ(sample.other, sched::spawn_sample::spawns);
  EXPECT_EQ(sample.a, 0x1000u + sched::spawn_sample::spawns - 1);
  EXPECT_GT(sample.b, 0u);
  a.sample_spawns(from + every_ns - 1);
  EXPECT_FALSE(a.samples_spawns()) << "there was one just now";
  a.sample_spawns(from + every_ns);
  ASSERT_TRUE(a.samples_spawns());
  a.note_spawn(0x2000);
  a.note(kind::end, from + every_ns + 3'000'000, 1);
  EXPECT_FALSE(a.samples_spawns()) << "with the thread ends what is known of it";
  const std::vector<trace::event> all = events();
  const trace::event cut = all[all.size() - 2];
  EXPECT_EQ(cut.what, static_cast<std::uint16_t>(kind::spawns));
  EXPECT_EQ(cut.other, 1u);
  EXPECT_EQ(cut.b, 3'000'000u) << "up to its end";
  detail::hot().poll.store(0);
}

// A thread tells of its spawns, and may be interrupted by the expose signal, whose handler writes an event,
// too. Here it is interrupted by the first store of its own.
constexpr std::size_t ring_bytes = 64 << 10;
void* ring_pages_ = nullptr;
std::uint32_t seen_in_runtime_ = 0;
TEST_F(accounts, the_event_of_a_sample_is_written_where_the_expose_signal_keeps_its_hands_off) {
  ring_pages_ = mmap(nullptr, ring_bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  ASSERT_NE(ring_pages_, MAP_FAILED);
  ring = new (ring_pages_) trace::ring_memory();
  ring->capacity = 64;
  a.init(stats, ring);
  detail::hot().in_runtime = 0;
  seen_in_runtime_ = 0;
  a.sample_spawns(base::fast_ns());
  for (unsigned i = 1; i < sched::spawn_sample::spawns; ++i) a.note_spawn(0x1000);
  EXPECT_EQ(detail::hot().in_runtime, 0u);
  EXPECT_TRUE(events().empty());
  const auto before = std::signal(SIGSEGV, [](int) {
    seen_in_runtime_ = detail::hot().in_runtime;
    mprotect(ring_pages_, ring_bytes, PROT_READ | PROT_WRITE);
  });
  mprotect(ring_pages_, ring_bytes, PROT_READ);
  a.note_spawn(0x1000);
  std::signal(SIGSEGV, before);
  EXPECT_EQ(seen_in_runtime_, 1u);
  EXPECT_EQ(detail::hot().in_runtime, 0u);
  EXPECT_EQ(events().size(), 1u);
  detail::hot().in_runtime = 1;
  detail::hot().poll.store(0);
  munmap(ring_pages_, ring_bytes);
}

TEST_F(accounts, a_life_has_its_cpu_time) {
  begin(false);
  std::this_thread::sleep_for(20ms);
  const std::uint64_t from = base::fast_ns();
  while (base::fast_ns() < from + 5'000'000) {
  }
  a.finish();
  EXPECT_GE(stats.life_ns, 25'000'000u);
  EXPECT_GT(stats.cpu_ns, 0u);
  EXPECT_LE(stats.cpu_ns, stats.life_ns - 20'000'000) << "asleep it has no CPU";
  EXPECT_LE(stats.aside_ns, stats.life_ns - stats.cpu_ns);
}

TEST_F(accounts, a_life_ends_with_what_was_idle_last) {
  begin(false);
  a.begin_idle(idle_cause::no_work);
  a.finish();
  EXPECT_FALSE(a.is_idle());
  EXPECT_GE(stats.life_ns, stats.idle_no_work_ns);
}

}  // namespace
