// Machines: the files that come with the library, their keys, and what is wrong with others.
// test: once
#include "sim/machine.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <stdexcept>
#include <string>

namespace {

using namespace godwit::sim;

std::string refusal(const std::string& text) {
  try {
    parse_machine(text, "m");
  } catch (const std::invalid_argument& e) {
    return e.what();
  }
  return "";
}

TEST(machine, all_that_come_along_can_be_read) {
  const auto names = machine_names();
  for (const char* wanted : {"here", "wisteria", "ito", "fx10", "tsubame"})
    EXPECT_NE(std::find(names.begin(), names.end(), wanted), names.end()) << wanted;
  for (const auto& name : names) {
    const machine m = read_machine(name);
    EXPECT_FALSE(m.source.empty()) << name << ": says where its numbers come from";
    EXPECT_GT(m.step_ns[static_cast<std::size_t>(godwit::base::step::steal)], 0u) << name;
  }
}

TEST(machine, keys_and_comments) {
  const machine m = parse_machine(
      "# all\nlook_ns = 7  # nanoseconds\n\nbytes_per_ns=4\ninstructions_per_ns = 2.5\nsuspend_ns = 12", "m");
  EXPECT_EQ(m.look_ns, 7u);
  EXPECT_DOUBLE_EQ(m.ns_per_byte, 0.25);
  EXPECT_DOUBLE_EQ(m.instructions_per_ns, 2.5);
  EXPECT_EQ(m.step_ns[static_cast<std::size_t>(godwit::base::step::suspend)], 12u);
}

TEST(machine, what_is_different_follows_the_name) {
  const machine m = read_machine("wisteria,latency_ns=77, hosts_per_node = 48");
  EXPECT_EQ(m.latency_ns, 77u);
  EXPECT_EQ(m.hosts_per_node, 48u);
  EXPECT_EQ(m.rma_ns, read_machine("wisteria").rma_ns);
  EXPECT_EQ(m.name, "wisteria,latency_ns=77, hosts_per_node = 48") << "results say which machine it was";
  try {
    read_machine("wisteria,latency=77");
    FAIL();
  } catch (const std::invalid_argument& e) {
    EXPECT_EQ(std::string(e.what()),
              "godwit: machine wisteria,latency=77: there is no key 'latency' (docs/scale.md lists them)");
  }
}

TEST(machine, refusals_name_the_line) {
  EXPECT_NE(refusal("look_ns = 1\nlok_ns = 1").find("line 2: there is no key 'lok_ns'"), std::string::npos);
  EXPECT_NE(refusal("look_ns = fast").find("'fast' is no number for look_ns"), std::string::npos);
  EXPECT_NE(refusal("look_ns").find("no line of the form key = value"), std::string::npos);
  EXPECT_NE(refusal("topology = ring").find("none of flat, fat_tree, torus"), std::string::npos);
  EXPECT_NE(refusal("torus = 3x4").find("not of the form 8x8x8"), std::string::npos);
  for (const char* radix : {"radix = 0", "radix = 1"})
    EXPECT_NE(refusal(radix).find("line 1: radix must be 2 or more"), std::string::npos);
  EXPECT_NE(refusal("bytes_per_ns = 0").find("more than 0"), std::string::npos);
  EXPECT_NE(refusal("instructions_per_ns = -1").find("instructions_per_ns must be more than 0"),
            std::string::npos);
  EXPECT_NE(refusal("look_ns = 0").find("time would stand still"), std::string::npos);
  EXPECT_THROW(read_machine("/no/such/file"), std::invalid_argument);
}

TEST(machine, ways_between_hosts) {
  const machine flat = parse_machine("topology = flat", "m");
  EXPECT_EQ(flat.hops(0, 77), 0u);
  const machine tree = parse_machine("topology = fat_tree\nradix = 4\nlatency_ns = 10\nhop_ns = 3", "m");
  EXPECT_EQ(tree.hops(0, 3), 0u);
  EXPECT_EQ(tree.hops(0, 4), 2u);
  EXPECT_EQ(tree.hops(3, 16), 4u);
  EXPECT_EQ(tree.wire_ns(0, 4), 16u);
  const machine torus = parse_machine("topology = torus\ntorus = 4x3x2", "m");
  EXPECT_EQ(torus.hops(0, 1), 0u) << "neighbours";
  EXPECT_EQ(torus.hops(0, 3), 0u) << "the shorter way round";
  EXPECT_EQ(torus.hops(0, 2), 1u);
  EXPECT_EQ(torus.hops(0, 2 + 4 * 1 + 12 * 1), 3u);
}

}  // namespace
