// Shared objects in processes that are no workers, after kills, and beside substrates of one process.
// test: timeout=300 skip-asan skip-qemu
#include "heap/heap.hpp"
#include "heap/shared_objects.hpp"

#include <godwit/godwit.hpp>

#include <gtest/gtest.h>

#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstdlib>
#include <functional>
#include <memory>
#include <pthread.h>
#include <stdexcept>
#include <string>
#include <string_view>
#include <sys/wait.h>
#include <unistd.h>

namespace {

namespace heap = godwit::heap;
using namespace shared_objects_test;

bool made_by_handler_is_shared = false;

// Children come to it before they come to the library's handlers.
[[gnu::constructor(101)]] void begin() {
  pthread_atfork(nullptr, nullptr, [] {
    void* volatile made = std::malloc(3000);
    made_by_handler_is_shared = in_heap(made);
    std::free(made);
  });
}

gw::shared_global<memo> global_memo;

/// Says in its exit status that another process than main's has destroyed it.
struct watched {
  const pid_t mains = getpid();
  bool lives = true;
  ~watched() {
    lives = false;
    if (getpid() != mains) _exit(99);
  }
};
gw::shared_global<watched> global_watched;

/// What @p f gives back in a child of main, as its exit status.
int in_child(const std::function<int()>& f) {
  const pid_t pid = fork();
  if (pid == 0) _exit(f());
  int status = -1;
  while (waitpid(pid, &status, 0) < 0 && errno == EINTR) {
  }
  return WIFEXITED(status) ? WEXITSTATUS(status) : 1000 + status;
}

TEST(Fork, AChildOfMainHasACopy) {
  global_memo->put(1);
  const std::uint64_t live = heap::live_bytes();
  const auto* const text = &global_memo->texts.at(1);
  const auto child = [text] {
    if (*text != long_text(1)) return 1;
    {
      const gw::shared_scope shared;
      for (int i = 0; i < 1000; ++i) global_memo->put(i);
      global_memo->texts.at(1) += "changed by the child";
    }
    global_memo->texts.erase(1);
    global_memo->texts.clear();
    if (in_child(
            [] { return std::string(5000, 'x').size() == 5000 && global_memo->texts.empty() ? 0 : 1; }) != 0)
      return 2;  // a child of the child
    if (in_child([] { return global_memo->put(7), global_memo->texts.size() == 1 ? 0 : 1; }) != 0) return 3;
    return why_refused(support::schedule(2)).find("was forked from one") != std::string::npos ? 0 : 4;
  };
  EXPECT_EQ(in_child(child), 0);
  {
    const gw::shared_scope shared;
    EXPECT_EQ(in_child(child), 0);
  }
  EXPECT_EQ(global_memo->texts.size(), 1u);
  EXPECT_EQ(*text, long_text(1));
  EXPECT_EQ(heap::live_bytes(), live);
  heap::check_invariants();
  gw::run<void>([] { global_memo->put(2); }, support::schedule(2));
  EXPECT_EQ(global_memo->texts.size(), 2u);
  global_memo->texts.clear();
}

TEST(Fork, WhileARunIsOn) {
  for_each_schedule([](const gw::options& o) {
    int children = 0;
    gw::on_tick(std::chrono::milliseconds(1), [&children] {
      if (children < 5)
        children += in_child([] {
                      global_memo->texts.clear();
                      return std::string(1000, 'x').size() == 1000 ? 0 : 1;
                    }) == 0;
    });
    gw::run<void>(
        [] {
          many(
              [](int n) {
                elsewhere();
                global_memo->put(n);
                return 0;
              },
              6);
        },
        o);
    gw::on_tick(std::chrono::milliseconds(1), {});
    EXPECT_GT(children, 0);
    EXPECT_EQ(global_memo->texts.size(), 64u);
    global_memo->texts.clear();
    heap::check_invariants();
  });
}

// A scope does nothing there: main's parts of the heap are not that child's, nor its parent's.
TEST(Fork, AChildOfAThread) {
  for_each_schedule([](const gw::options& o) {
    global_memo->put(1);
    const int found = gw::run<int>(
        [] {
          elsewhere();
          return in_child([] {
            const gw::shared_scope shared;
            if (in_heap(std::make_unique<int>(1).get())) return 1;
            return global_memo->texts.at(1) == long_text(1) ? 0 : 2;
          });
        },
        o);
    EXPECT_EQ(found, 0);
    EXPECT_EQ(global_memo->texts.size(), 1u);
    global_memo->texts.clear();
    heap::check_invariants();
  });
}

TEST(Fork, AHandlerOfTheChildAllocatesOfItsOwn) {
  const std::uint64_t live = heap::live_bytes();
  {
    const gw::shared_scope shared;
    EXPECT_EQ(in_child([] { return made_by_handler_is_shared ? 1 : 0; }), 0);
    EXPECT_TRUE(in_heap(std::make_unique<int>(1).get()));
  }
  EXPECT_EQ(heap::live_bytes(), live);
  heap::check_invariants();
}

// What exit destroys in a child is not what the run goes on with; nor has the child a whole copy of it.
TEST(Fork, AChildThatExitsDestroysNone) {
  const auto status = [] {
    const pid_t pid = fork();
    if (pid == 0) std::exit(7);
    int is = -1;
    while (waitpid(pid, &is, 0) < 0 && errno == EINTR) {
    }
    return WIFEXITED(is) ? WEXITSTATUS(is) : 1000 + is;
  };
  EXPECT_EQ(status(), 7);
  for (const char* force : {"none", "children"})
    EXPECT_EQ(gw::run<int>([status] { return gw::spawn(status).join(); }, support::schedule(2, force)), 7);
}

TEST(Killed, AThreadThatExitsDestroysNone) {
  in_new_program([] {
    try {
      gw::run<void>([] { std::exit(3); }, support::schedule(2));
      return 1;
    } catch (const gw::run_error& e) {
      if (e.status() != 70) return 2;
    }
    return global_watched->lives ? 0 : 3;
  });
}

TEST(Killed, ARunLeavesWhatMayBeTorn) {
  in_new_program([] {
    std::string* before = nullptr;
    {
      const gw::shared_scope shared;
      before = new std::string(long_text(1));
      try {
        gw::run<void>([] { raise(SIGKILL); }, support::schedule(2));
        return 1;
      } catch (const gw::run_error&) {
      }
      if (in_heap(std::make_unique<int>(1).get())) return 2;
    }
    if (*before != long_text(1)) return 3;
    delete before;  // without effect
    if (!why_refused(support::schedule(2)).ends_with("start the program again")) return 4;
    if (in_child([] { return global_memo->put(1), 0; }) != 0) return 5;
    gw::options o = support::schedule(2);
    o.substrate = gw::choice::substrate::threads;
    return gw::run<int>([] { return 0; }, o);
  });
}

}  // namespace
