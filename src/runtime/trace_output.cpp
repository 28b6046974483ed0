// See trace_output.hpp.
#include "runtime/trace_output.hpp"

#include <algorithm>
#include <cstdio>
#include <exception>
#include <new>
#include <stdexcept>

#include "base/code_place.hpp"
#include "base/json.hpp"

namespace godwit::runtime {

using trace::ring_memory;
using transport::worker_no;
using transport::shm::near_range;

namespace {

/// Rows of the trace.
std::uint32_t count_of(const run_facts& facts) {
  return static_cast<std::uint32_t>(facts.stats.size()) + facts.spares;
}

std::string trace_info(const run_facts& facts, const trace::summary& sum) {
  base::json_writer json;
  json.begin_object();
  put_run(json, facts);
  json.new_line().field("clock", "CLOCK_MONOTONIC of the first rank's host");
  if (facts.spares != 0) json.field("spares", facts.spares);
  json.field("traced_workers", trace_sample(facts.opts, count_of(facts)).count());
  json.field("origin_ns", sum.origin_ns).field("end_ns", sum.end_ns);
  json.key("events").begin_array();
  for (const auto n : sum.events_of) json.value(n);
  json.end_array().key("dropped").begin_array();
  for (const auto n : sum.dropped_of) json.value(n);
  json.end_array().field("threads", sum.threads).field("threads_left_out", sum.threads_left_out);
  json.new_line().key("stats").raw(stats_json(facts)).end_object();
  return json.text();
}

/// "8 workers", "3 of 8 workers", "2 workers and 1 spare"
std::string traced_of(const run_facts& facts) {
  const std::uint32_t all = count_of(facts), traced = trace_sample(facts.opts, all).count();
  if (traced != all) return std::to_string(traced) + " of " + std::to_string(all) + " workers";
  return std::to_string(facts.stats.size()) + " workers" +
         (facts.spares != 0 ? " and " + std::to_string(facts.spares) + " spare" : "");
}

std::vector<std::string> track_names(const run_facts& facts) {
  std::vector<std::string> names;
  for (std::size_t w = 0; w < count_of(facts); ++w)
    names.push_back((w < facts.stats.size() ? "worker " : "spare worker ") + std::to_string(w));
  if (facts.hosts.size() < 2) return names;
  for (const host_facts& h : facts.hosts)
    for (std::uint32_t i = 0; i < h.workers; ++i) names[h.first_worker + i] += " (" + h.name + ")";
  return names;
}

}  // namespace

trace_sample::trace_sample(const options& opts, std::uint32_t workers) noexcept
    : workers_(workers), count_(opts.trace_workers == 0 ? workers : std::min(opts.trace_workers, workers)) {}

trace_rings::trace_rings(const options& opts, near_range own, std::uint32_t workers)
    : own_(own), sample_(opts, workers) {
  if (opts.trace.empty() || !sample_.any(own)) return;
  const std::uint64_t capacity = (opts.trace_bytes - ring_memory::bytes_for(0)) / sizeof(trace::event);
  constexpr std::size_t line = 64;
  bytes_each_ = (ring_memory::bytes_for(capacity) + line - 1) / line * line;
  const std::uint32_t count = sample_.before(own.first + own.count) - sample_.before(own.first);
  pages_ = transport::shm::shared_pages(bytes_each_ * count,
                                        "lower --godwit-trace-bytes or --godwit-trace-workers");
  for (std::uint32_t i = 0; i < count; ++i) {
    auto* m = new (pages_.data() + bytes_each_ * i) ring_memory;
    m->written.store(0, std::memory_order_relaxed);
    m->closed.store(false, std::memory_order_relaxed);
    m->capacity = capacity;
  }
}

ring_memory* trace_rings::of(worker_no w) const noexcept {
  const std::uint32_t n = transport::index(w);
  if (bytes_each_ == 0 || !own_.holds(w) || !sample_.holds(n)) return nullptr;
  return reinterpret_cast<ring_memory*>(pages_.data() +
                                        bytes_each_ * (sample_.before(n) - sample_.before(own_.first)));
}

void trace_rings::close() const noexcept {
  for (std::uint32_t i = 0; i < own_.count; ++i)
    if (ring_memory* m = of(worker_no{own_.first + i}); m != nullptr)
      m->closed.store(true, std::memory_order_seq_cst);
}

void trace_rings::count(worker_no w, worker_stats& stats) const noexcept {
  const ring_memory* m = of(w);
  if (m == nullptr) return;
  const trace::ring_range r = trace::readable(*m);
  stats.trace_events = r.written;
  stats.trace_dropped = r.first;
}

run_outputs::run_outputs(const options& opts) {
  if (!opts.trace.empty()) trace_.emplace(opts.trace);
  if (!opts.stats_json.empty()) stats_json_.emplace(opts.stats_json, "stats-json");
  if (trace_ && stats_json_ && trace_->is_same_file(*stats_json_))
    throw std::invalid_argument("godwit: cannot write the trace and the counters to one file, " + opts.trace +
                                ": give --godwit-stats-json the name of another");
}

void run_outputs::pause() {
  if (trace_) trace_->pause();
  if (stats_json_) stats_json_->pause();
}

void run_outputs::resume() {
  if (trace_) trace_->resume();
  if (stats_json_) stats_json_->resume();
}

void run_outputs::add(const trace_rings& rings, near_range own) {
  for (std::uint32_t i = 0; i < own.count; ++i) {
    const std::uint32_t w = own.first + i;
    const ring_memory* m = rings.of(worker_no{w});
    if (m == nullptr || !trace_) continue;
    const trace::ring_range r = trace::readable(*m);
    trace_->dropped(w, r.first);
    trace::for_each_piece(r, m->capacity, m->capacity,
                          [&](std::uint64_t slot, std::size_t n) { trace_->append(w, &m->events[slot], n); });
  }
}

void run_outputs::write(const run_facts& facts) noexcept {
  try {
    if (facts.opts.stats) std::fputs(stats_table(facts).c_str(), stderr);
    if (stats_json_) write_stats(facts);
    if (trace_) write_trace(facts);
  } catch (const std::exception& e) {
    std::fprintf(stderr, "godwit: the counters or the trace of this run are incomplete: %s\n", e.what());
  }
}

void run_outputs::write_stats(const run_facts& facts) {
  std::fflush(stdout);
  stats_json_->write(stats_json(facts) + "\n");
  stats_json_->flush();
  if (!stats_json_->problem().empty())
    std::fprintf(stderr, "godwit: cannot write all counters to %s: %s\n", stats_json_->path().c_str(),
                 stats_json_->problem().c_str());
}

void run_outputs::write_trace(const run_facts& facts) {
  const trace::summary& sum = trace_->finish(
      track_names(facts), [&](const trace::summary& s) { return trace_info(facts, s); }, trace::text_at,
      trace::most_thread_tracks, base::code_lines);
  if (!trace_->problem().empty()) {
    std::fprintf(stderr, "godwit: the trace %s is cut short: %s: make room, or lower --godwit-trace-bytes\n",
                 trace_->path().c_str(), trace_->problem().c_str());
    return;
  }
  std::fprintf(stderr,
               "godwit: trace %s: %llu events of %s, %llu oldest dropped%s: open at ui.perfetto.dev or with "
               "godwit-report %s\n",
               trace_->path().c_str(), static_cast<unsigned long long>(sum.events), traced_of(facts).c_str(),
               static_cast<unsigned long long>(sum.dropped),
               sum.dropped != 0 ? " (raise --godwit-trace-bytes)" : "", trace_->path().c_str());
}

}  // namespace godwit::runtime
