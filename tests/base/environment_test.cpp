// Tests of src/base/environment: variables are still there, and can be changed, after the block has moved.
// test: timeout=60
#include "base/environment.hpp"

#include <gtest/gtest.h>

#include <cstdlib>
#include <string>

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

}  // namespace
