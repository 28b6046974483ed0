// godwit-report: what a run did, as a page. godwit-report FILE [-o page.html] [--text] ...
//
// FILE is what GODWIT_TRACE or GODWIT_STATS_JSON wrote. Errors are one line; exit status 2. See
// docs/report.md.
#include "page.hpp"

#include "base/output_file.hpp"

#include <CLI/CLI.hpp>

#include <cerrno>
#include <cstring>
#include <fstream>
#include <iostream>
#include <optional>
#include <unistd.h>

namespace {

using namespace godwit::report;

// In page/report.html.
constexpr std::string_view page_begins = "<meta name=\"generator\" content=\"godwit-report\">";

void print_text(const recording& r, const analysis* a) {
  for (const finding& f : explain(figures_of(r, a), r, a)) {
    std::cout << f.title << '\n';
    if (!f.text.empty()) std::cout << "  " << f.text << '\n';
    if (!f.advice.empty()) std::cout << "  To do: " << f.advice << '\n';
  }
}

void write_file(const std::string& path, const recording& r, const analysis* a, const std::string& name,
                const page_options& options) {
  const auto fail = [&](const std::string& why) { throw input_error(path + ": cannot write it: " + why); };
  std::string problem;
  const int fd = godwit::base::open_output(path, {page_begins}, problem);
  if (fd < 0) fail(problem + ": give -o another name in a folder that exists, or remove that file");
  close(fd);
  errno = 0;
  std::ofstream out(path, std::ios::binary | std::ios::trunc);
  if (!out) fail(std::strerror(errno));
  write_page(out, r, a, name, options);
  out.close();
  if (!out) fail(std::strerror(errno));
}

}  // namespace

int main(int argc, char** argv) {
  CLI::App app{"Turns a trace (GODWIT_TRACE) or a file of counters (GODWIT_STATS_JSON) into one HTML page."};
  app.name("godwit-report");
  std::string file, output;
  bool text = false;
  double mebibytes = 16;
  page_options options;
  app.add_option("FILE", file, "a trace or a file of counters")->required();
  app.add_option("-o,--output", output, "the page to write (default: FILE.html)");
  app.add_flag("--text", text, "print the summary only, write no page");
  app.add_option("--from", options.from_s, "keep the time line from this second on ...")
      ->check(CLI::NonNegativeNumber);
  app.add_option("--to", options.to_s,
                 "... up to this second: the same page size for a shorter time shows more detail")
      ->check(CLI::PositiveNumber);
  app.add_option("--page-mib", mebibytes, "about how large the page may be, in MiB")
      ->check(CLI::Range(2.0, 500.0))
      ->capture_default_str();
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& e) {
    return app.exit(e) == 0 ? 0 : 2;
  }
  options.most_bytes = static_cast<std::size_t>(mebibytes * (1 << 20));
  if (output.empty()) output = file + ".html";
  try {
    const mapped_file bytes(file);
    const recording r = parse(bytes.bytes(), file);
    std::optional<analysis> a;
    if (r.has_events && r.event_count() > 0) a = analyze(r);
    if (r.has_events && !a)
      std::cerr << "godwit-report: " << file << ": the trace has no events; counters only\n";
    if (text) {
      print_text(r, a ? &*a : nullptr);
      return 0;
    }
    const auto slash = file.rfind('/');
    write_file(output, r, a ? &*a : nullptr, slash == std::string::npos ? file : file.substr(slash + 1),
               options);
    std::cout << output << '\n';
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
