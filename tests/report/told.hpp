// What the report says of a trace.
#pragma once

#include "summary.hpp"
#include "trace_builder.hpp"

#include <cstdint>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace report_test {

struct told {
  std::string file;
  godwit::report::recording r;
  godwit::report::analysis a;  ///< empty where the trace has no events
  godwit::report::run_figures f;
  std::vector<godwit::report::finding> findings;

  explicit told(const trace_builder& t) : told(t.bytes()) {}
  explicit told(std::string bytes)
      : file(std::move(bytes)), r(godwit::report::parse(std::as_bytes(std::span(file)), "test")) {
    if (r.has_events) a = godwit::report::analyze(r);
    const godwit::report::analysis* const events = r.has_events ? &a : nullptr;
    f = figures_of(r, events);
    findings = explain(f, r, events);
  }
  /// The verdict.
  const std::string& title() const { return findings.at(0).title; }
  const godwit::report::finding* find(const std::string& part) const {
    for (const auto& x : findings)
      if (x.title.find(part) != std::string::npos) return &x;
    return nullptr;
  }
  std::uint64_t ns(std::uint32_t w, godwit::report::state s) const {
    return a.totals[w].ns[static_cast<std::size_t>(s)];
  }
  /// Of a piece of a worker's timeline.
  std::string name(std::uint32_t w, std::size_t piece) const {
    const std::uint32_t n = a.timeline[w].at(piece).name;
    return n == godwit::report::nothing ? "" : a.names[n];
  }
};

inline bool has(const std::string& text, const char* part) { return text.find(part) != std::string::npos; }

}  // namespace report_test
