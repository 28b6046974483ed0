// See faults.hpp.
#include "sim/faults.hpp"

#include <algorithm>
#include <stdexcept>
#include <string>
#include <utility>

namespace godwit::sim {

faults faults::of(std::string_view list) {
  static constexpr std::pair<std::string_view, bool faults::*> names[] = {
      {"delay", &faults::delay}, {"stall", &faults::stall},       {"slow", &faults::slow},
      {"crash", &faults::crash}, {"spurious", &faults::spurious}, {"late", &faults::late},
      {"small", &faults::small}};
  faults f;
  while (!list.empty()) {
    const std::string_view name = list.substr(0, list.find(','));
    list.remove_prefix(std::min(name.size() + 1, list.size()));
    bool known = false;
    for (const auto& [of_row, member] : names)
      if (name == of_row || (name == "all" && member != &faults::crash)) f.*member = known = true;
    if (!known)
      throw std::invalid_argument("godwit: sim_faults: there is no fault '" + std::string(name) +
                                  "': expected a list of delay, stall, slow, crash, spurious, late, small, "
                                  "with commas between, or all (but crash)");
  }
  return f;
}

}  // namespace godwit::sim
