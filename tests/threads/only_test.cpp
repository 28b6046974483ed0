// Programs compiled with GODWIT_ONLY_THREADS: anything that can be moved may be captured, passed and given
// back, whatever the schedule. Tests include/godwit/codec.hpp (migratable), future.hpp (boxes).
// test: timeout=240 skip-qemu
#define GODWIT_ONLY_THREADS
#include <gtest/gtest.h>
#include <godwit/godwit.hpp>

#include "support/child.hpp"

#include <functional>
#include <map>
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

namespace gw = godwit;

namespace {

/// Counts those alive; no codec.
struct counted {
  static inline std::atomic<int> alive{0};
  std::string text;
  explicit counted(std::string t) : text(std::move(t)) { ++alive; }
  counted(counted&& o) noexcept : text(std::move(o.text)) { ++alive; }
  counted(const counted&) = delete;
  ~counted() { --alive; }
};
static_assert(!gw::encodable<counted> && gw::migratable<counted>);

const char* const modes[] = {"none", "parents", "children", "random"};

gw::options with(unsigned workers, const char* mode) {
  gw::options o;
  o.workers = workers;
  o.force_steal = gw::choice::named{mode};
  o.seed = workers + 17;
  return o;
}

std::vector<std::string> lines(int n) {
  if (n == 0) return {};
  // A vector by value in the closure, a string by value, a reference to a local.
  std::string own = "line " + std::to_string(n);
  std::vector<int> numbers(100, n);
  int seen = 0;
  auto f = gw::spawn([own, numbers, &seen] {
    seen = numbers[99];
    return std::vector<std::string>{own, std::string(100, 'x')};
  });
  std::vector<std::string> rest = lines(n - 1);
  std::vector<std::string> mine = f.join();
  if (seen != n) throw std::logic_error("a write through a reference was lost");
  rest.insert(rest.end(), mine.begin(), mine.end());
  return rest;
}

TEST(only, closures_and_results_that_own_memory) {
  for (const unsigned w : {1u, 2u, 4u})
    for (const char* mode : modes) {
      std::size_t n = 0;
      const int status = gw::run(
          0, nullptr, [&] { n = lines(50).size(); }, with(w, mode));
      EXPECT_EQ(status, 0);
      EXPECT_EQ(n, 100u) << w << ' ' << mode;
    }
}

TEST(only, results_without_a_codec_are_moved_and_destroyed_once) {
  for (const unsigned w : {1u, 2u, 4u})
    for (const char* mode : modes) {
      bool right = true;
      EXPECT_EQ(
          gw::run(
              0, nullptr,
              [&] {
                for (int i = 0; i < 100; ++i) {
                  auto f =
                      gw::spawn([i] { return counted(std::string(40, static_cast<char>('a' + i % 26))); });
                  auto dropped = gw::spawn([] { return counted("dropped"); });
                  auto shared = gw::spawn([] { return std::make_shared<counted>("shared"); }).share();
                  auto g = gw::spawn([shared] { return shared.get()->text; });
                  auto [a, b] = gw::invoke([] { return counted("a"); },
                                           [] { return std::function<int()>([] { return 7; }); });
                  right = right && f.join().text == std::string(40, static_cast<char>('a' + i % 26)) &&
                          g.join() == "shared" && shared.get()->text == "shared" && a.text == "a" && b() == 7;
                }
              },
              with(w, mode)),
          0);
      EXPECT_TRUE(right) << w << ' ' << mode;
      EXPECT_EQ(counted::alive.load(), 0) << w << ' ' << mode;
    }
}

/// Not in the table of exceptions that have a codec.
struct own_exception {
  std::map<int, std::string> why;
};

TEST(only, exceptions_arrive_as_they_are) {
  for (const unsigned w : {1u, 2u, 4u})
    for (const char* mode : modes) {
      int caught = 0;
      EXPECT_EQ(gw::run(
                    0, nullptr,
                    [&] {
                      for (int i = 0; i < 50; ++i) {
                        auto f = gw::spawn([i]() -> int { throw own_exception{{{i, "because"}}}; });
                        try {
                          f.join();
                        } catch (const own_exception& e) {
                          if (e.why.at(i) == "because") ++caught;
                        }
                      }
                    },
                    with(w, mode)),
                0);
      EXPECT_EQ(caught, 50);
      EXPECT_THROW(gw::run<int>([]() -> int { throw own_exception{}; }, with(w, mode)), own_exception);
    }
}

TEST(only, exceptions_being_handled_follow_their_thread) {
  for (const unsigned w : {1u, 2u, 4u}) {
    int right = 0;
    EXPECT_EQ(gw::run(
                  0, nullptr,
                  [&] {
                    std::vector<gw::future<int>> all;
                    for (int i = 0; i < 200; ++i)
                      all.push_back(gw::spawn([i] {
                        try {
                          throw i;
                        } catch (int) {
                          for (int k = 0; k < 5; ++k) gw::yield();
                          try {
                            throw;  // the one that this thread handles, wherever it is now
                          } catch (int j) {
                            return i == j ? 1 : 0;
                          }
                        }
                        return 0;
                      }));
                    for (auto& f : all) right += f.join();
                  },
                  with(w, "none")),
              0);
    EXPECT_EQ(right, 200);
  }
}

TEST(only, other_substrates_are_refused) {
  setenv("GODWIT_SUBSTRATE", "processes", 1);
  EXPECT_THROW(gw::run<int>([] { return 1; }), std::invalid_argument);
  unsetenv("GODWIT_SUBSTRATE");
}

}  // namespace
