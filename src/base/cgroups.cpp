// See cgroups.hpp.
#include "base/cgroups.hpp"

#include <charconv>
#include <sstream>
#include <vector>

#include "base/text.hpp"

namespace godwit::base {

std::optional<std::int64_t> to_number(std::string_view text) noexcept {
  std::int64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc{}) return std::nullopt;
  return value;
}

namespace {

bool list_has(const std::string& list, const std::string& word) {
  return (',' + list + ',').find(',' + word + ',') != std::string::npos;
}

/// mountinfo writes space, tab, newline and backslash as \ooo.
std::string unescape(std::string_view text) {
  std::string out;
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] == '\\' && i + 3 < text.size()) {
      out += static_cast<char>((text[i + 1] - '0') * 64 + (text[i + 2] - '0') * 8 + (text[i + 3] - '0'));
      i += 3;
    } else {
      out += text[i];
    }
  }
  return out;
}

/// A mounted hierarchy of cgroups.
struct hierarchy {
  bool v2;
  std::string inner;  ///< the cgroup that is mounted ...
  std::string at;     ///< ... at this directory
};

std::vector<hierarchy> hierarchies(const std::string& controller, const std::string& root) {
  std::vector<hierarchy> found;
  for (const auto& line : lines_of(root + "/proc/self/mountinfo")) {
    // 36 35 0:31 INNER AT rw,nosuid shared:9 - TYPE SOURCE OPTIONS
    const auto dash = line.find(" - ");
    if (dash == std::string::npos) continue;
    std::istringstream before(line.substr(0, dash));
    std::istringstream after(line.substr(dash + 3));
    std::string skip, inner, at, type, source, opts;
    before >> skip >> skip >> skip >> inner >> at;
    after >> type >> source >> opts;
    if (type == "cgroup2" || (type == "cgroup" && list_has(opts, controller)))
      found.push_back({type == "cgroup2", unescape(inner), unescape(at)});
  }
  return found;
}

/// This process's cgroup in the v2 hierarchy, or in the v1 hierarchy of @p controller.
std::optional<std::string> own_cgroup(const std::string& controller, const std::string& root, bool v2) {
  for (const auto& line : lines_of(root + "/proc/self/cgroup")) {
    // 0::/path   or   4:cpu,cpuacct:/path
    const auto first = line.find(':');
    const auto second = first == std::string::npos ? first : line.find(':', first + 1);
    if (second == std::string::npos) continue;
    const std::string controllers = line.substr(first + 1, second - first - 1);
    if (v2 ? line.substr(0, first) == "0" && controllers.empty() : list_has(controllers, controller))
      return line.substr(second + 1);
  }
  return std::nullopt;
}

/// What of @p cgroup lies below the mounted one. A cgroup outside of it ("/../x", or a container that sees
/// its host's paths) cannot be reached: then only the mounted one is looked at.
std::string below_mount(const std::string& cgroup, const std::string& inner) {
  if (cgroup.find("/..") != std::string::npos) return {};
  if (inner == "/") return cgroup == "/" ? std::string{} : cgroup;
  if (cgroup.starts_with(inner) && (cgroup.size() == inner.size() || cgroup[inner.size()] == '/'))
    return cgroup.substr(inner.size());
  return {};
}

}  // namespace

void each_cgroup(const std::string& controller, const std::string& root,
                 const std::function<void(const std::string& directory, bool v2)>& f) {
  for (const auto& h : hierarchies(controller, root)) {
    const auto cgroup = own_cgroup(controller, root, h.v2);
    if (!cgroup) continue;
    std::string path = below_mount(*cgroup, h.inner);
    while (true) {
      f(root + h.at + path, h.v2);
      if (path.empty()) break;
      path.erase(path.rfind('/'));
    }
  }
}

}  // namespace godwit::base
