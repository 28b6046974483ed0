// map_file: the bytes, the same address everywhere, and every error. Runs under MPI as well (tests/mpi).
#include <gtest/gtest.h>
#include <godwit/algorithm.hpp>
#include <godwit/godwit.hpp>

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <numeric>
#include <stdexcept>
#include <string>
#include <system_error>
#include <vector>

#include <unistd.h>

#include "container_runs.hpp"
#include "support/child.hpp"
#include "support/substrate.hpp"

using namespace container_runs;

namespace {

/// A folder that all ranks of one machine name alike, and of which each test has its own part. It goes with
/// its object: once all ranks are through with the test's runs.
class folder {
 public:
  explicit folder(const char* test)
      : path_(std::filesystem::temp_directory_path() /
              ("godwit_map_file_" + std::to_string(getppid()) + "_" + test)) {
    std::filesystem::create_directories(path_);
  }
  ~folder() {
    gw::run<void>([] {});
    std::error_code another_rank_does;
    std::filesystem::remove_all(path_, another_rank_does);
  }
  folder(const folder&) = delete;
  folder& operator=(const folder&) = delete;
  std::string operator+(const char* name) const { return path_ + name; }
  const std::string& path() const { return path_; }

 private:
  const std::string path_;
};

/// Written whole under another name first: other ranks write the same.
std::string file_of(const std::string& path, std::uint64_t words, std::uint64_t seed = 0) {
  const std::string own = path + "." + std::to_string(getpid());
  {
    std::ofstream out(own, std::ios::binary);
    for (std::uint64_t i = 0; i < words; ++i) {
      const std::uint64_t w = i * i + seed;
      out.write(reinterpret_cast<const char*>(&w), sizeof w);
    }
  }
  std::filesystem::rename(own, path);
  return path;
}

struct name {
  char text[200] = {};
  explicit name(const std::string& s) { s.copy(text, sizeof text - 1); }
};

TEST(MapFile, TheBytesAreThereInAllWorkers) {
  const folder f("bytes");
  const name path(file_of(f + "/words", 100'000));
  in_all_runs([path] {
    const gw::mapped_file f = gw::map_file(path.text);
    WANT(f.size() == 800'000);
    const std::span<const std::uint64_t> words = f.as<std::uint64_t>();
    WANT(words.size() == 100'000 && words[99'999] == 99'999ull * 99'999);
    const std::uint64_t* last = &words[777];
    gw::on_each_worker([words, last] {
      if (*last != 777 * 777 || words[5] != 25) throw std::runtime_error("other bytes here");
    });
    const auto sum = gw::transform_reduce(
        gw::index_range<std::uint64_t>(0, words.size()), std::uint64_t{0},
        [](std::uint64_t a, std::uint64_t b) { return a + b; },
        [words](std::uint64_t i) { return words[i] - i * i; });
    WANT(sum == 0);
    // A pointer into it, kept in global memory, is good wherever it is read.
    gw::global_array<const std::uint64_t*> pointers(10, gw::distribution::blocked(), last);
    gw::spawn([s = pointers.span()] {
      WANT(**gw::checkout(s.data(), 1, gw::access::read).data() == 777 * 777);
    }).join();
  });
}

/// Also to other hosts, whose requests are carried out by a companion that sees other pages there.
TEST(MapFile, ItIsPutIntoGlobalMemory) {
  const folder f("put");
  const name path(file_of(f + "/words", 100'000));
  in_all_runs([path] {
    const std::span<const std::uint64_t> words = gw::map_file(path.text).as<std::uint64_t>();
    const auto same = [words](gw::global_span<std::uint64_t> all) {
      std::vector<std::uint64_t> found(all.size());
      gw::get(all.data(), found.data(), found.size());
      return std::equal(words.begin(), words.end(), found.begin(), found.end());
    };
    gw::global_array<std::uint64_t> whole(words.size(), gw::distribution::blocked());
    gw::put(whole.data(), words.data(), words.size());
    WANT(same(whole.span()));
    gw::global_array<std::uint64_t> parts(words.size(), gw::distribution::blocked());
    gw::on_each_worker([words, to = parts.data()] {
      if (gw::worker_id() >= gw::worker_count()) return;
      const std::uint64_t each = words.size() / gw::worker_count();
      const std::uint64_t next = (gw::worker_id() + 1) % gw::worker_count();
      const std::uint64_t n = next + 1 == gw::worker_count() ? words.size() - next * each : each;
      gw::put(to + next * each, words.data() + next * each, n);
    });
    WANT(same(parts.span()));
  });
}

TEST(MapFile, SeveralAndOddSizes) {
  const folder f("several");
  const name none(file_of(f + "/none", 0)), one(file_of(f + "/one", 1, 7)),
      many(file_of(f + "/many", 3000, 1));
  std::filesystem::resize_file(many.text, 23'999);
  in_all_runs([=] {
    const gw::mapped_file a = gw::map_file(none.text), b = gw::map_file(one.text),
                          c = gw::map_file(many.text);
    const gw::mapped_file again = gw::map_file(one.text);
    WANT(a.empty() && a.as<int>().empty() && a.text().empty());
    WANT(b.as<std::uint64_t>()[0] == 7 && again.as<std::uint64_t>()[0] == 7 && b.data() != again.data());
    WANT(c.size() == 23'999 && c.as<std::uint64_t>().size() == 2999 &&
         c.as<std::uint64_t>()[2998] == 2998ull * 2998 + 1);
    WANT(b.text().substr(0, 1) == "\7");
    gw::global_array<int> other(1000, gw::distribution::blocked(), 3);  // addresses behind them are as ever
    WANT(other[999] == 3);
  });
}

TEST(MapFile, WhatIsWrongIsSaid) {
  const folder f("wrong");
  const name missing(f + "/missing"), directory(f.path()), there(file_of(f + "/there", 10));
  EXPECT_THROW(
      {
        try {
          static_cast<void>(gw::map_file(there.text));
        } catch (const std::logic_error& e) {
          EXPECT_NE(std::string(e.what()).find("outside godwit::run"), std::string::npos);
          throw;
        }
      },
      std::logic_error);
  in_all_runs([=] {
    WANT_THROW(gw::map_file(missing.text), std::runtime_error, "cannot open it: No such file");
    WANT_THROW(gw::map_file(directory.text), std::runtime_error, "it is no regular file");
    char long_name[5000];
    std::fill_n(long_name, 4999, 'x');
    long_name[4999] = 0;
    WANT_THROW(gw::map_file(long_name), std::runtime_error, "too long");
    WANT(gw::map_file(there.text).size() == 80);
  });
}

/// What another worker sees differs: here, since it has another working directory.
TEST(MapFile, OtherWorkersMustSeeTheSame) {
  GODWIT_NEEDS_PROCESSES("one process has one working directory");
  const folder f("other");
  for (const char* d : {"/a", "/shorter", "/changed", "/empty"}) std::filesystem::create_directories(f + d);
  file_of(f + "/a/words", 5000);
  file_of(f + "/shorter/words", 4000);
  file_of(f + "/changed/words", 5000, 1);
  const name here(f + "/a"), shorter(f + "/shorter"), changed(f + "/changed"), empty(f + "/empty");
  gw::options o;
  o.workers = 2;
  gw::run<void>(
      [=] {
        const auto at = [=](const name& other) {
          const std::uint32_t me = gw::worker_id();
          gw::on_each_worker([=] {
            if (chdir(gw::worker_id() == me ? here.text : other.text) != 0) std::abort();
          });
        };
        // A thread may be elsewhere after on_each_worker; then the other worker has the right file.
        at(here);
        WANT(gw::map_file("/proc/self/cwd/words").size() == 40'000);
        at(shorter);
        WANT_THROW(gw::map_file("/proc/self/cwd/words"), std::runtime_error, "bytes, but");
        at(changed);
        WANT_THROW(gw::map_file("/proc/self/cwd/words"), std::runtime_error, "its contents differ");
        at(empty);
        WANT_THROW(gw::map_file("/proc/self/cwd/words"), std::runtime_error, "cannot open it: No such file");
      },
      o);
}

TEST(MapFile, NoAddresses) {
  const folder f("large");
  const name large(file_of(f + "/large", 1));
  std::filesystem::resize_file(large.text, std::uint64_t{1} << 40);  // has no bytes in truth
  gw::options o;
  o.workers = 2;
  o.global_bytes = std::uint64_t{1} << 30;
  gw::run<void>(
      [=] { WANT_THROW(gw::map_file(large.text), gw::global_bad_alloc, "raise --godwit-global-bytes"); }, o);
}

}  // namespace
