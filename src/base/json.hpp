// Writes JSON text, nothing else: for the counters of a run and the head of a trace file.
//
// Commas and quotes are put where they belong; that every begin has its end is the caller's business. Text is
// taken as UTF-8; bytes that are no UTF-8 become U+FFFD, so that the result can always be parsed.
// Called by: src/runtime (stats_output, trace_output). Test: tests/base/json_test.cpp.
#pragma once

#include <charconv>
#include <cmath>
#include <concepts>
#include <cstdint>
#include <cstdio>
#include <string>
#include <string_view>

namespace godwit::base {

class json_writer {
 public:
  json_writer& begin_object() { return open('{'); }
  json_writer& end_object() { return close('}'); }
  json_writer& begin_array() { return open('['); }
  json_writer& end_array() { return close(']'); }
  json_writer& key(std::string_view name) {
    separate();
    quote(name);
    text_ += ':';
    fresh_ = true;
    return *this;
  }
  json_writer& value(std::string_view v) {
    separate();
    quote(v);
    return *this;
  }
  json_writer& value(const char* v) { return value(std::string_view(v)); }
  template <std::integral T>
  json_writer& value(T v) {
    separate();
    if constexpr (std::same_as<T, bool>)
      text_ += v ? "true" : "false";
    else
      text_ += std::to_string(v);
    return *this;
  }
  /// Numbers that JSON does not know become null.
  json_writer& value(double v) {
    separate();
    if (!std::isfinite(v)) {
      text_ += "null";
      return *this;
    }
    char digits[40];  // not printf: a program that has chosen a locale may have a decimal comma
    const auto end = std::to_chars(digits, digits + sizeof digits, v, std::chars_format::general, 9).ptr;
    text_.append(digits, end);
    return *this;
  }
  /// @p json is a value already.
  json_writer& raw(std::string_view json) {
    separate();
    text_ += json;
    return *this;
  }
  template <class T>
  json_writer& field(std::string_view name, const T& v) {
    return key(name).value(v);
  }
  /// Only for people who look at the file.
  json_writer& new_line() {
    line_ = true;
    return *this;
  }

  const std::string& text() const noexcept { return text_; }

 private:
  json_writer& open(char c) {
    separate();
    text_ += c;
    fresh_ = true;
    return *this;
  }
  json_writer& close(char c) {
    if (line_) text_ += '\n';
    line_ = false;
    text_ += c;
    fresh_ = false;
    return *this;
  }
  void separate() {
    if (!fresh_) text_ += ',';
    if (line_) text_ += '\n';
    fresh_ = line_ = false;
  }

  /// Length of the well-formed UTF-8 sequence at the front of @p s, 0 if there is none.
  static std::size_t sequence(std::string_view s) noexcept {
    const auto byte = [&](std::size_t i) { return static_cast<unsigned char>(s[i]); };
    const unsigned first = byte(0);
    const std::size_t n = first < 0x80       ? 1
                          : first >> 5 == 6  ? 2
                          : first >> 4 == 14 ? 3
                          : first >> 3 == 30 ? 4
                                             : 0;
    if (n == 0 || n > s.size()) return 0;
    std::uint32_t code = n == 1 ? first : first & (0xffu >> (n + 1));
    for (std::size_t i = 1; i < n; ++i) {
      if (byte(i) >> 6 != 2) return 0;
      code = code << 6 | (byte(i) & 0x3f);
    }
    constexpr std::uint32_t smallest[] = {0, 0, 0x80, 0x800, 0x10000};
    return code < smallest[n] || code > 0x10ffff || (code >= 0xd800 && code < 0xe000) ? 0 : n;
  }

  void quote(std::string_view s) {
    text_ += '"';
    while (!s.empty()) {
      const std::size_t n = sequence(s);
      if (n == 0) {
        text_ += "\\ufffd";
        s.remove_prefix(1);
        continue;
      }
      const char c = s.front();
      if (c == '"' || c == '\\') {
        text_ += '\\';
        text_ += c;
      } else if (n == 1 && static_cast<unsigned char>(c) < 0x20) {
        char code[8];
        std::snprintf(code, sizeof code, "\\u%04x", static_cast<unsigned>(c));
        text_ += code;
      } else {
        text_ += s.substr(0, n);
      }
      s.remove_prefix(n);
    }
    text_ += '"';
  }

  std::string text_;
  bool fresh_ = true;  // nothing to separate the next value from
  bool line_ = false;
};

}  // namespace godwit::base
