// The source of events by itself: who may read an interruption. docs/protocols/events.md
#include "io/events.hpp"
#include "io/io_runs.hpp"

#include <poll.h>
#include <sys/syscall.h>

namespace {

using namespace io_runs;
namespace events = gw::events;

bool is_readable(int fd) {
  pollfd p{fd, POLLIN, 0};
  const timespec at_once{};
  return syscall(SYS_ppoll, &p, 1, &at_once, nullptr, 0) == 1;
}

/// As a worker does. What there is besides, a check of descriptors that is due, is carried out.
void look(std::int64_t wait_ns) {
  if (events::source().collect(wait_ns)) events::source().deliver();
}

// EV2. Another worker may be about to wait: what was to wake it is not for who only looks.
TEST(events, who_does_not_wait_leaves_an_interruption) {
  gw::run<void>(
      [] {
        a_pipe p;
        auto reader = gw::spawn([&p] {
          char c = 0;
          return gw::io::read(p[0], &c, 1);
        });
        gw::yield();  // with it, a thread waits for a descriptor: workers look for events
        const auto [low, high] = events::ours();
        ASSERT_GE(low, 0) << "somebody waits for a descriptor";
        ASSERT_FALSE(is_readable(low) || is_readable(high));
        events::source().interrupt();
        EXPECT_TRUE(is_readable(low) || is_readable(high));
        look(0);
        EXPECT_TRUE(is_readable(low) || is_readable(high)) << "read by who did not wait";
        look(60'000'000'000);  // comes back at once
        EXPECT_FALSE(is_readable(low) || is_readable(high)) << "read by who waited";
        EXPECT_EQ(gw::io::write(p[1], "x", 1), 1);
        EXPECT_EQ(reader.join(), 1);
      },
      threads(1));
}

}  // namespace
