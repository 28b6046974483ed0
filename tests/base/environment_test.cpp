// Tests of src/base/environment: variables are still there, and can be changed, after the block has moved.
// test: timeout=60
#include "base/environment.hpp"

#include <gtest/gtest.h>

#include <cstdlib>
#include <string>
#include <utility>

extern "C" char** environ;

namespace {

TEST(environment, survives_its_move) {
  ASSERT_EQ(::setenv("GOOSE", "grey", 1), 0);
  char** before = environ;
  godwit::base::move_environment();
  EXPECT_NE(environ, before);
  ASSERT_NE(std::getenv("GOOSE"), nullptr);
  EXPECT_EQ(std::string(std::getenv("GOOSE")), "grey");
  ASSERT_EQ(::setenv("GOOSE", "bar-headed, a word that is longer", 1), 0);
  ASSERT_EQ(::setenv("GODWIT", "bar-tailed", 1), 0);
  EXPECT_EQ(std::string(std::getenv("GOOSE")), "bar-headed, a word that is longer");
  EXPECT_EQ(std::string(std::getenv("GODWIT")), "bar-tailed");
}

TEST(environment, a_switch_is_asked_for) {
  for (const auto& [value, on] : {std::pair{"1", true},
                                  {"YES", true},
                                  {"on", true},
                                  {"0", false},
                                  {"off", false},
                                  {"", false},
                                  {"goose", false}}) {
    ::setenv("GOOSE", value, 1);
    EXPECT_EQ(godwit::base::environment_asks("GOOSE"), on) << value;
  }
  ::unsetenv("GOOSE");
  EXPECT_FALSE(godwit::base::environment_asks("GOOSE"));
}

}  // namespace
