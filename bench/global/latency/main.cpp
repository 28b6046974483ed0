// global_latency: put and get of 8 bytes to 1 MiB of another host's memory: how long one takes, and how many
// a second there are with several under way (G12). On one host that is copying; between hosts plain_mpi.cpp
// does the same by MPI alone (scripts/reproduce --only G12).
//
// Document: docs/reproduce.md. Test: bench/CMakeLists.txt (bench.global_latency).

#include <array>
#include <cstdio>
#include <cstring>
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

/// The operations' other side in each worker's own memory: what it puts, and where it gets to.
std::uint64_t here[latency::most_bytes / sizeof(std::uint64_t)],
    back[latency::most_bytes / sizeof(std::uint64_t)];

/// Where the measuring thread is may change whenever it waits: an idle host takes it. So it keeps nothing on
/// the heap, always goes to the memory that is another host's where it is, and a time in which it moved does
/// not count.
struct place {
  gw::global_ptr<std::uint64_t> first, last;  ///< most_bytes at the first and at the last worker
  gw::global_ptr<double> times;               ///< of one kind of operation, until their median is taken
  int most_times;

  static bool is_far(gw::global_ptr<std::uint64_t> p) { return gw::try_local(p) == nullptr; }
  gw::global_ptr<std::uint64_t> target() const { return is_far(first) ? first : last; }
};

/// Medians of a few kinds of operations, of those times that count.
template <std::size_t Kinds>
struct medians {
  const place& in;
  int wanted, taken = -1, left_out = 0;  // the first one warms up

  /// Whether another round is wanted.
  bool more() const {
    if (left_out > 100 * wanted) throw std::runtime_error("the measuring thread moves all the time");
    return taken < wanted;
  }
  /// One round's values, which began on @p target's other side.
  void take(gw::global_ptr<std::uint64_t> target, bool was_far, const std::array<double, Kinds>& values) {
    if (was_far != place::is_far(target)) {
      ++left_out;
      return;
    }
    if (taken >= 0)
      for (std::size_t k = 0; k < Kinds; ++k)
        gw::put(in.times + static_cast<std::ptrdiff_t>(k) * in.most_times + taken, values[k]);
    ++taken;
  }
  double operator[](std::size_t kind) const {
    static double all[1'000'000];  // the workers' own, and nothing here is waited for in between
    const auto n = static_cast<std::size_t>(wanted);
    gw::get(in.times + static_cast<std::ptrdiff_t>(kind) * in.most_times, all, n);
    return bench::median({all, all + n});
  }
};

void check(const std::uint64_t* words, std::uint64_t bytes, std::uint64_t round) {
  for (std::uint64_t i = 0; i < bytes / sizeof(std::uint64_t); ++i)
    if (words[i] != content(i, round))
      throw std::runtime_error("a transfer of " + std::to_string(bytes) + " bytes came back wrong");
}

/// One at a time.
int one_at_a_time(const place& in, int times, row& r) {
  const std::uint64_t n = r.bytes / sizeof(std::uint64_t);
  medians<2> m{in, times};
  for (std::uint64_t round = r.bytes; m.more(); ++round) {
    const auto p = in.target();
    const bool far = place::is_far(p);
    for (std::uint64_t i = 0; i < n; ++i) here[i] = content(i, round);
    const std::uint64_t start = bench::now_ns();
    gw::put(p, here, n);
    const std::uint64_t middle = bench::now_ns();
    gw::get(p, back, n);
    const std::uint64_t end = bench::now_ns();
    check(back, r.bytes, round);
    m.take(p, far, {static_cast<double>(middle - start) * 1e-3, static_cast<double>(end - middle) * 1e-3});
  }
  r.put_us = m[0], r.get_us = m[1];
  r.put_rate = 1e6 / r.put_us, r.get_rate = 1e6 / r.get_us;
  return m.left_out;
}

/// `latency::window` under way at a time, each of its own block.
template <std::size_t Bytes>
int several(const place& in, int times, row& r) {
  block<Bytes> b;
  medians<2> m{in, times};
  const auto rate = [](std::uint64_t ns) { return latency::window * 1e9 / static_cast<double>(ns); };
  for (std::uint64_t round = Bytes; m.more(); ++round) {
    const auto p = in.target();
    const bool far = place::is_far(p);
    const auto blocks = gw::reinterpret_global_cast<block<Bytes>>(p);
    const std::uint64_t start = bench::now_ns();
    {
      std::array<gw::future<void>, latency::window> sent;
      for (std::uint64_t k = 0; k < latency::window; ++k) {
        for (std::size_t i = 0; i < std::size(b.words); ++i) b.words[i] = content(i, round + k);
        sent[k] = gw::put_async(blocks + static_cast<std::ptrdiff_t>(k), b);
      }
      for (auto& f : sent) f.join();
    }
    const std::uint64_t middle = bench::now_ns();
    {
      std::array<gw::future<block<Bytes>>, latency::window> asked;
      for (std::uint64_t k = 0; k < latency::window; ++k)
        asked[k] = gw::get_async(blocks + static_cast<std::ptrdiff_t>(k));
      for (std::uint64_t k = 0; k < latency::window; ++k) {
        b = asked[k].join();
        check(b.words, Bytes, round + k);
      }
    }
    const std::uint64_t end = bench::now_ns();
    m.take(p, far, {rate(middle - start), rate(end - middle)});
  }
  r.put_rate = m[0], r.get_rate = m[1];
  return m.left_out;
}

/// `several` of r.bytes; larger blocks go one at a time: put and get send them in pieces.
template <std::size_t Bytes = latency::least_bytes>
int several_of(const place& in, int times, row& r) {
  if (r.bytes == Bytes) return several<Bytes>(in, times, r);
  if constexpr (2 * Bytes <= latency::asynchronous_bytes) return several_of<2 * Bytes>(in, times, r);
  return 0;
}

/// What one run gives: plain values, as it comes from whatever host the thread ended on.
struct outcome {
  std::array<row, latency::sizes> rows;
  bool far = false;  ///< the memory was another host's
  int left_out = 0;  ///< times in which the thread moved
};

outcome measure(int times) {
  constexpr std::uint64_t words = latency::most_bytes / sizeof(std::uint64_t);
  const auto at = [](std::uint32_t worker) {
    return gw::allocate<std::uint64_t>(words, gw::distribution::at(worker), 4096);
  };
  const place in{at(0), at(gw::worker_count() - 1),
                 gw::allocate<double>(static_cast<std::size_t>(2 * times), gw::distribution::at(0)), times};
  outcome out;
  out.far = place::is_far(in.target());
  for (const auto p : {in.first, in.last}) gw::put(p, here, words);  // page faults of all sides, before
  for (std::size_t k = 0; k < latency::sizes; ++k) {
    row& r = out.rows[k];
    r.bytes = latency::least_bytes << k;
    const int n = latency::times_of(r.bytes, times);
    out.left_out += one_at_a_time(in, n, r);
    out.left_out += several_of(in, std::max(1, n / latency::window), r);
  }
  gw::deallocate(in.times, static_cast<std::size_t>(2 * times));
  for (const auto p : {in.first, in.last}) gw::deallocate(p, words);
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
    std::vector<outcome> rounds;
    for (int rep = 0; rep < program.options().reps; ++rep) {
      gw::options o;
      o.workers = w;
      rounds.push_back(gw::run<outcome>([times] { return measure(times); }, o));
    }
    if (!godwit::is_first_process()) return program.finish();
    const auto middle = [&](std::size_t k, double row::*value) {
      std::vector<double> all;
      for (const auto& r : rounds) all.push_back(r.rows[k].*value);
      return bench::median(all);
    };
    const bool far = rounds[0].far;
    int left_out = 0;
    for (const auto& r : rounds) left_out += r.left_out;
    std::fprintf(program.out(), "Transfers to and from %s, medians\n  %10s %12s %12s %14s %14s\n",
                 far ? "another host" : "the same host", "bytes", "put us", "get us", "puts a second",
                 "gets a second");
    bench::ordered_json rows = bench::ordered_json::array();
    for (std::size_t k = 0; k < latency::sizes; ++k) {
      const std::uint64_t bytes = latency::least_bytes << k;
      const double put_us = middle(k, &row::put_us), get_us = middle(k, &row::get_us);
      const double put_rate = middle(k, &row::put_rate), get_rate = middle(k, &row::get_rate);
      std::fprintf(program.out(), "  %10llu %12.3f %12.3f %14.0f %14.0f\n",
                   static_cast<unsigned long long>(bytes), put_us, get_us, put_rate, get_rate);
      rows.push_back({{"bytes", bytes},
                      {"put_us", put_us},
                      {"get_us", get_us},
                      {"put_rate", put_rate},
                      {"get_rate", get_rate}});
    }
    if (left_out != 0)
      std::fprintf(program.out(), "  left out, as the thread moved meanwhile: %d times\n", left_out);
    program.json()["far"] = far;
    program.json()["left_out"] = left_out;
    program.json()["measurements"].push_back({{"title", "Small transfers"}, {"rows", rows}});
    program.json()["definitions"]["rate"] =
        "up to 2,048 bytes with 16 asynchronous operations under way, above one at a time";
  } catch (const std::exception& e) {
    std::fprintf(stderr, "global_latency: %s\n", e.what());
    return 1;
  }
  return program.finish();
}
