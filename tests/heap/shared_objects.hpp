// What tests of shared objects have in common.
#pragma once

#include "heap/layout.hpp"
#include "support/elsewhere.hpp"
#include "support/schedule.hpp"

#include <godwit/godwit.hpp>

#include <gtest/gtest.h>

#include <cstdint>
#include <cstdlib>
#include <functional>
#include <map>
#include <mutex>
#include <stdexcept>
#include <string>
#include <sys/wait.h>
#include <unistd.h>
#include <utility>

namespace shared_objects_test {

namespace gw = godwit;

inline void elsewhere() { support::elsewhere(30); }

inline std::string long_text(int n) {
  return std::string(static_cast<std::size_t>(40 + n % 300), 'a') + std::to_string(n);
}

/// The same thing in 2^depth threads that move.
inline int many(const std::function<int(int)>& f, int depth, int n = 0) {
  if (depth == 0) return f(n);
  auto left = gw::spawn([&f, depth, n] { return many(f, depth - 1, 2 * n); });
  const int right = many(f, depth - 1, 2 * n + 1);
  return left.join() + right;
}

inline void for_each_schedule(const std::function<void(const gw::options&)>& body) {
  for (const char* force : {"none", "random", "parents", "children"})
    for (const std::uint32_t workers : {1u, 2u, 4u}) {
      const gw::options o = support::schedule(workers, force, workers == 4 ? 5 : 0);
      SCOPED_TRACE(support::describe(o));
      body(o);
      if (testing::Test::HasFailure()) return;
    }
}

inline bool in_heap(const void* at) { return godwit::heap::here.holds(at); }

/// A table that threads fill, and the lock for it.
struct memo {
  std::mutex lock;
  std::map<int, std::string> texts;
  void put(int n) {
    std::string text = long_text(n);
    const std::lock_guard l(lock);
    texts.insert_or_assign(n, std::move(text));
  }
};

/// Runs @p f in a new process of this program, for what cannot be undone. It gives back 0 if all was right.
inline void in_new_program(const std::function<int()>& f) {
  constexpr const char* mark = "SHARED_OBJECTS_TEST_NEW_PROGRAM";
  if (std::getenv(mark) != nullptr) std::exit(f());
  const testing::TestInfo& test = *testing::UnitTest::GetInstance()->current_test_info();
  const std::string command = std::string(mark) + "=1 /proc/" + std::to_string(getpid()) +
                              "/exe --gtest_filter=" + test.test_suite_name() + "." + test.name();
  const int status = std::system(command.c_str());
  EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0) << status;
}

/// The line that refuses a run; empty: it was not refused.
inline std::string why_refused(const gw::options& o) {
  try {
    gw::run<void>([] {}, o);
  } catch (const std::invalid_argument& e) {
    return e.what();
  }
  return "";
}

}  // namespace shared_objects_test
