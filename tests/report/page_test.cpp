// The page's text: what is in it, that it carries everything, and that its data say what the analysis said.
#include "encode.hpp"
#include "page.hpp"
#include "trace_builder.hpp"

#include <gtest/gtest.h>

#include <limits>
#include <sstream>

namespace {

using namespace godwit::report;

/// Reads what encode.cpp wrote, as page/data.js does.
struct reader {
  const std::string& bytes;
  std::size_t at = 0;
  unsigned byte() { return static_cast<unsigned char>(bytes.at(at++)); }
  std::uint64_t number() {
    std::uint64_t value = 0;
    for (int shift = 0;; shift += 7) {
      const unsigned b = byte();
      value |= std::uint64_t{b & 127} << shift;
      if (b < 128) return value;
    }
  }
};

struct decoded {
  std::vector<std::array<std::uint64_t, states>> ns;  ///< per worker
  std::uint64_t pieces = 0, shortest = ~std::uint64_t{0}, mixtures = 0;
  std::vector<std::int64_t> threads, names;
};
decoded decode(const encoded_timeline& e, std::size_t workers) {
  decoded d;
  reader in{e.bytes};
  for (std::size_t w = 0; w < workers; ++w) {
    auto& mine = d.ns.emplace_back();
    std::int64_t thread = 0;
    for (std::uint64_t n = in.number(); n > 0; --n, ++d.pieces) {
      const unsigned head = in.byte();
      const std::uint64_t duration = in.number();
      if (n > 1) d.shortest = std::min(d.shortest, duration);
      if (head == 15) {
        EXPECT_GE(in.number(), 2u);
        std::uint64_t sum = 0;
        for (std::uint64_t& ns : mine) {
          const std::uint64_t part = in.number();
          ns += part;
          sum += part;
        }
        EXPECT_EQ(sum, duration);
        ++d.mixtures;
        continue;
      }
      mine[head & 15] += duration;
      if ((head & 15) != 0) continue;
      const std::uint64_t step = in.number();
      thread +=
          (step & 1) != 0 ? -static_cast<std::int64_t>(step / 2) - 1 : static_cast<std::int64_t>(step / 2);
      d.threads.push_back(thread);
      d.names.push_back(static_cast<std::int64_t>(in.number()) - 1);
      in.number();
      const unsigned ended = in.byte();
      if (ended == static_cast<unsigned>(loss::join) || ended == static_cast<unsigned>(loss::wait))
        in.number();
    }
  }
  EXPECT_EQ(in.at, e.bytes.size());
  return d;
}

struct run_of {
  std::string file;
  recording r;
  analysis a;
  explicit run_of(const report_test::trace_builder& t)
      : file(t.bytes()), r(parse(std::as_bytes(std::span(file)), "t")), a(analyze(r)) {}
};
const run_of& simulated() {
  static const run_of run(report_test::simulate({.workers = 6, .events = 30'000, .seed = 5}));
  return run;
}
std::string page_of(const run_of& run, const page_options& options = {}) {
  std::ostringstream out;
  write_page(out, run.r, &run.a, "run.pftrace", options);
  return out.str();
}

TEST(Encode, ExactWhenThereIsRoom) {
  const auto& a = simulated().a;
  const encoded_timeline e = encode_timeline(a.timeline, 10'000'000, 0, a.end);
  EXPECT_EQ(e.threshold_ns, 0u);
  const decoded d = decode(e, a.workers);
  std::vector<std::int64_t> threads, names;
  std::uint64_t pieces = 0;
  for (const auto& line : a.timeline)
    for (const segment& s : line) {
      ++pieces;
      if (s.what != state::busy) continue;
      threads.push_back(s.thread);
      names.push_back(s.name == nothing ? -1 : static_cast<std::int64_t>(s.name));
    }
  EXPECT_EQ(d.pieces, pieces);
  EXPECT_EQ(d.threads, threads);
  EXPECT_EQ(d.names, names);
  EXPECT_EQ(d.mixtures, 0u);
}

TEST(Encode, LessDetailKeepsTheSums) {
  const auto& a = simulated().a;
  for (const std::size_t most : {100'000u, 20'000u, 2'000u}) {
    const encoded_timeline e = encode_timeline(a.timeline, most, 0, a.end);
    EXPECT_LE(e.bytes.size(), most);
    EXPECT_GT(e.threshold_ns, 0u);
    const decoded d = decode(e, a.workers);
    EXPECT_EQ(d.pieces, e.pieces);
    EXPECT_GT(d.mixtures, 0u);
    for (std::uint32_t w = 0; w < a.workers; ++w) EXPECT_EQ(d.ns[w], a.totals[w].ns);
  }
}

TEST(Encode, PartOfTheRun) {
  const auto& a = simulated().a;
  const decoded d = decode(encode_timeline(a.timeline, 10'000'000, a.end / 4, a.end / 2), a.workers);
  for (const auto& ns : d.ns) {
    std::uint64_t sum = 0;
    for (const std::uint64_t n : ns) sum += n;
    EXPECT_EQ(sum, a.end / 2 - a.end / 4);
  }
}

TEST(Encode, StepsInBinsKeepTheMean) {
  steps s;
  for (std::uint64_t t = 0; t < 100'000; t += 10) s.add(t, t % 20 == 0 ? 3 : -3);
  const encoded_series exact = encode_steps(s, 1'000'000, 100'000);
  EXPECT_EQ(exact.bin_ns, 0u);
  const encoded_series e = encode_steps(s, 100, 100'000);
  reader in{e.bytes};
  const std::uint64_t n = in.number();
  EXPECT_LE(n, 100u);
  double mean = 0;
  for (std::uint64_t i = 0; i < n; ++i) {
    in.number();
    mean += static_cast<double>(in.number()) / 256 / static_cast<double>(n);
    EXPECT_EQ(in.number(), 3u);
  }
  EXPECT_NEAR(mean, 1.5, 0.05);
}

TEST(Encode, Base64) {
  EXPECT_EQ(base64(""), "");
  EXPECT_EQ(base64("f"), "Zg==");
  EXPECT_EQ(base64("fo"), "Zm8=");
  EXPECT_EQ(base64("foobar"), "Zm9vYmFy");
}

TEST(Page, CarriesEverything) {
  const std::string page = page_of(simulated());
  EXPECT_EQ(page.find("{{"), std::string::npos) << page.substr(page.find("{{"), 60);
  EXPECT_EQ(page.find("<link rel=\"stylesheet"), std::string::npos);
  EXPECT_EQ(page.find("src=\"http"), std::string::npos);
  EXPECT_EQ(page.find("@import"), std::string::npos);
  EXPECT_NE(page.find("default-src 'none'"), std::string::npos);
  EXPECT_NE(page.find("Licensed to the Apache Software Foundation"), std::string::npos);
}

TEST(Page, NamesCannotEndTheScript) {
  report_test::trace_builder t(1);
  t.info["program"] = "</script><script>alert(1)</script>";
  t.info["arguments"] = {"\xff\xfe not UTF-8"};
  t.start(0, 0, 1);
  t.end(0, 10, 1);
  t.info["arguments"] = {"<!--"};
  const std::string page = page_of(run_of(t));
  EXPECT_EQ(page.find("alert(1)</script>"), std::string::npos);
  EXPECT_EQ(page.find("<!--"), std::string::npos);
  EXPECT_NE(page.find("\\u003c/script>"), std::string::npos);
}

TEST(Page, ObeysItsSize) {
  const std::size_t small = page_of(simulated(), {.most_bytes = 2 << 20}).size();
  EXPECT_LT(small, 2u << 20);
}

TEST(Page, CountersOfGlobalMemory) {
  const std::string text =
      R"({"run": {"program": "p"}, "workers": [{"life_ns": 1000, "global_fetches": 4, "far_puts": 2, )"
      R"("global_fetched_bytes": 65536}]})";
  const recording r = parse(std::as_bytes(std::span(text)), "s.json");
  std::ostringstream out;
  write_page(out, r, nullptr, "s.json", {});
  const std::string page = out.str();
  EXPECT_NE(page.find("id=\"global-section\""), std::string::npos);
  for (const char* name :
       {"\"name\":\"global_fetches\"", "\"name\":\"global_fetched_bytes\"", "\"name\":\"far_puts\""})
    EXPECT_NE(page.find(name), std::string::npos) << name;
  EXPECT_EQ(page.find("\"name\":\"global_evictions\""), std::string::npos)
      << "what was 0 everywhere is left out";
}

TEST(Page, OfCountersOnly) {
  const std::string text =
      R"({"run": {"program": "p"}, "workers": [{"steals": 3, "life_ns": 1000, "new_one": 4}]})";
  const recording r = parse(std::as_bytes(std::span(text)), "s.json");
  std::ostringstream out;
  write_page(out, r, nullptr, "s.json", {});
  EXPECT_NE(out.str().find("\"new_one\""), std::string::npos);
  EXPECT_NE(out.str().find("\"kind\":\"counters\""), std::string::npos);
}

TEST(Page, EndsThatLieBehindTheRunAreItsEnd) {
  const std::string to_end = "\"to\":" + std::to_string(simulated().a.end);
  for (const double to : {1e11, std::numeric_limits<double>::infinity()})
    EXPECT_NE(page_of(simulated(), {.to_s = to}).find(to_end), std::string::npos) << to;
  const std::string page = page_of(simulated(), {.from_s = 1e11});
  EXPECT_NE(page.find("\"from\":" + std::to_string(simulated().a.end) + ",\"pieces\":"), std::string::npos);
}

}  // namespace
