// Tests of nameless shared memory: zero, shared with a forked process, moved, and errors that say what to do.
// test: timeout=30
#include "transport/shm/pages.hpp"

#include "support/child.hpp"

#include <gtest/gtest.h>

#include <cstdlib>
#include <stdexcept>
#include <utility>

namespace {

using godwit::transport::shm::shared_pages;

TEST(shared_pages, a_forked_process_writes_what_we_read) {
  // Far more than there is: only touched pages count. But emulators keep a record of every page.
  const std::size_t size = std::size_t{1} << (std::getenv("STRESS_EMULATED") != nullptr ? 28 : 40);
  const std::size_t middle = size / 2;
  shared_pages p(size, "");
  EXPECT_EQ(p.data()[middle], std::byte{0});
  const auto o = support::run_child([&] {
    p.data()[middle] = std::byte{7};
    return 0;
  });
  EXPECT_EQ(o.status, 0);
  EXPECT_EQ(p.data()[middle], std::byte{7});
  shared_pages q = std::move(p);
  EXPECT_EQ(p.data(), nullptr);
  EXPECT_EQ(q.data()[middle], std::byte{7});
  p = std::move(q);
  EXPECT_EQ(p.size(), size);
}

TEST(shared_pages, too_much_says_what_to_do) {
  try {
    shared_pages p(~std::size_t{0} >> 1, "lower something");
    FAIL();
  } catch (const std::runtime_error& e) {
    EXPECT_NE(std::string(e.what()).find("lower something"), std::string::npos) << e.what();
  }
}

}  // namespace
