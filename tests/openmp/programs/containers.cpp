// What C++ programs reduce and hand to tasks: containers, classes with constructors, exceptions.
#include <algorithm>
#include <complex>
#include <cstdio>
#include <map>
#include <memory>
#include <numeric>
#include <omp.h>
#include <string>
#include <vector>

using histogram = std::map<int, long>;
using complex = std::complex<double>;

static void merge_into(histogram& to, const histogram& from) {
  for (const auto& [value, count] : from) to[value] += count;
}
static void append_to(std::vector<int>& to, const std::vector<int>& from) {
  to.insert(to.end(), from.begin(), from.end());
}
#pragma omp declare reduction(merge:histogram : merge_into(omp_out, omp_in))
#pragma omp declare reduction(append : std::vector <int> : append_to(omp_out, omp_in))
#pragma omp declare reduction(latest        \
                              : std::string \
                              : omp_out = std::max(omp_out, omp_in)) initializer(omp_priv = std::string())
#pragma omp declare reduction(add:complex : omp_out += omp_in)

static void reductions() {
  histogram h;
  std::vector<int> v;
  std::string s;
  complex c;
#pragma omp parallel for reduction(merge                                            \
                                   : h) reduction(append                            \
                                                  : v) reduction(latest             \
                                                                 : s) reduction(add \
                                                                                : c) schedule(dynamic, 3)
  for (int i = 0; i < 1000; ++i) {
    ++h[i % 7];
    v.push_back(i);
    s = std::max(s, std::to_string(i));
    c += complex(i, -i);
  }
  std::sort(v.begin(), v.end());
  std::printf("%ld %ld %zu %d %s %g %g\n", h[0], h[6], v.size(), v[999], s.c_str(), c.real(), c.imag());
}

static void scans() {
  std::vector<long> a(1000), with(1000), before(1000);
  std::iota(a.begin(), a.end(), 1);
  long sum = 0;
#pragma omp parallel for reduction(inscan, + : sum)
  for (int i = 0; i < 1000; ++i) {
    sum += a[i];
#pragma omp scan inclusive(sum)
    with[i] = sum;
  }
  sum = 0;
#pragma omp parallel for simd reduction(inscan, + : sum)
  for (int i = 0; i < 1000; ++i) {
    before[i] = sum;
#pragma omp scan exclusive(sum)
    sum += a[i];
  }
  std::printf("%ld %ld %ld %ld\n", with[500], with[999], before[500], before[999]);
}

/// Every copy that a task has is destroyed.
struct counted {
  static int alive;
  int value;
  explicit counted(int v) : value(v) { count(1); }
  counted(const counted& other) : value(other.value) { count(1); }
  ~counted() { count(-1); }
  static void count(int n) {
#pragma omp atomic
    alive += n;
  }
};
int counted::alive = 0;

static void copies() {
  long total = 0;
#pragma omp parallel
#pragma omp single
  for (int i = 0; i < 500; ++i) {
    const counted k(i);
    const std::string text(30, static_cast<char>('a' + i % 26));
    const auto owner = std::make_shared<int>(i);
#pragma omp task firstprivate(k, text, owner) shared(total) priority(i % 10)
#pragma omp atomic
    total += k.value + text[29] + *owner;
  }
  std::printf("%ld, alive %d\n", total, counted::alive);
}

static void exceptions() {
  int caught = 0;
#pragma omp parallel num_threads(3) reduction(+ : caught)
#pragma omp single
  for (int i = 0; i < 20; ++i) {
#pragma omp task shared(caught)
    try {
      if (i % 2 == 0) throw std::string("even");
    } catch (const std::string&) {
#pragma omp atomic
      ++caught;
    }
  }
  std::printf("exceptions %d\n", caught);
}

int main() {
  reductions();
  scans();
  copies();
  exceptions();
}
