// The window on global memory: src/transport/shm/window.hpp.
#include <gtest/gtest.h>

#include "transport/shm/window.hpp"

#include <bit>
#include <cstdlib>
#include <cstring>
#include <stdexcept>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

namespace {

using godwit::transport::shm::window;

/// The emulator keeps a record per page of what is mapped, and gives no memory of files back.
const bool emulated = std::getenv("STRESS_EMULATED") != nullptr;
const std::uint64_t size = emulated ? std::uint64_t{1} << 30 : std::uint64_t{8} << 40;

TEST(window, is_sparse_and_shared_with_children) {
  window w;
  w.create(size);
  ASSERT_EQ(w.bytes(), size);
  if (const pid_t child = fork(); child == 0) {
    w.base()[size - 1] = std::byte{7};
    _exit(0);
  }
  wait(nullptr);
  EXPECT_EQ(w.base()[size - 1], std::byte{7});
  EXPECT_EQ(w.base()[size / 2], std::byte{0});
}

TEST(window, discards_whole_pages_only) {
  if (emulated) GTEST_SKIP() << "not with an emulator";
  window w;
  w.create(size);
  const auto page = static_cast<std::size_t>(sysconf(_SC_PAGESIZE));
  std::memset(w.base(), 1, 3 * page);
  window::discard(w.base() + 1, 3 * page - 2);
  EXPECT_EQ(w.base()[page - 1], std::byte{1});
  EXPECT_EQ(w.base()[page], std::byte{0});
  EXPECT_EQ(w.base()[2 * page - 1], std::byte{0});
  EXPECT_EQ(w.base()[2 * page], std::byte{1});
  window::discard(w.base(), page / 2);
  EXPECT_EQ(w.base()[0], std::byte{1});
}

TEST(window, two_processes_open_one_file_at_one_base) {
  window w;
  w.make_file(size);
  const std::string path = w.file_path();
  const auto candidate = static_cast<unsigned>(std::countr_zero(window::free_bases(size)));
  w.map(candidate);
  const pid_t child = fork();
  if (child == 0) {
    w.destroy();
    window other;
    other.open_file(size, path);
    other.map(candidate);
    other.base()[4096] = std::byte{9};
    _exit(0);
  }
  int status = 0;
  waitpid(child, &status, 0);
  EXPECT_EQ(status, 0);
  EXPECT_EQ(w.base()[4096], std::byte{9});
}

TEST(window, of_each_host_lies_beside_the_others) {
  const std::uint64_t bytes = size / 8;
  const auto candidate = static_cast<unsigned>(std::countr_zero(window::free_bases(4 * bytes)));
  std::byte* base = nullptr;
  for (const std::uint32_t number : {0u, 2u, 3u}) {
    window w;
    w.lie_beside(number, 4);
    w.make_file(bytes);
    w.map(candidate);
    if (base == nullptr) base = w.base();
    EXPECT_EQ(w.base(), base + number * bytes);
    EXPECT_EQ(w.base_of_all(), base);
    EXPECT_EQ(w.bytes_of_all(), 4 * bytes);
    w.base()[bytes - 1] = std::byte{7};
    // Others' are reserved, and inaccessible.
    for (std::uint32_t i = 0; i < 4; ++i) {
      int ends[2];
      ASSERT_EQ(pipe(ends), 0);
      EXPECT_EQ(write(ends[1], base + i * bytes, 1) == 1, i == number);
      close(ends[0]);
      close(ends[1]);
    }
  }
  EXPECT_EQ(mmap(base, bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0), base)
      << "all of it is given back";
  munmap(base, bytes);
}

TEST(window, says_what_limits_it) {
  const pid_t child = fork();
  if (child == 0) {
    const rlimit small{1 << 20, 1 << 20};
    setrlimit(RLIMIT_FSIZE, &small);
    int problems = window::largest(size) == 0 ? 0 : 1;
    try {
      window w;
      w.create(size);
      problems += 2;
    } catch (const std::runtime_error& e) {
      if (std::strstr(e.what(), "ulimit -f") == nullptr ||
          std::strstr(e.what(), "--godwit-global-bytes") == nullptr)
        problems += 4;
    }
    _exit(problems);
  }
  int status = 0;
  waitpid(child, &status, 0);
  EXPECT_EQ(WEXITSTATUS(status), 0);
}

TEST(window, takes_less_where_there_is_less) {
  if (emulated) GTEST_SKIP() << "not with an emulator";
  EXPECT_EQ(window::largest(size), size);
  EXPECT_EQ(window::largest(std::uint64_t{1} << 62) & (window::largest(std::uint64_t{1} << 62) - 1), 0u);
}

}  // namespace
