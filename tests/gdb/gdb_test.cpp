// test: timeout=180
#include <gtest/gtest.h>
TEST(gdb, nothing) {}
