#include "support/schedule.hpp"

#include <cstdlib>
#include <ctime>

namespace support {

std::uint64_t number_from_environment(const char* name, std::uint64_t otherwise) {
  const char* text = std::getenv(name);
  return text == nullptr || *text == '\0' ? otherwise : std::strtoull(text, nullptr, 0);
}

std::uint64_t base_seed() {
  static const std::uint64_t seed = [] {
    if (const std::uint64_t given = number_from_environment("STRESS_SEED", 0); given != 0) return given;
    timespec now{};
    clock_gettime(CLOCK_MONOTONIC, &now);
    return static_cast<std::uint64_t>(now.tv_nsec) * 1'000'003u + static_cast<std::uint64_t>(now.tv_sec) + 1u;
  }();
  return seed;
}

godwit::options schedule(std::uint32_t workers, const char* force, std::uint32_t delay_us,
                         std::uint64_t seed) {
  godwit::options o;
  o.workers = workers;
  o.force_steal = godwit::choice::named{force};
  o.delay_us = delay_us;
  o.seed = seed != 0 ? seed : base_seed();
  return o;
}

std::string describe(const godwit::options& o) {
  return "workers=" + std::to_string(o.workers) + " force_steal=" + name_of(o.force_steal) +
         " delay_us=" + std::to_string(o.delay_us) + " seed=" + std::to_string(o.seed);
}

}  // namespace support
