// Frames, and what makes texts safe in them. See frame.hpp.
#include "frame.hpp"

#include <ostream>

namespace godwit::report {

using nlohmann::json;

void write_frame(std::ostream& out, std::string_view frame,
                 const std::vector<std::pair<std::string_view, std::string_view>>& parts) {
  for (const auto& [name, text] : parts) {
    const auto at = frame.find("{{" + std::string(name) + "}}");
    out << frame.substr(0, at) << text;
    frame.remove_prefix(at == std::string_view::npos ? frame.size() : at + name.size() + 4);
  }
  out << frame;
}

std::string script_safe(const json& value) {
  const std::string plain = value.dump(-1, ' ', false, json::error_handler_t::replace);
  std::string safe;
  safe.reserve(plain.size());
  for (const char c : plain) {
    if (c == '<')
      safe += "\\u003c";
    else
      safe.push_back(c);
  }
  return safe;
}

std::string html_safe(const std::string& text) {
  std::string safe;
  for (const char c : text) {
    if (c == '<')
      safe += "&lt;";
    else if (c == '&')
      safe += "&amp;";
    else
      safe.push_back(c);
  }
  return safe;
}

}  // namespace godwit::report
