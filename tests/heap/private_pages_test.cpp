// Which pages of a process are its own and written.
// test: skip-qemu
#include "heap/private_pages.hpp"

#include <gtest/gtest.h>

#include <csignal>
#include <cstddef>
#include <cstdint>
#include <sys/mman.h>
#include <unistd.h>
#include <vector>

namespace {

using godwit::heap::each_private_stretch;
using godwit::stack::range;

/// Some pages, each of them as it is made.
class pages {
 public:
  explicit pages(std::size_t count, int flags = MAP_PRIVATE | MAP_ANONYMOUS)
      : bytes_(count * size), base_(mmap(nullptr, bytes_, PROT_READ | PROT_WRITE, flags, -1, 0)) {}
  ~pages() { munmap(base_, bytes_); }
  pages(const pages&) = delete;
  pages& operator=(const pages&) = delete;

  std::byte* at(std::size_t i) const { return static_cast<std::byte*>(base_) + i * size; }
  void write(std::size_t i) const { *at(i) = std::byte{1}; }
  std::uintptr_t address(std::size_t i) const { return reinterpret_cast<std::uintptr_t>(at(i)); }

  static inline const auto size = static_cast<std::size_t>(sysconf(_SC_PAGESIZE));

 private:
  std::size_t bytes_;
  void* base_;
};

/// Which of the pages are in a stretch.
std::vector<bool> found(const pages& p, std::size_t count, const range& without = {}) {
  std::vector<bool> there(count);
  EXPECT_TRUE(each_private_stretch(without, [&](const range& r, bool known) {
    EXPECT_TRUE(known);
    EXPECT_LT(r.low, r.high);
    for (std::size_t i = 0; i < count; ++i)
      if (r.holds(p.address(i))) {
        EXPECT_FALSE(there[i]) << "page " << i << " twice";
        EXPECT_TRUE(r.holds(p.address(i) + pages::size - 1) || r.high < p.address(i) + pages::size);
        there[i] = true;
      }
    return true;
  }));
  return there;
}

TEST(PrivatePages, ThatAreWritten) {
  const pages p(2000);  // more than are asked for at once
  for (const std::size_t i : {0, 1, 5, 1023, 1024, 1999}) p.write(i);
  const std::vector<bool> there = found(p, 2000);
  for (std::size_t i = 0; i < 2000; ++i)
    EXPECT_EQ(there[i], i <= 1 || i == 5 || i == 1023 || i == 1024 || i == 1999) << i;
}

TEST(PrivatePages, OfWhichOneIsReadOnlyNow) {
  const pages p(3);
  for (std::size_t i = 0; i < 3; ++i) p.write(i);
  mprotect(p.at(1), pages::size, PROT_READ);
  mprotect(p.at(2), pages::size, PROT_NONE);
  EXPECT_EQ(found(p, 3), (std::vector<bool>{true, true, false}));
}

TEST(PrivatePages, NotShared) {
  const pages p(2, MAP_SHARED | MAP_ANONYMOUS);
  p.write(0);
  EXPECT_EQ(found(p, 2), (std::vector<bool>{false, false}));
}

TEST(PrivatePages, WithoutSome) {
  const pages p(5);
  for (std::size_t i = 0; i < 5; ++i) p.write(i);
  EXPECT_EQ(found(p, 5, {p.address(1), p.address(3)}), (std::vector<bool>{true, false, false, true, true}));
  bool whole = false;  // in the middle of a page
  each_private_stretch({p.address(2) + 64, p.address(3)}, [&](const range& r, bool) {
    whole |= r.holds(p.address(2) + 64);
    return true;
  });
  EXPECT_FALSE(whole);
}

TEST(PrivatePages, WithoutTheStackOfIdleHandlers) {
  const pages p(32);
  for (std::size_t i = 0; i < 32; ++i) p.write(i);
  stack_t before{}, mine{};
  mine.ss_sp = reinterpret_cast<void*>(p.address(1));
  mine.ss_size = p.address(31) - p.address(1);
  ASSERT_EQ(sigaltstack(&mine, &before), 0);
  std::vector<bool> expected(32, false);
  expected.front() = expected.back() = true;
  EXPECT_EQ(found(p, 32), expected);
  EXPECT_EQ(found(p, 32, {p.address(0), p.address(5)})[0], false);
  EXPECT_EQ(found(p, 32, {p.address(3), p.address(32)})[31], false);
  ASSERT_EQ(sigaltstack(&before, nullptr), 0);
  EXPECT_EQ(found(p, 32), std::vector<bool>(32, true));
}

TEST(PrivatePages, UntilItIsEnough) {
  int calls = 0;
  EXPECT_FALSE(each_private_stretch({}, [&](const range&, bool) { return ++calls < 2; }));
  EXPECT_EQ(calls, 2);
}

}  // namespace
