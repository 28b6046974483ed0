// What functions are called whose names compilers and demanglers wrote.
// test: once
#include "trace/code_text.hpp"

#include <gtest/gtest.h>

namespace {

using namespace godwit::trace;

TEST(CodeText, ShortFunctions) {
  EXPECT_EQ(short_function("main"), "main");
  EXPECT_EQ(short_function("long fib(int)"), "fib");
  EXPECT_EQ(short_function("fib(int) [clone .isra.0]"), "fib");
  EXPECT_EQ(
      short_function("long (anonymous namespace)::leaf<long>(long, std::vector<int>&) [clone .constprop.0]"),
      "leaf");
  EXPECT_EQ(short_function("void {anonymous}::gets()"), "gets");
  EXPECT_EQ(short_function("tree::visit(node*) const"), "visit");
  EXPECT_EQ(short_function("S::operator()(int) const"), "S::operator()");
  EXPECT_EQ(short_function("bool a::operator<(a::b const&, a::b const&)"), "operator<");
}

TEST(CodeText, LambdasAreCalledAfterTheirFunctions) {
  EXPECT_EQ(short_function("main::{lambda()#1}::operator()() const"), "main");
  EXPECT_EQ(short_function("fib(int)::<lambda()>"), "fib");
  EXPECT_EQ(
      short_function("void each<main::{lambda()#2}>(main::{lambda()#2})::{lambda()#1}::operator()() const"),
      "each");
  EXPECT_EQ(short_function("void each<main::{lambda()#2}>(main::{lambda()#2})"), "each");
}

TEST(CodeText, CodeOfTheLibraryIsCalledAfterWhatItWasGiven) {
  EXPECT_EQ(
      short_function("godwit::detail::child<main::{lambda()#1}, void>::run(unsigned long, unsigned long)"),
      "main");
  EXPECT_EQ(short_function("godwit::detail::word_pair godwit::detail::child<(anonymous "
                           "namespace)::lock()::{lambda()#1}, void>::run(unsigned long)"),
            "lock");
  EXPECT_EQ(short_function("godwit::detail::child<int (*)(), int>::run(unsigned long)"), "");
}

TEST(CodeText, Names) {
  EXPECT_EQ(name_of_place("long fib(int)", "fib.cpp:12"), "fib at fib.cpp:12");
  EXPECT_EQ(name_of_place("", "fib.cpp:12"), "fib.cpp:12");
  EXPECT_EQ(name_of_place("operator()", "fib.cpp:12"), "a lambda at fib.cpp:12");
  const code_text line = code_text_of("fib(int) (fib.cpp:12)"), symbol = code_text_of("fib(int) + 0x1c"),
                  empty = code_text_of("f(int) (a)");
  EXPECT_EQ(line.function, "fib(int)");
  EXPECT_EQ(line.place, "fib.cpp:12");
  EXPECT_EQ(symbol.place, "fib(int) + 0x1c");
  EXPECT_EQ(empty.place, "f(int) (a)");
}

}  // namespace
