// See perfetto.hpp. Numbers of fields: Perfetto's protos/perfetto/trace.
#include "trace/perfetto.hpp"

#include "trace/code_text.hpp"

#include <algorithm>
#include <cstdio>

namespace godwit::trace {

namespace {

// TracePacket
constexpr std::uint32_t f_timestamp = 8, f_sequence = 10, f_event = 11, f_interned = 12, f_flags = 13,
                        f_track = 60;
// TrackEvent
constexpr std::uint32_t f_annotations = 4, f_type = 9, f_name_iid = 10, f_track_uuid = 11, f_name = 23,
                        f_value = 30, f_flows = 47, f_flows_end = 48;
constexpr std::uint32_t type_begin = 1, type_end = 2, type_instant = 3, type_counter = 4;
// DebugAnnotation
constexpr std::uint32_t f_note_name = 1, f_note_number = 3, f_note_text = 6;

constexpr std::uint64_t uuid_workers = 1, uuid_threads = 2, uuid_busy = 3, uuid_ready = 4;
std::uint64_t uuid_of_worker(std::uint32_t w) { return 100 + std::uint64_t{w}; }
std::uint64_t uuid_of_thread(std::uint32_t n) { return (1ull << 32) + n; }  // no worker's, however many

// By kind of event.
constexpr const char* came_by_names[] = {"unknown", "start of the run", "steal", "resume", "task"};
const char* came_by(kind k) {
  const auto number = static_cast<std::size_t>(k);
  return came_by_names[number < std::size(came_by_names) ? number : 0];
}
/// Some places have names of their own instead of a line.
std::string line_of(const place_text& where) {
  return where.line != 0 ? ":" + std::to_string(where.line) : std::string();
}
std::string short_place(const place_text& where) {
  return where.file.substr(where.file.rfind('/') + 1) + line_of(where);
}
std::string address_text(std::uint64_t address) {
  char text[32];
  std::snprintf(text, sizeof text, "global:0x%llx", static_cast<unsigned long long>(address));
  return text;
}
const char* left_by(kind k) {
  switch (k) {
    case kind::end:
      return "its end";
    case kind::suspend:
      return "suspension";
    case kind::steal:
      return "steal";
    default:
      return "unknown";
  }
}

}  // namespace

perfetto::perfetto(out_file& out, setup s)
    : out_(out), setup_(std::move(s)), described_(setup_.shown.size()) {
  packet_.clear();
  packet_.number(f_sequence, 1);
  packet_.number(f_flags, 1);  // the interned state begins here
  packet(packet_);
  describe_tracks();
}

void perfetto::describe_tracks() {
  track(uuid_busy, "busy workers", 0, 0, true);
  track(uuid_ready, "ready outstanding joins that nobody runs", 0, 1, true);
  track(uuid_workers, "workers", 0, 2, false);
  track(uuid_threads, "threads", 0, 3, false);
  for (std::uint32_t w = 0; w < setup_.workers.size(); ++w) {
    track(uuid_of_worker(w), setup_.workers[w], uuid_workers, w, false);
    if (setup_.dropped[w] == 0) continue;
    start(type_instant, uuid_of_worker(w));
    event_.text(f_name, std::to_string(setup_.dropped[w]) + " earlier events dropped");
    emit(setup_.first_ns[w]);
  }
  if (setup_.threads_left_out == 0) return;
  start(type_instant, uuid_threads);
  event_.text(f_name, std::to_string(setup_.threads_left_out) +
                          " threads have no track (those with the fewest events)");
  emit(setup_.origin_ns);
}

void perfetto::track(std::uint64_t uuid, std::string_view name, std::uint64_t parent, std::uint64_t rank,
                     bool is_counter) {
  part_.clear();
  part_.number(1, uuid);
  part_.text(2, name);
  if (parent != 0) part_.number(5, parent);
  if (is_counter) {
    message unit;
    unit.number(3, 2);  // UNIT_COUNT
    part_.nested(8, unit);
  }
  part_.number(11, 3);  // children in the order of their ranks
  part_.number(12, rank);
  packet_.clear();
  packet_.number(f_sequence, 1);
  packet_.nested(f_track, part_);
  packet(packet_);
}

void perfetto::packet(const message& m) {
  head_.clear();
  head_.head(1, m.bytes().size());  // Trace.packet
  out_.write(head_.bytes());
  out_.write(m.bytes());
}

void perfetto::start(std::uint32_t type, std::uint64_t track) {
  event_.clear();
  event_.number(f_type, type);
  event_.number(f_track_uuid, track);
}

/// The number that stands for @p name, which goes into field @p field of the next packet if it is new.
template <class Names>
std::uint64_t perfetto::intern(Names& known, std::uint32_t field, std::string_view name) {
  const auto [at, added] = known.try_emplace(typename Names::key_type(name), known.size() + 1);
  if (added) {
    part_.clear();
    part_.number(1, at->second);
    part_.text(2, name);
    interned_.nested(field, part_);
  }
  return at->second;
}

void perfetto::add(std::string_view name, std::uint64_t value) {
  const std::uint64_t number = intern(argument_names_, 3, name);  // debug_annotation_names
  part_.clear();
  part_.number(f_note_name, number);
  part_.number(f_note_number, value);
  event_.nested(f_annotations, part_);
}

void perfetto::add(std::string_view name, std::string_view text) {
  const std::uint64_t number = intern(argument_names_, 3, name);
  part_.clear();
  part_.number(f_note_name, number);
  part_.text(f_note_text, text);
  event_.nested(f_annotations, part_);
}

void perfetto::add_place(std::string_view how, std::uint32_t place) {
  if (place == 0) return;
  const place_text where = setup_.where(place);
  add(how, where.file + line_of(where));
  if (!where.function.empty()) add("function", where.function);
}

/// The name of the event: one that comes again and again.
void perfetto::name(std::string_view name) {
  event_.number(f_name_iid, intern(event_names_, 2, name));  // event_names
}

const std::string& perfetto::name_of(std::uint32_t place) {
  const auto [at, added] = places_.try_emplace(place);
  if (added) {
    const place_text where = setup_.where(place);
    at->second = name_of_place(where.function, short_place(where));
  }
  return at->second;
}

void perfetto::emit(std::uint64_t time_ns) {
  packet_.clear();
  packet_.number(f_timestamp, time_ns - std::min(time_ns, setup_.origin_ns));
  packet_.number(f_sequence, 1);
  packet_.number(f_flags, 2);  // needs the interned state
  if (!interned_.bytes().empty()) packet_.nested(f_interned, interned_);
  interned_.clear();
  packet_.nested(f_event, event_);
  packet(packet_);
}

void perfetto::name(const worker_slice& s) {
  static constexpr const char* idle_names[] = {"idle: no work", "idle: at an outstanding join",
                                               "idle: waits for another host",
                                               "idle: its thread waits, at no join"};
  static constexpr const char* global_names[] = {"fetches global memory", "writes back global memory",
                                                 "makes room for global memory"};
  switch (s.what) {
    case activity::thread:  // else by where it came to
      for (const std::uint32_t place : {s.began, s.place})
        if (place != 0 && !name_of(place).empty()) return name(name_of(place));
      return event_.text(f_name, "thread " + std::to_string(s.thread));
    case activity::named: {
      const std::string text = setup_.text(s.address);
      return name(text.empty() ? "a name that cannot be read" : text);
    }
    case activity::below:
      return name("waits below others");
    case activity::idle:
      return name(s.detail < std::size(idle_names) ? idle_names[s.detail] : "idle");
    case activity::sleep:
      return name("sleeps");
    case activity::getting:
      return name(came_by(s.how));
    case activity::far_call:
      name("asks another host");
      return add("request", s.detail);
    case activity::message:
      return name("serves another host");
    case activity::global:
      return name(s.detail < std::size(global_names) ? global_names[s.detail] : "global memory");
    case activity::access: {
      static constexpr const char* names[] = {"gets a value of another host", "puts a value of another host",
                                              "atomic of another host"};
      name(s.detail < std::size(names) ? names[s.detail] : "access to another host");
      return add("address", address_text(s.address));
    }
    case activity::moves:
      name("moves memory here");
      add("allocation", address_text(s.address));
      add("first part", s.part);
      add("parts that came", s.count);
      return add("to worker", s.to);
    case activity::part_wait:
      name("waits for memory that moves");
      if (s.address != 0) add("address", address_text(s.address));
      return;
  }
}

void perfetto::on(const worker_slice& s) {
  const std::uint64_t where = uuid_of_worker(s.worker);
  start(type_begin, where);
  name(s);
  if (s.thread != 0) {
    add("thread", s.thread);
    add("record", s.record);
  }
  if (s.what == activity::thread) {
    if (s.how == kind::count_)
      add("began before the trace", 1);
    else
      add("came by", came_by(s.how));
    if (s.why != kind::count_) add("left by", left_by(s.why));
    if (s.copied_out != 0) add("bytes copied out", s.copied_out);
    add_place("began at", s.began);
    add_place("at", s.place);
  }
  if (s.from != nobody && s.how != kind::start)
    add(s.what == activity::far_call ? "to worker"
        : s.what == activity::access ? "owner"
                                     : "from worker",
        s.from);
  if (s.bytes != 0)
    add(s.what == activity::global || s.what == activity::moves ? "bytes" : "bytes copied in", s.bytes);
  if (s.latency_ns != 0) add("latency ns", s.latency_ns);
  if (s.flow != 0) event_.fixed(f_flows_end, s.flow);
  emit(s.begin_ns);
  start(type_end, where);
  emit(s.end_ns);
}

void perfetto::on(const thread_slice& s) {
  if (s.thread >= setup_.shown.size() || !setup_.shown[s.thread]) return;
  const std::uint64_t where = uuid_of_thread(s.thread);
  if (!described_[s.thread]) {
    described_[s.thread] = true;
    track(where, "thread " + std::to_string(s.thread), uuid_threads, s.thread, false);
  }
  start(type_begin, where);
  switch (s.what) {
    case state::running:
      name("runs on worker " + std::to_string(s.worker));
      add("worker", s.worker);
      break;
    case state::ready:
      name("ready: what it waited for is there");
      break;
    case state::yielded:
      name("ready: gave way");
      break;
    case state::waiting: {
      const std::string what = s.waits_for != 0 ? setup_.text(s.waits_for) : std::string();
      name("waits" + (what.empty() ? what : " for a " + what) +
           (s.place != 0 ? " at " + short_place(setup_.where(s.place)) : std::string()));
      add_place("at", s.place);
      break;
    }
    case state::none:
      break;
  }
  emit(s.begin_ns);
  start(type_end, where);
  emit(s.end_ns);
}

/// Something about movable memory.
void perfetto::name_part(const instant& i) {
  static constexpr const char* results[] = {"part came", "part given", "part stayed: busy",
                                            "part stayed: no room"};
  add("allocation", address_text(i.address));
  if (i.what == mark::freed) return name("movable memory freed");
  if (i.what == mark::allocated) {
    name("movable memory allocated");
    add("first part", i.part);
    add("parts", i.count);
    add("bytes of a part", i.bytes);
    if (i.to != nobody) add("home", i.to);
    return;
  }
  if (i.what == mark::used) {
    name("movable memory used");
    add("part", i.part);
    add("accesses by its host", i.bytes);
    add("accesses by others", i.count);
    if (i.to != nobody) add("most of these by the host of worker", i.to);
    return;
  }
  const auto result = static_cast<std::size_t>(i.result);
  name(result < std::size(results) ? results[result] : "part");
  add("part", i.part);
  add("from worker", i.other);
  add("to worker", i.to);
  if (i.bytes != 0) add("bytes", i.bytes);
  if (i.took_ns != 0) add("ns", i.took_ns);
}

void perfetto::on(const instant& i) {
  start(type_instant, uuid_of_worker(i.worker));
  switch (i.what) {
    case mark::stolen:
      name("stolen");
      add("to worker", i.other);
      if (i.bytes != 0) add("bytes copied in", i.bytes);
      break;
    case mark::done:
      name("completes a join");
      break;
    case mark::wakes:
      name("wakes a thread that waits");
      break;
    case mark::suspended:
      name("suspends, parent goes on");
      if (i.bytes != 0) add("bytes copied out", i.bytes);
      add_place("at", i.place);
      break;
    case mark::exposed:
      name("exposes");
      add("continuations", i.bytes);
      if (i.by_signal) add("by signal", 1);
      break;
    case mark::stayed:
      name("stays for its host's heap");
      add_place("at", i.place);
      break;
    case mark::kept:
      name(i.how == system_kind::waits   ? "waited in the operating system"
           : i.how == system_kind::aside ? "others had the CPU"
                                         : "the operating system worked");
      add("ns", i.ns);
      if (i.count != 0) add("page faults", i.count);
      break;
    case mark::part:
    case mark::allocated:
    case mark::freed:
    case mark::used:
      name_part(i);
      break;
  }
  if (i.thread != 0) add("thread", i.thread);
  for (const std::uint64_t f : i.flows) event_.fixed(f_flows, f);
  emit(i.time_ns);
}

void perfetto::on(counter which, std::uint64_t time_ns, std::uint32_t value) {
  start(type_counter, which == counter::busy_workers ? uuid_busy : uuid_ready);
  event_.number(f_value, value);
  emit(time_ns);
}

}  // namespace godwit::trace
