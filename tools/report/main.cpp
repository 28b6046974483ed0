// godwit-report: what a run did, or what several runs did side by side, as a page.
//
// A FILE is what GODWIT_TRACE or GODWIT_STATS_JSON wrote. Errors are one line; exit status 2. See
// docs/report.md.
#include "compare_page.hpp"
#include "page.hpp"

#include "base/output_file.hpp"

#include <CLI/CLI.hpp>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <fstream>
#include <iostream>
#include <optional>
#include <string>
#include <unistd.h>
#include <vector>

namespace {

using namespace godwit::report;

// In page/report.html and page/compare.html.
constexpr std::string_view page_begins = "<meta name=\"generator\" content=\"godwit-report\">";

struct wishes {
  std::vector<std::string> files;
  std::string output;
  bool text = false;
  double mebibytes = 16;
  page_options options;
};

void print_text(const recording& r, const analysis* a) {
  for (const finding& f : explain(figures_of(r, a), r, a)) {
    std::cout << f.title << '\n';
    if (!f.text.empty()) std::cout << "  " << f.text << '\n';
    if (!f.advice.empty()) std::cout << "  To do: " << f.advice << '\n';
  }
}

/// @p page writes it into the stream that it is given.
template <class F>
void write_file(const std::string& path, F page) {
  const auto fail = [&](const std::string& why) { throw input_error(path + ": cannot write it: " + why); };
  std::string problem;
  const int fd = godwit::base::open_output(path, {page_begins}, problem);
  if (fd < 0) fail(problem + ": give -o another name in a folder that exists, or remove that file");
  close(fd);
  errno = 0;
  std::ofstream out(path, std::ios::binary | std::ios::trunc);
  if (!out) fail(std::strerror(errno));
  page(out);
  out.close();
  if (!out) fail(std::strerror(errno));
  std::cout << path << '\n';
}

std::string name_of(const std::string& file) { return file.substr(file.rfind('/') + 1); }

std::optional<analysis> events_of(const recording& r, const std::string& file) {
  if (!r.has_events) return {};
  if (r.event_count() > 0) return analyze(r);
  std::cerr << "godwit-report: " << file << ": the trace has no events; counters only\n";
  return {};
}

void report(const std::string& file, const wishes& w) {
  const mapped_file bytes(file);
  const recording r = parse(bytes.bytes(), file);
  const std::optional<analysis> events = events_of(r, file);
  const analysis* a = events ? &*events : nullptr;
  if (w.text) return print_text(r, a);
  write_file(w.output.empty() ? file + ".html" : w.output,
             [&](std::ostream& out) { write_page(out, r, a, name_of(file), w.options); });
}

/// One file after the other is read, so that only one trace is in memory at a time.
void report_several(const wishes& w) {
  std::vector<compared_run> runs;
  for (const std::string& file : w.files) {
    if (std::count(w.files.begin(), w.files.end(), file) > 1)
      throw input_error(file + ": given twice; give each run once");
    const mapped_file bytes(file);
    const recording r = parse(bytes.bytes(), file);
    const std::optional<analysis> events = events_of(r, file);
    runs.push_back(compared(r, events ? &*events : nullptr, name_of(file)));
  }
  const comparison c = compare(std::move(runs));
  if (w.text) return print(std::cout, c);
  write_file(w.output.empty() ? w.files.front() + ".compared.html" : w.output,
             [&](std::ostream& out) { write_comparison(out, c); });
}

}  // namespace

int main(int argc, char** argv) {
  CLI::App app{
      "Turns a trace (GODWIT_TRACE) or a file of counters (GODWIT_STATS_JSON) into one HTML page; several of "
      "one program into a page that compares them."};
  app.name("godwit-report");
  wishes w;
  app.add_option("FILE", w.files, "traces or files of counters, one for each run")->required();
  app.add_option("-o,--output", w.output,
                 "the page to write (default: FILE.html; of several files: the first one's name and "
                 ".compared.html)");
  app.add_flag("--text", w.text, "print the summary or the comparison only, write no page");
  const std::vector<CLI::Option*> of_one = {
      app.add_option("--from", w.options.from_s, "keep the time line from this second on ...")
          ->check(CLI::NonNegativeNumber),
      app.add_option("--to", w.options.to_s,
                     "... up to this second: the same page size for a shorter time shows more detail")
          ->check(CLI::PositiveNumber),
      app.add_option("--page-mib", w.mebibytes, "about how large the page may be, in MiB")
          ->check(CLI::Range(2.0, 500.0))
          ->capture_default_str()};
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& e) {
    return app.exit(e) == 0 ? 0 : 2;
  }
  w.options.most_bytes = static_cast<std::size_t>(w.mebibytes * (1 << 20));
  const std::string& file = w.files.front();
  try {
    for (const CLI::Option* option : of_one)
      if (w.files.size() > 1 && option->count() > 0)
        throw input_error(option->get_name() + " is about the time line of one run: give one file with it");
    if (w.files.size() > 1)
      report_several(w);
    else
      report(file, w);
    return 0;
  } catch (const input_error& e) {
    std::cerr << "godwit-report: " << e.what() << '\n';
  } catch (const std::bad_alloc&) {
    std::cerr << "godwit-report: " << file << ": not enough memory; trace a shorter run\n";
  } catch (const std::exception& e) {
    std::cerr << "godwit-report: " << file << ": " << e.what() << '\n';
  }
  return 2;
}
