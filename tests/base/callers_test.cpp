// Tests of callers: from the frame of a variable outwards, up to an end.
#include "base/callers.hpp"

#include "base/code_place.hpp"

#include <gtest/gtest.h>

#include <algorithm>

namespace callers_test {

using godwit::base::callers;

// Every function does something behind its call, so that it has a frame.
[[gnu::noinline]] callers innermost(const void* variable, std::uintptr_t end) {
  callers c = godwit::base::callers_of(variable, end);
  asm volatile("" : "+m"(c));
  return c;
}
[[gnu::noinline]] callers passed_over(const void* variable, std::uintptr_t end) {
  callers c = innermost(variable, end);
  asm volatile("" : "+m"(c));
  return c;
}
[[gnu::noinline]] callers has_the_variable(std::uintptr_t end) {
  volatile int here = 0;
  callers c = passed_over(const_cast<const int*>(&here), end);
  asm volatile("" : "+m"(c));
  return c;
}
[[gnu::noinline]] callers outermost(bool all) {
  volatile int here = 0;
  callers c = has_the_variable(all ? ~std::uintptr_t{0} : reinterpret_cast<std::uintptr_t>(&here));
  asm volatile("" : "+m"(c));
  return c;
}

std::string function_of(std::uintptr_t code) { return godwit::base::code_place(code); }

TEST(Callers, BeginWhereTheVariableIs) {
  const callers c = outermost(true);
  EXPECT_NE(function_of(c.code[0]).find("has_the_variable"), std::string::npos) << function_of(c.code[0]);
  EXPECT_NE(function_of(c.code[1]).find("outermost"), std::string::npos) << function_of(c.code[1]);
  EXPECT_NE(c.code.back(), 0u) << "there are more";
}

TEST(Callers, DoNotGoBeyondTheEnd) {
  const callers c = outermost(false);
  EXPECT_NE(function_of(c.code[0]).find("has_the_variable"), std::string::npos) << function_of(c.code[0]);
  // The frame in which the end lies begins before it; those behind it are not looked at.
  EXPECT_EQ(std::count(c.code.begin() + 2, c.code.end(), 0u), 4);
}

}  // namespace callers_test
