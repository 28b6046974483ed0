// The tables of a comparison, for the page and as text. See compare.hpp.
#include "compare.hpp"

#include "counters.hpp"

#include <algorithm>
#include <cstdio>
#include <ostream>

namespace godwit::report {
namespace {

using nlohmann::json;

constexpr std::size_t at(state s) { return static_cast<std::size_t>(s); }

struct loss_name {
  state what;
  const char* name;
};
constexpr loss_name losses[] = {{state::getting, "getting threads"},
                                {state::no_work, "nothing to run"},
                                {state::join, "outstanding joins"},
                                {state::lock, "locks"},
                                {state::event, "events of other threads"},
                                {state::transport, "other hosts"},
                                {state::access, "single values of other hosts"},
                                {state::blocked, "waits in the operating system"},
                                {state::kernel, "work of the operating system"},
                                {state::outside, "no thread wanted a CPU"}};

std::string decimals(double value) {
  if (value >= 1000) return format_count(value);
  char text[64];
  std::snprintf(text, sizeof text, "%.*f", value < 100 ? 2 : 0, value);
  return text;
}
std::string known(double value, std::string (*format)(double)) {
  return value < 0 ? std::string("not known") : format(value);
}
/// "× 1.20", or nothing for the base and where there is nothing to divide by.
std::string ratio(double value, double base) { return base > 0 ? "× " + decimals(value / base) : ""; }

/// @p value gives the cell of a run by its index.
template <class F>
run_table::row row_of(const comparison& c, std::string label, std::string what, F value) {
  run_table::row row{std::move(label), std::move(what), {}};
  for (std::size_t i = 0; i < c.runs.size(); ++i) row.cells.push_back(value(i));
  return row;
}

run_table runs_table(const comparison& c) {
  run_table t{"The runs", base_of(c) + (c.scaling ? " " + bound_of(c) : ""), {}};
  const auto figures = [&](std::size_t i) -> const run_figures& { return c.runs[i].figures; };
  const auto add = [&](const char* label, const char* what, auto value) {
    t.rows.push_back(row_of(c, label, what, value));
  };
  using cell = run_table::cell;
  add("workers", "", [&](std::size_t i) { return cell{format_count(figures(i).workers), {}}; });
  if (std::any_of(c.runs.begin(), c.runs.end(), [](const auto& r) { return r.figures.hosts > 1; }))
    add("hosts", "", [&](std::size_t i) { return cell{format_count(figures(i).hosts), {}}; });
  add("CPUs", "that the run could use", [&](std::size_t i) {
    return cell{known(figures(i).cpus, format_count), {}};
  });
  add("time", "", [&](std::size_t i) {
    return cell{format_time(figures(i).wall),
                i == 0 ? "" : ratio(figures(i).wall, c.runs.front().figures.wall)};
  });
  add("speed-up", "", [&](std::size_t i) { return cell{decimals(c.speed_up(i)), {}}; });
  if (c.scaling) add("bound", "", [&](std::size_t i) { return cell{decimals(c.bound(i)), {}}; });
  add("workers with a thread", "on average", [&](std::size_t i) {
    return cell{decimals(figures(i).speed_up()), format_percent(figures(i).speed_up() / figures(i).workers)};
  });
  add("time in threads",
      "the burden of other workers on memory and caches, and of waiting for a CPU, lets it grow",
      [&](std::size_t i) {
        return cell{format_time(figures(i).busy()),
                    i == 0 ? "" : ratio(figures(i).busy(), c.runs.front().figures.busy())};
      });
  add("steals", "", [&](std::size_t i) { return cell{format_count(c.runs[i].steals), {}}; });
  add("time of a steal", "on average", [&](std::size_t i) {
    const compared_run& r = c.runs[i];
    return cell{r.steals > 0 ? format_time(r.steal_ns / r.steals) : "none", {}};
  });
  return t;
}

run_table losses_table(const comparison& c) {
  run_table t{"Where the workers' time went", "Shares are of the time of all workers.", {}};
  const auto share = [&](std::size_t i, double ns) {
    return run_table::cell{format_time(ns), format_percent(ns / std::max(1.0, c.runs[i].figures.known()))};
  };
  t.rows.push_back(
      row_of(c, "in threads", "", [&](std::size_t i) { return share(i, c.runs[i].figures.busy()); }));
  t.rows.push_back(row_of(c, "lost", "", [&](std::size_t i) { return share(i, c.runs[i].figures.lost()); }));
  for (const loss_name& l : losses) {
    const auto ns = [&](std::size_t i) { return c.runs[i].figures.total[at(l.what)]; };
    bool any = false;
    for (std::size_t i = 0; i < c.runs.size(); ++i) any |= ns(i) > 0;
    if (any)
      t.rows.push_back(
          row_of(c, "lost to: " + std::string(l.name), "", [&](std::size_t i) { return share(i, ns(i)); }));
  }
  return t;
}

/// Counters that any run has.
run_table counters_table(const comparison& c) {
  run_table t{
      "Counters",
      "Of all workers. " + (c.scaling ? "Ratios are to the run with the fewest workers." : base_of(c)),
      {}};
  std::vector<json> lists;
  json everybody = json::array();
  for (const compared_run& r : c.runs) {
    lists.push_back(counter_rows(r.stats));
    for (const json& worker : r.stats.value("workers", json::array())) everybody.push_back(worker);
  }
  for (const json& counter : counter_rows({{"workers", everybody}})) {
    const auto format = counter.at("unit") == "ns"      ? format_time
                        : counter.at("unit") == "bytes" ? format_bytes
                                                        : format_count;
    const auto value = [&](std::size_t i) {
      for (const json& row : lists[i])
        if (row.at("name") == counter.at("name")) return row.at("total").get<double>();
      return 0.0;
    };
    const bool maximum = counter.at("maximum").get<bool>();
    t.rows.push_back(
        row_of(c, counter.at("label").get<std::string>() + (maximum ? " (most)" : ""),
               counter.at("what").get<std::string>(), [&](std::size_t i) {
                 return run_table::cell{format(value(i)), i == 0 ? "" : ratio(value(i), value(0))};
               }));
  }
  return t;
}

std::size_t width_of(const std::string& text) {
  return static_cast<std::size_t>(
      std::count_if(text.begin(), text.end(), [](char ch) { return (ch & 0xc0) != 0x80; }));
}
std::string padded(const std::string& text, std::size_t width, bool right) {
  const std::string blanks(width - std::min(width, width_of(text)), ' ');
  return right ? blanks + text : text + blanks;
}
std::string text_of(const run_table::cell& c) {
  return c.beside.empty() ? c.value : c.value + " (" + c.beside + ")";
}

void print(std::ostream& out, const comparison& c, const run_table& t) {
  std::size_t first = 0;
  for (const run_table::row& row : t.rows) first = std::max(first, width_of(row.label));
  std::vector<std::size_t> widths;
  for (std::size_t i = 0; i < c.runs.size(); ++i) {
    widths.push_back(width_of(c.runs[i].name));
    for (const run_table::row& row : t.rows) widths[i] = std::max(widths[i], width_of(text_of(row.cells[i])));
  }
  out << '\n' << t.title << '\n' << t.note << '\n' << padded("", first, false);
  for (std::size_t i = 0; i < c.runs.size(); ++i) out << "  " << padded(c.runs[i].name, widths[i], true);
  out << '\n';
  for (const run_table::row& row : t.rows) {
    out << padded(row.label, first, false);
    for (std::size_t i = 0; i < row.cells.size(); ++i)
      out << "  " << padded(text_of(row.cells[i]), widths[i], true);
    out << '\n';
  }
}

}  // namespace

std::vector<run_table> tables_of(const comparison& c) {
  std::vector<run_table> tables{runs_table(c), losses_table(c)};
  if (run_table counters = counters_table(c); !counters.rows.empty()) tables.push_back(std::move(counters));
  return tables;
}

void print(std::ostream& out, const comparison& c) {
  out << headline_of(c) << '\n';
  for (const compared_run& r : c.runs) out << "  " << r.name << ": " << r.verdict << '\n';
  for (const run_table& t : tables_of(c)) print(out, c, t);
}

}  // namespace godwit::report
