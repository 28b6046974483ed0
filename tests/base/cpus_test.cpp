// Tests of src/base/cpus: cgroup quotas read from made-up /proc and /sys trees; affinity masks of this
// process.
// test: timeout=60
#include "base/cpus.hpp"

#include <gtest/gtest.h>
#include <sched.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <string>

namespace {

namespace fs = std::filesystem;
using godwit::base::cgroup_cpu_quota;
using godwit::base::usable_cpu_count;
using godwit::base::usable_cpus;

constexpr const char* v2_mount =
    "35 24 0:30 / /sys/fs/cgroup rw,nosuid shared:4 - cgroup2 cgroup2 rw,nsdelegate\n";

class cgroup : public ::testing::Test {
 protected:
  cgroup() : root_(fs::temp_directory_path() / ("godwit_cpus_" + std::to_string(::getpid()))) {
    fs::remove_all(root_);
  }
  ~cgroup() override { fs::remove_all(root_); }
  void file(const std::string& path, const std::string& text) {
    fs::create_directories((root_ / path).parent_path());
    std::ofstream(root_ / path) << text;
  }
  unsigned quota() const { return cgroup_cpu_quota(root()); }
  std::string root() const { return root_.string(); }

 private:
  fs::path root_;
};

// One line a CPU: package, cache, core.
class order : public cgroup {
 protected:
  void cpu(int number, const std::string& package, const std::string& cache, const std::string& core) {
    const std::string at = "sys/devices/system/cpu/cpu" + std::to_string(number);
    file(at + "/topology/core_siblings_list", package + "\n");
    if (!cache.empty()) file(at + "/cache/index3/shared_cpu_list", cache + "\n");
    file(at + "/topology/thread_siblings_list", core + "\n");
  }
  std::vector<int> of(std::vector<int> cpus) const { return godwit::base::in_order(std::move(cpus), root()); }
};

TEST_F(order, second_hardware_threads_come_last) {
  for (const int i : {0, 1, 2, 3}) cpu(i, "0-3", "0-3", i < 2 ? "0-1" : "2-3");
  EXPECT_EQ(of({0, 1, 2, 3}), (std::vector<int>{0, 2, 1, 3}));
}

TEST_F(order, packages_and_caches_stand_together) {
  // Even numbers in one package; in it two caches, of which one has the CPUs 0 and 6.
  for (const int i : {0, 2, 4, 6}) cpu(i, "0,2,4,6", i == 0 || i == 6 ? "0,6" : "2,4", std::to_string(i));
  for (const int i : {1, 3, 5, 7}) cpu(i, "1,3,5,7", "", std::to_string(i));
  EXPECT_EQ(of({0, 1, 2, 3, 4, 5, 6, 7}), (std::vector<int>{0, 6, 2, 4, 1, 3, 5, 7}));
  EXPECT_EQ(of({7, 6, 2}), (std::vector<int>{6, 2, 7}));  // part of a machine
}

TEST_F(order, ascending_where_nothing_is_known) { EXPECT_EQ(of({3, 1, 2}), (std::vector<int>{1, 2, 3})); }

TEST_F(cgroup, none_without_proc) { EXPECT_EQ(quota(), 0u); }

TEST_F(cgroup, v2_max_is_no_quota) {
  file("proc/self/mountinfo", v2_mount);
  file("proc/self/cgroup", "0::/user.slice/job\n");
  file("sys/fs/cgroup/user.slice/job/cpu.max", "max 100000\n");
  EXPECT_EQ(quota(), 0u);
}

TEST_F(cgroup, v2_rounds_up) {
  file("proc/self/mountinfo", v2_mount);
  file("proc/self/cgroup", "0::/job\n");
  file("sys/fs/cgroup/job/cpu.max", "250000 100000\n");
  EXPECT_EQ(quota(), 3u);
  file("sys/fs/cgroup/job/cpu.max", "200000 100000\n");
  EXPECT_EQ(quota(), 2u);
  file("sys/fs/cgroup/job/cpu.max", "1000 100000\n");
  EXPECT_EQ(quota(), 1u);
}

TEST_F(cgroup, v2_least_of_the_path_counts) {
  file("proc/self/mountinfo", v2_mount);
  file("proc/self/cgroup", "0::/a/b/c\n");
  file("sys/fs/cgroup/a/b/c/cpu.max", "800000 100000\n");
  file("sys/fs/cgroup/a/b/cpu.max", "max 100000\n");
  file("sys/fs/cgroup/a/cpu.max", "400000 100000\n");
  EXPECT_EQ(quota(), 4u);
  file("sys/fs/cgroup/cpu.max", "100000 50000\n");  // a container's own root
  EXPECT_EQ(quota(), 2u);
}

TEST_F(cgroup, v2_process_outside_the_namespace) {
  file("proc/self/mountinfo", v2_mount);
  file("proc/self/cgroup", "0::/../other\n");
  file("sys/fs/cgroup/cpu.max", "300000 100000\n");
  EXPECT_EQ(quota(), 3u);
}

TEST_F(cgroup, v1_quota) {
  file("proc/self/mountinfo",
       "30 24 0:26 / /sys/fs/cgroup/memory rw - cgroup cgroup rw,memory\n"
       "31 24 0:27 / /sys/fs/cgroup/cpu,cpuacct rw - cgroup cgroup rw,cpu,cpuacct\n");
  file("proc/self/cgroup", "5:memory:/job\n4:cpu,cpuacct:/job/step\n1:name=systemd:/\n");
  file("sys/fs/cgroup/cpu,cpuacct/job/step/cpu.cfs_quota_us", "-1\n");
  file("sys/fs/cgroup/cpu,cpuacct/job/step/cpu.cfs_period_us", "100000\n");
  EXPECT_EQ(quota(), 0u);
  file("sys/fs/cgroup/cpu,cpuacct/job/cpu.cfs_quota_us", "150000\n");
  file("sys/fs/cgroup/cpu,cpuacct/job/cpu.cfs_period_us", "100000\n");
  EXPECT_EQ(quota(), 2u);
}

TEST_F(cgroup, v1_container_that_sees_host_paths) {
  file("proc/self/mountinfo", "31 24 0:27 /docker/4f1 /sys/fs/cgroup/cpu ro - cgroup cgroup rw,cpu\n");
  file("proc/self/cgroup", "4:cpu:/docker/4f1/inner\n");
  file("sys/fs/cgroup/cpu/inner/cpu.cfs_quota_us", "600000\n");
  file("sys/fs/cgroup/cpu/inner/cpu.cfs_period_us", "100000\n");
  EXPECT_EQ(quota(), 6u);
  file("sys/fs/cgroup/cpu/cpu.cfs_quota_us", "500000\n");
  file("sys/fs/cgroup/cpu/cpu.cfs_period_us", "100000\n");
  EXPECT_EQ(quota(), 5u);
  file("proc/self/cgroup", "4:cpu:/docker/other\n");
  EXPECT_EQ(quota(), 5u);
}

TEST_F(cgroup, v1_and_v2_mounted_together) {
  file("proc/self/mountinfo",
       "31 24 0:27 / /sys/fs/cgroup/cpu rw - cgroup cgroup rw,cpu\n"
       "32 24 0:28 / /sys/fs/cgroup/unified rw - cgroup2 cgroup2 rw\n");
  file("proc/self/cgroup", "4:cpu:/a\n0::/b\n");
  file("sys/fs/cgroup/cpu/a/cpu.cfs_quota_us", "700000\n");
  file("sys/fs/cgroup/cpu/a/cpu.cfs_period_us", "100000\n");
  file("sys/fs/cgroup/unified/b/cpu.max", "900000 100000\n");
  EXPECT_EQ(quota(), 7u);
}

TEST_F(cgroup, mount_point_with_a_space) {
  file("proc/self/mountinfo", "35 24 0:30 / /sys/fs/my\\040cgroup rw - cgroup2 cgroup2 rw\n");
  file("proc/self/cgroup", "0::/\n");
  file("sys/fs/my cgroup/cpu.max", "200000 100000\n");
  EXPECT_EQ(quota(), 2u);
}

TEST_F(cgroup, garbage_is_no_quota) {
  file("proc/self/mountinfo", std::string("nonsense\n- - -\n") + v2_mount);
  file("proc/self/cgroup", "::\n0::/job\nrubbish\n");
  for (const char* text : {"", "\n", "x y\n", "100000\n", "100000 0\n", "-5 100000\n"}) {
    file("sys/fs/cgroup/job/cpu.max", text);
    EXPECT_EQ(quota(), 0u) << text;
  }
}

TEST(cpus, are_those_of_the_mask) {
  cpu_set_t before;
  ASSERT_EQ(sched_getaffinity(0, sizeof before, &before), 0);
  auto cpus = usable_cpus();
  EXPECT_EQ(static_cast<int>(cpus.size()), CPU_COUNT(&before));
  for (int cpu : cpus) EXPECT_TRUE(CPU_ISSET(cpu, &before)) << cpu;
  std::sort(cpus.begin(), cpus.end());
  EXPECT_EQ(std::adjacent_find(cpus.begin(), cpus.end()), cpus.end());
  EXPECT_GE(usable_cpu_count(), 1u);
  EXPECT_LE(usable_cpu_count(), cpus.size());
}

TEST(cpus, of_processes_on_one_machine) {
  using godwit::base::cpu_share;
  cpu_share first, second;
  first.mask[0] = 0b0011, second.mask[0] = 0b0110, second.mask[63] = 1;
  const auto count = [&] { return godwit::base::usable_cpu_count(std::array{first, second}); };
  EXPECT_EQ(count(), 4u) << "those that they share count once";
  first.quota = 1;
  EXPECT_EQ(count(), 4u) << "one has no quota";
  second.quota = 3;
  EXPECT_EQ(count(), 3u);
  const cpu_share mine = godwit::base::own_cpu_share();
  EXPECT_EQ(godwit::base::usable_cpu_count({&mine, 1}), godwit::base::usable_cpu_count());
}

TEST(cpus, follow_a_narrower_mask) {
  cpu_set_t before, one;
  ASSERT_EQ(sched_getaffinity(0, sizeof before, &before), 0);
  const int last = usable_cpus().back();
  CPU_ZERO(&one);
  CPU_SET(last, &one);
  ASSERT_EQ(sched_setaffinity(0, sizeof one, &one), 0);
  EXPECT_EQ(usable_cpus(), std::vector<int>{last});
  EXPECT_EQ(usable_cpu_count(), 1u);
  ASSERT_EQ(sched_setaffinity(0, sizeof before, &before), 0);
}

}  // namespace
