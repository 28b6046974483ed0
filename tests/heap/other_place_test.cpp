// A program whose C++ runtime keeps exceptions elsewhere than the library has it, so that nobody tells a
// worker of them: it looks at every spawn. docs/protocols/exceptions.md
// test: timeout=120 skip-asan skip-qemu
#include "context/exceptions.hpp"
#include "support/elsewhere.hpp"
#include "support/schedule.hpp"

#include <gtest/gtest.h>

#include <cxxabi.h>
#include <stdexcept>

namespace {
namespace gw = godwit;

constinit thread_local gw::context::exception_state mine;
}  // namespace

extern "C" {
abi::__cxa_eh_globals* __cxa_get_globals() noexcept {
  return reinterpret_cast<abi::__cxa_eh_globals*>(&mine);
}
abi::__cxa_eh_globals* __cxa_get_globals_fast() noexcept { return __cxa_get_globals(); }
}

namespace {

int rethrown(int n) {
  if (n == 0) return 0;
  auto others = gw::spawn([n] { return rethrown(n - 1); });
  int wrong = 0;
  try {
    try {
      throw std::runtime_error(std::to_string(n) + std::string(50, 'e'));
    } catch (const std::exception&) {
      for (int i = 0; i < 5; ++i) wrong += support::leaf(n) != n + 1;
      gw::yield();
      throw;
    }
  } catch (const std::runtime_error& e) {
    wrong += support::leaf(n) != n + 1;
    wrong += std::stoi(e.what()) != n;
  }
  return wrong + others.join();
}

TEST(OtherPlace, IsFound) {
  const auto place = gw::context::exceptions_here();
  EXPECT_EQ(place.state, &mine);
  EXPECT_FALSE(place.tells);
}

TEST(OtherPlace, HandlersGoOnAllTheSame) {
  for (const auto substrate : {gw::choice::substrate::processes, gw::choice::substrate::threads})
    support::for_each_schedule([&](gw::options o) {
      o.substrate = substrate;
      EXPECT_EQ(gw::run<int>([] { return rethrown(20); }, o), 0);
    });
}

}  // namespace
