// See suspended.hpp.
#include "sched/suspended.hpp"

#include <algorithm>
#include <cstdio>

namespace godwit::sched {

namespace {

constexpr unsigned most_named = 6;
constexpr std::uint32_t most_looks = 4096;  // at objects of other hosts: a round trip each

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

/// f(image, number of its worker) for those of other hosts, where nothing changes any more. False: there may
/// be more of them.
template <class F>
bool each_image_elsewhere(const site& here, F&& f) noexcept {
  const transport::shm::layout& l = here.memory->where();
  std::uint32_t looks = 0;
  for (std::uint32_t v = 0; v < here.workers; ++v) {
    const worker_no w{v};
    if (here.net.is_near(w)) continue;
    std::uint64_t at = here.net.remote_load(w, &here.words->live, std::memory_order_acquire);
    while (at - l.heap < l.heap_bytes && at % heap::grain == 0) {
      if (++looks > most_looks) return false;
      alignas(image) std::byte bytes[sizeof(image)];
      here.net.remote_get(w, bytes, here.home<std::byte>(transport::make_ref(w, at)),
                          std::min<std::uint64_t>(sizeof bytes, l.heap + l.heap_bytes - at));
      const auto* o = reinterpret_cast<const object*>(bytes);
      at = o->next;
      if (o->kind == object_kind::image && o->freed.load(std::memory_order_relaxed) == 0)
        f(*static_cast<const image*>(o), v);
    }
  }
  return true;
}

}  // namespace

void describe_deadlock(const site& here, char* text, std::size_t bytes) noexcept {
  char each[1600];
  line waiting{each, sizeof each};
  each[0] = '\0';
  unsigned found = 0;
  const auto look_at = [&](const image& im, std::uint32_t v) {
    if (im.parked_at == nullptr && im.waiting_for == 0) return false;  // it yielded: there is no place
    if (++found <= most_named && waiting.used <= 1300) add_waiting(waiting, im, v);
    return false;
  };
  any_suspended(here, look_at);
  const bool all = here.one_host() || each_image_elsewhere(here, look_at);
  std::snprintf(
      text, bytes,
      "deadlock: all %u workers are idle but the root thread is not done; outstanding joins: %s%u%s%s",
      here.workers - here.shape.spares, all ? "" : "at least ", found, each,
      found > most_named ? "\n  ..." : "");
}

}  // namespace godwit::sched
