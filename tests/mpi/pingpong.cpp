// Round trips of plain MPI, for the table beside Godwit's own figures in docs/results. No part of the library
// and none of its tests: compile with mpicxx (-std=c++20 -O2) and run with two ranks, on one node or under
// scripts/hosts.
//
//   pingpong [--thread=single|funneled|serialized|multiple] [--no-rma] [--set=NAME=VALUE]...
//
// One line each, medians: an 8-byte ping-pong; an idle MPI_Iprobe; MPI_Fetch_and_op, MPI_Get and MPI_Put,
// each with its flush, while the target waits inside MPI, and while it computes for 2 ms at a time and looks
// into MPI in between (which shows whether one-sided operations make progress without the target:
// microseconds if so, milliseconds if not). --set sets an environment variable before MPI_Init, as the MPI
// plugin can.
#include <mpi.h>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <vector>

namespace {

using clock_type = std::chrono::steady_clock;

int rank = 0;

double now_us() {
  return std::chrono::duration<double, std::micro>(clock_type::now().time_since_epoch()).count();
}

double median(std::vector<double> times) {
  const auto middle = times.begin() + static_cast<std::ptrdiff_t>(times.size() / 2);
  std::nth_element(times.begin(), middle, times.end());
  return *middle;
}

template <class Operation>
double median_us(int warm_up, int times, Operation operation) {
  std::vector<double> taken;
  for (int i = -warm_up; i < times; ++i) {
    const double start = now_us();
    operation();
    if (i >= 0) taken.push_back(now_us() - start);
  }
  return median(taken);
}

void ping_pong() {
  constexpr int warm_up = 500, times = 5000;
  std::int64_t word = 0;
  const int other = 1 - rank;
  const double us = median_us(warm_up, times, [&] {
    if (rank == 0) MPI_Send(&word, 1, MPI_INT64_T, other, 1, MPI_COMM_WORLD);
    MPI_Recv(&word, 1, MPI_INT64_T, other, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    if (rank == 1) MPI_Send(&word, 1, MPI_INT64_T, other, 1, MPI_COMM_WORLD);
  });
  if (rank == 0) std::printf("ping-pong 8 B round trip           %9.2f us\n", us);
}

void idle_probe() {
  MPI_Barrier(MPI_COMM_WORLD);
  if (rank == 0) {
    constexpr int times = 200000;
    int flag = 0;
    std::vector<double> batches;
    for (int batch = 0; batch < 20; ++batch) {
      const double start = now_us();
      for (int i = 0; i < times / 20; ++i)
        MPI_Iprobe(MPI_ANY_SOURCE, 2, MPI_COMM_WORLD, &flag, MPI_STATUS_IGNORE);
      batches.push_back((now_us() - start) * 1e3 / (times / 20));
    }
    std::printf("MPI_Iprobe, nothing there          %9.0f ns\n", median(batches));
    std::fflush(stdout);
    MPI_Send(nullptr, 0, MPI_BYTE, 1, 3, MPI_COMM_WORLD);
  } else {  // quiet: neither probing nor in a system call that the other one would notice
    MPI_Recv(nullptr, 0, MPI_BYTE, 0, 3, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
  }
}

// Rank 1 until rank 0 says that it is done.
void be_target(bool compute) {
  int done = 0;
  MPI_Request request;
  MPI_Irecv(nullptr, 0, MPI_BYTE, 0, 4, MPI_COMM_WORLD, &request);
  if (!compute) MPI_Wait(&request, MPI_STATUS_IGNORE);
  while (compute && !done) {
    const double start = now_us();
    while (now_us() - start < 2000) {
    }
    MPI_Test(&request, &done, MPI_STATUS_IGNORE);
  }
}

void measure_rma(MPI_Win window, bool compute) {
  const int warm_up = compute ? 3 : 300, times = compute ? 101 : 3000;
  MPI_Barrier(MPI_COMM_WORLD);
  if (rank == 1) {
    be_target(compute);
  } else {
    std::int64_t one = 1, result = 0;
    const double add = median_us(warm_up, times, [&] {
      MPI_Fetch_and_op(&one, &result, MPI_INT64_T, 1, 0, MPI_SUM, window);
      MPI_Win_flush(1, window);
    });
    static std::int64_t added = 0;
    added += warm_up + times;
    if (result != added - 1) {
      std::printf("fetch_and_op: %lld instead of %lld\n", static_cast<long long>(result),
                  static_cast<long long>(added - 1));
      MPI_Abort(MPI_COMM_WORLD, 1);
    }
    const double get = median_us(warm_up, times, [&] {
      MPI_Get(&result, 1, MPI_INT64_T, 1, 0, 1, MPI_INT64_T, window);
      MPI_Win_flush(1, window);
    });
    const double put = median_us(warm_up, times, [&] {
      MPI_Put(&one, 1, MPI_INT64_T, 1, 1, 1, MPI_INT64_T, window);
      MPI_Win_flush(1, window);
    });
    const char* const target = compute ? "computes" : "in MPI";
    std::printf("fetch_and_op + flush, target %-8s %7.2f us\n", target, add);
    std::printf("get + flush,          target %-8s %7.2f us\n", target, get);
    std::printf("put + flush,          target %-8s %7.2f us\n", target, put);
    std::fflush(stdout);
    MPI_Send(nullptr, 0, MPI_BYTE, 1, 4, MPI_COMM_WORLD);
  }
  MPI_Barrier(MPI_COMM_WORLD);
}

void rma() {
  MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
  alignas(64) static std::int64_t words[512] = {};
  MPI_Win window = MPI_WIN_NULL;
  const int error =
      MPI_Win_create(words, sizeof words, sizeof words[0], MPI_INFO_NULL, MPI_COMM_WORLD, &window);
  if (error != MPI_SUCCESS) {
    char text[MPI_MAX_ERROR_STRING];
    int length = 0;
    MPI_Error_string(error, text, &length);
    if (rank == 0) std::printf("MPI_Win_create: %s\n", text);
    return;
  }
  MPI_Win_lock_all(0, window);
  measure_rma(window, false);
  measure_rma(window, true);
  MPI_Win_unlock_all(window);
  MPI_Win_free(&window);
}

}  // namespace

int main(int argc, char** argv) {
  int wanted = MPI_THREAD_FUNNELED, provided = 0, size = 0;
  bool with_rma = true;
  for (int i = 1; i < argc; ++i) {
    const std::string argument = argv[i];
    if (argument == "--thread=single")
      wanted = MPI_THREAD_SINGLE;
    else if (argument == "--thread=funneled")
      wanted = MPI_THREAD_FUNNELED;
    else if (argument == "--thread=serialized")
      wanted = MPI_THREAD_SERIALIZED;
    else if (argument == "--thread=multiple")
      wanted = MPI_THREAD_MULTIPLE;
    else if (argument == "--no-rma")
      with_rma = false;
    else if (argument.starts_with("--set=") && argument.find('=', 6) != std::string::npos)
      setenv(argument.substr(6, argument.find('=', 6) - 6).c_str(),
             argument.substr(argument.find('=', 6) + 1).c_str(), 1);
    else {
      std::fprintf(stderr, "pingpong: unknown argument '%s', see the head of pingpong.cpp\n", argv[i]);
      return 2;
    }
  }
  MPI_Init_thread(&argc, &argv, wanted, &provided);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  if (size != 2) {
    if (rank == 0) std::fprintf(stderr, "pingpong: wants 2 ranks, has %d\n", size);
    MPI_Abort(MPI_COMM_WORLD, 2);
  }
  ping_pong();
  idle_probe();
  if (with_rma) rma();
  MPI_Finalize();
}
