// Somebody is killed at a random instant of a program whose workers all allocate in the shared heap: the
// others end, with one line, and nothing stays. 20 kills; STRESS_REPEAT=n: n times as many, with the seeds
// that follow STRESS_SEED.
// test: timeout=300 skip-asan skip-qemu
#include "heap/owning.hpp"
#include "support/child.hpp"
#include "support/shared.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <csignal>
#include <filesystem>
#include <fstream>
#include <map>
#include <memory>
#include <mutex>
#include <random>
#include <set>
#include <sstream>
#include <string>
#include <unistd.h>
#include <vector>

namespace {

namespace gw = godwit;
using owning::long_text, owning::shared_heap;

/// Small blocks and large ones that go up through joins, and are freed by who has them then.
struct tree {
  std::map<int, std::string> texts;
  std::vector<char> large;
  std::unique_ptr<tree> left, right;
  long size() const { return 1 + (left ? left->size() : 0) + (right ? right->size() : 0); }
};
std::unique_ptr<tree> grow(int depth) {
  auto t = std::make_unique<tree>();
  for (int i = 0; i < 20; ++i) t->texts.emplace(i, long_text(i * depth));
  t->large.resize(static_cast<std::size_t>(depth) * 30'000);
  if (depth == 0) return t;
  auto left = gw::spawn([depth, kept = std::move(t->texts)] { return grow(depth - 1); });
  t->right = grow(depth - 1);
  t->left = left.join();
  return t;
}

/// What main and all workers have.
struct memo {
  std::mutex lock;
  std::map<long, std::string> texts;
};

enum class kind { plain, recorded, with_shared_objects };

/// Runs one after the other until somebody has been killed. The exit status is the last run's.
int program(kind k, gw::options o, const std::atomic<bool>& killed) {
  const auto objects = k == kind::with_shared_objects ? std::make_unique<gw::shared_global<memo>>() : nullptr;
  o.check_heap = k == kind::recorded;
  char name[] = "program";
  char* argv[] = {name, nullptr};
  int status = 0;
  while (status == 0 && !killed)
    status = gw::run(
        1, argv,
        [&objects] {
          const long size = grow(6)->size();
          if (objects != nullptr) {
            memo& m = **objects;
            const std::lock_guard l(m.lock);
            m.texts.insert_or_assign(static_cast<long>(m.texts.size()) % 100, long_text(7));
          }
          return size == 127 ? 0 : 1;
        },
        o);
  return status;
}

std::vector<pid_t> children_of(pid_t pid) {
  std::ifstream list("/proc/" + std::to_string(pid) + "/task/" + std::to_string(pid) + "/children");
  std::vector<pid_t> children;
  for (pid_t child; list >> child;) children.push_back(child);
  return children;
}

/// But for folders of other tests (tests/mpi/life_common.sh).
std::set<std::string> shared_files() {
  std::set<std::string> found;
  for (const auto& file : std::filesystem::directory_iterator("/dev/shm"))
    if (const std::string name = file.path().filename();
        name.find("godwit") != name.npos && !name.starts_with("godwit-life."))
      found.insert(name);
  return found;
}

std::string messages(const support::outcome& o) {
  std::istringstream text(o.err);
  std::string all;
  for (std::string line; std::getline(text, line);)
    if (line.rfind("godwit: seed ", 0) != 0) all += line + '\n';
  return all;
}

TEST(Kills, LeaveNothingBehind) {
  const std::uint64_t kills = 20 * support::number_from_environment("STRESS_REPEAT", 1);
  const auto files = shared_files();
  std::uint64_t of_main = 0, of_workers = 0;
  // On a busy machine perhaps no worker has been forked yet, time after time.
  for (std::uint64_t i = 0; i < kills || (i < 10 * kills && (of_main == 0 || of_workers == 0)); ++i) {
    std::mt19937_64 random(support::base_seed() + i);
    const auto one_of = [&](auto... these) { return std::data({these...})[random() % sizeof...(these)]; };
    const kind k = one_of(kind::plain, kind::recorded, kind::with_shared_objects);
    gw::options o = shared_heap(one_of(1u, 2u, 4u), one_of("none", "random", "parents", "children"));
    o.seed = support::base_seed() + i;
    const auto after_us = static_cast<useconds_t>(random() % 50'000);
    SCOPED_TRACE(support::describe(o) + " kind=" + std::to_string(static_cast<int>(k)) +
                 " after_us=" + std::to_string(after_us));
    support::shared<std::atomic<bool>> killed;
    pid_t victim = 0;
    bool is_main = false;
    const support::outcome child = support::run_child([&] { return program(k, o, *killed.get()); },
                                                      [&](pid_t main) {
                                                        usleep(after_us);
                                                        std::vector<pid_t> all = children_of(main);
                                                        all.push_back(main);
                                                        victim = all[random() % all.size()];
                                                        is_main = victim == main;
                                                        *killed = true;
                                                        kill(victim, SIGKILL);
                                                      });
    EXPECT_FALSE(child.timed_out) << show(child);
    EXPECT_EQ(child.left_behind, 0) << show(child);
    EXPECT_EQ(shared_files(), files);
    const std::string said = messages(child);
    if (is_main) {
      ++of_main;
      EXPECT_EQ(child.status, 137) << show(child);
      EXPECT_EQ(said, "") << show(child);
    } else if (child.status != 0 || !said.empty()) {  // else the worker had ended
      ++of_workers;
      EXPECT_EQ(child.status, 137) << show(child);
      EXPECT_EQ(std::count(said.begin(), said.end(), '\n'), 1) << show(child);
      EXPECT_NE(said.find(" (process " + std::to_string(victim) + ") was killed by signal 9 (Killed)"),
                said.npos)
          << show(child);
    }
    if (HasFailure()) return;
  }
  EXPECT_GT(of_main, 0u);
  EXPECT_GT(of_workers, 0u);
  RecordProperty("of_main", std::to_string(of_main));
  RecordProperty("of_workers", std::to_string(of_workers));
}

}  // namespace
