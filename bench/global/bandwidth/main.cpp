// global_bandwidth: get and put of large ranges of the last worker's memory. On one host that is copying;
// between hosts it is what the network gives, to be compared with plain_mpi.cpp, which moves the same sizes
// by MPI alone (bench/global_hosts.py).
//
// Document: docs/results/README.md. Test: bench/CMakeLists.txt (bench.global_bandwidth).

#include <cstdio>
#include <memory>
#include <stdexcept>
#include <vector>

#include "../../common/godwit_run.hpp"
#include "../parts.hpp"

namespace {

namespace gw = godwit;
constexpr std::uint64_t mib = 1 << 20;

struct settings {
  std::uint64_t most = 0;  ///< bytes of the largest transfer
  int times = 0;
};

/// 1 MiB, 2 MiB ... in bytes.
std::vector<std::uint64_t> sizes(const settings& s) {
  std::vector<std::uint64_t> all;
  for (std::uint64_t bytes = std::min(mib, s.most); bytes <= s.most; bytes *= 2) all.push_back(bytes);
  return all;
}

std::uint64_t content(std::uint64_t i, std::uint64_t round) { return i * 0x9e3779b97f4a7c15u + round; }

/// In a run: seconds of put and get, size by size, transfer by transfer; last, whether the memory is another
/// host's. Spawns nothing, so the vectors stay where they are.
std::vector<double> measure(const settings& s) {
  const std::uint64_t n = s.most / sizeof(std::uint64_t);
  const auto p = gw::allocate<std::uint64_t>(n, gw::distribution::at(gw::worker_count() - 1), 4096);
  std::vector<std::uint64_t> here(n), back(n);
  gw::put(p, here.data(), n);  // page faults of all sides, before
  gw::get(p, back.data(), n);
  std::vector<double> out;
  std::uint64_t round = 0;
  for (const std::uint64_t bytes : sizes(s))
    for (int t = 0; t < s.times; ++t) {
      const std::uint64_t m = bytes / sizeof(std::uint64_t);
      ++round;
      for (std::uint64_t i = 0; i < m; ++i) here[i] = content(i, round);
      out.push_back(parts::measured_plain([&] { gw::put(p, here.data(), m); }).seconds);
      out.push_back(parts::measured_plain([&] { gw::get(p, back.data(), m); }).seconds);
      for (std::uint64_t i = 0; i < m; ++i)
        if (back[i] != content(i, round))
          throw std::runtime_error("word " + std::to_string(i) + " of " + std::to_string(m) +
                                   " came back wrong");
    }
  out.push_back(gw::try_local(p, n) == nullptr);
  gw::deallocate(p, n);
  return out;
}

}  // namespace

int main(int argc, char** argv) {
  settings s;
  bench::program program("global_bandwidth", "get and put of large ranges of global memory.", argc, argv);
  std::uint64_t most_mib = 64;
  program.option("--size", most_mib, "MiB of the largest transfer", bench::between(1, 1 << 20));
  program.option("--times", s.times, "Transfers of each size in a repetition (default 5; with --quick 2)",
                 bench::between(1, 10000));
  program.parse();
  if (s.times == 0) s.times = program.options().quick ? 2 : 5;
  s.most = most_mib * mib;
  const unsigned w = program.most_workers();
  try {
    const std::vector<std::uint64_t> all = sizes(s);
    std::vector<std::vector<double>> put(all.size()), get(all.size());
    bool far = false;
    for (int rep = 0; rep < program.options().reps; ++rep) {
      gw::options o;
      o.workers = w;
      const std::vector<double> t = gw::run<std::vector<double>>([s] { return measure(s); }, o);
      std::size_t at = 0;
      for (std::size_t k = 0; k < all.size(); ++k)
        for (int i = 0; i < s.times; ++i, at += 2) {
          put[k].push_back(t[at]);
          get[k].push_back(t[at + 1]);
        }
      far = t[at] != 0;
    }
    if (godwit::is_first_process()) {
      const std::string title =
          std::string("Transfers to and from ") + (far ? "another host" : "the same host");
      std::fprintf(program.out(), "%s, medians\n  %10s %12s %12s\n", title.c_str(), "MiB", "put MB/s",
                   "get MB/s");
      bench::ordered_json rows = bench::ordered_json::array();
      for (std::size_t k = 0; k < all.size(); ++k) {
        const auto rate = [&](const std::vector<double>& t) {
          return static_cast<double>(all[k]) * 1e-6 / bench::median(t);
        };
        std::fprintf(program.out(), "  %10.1f %12.0f %12.0f\n", static_cast<double>(all[k]) / mib,
                     rate(put[k]), rate(get[k]));
        rows.push_back({{"bytes", all[k]}, {"put_mb_s", rate(put[k])}, {"get_mb_s", rate(get[k])}});
      }
      program.json()["far"] = far;
      program.json()["measurements"].push_back({{"title", title}, {"rows", rows}});
    }
  } catch (const std::exception& e) {
    std::fprintf(stderr, "global_bandwidth: %s\n", e.what());
    return 1;
  }
  return program.finish();
}
