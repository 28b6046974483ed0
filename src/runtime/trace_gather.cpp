// See trace_gather.hpp.
#include "runtime/trace_gather.hpp"

#include <ctime>

#include "base/clock.hpp"

namespace godwit::runtime {

using transport::worker_no;
using transport::shm::near_range;

namespace {

constexpr int clock_tag = 8;  // see mpi_memory.cpp, path_tag
constexpr int event_tag = 9;
constexpr int trips_per_host = 100;
constexpr std::size_t events_per_message = (1 << 20) / sizeof(trace::event);

trace::clock_offset ask(const mpi_session& session, int rank) {
  std::vector<trace::round_trip> trips;
  for (int i = 0; i < trips_per_host; ++i) {
    trace::round_trip t{base::now_ns(), 0, 0};
    session.send(&t.sent_ns, sizeof t.sent_ns, rank, clock_tag);
    session.receive(&t.there_ns, sizeof t.there_ns, rank, clock_tag);
    t.back_ns = base::now_ns();
    if (i >= trips_per_host / 10) trips.push_back(t);  // the first ones make connections
  }
  return trace::estimate_offset(trips);
}

void answer(const mpi_session& session) {
  for (int i = 0; i < trips_per_host; ++i) {
    std::uint64_t time = 0;
    session.receive(&time, sizeof time, 0, clock_tag);
    time = base::now_ns();
    session.send(&time, sizeof time, 0, clock_tag);
  }
}

/// What is sent before the events of a worker. Both ends cut them alike.
struct announcement {
  trace::ring_range events;
  std::uint64_t capacity;
};

void send_events(const mpi_session& session, const trace_rings& rings, near_range own) {
  for (std::uint32_t i = 0; i < own.count; ++i) {
    const trace::ring_memory* ring = rings.of(worker_no{own.first + i});
    if (ring == nullptr) continue;
    const trace::ring_memory& m = *ring;
    const trace::ring_range r = trace::readable(m);
    const announcement a{r, m.capacity};
    session.send(&a, sizeof a, 0, event_tag);
    trace::for_each_piece(r, m.capacity, events_per_message, [&](std::uint64_t slot, std::size_t n) {
      session.send(&m.events[slot], n * sizeof(trace::event), 0, event_tag);
    });
  }
}

void receive_events(const mpi_session& session, trace::trace_file& to, int rank, near_range theirs,
                    const trace_sample& sample, const trace::clock_map& clock) {
  std::vector<trace::event> events(events_per_message);
  for (std::uint32_t w = theirs.first; w < theirs.first + theirs.count; ++w) {
    if (!sample.holds(w)) continue;
    announcement a{};
    session.receive(&a, sizeof a, rank, event_tag);
    to.dropped(w, a.events.first);
    trace::for_each_piece(a.events, a.capacity, events_per_message, [&](std::uint64_t, std::size_t n) {
      session.receive(events.data(), n * sizeof(trace::event), rank, event_tag);
      for (std::size_t i = 0; i < n; ++i) events[i].time_ns = clock(events[i].time_ns);
      to.append(w, events.data(), n);
    });
  }
}

}  // namespace

std::vector<trace::clock_offset> compare_clocks(const mpi_session& session, const trace_sample& sample,
                                                std::span<const near_range> of_rank) {
  // by rank: it is the first of its machine, and workers there are traced
  std::vector<char> is_asked(of_rank.size());
  for (std::size_t r = 0; r < of_rank.size(); ++r)
    if (sample.any(of_rank[r]))
      is_asked[static_cast<std::size_t>(session.first_beside(static_cast<int>(r)))] = 1;
  if (session.rank() != 0) {
    if (is_asked[static_cast<std::size_t>(session.rank())] != 0) answer(session);
    return {};
  }
  std::vector<trace::clock_offset> all(of_rank.size());
  for (int r = 1; r < session.size(); ++r) {
    const auto i = static_cast<std::size_t>(r);
    all[i] = is_asked[i] != 0 ? ask(session, r) : all[static_cast<std::size_t>(session.first_beside(r))];
  }
  return all;
}

void gather_events(const mpi_session& session, run_outputs* outputs, const trace_rings& rings,
                   std::span<const near_range> of_rank, const std::vector<trace::clock_offset>& before,
                   const std::vector<trace::clock_offset>& after) {
  const auto me = static_cast<std::size_t>(session.rank());
  if (me != 0) {
    send_events(session, rings, of_rank[me]);
    return;
  }
  outputs->add(rings, of_rank[0]);
  for (std::size_t r = 1; r < of_rank.size(); ++r) {
    if (!rings.sample().any(of_rank[r])) continue;
    const bool same_clock = session.first_beside(static_cast<int>(r)) == 0;
    receive_events(session, *outputs->trace(), static_cast<int>(r), of_rank[r], rings.sample(),
                   same_clock ? trace::clock_map() : trace::clock_map(before[r], after[r]));
  }
}

}  // namespace godwit::runtime
