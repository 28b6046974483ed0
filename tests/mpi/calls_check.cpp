// A program that calls MPI itself: in on_rank, where it may, and in a thread, where that ends the run. Built
// with each MPI. calls_check LEVEL WHAT: LEVEL multiple or funneled is what it asks MPI for; WHAT is sum,
// wrong (a call in a thread), throws, all_throw, refuses, together or plain. Prints one line in rank 0, which
// extras.cmake knows.
#define OMPI_SKIP_MPICXX 1  // not the bindings for C++, which need a library more
#define MPICH_SKIP_MPICXX 1
#include <mpi.h>

#include <godwit/godwit.hpp>

#include "base/clock.hpp"
#include "sched/worker.hpp"

#include <cstdio>
#include <cstdlib>
#include <stdexcept>
#include <string>

namespace {

namespace gw = godwit;

constexpr std::uint64_t n = 1 << 16;

[[gnu::noinline]] long fib(int k) {
  if (k < 2) return k;
  auto x = gw::spawn([k] { return fib(k - 1); });
  const long y = fib(k - 2);
  return x.join() + y;
}

/// Every rank exchanges with all others while threads compute and fetch between hosts.
long sum() {
  auto all = gw::allocate<double>(n, gw::distribution::blocked());
  auto busy = gw::spawn([] { return fib(22); });
  gw::for_each(gw::global_span<double>(all, n), [](double& v) { v = 1; });
  long right = 0;
  for (int round = 1; round <= 3; ++round) {
    gw::on_rank(
        [round](gw::rank r, std::span<double> mine) {
          double own = 0, total = 0;
          for (const double v : mine) own += v;
          MPI_Allreduce(&own, &total, 1, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
          int ranks = 0, number = -1;
          MPI_Comm_size(MPI_COMM_WORLD, &ranks);
          MPI_Comm_rank(MPI_COMM_WORLD, &number);
          if (unsigned(ranks) != r.count || unsigned(number) != r.number)
            throw std::logic_error("another rank");
          if (total != double(n) * round) throw std::logic_error("the sum is " + std::to_string(total));
          for (double& v : mine) v += 1;
        },
        gw::global_span<double>(all, n));
    ++right;
  }
  long wrong = 0;
  for (std::uint64_t i = 0; i < n; i += 97) wrong += gw::get(all + i) != 4;
  gw::deallocate(all, n);
  return wrong == 0 && busy.join() == 17711 ? right : -1;
}

/// All ranks are asked before the first one has answered: on_rank is called at worker 1, and worker 0, which
/// takes no letters meanwhile, waits until worker 1 is prepared. 1: it was.
long together() {
  auto asks = gw::spawn_at(gw::worker(1), [] { gw::on_rank([](gw::rank) {}); });
  const auto& here = gw::sched::this_worker().here();
  gw::rank prepared{0, 0};
  for (const auto begin = gw::base::now_ns();
       prepared.count == 0 && gw::base::now_ns() - begin < 60'000'000'000;)
    here.net.remote_get(gw::transport::worker_no{1}, &prepared, &here.words->rank_call.here, sizeof prepared);
  asks.join();
  return prepared.number == 1 && prepared.count == 2 ? 1 : 0;
}

}  // namespace

int main(int argc, char** argv) {
  const std::string level = argc > 1 ? argv[1] : "", what = argc > 2 ? argv[2] : "";
  int provided = 0;
  MPI_Init_thread(&argc, &argv, level == "multiple" ? MPI_THREAD_MULTIPLE : MPI_THREAD_FUNNELED, &provided);
  int number = 0;
  MPI_Comm_rank(MPI_COMM_WORLD, &number);
  std::string said;
  try {
    const long got = gw::run<long>(argc, argv, [&what]() -> long {
      if (what == "sum") return sum();
      if (what == "plain") return fib(15);
      if (what == "together") return together();
      if (what == "wrong") {
        int r = 0;
        MPI_Comm_rank(MPI_COMM_WORLD, &r);
        return r;
      }
      if (what == "refuses") {  // by the second rank only: the first one would wait for it in MPI
        constexpr std::uint64_t block = 4096;
        const auto all = gw::allocate<double>(
            3 * block, gw::distribution::user(block * 8, [](std::uint64_t i, std::uint64_t, std::uint32_t) {
              return i == 1 ? 0u : 1u;
            }));
        gw::on_rank([](gw::rank, std::span<double>) { MPI_Barrier(MPI_COMM_WORLD); },
                    gw::global_span<double>(all, 3 * block));
        return 0;
      }
      const bool all = what == "all_throw";
      gw::on_rank([all](gw::rank r) {
        if (all || r.number + 1 == r.count)
          throw std::runtime_error("too cold in " + std::to_string(r.number));
      });
      return 0;
    });
    said = "value " + std::to_string(got);
  } catch (const std::exception& e) {
    said = e.what();
  }
  if (number == 0) std::printf("%s\n", said.c_str());
  MPI_Finalize();
}
