// Files that are traces, counters, neither, or damaged.
#include "input.hpp"
#include "trace_builder.hpp"

#include <gtest/gtest.h>

namespace {

using namespace godwit::report;
using report_test::trace_builder;

recording parse_text(const std::string& text) { return parse(std::as_bytes(std::span(text)), "run.pftrace"); }

/// The message of the error that the text causes.
std::string error_of(const std::string& text) {
  try {
    parse_text(text);
  } catch (const input_error& e) {
    EXPECT_EQ(std::string(e.what()).find('\n'), std::string::npos);
    EXPECT_EQ(std::string(e.what()).rfind("run.pftrace: ", 0), 0u) << e.what();
    return e.what();
  }
  return "no error";
}
bool says(const std::string& text, const char* part) {
  return error_of(text).find(part) != std::string::npos;
}

trace_builder example() {
  trace_builder t(3);
  t.info["program"] = "uts";
  t.info["dropped"] = {0, 4, 0};
  t.info["hosts"] = {{0, 2}, {2, 1}};
  t.strings = {{0x10, "a.cpp"}, {0x20, ""}};
  for (std::uint64_t i = 0; i < 50'000; ++i) t.start(1, i, i + 1);
  t.start(2, 7, 9);
  return t;
}

TEST(Input, ReadsWhatWasWritten) {
  const std::string file = example().bytes();
  const recording r = parse_text(file);
  EXPECT_TRUE(r.has_events);
  EXPECT_EQ(r.workers, 3u);
  EXPECT_EQ(r.event_count(), 50'001u);
  EXPECT_EQ(r.dropped_count(), 4u);
  EXPECT_EQ(r.host_of, (std::vector<std::uint32_t>{0, 0, 1}));
  EXPECT_EQ(r.strings.at(0x10), "a.cpp");
  EXPECT_EQ(r.strings.at(0x20), "");
  EXPECT_EQ(text_of(r.info, "program"), "uts");
  std::uint64_t n = 0;
  for (event_cursor c(r.events[1]); !c.done(); c.next(), ++n) ASSERT_EQ((*c).time_ns, n);
  EXPECT_EQ(n, 50'000u);
  EXPECT_TRUE(event_cursor(r.events[0]).done());
}

TEST(Input, CountersOfATrace) {
  trace_builder t = example();
  t.info["stats"]["workers"] = {{{"steals", 3}}};
  EXPECT_EQ(count_of(parse_text(t.bytes()).stats["workers"][0], "steals"), 3u);
}

TEST(Input, CountersAlone) {
  const recording r =
      parse_text(R"( {"run": {"program": "x", "workers": 2}, "workers": [{"steals": 1}, {}]} )");
  EXPECT_FALSE(r.has_events);
  EXPECT_EQ(r.workers, 2u);
  EXPECT_EQ(r.info["program"], "x");
}

TEST(Input, CountersAsTheLibraryWritesThem) {
  const recording r = parse_text(R"({"godwit": "0.1.0", "program": "fib", "arguments": ["36"], "workers": 3,
    "hosts": [{"name": "a", "first_worker": 0, "workers": 2}, {"name": "b", "first_worker": 2, "workers": 1}],
    "wall_seconds": 0.25, "totals": {"steals": 8}, "worker_stats": [{"steals": 1}, {"steals": 7}, {}]})");
  EXPECT_EQ(r.workers, 3u);
  EXPECT_EQ(r.host_of, (std::vector<std::uint32_t>{0, 0, 1}));
  EXPECT_DOUBLE_EQ(number_of(r.info, "seconds"), 0.25);
  EXPECT_EQ(text_of(r.info, "version"), "0.1.0");
  EXPECT_EQ(count_of(r.stats["workers"][1], "steals"), 7u);
  trace_builder t(2);
  t.start(0, 0, 1);
  t.info["stats"] = {{"workers", 2}, {"worker_stats", {{{"steals", 3}}, {{"steals", 4}}}}};
  EXPECT_EQ(count_of(parse_text(t.bytes()).stats["workers"][1], "steals"), 4u);
}

TEST(Input, MissingFieldsAreNoError) {
  EXPECT_EQ(parse_text(R"({"workers": [{}, {}, {}]})").workers, 3u);
  trace_builder t(2);
  t.info = nlohmann::json::object();
  t.start(1, 5, 9);
  EXPECT_EQ(parse_text(t.bytes()).workers, 2u);
}

TEST(Input, EveryTruncationIsNoticedOrHarmless) {
  trace_builder t = example();
  t.events[1].resize(40);
  const std::string file = t.bytes();
  std::size_t noticed = 0;
  for (std::size_t length = 0; length < file.size(); ++length) {
    try {
      parse_text(file.substr(0, length));
    } catch (const input_error&) {
      ++noticed;
    }
  }
  EXPECT_GT(noticed, file.size() - 20);  // but for the borders between packets
  EXPECT_TRUE(says(file.substr(0, file.size() / 2), "truncated"));
}

TEST(Input, EveryDamagedByteIsAnErrorOrHarmless) {
  trace_builder t = example();
  t.events[1].resize(5);
  const std::string file = t.bytes();
  for (std::size_t at = 0; at < file.size(); ++at)
    for (const char c : {'\0', '\xff', '{', '\x7f'}) {
      std::string bad = file;
      bad[at] = c;
      try {
        const recording r = parse_text(bad);
        for (const event_list& list : r.events)
          for (event_cursor e(list); !e.done(); e.next()) (void)(*e).time_ns;
      } catch (const input_error&) {
      }
    }
}

TEST(Input, SaysWhatIsWrong) {
  EXPECT_TRUE(says("", "empty"));
  EXPECT_TRUE(says("hello, this is no trace", "trace"));
  EXPECT_TRUE(says("{\"a\": 1", "not (truncated?)"));
  EXPECT_TRUE(says("{\"a\": 1}", "without counters of workers"));
  EXPECT_TRUE(says("{\"workers\": []}", "without workers"));
  EXPECT_TRUE(says(std::string("\x0a\x02\x08\x01", 4), "no godwit events"));
  std::string file = example().bytes();
  std::string other_version = file, no_magic = file;
  other_version.replace(file.find("godwit02"), 8, "godwit99");
  EXPECT_TRUE(says(other_version, "another version"));
  no_magic.replace(file.find("godwit02"), 8, "xxxxxxxx");
  EXPECT_TRUE(says(no_magic, "damaged"));
  std::string count = file;
  count[file.rfind("godwit02") + 16] ^= 1;
  EXPECT_TRUE(says(count, "events do not take"));
}

TEST(Input, MoreWorkersThanAFileHasBytesAreDamage) {
  trace_builder t(200'000);
  for (const char* of_each : {"events", "dropped"}) t.info[of_each] = std::vector<int>(200'000, 0);
  t.start(199'999, 7, 9);
  EXPECT_EQ(parse_text(t.bytes()).workers, 200'000u);
  trace_builder none(1);
  none.start(0, 7, 9);
  none.info["workers"] = 10'000'000;
  EXPECT_TRUE(says(none.bytes(), "damaged: a run of 10000000"));
  none.info["workers"] = 1;
  std::string file = none.bytes();
  const std::uint32_t far = 10'000'000;
  std::memcpy(file.data() + file.rfind("godwit02") + 12, &far, sizeof far);
  EXPECT_TRUE(says(file, "worker 10000000"));
}

TEST(Input, FilesThatCannotBeMapped) {
  EXPECT_THROW(mapped_file("/nonexistent/file"), input_error);
  EXPECT_THROW(mapped_file("/"), input_error);
  EXPECT_THROW(mapped_file("/dev/null"), input_error);
}

}  // namespace
