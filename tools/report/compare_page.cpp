// The model of the page that compares runs, for page/compare.js. See compare_page.hpp.
#include "compare_page.hpp"

#include "embed.hpp"
#include "frame.hpp"

namespace godwit::report {
namespace {

using nlohmann::json;

json table_json(const run_table& t) {
  json rows = json::array();
  for (const run_table::row& row : t.rows) {
    json cells = json::array();
    for (const run_table::cell& cell : row.cells) cells.push_back({cell.value, cell.beside});
    rows.push_back({{"label", row.label}, {"what", row.what}, {"cells", cells}});
  }
  return {{"title", t.title}, {"note", t.note}, {"rows", rows}};
}

json runs_json(const comparison& c) {
  json runs = json::array();
  for (std::size_t i = 0; i < c.runs.size(); ++i) {
    const compared_run& r = c.runs[i];
    runs.push_back({{"name", r.name},
                    {"command", r.command},
                    {"verdict", r.verdict},
                    {"workers", r.figures.workers},
                    {"cpus", r.figures.cpus},
                    {"states", r.figures.total},
                    {"speed_up", c.speed_up(i)},
                    {"bound", c.bound(i)}});
  }
  return runs;
}

json model_of(const comparison& c) {
  json tables = json::array();
  for (const run_table& t : tables_of(c)) tables.push_back(table_json(t));
  return {{"headline", headline_of(c)},
          {"scaling", c.scaling},
          {"parallelism", c.span > 0 ? c.work / c.span : -1},
          {"runs", runs_json(c)},
          {"tables", tables}};
}

}  // namespace

void write_comparison(std::ostream& out, const comparison& c) {
  const std::string title = html_safe(headline_of(c)) + " · godwit-report";
  const std::string model = script_safe(model_of(c));
  write_frame(out, embedded::compare_frame(),
              {{"title", title},
               {"style", embedded::style()},
               {"model", model},
               {"echarts", embedded::echarts()},
               {"scripts", embedded::compare_scripts()}});
}

}  // namespace godwit::report
