// See selftest.hpp.
#include "transport/mpi/selftest.hpp"

#include <algorithm>
#include <stdexcept>
#include <vector>

#include "base/clock.hpp"
#include "base/world.hpp"

namespace godwit::transport::mpi {

namespace {

constexpr int ping_tag = 5;
constexpr int rounds = 21;
constexpr int busy_rounds = 3;
constexpr double busy_for_us = 2000;

struct tester {
  const component& mpi;

  void check(int code) const {
    if (code == 0) return;
    char text[256];
    mpi.error_text(code, text, sizeof text);
    throw std::runtime_error(std::string("godwit: the test of the network failed: ") + text);
  }
  void finish(operation op) const {
    for (bool done = false; !done;) {
      check(mpi.test(&op, &done, nullptr, nullptr, nullptr));
      if (!done) base::give_way();
    }
  }
  void send(int to) const {
    char byte[8] = {};
    operation op;
    check(mpi.isend(byte, sizeof byte, to, ping_tag, &op));
    finish(op);
  }
  void receive(int from) const {
    char byte[8];
    operation op;
    check(mpi.irecv(byte, sizeof byte, from, ping_tag, &op));
    finish(op);
  }
};

double median(std::vector<double> v) {
  std::sort(v.begin(), v.end());
  return v[v.size() / 2];
}

void compute_for(double us) {
  const std::uint64_t end = base::now_ns() + static_cast<std::uint64_t>(us * 1000);
  while (base::now_ns() < end) base::pause();
}

struct rma_result {
  int works = 0;
  int code = 0;
  double atomic_us = 0, busy_us = 0;
};

/// Rank 0's time of a message there and back, in microseconds; 0 elsewhere.
double measure_trips(const tester& t, int rank, int partner) {
  std::vector<double> trips;
  for (int i = 0; i < rounds; ++i) {
    if (rank == 0) {
      const std::uint64_t start = base::now_ns();
      t.send(partner);
      t.receive(partner);
      trips.push_back(static_cast<double>(base::now_ns() - start) * 1e-3);
    } else if (rank == partner) {
      t.receive(0);
      t.send(0);
    }
  }
  return rank == 0 ? median(trips) : 0;
}

/// Rank 0's times of an atomic on @p partner 's word: while that one waits, and while it computes.
void measure_atomics(const tester& t, rma_window& w, int rank, int partner, rma_result& r) {
  const std::uint64_t one = 1;
  std::uint64_t before = 0;
  const auto timed_add = [&] {
    const std::uint64_t start = base::now_ns();
    if (r.code == 0) r.code = t.mpi.fetch_op(&w, rma_op::add, &one, &before, partner, 0);
    if (r.code == 0) r.code = t.mpi.flush(&w, partner);
    return static_cast<double>(base::now_ns() - start) * 1e-3;
  };
  if (rank == 0) {
    timed_add();  // connections are made at first use
    std::vector<double> times;
    for (int i = 0; i < rounds; ++i) times.push_back(timed_add());
    r.atomic_us = median(times);
    t.send(partner);
    for (int i = 0; i < busy_rounds; ++i) {
      t.send(partner);
      t.receive(partner);  // now it computes
      compute_for(busy_for_us / 8);
      r.busy_us = std::max(r.busy_us, timed_add());
    }
    if (r.code != 0) r.works = 0;
  } else if (rank == partner) {
    t.receive(0);  // makes progress until rank 0 has its times
    for (int i = 0; i < busy_rounds; ++i) {
      t.receive(0);
      t.send(0);
      compute_for(busy_for_us);
    }
  }
}

/// All ranks make a window, if all can.
rma_result measure_rma(const tester& t, int rank, int partner) {
  static std::uint64_t target_word[8];
  rma_result r;
  rma_window w;
  r.code = t.mpi.win_create(target_word, sizeof target_word, &w);
  const bool made = r.code == 0;
  std::uint64_t all_made = made ? 1 : 0;
  t.check(t.mpi.allreduce(&all_made, 1, reduction::least));
  r.works = all_made != 0 ? 1 : 0;
  if (r.works != 0) {
    measure_atomics(t, w, rank, partner, r);
    t.check(t.mpi.win_free(&w));
  } else if (made) {
    t.mpi.win_free(&w);
  }
  return r;
}

}  // namespace

link_quality measure_link(const component& mpi, int rank, int partner, bool with_rma) {
  const tester t{mpi};
  struct {
    double round_trip;
    rma_result rma;
  } shared{measure_trips(t, rank, partner), {}};
  if (with_rma) shared.rma = measure_rma(t, rank, partner);
  t.check(mpi.bcast(&shared, sizeof shared, 0));
  link_quality q;
  q.busy_us = busy_for_us;
  q.round_trip_us = shared.round_trip;
  q.rma_works = shared.rma.works != 0;
  q.atomic_us = shared.rma.atomic_us;
  q.atomic_busy_us = shared.rma.busy_us;
  if (with_rma && !q.rma_works) {
    char text[256] = "another rank could not";
    if (shared.rma.code != 0) mpi.error_text(shared.rma.code, text, sizeof text);
    q.rma_error = text;
  }
  return q;
}

way choose_way(const link_quality& q) noexcept {
  return q.rma_is_one_sided() && q.atomic_us < q.round_trip_us * 2 ? way::rma : way::server;
}

}  // namespace godwit::transport::mpi
