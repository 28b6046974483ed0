// Numbers with units, for people. See summary.hpp.
#include "summary.hpp"

#include <cmath>
#include <cstdio>
#include <string_view>

namespace godwit::report {
namespace {

/// Three significant digits, never an exponent.
std::string digits(double value) {
  char text[64];
  const double size = std::fabs(value);
  std::snprintf(text, sizeof text, "%.*f", size >= 100 ? 0 : size >= 10 ? 1 : 2, value);
  return text;
}

std::string scaled(double value, double step, const char* const* units, int count) {
  int i = 0;
  while (i + 1 < count && std::fabs(value) >= step * 0.9995) {
    value /= step;
    ++i;
  }
  char plain[64];
  if (i == 0) {
    std::snprintf(plain, sizeof plain, "%.0f", value);
    return std::string(plain) + " " + units[0];
  }
  return digits(value) + " " + units[i];
}

}  // namespace

std::string format_time(double ns) {
  static constexpr const char* units[] = {"ns", "µs", "ms", "s"};
  return scaled(ns, 1000, units, 4);
}

std::string format_bytes(double n) {
  static constexpr const char* units[] = {"B", "KiB", "MiB", "GiB", "TiB"};
  return scaled(n, 1024, units, 5);
}

std::string format_percent(double part) {
  const double percent = part * 100;
  if (percent > 0 && percent < 0.1) return "< 0.1 %";
  char text[64];
  std::snprintf(text, sizeof text, "%.*f %%", percent < 9.95 && percent > 0 ? 1 : 0, percent);
  return text;
}

std::string format_count(double n) {
  char text[64];
  std::snprintf(text, sizeof text, "%.0f", n);
  std::string_view plain = text;
  std::string out;
  for (std::size_t i = 0; i < plain.size(); ++i) {
    const std::size_t left = plain.size() - i;
    if (i > 0 && left % 3 == 0 && plain[i - 1] != '-') out.push_back(',');
    out.push_back(plain[i]);
  }
  return out;
}

std::string format_place(const waiting_place& p) {
  if (p.file.empty()) return "an unknown place";
  const auto slash = p.file.rfind('/');
  const std::string name = slash == std::string::npos ? p.file : p.file.substr(slash + 1);
  return p.line == 0 ? name : name + ":" + std::to_string(p.line);
}

}  // namespace godwit::report
