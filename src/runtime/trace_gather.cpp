// See trace_gather.hpp.
#include "runtime/trace_gather.hpp"

#include <ctime>

#include "base/clock.hpp"
#include "base/world.hpp"

namespace godwit::runtime {

using transport::worker_no;
using transport::mpi::operation;
using transport::shm::near_range;

namespace {

constexpr int clock_tag = 8;  // those of companions: 1, and from 16 on
constexpr int event_tag = 9;
constexpr int trips_per_host = 100;
constexpr std::size_t events_per_message = (1 << 20) / sizeof(trace::event);

struct mailer {
  const mpi_session& session;

  /// Spins at first, so that answers are quick; then lets others have the CPU.
  void finish(operation op, const char* what) const {
    const std::uint64_t start = base::now_ns();
    for (bool done = false; !done;) {
      session.check(session.mpi().test(&op, &done, nullptr, nullptr, nullptr), what);
      if (done || base::now_ns() - start < 20'000) continue;
      base::give_way();
      if (base::now_ns() - start < 5'000'000) continue;
      base::nap(50'000);
    }
  }
  void send(const void* data, std::size_t bytes, int to, int tag) const {
    operation op;
    session.check(session.mpi().isend(data, bytes, to, tag, &op), "send");
    finish(op, "send");
  }
  void receive(void* data, std::size_t bytes, int from, int tag) const {
    operation op;
    session.check(session.mpi().irecv(data, bytes, from, tag, &op), "receive");
    finish(op, "receive");
  }
};

trace::clock_offset ask(const mailer& mail, int rank) {
  std::vector<trace::round_trip> trips;
  for (int i = 0; i < trips_per_host; ++i) {
    trace::round_trip t{base::now_ns(), 0, 0};
    mail.send(&t.sent_ns, sizeof t.sent_ns, rank, clock_tag);
    mail.receive(&t.there_ns, sizeof t.there_ns, rank, clock_tag);
    t.back_ns = base::now_ns();
    if (i >= trips_per_host / 10) trips.push_back(t);  // the first ones make connections
  }
  return trace::estimate_offset(trips);
}

void answer(const mailer& mail) {
  for (int i = 0; i < trips_per_host; ++i) {
    std::uint64_t time = 0;
    mail.receive(&time, sizeof time, 0, clock_tag);
    time = base::now_ns();
    mail.send(&time, sizeof time, 0, clock_tag);
  }
}

/// What is sent before the events of a worker. Both ends cut them alike.
struct announcement {
  trace::ring_range events;
  std::uint64_t capacity;
};

void send_events(const mailer& mail, const trace_rings& rings, near_range own) {
  for (std::uint32_t i = 0; i < own.count; ++i) {
    const trace::ring_memory& m = *rings.of(worker_no{own.first + i});
    const trace::ring_range r = trace::readable(m);
    const announcement a{r, m.capacity};
    mail.send(&a, sizeof a, 0, event_tag);
    trace::for_each_piece(r, m.capacity, events_per_message, [&](std::uint64_t slot, std::size_t n) {
      mail.send(&m.events[slot], n * sizeof(trace::event), 0, event_tag);
    });
  }
}

void receive_events(const mailer& mail, trace::trace_file& to, int rank, near_range theirs,
                    const trace::clock_map& clock) {
  std::vector<trace::event> events(events_per_message);
  for (std::uint32_t w = theirs.first; w < theirs.first + theirs.count; ++w) {
    announcement a{};
    mail.receive(&a, sizeof a, rank, event_tag);
    to.dropped(w, a.events.first);
    trace::for_each_piece(a.events, a.capacity, events_per_message, [&](std::uint64_t, std::size_t n) {
      mail.receive(events.data(), n * sizeof(trace::event), rank, event_tag);
      for (std::size_t i = 0; i < n; ++i) events[i].time_ns = clock(events[i].time_ns);
      to.append(w, events.data(), n);
    });
  }
}

}  // namespace

std::vector<trace::clock_offset> compare_clocks(const mpi_session& session) {
  const mailer mail{session};
  if (session.rank() != 0) {
    if (const int me = session.rank(); session.first_beside(me) == me) answer(mail);
    return {};
  }
  std::vector<trace::clock_offset> all(static_cast<std::size_t>(session.size()));
  for (int r = 1; r < session.size(); ++r) {
    const int speaker = session.first_beside(r);
    all[static_cast<std::size_t>(r)] = speaker == r ? ask(mail, r) : all[static_cast<std::size_t>(speaker)];
  }
  return all;
}

void gather_events(const mpi_session& session, run_outputs* outputs, const trace_rings& rings,
                   std::span<const near_range> of_rank, const std::vector<trace::clock_offset>& before,
                   const std::vector<trace::clock_offset>& after) {
  const mailer mail{session};
  const auto me = static_cast<std::size_t>(session.rank());
  if (me != 0) {
    send_events(mail, rings, of_rank[me]);
    return;
  }
  outputs->add(rings, of_rank[0]);
  for (std::size_t r = 1; r < of_rank.size(); ++r) {
    const bool same_clock = session.first_beside(static_cast<int>(r)) == 0;
    receive_events(mail, *outputs->trace(), static_cast<int>(r), of_rank[r],
                   same_clock ? trace::clock_map() : trace::clock_map(before[r], after[r]));
  }
}

}  // namespace godwit::runtime
