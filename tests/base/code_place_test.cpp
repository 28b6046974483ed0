// Tests of names for code addresses: with and without debug information, the caller of inlined functions, no
// code at all.
// test: timeout=60
#include "base/code_place.hpp"
#include "base/text.hpp"

#include <gtest/gtest.h>

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <string>

namespace {

using godwit::base::code_place;

[[gnu::noinline]] std::uintptr_t return_address() {
  return reinterpret_cast<std::uintptr_t>(__builtin_return_address(0));
}
}  // namespace

namespace place_test {
[[gnu::noinline]] std::string somewhere_in_here() {
  const std::string text = code_place(return_address());
  return text;
}
}  // namespace place_test

namespace {

TEST(code_place, names_the_function) {
  const std::string text = place_test::somewhere_in_here();
  EXPECT_NE(text.find("somewhere_in_here"), std::string::npos) << text;
  EXPECT_TRUE(text.find(" + 0x") != std::string::npos ||
              text.find("(code_place_test.cpp:") != std::string::npos)
      << text;
}

TEST(code_place, says_where_nothing_is_known) {
  EXPECT_EQ(code_place(0), "a place that is not known");
  int on_the_stack = 0;
  EXPECT_EQ(code_place(reinterpret_cast<std::uintptr_t>(&on_the_stack)), "a place that is not known");
}

TEST(code_place, lines_of_several_addresses) {
  const std::uintptr_t mine = return_address(),
                       library = reinterpret_cast<std::uintptr_t>(&godwit::base::code_lines);
  const std::uintptr_t asked[] = {library + 4, mine, 0, mine};
  const std::vector<std::string> texts = godwit::base::code_lines(asked);
  ASSERT_EQ(texts.size(), 4u);
  EXPECT_EQ(texts[0], "") << "the library's own";
  EXPECT_NE(texts[1].find("TestBody"), std::string::npos) << texts[1];
  EXPECT_TRUE(texts[1].find(" (code_place_test.cpp:") != std::string::npos ||
              texts[1].find(" + 0x") != std::string::npos)
      << texts[1];
  EXPECT_EQ(texts[2], "");
  EXPECT_EQ(texts[3], texts[1]);
}

TEST(code_place, headers_that_others_include) {
  using godwit::base::in_library_header;
  EXPECT_TRUE(in_library_header("/usr/include/c++/12/bits/std_mutex.h"));
  EXPECT_TRUE(in_library_header("/home/me/include/godwit/mutex.hpp"));
  EXPECT_TRUE(in_library_header("/home/me/godwit/include/godwit/detail/hot.hpp"));
  EXPECT_FALSE(in_library_header("/home/me/godwit/examples/bodies.hpp")) << "a copy of the project";
  EXPECT_FALSE(in_library_header("/home/me/program.cpp"));
  EXPECT_FALSE(in_library_header(""));
}

TEST(code_place, long_names_leave_room_for_what_is_to_be_said) {
  using godwit::base::brief;
  const std::string as_it_is(400, 'x');
  EXPECT_EQ(brief(as_it_is), as_it_is);
  EXPECT_EQ(brief("auto a::spawn<" + std::string(2000, 'y') + ">(int)"),
            "auto a::spawn<" + std::string(400 - 14 - 103, 'y') + "..." + std::string(94, 'y') + ">(int)");
}

TEST(code_place, knows_shared_libraries) {
  const std::string text = code_place(reinterpret_cast<std::uintptr_t>(&std::puts) + 4);
  EXPECT_NE(text.find("puts"), std::string::npos) << text;
}

}  // namespace
