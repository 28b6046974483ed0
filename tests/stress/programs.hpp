// Small programs that use everything at once, each with the answer it must give on every schedule.
//
// A program is made from a number: shape, sizes and the order of joins follow from it.
#pragma once

#include <godwit/godwit.hpp>

#include <array>
#include <cstdint>
#include <stdexcept>
#include <string>
#include <vector>

namespace stress {

namespace gw = godwit;

inline std::uint64_t mix(std::uint64_t x) noexcept {
  x = (x ^ (x >> 30)) * 0xBF58476D1CE4E5B9ull;
  x = (x ^ (x >> 27)) * 0x94D049BB133111EBull;
  return x ^ (x >> 31);
}

/// How a node behaves follows from its hash; the serial walk computes the same sum without threads.
inline std::uint64_t node_value(std::uint64_t h) noexcept { return h % 1'000'003; }
inline unsigned node_children(std::uint64_t h, int depth) noexcept {
  return depth == 0 ? 0 : static_cast<unsigned>(mix(h + 1) % 4);
}
inline std::uint64_t text_length(std::uint64_t h) noexcept { return mix(h + 2) % 200; }

inline std::uint64_t serial(std::uint64_t h, int depth) {
  std::uint64_t sum = node_value(h);
  const unsigned n = node_children(h, depth);
  for (unsigned i = 0; i < n; ++i) sum += serial(mix(h * 4 + i), depth - 1);
  if (mix(h + 3) % 4 == 0) sum += text_length(h);
  if (mix(h + 4) % 8 == 0) sum += 17;
  if (mix(h + 5) % 8 == 0) sum += 3 * node_value(h + 9);
  return sum;
}

[[gnu::noinline]] inline std::uint64_t with_threads(std::uint64_t h, int depth) {
  std::uint64_t sum = node_value(h);
  const unsigned n = node_children(h, depth);
  // A text that lies in this frame while everything below happens.
  const bool has_text = mix(h + 3) % 4 == 0;
  gw::future<std::string> text;
  if (has_text)
    text = gw::spawn([h] { return std::string(text_length(h), static_cast<char>('a' + h % 26)); });
  // A shared result with three consumers.
  const bool has_shared = mix(h + 5) % 8 == 0;
  gw::shared_future<std::uint64_t> shared;
  std::array<gw::future<std::uint64_t>, 2> consumers;
  if (has_shared) {
    shared = gw::spawn([h] {
      if (h % 3 == 0) gw::yield();
      return node_value(h + 9);
    });
    for (auto& c : consumers) c = gw::spawn([shared]() mutable { return shared.get(); });
  }
  switch (mix(h + 6) % 4) {
    case 0: {  // joined in order
      std::array<gw::future<std::uint64_t>, 3> f;
      for (unsigned i = 0; i < n; ++i)
        f[i] = gw::spawn([=] { return with_threads(mix(h * 4 + i), depth - 1); });
      for (unsigned i = 0; i < n; ++i) sum += f[i].join();
      break;
    }
    case 1: {  // joined backwards, with a pause
      std::array<gw::future<std::uint64_t>, 3> f;
      for (unsigned i = 0; i < n; ++i)
        f[i] = gw::spawn([=] { return with_threads(mix(h * 4 + i), depth - 1); });
      if (h % 5 == 0) gw::yield();
      for (unsigned i = n; i-- > 0;) sum += f[i].join();
      break;
    }
    case 2:  // one after the other
      for (unsigned i = 0; i < n; ++i)
        sum += gw::spawn([=] { return with_threads(mix(h * 4 + i), depth - 1); }).join();
      break;
    default: {  // joined by another thread
      std::array<gw::future<std::uint64_t>, 3> f;
      for (unsigned i = 0; i < n; ++i) {
        auto child = gw::spawn([=] { return with_threads(mix(h * 4 + i), depth - 1); });
        f[i] = gw::spawn([child = std::move(child)]() mutable { return child.join(); });
      }
      for (unsigned i = 0; i < n; ++i) sum += f[i].join();
    }
  }
  if (has_text) sum += text.join().size();
  if (mix(h + 4) % 8 == 0) {
    try {
      gw::spawn([] { throw std::out_of_range("17"); }).join();
    } catch (const std::out_of_range& e) {
      sum += static_cast<std::uint64_t>(std::stoi(e.what()));
    }
  }
  if (has_shared) {
    for (auto& c : consumers) sum += c.join();
    sum += shared.get();
  }
  // detached
  if (mix(h + 7) % 32 == 0) static_cast<void>(gw::spawn([h] { return std::string(text_length(h), 'd'); }));
  return sum;
}

}  // namespace stress
