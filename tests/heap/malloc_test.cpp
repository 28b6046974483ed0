// malloc and its family in an OS thread that is a worker of a heap, and in others; operator new; what is
// freed elsewhere than it was made.
// test: timeout=120 skip-asan skip-qemu
#include "heap/heap.hpp"

#include "heap/memory.hpp"

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <dirent.h>
#include <dlfcn.h>
#include <fstream>
#include <malloc.h>
#include <map>
#include <memory>
#include <new>
#include <string>
#include <thread>
#include <vector>

namespace {

using heap_test::memory;
namespace heap = godwit::heap;

bool shared(const void* p) { return heap::here.holds(p); }

// The heap stays when a test is over: the test framework may have allocated in it.
struct Malloc : testing::Test {
  std::uint64_t before = 0;
  void SetUp() override {
    static const memory& all = *new memory(2);
    static_cast<void>(all);
    ASSERT_TRUE(heap::is_ours());
    before = heap::live_bytes();
    heap::enter(0);
  }
  void TearDown() override { heap::leave(); }
  std::uint64_t left() const { return heap::live_bytes() - before; }
};

TEST_F(Malloc, AllOfTheFamilyIsShared) {
  void* volatile p = std::malloc(100);
  EXPECT_TRUE(shared(p));
  EXPECT_GE(malloc_usable_size(p), 100u);
  p = std::realloc(p, 100'000);
  EXPECT_TRUE(shared(p));
  std::free(p);
  p = std::calloc(10, 10);
  EXPECT_TRUE(shared(p));
  std::free(p);
  for (const std::size_t alignment : {16, 64, 4096, 1 << 20}) {
    p = std::aligned_alloc(alignment, 1000);
    EXPECT_TRUE(shared(p) && reinterpret_cast<std::uintptr_t>(p) % alignment == 0);
    std::free(p);
    void* q = nullptr;
    EXPECT_EQ(posix_memalign(&q, alignment, 1000), 0);
    EXPECT_TRUE(shared(q) && reinterpret_cast<std::uintptr_t>(q) % alignment == 0);
    std::free(q);
  }
  p = reallocarray(nullptr, 20, 30);
  EXPECT_TRUE(shared(p));
  std::free(p);
  EXPECT_EQ(left(), 0u);
}

TEST_F(Malloc, WhatCannotBeHad) {
  volatile std::size_t most = ~std::size_t{0};
  errno = 0;
  void* volatile p = std::malloc(most - 100);
  EXPECT_EQ(p, nullptr);
  EXPECT_EQ(errno, ENOMEM);
  errno = 0;
  p = std::calloc(most / 2, 3);
  EXPECT_EQ(p, nullptr);
  EXPECT_EQ(errno, ENOMEM);
  for (const std::size_t bytes : {most, most - 100}) {
    errno = 0;
    p = pvalloc(bytes);
    EXPECT_EQ(p, nullptr);
    EXPECT_EQ(errno, ENOMEM);
  }
  void* q = nullptr;
  EXPECT_EQ(posix_memalign(&q, 24, 8), EINVAL);
  EXPECT_EQ(posix_memalign(&q, 4, 8), EINVAL);
  void* volatile kept = std::malloc(50);
  p = std::realloc(kept, most - 100);
  EXPECT_EQ(p, nullptr);
  std::free(kept);
  EXPECT_THROW(static_cast<void>(::operator new(most - 100)), std::bad_alloc);
}

TEST_F(Malloc, TheStandardLibrarysObjects) {
  {
    std::map<int, std::string> m;
    for (int i = 0; i < 1000; ++i) m[i] = std::string(static_cast<std::size_t>(i), 'x');
    EXPECT_TRUE(shared(&m.begin()->second));
    EXPECT_TRUE(shared(m[100].data()));
    const auto p = std::make_shared<std::vector<int>>(100);
    EXPECT_TRUE(shared(p.get()));
    struct alignas(256) wide {
      char c[256];
    };
    const auto w = std::make_unique<wide>();
    EXPECT_EQ(reinterpret_cast<std::uintptr_t>(w.get()) % 256, 0u);
  }
  EXPECT_EQ(left(), 0u);
}

TEST_F(Malloc, WhatBelongsToAProcessIsTheCLibrarys) {
  std::FILE* const file = std::fopen("/proc/self/maps", "r");
  EXPECT_FALSE(shared(file));
  char* line = nullptr;
  std::size_t room = 0;
  EXPECT_GT(getline(&line, &room, file), 0);  // its buffer, too
  std::free(line);
  std::fclose(file);
  void* const library = dlopen("libm.so.6", RTLD_NOW);
  EXPECT_FALSE(shared(library));
  dlclose(library);
  DIR* const folder = opendir("/");
  EXPECT_FALSE(shared(folder));
  closedir(folder);
  std::ifstream in("/proc/self/maps");
  std::string word;
  EXPECT_TRUE(in >> word);
}

TEST_F(Malloc, WhatTheCLibraryMakesForItsCallerIsShared) {
  char* const copy = strdup("some text");
  EXPECT_TRUE(shared(copy));
  EXPECT_STREQ(copy, "some text");
  std::free(copy);
  char* const part = strndup("some text", 4);
  EXPECT_TRUE(shared(part));
  EXPECT_STREQ(part, "some");
  std::free(part);
  char* text = nullptr;
  EXPECT_EQ(asprintf(&text, "%s %d", "number", 12345), 12);
  EXPECT_TRUE(shared(text));
  EXPECT_STREQ(text, "number 12345");
  std::free(text);
}

// What is asked whether malloc is ours does not look to the program like a lack of memory.
TEST_F(Malloc, TheQuestionWhoseItIsCallsNoHandler) {
  heap::leave();
  static int calls = 0;
  const std::new_handler before = std::set_new_handler([] {
    ++calls;
    throw std::bad_alloc();
  });
  EXPECT_TRUE(heap::is_ours());
  EXPECT_EQ(heap::other_malloc(), "");
  std::set_new_handler(before);
  EXPECT_EQ(calls, 0);
}

TEST_F(Malloc, OtherOsThreadsHaveTheCLibrarys) {
  std::thread([] {}).join();  // the C library keeps something of the first one
  const std::uint64_t now = left();
  void* mine = std::malloc(100);
  void* its = nullptr;
  std::thread([&] {
    its = std::malloc(100);
    std::free(mine);  // goes back to its part
    mine = std::malloc(10);
    mine = std::realloc(mine, 20'000);
  }).join();
  EXPECT_FALSE(shared(its));
  EXPECT_FALSE(shared(mine));
  std::free(its);
  std::free(mine);
  EXPECT_EQ(left(), now);
}

TEST_F(Malloc, ReallocOutsideOfAWorkerTakesTheBytesAlong) {
  auto* volatile p = static_cast<char*>(std::malloc(40'000));
  std::strcpy(p, "what was written");
  heap::leave();
  auto* const q = static_cast<char*>(std::realloc(p, 50'000));
  EXPECT_FALSE(shared(q));
  EXPECT_STREQ(q, "what was written");
  heap::enter(0);
  auto* const r = static_cast<char*>(std::realloc(q, 100));  // stays where it was made
  EXPECT_FALSE(shared(r));
  EXPECT_STREQ(r, "what was written");
  std::free(r);
  EXPECT_EQ(left(), 0u);
}

TEST_F(Malloc, WhatIsNoBlockIsRefused) {
  auto* volatile p = static_cast<char*>(std::malloc(100));
  heap::leave();
  EXPECT_DEATH(
      {
        char* volatile inside = p + 16;
        std::free(inside);
      },
      "free of 0x[0-9a-f]+, which malloc has not given out");
  std::free(p);
}

}  // namespace
