// Seats of an engine, without a scheduler, that do what the test says.
#pragma once

#include "base/world.hpp"
#include "context/context.hpp"
#include "sim/engine.hpp"
#include "stack/stack.hpp"

#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>

namespace support {

class seats {
 public:
  using what = std::function<void(std::uint32_t seat)>;

  /// All @p n of @p turns take turns at @p f until each has come back from it.
  static void run(godwit::sim::engine& turns, std::uint32_t n, const what& f) {
    std::deque<seat> all(n);  // hot words stay where they are
    godwit::base::use_world(&turns);
    for (std::uint32_t i = 0; i < n; ++i) {
      seat& s = all[i];
      s.number = i;
      s.turns = &turns;
      s.f = &f;
      s.stack = godwit::stack::map_private(stack_bytes);
      turns.sit(i, &s.hot, begin, &s);
    }
    turns.run();
    godwit::base::use_world(nullptr);
    godwit::context::use_hot_words(nullptr);
    if (godwit::context::sanitized()) {
      const godwit::stack::range mine = godwit::stack::system_stack();
      godwit::context::sanitizer_on_stack(reinterpret_cast<void*>(mine.low), mine.high - mine.low);
    }
    for (const seat& s : all) godwit::stack::unmap_private(s.stack, stack_bytes);
  }

 private:
  static constexpr std::size_t stack_bytes = 64 << 10;
  struct seat {
    std::uint32_t number = 0;
    godwit::sim::engine* turns = nullptr;
    const what* f = nullptr;
    std::byte* stack = nullptr;
    godwit::detail::hot_words hot;
  };
  static void begin(void* arg) {
    auto& s = *static_cast<seat*>(arg);
    godwit::context::sanitizer_on_stack(s.stack, stack_bytes);
    godwit_ctx_start(s.stack + stack_bytes, live, arg);
  }
  static void live(void* arg) {
    auto& s = *static_cast<seat*>(arg);
    (*s.f)(s.number);
    s.turns->leave();
  }
};

}  // namespace support
