// Tests of thread_specific: it follows the thread, begins once in each, ends with it -- under every schedule.
// test: timeout=180
#include "places.hpp"

#include <atomic>
#include <memory>
#include <string>
#include <vector>

namespace {

namespace gw = godwit;
using support::everywhere;

struct counted {
  static inline std::atomic<int> alive{0}, made{0};
  int value = 0;
  counted() {
    ++alive;
    ++made;
  }
  counted(const counted&) = delete;
  ~counted() {
    gw::yield();  // a destructor is part of the thread: it may suspend
    --alive;
  }
};

TEST(thread_specific, follows_the_thread) {
  support::for_each_place([](const gw::options& o) {
    counted::made = 0;
    gw::run<int>(
        [] {
          gw::thread_specific<counted> mine;
          std::vector<gw::thread> all;
          for (int i = 0; i < 30; ++i)
            all.emplace_back([&, i] {
              EXPECT_FALSE(mine.has_value());
              mine->value = i;
              for (int k = 0; k < 20; ++k) {
                gw::yield();
                EXPECT_EQ(mine.get().value, i);
                auto child = gw::spawn([&] {
                  EXPECT_FALSE(mine.has_value());
                  return 1;
                });
                child.join();
                EXPECT_EQ((*mine).value, i);
              }
              mine.reset();
              EXPECT_FALSE(mine.has_value());
              mine->value = i;
            });
          for (auto& t : all) t.join();
          EXPECT_EQ(counted::alive, 0);
          auto spawned = gw::spawn([&] {
            mine->value = 77;
            gw::yield();
            return mine->value;
          });
          EXPECT_EQ(spawned.join(), 77);
          mine->value = 5;  // the root thread's: ends with it
          gw::yield();
          EXPECT_EQ(mine->value, 5);
          return 0;
        },
        o);
    EXPECT_EQ(counted::made, 62);
    EXPECT_EQ(counted::alive, 0);
  });
}

TEST(thread_specific, keys_are_used_again) {
  everywhere([] {
    gw::thread_specific<std::string> stays([] { return std::string("begin"); });
    EXPECT_EQ(*stays, "begin");
    for (int i = 0; i < 10; ++i) {
      gw::thread_specific<std::unique_ptr<int>> goes;
      EXPECT_EQ(goes.get(), nullptr);
      *goes = std::make_unique<int>(i);
    }
    EXPECT_EQ(*stays, "begin");
  });
}

}  // namespace
