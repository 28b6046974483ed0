// The NAS Parallel Benchmarks EP, IS, CG, MG and FT, written from their specification ("The NAS Parallel
// Benchmarks", RNR-94-007, and the rules of NPB 3): each a template over worlds.hpp, instantiated for plain
// memory and for Godwit, with the official verification (verify.hpp). Program: main.cpp. Documents:
// docs/reproduce.md (G15). Tests: bench/CMakeLists.txt (bench.npb), tests/bench.
#pragma once

#include <string>
#include <vector>

#include "../global/parts.hpp"

namespace npb {

struct outcome {
  parts::phase timed;  ///< what NPB's rules time
  bool verified = false;
};

struct benchmark {
  std::string name;
  /// What is made before the run, in every process, and not timed.
  void (*prepare)(char size_class);
  outcome (*plain)(char size_class, unsigned threads);
  /// As a root thread.
  outcome (*ours)(char size_class);
};

extern const benchmark ep, is, cg, mg, ft;

}  // namespace npb
