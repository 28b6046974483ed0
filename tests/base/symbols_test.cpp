// The tables of symbols of this program.
#include "base/symbols.hpp"

#include <gtest/gtest.h>

#include <fstream>
#include <cstdio>
#include <link.h>
#include <string>
#include <unistd.h>

namespace {

using godwit::base::each_symbol;
using godwit::base::own_program;
using godwit::base::symbol;

std::uintptr_t loaded_at() {
  std::uintptr_t at = 0;
  dl_iterate_phdr([](dl_phdr_info* i, std::size_t,
                     void* to) { return *static_cast<std::uintptr_t*>(to) = i->dlpi_addr, 1; },
                  &at);
  return at;
}

}  // namespace

extern "C" {
long symbols_test_variable[5] = {1};
[[gnu::noinline]] long symbols_test_function(long x) { return x + symbols_test_variable[0]; }
}

namespace {

TEST(symbols, of_this_program) {
  int functions = 0, variables = 0;
  each_symbol(own_program(), [&](const symbol& s) {
    const std::string name = s.name;
    if (name == "symbols_test_variable") {
      ++variables;
      EXPECT_FALSE(s.is_function);
      EXPECT_EQ(s.bytes, sizeof symbols_test_variable);
      EXPECT_EQ(s.begin + loaded_at(), reinterpret_cast<std::uintptr_t>(symbols_test_variable));
    }
    if (name == "symbols_test_function") {
      ++functions;
      EXPECT_TRUE(s.is_function);
      EXPECT_EQ(s.begin + loaded_at(), reinterpret_cast<std::uintptr_t>(symbols_test_function));
    }
    return true;
  });
  EXPECT_EQ(functions, 1);
  EXPECT_EQ(variables, 1);
}

TEST(symbols, end_when_told) {
  int n = 0;
  each_symbol(own_program(), [&](const symbol&) { return ++n < 3; });
  EXPECT_EQ(n, 3);
}

TEST(symbols, of_what_has_none) {
  const auto never = [](const symbol&) {
    ADD_FAILURE();
    return true;
  };
  each_symbol("/", never);
  each_symbol("/nowhere", never);
  const std::string file = testing::TempDir() + "symbols_test_" + std::to_string(getpid());
  for (const std::string& content :
       {std::string(), std::string(1000, 'x'), "\177ELF" + std::string(3000, '\377')}) {
    std::ofstream(file, std::ios::binary) << content;
    each_symbol(file, never);
  }
  std::remove(file.c_str());
}

}  // namespace
