// What the mark of an object decides, and the list of a home: in plain memory, without a window.
#include "gas/objects.hpp"
#include "gas/arena.hpp"
#include "gas/words.hpp"
#include "transport/far/calls.hpp"

#include <gtest/gtest.h>

#include <cstring>
#include <thread>
#include <vector>

namespace {

using namespace godwit::gas;
namespace far = godwit::transport::far;

struct alignas(16) large {
  std::uint64_t before = 0;
  wide_part wide{100'000, 0, 0};
  object_header header{0, {object_header::live, object_header::wide}};
};

TEST(Objects, AMarkSaysWhatIsWrong) {
  alignas(16) object_header h{0, {object_header::live, 24}};
  EXPECT_EQ(look_at(&h, 24).how, freed_as::done);
  EXPECT_EQ(look_at(&h, 32).how, freed_as::other_size);
  EXPECT_EQ(look_at(&h, 32).allocated, 24u);
  EXPECT_TRUE(kill(&h));
  EXPECT_FALSE(kill(&h));
  EXPECT_EQ(look_at(&h, 24).how, freed_as::twice);
  h.is.magic = 7;
  EXPECT_EQ(look_at(&h, 24).how, freed_as::no_object);
  const auto between = reinterpret_cast<const object_header*>(reinterpret_cast<const std::byte*>(&h) + 3);
  EXPECT_EQ(look_at(between, 24).how, freed_as::no_object);
  h.is = {object_header::live, 1};
  EXPECT_EQ(look_at(&h, 0).how, freed_as::done) << "nothing takes a byte";
  const large l;
  EXPECT_EQ(look_at(&l.header, 100'000).how, freed_as::done);
  EXPECT_EQ(look_at(&l.header, 24).allocated, 100'000u);
}

// OB1, OB2: of many who free the same objects each is freed by one, and all come back.
TEST(Objects, EachComesBackOnce) {
  constexpr std::uint64_t count = 20'000;
  std::vector<object_header> objects(count, {0, {object_header::live, 8}});
  home_words home{};
  std::vector<std::thread> all;
  std::atomic<std::uint64_t> killed{0};
  for (int t = 0; t < 3; ++t)
    all.emplace_back([&] {
      for (std::uint64_t i = 0; i < count; ++i) {
        if (!kill(&objects[i])) continue;
        ++killed;
        link({&objects[i], &home, i + 1, 8});
      }
    });
  for (std::thread& t : all) t.join();
  EXPECT_EQ(killed, count);
  std::vector<bool> found(count);
  std::uint64_t back = 0;
  for (std::uint64_t at = home.returned; at != 0; at = objects[at - 1].next, ++back) {
    ASSERT_LT(back, count);
    EXPECT_FALSE(found[at - 1]);
    found[at - 1] = true;
  }
  EXPECT_EQ(back, count);
}

/// As another host asks, of memory that both have at the same place.
TEST(Objects, TheCallOfAnotherHost) {
  struct {
    alignas(16) object_header h{0, {object_header::live, 24}};
    home_words home{};
  } window;
  godwit::transport::shm::segment memory;
  memory.set_window(reinterpret_cast<std::byte*>(&window), sizeof window);
  place_site site;
  site.memory = &memory;
  far::call_table calls;
  enter_object_calls(calls, site);
  const auto ask = [&, h = &window.h, home = &window.home](std::uint64_t bytes, bool now) {
    far::entry e;
    e.head = {};
    e.head.what = far::op::call;
    e.head.a = free_call;
    e.head.b = now ? 1 : 0;
    const returned r{h, home, 4711, bytes};
    std::memcpy(e.data, &r, sizeof r);
    calls.carry_out(e, {nullptr, nullptr});
    EXPECT_EQ(e.head.info, sizeof(freed));
    freed f;
    std::memcpy(&f, e.data, sizeof f);
    return f;
  };
  EXPECT_EQ(ask(24, false).how, freed_as::done);
  EXPECT_EQ(window.home.returned, 0u) << "only looked at";
  EXPECT_EQ(ask(32, true).allocated, 24u);
  EXPECT_EQ(window.home.returned, 0u) << "of another size";
  EXPECT_EQ(ask(24, true).how, freed_as::done);
  EXPECT_EQ(window.home.returned, 4711u);
  EXPECT_EQ(ask(24, true).how, freed_as::twice);
  EXPECT_EQ(window.h.next, 0u) << "it is in the list once";
}

}  // namespace
