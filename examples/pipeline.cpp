// A pipeline of futures: each stage of each item is a thread that waits for two others.
//
//   example_pipeline --godwit-workers=4
//
// Stage s of item i needs stage s - 1 of the same item, and, as stages work in order, stage s of the item
// before. A shared_future is copied to all threads that wait for it. docs/writing-programs.md#threads
#include <godwit/godwit.hpp>

#include <algorithm>
#include <cstdint>
#include <iostream>
#include <string>
#include <vector>

namespace gw = godwit;

constexpr int items = 200;

using text = gw::shared_future<std::string>;
using checksum = gw::shared_future<std::uint32_t>;

/// Stage 1 makes a block of text, stage 2 packs it: runs of equal letters become a letter and a number.
std::string make(int item) {
  std::string block;
  for (int i = 0; i < 50; ++i) block += std::string(1 + static_cast<std::size_t>(item + i) % 5, "abc"[i % 3]);
  return block;
}

std::string pack(const std::string& block) {
  std::string out;
  for (std::size_t i = 0, end; i < block.size(); i = end) {
    end = std::min(block.find_first_not_of(block[i], i), block.size());
    out += block[i] + std::to_string(end - i);
  }
  return out;
}

/// Stage 3 continues the checksum of all items before.
std::uint32_t extend(std::uint32_t sum, const std::string& block) {
  for (const char c : block) sum = (sum ^ static_cast<unsigned char>(c)) * 16'777'619u;
  return sum;
}

int main(int argc, char** argv) {
  return gw::run(argc, argv, [] {
    checksum sum = gw::spawn([] { return 2'166'136'261u; });
    for (int i = 0; i < items; ++i) {
      const text made = gw::spawn(make, i);
      const text packed = gw::spawn([](text t) { return pack(t.get()); }, made);
      sum = gw::spawn([](checksum before, text t) { return extend(before.get(), t.get()); }, sum, packed);
    }
    const std::uint32_t last = sum.get();
    std::cout << items << " items, checksum " << last << '\n';
  });
}
