// See site_lines.hpp.
#include "heap/site_lines.hpp"

#include "base/code_place.hpp"

#include <algorithm>
#include <vector>

namespace godwit::heap {

site_line line_of(std::span<const std::uintptr_t> callers) {
  constexpr std::size_t most_lines = 3;
  const auto end = std::find(callers.begin(), callers.end(), 0u);
  const std::vector<std::string> lines = base::code_places({callers.begin(), end}, most_lines);
  site_line l{base::place_in_line(lines.front()), lines.front(), ""};
  std::string before;
  for (std::size_t i = 1; i < lines.size(); ++i) {
    const std::string place = base::place_in_line(lines[i]);
    if (place == before) continue;
    l.callers += (before.empty() ? ", called at " : ", ") + place;
    before = place;
  }
  return l;
}

}  // namespace godwit::heap
