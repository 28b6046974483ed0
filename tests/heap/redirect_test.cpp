// Calls of a C library's function that go to another one.
// test: timeout=60 skip-qemu
#include "heap/redirect.hpp"

#include <gtest/gtest.h>

#include <dlfcn.h>
#include <sys/types.h>
#include <unistd.h>

namespace {

namespace heap = godwit::heap;

pid_t ours() { return -7; }

TEST(Redirect, CallsOfThisProgramAndNothingElse) {
  const pid_t parent = getppid();
  ASSERT_NE(parent, ours());
  const heap::redirection all[] = {{"getppid", reinterpret_cast<void*>(ours)},
                                   {"there_is_no_such_function", reinterpret_cast<void*>(ours)}};
  heap::redirect(all);
  EXPECT_EQ(getppid(), ours());
  auto* const real = reinterpret_cast<pid_t (*)()>(heap::c_library_function("getppid"));
  ASSERT_NE(real, nullptr);
  EXPECT_EQ(real(), parent);
  const heap::redirection back[] = {{"getppid", reinterpret_cast<void*>(real)}};
  heap::redirect(back);
  EXPECT_EQ(getppid(), parent);
  EXPECT_EQ(heap::c_library_function("there_is_no_such_function"), nullptr);
}

}  // namespace
