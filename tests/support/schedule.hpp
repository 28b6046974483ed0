// The schedules under which every program of the suites must give the same result.
//
// A table: workers x forced steals x delays inside the protocols. for_each_schedule runs a body once per row,
// with the row's name in the trace of every failure. STRESS_SEED=n fixes the seed (0 or unset: drawn); it is
// in the trace too, and so a failure can be run again. STRESS_REPEAT=n goes through the table n times, with
// another seed each time. STRESS_SHORT=1 keeps four rows: 2 workers, 1 where nothing is forced, no delays
// (under MPI, and in every build but that of gcc -O2); STRESS_EMULATED=1 only rows with random steals.
// Not for what a single schedule is about: pass options by hand there.
#pragma once

#include <godwit/options.hpp>

#include <gtest/gtest.h>

#include <cstdint>
#include <string>
#include <string_view>

namespace support {

std::uint64_t number_from_environment(const char* name, std::uint64_t otherwise);

/// The seed of this process, drawn once.
std::uint64_t base_seed();

godwit::options schedule(std::uint32_t workers, const char* force = "none", std::uint32_t delay_us = 0,
                         std::uint64_t seed = 0);

std::string describe(const godwit::options& o);

/// body(const godwit::options&) under all schedules; stops at the first that fails.
template <class Body>
void for_each_schedule(Body&& body) {
  const std::uint64_t repeat = number_from_environment("STRESS_REPEAT", 1);
  const bool everything = number_from_environment("STRESS_SHORT", 0) == 0;
  const bool emulated = number_from_environment("STRESS_EMULATED", 0) != 0;
  std::uint64_t row = 0;
  for (std::uint64_t round = 0; round < repeat; ++round)
    for (const char* force : {"none", "parents", "children", "random"})
      for (const std::uint32_t workers : {1u, 2u, 3u, 4u, 8u})
        for (const std::uint32_t delay_us : {0u, 5u}) {
          const std::string_view kind = force;
          if (!everything &&
              (workers > 2 || delay_us != 0 || kind == "parents" || (workers == 1 && kind != "none")))
            continue;
          if (emulated && kind != "random") continue;
          const godwit::options o = schedule(workers, force, delay_us, base_seed() + row++);
          SCOPED_TRACE(describe(o));
          body(o);
          if (testing::Test::HasFailure()) return;
        }
}

}  // namespace support
