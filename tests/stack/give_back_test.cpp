// Tests of pages that go back to the system.
#include "stack/give_back.hpp"

#include <gtest/gtest.h>

#include <cstdint>
#include <cstring>
#include <sys/mman.h>
#include <unistd.h>

namespace {

TEST(give_back, whole_pages_read_as_zero_and_what_lies_beside_them_stays) {
  const auto page = static_cast<std::size_t>(sysconf(_SC_PAGESIZE));
  auto* const p = static_cast<std::byte*>(
      mmap(nullptr, 4 * page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
  ASSERT_NE(p, MAP_FAILED);
  std::memset(p, 7, 4 * page);
  godwit::stack::give_back(p + 100, 3 * page);
  unsigned char resident[4] = {};
  ASSERT_EQ(mincore(p, 4 * page, resident), 0);
  EXPECT_TRUE((resident[0] & 1) != 0 && (resident[3] & 1) != 0);
  EXPECT_TRUE((resident[1] & 1) == 0 && (resident[2] & 1) == 0);
  EXPECT_EQ(p[page - 1], std::byte{7});
  EXPECT_EQ(p[page], std::byte{0});
  EXPECT_EQ(p[3 * page - 1], std::byte{0});
  EXPECT_EQ(p[3 * page], std::byte{7});
  godwit::stack::give_back(p + 100, page);
  EXPECT_EQ(p[100], std::byte{7}) << "no whole page";
  munmap(p, 4 * page);
}

}  // namespace
