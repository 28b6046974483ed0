// What a run writes: files that options name do not overwrite somebody else's, and output that is lost is an
// error.
// test: timeout=120
#include "support/child.hpp"
#include "support/schedule.hpp"

#include <godwit/godwit.hpp>

#include <gtest/gtest.h>

#include <cstdio>
#include <fcntl.h>
#include <fstream>
#include <functional>
#include <iostream>
#include <iterator>
#include <string>
#include <unistd.h>

namespace {

namespace gw = godwit;
using support::outcome;
using support::run_child;
using support::schedule;
using support::show;

[[gnu::noinline]] long fib(int n) {
  if (n < 2) return n;
  auto x = gw::spawn([n] { return fib(n - 1); });
  const long y = fib(n - 2);
  return x.join() + y;
}

int run(const std::function<void()>& root, const gw::options& o = schedule(2)) {
  char name[] = "program";
  char* argv[] = {name, nullptr};
  return gw::run(
      1, argv, [&root] { root(); }, o);
}

struct file {
  std::string path = testing::TempDir() + "godwit_output_test." + std::to_string(getpid());
  explicit file(const std::string& text) { std::ofstream(path) << text; }
  ~file() { std::remove(path.c_str()); }
  std::string text() const {
    std::ifstream in(path, std::ios::binary);
    return {std::istreambuf_iterator<char>(in), {}};
  }
};

gw::options naming(std::string gw::options::*option, const std::string& path) {
  gw::options o = schedule(2);
  o.*option = path;
  return o;
}

constexpr std::string gw::options::*outputs[] = {&gw::options::trace, &gw::options::stats_json};

TEST(output, files_of_others_are_not_overwritten) {
  for (const auto option : outputs) {
    const file f("root:x:0:0:root:/root:/bin/bash\n");
    const outcome child = run_child([&] { return run([] { fib(5); }, naming(option, f.path)); });
    EXPECT_EQ(child.status, 2) << show(child);
    EXPECT_TRUE(child.err_has("no earlier output")) << show(child);
    EXPECT_EQ(child.err_lines(), 1) << show(child);
    EXPECT_EQ(f.text(), "root:x:0:0:root:/root:/bin/bash\n");
  }
}

TEST(output, own_and_empty_files_are) {
  for (const auto option : outputs) {
    const file f("");
    for (int round = 0; round < 2; ++round) {
      const outcome child = run_child([&] { return run([] { fib(5); }, naming(option, f.path)); });
      EXPECT_EQ(child.status, 0) << show(child);
      EXPECT_GT(f.text().size(), 100u);
    }
  }
}

TEST(output, devices_and_pipes_are) {
  for (const auto option : outputs) {
    const outcome nowhere = run_child([&] { return run([] { fib(5); }, naming(option, "/dev/null")); });
    EXPECT_EQ(nowhere.status, 0) << show(nowhere);
    for (const char* path : {"-", "/dev/fd/1"}) {
      const outcome child = run_child([&] { return run([] { fib(5); }, naming(option, path)); });
      EXPECT_EQ(child.status, 0) << show(child);
      EXPECT_GT(child.out.size(), 100u) << show(child);
    }
  }
}

/// To the end of a full device.
template <class F>
outcome with_output_to(const char* device, int fd, F print) {
  return run_child([=] {
    const int to = open(device, O_WRONLY);
    if (to < 0 || dup2(to, fd) != fd) return 99;
    return run(print);
  });
}

TEST(output, that_is_lost_is_an_error) {
  if (access("/dev/full", W_OK) != 0) GTEST_SKIP() << "there is no /dev/full here";
  void (*const ways[])() = {
      [] { std::printf("a line\n"); },
      [] { std::cout << "a line" << std::endl; },
      [] {
        for (int i = 0; i < 10'000; ++i) std::printf("more than a buffer holds\n");
      },
      [] {
        auto f = gw::spawn([] { std::printf("from a thread\n"); });
        f.join();
      },
  };
  for (const auto way : ways) {
    const outcome child = with_output_to("/dev/full", 1, way);
    EXPECT_EQ(child.status, 70) << show(child);
    EXPECT_TRUE(child.err_has("standard output")) << show(child);
    EXPECT_EQ(child.err_lines(), 1) << show(child);
  }
  const outcome child = with_output_to("/dev/full", 2, [] { std::fprintf(stderr, "a line\n"); });
  EXPECT_EQ(child.status, 70) << show(child);
}

// Many, from all workers, to a pipe: none is torn.
TEST(output, lines_stay_whole) {
  const outcome child = run_child([] {
    return run(
        [] {
          gw::future<void> f[40];
          for (int i = 0; i < 40; ++i)
            f[i] = gw::spawn([i] {
              fib(5);
              for (int k = 0; k < 100; ++k)
                std::printf("thread %02d says for the %02dth time that this is a whole line\n", i, k);
            });
          for (auto& x : f) x.join();
        },
        schedule(4, "random"));
  });
  EXPECT_EQ(child.status, 0);
  int lines = 0;
  for (std::size_t at = 0, end; (end = child.out.find('\n', at)) != std::string::npos;
       at = end + 1, ++lines) {
    const std::string line = child.out.substr(at, end - at);
    EXPECT_TRUE(line.starts_with("thread ") && line.ends_with("th time that this is a whole line") &&
                line.size() == 58)
        << line;
    if (testing::Test::HasFailure()) return;
  }
  EXPECT_EQ(lines, 4000);
}

TEST(output, nothing_is_lost_where_nobody_wants_any) {
  const outcome nothing = with_output_to("/dev/full", 1, [] {});
  EXPECT_EQ(nothing.status, 0) << show(nothing);
  const outcome closed = run_child([] {
    close(1);
    return run([] { std::printf("a line\n"); });
  });
  EXPECT_EQ(closed.status, 0) << show(closed);
}

}  // namespace
