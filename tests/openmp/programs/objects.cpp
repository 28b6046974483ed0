// C++: objects in clauses, exceptions that stay inside a construct, lambdas, thread_local.
#include <cstdio>
#include <cstdlib>
#include <numeric>
#include <omp.h>
#include <stdexcept>
#include <string>
#include <vector>

namespace {

int alive = 0;
struct counted {
  explicit counted(int v) : value(v) { change(1); }
  counted(const counted& c) : value(c.value) { change(1); }
  ~counted() { change(-1); }
  static void change(int n) {
#pragma omp atomic
    alive += n;
  }
  int value;
};

thread_local int calls = 0;

long search(int depth) {
  if (depth == 0) {
    ++calls;
    return 1;
  }
  std::vector<long> results(3);
  for (std::size_t i = 0; i < results.size(); ++i) {
#pragma omp task shared(results)
    results[i] = search(depth - 1);
  }
#pragma omp taskwait
  return std::accumulate(results.begin(), results.end(), 0L);
}

}  // namespace

int main() {
  int sum = 0, caught = 0;
  std::string all;
#pragma omp declare reduction(join : std::string : omp_out += omp_in)
#pragma omp parallel num_threads(3) reduction(join : all)
  {
#pragma omp for schedule(static)
    for (int i = 0; i < 30; ++i) all += "x";
  }
  {
    const counted c(7);
#pragma omp parallel num_threads(4) firstprivate(c) reduction(+ : sum)
    {
      sum += c.value;
#pragma omp for schedule(dynamic)
      for (int i = 0; i < 100; ++i) {
        try {
          if (i % 10 == 0) throw std::runtime_error("ten");
        } catch (const std::exception&) {
#pragma omp atomic
          ++caught;
        }
      }
#pragma omp single
      for (int i = 0; i < 50; ++i) {
        const counted own(i);
#pragma omp task firstprivate(own) shared(sum)
        try {
          if (own.value % 2 == 0) throw own.value;
        } catch (int v) {
#pragma omp critical
          caught += v;
        }
      }
    }
  }
  long leaves = 0;
  int counted_calls = 0;
#pragma omp parallel reduction(+ : counted_calls)
  {
    calls = 0;
#pragma omp barrier
#pragma omp single
    leaves = search(7);
    counted_calls += calls;
  }
  std::printf("%d %d %zu, alive %d, leaves %ld, calls %d\n", sum, caught, all.size(), alive, leaves,
              counted_calls);
  return 0;
}
