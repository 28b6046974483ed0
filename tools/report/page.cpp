// The model of the page as JSON, and the page around it. See page.hpp; page/*.js reads what is written here.
#include "page.hpp"

#include "counters.hpp"
#include "embed.hpp"
#include "encode.hpp"
#include "frame.hpp"

#include <algorithm>

namespace godwit::report {
namespace {

using nlohmann::json;

json findings_json(const std::vector<finding>& findings) {
  static constexpr const char* names[] = {"good", "cause", "hint", "caveat"};
  json list = json::array();
  for (const finding& f : findings)
    list.push_back({{"level", names[static_cast<int>(f.what)]},
                    {"title", f.title},
                    {"text", f.text},
                    {"advice", f.advice}});
  return list;
}

json histogram_json(const char* id, const std::string& title, const char* unit, const std::string& note,
                    const histogram& h) {
  json bins = json::array();
  std::size_t first = 0, last = h.bins.size();
  while (first < last && h.bins[first] == 0) ++first;
  while (last > first && h.bins[last - 1] == 0) --last;
  for (std::size_t i = first; i < last; ++i)
    bins.push_back({histogram::lower_edge(i), histogram::lower_edge(i + 1), h.bins[i]});
  std::vector<std::uint64_t> samples;
  if (h.count <= histogram::few) samples = h.samples;
  std::sort(samples.begin(), samples.end());
  return {{"id", id},
          {"title", title},
          {"unit", unit},
          {"note", note},
          {"bins", bins},
          {"samples", samples},
          {"count", h.count},
          {"mean", h.mean()},
          {"median", h.quantile(0.5)},
          {"p99", h.quantile(0.99)},
          {"max", h.most}};
}

/// far_steal_times of all workers: [i] took from 2^(i/4) to 2^((i+1)/4) us.
json far_times_json(const json& stats) {
  const auto workers = stats.find("workers");
  if (workers == stats.end() || !workers->is_array()) return nullptr;
  std::vector<double> counts;
  for (const json& w : *workers) {
    const auto times = w.is_object() ? w.find("far_steal_times") : w.end();
    if (!w.is_object() || times == w.end() || !times->is_array()) continue;
    counts.resize(std::max(counts.size(), times->size()));
    for (std::size_t i = 0; i < times->size(); ++i)
      counts[i] += (*times)[i].is_number() ? (*times)[i].get<double>() : 0;
  }
  json bins = json::array();
  double count = 0;
  for (std::size_t i = 0; i < counts.size(); ++i) {
    if (counts[i] > 0 || !bins.empty())
      bins.push_back({1000 * histogram::lower_edge(i), 1000 * histogram::lower_edge(i + 1), counts[i]});
    count += counts[i];
  }
  while (!bins.empty() && bins.back()[2] == 0) bins.erase(bins.size() - 1);
  if (count == 0) return nullptr;
  return {{"id", "far"},  {"title", "Steals from other hosts: time"},
          {"unit", "ns"}, {"note", "request to answer, whole run (counters)"},
          {"bins", bins}, {"count", count}};
}

/// Only those that have values.
json histograms_json(const recording& r, const analysis* a) {
  json list = json::array();
  const auto add = [&](const char* id, const char* title, const char* unit, const char* note,
                       const histogram& h) {
    if (h.count > 0) list.push_back(histogram_json(id, title, unit, note, h));
  };
  if (a != nullptr) {
    add("steal", "Steals: time", "ns", "successful ones, inside a host", a->steal_ns);
    add("far", "Steals from other hosts: time", "ns", "successful ones", a->far_steal_ns);
    add("run", "Task sizes", "ns", "from when a worker got a thread to when it lost it", a->run_ns);
    add("ready", "Outstanding joins: ready but not running", "ns",
        "from when both sides were there to when it went on", a->ready_ns);
    add("wait", "Outstanding joins: whole wait", "ns", "from leaving to going on", a->wait_ns);
    add("bytes", "Stolen stacks", "bytes", "copied per steal", a->stolen_bytes);
  }
  if (a == nullptr || a->far_steal_ns.count == 0)
    if (json far = far_times_json(r.stats); !far.is_null()) list.push_back(std::move(far));
  return list;
}

json matrix_json(const matrix& m) {
  json cells = json::array();
  for (std::uint32_t i = 0; i < m.size; ++i)
    for (std::uint32_t j = 0; j < m.size; ++j) {
      const std::size_t c = static_cast<std::size_t>(i) * m.size + j;
      if (m.steals[c] + m.resumes[c] > 0) cells.push_back({j, i, m.steals[c], m.bytes[c], m.resumes[c]});
    }
  return {{"group", m.group}, {"size", m.size}, {"cells", cells}};
}

/// All places, in the order in which the time line names them.
json places_json(const std::vector<waiting_place>& places) {
  json list = json::array();
  for (const waiting_place& p : places)
    list.push_back({{"name", format_place(p)},
                    {"file", p.file},
                    {"line", p.line},
                    {"function", p.function},
                    {"what", p.what},
                    {"count", p.count},
                    {"wait", p.wait_ns},
                    {"ready", p.ready_ns},
                    {"idle", p.idle_ns},
                    {"stays", p.stays}});
  return list;
}

json path_json(const last_path& path) {
  constexpr std::size_t most_pieces = 30'000;  // of a longer one the time line shows the end
  json pieces = json::array();
  for (std::size_t i = 0; i < std::min(path.pieces.size(), most_pieces); ++i)
    pieces.push_back({path.pieces[i].worker, path.pieces[i].begin, path.pieces[i].end});
  return {{"pieces", pieces},
          {"cut", path.pieces.size() > most_pieces},
          {"complete", path.complete},
          {"running", path.running_ns},
          {"stealing", path.stealing_ns},
          {"ready", path.ready_ns},
          {"steals", path.steals},
          {"joins", path.joins}};
}

json worker_moves_json(const worker_moves& m) {
  return {{"came", m.came}, {"given", m.given},     {"bytes", m.bytes}, {"busy", m.busy},
          {"ns", m.ns},     {"no_room", m.no_room}, {"waits", m.waits}, {"wait", m.wait_ns}};
}

json owner_map_json(const owner_map& map) {
  const auto owner_json = [](std::uint32_t o) { return o == owner_unknown ? json(-1) : json(o); };
  json rows = json::array();
  for (const owner_map::row& row : map.rows) {
    json runs = json::array(), moves = json::array();
    for (const owner_map::run& run : row.runs) {
      runs.push_back(owner_json(run.owner));
      runs.push_back(run.columns);
    }
    for (const auto& [column, n] : row.moves) {
      moves.push_back(column);
      moves.push_back(n);
    }
    rows.push_back({{"runs", runs}, {"moves", moves}});
  }
  return {{"from", map.from}, {"to", map.to}, {"group", map.group}, {"columns", map.columns}, {"rows", rows}};
}

/// Where parts of movable memory were, who moved them, and who used them. Null: nothing moved, or was used
/// between hosts.
json moves_json(const moves_analysis& m, std::uint64_t from, std::uint64_t to) {
  if (!m.any()) return nullptr;
  constexpr std::size_t most_maps = 4, most_busiest = 10;
  constexpr std::uint32_t most_rows = 96, columns = 480;
  json workers = json::array(), memory = json::array();
  for (const worker_moves& w : m.by_worker) workers.push_back(worker_moves_json(w));
  for (std::size_t i = 0; i < std::min(m.memory.size(), most_maps); ++i) {
    const movable_memory& a = m.memory[i];
    json busiest = json::array();
    for (const moved_part& p : busiest_parts(a, most_busiest))
      busiest.push_back({p.part, p.moves, p.owners, p.last_owner});
    json used = json::array();
    for (const movable_memory::use& u : most_used_parts(a, most_busiest))
      used.push_back({u.part, u.near, u.far, u.by == owner_unknown ? -1 : static_cast<std::int64_t>(u.by)});
    memory.push_back({{"address", a.address},
                      {"parts", a.parts},
                      {"part_bytes", a.part_bytes},
                      {"moves", a.changes.size()},
                      {"bytes", a.bytes},
                      {"busiest", busiest},
                      {"used", used},
                      {"map", owner_map_json(map_of(a, from, to, most_rows, columns))}});
  }
  return {{"total", worker_moves_json(m.total())},
          {"workers", workers},
          {"memory", memory},
          {"allocations", m.memory.size()}};
}

json bounds_json(const run_figures& f) {
  return {{"t1", f.t1()},   {"t1_measured", f.work > 0}, {"span", f.span},      {"chain", f.longest_chain},
          {"wall", f.wall}, {"run", f.whole_run},        {"workers", f.workers}};
}

/// Command line, where it ran: what is known of it.
json run_json(const recording& r, const run_figures& f) {
  json run = {{"program", f.program},
              {"policy", f.policy},
              {"workers", f.workers},
              {"hosts", f.hosts},
              {"seconds", f.whole_run > 0 ? f.whole_run / 1e9 : -1}};
  std::string command = f.program.substr(f.program.rfind('/') + 1);
  if (const auto args = r.info.find("arguments"); args != r.info.end() && args->is_array())
    for (const json& arg : *args)
      if (arg.is_string()) command += " " + arg.get<std::string>();
  if (const auto args = r.info.find("arguments"); args != r.info.end() && args->is_string())
    command += " " + args->get<std::string>();
  run["command"] = command;
  run["clock"] = text_of(r.info, "clock");
  run["version"] = text_of(r.info, "version");
  return run;
}

/// @p seconds in nanoseconds, within the run: also of what is too large for an integer.
std::uint64_t moment(double seconds, std::uint64_t end) {
  const double ns = std::max(0.0, seconds) * 1e9;
  return ns < static_cast<double>(end) ? static_cast<std::uint64_t>(ns) : end;
}

struct blobs {
  std::string timeline, ready;
};

json model_of(const recording& r, const analysis* a, const std::string& file, const page_options& options,
              blobs& big) {
  const run_figures f = figures_of(r, a);
  json model = {{"file", file},
                {"kind", a != nullptr ? "trace" : "counters"},
                {"run", run_json(r, f)},
                {"findings", findings_json(explain(f, r, a))},
                {"bounds", bounds_json(f)},
                {"idle", f.by_worker},
                {"sleep", f.sleep},
                {"counters", counter_rows(r.stats)},
                {"histograms", histograms_json(r, a)},
                {"hosts", r.host_of}};
  if (a == nullptr) return model;
  const std::uint64_t end = a->end;
  const std::uint64_t from = moment(options.from_s, end);
  const std::uint64_t to = options.to_s < 0 ? end : moment(options.to_s, end);
  const std::size_t fixed = embedded::echarts().size() + embedded::scripts().size() + (std::size_t{1} << 19);
  const std::size_t left = options.most_bytes > fixed * 5 / 4 ? options.most_bytes - fixed : fixed / 4;
  const encoded_series ready = encode_steps(a->ready, std::min<std::size_t>(100'000, left / 50), end);
  const encoded_timeline line =
      encode_timeline(a->timeline, left / 4 * 3 - std::min(left / 4, ready.bytes.size()), from, to);
  big.ready = base64(ready.bytes);
  big.timeline = base64(line.bytes);
  model["end"] = end;
  model["whole_from"] = a->whole_from;
  model["timeline"] = {
      {"from", from}, {"to", std::max(from, to)}, {"threshold", line.threshold_ns}, {"pieces", line.pieces}};
  model["ready_bin"] = ready.bin_ns;
  model["ready_most"] = a->ready.most();
  model["events"] = a->events;
  model["threads"] = a->threads;
  model["dropped"] = a->dropped;
  model["names"] = a->names;
  model["places"] = places_json(a->places);
  model["matrix"] = matrix_json(a->from_whom);
  model["moves"] = moves_json(a->moves, from, to);
  model["path"] = path_json(a->path);
  return model;
}

}  // namespace

void write_page(std::ostream& out, const recording& r, const analysis* a, const std::string& file,
                const page_options& options) {
  blobs big;
  const std::string model = script_safe(model_of(r, a, file, options, big));
  const std::string title = html_safe(file) + " · godwit-report";
  write_frame(out, embedded::frame(),
              {{"title", title},
               {"style", embedded::style()},
               {"model", model},
               {"timeline", big.timeline},
               {"ready", big.ready},
               {"echarts", embedded::echarts()},
               {"scripts", embedded::scripts()}});
}

}  // namespace godwit::report
