// See suspended.hpp.
#include "sched/suspended.hpp"

#include <cstdio>

namespace godwit::sched {

namespace {

constexpr unsigned most_named = 6;

/// A text that ends where its room does.
struct line {
  char* text;
  std::size_t room;
  std::size_t used = 0;
  template <class... A>
  void add(const char* format, A... a) noexcept {
    const int n = std::snprintf(text + used, room - used, format, a...);
    used = n > 0 && static_cast<std::size_t>(n) < room - used ? used + static_cast<std::size_t>(n) : room - 1;
  }
};

void add_waiting(line& to, const image& im, unsigned worker) noexcept {
  to.add("\n  thread of %llu B, suspended on worker %u, waits at %s:%u (%s) for ",
         static_cast<unsigned long long>(im.top - im.low), worker,
         im.where.file != nullptr ? im.where.file : "?", im.where.line,
         im.where.function != nullptr ? im.where.function : "?");
  if (im.parked_at != nullptr)
    to.add("a %s", im.parked_at);
  else
    to.add("record %u:%llx", transport::index(transport::ref_worker(im.waiting_for)),
           static_cast<unsigned long long>(transport::ref_offset(im.waiting_for)));
}

}  // namespace

void describe_deadlock(const site& here, char* text, std::size_t bytes) noexcept {
  char each[1600];
  line waiting{each, sizeof each};
  each[0] = '\0';
  unsigned found = 0;
  any_suspended(here, [&](const image& im, std::uint32_t v) {
    if (im.parked_at == nullptr && im.waiting_for == 0) return false;  // it yielded: there is no place
    if (++found <= most_named && waiting.used <= 1300) add_waiting(waiting, im, v);
    return false;
  });
  char host[64] = "";
  if (!here.one_host())
    std::snprintf(host, sizeof host, " on host %u (of %u hosts)", here.shape.my_host, here.shape.host_count);
  std::snprintf(
      text, bytes,
      "deadlock: all %u workers are idle but the root thread is not done; outstanding joins%s: %u%s%s",
      here.workers - here.shape.spares, host, found, each, found > most_named ? "\n  ..." : "");
}

}  // namespace godwit::sched
