// Tests that hold for some substrates only.
#pragma once

#include <gtest/gtest.h>
#include <godwit/options.hpp>

namespace support {

inline bool on_threads() { return godwit::resolve_options().substrate == godwit::choice::substrate::threads; }

}  // namespace support

/// For tests of what only workers have that are processes: a fatal error ends one of them and not the caller
/// of run, their memory is their own.
#define GODWIT_NEEDS_PROCESSES(why) \
  if (support::on_threads()) GTEST_SKIP() << "workers are threads: " << (why)
