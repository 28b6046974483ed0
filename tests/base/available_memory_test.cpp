// Tests of src/base/available_memory: made-up /proc and /sys trees.
// test: timeout=60
#include "base/available_memory.hpp"

#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <string>

namespace {

namespace fs = std::filesystem;
using godwit::base::available_memory;

constexpr std::uint64_t MiB = 1 << 20;

class available : public ::testing::Test {
 protected:
  available() : root_(fs::temp_directory_path() / ("godwit_memory_" + std::to_string(::getpid()))) {
    fs::remove_all(root_);
    file("proc/meminfo", "MemTotal:       8388608 kB\nMemFree: 1 kB\nMemAvailable:   4194304 kB\n");
  }
  ~available() override { fs::remove_all(root_); }
  void file(const std::string& path, const std::string& text) {
    fs::create_directories((root_ / path).parent_path());
    std::ofstream(root_ / path) << text;
  }
  std::uint64_t mib() const { return available_memory(root_.string()) / MiB; }

 private:
  fs::path root_;
};

TEST_F(available, is_what_the_system_has) { EXPECT_EQ(mib(), 4096u); }

TEST_F(available, is_less_in_a_control_group) {
  file("proc/self/mountinfo", "35 24 0:30 / /sys/fs/cgroup rw - cgroup2 cgroup2 rw\n");
  file("proc/self/cgroup", "0::/jobs/one\n");
  file("sys/fs/cgroup/jobs/one/memory.max", "max\n");
  file("sys/fs/cgroup/jobs/one/memory.current", std::to_string(100 * MiB));
  EXPECT_EQ(mib(), 4096u);
  file("sys/fs/cgroup/jobs/memory.max", std::to_string(1000 * MiB));
  file("sys/fs/cgroup/jobs/memory.current", std::to_string(700 * MiB));
  EXPECT_EQ(mib(), 300u) << "of the group above";
  file("sys/fs/cgroup/jobs/memory.stat", "anon 1\ninactive_file " + std::to_string(40 * MiB) +
                                             "\nactive_file " + std::to_string(60 * MiB) + "\n");
  EXPECT_EQ(mib(), 400u) << "files in memory can go";
  file("sys/fs/cgroup/jobs/memory.current", std::to_string(1200 * MiB));
  EXPECT_EQ(mib(), 0u) << "a limit that was lowered";
}

TEST_F(available, is_less_in_a_control_group_of_v1) {
  file("proc/self/mountinfo", "36 24 0:31 / /sys/fs/cgroup/memory rw - cgroup cgroup rw,memory\n");
  file("proc/self/cgroup", "4:memory:/job\n");
  file("sys/fs/cgroup/memory/job/memory.limit_in_bytes", std::to_string(500 * MiB));
  file("sys/fs/cgroup/memory/job/memory.usage_in_bytes", std::to_string(350 * MiB));
  file("sys/fs/cgroup/memory/job/memory.stat",
       "inactive_file 1\ntotal_inactive_file " + std::to_string(50 * MiB));
  EXPECT_EQ(mib(), 200u);
}

TEST(available_memory, of_this_machine_is_known) {
  const std::uint64_t bytes = available_memory();
  EXPECT_GT(bytes, 0u);
  EXPECT_LT(bytes, std::uint64_t{1} << 60);
}

}  // namespace
