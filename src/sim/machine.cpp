// See machine.hpp.
#include "sim/machine.hpp"

#include <algorithm>
#include <charconv>
#include <fstream>
#include <sstream>
#include <stdexcept>
#include <utility>

#include "machine_texts.hpp"  // made of machines/*.ini by CMake

namespace godwit::sim {

namespace {

std::string_view trim(std::string_view s) {
  const auto first = s.find_first_not_of(" \t\r");
  if (first == s.npos) return {};
  return s.substr(first, s.find_last_not_of(" \t\r") - first + 1);
}

class reader {
 public:
  explicit reader(machine& m) : machine_(m) {}

  /// @p where: for messages
  void line(std::string_view text, std::string where) {
    where_ = std::move(where);
    text = trim(text.substr(0, text.find('#')));
    if (text.empty()) return;
    const auto equals = text.find('=');
    if (equals == text.npos) bad("'" + std::string(text) + "' is no line of the form key = value");
    key_ = trim(text.substr(0, equals));
    value_ = trim(text.substr(equals + 1));
    for (const auto& [key, member] : times)
      if (key_ == key) return static_cast<void>(machine_.*member = number_of<std::uint64_t>(value_));
    for (std::size_t i = 0; i < steps.size(); ++i)
      if (key_ == steps[i]) return static_cast<void>(machine_.step_ns[i] = number_of<std::uint64_t>(value_));
    if (key_ == "source")
      machine_.source = value_;
    else if (key_ == "bytes_per_ns")
      machine_.ns_per_byte = 1 / rate();
    else if (key_ == "instructions_per_ns")
      machine_.instructions_per_ns = rate();
    else if (key_ == "topology")
      topology();
    else if (key_ == "radix")
      radix();
    else if (key_ == "hosts_per_node")
      machine_.hosts_per_node = std::max(number_of<std::uint32_t>(value_), 1u);
    else if (key_ == "torus")
      torus();
    else
      bad("there is no key '" + std::string(key_) + "' (docs/scale.md lists them)");
  }

 private:
  static constexpr std::pair<std::string_view, std::uint64_t machine::*> times[] = {
      {"look_ns", &machine::look_ns},     {"wake_ns", &machine::wake_ns},
      {"signal_ns", &machine::signal_ns}, {"latency_ns", &machine::latency_ns},
      {"hop_ns", &machine::hop_ns},       {"overhead_ns", &machine::overhead_ns},
      {"gap_ns", &machine::gap_ns},       {"serve_ns", &machine::serve_ns},
      {"rma_ns", &machine::rma_ns},       {"rma_gap_ns", &machine::rma_gap_ns},
      {"spin_ns", &machine::spin_ns},     {"nap_ns", &machine::nap_ns},
  };
  static constexpr std::array<std::string_view, static_cast<std::size_t>(base::step::count_)> steps{
      "near_look_ns", "near_steal_ns", "suspend_ns", "resume_ns", "access_ns"};

  [[noreturn]] void bad(const std::string& why) const {
    throw std::invalid_argument("godwit: machine " + where_ + ": " + why);
  }
  template <class T>
  T number_of(std::string_view text) const {
    T v{};
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), v);
    if (error != std::errc() || end != text.data() + text.size())
      bad("'" + std::string(text) + "' is no number for " + std::string(key_));
    return v;
  }
  double rate() const {
    const auto v = number_of<double>(value_);
    if (!(v > 0)) bad(std::string(key_) + " must be more than 0");
    return v;
  }
  void topology() {
    using enum sim::topology;
    if (value_ == "flat")
      machine_.net = flat;
    else if (value_ == "fat_tree")
      machine_.net = fat_tree;
    else if (value_ == "torus")
      machine_.net = sim::topology::torus;
    else
      bad("'" + std::string(value_) + "' is none of flat, fat_tree, torus");
  }
  void radix() {
    machine_.radix = number_of<std::uint32_t>(value_);
    if (machine_.radix < 2) bad("radix must be 2 or more: the ways of two nodes would never meet");
  }
  void torus() {
    std::string_view rest = value_;
    for (std::size_t i = 0; i < 3; ++i) {
      const auto x = rest.find('x');
      if ((x == rest.npos) != (i == 2)) bad("'" + std::string(value_) + "' is not of the form 8x8x8");
      machine_.torus[i] = std::max(number_of<std::uint32_t>(trim(rest.substr(0, x))), 1u);
      rest = rest.substr(x == rest.npos ? rest.size() : x + 1);
    }
  }

  machine& machine_;
  std::string where_;
  std::string_view key_, value_;
};

/// Up to the next @p end, which is taken away from @p rest with it.
std::string_view next_of(std::string_view& rest, char end) {
  const auto at = rest.find(end);
  const std::string_view first = rest.substr(0, at);
  rest = at == rest.npos ? std::string_view{} : rest.substr(at + 1);
  return first;
}

std::string text_of(const std::string& name) {
  for (const auto& [known, text] : machine_texts)
    if (known == name) return std::string(text);
  std::ifstream file(name);
  if (!file) {
    std::string all;
    for (const auto& known : machine_names()) all += (all.empty() ? "" : ", ") + known;
    throw std::invalid_argument("godwit: sim_machine=" + name +
                                ": neither a machine that the library knows (" + all +
                                ") nor a file that can be read");
  }
  std::ostringstream text;
  text << file.rdbuf();
  return text.str();
}

}  // namespace

std::uint32_t machine::hops(std::uint32_t from, std::uint32_t to) const noexcept {
  if (from == to) return 0;
  switch (net) {
    case topology::flat:
      return 0;
    case topology::fat_tree: {  // up to where the ways meet, and down again: two more switches per level
      std::uint32_t levels = 0;
      for (from /= radix, to /= radix; from != to; from /= radix, to /= radix) ++levels;
      return 2 * levels;
    }
    case topology::torus: {  // along one axis after the other, the shorter way round
      std::uint32_t n = 0;
      for (const std::uint32_t size : torus) {
        const std::uint32_t a = from % size, b = to % size, d = a > b ? a - b : b - a;
        n += std::min(d, size - d);
        from /= size;
        to /= size;
      }
      return n != 0 ? n - 1 : 0;
    }
  }
  return 0;
}

machine parse_machine(std::string_view text, const std::string& name) {
  machine m;
  m.name = name;
  std::string_view different = name, base = next_of(different, ',');
  reader r(m);
  for (int number = 1; !text.empty(); ++number)
    r.line(next_of(text, '\n'), std::string(base) + ", line " + std::to_string(number));
  while (!different.empty()) r.line(next_of(different, ','), name);
  if (m.look_ns == 0)
    throw std::invalid_argument("godwit: machine " + name +
                                ": look_ns must be more than 0: time would stand still");
  return m;
}

std::vector<std::string> machine_names() {
  std::vector<std::string> names;
  for (const auto& [name, text] : machine_texts) names.emplace_back(name);
  return names;
}

machine read_machine(const std::string& name) {
  return parse_machine(text_of(name.substr(0, name.find(','))), name);
}

}  // namespace godwit::sim
