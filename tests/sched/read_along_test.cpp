// Tests of results that come along with the one that is joined: which are asked for, until when they are
// used, and how records are given back. docs/protocols/join.md (Read along). What the other host answers:
// far_calls_test.cpp.
#include "sched/records.hpp"

#include "sched/far_calls.hpp"
#include "sched/host.hpp"
#include "sched/others.hpp"

#include <godwit/future.hpp>

#include <gtest/gtest.h>

#include <cstring>
#include <map>
#include <vector>

namespace {

using namespace host_of_tests;
using godwit::detail::unmoved;
using godwit::transport::make_ref;
using refs = std::vector<ref>;

refs refs_in(const far_words::entry& e, std::uint64_t count) {
  refs all(count);
  if (count != 0) std::memcpy(all.data(), e.data, count * sizeof(ref));
  return all;
}

/// Another host, at which each record's result is a number; records without one are not complete.
struct read_along_test : testing::Test {
  host all{1, 3};
  join_records mine{all.here(0), all.heap_of(0)};
  std::map<ref, std::uint64_t> results;
  std::vector<refs> asked_along;  // of each read_record
  std::map<ref, int> released;
  int casts = 0;
  others rest{all};  // last: its thread uses the rest

  read_along_test() {
    rest.answer = [this](far_words::entry& e) {
      if (e.head.a == call_no::release_read) {
        ++casts;
        for (const ref r : refs_in(e, e.head.b)) ++released[r];
        return;
      }
      ASSERT_EQ(e.head.a, call_no::read_record);
      asked_along.push_back(refs_in(e, e.head.more[0]));
      if (!results.contains(e.head.b)) return;
      std::byte* to = e.data;
      const auto put = [&](ref r) {
        result_words words{};
        words.bytes = sizeof(std::uint64_t);
        std::memcpy(words.small, &results[r], sizeof(std::uint64_t));
        std::memcpy(to, &words, sizeof words);
        to += sizeof words;
      };
      put(e.head.b);
      e.head.result = 1;
      for (std::size_t i = 0; i < asked_along.back().size(); ++i)
        if (const ref other = asked_along.back()[i]; results.contains(other)) {
          put(other);
          e.head.result |= std::uint64_t{2} << i;
        }
      e.head.info = static_cast<std::uint64_t>(to - e.data);
    };
  }
  static ref at(std::uint32_t worker, std::uint64_t number) {
    return make_ref(worker_no{worker}, number * 128);
  }
  /// Join @p r where @p frames are the thread's. Its result; -1: it is not complete.
  std::int64_t join(ref r, const std::vector<std::uint64_t>& frames) {
    const auto low = reinterpret_cast<std::uintptr_t>(frames.data());
    if (!mine.fetch_along(r, {low, low + frames.size() * sizeof frames[0]})) return -1;
    std::int64_t value = 0;
    std::memcpy(&value, mine.fetched_payload().data, sizeof value);
    mine.release(r);
    return value;
  }
};

TEST_F(read_along_test, what_unmoved_futures_name_at_that_host_comes_along_and_is_not_asked_for_again) {
  results = {{at(1, 1), 11}, {at(1, 2), 12}, {at(1, 3), 13}, {at(2, 4), 24}};
  const std::vector<std::uint64_t> frames{7,
                                          at(1, 2) | unmoved,
                                          at(1, 1) | unmoved,   // the joined one
                                          at(1, 3),             // a moved one
                                          at(2, 4) | unmoved,   // another host's
                                          at(1, 2) | unmoved,   // twice
                                          at(1, 5) | unmoved};  // not complete
  EXPECT_EQ(join(at(1, 1), frames), 11);
  ASSERT_EQ(asked_along.size(), 1u);
  EXPECT_EQ(asked_along[0], (refs{at(1, 2), at(1, 5)}));
  EXPECT_EQ(join(at(1, 2), frames), 12);
  EXPECT_EQ(asked_along.size(), 1u) << "it had come along";
  EXPECT_EQ(join(at(1, 5), frames), -1);
  results[at(1, 5)] = 15;
  EXPECT_EQ(join(at(1, 5), frames), 15) << "it had not come, so it is asked for";
  EXPECT_EQ(join(at(2, 4), frames), 24);
}

TEST_F(read_along_test, copies_are_forgotten_when_a_thread_comes) {  // RA1
  results = {{at(1, 1), 11}, {at(1, 2), 12}};
  EXPECT_EQ(join(at(1, 1), {at(1, 2) | unmoved}), 11);
  results[at(1, 2)] = 99;  // another record lies there now
  mine.thread_came();
  EXPECT_EQ(join(at(1, 2), {}), 99);
}

TEST_F(read_along_test, as_many_as_a_request_has_room_for) {
  std::vector<std::uint64_t> frames;
  for (std::uint64_t i = 0; i < 100; ++i) {
    results[at(1, i + 1)] = i;
    frames.push_back(at(1, i + 1) | unmoved);
  }
  std::size_t requests = 0;
  for (std::uint64_t i = 0; i < 100; ++i) {
    EXPECT_EQ(join(at(1, i + 1), frames), static_cast<std::int64_t>(i));
    requests = asked_along.size();
  }
  EXPECT_EQ(asked_along[0].size(), most_read_along);
  EXPECT_EQ(requests, 4u) << "32 at a time";
}

TEST_F(read_along_test, records_are_given_back_together_host_by_host) {
  std::vector<std::uint64_t> frames;
  for (std::uint64_t i = 1; i <= 6; ++i) {
    results[at(i <= 3 ? 1 : 2, i)] = i;
    frames.push_back(at(i <= 3 ? 1 : 2, i) | unmoved);
  }
  for (std::uint64_t i = 1; i <= 6; ++i)
    EXPECT_EQ(join(at(i <= 3 ? 1 : 2, i), frames), static_cast<std::int64_t>(i));
  EXPECT_EQ(asked_along.size(), 2u);
  mine.send_releases();
  mine.send_releases();  // nothing is left
  while (rest.asked < 4) std::this_thread::yield();
  EXPECT_EQ(casts, 2);
  EXPECT_EQ(released.size(), 6u);
  for (const auto& [r, times] : released) EXPECT_EQ(times, 1) << r;
}

}  // namespace
