// What MPI alone gives for the transfers of global_bandwidth: rank 0 sends and is answered by 8 bytes (put),
// or asks by 8 bytes and receives (get). Two ranks; no part of Godwit. Built once per MPI as
// global_bandwidth_FAMILY, run by bench/global_hosts.py.
//
//   global_bandwidth_FAMILY [MOST_MIB (64) [TIMES (5)]]
//                                      prints lines: bytes, MB/s of put, MB/s of get; medians

#include <mpi.h>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <vector>

namespace {

constexpr int tag = 1;

double seconds() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

double median(std::vector<double> v) {
  std::sort(v.begin(), v.end());
  return v[v.size() / 2];
}

void send(void* data, int bytes, int to) { MPI_Send(data, bytes, MPI_BYTE, to, tag, MPI_COMM_WORLD); }
void receive(void* data, int bytes, int from) {
  MPI_Recv(data, bytes, MPI_BYTE, from, tag, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
}

std::uint64_t content(std::uint64_t i, std::uint64_t round) { return i * 0x9e3779b97f4a7c15u + round; }

}  // namespace

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  int rank = 0, size = 0;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  const long most_mib = argc > 1 ? std::atol(argv[1]) : 64, times = argc > 2 ? std::atol(argv[2]) : 5;
  if (size != 2 || most_mib < 1 || most_mib > 1024 || times < 1) {
    if (rank == 0)
      std::fprintf(stderr, "global_bandwidth: wants 2 ranks, at most 1024 MiB, at least one transfer\n");
    MPI_Abort(MPI_COMM_WORLD, 2);
  }
  std::vector<std::uint64_t> data(static_cast<std::size_t>(most_mib) << 17), back(data.size());
  std::uint64_t word = 0, round = 0;
  for (long bytes = 1 << 20; bytes <= most_mib << 20; bytes *= 2) {
    const std::size_t n = static_cast<std::size_t>(bytes) / sizeof word;
    std::vector<double> put, get;
    for (long t = -1; t < times; ++t) {  // the first one warms up
      ++round;
      if (rank == 0) {
        for (std::size_t i = 0; i < n; ++i) data[i] = content(i, round);
        double start = seconds();
        send(data.data(), static_cast<int>(bytes), 1);
        receive(&word, 8, 1);
        if (t >= 0) put.push_back(seconds() - start);
        start = seconds();
        send(&word, 8, 1);
        receive(back.data(), static_cast<int>(bytes), 1);
        if (t >= 0) get.push_back(seconds() - start);
        if (!std::equal(back.begin(), back.begin() + static_cast<std::ptrdiff_t>(n), data.begin())) {
          std::fprintf(stderr, "global_bandwidth: %ld bytes came back wrong\n", bytes);
          MPI_Abort(MPI_COMM_WORLD, 1);
        }
      } else {
        receive(data.data(), static_cast<int>(bytes), 0);
        send(&word, 8, 0);
        receive(&word, 8, 0);
        send(data.data(), static_cast<int>(bytes), 0);
      }
    }
    if (rank == 0)
      std::printf("%ld %.1f %.1f\n", bytes, static_cast<double>(bytes) * 1e-6 / median(put),
                  static_cast<double>(bytes) * 1e-6 / median(get));
  }
  MPI_Finalize();
  return 0;
}
