// The harness: interleaved repetitions, tables, JSON. See harness.hpp.

#include "harness.hpp"

#include "base/output_file.hpp"

#include <pthread.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <thread>

#include "godwit_run.hpp"

namespace bench {

bool common_options::wants_peer(const std::string& name) const {
  return std::find(peers.begin(), peers.end(), name) != peers.end();
}

std::vector<std::string> all_peers() {
  std::vector<std::string> names = {"tbb", "openmp"};
#if BENCH_HAS_ARGOBOTS
  names.emplace_back("argobots");
#endif
#if BENCH_HAS_MASSIVETHREADS
  names.emplace_back("massivethreads");
#endif
#if BENCH_HAS_QTHREADS
  names.emplace_back("qthreads");
#endif
#if BENCH_HAS_LACE
  names.emplace_back("lace");
#endif
#if BENCH_HAS_LIBFORK
  names.emplace_back("libfork");
#endif
  return names;
}

double quantile(std::vector<double> values, double q) {
  if (values.empty()) return 0;
  std::sort(values.begin(), values.end());
  const double at = q * static_cast<double>(values.size() - 1);
  const auto low = static_cast<std::size_t>(at);
  const auto high = std::min(low + 1, values.size() - 1);
  return values[low] + (at - static_cast<double>(low)) * (values[high] - values[low]);
}

double median(std::vector<double> values) { return quantile(std::move(values), 0.5); }

std::string grouped(std::uint64_t n) {
  std::string digits = std::to_string(n);
  for (auto at = static_cast<std::ptrdiff_t>(digits.size()) - 3; at > 0; at -= 3)
    digits.insert(static_cast<std::size_t>(at), ",");
  return digits;
}

void usage_error(const std::string& line) {
  std::fprintf(stderr, "%s\n", line.c_str());
  std::exit(2);
}

const series* find(const std::vector<series>& all, const std::string& name, unsigned workers) {
  for (const auto& s : all)
    if (s.name == name && s.workers == workers && !s.samples.empty()) return &s;
  return nullptr;
}

const std::vector<std::string>& known_policies() {
  static const std::vector<std::string> known = [] {
    std::vector<std::string> names;
    for (const char* name : {"greedy", "stalling", "locked_free", "stalling_locked_free", "child_full",
                             "child_rtc", "iso", "crude", "lazy"}) {
      try {
        godwit::with_policy(godwit::choice::named{name}, [](auto) {});
        names.emplace_back(name);
      } catch (const std::invalid_argument&) {  // this build's header does not have it
      }
    }
    return names;
  }();
  return known;
}

std::vector<std::string> paper_policies() {
  std::vector<std::string> names;
  for (const auto& name : known_policies())
    if (name != "iso" && name != "crude" && name != "lazy") names.push_back(name);
  return names;
}

std::string under(const std::string& form, const std::string& policy) {
  return policy == godwit::policies::greedy::name ? form : form + ", " + policy;
}

namespace {
/// What the JSON has of a variant's counts, and which quantile over the rounds.
constexpr struct {
  const char* name;
  std::uint64_t scheduler_counts::*member;
  double quantile;
} count_fields[] = {{"steals", &scheduler_counts::steals, 0.5},
                    {"steals_failed", &scheduler_counts::steals_failed, 0.5},
                    {"steals_timed", &scheduler_counts::steals_timed, 0.5},
                    {"steal_ns", &scheduler_counts::steal_ns, 0.5},
                    {"steal_copy_ns", &scheduler_counts::steal_copy_ns, 0.5},
                    {"spawns", &scheduler_counts::spawns, 0.5},
                    {"suspends", &scheduler_counts::suspends, 0.5},
                    {"outstanding_joins", &scheduler_counts::outstanding_joins, 0.5},
                    {"outstanding_resumed", &scheduler_counts::outstanding_resumed, 0.5},
                    {"outstanding_ns", &scheduler_counts::outstanding_ns, 0.5},
                    {"stolen_bytes", &scheduler_counts::stolen_bytes, 0.5},
                    {"far_steals", &scheduler_counts::far_steals, 0.5},
                    {"far_failed", &scheduler_counts::far_failed, 0.5},
                    {"messages", &scheduler_counts::messages, 0.5},
                    {"message_ns", &scheduler_counts::message_ns, 0.5},
                    {"stack_high_bytes", &scheduler_counts::stack_high_bytes, 1},
                    {"heap_high_bytes", &scheduler_counts::heap_high_bytes, 1}};

double median_of_ratios(const series* a, const series* b, double sample::*time) {
  if (a == nullptr || b == nullptr) return 0;
  std::vector<double> ratios;
  for (std::size_t i = 0; i < std::min(a->samples.size(), b->samples.size()); ++i)
    ratios.push_back(a->samples[i].*time / b->samples[i].*time);
  return median(ratios);
}
}  // namespace

double paired_ratio(const series* a, const series* b) { return median_of_ratios(a, b, &sample::seconds); }
double paired_cpu_ratio(const series* a, const series* b) {
  return median_of_ratios(a, b, &sample::cpu_seconds);
}

void on_big_stack(const std::function<void()>& f) {
  constexpr std::size_t bytes = std::size_t{1} << 30;  // virtual until touched
  pthread_attr_t attr;
  pthread_attr_init(&attr);
  pthread_attr_setstacksize(&attr, bytes);
  pthread_t thread;
  const int rc = pthread_create(
      &thread, &attr,
      [](void* p) -> void* {
        (*static_cast<const std::function<void()>*>(p))();
        return nullptr;
      },
      const_cast<std::function<void()>*>(&f));
  pthread_attr_destroy(&attr);
  if (rc != 0) throw std::system_error(rc, std::generic_category(), "a thread with a stack of 1 GiB");
  pthread_join(thread, nullptr);
}

void add_peer(std::vector<variant>& to, const program& p, const std::string& name, bool installed,
              const std::function<bool(unsigned)>& compute) {
  add_timed_peer(to, p, name, installed, [compute](unsigned w) {
    auto [ok, timing] = run_plain([&] { return compute(w); });
    timing.correct = ok;
    return timing;
  });
}

void add_timed_peer(std::vector<variant>& to, const program& p, const std::string& name, bool installed,
                    const std::function<sample(unsigned)>& run) {
  if (!p.options().wants_peer(name)) return;
  if (!installed) {
    to.push_back({name, 0, {}, true});
    return;
  }
  std::vector<unsigned> counts = {1};
  if (p.most_workers() > 1) counts.push_back(p.most_workers());
  for (const unsigned w : counts)
    to.push_back({name, w,
                  [=] {
                    const sample s = run(w);
                    // Pools of idle threads spin for a moment; the next variant shall not feel it.
                    std::this_thread::sleep_for(std::chrono::milliseconds(10));
                    return s;
                  },
                  true});
}

void program::parse() {
  read_arguments();
  try {
    godwit::options o;
    o.workers = 1;
    if (godwit::resolve_options(o).workers != 1)
      usage_error(name_ +
                  ": this benchmark sets the number of workers itself: use --workers instead of "
                  "--godwit-workers or GODWIT_WORKERS");
    if (!options_.policies.empty() && godwit::resolve_options().policy != godwit::options().policy)
      usage_error(name_ +
                  ": this benchmark sets the policy itself: use --policies instead of --godwit-policy or "
                  "GODWIT_POLICY");
    workers_ = options_.workers;
    if (workers_.empty()) {
      const unsigned usable = godwit::run<unsigned>([] { return godwit::worker_count(); });
      workers_ = {1};
      if (usable > 1) workers_.push_back(usable);
    }
  } catch (const std::exception& e) {
    usage_error(name_ + ": " + e.what());
  }
  if (!options_.json.empty() && options_.json != "-" && godwit::is_first_process()) {
    std::string problem;
    const int fd = godwit::base::open_output(options_.json, {"{\n  \"benchmark\": "}, problem);
    if (fd < 0)
      usage_error(name_ + ": cannot write " + options_.json + ": " + problem + ": give --json another name");
    close(fd);
  }
  json_["benchmark"] = name_;
  json_["command"] = command_;
  json_["machine"] = machine();
  json_["repetitions"] = options_.reps;
  json_["definitions"] = {
      {"interleaved", "round i runs every variant once; rounds follow one another"},
      {"median_s",
       "median over the rounds of the computation's time; in a godwit run from root's start to its end"},
      {"total_median_s", "the same with starting and stopping the workers"},
      {"over_reference", "median over the rounds of (time / time of the reference in the same round)"},
      {"cpu_median_s",
       "CPU time: of the computation; on several workers the sum over all, start and end included"},
      {"cpu_over_reference", "the same ratio of CPU times: what can be compared on a busy machine"},
      {"foreign_cpus", "CPUs that other programs kept busy meanwhile, on average"},
      {"counts",
       "medians over the rounds of sums over the workers; stack_high_bytes, heap_high_bytes: the most of any "
       "worker"}};
}

unsigned program::most_workers() const { return *std::max_element(workers_.begin(), workers_.end()); }

std::FILE* program::out() const { return options_.json == "-" ? stderr : stdout; }

std::vector<series> program::measure(const std::vector<variant>& variants) {
  std::vector<series> all;
  all.resize(variants.size());
  for (std::size_t i = 0; i < variants.size(); ++i) {
    all[i].name = variants[i].name;
    all[i].policy = variants[i].policy;
    all[i].workers = variants[i].workers;
    all[i].available = static_cast<bool>(variants[i].run);
  }
  for (int round = 0; round < options_.reps; ++round) {
    for (std::size_t i = 0; i < variants.size(); ++i) {
      if (!variants[i].run || !all[i].lost.empty() || (variants[i].peer && round >= options_.peer_reps))
        continue;
      // Under MPI all ranks are here: plain programs run in one of them, the others wait at the next godwit
      // run.
      if (variants[i].workers == 0 && !godwit::is_first_process()) {
        all[i].samples.emplace_back();
        continue;
      }
      if (isatty(STDERR_FILENO))
        std::fprintf(stderr, "\r\033[Kround %d of %d: %s, %u workers", round + 1, options_.reps,
                     variants[i].name.c_str(), variants[i].workers);
      all[i].samples.push_back(variants[i].run());
      const sample& last = all[i].samples.back();
      if (variants[i].peer && (last.gave_up || !last.correct)) {  // said beside the others; ours go on
        all[i].lost = last.gave_up ? "gave up after " + std::to_string(options_.peer_limit_s) + " s"
                                   : "gave up: wrong result, or crashed";
        all[i].samples.clear();
        continue;
      }
      if (!last.correct)
        wrong("wrong result: " + variants[i].name + " on " + std::to_string(variants[i].workers) +
              " workers");
    }
  }
  if (isatty(STDERR_FILENO)) std::fputs("\r\033[K", stderr);

  for (auto& s : all) {
    if (s.samples.empty()) continue;
    const auto of = [&](auto field) {
      std::vector<double> v;
      for (const auto& one : s.samples) v.push_back(static_cast<double>(field(one)));
      return v;
    };
    s.median_s = median(of([](const sample& x) { return x.seconds; }));
    s.min_s = quantile(of([](const sample& x) { return x.seconds; }), 0);
    s.total_median_s = median(of([](const sample& x) { return x.total_seconds; }));
    s.cpu_median_s = median(of([](const sample& x) { return x.cpu_seconds; }));
    s.over_reference = paired_ratio(&s, &all.front());
    s.cpu_over_reference = paired_cpu_ratio(&s, &all.front());
    for (const auto& field : count_fields)
      s.counts.*field.member = static_cast<std::uint64_t>(std::llround(
          quantile(of([&](const sample& x) { return x.counts.*field.member; }), field.quantile)));
  }
  return all;
}

void program::show(const std::string& title, const ordered_json& parameters, const std::vector<series>& all) {
  std::FILE* const to = out();
  std::fprintf(to, "%s\n", title.c_str());
  std::fprintf(to, "  %-24s %7s %9s %9s %9s %9s %8s %8s %8s %8s %8s %8s\n", "variant", "workers", "median s",
               "min s", "total s", "CPU s", "/ref", "CPU/ref", "speed-up", "steals", "suspends", "stack");
  ordered_json rows = ordered_json::array();
  for (const auto& s : all) {
    ordered_json row;
    row["name"] = s.name;
    row["workers"] = s.workers;
    if (!s.policy.empty()) row["policy"] = s.policy;
    if (s.samples.empty()) {
      const std::string status = !s.lost.empty() ? s.lost : "not installed";
      std::fprintf(to, "  %-24s %7u %13s\n", s.name.c_str(), s.workers, status.c_str());
      row["status"] = status;
      rows.push_back(row);
      continue;
    }
    const std::string workers = s.workers == 0 ? "-" : std::to_string(s.workers);
    std::fprintf(to, "  %-24s %7s %9.4f %9.4f %9.4f %9.4f %8.3f %8.3f %8.3f", s.name.c_str(), workers.c_str(),
                 s.median_s, s.min_s, s.total_median_s, s.cpu_median_s, s.over_reference,
                 s.cpu_over_reference, 1 / s.over_reference);
    row["median_s"] = s.median_s;
    row["min_s"] = s.min_s;
    row["total_median_s"] = s.total_median_s;
    row["cpu_median_s"] = s.cpu_median_s;
    row["over_reference"] = s.over_reference;
    row["cpu_over_reference"] = s.cpu_over_reference;
    row["speed_up"] = 1 / s.over_reference;
    if (s.samples.front().scheduled) {
      std::fprintf(to, " %8llu %8llu %5llu KB", static_cast<unsigned long long>(s.counts.steals),
                   static_cast<unsigned long long>(s.counts.suspends),
                   static_cast<unsigned long long>(s.counts.stack_high_bytes / 1024));
      for (const auto& field : count_fields) row["counts"][field.name] = s.counts.*field.member;
    }
    std::fputc('\n', to);
    for (const auto& one : s.samples) row["seconds"].push_back(one.seconds);
    rows.push_back(row);
  }
  std::fprintf(
      to, "  %d rounds, interleaved; /ref: median over the rounds of time / time of %s in the same round\n",
      options_.reps, all.front().name.c_str());
  json_["measurements"].push_back(
      {{"title", title}, {"reference", all.front().name}, {"parameters", parameters}, {"variants", rows}});
}

void program::figure(const std::string& key, const std::string& what, double value, const char* unit,
                     const std::string& definition) {
  std::fprintf(out(), "  %s: %.3g%s%s  (%s)\n", what.c_str(), value, *unit == '\0' ? "" : " ", unit,
               definition.c_str());
  json_["figures"][key] = {{"what", what}, {"value", value}, {"unit", unit}, {"definition", definition}};
}

void program::figure(const std::string& key, const std::string& what, const std::vector<double>& samples,
                     const char* unit, const std::string& definition) {
  const double middle = median(samples), least = quantile(samples, 0);
  std::fprintf(out(), "  %s: %.3g %s, least %.3g  (%s)\n", what.c_str(), middle, unit, least,
               definition.c_str());
  json_["figures"][key] = {{"what", what},       {"value", middle}, {"least", least},
                           {"samples", samples}, {"unit", unit},    {"definition", definition}};
}

void program::wrong(const std::string& line) {
  std::fprintf(stderr, "%s: %s\n", name_.c_str(), line.c_str());
  status_ = 1;
}

int program::finish() {
  const double others = load_.cpus();
  json_["foreign_cpus"] = others;
  if (others > 0.1)
    std::fprintf(out(),
                 "  the machine is busy: other programs used %.1f CPUs meanwhile; figures of several workers "
                 "mean little now, CPU/ref of one worker does\n",
                 others);
  json_["correct"] = status_ == 0;
  if (options_.json == "-") {
    std::printf("%s\n", json_.dump(2).c_str());
  } else if (!options_.json.empty() && godwit::is_first_process()) {
    std::ofstream file(options_.json);
    file << json_.dump(2) << '\n';
    if (!file.flush()) usage_error(name_ + ": cannot write " + options_.json);
  }
  return status_;
}

}  // namespace bench
