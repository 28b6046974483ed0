// Tests of where the C++ runtime keeps exceptions, and of what a worker hears of them.
// test: timeout=60
#include "context/exceptions.hpp"

#include "context/context.hpp"

#include <gtest/gtest.h>

#include <exception>
#include <thread>
#include <utility>

namespace {

namespace context = godwit::context;

struct exceptions : testing::Test {
  godwit::detail::hot_words hot;
  context::exception_place place = context::exceptions_here();
  void SetUp() override { context::use_hot_words(&hot); }
  void TearDown() override { context::use_hot_words(nullptr); }
};

TEST_F(exceptions, are_where_it_says) {
  EXPECT_TRUE(place.tells);
  EXPECT_TRUE(place.state->empty());
  try {
    throw 1;
  } catch (int) {
    EXPECT_NE(place.state->caught, nullptr);
    const context::exception_state mine = std::exchange(*place.state, {});
    EXPECT_EQ(std::current_exception(), nullptr);
    *place.state = mine;
    EXPECT_NE(std::current_exception(), nullptr);
  }
  EXPECT_TRUE(place.state->empty());
}

TEST_F(exceptions, set_poll_before_there_are_any) {
  struct looks {
    exceptions& of;
    std::uint32_t& poll;
    ~looks() {
      poll = of.hot.poll;
      EXPECT_EQ(of.place.state->uncaught, 1u);
      of.hot.poll = 0;
    }
  };
  std::uint32_t unwinding = 0;
  try {
    const looks at{*this, unwinding};
    throw 1;
  } catch (int) {
    EXPECT_EQ(unwinding, context::poll_exceptions);
    EXPECT_EQ(hot.poll, context::poll_exceptions) << "caught";
  }
}

TEST_F(exceptions, do_not_hide_who_asks) {
  hot.poll = 1;
  try {
    throw 1;
  } catch (int) {
  }
  EXPECT_EQ(hot.poll, 1u);
}

TEST_F(exceptions, of_other_threads_are_nobody_elses_business) {
  std::thread([] {
    try {
      throw 1;
    } catch (int) {
    }
  }).join();
  EXPECT_EQ(hot.poll, 0u);
}

}  // namespace
