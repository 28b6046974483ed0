// A debugger sees the user's frames: gdb breaks in a function inside a thread on a worker and its backtrace
// goes up to where the thread began; also for a thread whose parent has left, and for one that was suspended.
// test: timeout=180 skip-asan skip-qemu
#include "support/schedule.hpp"

#include <godwit/godwit.hpp>

#include <gtest/gtest.h>

#include <cstdio>
#include <cstdlib>
#include <string>
#include <unistd.h>

namespace gw = godwit;

// With C names, so that the same words are in every compiler's backtrace.
extern "C" {
[[gnu::noinline]] int debugger_stop(int n) {
  asm volatile("" : "+r"(n)::"memory");
  return n;
}
[[gnu::noinline]] int debugger_inner(int n) {
  const int v = debugger_stop(n + 1);
  asm volatile("" ::: "memory");
  return v + 1;
}
[[gnu::noinline]] int debugger_middle(int n) {
  auto f = gw::spawn([n] { return debugger_inner(n) + 1; });
  const int v = f.join();
  asm volatile("" ::: "memory");
  return v + 1;
}
[[gnu::noinline]] int debugger_outer(int n) {
  auto f = gw::spawn([n] { return debugger_middle(n) + 1; });
  const int v = f.join();
  asm volatile("" ::: "memory");
  return v + 1;
}
[[gnu::noinline]] int debugger_after_join(int n) {
  auto f = gw::spawn([n] { return n; });
  const int v = f.join();
  return debugger_stop(v) + 1;
}
}

namespace {

// The program that is debugged: this binary again, with only this "test".
TEST(debugged, DISABLED_program) {
  const char* force = std::getenv("DEBUGGED_FORCE");
  const bool after = std::getenv("DEBUGGED_AFTER_JOIN") != nullptr;
  gw::run<int>([after] { return after ? gw::spawn(debugger_after_join, 1).join() : debugger_outer(1); },
               support::schedule(1, force));
}

std::string run_gdb(const char* force, bool after_join) {
  char self[4096] = {};
  if (readlink("/proc/self/exe", self, sizeof self - 1) < 0) return {};
  std::string command =
      "DEBUGGED_FORCE=" + std::string(force) + (after_join ? " DEBUGGED_AFTER_JOIN=1" : "") +
      " timeout 100 gdb -nx -batch -ex 'set debuginfod enabled off' -ex 'set follow-fork-mode child'"
      " -ex 'handle SIGURG nostop noprint pass' -ex 'break debugger_stop' -ex run -ex bt -ex kill --args '" +
      self + "' --gtest_also_run_disabled_tests --gtest_filter=debugged.DISABLED_program 2>&1 </dev/null";
  std::string text;
  std::FILE* pipe = popen(command.c_str(), "r");
  if (pipe == nullptr) return {};
  char line[4096];
  while (std::fgets(line, sizeof line, pipe) != nullptr) text += line;
  pclose(pipe);
  return text;
}

bool usable() {
  if (std::system("gdb --version > /dev/null 2>&1") != 0) return false;
  return std::system(
             "gdb -nx -batch -ex 'break main' -ex run -ex kill --args /bin/true 2>&1 | grep -q 'not "
             "permitted'") != 0;
}
#define NEED_GDB()                                                                        \
  if (!usable())                                                                          \
  GTEST_SKIP() << "gdb is missing or may not trace here: backtraces of threads were NOT " \
                  "tested"

TEST(debugger, backtrace_of_nested_unstolen_threads) {
  NEED_GDB();
  const std::string text = run_gdb("none", false);
  for (const char* frame : {"debugger_stop", "debugger_inner", "debugger_middle", "debugger_outer", "#0 "})
    EXPECT_NE(text.find(frame, text.find("#0 ")), std::string::npos) << "no " << frame << " in\n" << text;
  EXPECT_EQ(text.find("corrupt stack"), std::string::npos) << text;
}

TEST(debugger, backtrace_of_a_thread_whose_parent_left) {
  NEED_GDB();
  for (const char* force : {"parents", "children"}) {
    const std::string text = run_gdb(force, false);
    for (const char* frame : {"debugger_stop", "debugger_inner"})
      EXPECT_NE(text.find(frame, text.find("#0 ")), std::string::npos) << "no " << frame << " in\n" << text;
    EXPECT_EQ(text.find("corrupt stack"), std::string::npos) << force << '\n' << text;
    EXPECT_EQ(text.find("Cannot access memory"), std::string::npos) << force << '\n' << text;
  }
}

TEST(debugger, backtrace_after_a_resumed_join) {
  NEED_GDB();
  for (const char* force : {"none", "parents", "children"}) {
    const std::string text = run_gdb(force, true);
    for (const char* frame : {"debugger_stop", "debugger_after_join"})
      EXPECT_NE(text.find(frame, text.find("#0 ")), std::string::npos) << "no " << frame << " in\n" << text;
    EXPECT_EQ(text.find("corrupt stack"), std::string::npos) << force << '\n' << text;
  }
}

}  // namespace
