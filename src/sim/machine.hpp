// A machine as the simulator sees it: how long what takes, and how hosts are connected.
//
// A text file of lines `key = value`; a # begins a comment. Those in src/sim/machines are part of the library
// and known by their names. docs/scale.md has the keys. Test: tests/sim/machine_test.cpp.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/world.hpp"

namespace godwit::sim {

enum class topology : std::uint8_t { flat, fat_tree, torus };

struct machine {
  std::string name;
  std::string source;  ///< where the numbers come from

  // What a worker does.
  std::uint64_t look_ns = 40;      ///< a look in vain at a word of another worker
  std::uint64_t spin_ns = 2000;    ///< who waits looks for so long before it sleeps
  std::uint64_t wake_ns = 3000;    ///< until who sleeps runs again
  std::uint64_t signal_ns = 2000;  ///< until who computes is interrupted
  /// a companion's short sleep lasts so much longer than asked; 0: companions look all the time
  std::uint64_t nap_ns = 0;
  std::array<std::uint64_t, static_cast<std::size_t>(base::step::count_)> step_ns{};
  double instructions_per_ns = 2;  ///< of user code, where they are counted (sim_clock=counted)

  // Messages between hosts (LogGP: D. Culler et al. 1993, A. Alexandrov et al. 1995).
  std::uint64_t latency_ns = 1000;  ///< L: of the wire and the switches that each message passes
  std::uint64_t hop_ns = 0;         ///< more for each further switch
  std::uint64_t overhead_ns = 500;  ///< o: of the CPU that sends or receives
  std::uint64_t gap_ns = 100;       ///< g: between two messages of one host
  double ns_per_byte = 0.1;         ///< G
  std::uint64_t serve_ns = 500;     ///< a companion sees to a message that has come, beside o
  std::uint64_t rma_ns = 3000;      ///< a one-sided operation (way rma) of no bytes, there and back
  std::uint64_t rma_gap_ns = 20;    ///< between two of them at one node's card

  std::uint32_t hosts_per_node = 1;  ///< hosts that share a network card and a place in the topology
  sim::topology net = topology::flat;
  std::uint32_t radix = 16;                     ///< fat_tree: nodes below a switch of the lowest level
  std::array<std::uint32_t, 3> torus{1, 1, 1};  ///< nodes along each axis

  /// Between two nodes.
  std::uint32_t hops(std::uint32_t from, std::uint32_t to) const noexcept;
  std::uint64_t wire_ns(std::uint32_t from, std::uint32_t to) const noexcept {
    return latency_ns + hop_ns * hops(from, to);
  }
  std::uint64_t bytes_ns(std::size_t bytes) const noexcept {
    return static_cast<std::uint64_t>(static_cast<double>(bytes) * ns_per_byte);
  }
};

/// @p name: one of machine_names(), or the path of a file; and what is different, such as
/// "wisteria,latency_ns=500". Throws std::invalid_argument with one line of text.
machine read_machine(const std::string& name);
/// @p text of a file that messages call @p name.
machine parse_machine(std::string_view text, const std::string& name);
std::vector<std::string> machine_names();

}  // namespace godwit::sim
