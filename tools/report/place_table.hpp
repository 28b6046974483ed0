// Places in the program by what events say of them, and names. Used by walker.hpp only.
#pragma once

#include "analysis.hpp"
#include "waits.hpp"

#include "trace/code_text.hpp"

#include <cstdint>
#include <string>
#include <unordered_map>
#include <vector>

namespace godwit::report {

/// What the events behind a suspension, an access, or a continuation that goes on, say.
struct place_events {
  std::uint64_t file = 0, function = 0, what = 0;
  std::uint32_t line = 0;
  const char* access = nullptr;  ///< to other hosts: which
  std::vector<std::uint64_t> callers;
  bool operator==(const place_events&) const = default;
};

class place_table {
 public:
  std::uint32_t index_of(const place_events& e, const std::unordered_map<std::uint64_t, std::string>& strings,
                         std::vector<waiting_place>& places) {
    if (known_ != nothing && e == last_) return known_;
    last_ = e;
    const auto text = [&](std::uint64_t address) {
      const auto found = strings.find(address);
      return found == strings.end() ? std::string() : found->second;
    };
    waiting_place p{.file = text(e.file), .function = text(e.function), .line = e.line, .what = text(e.what)};
    for (const std::uint64_t caller : e.callers)
      if (p.file.empty()) {
        const trace::code_text code = trace::code_text_of(text(caller));
        p.file = code.place;
        p.function = code.function;
      }
    p.function = trace::short_function(p.function);
    p.kind = e.access != nullptr ? wait_for::access : kind_of(p.what);
    if (e.access != nullptr) p.what = e.access;
    const std::string name =
        p.file + std::string(1, '\0') + p.function + '\0' + std::to_string(p.line) + '\0' + p.what;
    const auto [at, is_new] = index_.try_emplace(name, static_cast<std::uint32_t>(places.size()));
    if (is_new) places.push_back(std::move(p));
    return known_ = at->second;
  }

 private:
  std::unordered_map<std::string, std::uint32_t> index_;
  place_events last_;
  std::uint32_t known_ = nothing;
};

/// Numbers of texts.
class name_table {
 public:
  /// nothing: of an empty one.
  std::uint32_t index_of(const std::string& name, std::vector<std::string>& names) {
    if (name.empty()) return nothing;
    const auto [at, is_new] = index_.try_emplace(name, static_cast<std::uint32_t>(names.size()));
    if (is_new) names.push_back(name);
    return at->second;
  }

 private:
  std::unordered_map<std::string, std::uint32_t> index_;
};

}  // namespace godwit::report
