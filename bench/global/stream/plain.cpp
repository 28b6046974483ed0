// One thread, or several of std::thread that stay, each with its part of the arrays: what one would write by
// hand.

#include <barrier>
#include <functional>
#include <memory>
#include <thread>
#include <vector>

#include "stream.hpp"

namespace stream {

namespace {

/// n threads, of which the caller is one, that do the same function with their numbers.
class team {
 public:
  explicit team(unsigned n) : n_(n), gate_(static_cast<std::ptrdiff_t>(n)) {
    for (unsigned i = 1; i < n; ++i)
      threads_.emplace_back([this, i] {
        for (;;) {
          gate_.arrive_and_wait();
          if (!work_) return;
          work_(i);
          gate_.arrive_and_wait();
        }
      });
  }
  ~team() {
    work_ = nullptr;
    gate_.arrive_and_wait();
    for (auto& t : threads_) t.join();
  }
  team(const team&) = delete;
  team& operator=(const team&) = delete;

  void operator()(std::function<void(unsigned)> work) {
    work_ = std::move(work);
    gate_.arrive_and_wait();
    work_(0);
    gate_.arrive_and_wait();
  }
  /// [low, high) of n for member i.
  std::pair<std::size_t, std::size_t> part(std::size_t n, unsigned i) const {
    return {n * i / n_, n * (i + 1) / n_};
  }

 private:
  unsigned n_;
  std::barrier<> gate_;
  std::function<void(unsigned)> work_;
  std::vector<std::thread> threads_;
};

// Uninitialised: the first pass touches it.
std::unique_ptr<double[]> room(std::size_t n) { return std::make_unique_for_overwrite<double[]>(n); }

void sums(const settings& s, team& all, unsigned threads, outcome& out) {
  const auto data = room(s.size);
  double* const a = data.get();
  out.first = parts::measured_plain([&] {
    all([&](unsigned i) {
      const auto [low, high] = all.part(s.size, i);
      for (std::size_t k = low; k < high; ++k) a[k] = element(k);
    });
  });
  struct alignas(64) partial {
    double value;
  };
  std::vector<partial> partials(threads);
  for (int t = 0; t < s.times; ++t)
    out.of[k_sum].add(parts::measured_plain([&] {
      all([&](unsigned i) {
        const auto [low, high] = all.part(s.size, i);
        partials[i].value = sum(a + low, high - low);
      });
      out.total = 0;
      for (const auto& p : partials) out.total += p.value;
    }));
}

void streams(const settings& s, team& all, outcome& out) {
  const auto x = room(s.stream_size), y = room(s.stream_size), z = room(s.stream_size);
  double *const a = x.get(), *const b = y.get(), *const c = z.get();
  const auto each = [&](auto f) {
    return parts::measured_plain([&] {
      all([&](unsigned i) {
        const auto [low, high] = all.part(s.stream_size, i);
        f(low, high - low);
      });
    });
  };
  const triple start;
  each([&](std::size_t low, std::size_t n) {
    std::fill_n(a + low, n, start.a);
    std::fill_n(b + low, n, start.b);
    std::fill_n(c + low, n, start.c);
  });
  for (int t = 0; t < s.times; ++t) {
    out.of[k_copy].add(each([&](std::size_t low, std::size_t n) { copy(a + low, c + low, n); }));
    out.of[k_scale].add(each([&](std::size_t low, std::size_t n) { scale(c + low, b + low, n); }));
    out.of[k_add].add(each([&](std::size_t low, std::size_t n) { add(a + low, b + low, c + low, n); }));
    out.of[k_triad].add(each([&](std::size_t low, std::size_t n) { triad(b + low, c + low, a + low, n); }));
  }
  const triple right = right_values(s.times);
  for (std::size_t i = 0; i < s.stream_size; ++i)
    out.bad += a[i] != right.a || b[i] != right.b || c[i] != right.c;
}

}  // namespace

outcome plain(const settings& s, unsigned threads) {
  outcome out;
  team all(threads);
  sums(s, all, threads, out);
  streams(s, all, out);
  return out;
}

}  // namespace stream
