// Files into recordings: mapping, the envelope of Perfetto packets, JSON. See input.hpp.
#include "input.hpp"

#include "trace/file.hpp"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <optional>
#include <utility>

namespace godwit::report {
namespace {

using nlohmann::json;
using bytes_view = std::span<const std::byte>;

/// A file that names more is damaged: options allow no more, and each worker takes some bytes of a file. So
/// the size of a damaged one bounds what it costs in memory.
std::uint32_t most_workers(std::size_t file_bytes) {
  return static_cast<std::uint32_t>(std::clamp<std::size_t>(file_bytes, 1u << 16, 1u << 24));
}

/// Protocol buffers, as much of them as skipping needs. All positions are within the file, for messages.
class wire_reader {
 public:
  wire_reader(bytes_view bytes, std::size_t base, const std::string& name)
      : bytes_(bytes), base_(base), name_(name) {}
  bool done() const noexcept { return at_ == bytes_.size(); }
  std::size_t position() const noexcept { return base_ + at_; }

  struct field {
    std::uint64_t number;
    bytes_view data;  ///< of a length-delimited field
    std::size_t position;
    bool delimited;
  };
  field next() {
    const std::uint64_t tag = varint();
    switch (tag & 7) {
      case 0:
        varint();
        break;
      case 1:
        take(8);
        break;
      case 2: {
        const std::uint64_t length = varint();
        const std::size_t where = position();
        return {tag >> 3, take(length), where, true};
      }
      case 5:
        take(4);
        break;
      default:
        throw input_error(name_ + ": not a godwit trace (byte " + std::to_string(position()) +
                          " starts no field); give a file written with GODWIT_TRACE or GODWIT_STATS_JSON");
    }
    return {tag >> 3, {}, position(), false};
  }

 private:
  std::uint64_t varint() {
    std::uint64_t value = 0;
    for (int shift = 0; shift < 64; shift += 7) {
      const auto byte = static_cast<std::uint64_t>(take(1)[0]);
      value |= (byte & 0x7f) << shift;
      if ((byte & 0x80) == 0) return value;
    }
    throw input_error(name_ + ": not a godwit trace (a number of more than 64 bits at byte " +
                      std::to_string(position()) + ")");
  }
  bytes_view take(std::uint64_t length) {
    if (length > bytes_.size() - at_)
      throw input_error(name_ + ": truncated: byte " + std::to_string(position()) + " announces " +
                        std::to_string(length) + " bytes, " + std::to_string(bytes_.size() - at_) +
                        " are there; was the run killed, or the disk full?");
    const bytes_view piece = bytes_.subspan(at_, length);
    at_ += length;
    return piece;
  }
  bytes_view bytes_;
  std::size_t base_, at_ = 0;
  const std::string& name_;
};

template <class T>
T read_as(bytes_view bytes, std::size_t at) {
  T value;
  std::memcpy(&value, bytes.data() + at, sizeof value);
  return value;
}

[[noreturn]] void damaged(const std::string& name, std::size_t where, const std::string& what) {
  throw input_error(name + ": damaged: chunk at byte " + std::to_string(where) + ": " + what);
}

void read_strings(recording& r, bytes_view body, std::uint64_t count, const std::string& name,
                  std::size_t where) {
  std::size_t at = 0;
  for (std::uint64_t i = 0; i < count; ++i) {
    if (body.size() - at < 12) damaged(name, where, "its strings are cut off");
    const auto address = read_as<std::uint64_t>(body, at);
    const auto length = read_as<std::uint32_t>(body, at + 8);
    at += 12;
    if (body.size() - at < length) damaged(name, where, "a string is longer than the chunk");
    r.strings[address].assign(reinterpret_cast<const char*>(body.data() + at), length);
    at += length;
  }
}

void read_chunk(recording& r, bytes_view data, const std::string& name, std::size_t where,
                std::uint32_t most) {
  trace::raw_header header;
  if (data.size() < sizeof header) damaged(name, where, "shorter than its head");
  std::memcpy(&header, data.data(), sizeof header);
  if (std::memcmp(header.magic, trace::raw_magic, sizeof header.magic) != 0) {
    if (std::memcmp(header.magic, trace::raw_magic, 6) == 0)
      throw input_error(name + ": written by another version of godwit (format " +
                        std::string(header.magic + 6, 2) + ", this one reads " +
                        std::string(trace::raw_magic + 6, 2) + "); use that version's godwit-report");
    damaged(name, where, "does not start with the letters 'godwit'");
  }
  const bytes_view body = data.subspan(sizeof header);
  if (header.bytes != body.size()) damaged(name, where, "its head gives another length");
  switch (header.what) {
    case trace::chunk::info: {
      json info = json::parse(reinterpret_cast<const char*>(body.data()),
                              reinterpret_cast<const char*>(body.data()) + body.size(), nullptr, false);
      if (!info.is_object()) damaged(name, where, "what describes the run is no JSON object");
      r.info = std::move(info);
      break;
    }
    case trace::chunk::events:
      if (header.worker >= most) damaged(name, where, "worker " + std::to_string(header.worker));
      if (header.count > body.size() || header.count * sizeof(trace::event) != body.size())
        damaged(
            name, where,
            std::to_string(header.count) + " events do not take " + std::to_string(body.size()) + " bytes");
      if (r.events.size() <= header.worker) r.events.resize(header.worker + 1);
      r.events[header.worker].parts.push_back(body);
      r.events[header.worker].count += header.count;
      break;
    case trace::chunk::strings:
      read_strings(r, body, header.count, name, where);
      break;
    default:
      break;  // a later version may say more
  }
}

/// One shape for what writers may say in two: names of fields, and [first, count] for a host.
void normalise(json& info) {
  if (!info.contains("seconds") && info.contains("wall_seconds")) info["seconds"] = info["wall_seconds"];
  if (!info.contains("version") && info.contains("godwit")) info["version"] = info["godwit"];
  const auto hosts = info.find("hosts");
  if (hosts == info.end() || !hosts->is_array()) return;
  for (json& h : *hosts)
    if (h.is_object()) h = {count_of(h, "first_worker"), count_of(h, "workers")};
}

/// Fills what both kinds of files have in common: workers, hosts, dropped.
void complete(recording& r, const std::string& name, std::uint32_t most) {
  normalise(r.info);
  if (const auto list = r.stats.find("worker_stats"); list != r.stats.end()) r.stats["workers"] = *list;
  const double said = number_of(r.info, "workers", 0);
  if (said < 0 || said > most)
    throw input_error(name + ": damaged: a run of " + std::to_string(said) + " workers");
  const auto of_stats = r.stats.find("workers");
  r.spares =
      static_cast<std::uint32_t>(std::clamp(number_of(r.info, "spares", 0), 0.0, static_cast<double>(most)));
  r.workers =
      std::max({static_cast<std::uint32_t>(said) + r.spares, static_cast<std::uint32_t>(r.events.size()),
                of_stats != r.stats.end() && of_stats->is_array()
                    ? static_cast<std::uint32_t>(std::min<std::size_t>(of_stats->size(), most))
                    : 0u});
  if (r.workers == 0) throw input_error(name + ": describes a run without workers");
  r.spares = std::min(r.spares, r.workers - 1);
  r.events.resize(r.workers);
  r.dropped.assign(r.workers, 0);
  if (const auto d = r.info.find("dropped"); d != r.info.end() && d->is_array())
    for (std::size_t i = 0; i < std::min<std::size_t>(d->size(), r.workers); ++i)
      if ((*d)[i].is_number()) r.dropped[i] = (*d)[i].get<std::uint64_t>();
  r.host_of.assign(r.workers, 0);
  const auto hosts = r.info.find("hosts");
  if (hosts == r.info.end() || !hosts->is_array()) return;
  std::uint32_t host = 0;
  for (const json& h : *hosts) {
    if (!h.is_array() || h.size() != 2 || !h[0].is_number_unsigned() || !h[1].is_number_unsigned()) continue;
    const auto first = h[0].get<std::uint64_t>();
    for (std::uint64_t i = first; i < std::min<std::uint64_t>(first + h[1].get<std::uint64_t>(), r.workers);
         ++i)
      r.host_of[i] = host;
    ++host;
  }
}

recording parse_trace(bytes_view bytes, const std::string& name) {
  recording r;
  std::size_t chunks = 0;
  wire_reader packets(bytes, 0, name);
  while (!packets.done()) {
    const auto packet = packets.next();
    if (packet.number != 1 || !packet.delimited) continue;
    wire_reader fields(packet.data, packet.position, name);
    while (!fields.done()) {
      const auto field = fields.next();
      if (field.number != trace::raw_field || !field.delimited) continue;
      read_chunk(r, field.data, name, field.position, most_workers(bytes.size()));
      ++chunks;
    }
  }
  if (chunks == 0)
    throw input_error(name +
                      ": no godwit events in it (a trace of another program?); give a file written with "
                      "GODWIT_TRACE or GODWIT_STATS_JSON");
  r.has_events = true;
  if (const auto stats = r.info.find("stats"); stats != r.info.end()) {
    if (stats->is_object()) r.stats = *stats;
    if (stats->is_array()) r.stats["workers"] = *stats;
  } else if (const auto list = r.info.find("worker_stats"); list != r.info.end() && list->is_array()) {
    r.stats["workers"] = *list;
  }
  complete(r, name, most_workers(bytes.size()));
  return r;
}

recording parse_stats(json whole, const std::string& name, std::uint32_t most) {
  const char* list = whole.contains("worker_stats") ? "worker_stats" : "workers";
  if (!whole.contains(list) || !whole[list].is_array())
    throw input_error(name + ": JSON, but without counters of workers: not a file of GODWIT_STATS_JSON");
  recording r;
  const auto run = whole.find("run");
  r.info = run != whole.end() && run->is_object() ? *run : whole;
  r.stats = std::move(whole);
  complete(r, name, most);
  return r;
}

bool starts_like_json(bytes_view bytes) {
  for (const std::byte b : bytes.first(std::min<std::size_t>(bytes.size(), 64))) {
    const auto c = static_cast<char>(b);
    if (c == '{') return true;
    if (c != ' ' && c != '\n' && c != '\r' && c != '\t') return false;
  }
  return false;
}

}  // namespace

mapped_file::mapped_file(const std::string& path) {
  const auto fail = [&](const char* what) {
    throw input_error(path + ": " + what + ": " + std::strerror(errno));
  };
  const int fd = open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);  // a pipe is told, not waited for
  if (fd < 0) fail("cannot open it");
  struct stat about;
  if (fstat(fd, &about) != 0 || !S_ISREG(about.st_mode)) {
    close(fd);
    throw input_error(path + ": not a regular file");
  }
  if (about.st_size == 0) {
    close(fd);
    throw input_error(path + ": empty; did the run end, and was tracing on (GODWIT_TRACE)?");
  }
  size_ = static_cast<std::size_t>(about.st_size);
  void* address = mmap(nullptr, size_, PROT_READ, MAP_PRIVATE, fd, 0);
  close(fd);
  if (address == MAP_FAILED) fail("cannot map it");
  data_ = static_cast<const std::byte*>(address);
}

mapped_file::~mapped_file() {
  if (data_ != nullptr) munmap(const_cast<std::byte*>(data_), size_);
}

mapped_file::mapped_file(mapped_file&& other) noexcept
    : data_(std::exchange(other.data_, nullptr)), size_(std::exchange(other.size_, 0)) {}

std::uint64_t recording::event_count() const noexcept {
  std::uint64_t sum = 0;
  for (const event_list& list : events) sum += list.count;
  return sum;
}

std::uint64_t recording::dropped_count() const noexcept {
  std::uint64_t sum = 0;
  for (const std::uint64_t n : dropped) sum += n;
  return sum;
}

recording parse(bytes_view bytes, const std::string& name) {
  if (bytes.empty()) throw input_error(name + ": empty");
  if (!starts_like_json(bytes)) return parse_trace(bytes, name);
  const char* text = reinterpret_cast<const char*>(bytes.data());
  json whole = json::parse(text, text + bytes.size(), nullptr, false);
  if (whole.is_object()) return parse_stats(std::move(whole), name, most_workers(bytes.size()));
  throw input_error(name + ": starts like JSON, but is not (truncated?)");
}

double number_of(const json& object, const char* key, double otherwise) {
  const auto found = object.find(key);
  return found != object.end() && found->is_number() ? found->get<double>() : otherwise;
}

std::uint64_t count_of(const json& object, const char* key) {
  return static_cast<std::uint64_t>(std::max(0.0, number_of(object, key)));
}

std::string text_of(const json& object, const char* key) {
  const auto found = object.find(key);
  return found != object.end() && found->is_string() ? found->get<std::string>() : std::string();
}

}  // namespace godwit::report
