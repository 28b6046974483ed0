// Runs of these tests: substrate threads, several workers, forced steals, delays.
#pragma once

#include <godwit/godwit.hpp>

#include <gtest/gtest.h>

#include <string>

namespace support {

inline godwit::options on_threads(std::uint32_t workers = 2) {
  godwit::options o;
  o.substrate = godwit::choice::substrate::threads;
  o.workers = workers;
  return o;
}

/// body(options) for each schedule worth looking at.
template <class Body>
void for_each_place(Body&& body) {
  for (const std::uint32_t workers : {1u, 2u, 4u}) {
    SCOPED_TRACE("workers " + std::to_string(workers));
    body(on_threads(workers));
  }
  for (const char* force : {"random", "parents", "children"}) {
    SCOPED_TRACE(std::string("force_steal ") + force);
    godwit::options o = on_threads(3);
    o.force_steal = godwit::choice::named{force};
    body(o);
  }
  {
    SCOPED_TRACE("delays");
    godwit::options o = on_threads(3);
    o.delay_us = 20;
    body(o);
  }
  for (const char* policy : {"stalling", "locked_free", "stalling_locked_free"}) {
    SCOPED_TRACE(std::string("policy ") + policy);
    godwit::options o = on_threads(2);
    o.policy = godwit::choice::named{policy};
    body(o);
  }
}

/// Run @p root under each of them; it must come back with 0.
template <class Root>
void everywhere(Root&& root) {
  for_each_place([&](const godwit::options& o) {
    EXPECT_EQ(godwit::run<int>(
                  [&root] {
                    root();
                    return 0;
                  },
                  o),
              0);
  });
}

}  // namespace support
