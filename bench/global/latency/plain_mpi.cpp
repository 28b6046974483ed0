// What MPI alone gives for the transfers of global_latency: rank 0 sends and is answered by 8 bytes (put), or
// asks by 8 bytes and receives (get); rates with `latency::window` messages under way. Two ranks; no part of
// Godwit. Built once per MPI as global_latency_FAMILY; run by scripts/reproduce (G12).
//
//   global_latency_FAMILY [--times N (2000)] [--json FILE]
#include <mpi.h>

#include <array>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <vector>

#include "latency.hpp"

namespace {

using latency::content;
using latency::row;
using latency::window;
constexpr int tag = 1;

double seconds() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

double median(std::vector<double> v) {
  std::sort(v.begin(), v.end());
  return v[v.size() / 2];
}

void send(const void* data, std::uint64_t bytes, int to) {
  MPI_Send(data, static_cast<int>(bytes), MPI_BYTE, to, tag, MPI_COMM_WORLD);
}
void receive(void* data, std::uint64_t bytes, int from) {
  MPI_Recv(data, static_cast<int>(bytes), MPI_BYTE, from, tag, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
}

struct buffers {
  std::vector<std::uint64_t> here = std::vector<std::uint64_t>(latency::most_bytes / 8), back = here;
};

void one_at_a_time(int rank, buffers& b, int times, row& r) {
  const std::size_t n = r.bytes / 8;
  std::uint64_t word = 0;
  std::vector<double> put, get;
  for (int t = -1; t < times; ++t) {  // the first one warms up
    if (rank == 0) {
      for (std::size_t i = 0; i < n; ++i) b.here[i] = content(i, r.bytes + static_cast<std::uint64_t>(t));
      double start = seconds();
      send(b.here.data(), r.bytes, 1);
      receive(&word, 8, 1);
      if (t >= 0) put.push_back((seconds() - start) * 1e6);
      start = seconds();
      send(&word, 8, 1);
      receive(b.back.data(), r.bytes, 1);
      if (t >= 0) get.push_back((seconds() - start) * 1e6);
      if (std::memcmp(b.here.data(), b.back.data(), r.bytes) != 0) {
        std::fprintf(stderr, "global_latency: %llu bytes came back wrong\n",
                     static_cast<unsigned long long>(r.bytes));
        MPI_Abort(MPI_COMM_WORLD, 1);
      }
    } else {
      receive(b.here.data(), r.bytes, 0);
      send(&word, 8, 0);
      receive(&word, 8, 0);
      send(b.here.data(), r.bytes, 0);
    }
  }
  if (rank == 0) {
    r.put_us = median(put), r.get_us = median(get);
    r.put_rate = 1e6 / r.put_us, r.get_rate = 1e6 / r.get_us;
  }
}

/// @p n messages from @p from, then 8 bytes back; gives the seconds of it at the rank that began.
void stream(int rank, int from, buffers& b, std::uint64_t bytes) {
  std::array<MPI_Request, window> all;
  std::uint64_t word = 0;
  const std::size_t n = bytes / 8;
  for (std::size_t k = 0; k < window; ++k) {
    if (rank == from)
      MPI_Isend(b.here.data() + k * n, static_cast<int>(bytes), MPI_BYTE, 1 - rank, tag, MPI_COMM_WORLD,
                &all[k]);
    else
      MPI_Irecv(b.back.data() + k * n, static_cast<int>(bytes), MPI_BYTE, 1 - rank, tag, MPI_COMM_WORLD,
                &all[k]);
  }
  MPI_Waitall(window, all.data(), MPI_STATUSES_IGNORE);
  rank == from ? receive(&word, 8, 1 - rank) : send(&word, 8, 1 - rank);
}

void several(int rank, buffers& b, int times, row& r) {
  std::vector<double> put, get;
  std::uint64_t word = 0;
  for (int t = -1; t < times; ++t) {
    double start = seconds();
    stream(rank, 0, b, r.bytes);
    if (t >= 0) put.push_back(window / (seconds() - start));
    start = seconds();
    rank == 0 ? send(&word, 8, 1) : receive(&word, 8, 0);  // asks
    stream(rank, 1, b, r.bytes);
    if (t >= 0) get.push_back(window / (seconds() - start));
  }
  r.put_rate = median(put), r.get_rate = median(get);
}

bool write(const std::string& path, const std::vector<row>& rows) {
  std::FILE* const f = std::fopen(path.c_str(), "w");
  if (f == nullptr) return false;
  std::fprintf(f, R"({"correct": true, "measurements": [{"title": "Small transfers", "rows": [)");
  for (std::size_t i = 0; i < rows.size(); ++i)
    std::fprintf(f, R"(%s{"bytes": %llu, "put_us": %g, "get_us": %g, "put_rate": %g, "get_rate": %g})",
                 i == 0 ? "" : ", ", static_cast<unsigned long long>(rows[i].bytes), rows[i].put_us,
                 rows[i].get_us, rows[i].put_rate, rows[i].get_rate);
  std::fprintf(f, "]}]}\n");
  return std::fclose(f) == 0;
}

}  // namespace

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  int rank = 0, size = 0, times = 2000;
  std::string json;
  bool good = argc % 2 == 1;
  for (int i = 1; i + 1 < argc; i += 2) {
    const std::string flag = argv[i];
    if (flag == "--times")
      times = std::atoi(argv[i + 1]);
    else if (flag == "--json")
      json = argv[i + 1];
    else
      good = false;
  }
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  if (!good || size != 2 || times < 1) {
    if (rank == 0) std::fprintf(stderr, "global_latency: wants 2 ranks, [--times N] [--json FILE]\n");
    MPI_Abort(MPI_COMM_WORLD, 2);
  }
  buffers b;
  std::vector<row> rows;
  if (rank == 0)
    std::printf("%10s %12s %12s %14s %14s\n", "bytes", "put us", "get us", "puts a second", "gets");
  for (std::uint64_t bytes = latency::least_bytes; bytes <= latency::most_bytes; bytes *= 2) {
    row r{bytes, 0, 0, 0, 0};
    const int n = latency::times_of(bytes, times);
    one_at_a_time(rank, b, n, r);
    if (bytes <= latency::asynchronous_bytes) several(rank, b, std::max(1, n / window), r);
    rows.push_back(r);
    if (rank == 0)
      std::printf("%10llu %12.3f %12.3f %14.0f %14.0f\n", static_cast<unsigned long long>(bytes), r.put_us,
                  r.get_us, r.put_rate, r.get_rate);
  }
  if (rank == 0 && !json.empty() && !write(json, rows)) {
    std::fprintf(stderr, "global_latency: cannot write %s\n", json.c_str());
    MPI_Abort(MPI_COMM_WORLD, 1);
  }
  MPI_Finalize();
  return 0;
}
