// global_latency: put and get of 8 bytes to 1 MiB of the last worker's memory: how long one takes, and how
// many a second there are with several under way (G12). On one host that is copying; between hosts
// plain_mpi.cpp does the same by MPI alone (scripts/reproduce --only G12).
//
// Document: docs/reproduce.md. Test: bench/CMakeLists.txt (bench.global_latency).

#include <array>
#include <cstdio>
#include <cstring>
#include <memory>
#include <stdexcept>
#include <vector>

#include "../../common/godwit_run.hpp"
#include "../parts.hpp"
#include "latency.hpp"

namespace {

namespace gw = godwit;
using latency::content;
using latency::row;

/// What one asynchronous operation carries.
template <std::size_t Bytes>
struct block {
  std::uint64_t words[Bytes / sizeof(std::uint64_t)];
};

[[noreturn]] void came_back_wrong(std::uint64_t bytes) {
  throw std::runtime_error("a transfer of " + std::to_string(bytes) + " bytes came back wrong");
}

/// One at a time: medians of put and get.
void one_at_a_time(gw::global_ptr<std::uint64_t> p, std::uint64_t* here, std::uint64_t* back, int times,
                   row& r) {
  const std::uint64_t n = r.bytes / sizeof(std::uint64_t);
  std::vector<double> put, get;
  for (int t = -1; t < times; ++t) {  // the first one warms up
    for (std::uint64_t i = 0; i < n; ++i) here[i] = content(i, r.bytes + static_cast<std::uint64_t>(t));
    std::uint64_t start = bench::now_ns();
    gw::put(p, here, n);
    if (t >= 0) put.push_back(static_cast<double>(bench::now_ns() - start) * 1e-3);
    start = bench::now_ns();
    gw::get(p, back, n);
    if (t >= 0) get.push_back(static_cast<double>(bench::now_ns() - start) * 1e-3);
    if (std::memcmp(here, back, r.bytes) != 0) came_back_wrong(r.bytes);
  }
  r.put_us = bench::median(put), r.get_us = bench::median(get);
  r.put_rate = 1e6 / r.put_us, r.get_rate = 1e6 / r.get_us;
}

/// `latency::window` under way at a time, each of its own block.
template <std::size_t Bytes>
void several(gw::global_ptr<std::uint64_t> p, int times, row& r) {
  const auto blocks = gw::reinterpret_global_cast<block<Bytes>>(p);
  block<Bytes> b;
  std::vector<double> put, get;
  for (int t = -1; t < times; ++t) {
    std::uint64_t start = bench::now_ns();
    {
      std::array<gw::future<void>, latency::window> sent;
      for (int k = 0; k < latency::window; ++k) {
        for (std::size_t i = 0; i < std::size(b.words); ++i)
          b.words[i] = content(i, static_cast<std::uint64_t>(t + k));
        sent[static_cast<std::size_t>(k)] = gw::put_async(blocks + k, b);
      }
      for (auto& f : sent) f.join();
    }
    if (t >= 0) put.push_back(latency::window * 1e9 / static_cast<double>(bench::now_ns() - start));
    start = bench::now_ns();
    {
      std::array<gw::future<block<Bytes>>, latency::window> asked;
      for (int k = 0; k < latency::window; ++k)
        asked[static_cast<std::size_t>(k)] = gw::get_async(blocks + k);
      for (int k = 0; k < latency::window; ++k) {
        b = asked[static_cast<std::size_t>(k)].join();
        for (std::size_t i = 0; i < std::size(b.words); ++i)
          if (b.words[i] != content(i, static_cast<std::uint64_t>(t + k))) came_back_wrong(Bytes);
      }
    }
    if (t >= 0) get.push_back(latency::window * 1e9 / static_cast<double>(bench::now_ns() - start));
  }
  r.put_rate = bench::median(put), r.get_rate = bench::median(get);
}

/// In a run: all rows, each six numbers; last, whether the memory is another host's. To mend: its vectors
/// do not always stay where they are, as who waits for a put_async may be taken by an idle host. Then the run
/// ends with a message, or some figures are of memory that is near.
std::vector<double> measure(int times) {
  constexpr std::uint64_t words = latency::most_bytes / sizeof(std::uint64_t);
  const auto p = gw::allocate<std::uint64_t>(words, gw::distribution::at(gw::worker_count() - 1), 4096);
  std::vector<std::uint64_t> here(words), back(words);
  gw::put(p, here.data(), words);  // page faults of all sides, before
  std::vector<double> out;
  for (std::uint64_t bytes = latency::least_bytes; bytes <= latency::most_bytes; bytes *= 2) {
    row r{.bytes = bytes};
    const int n = latency::times_of(bytes, times);
    one_at_a_time(p, here.data(), back.data(), n, r);
    const int windows = std::max(1, n / latency::window);
    switch (bytes) {
      case 8:
        several<8>(p, windows, r);
        break;
      case 16:
        several<16>(p, windows, r);
        break;
      case 32:
        several<32>(p, windows, r);
        break;
      case 64:
        several<64>(p, windows, r);
        break;
      case 128:
        several<128>(p, windows, r);
        break;
      case 256:
        several<256>(p, windows, r);
        break;
      case 512:
        several<512>(p, windows, r);
        break;
      case 1024:
        several<1024>(p, windows, r);
        break;
      case 2048:
        several<2048>(p, windows, r);
        break;
      default:
        break;  // larger ones go one at a time: put and get in pieces
    }
    for (const double x : {r.put_us, r.get_us, r.put_rate, r.get_rate}) out.push_back(x);
  }
  out.push_back(gw::try_local(p, words) == nullptr);
  gw::deallocate(p, words);
  return out;
}

}  // namespace

int main(int argc, char** argv) {
  int times = 0;
  bench::program program("global_latency", "put and get of 8 bytes to 1 MiB: latency and messages a second.",
                         argc, argv);
  program.option("--times", times,
                 "Transfers of each size, fewer of the large ones (default 2000; with --quick 200)",
                 bench::between(1, 1'000'000));
  program.parse();
  if (times == 0) times = program.options().quick ? 200 : 2000;
  const unsigned w = program.most_workers();
  try {
    std::vector<std::vector<double>> rounds;
    for (int rep = 0; rep < program.options().reps; ++rep) {
      gw::options o;
      o.workers = w;
      rounds.push_back(gw::run<std::vector<double>>([times] { return measure(times); }, o));
    }
    if (!godwit::is_first_process()) return program.finish();
    const auto middle = [&](std::size_t at) {
      std::vector<double> all;
      for (const auto& r : rounds) all.push_back(r[at]);
      return bench::median(all);
    };
    const bool far = rounds[0].back() != 0;
    std::fprintf(program.out(), "Transfers to and from %s, medians\n  %10s %12s %12s %14s %14s\n",
                 far ? "another host" : "the same host", "bytes", "put us", "get us", "puts a second",
                 "gets a second");
    bench::ordered_json rows = bench::ordered_json::array();
    std::size_t at = 0;
    for (std::uint64_t bytes = latency::least_bytes; bytes <= latency::most_bytes; bytes *= 2, at += 4) {
      std::fprintf(program.out(), "  %10llu %12.3f %12.3f %14.0f %14.0f\n",
                   static_cast<unsigned long long>(bytes), middle(at), middle(at + 1), middle(at + 2),
                   middle(at + 3));
      rows.push_back({{"bytes", bytes},
                      {"put_us", middle(at)},
                      {"get_us", middle(at + 1)},
                      {"put_rate", middle(at + 2)},
                      {"get_rate", middle(at + 3)}});
    }
    program.json()["far"] = far;
    program.json()["measurements"].push_back({{"title", "Small transfers"}, {"rows", rows}});
    program.json()["definitions"]["rate"] =
        "up to 2,048 bytes with 16 asynchronous operations under way, above one at a time";
  } catch (const std::exception& e) {
    std::fprintf(stderr, "global_latency: %s\n", e.what());
    return 1;
  }
  return program.finish();
}
