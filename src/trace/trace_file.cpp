// See trace_file.hpp.
#include "trace/trace_file.hpp"

#include "base/code_place.hpp"
#include "trace/code_text.hpp"
#include "trace/perfetto.hpp"

#include <algorithm>
#include <cstring>
#include <fcntl.h>
#include <sys/syscall.h>
#include <unistd.h>

namespace godwit::trace {

namespace {

constexpr std::size_t events_per_chunk = (1 << 20) / sizeof(event);
constexpr std::size_t longest_text = 4096;

/// First pass: how many slices each thread would have in its track.
class counting final : public sink {
 public:
  void on(const worker_slice&) override {}
  void on(const thread_slice& s) override {
    if (s.thread >= slices_of.size()) slices_of.resize(std::size_t{s.thread} * 2 + 64);
    ++slices_of[s.thread];
  }
  void on(const instant&) override {}
  void on(counter, std::uint64_t, std::uint32_t) override {}
  std::vector<std::uint32_t> slices_of;
};

void run_through(merger m, model& to, std::uint64_t end_ns) {
  std::uint32_t worker = 0;
  for (event e; m.next(worker, e);) to.event(worker, e);
  to.finish(end_ns);
}

}  // namespace

// A pipe takes what is there and refuses what is not; a load would fault.
std::string text_at(std::uint64_t address) {
  std::string text;
  int ends[2];
  if (address == 0 || pipe2(ends, O_CLOEXEC | O_NONBLOCK) != 0) return text;
  for (bool more = true; more && text.size() < longest_text;) {
    const std::uint64_t at = address + text.size();
    char piece[256];
    const std::size_t n = std::min<std::size_t>(sizeof piece, 4096 - at % 4096);  // not into the next page
    // Not write(): a sanitizer would look at more than the text.
    const auto taken = static_cast<ssize_t>(syscall(SYS_write, ends[1], at, n));
    if (taken <= 0 || read(ends[0], piece, static_cast<std::size_t>(taken)) != taken) {
      text.clear();
      break;
    }
    const std::size_t length = strnlen(piece, static_cast<std::size_t>(taken));
    text.append(piece, length);
    more = length == static_cast<std::size_t>(taken);
  }
  close(ends[0]);
  close(ends[1]);
  return text;
}

trace_file::trace_file(const std::string& path) : out_(path, "trace") {
  out_.make_readable();  // it is read back while it is written
}

void trace_file::begin(std::uint32_t workers) {
  pieces_.resize(workers);
  first_ns_.resize(workers);
  sum_.events_of.resize(workers);
  sum_.dropped_of.resize(workers);
  sum_.origin_ns = ~std::uint64_t{0};
}

void trace_file::chunk(trace::chunk what, std::uint32_t worker, std::uint64_t count, const void* data,
                       std::size_t bytes) {
  raw_header h{};
  std::memcpy(h.magic, raw_magic, sizeof h.magic);
  h.what = what;
  h.worker = worker;
  h.count = count;
  h.bytes = bytes;
  message inner, outer;
  inner.head(raw_field, sizeof h + bytes);
  outer.head(1, inner.bytes().size() + sizeof h + bytes);  // Trace.packet
  out_.write(outer.bytes());
  out_.write(inner.bytes());
  out_.write(&h, sizeof h);
  out_.write(data, bytes);
}

void trace_file::append(std::uint32_t worker, const event* events, std::size_t count) {
  for (std::size_t done = 0; done < count;) {
    const std::size_t n = std::min(events_per_chunk, count - done);
    const event* first = events + done;
    chunk(chunk::events, worker, n, first, n * sizeof(event));
    pieces_[worker].push_back({out_.size() - n * sizeof(event), n});
    if (sum_.events_of[worker] == 0) first_ns_[worker] = first->time_ns;
    sum_.events_of[worker] += n;
    sum_.events += n;
    for (const event* e = first; e != first + n; ++e) {
      sum_.origin_ns =
          std::min(sum_.origin_ns, e->time_ns - std::min<std::uint64_t>(e->time_ns, e->duration_ns));
      sum_.end_ns = std::max(sum_.end_ns, e->time_ns);
      const auto what = static_cast<kind>(e->what);
      if (what == kind::place || what == kind::waits || what == kind::name) strings_.try_emplace(e->a);
      if (what == kind::place) strings_.try_emplace(e->b);
      if (what == kind::callers) code_.insert({e->a, e->b});
      if (what == kind::expose || (what == kind::spawns && e->a != 0)) code_.insert(e->a);
    }
    done += n;
  }
}

void trace_file::write_strings(const std::function<std::string(std::uint64_t)>& text,
                               const code_names& code) {
  for (auto& [address, value] : strings_) value = text(address);
  if (const std::vector<std::uint64_t> addresses(code_.begin(), code_.end()); code && !addresses.empty()) {
    std::vector<std::string> names = code(addresses);
    for (std::size_t i = 0; i < names.size(); ++i) strings_[addresses[i]] = std::move(names[i]);
  }
  std::string all;
  std::uint64_t count = 0;
  for (const auto& [address, value] : strings_) {
    if (value.empty()) continue;
    const auto length = static_cast<std::uint32_t>(value.size());
    all.append(reinterpret_cast<const char*>(&address), sizeof address);
    all.append(reinterpret_cast<const char*>(&length), sizeof length);
    all += value;
    ++count;
  }
  chunk(chunk::strings, 0, count, all.data(), all.size());
}

const std::string& trace_file::string_at(std::uint64_t address) const {
  static const std::string none;
  const auto found = strings_.find(address);
  return found == strings_.end() ? none : found->second;
}

merger trace_file::read_back() {
  out_.flush();
  std::vector<event_source> sources;
  for (const std::vector<piece>& pieces : pieces_)
    sources.push_back([this, &pieces, number = std::size_t{0}, done = std::uint64_t{0}](
                          event* to, std::size_t most) mutable -> std::size_t {
      if (number == pieces.size()) return 0;
      const piece& p = pieces[number];
      const std::size_t n = std::min<std::size_t>(most, p.count - done);
      const std::size_t got = out_.read(p.at + done * sizeof(event), to, n * sizeof(event)) / sizeof(event);
      done += got;
      if (done == p.count) {
        ++number;
        done = 0;
      }
      return got;
    });
  const std::size_t per_worker =
      (std::size_t{32} << 20) / sizeof(event) / std::max<std::size_t>(sources.size(), 1);
  return merger(std::move(sources), std::clamp<std::size_t>(per_worker, 64, 8192));
}

/// By number: which threads get a track.
std::vector<bool> trace_file::choose(const std::vector<std::uint32_t>& slices_of, std::uint32_t most_tracks) {
  std::vector<bool> shown(sum_.threads + 1, sum_.threads <= most_tracks);
  if (sum_.threads <= most_tracks) return shown;
  std::vector<std::uint32_t> numbers(sum_.threads);
  for (std::uint32_t i = 0; i < sum_.threads; ++i) numbers[i] = i + 1;
  const auto slices = [&](std::uint32_t n) { return n < slices_of.size() ? slices_of[n] : 0; };
  std::nth_element(numbers.begin(), numbers.begin() + most_tracks, numbers.end(),
                   [&](std::uint32_t a, std::uint32_t b) {
                     return slices(a) != slices(b) ? slices(a) > slices(b) : a < b;
                   });
  for (std::uint32_t i = 0; i < most_tracks; ++i) shown[numbers[i]] = true;
  sum_.threads_left_out = sum_.threads - most_tracks;
  return shown;
}

const summary& trace_file::finish(const std::vector<std::string>& names,
                                  const std::function<std::string(const summary&)>& info,
                                  const std::function<std::string(std::uint64_t)>& text,
                                  std::uint32_t most_tracks, const code_names& code) {
  for (const std::uint64_t d : sum_.dropped_of) sum_.dropped += d;
  if (sum_.events == 0) sum_.origin_ns = 0;
  write_strings(text, code);
  const auto workers = static_cast<std::uint32_t>(pieces_.size());
  counting counts;
  std::vector<std::uint64_t> initial(workers);
  if (sum_.dropped != 0) {  // what workers ran when their events begin shows only later
    model find(workers, counts);
    run_through(read_back(), find, sum_.end_ns);
    initial = find.initial();
    counts.slices_of.clear();
  }
  model first(workers, counts, initial);
  run_through(read_back(), first, sum_.end_ns);
  sum_.threads = first.threads();

  perfetto::setup s;
  s.shown = choose(counts.slices_of, most_tracks);
  s.origin_ns = sum_.origin_ns;
  s.workers = names;
  s.dropped = sum_.dropped_of;
  s.first_ns = first_ns_;
  s.threads_left_out = sum_.threads_left_out;
  const model* second_model = nullptr;
  s.where = [&](std::uint32_t number) {
    const place& p = second_model->where(number);
    for (const std::uint64_t caller : p.callers)
      if (const code_text code = code_text_of(string_at(caller)); !code.place.empty())
        return place_text{code.place, code.function, 0};
    return place_text{string_at(p.file), string_at(p.function), p.line};
  };
  s.text = [&](std::uint64_t address) { return string_at(address); };
  const std::string head = info(sum_);
  chunk(chunk::info, 0, 1, head.data(), head.size());
  perfetto packets(out_, std::move(s));
  model second(workers, packets, initial);
  second_model = &second;
  run_through(read_back(), second, sum_.end_ns);
  out_.finish();
  return sum_;
}

}  // namespace godwit::trace
