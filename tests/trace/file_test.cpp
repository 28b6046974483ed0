// Tests of the trace file: chunks can be read back as file.hpp says, tracks are limited, bad names and full
// disks are told, texts are read from anywhere. What Perfetto makes of it is checked by perfetto_check.py.
// test: timeout=120
#include "trace/trace_file.hpp"

#include "trace/events_by_hand.hpp"
#include "trace/trace_reader.hpp"

#include <gtest/gtest.h>

#include <cstdio>
#include <cstring>
#include <fcntl.h>
#include <filesystem>
#include <fstream>
#include <stdexcept>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

namespace {

using namespace godwit::trace;
using by_hand::history;
using by_hand::make;

struct temporary {
  std::string path = testing::TempDir() + "godwit_file_test." + std::to_string(getpid());
  ~temporary() { std::remove(path.c_str()); }
};

std::string some_text(std::uint64_t address) { return address == 0x1000 ? "dir/file.cpp" : "function"; }

support::trace_contents write(const history& h, const std::vector<std::uint64_t>& dropped = {},
                              std::uint32_t most_tracks = most_thread_tracks, summary* sum = nullptr) {
  temporary t;
  {
    trace_file file(t.path);
    file.begin(static_cast<std::uint32_t>(h.size()));
    std::vector<std::string> names;
    for (std::uint32_t w = 0; w < h.size(); ++w) {
      names.push_back("worker " + std::to_string(w));
      file.append(w, h[w].data(), h[w].size() / 3);  // in pieces
      file.append(w, h[w].data() + h[w].size() / 3, h[w].size() - h[w].size() / 3);
      if (!dropped.empty()) file.dropped(w, dropped[w]);
    }
    const summary& s = file.finish(
        names, [](const summary& x) { return std::to_string(x.threads); }, some_text, most_tracks);
    if (sum != nullptr) *sum = s;
    EXPECT_EQ(file.problem(), "");
  }
  return support::read_trace(t.path);
}

TEST(trace_file, raw_chunks_hold_every_event_in_order) {
  const history h = by_hand::simulation(4, 3).run(200'000);  // more than one chunk per worker
  summary sum;
  const auto c = write(h, {}, most_thread_tracks, &sum);
  ASSERT_EQ(c.events.size(), h.size());
  std::uint64_t total = 0, first = ~0ull, last = 0;
  for (std::uint32_t w = 0; w < h.size(); ++w) {
    ASSERT_EQ(c.events.at(w).size(), h[w].size());
    EXPECT_EQ(std::memcmp(c.events.at(w).data(), h[w].data(), h[w].size() * sizeof(event)), 0);
    total += h[w].size();
    for (const event& e : h[w]) {
      first = std::min(first, e.time_ns - e.duration_ns);
      last = std::max(last, e.time_ns);
    }
  }
  EXPECT_GT(c.chunks, 2 * h.size()) << "or this test does not see chunks follow one another";
  EXPECT_EQ(sum.events, total);
  EXPECT_EQ(sum.origin_ns, first);
  EXPECT_EQ(sum.end_ns, last);
  EXPECT_EQ(c.info, std::to_string(sum.threads));
  EXPECT_EQ(c.strings.at(0x1000), "dir/file.cpp");
  EXPECT_EQ(c.strings.at(0x2000), "function");
  EXPECT_GT(c.packets, total) << "Perfetto's";
}

TEST(trace_file, the_number_of_thread_tracks_is_limited) {
  const history h = by_hand::simulation(4, 3).run(5000);
  summary all, few;
  const auto everything = write(h, {}, 1'000'000, &all);
  const auto limited = write(h, {}, 10, &few);
  EXPECT_EQ(all.threads_left_out, 0u);
  EXPECT_GT(all.threads, 100u);
  EXPECT_EQ(few.threads, all.threads);
  EXPECT_EQ(few.threads_left_out, all.threads - 10);
  const auto thread_tracks = [](const support::trace_contents& c) {
    return std::count_if(c.track_names.begin(), c.track_names.end(),
                         [](const std::string& n) { return n.starts_with("thread "); });
  };
  EXPECT_EQ(thread_tracks(everything), all.threads);
  EXPECT_EQ(thread_tracks(limited), 10);
  EXPECT_TRUE(limited.has_text(std::to_string(few.threads_left_out) + " threads have no track"));
}

TEST(trace_file, tracks_of_many_workers_are_not_those_of_threads) {
  history h(10'000);
  h[0] = {make(kind::start, 100, {.a = 8}), make(kind::suspend, 200, {.a = 8, .b = 16}),
          make(kind::resume, 300, {.a = 8, .b = 16}), make(kind::end, 400, {.a = 8})};
  const auto c = write(h);
  EXPECT_EQ(c.track_uuids.size(), c.track_names.size());
  EXPECT_GT(c.track_names.size(), h.size());
}

TEST(trace_file, losses_are_shown_where_they_happened) {
  history h = by_hand::simulation(3, 8).run(2000);
  h[1].erase(h[1].begin(), h[1].begin() + 100);
  summary sum;
  const auto c = write(h, {0, 100, 0}, most_thread_tracks, &sum);
  EXPECT_EQ(sum.dropped, 100u);
  EXPECT_TRUE(c.has_text("100 earlier events dropped"));
}

TEST(trace_file, code_without_a_text_leaves_a_thread_its_number) {
  const history h = {{make(kind::start, 100, {.a = 8}), make(kind::suspend, 200, {.a = 8, .b = 16}),
                      make(kind::callers, 200, {.a = 77}), make(kind::resume, 300, {.a = 8, .b = 16}),
                      make(kind::end, 400, {.a = 8})}};
  EXPECT_TRUE(write(h, {}, 0).has_text("thread 1")) << "it has no track";
}

TEST(trace_file, a_run_without_events) {
  summary sum;
  const auto c = write({{}, {}}, {}, most_thread_tracks, &sum);
  EXPECT_TRUE(c.events.empty());
  EXPECT_EQ(sum.origin_ns, 0u);
  EXPECT_EQ(c.info, "0");
}

TEST(trace_file, names_that_cannot_be_written_are_bad_options) {
  for (const char* path : {"/no/such/folder/x", "/"}) {
    try {
      trace_file file(path);
      ADD_FAILURE() << path;
    } catch (const std::invalid_argument& e) {
      const std::string text = e.what();
      EXPECT_TRUE(text.starts_with("godwit: cannot write")) << text;
      EXPECT_NE(text.find(path), std::string::npos) << text;
      EXPECT_NE(text.find("--godwit-trace"), std::string::npos) << text;
      EXPECT_EQ(text.find('\n'), std::string::npos) << text;
    }
  }
}

TEST(trace_file, takes_the_place_of_one_of_an_earlier_version) {
  char path[] = "/tmp/godwit-trace-test-XXXXXX";
  const int fd = mkstemp(path);
  ASSERT_GE(fd, 0);
  EXPECT_EQ(::write(fd, "godwit01 and more", 17), 17);
  EXPECT_NO_THROW(out_file(path, "trace"));
  EXPECT_EQ(lseek(fd, 0, SEEK_END), 0);
  close(fd);
  unlink(path);
}

TEST(out_file, keeps_a_pipe_while_it_is_paused) {
  const temporary t;
  ASSERT_EQ(mkfifo(t.path.c_str(), 0600), 0);
  const int reader = open(t.path.c_str(), O_RDONLY | O_NONBLOCK);
  ASSERT_GE(reader, 0);
  {
    out_file out(t.path, "trace");
    out.make_readable();
    out.pause();
    char c = 0;
    EXPECT_EQ(read(reader, &c, 1), -1) << "the end, for its reader";
    out.resume();
    out.make_readable();
    out.write("text");
  }
  char got[8] = {};
  EXPECT_EQ(read(reader, got, sizeof got), 4);
  EXPECT_STREQ(got, "text");
  close(reader);
}

TEST(out_file, leaves_the_standard_descriptors_alone) {
  const temporary t;
  const int kept = fcntl(0, F_DUPFD, 3);
  close(0);
  {
    out_file out(t.path, "trace");
    EXPECT_EQ(fcntl(0, F_GETFD), -1);
    out.pause();
    EXPECT_EQ(fcntl(0, F_GETFD), -1);
    out.resume();
    EXPECT_EQ(fcntl(0, F_GETFD), -1);
    out.write("text");
  }
  if (kept >= 0) dup2(kept, 0);
  EXPECT_EQ(std::filesystem::file_size(t.path), 4u);
}

TEST(trace_file, a_full_disk_is_told_not_thrown) {
  if (access("/dev/full", W_OK) != 0) GTEST_SKIP() << "there is no /dev/full here";
  out_file full("/dev/full", "stats-json");
  full.write(std::string(3 << 20, 'x'));
  full.flush();
  EXPECT_EQ(full.problem(), std::strerror(ENOSPC));
}

TEST(text_at, reads_texts_and_survives_any_address) {
  const std::string longer(1000, 'y');
  EXPECT_EQ(text_at(reinterpret_cast<std::uint64_t>("a text")), "a text");
  EXPECT_EQ(text_at(reinterpret_cast<std::uint64_t>(longer.c_str())), longer);
  EXPECT_EQ(text_at(0), "");
  EXPECT_EQ(text_at(1), "");
  EXPECT_EQ(text_at(~0ull - 4096), "");
  const long page = sysconf(_SC_PAGESIZE);
  auto* p = static_cast<char*>(mmap(nullptr, static_cast<std::size_t>(2 * page), PROT_READ | PROT_WRITE,
                                    MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
  munmap(p + page, static_cast<std::size_t>(page));
  std::memcpy(p + page - 4, "end", 4);
  EXPECT_EQ(text_at(reinterpret_cast<std::uint64_t>(p + page - 4)), "end") << "the last bytes before a hole";
  p[page - 1] = 'x';
  EXPECT_EQ(text_at(reinterpret_cast<std::uint64_t>(p + page - 4)), "") << "no end before the hole";
  munmap(p, static_cast<std::size_t>(page));
}

}  // namespace
