// See trace_builder.hpp.
#include "trace_builder.hpp"

#include "trace/file.hpp"

#include <cstring>
#include <fstream>

namespace report_test {

using godwit::trace::event;
using godwit::trace::kind;

namespace {

event make(std::uint64_t t, kind what, std::uint64_t a, std::uint64_t b = 0, std::uint32_t duration = 0) {
  event e{};
  e.time_ns = t;
  e.a = a;
  e.b = b;
  e.duration_ns = duration;
  e.what = static_cast<std::uint16_t>(what);
  return e;
}

void put_varint(std::string& out, std::uint64_t value) {
  for (; value >= 0x80; value >>= 7) out.push_back(static_cast<char>(value | 0x80));
  out.push_back(static_cast<char>(value));
}
void put_delimited(std::string& out, std::uint64_t field, const std::string& data) {
  put_varint(out, field << 3 | 2);
  put_varint(out, data.size());
  out += data;
}

std::string chunk(godwit::trace::chunk what, std::uint32_t worker, std::uint64_t count,
                  const std::string& body) {
  godwit::trace::raw_header h{};
  std::memcpy(h.magic, godwit::trace::raw_magic, sizeof h.magic);
  h.what = what;
  h.worker = worker;
  h.count = count;
  h.bytes = body.size();
  std::string out(reinterpret_cast<const char*>(&h), sizeof h);
  return out + body;
}

/// A packet as Perfetto has them, and one with our chunk between two fields that are not ours.
void put_foreign(std::string& out) {
  std::string packet;
  put_varint(packet, 8 << 3 | 0);  // timestamp
  put_varint(packet, 123456789);
  put_varint(packet, 10 << 3 | 5);  // a field of four bytes
  packet.append("abcd");
  put_delimited(out, 1, packet);
}
void put_chunk(std::string& out, const std::string& data) {
  std::string packet;
  put_varint(packet, 10 << 3 | 0);
  put_varint(packet, 7);
  put_delimited(packet, godwit::trace::raw_field, data);
  put_varint(packet, 99 << 3 | 1);  // a field of eight bytes
  packet.append("01234567");
  put_delimited(out, 1, packet);
}

}  // namespace

void trace_builder::start(std::uint32_t w, std::uint64_t t, std::uint64_t thread, std::uint32_t took) {
  add(w, make(t, kind::start, thread, 0, took));
}

void trace_builder::steal(std::uint32_t w, std::uint64_t t, std::uint64_t thread, std::uint64_t child,
                          std::uint32_t victim, std::uint32_t took, std::uint32_t bytes) {
  event e = make(t, kind::steal, thread, child, took);
  e.other = victim;
  e.bytes = bytes;
  add(w, e);
}

void trace_builder::resume(std::uint32_t w, std::uint64_t t, std::uint64_t thread, std::uint64_t awaited,
                           std::uint32_t from, std::uint32_t took) {
  event e = make(t, kind::resume, thread, awaited, took);
  e.other = from;
  add(w, e);
}

void trace_builder::task(std::uint32_t w, std::uint64_t t, std::uint64_t thread, std::uint32_t from,
                         std::uint32_t took, bool on_top) {
  event e = make(t, kind::task, thread, 0, took);
  e.other = from;
  e.detail = on_top ? 1 : 0;
  add(w, e);
}

void trace_builder::end(std::uint32_t w, std::uint64_t t, std::uint64_t thread, bool waiter) {
  event e = make(t, kind::end, thread);
  e.detail = waiter ? 1 : 0;
  add(w, e);
}

void trace_builder::suspend(std::uint32_t w, std::uint64_t t, std::uint64_t thread, std::uint64_t awaited,
                            std::uint32_t line, bool parent_goes_on) {
  event e = make(t, kind::suspend, thread, awaited);
  e.detail = parent_goes_on ? 1 : 0;
  e.bytes = 640;
  add(w, e);
  if (line == 0) return;
  event p = make(t, kind::place, 1, 2);
  p.other = line;
  add(w, p);
}

void trace_builder::stay(std::uint32_t w, std::uint64_t t, std::uint64_t thread, std::uint32_t line) {
  add(w, make(t, kind::stay, thread));
  event place = make(t, kind::place, 1);
  place.other = line;
  add(w, place);
}

void trace_builder::wait(std::uint32_t w, std::uint64_t t, std::uint64_t thread, const std::string& what,
                         std::uint32_t line, bool parent_goes_on) {
  suspend(w, t, thread, 0, line, parent_goes_on);
  const std::uint64_t address = 0x7000 + std::hash<std::string>()(what) % 4096;
  strings[address] = what;
  events[w].insert(events[w].end() - 1, make(t, kind::waits, address));  // before the place
}

void trace_builder::expose(std::uint32_t w, std::uint64_t t, const std::string& where) {
  strings[0xe4905e] = where;
  add(w, make(t, kind::expose, where.empty() ? 0 : 0xe4905e));
}

void trace_builder::wake(std::uint32_t w, std::uint64_t t, std::uint64_t thread) {
  add(w, make(t, kind::wake, thread));
}

void trace_builder::system(std::uint32_t w, std::uint64_t t, std::uint64_t interval, std::uint64_t kept,
                           godwit::trace::system_kind kind, std::uint32_t faults) {
  event e = make(t, godwit::trace::kind::system, interval, kept);
  e.detail = static_cast<std::uint16_t>(kind);
  e.other = faults;
  add(w, e);
}

void trace_builder::spawns(std::uint32_t w, std::uint64_t t, std::uint64_t ns, std::uint32_t count,
                           const std::string& where) {
  const std::uint64_t address = 0xa000 + std::hash<std::string>()(where) % 4096;
  if (count != 0) strings[address] = where;
  event e = make(t, kind::spawns, count != 0 ? address : 0, ns);
  e.other = count;
  add(w, e);
}

void trace_builder::access(std::uint32_t w, std::uint64_t t, std::uint32_t owner, std::uint32_t duration,
                           const std::string& where) {
  event e = make(t, kind::access, 0x9000, 0, duration);
  e.other = owner;
  e.bytes = 8;
  add(w, e);
  strings[0xc0de] = where;
  add(w, make(t, kind::callers, 0xbad, 0xc0de));  // the first is the library's, and has no text
}

void trace_builder::spawned(std::uint32_t w, std::uint64_t t, const std::string& where) {
  const std::uint64_t address = 0xc000 + std::hash<std::string>()(where) % 4096;
  strings[address] = where;
  add(w, make(t, kind::callers, 0xbad, address));  // the first is the library's, and has no text
}

void trace_builder::name(std::uint32_t w, std::uint64_t t, const std::string& text, std::uint64_t scope,
                         std::uint16_t level) {
  const std::uint64_t address = 0x6000 + std::hash<std::string>()(text) % 4096;
  if (!text.empty()) strings[address] = text;
  event e = make(t, text.empty() ? kind::name_ends : kind::name, text.empty() ? 0 : address, scope);
  e.detail = level;
  add(w, e);
}

void trace_builder::cancel(std::uint32_t w, std::uint64_t t, std::uint64_t thread) {
  add(w, make(t, kind::cancel, thread));
}

void trace_builder::idle(std::uint32_t w, std::uint64_t t, std::uint32_t duration,
                         godwit::trace::idle_cause cause) {
  event e = make(t, kind::idle, 0, 0, duration);
  e.detail = static_cast<std::uint16_t>(cause);
  add(w, e);
}

void trace_builder::sleep(std::uint32_t w, std::uint64_t t, std::uint32_t duration) {
  add(w, make(t, kind::sleep, 0, 0, duration));
}

void trace_builder::complete(std::uint32_t w, std::uint64_t t, std::uint64_t record) {
  add(w, make(t, kind::complete, record));
}

void trace_builder::parts(std::uint32_t w, std::uint64_t t, std::uint64_t address, std::uint64_t first,
                          std::uint32_t count, std::uint32_t home, std::uint32_t part_bytes) {
  event e = make(t, kind::parts, address, godwit::trace::part_and_worker(first, home));
  e.other = count;
  e.bytes = part_bytes;
  add(w, e);
}

void trace_builder::part(std::uint32_t w, std::uint64_t t, std::uint64_t address, std::uint64_t number,
                         std::uint32_t from, std::uint32_t to, godwit::trace::part_result how,
                         std::uint32_t bytes) {
  event e = make(t, kind::part, address, godwit::trace::part_and_worker(number, to));
  e.other = from;
  e.bytes = how == godwit::trace::part_result::came ? bytes : 0;
  e.detail = static_cast<std::uint16_t>(how);
  add(w, e);
}

void trace_builder::moves(std::uint32_t w, std::uint64_t t, std::uint64_t address, std::uint32_t count,
                          std::uint32_t duration) {
  event e = make(t, kind::moves, address, godwit::trace::part_and_worker(0, w), duration);
  e.other = count;
  e.bytes = count * 65536;
  add(w, e);
}

void trace_builder::heat(std::uint32_t w, std::uint64_t t, std::uint64_t address, std::uint64_t number,
                         std::uint32_t near, std::uint32_t far, std::uint32_t by) {
  event e = make(t, kind::heat, address, godwit::trace::part_and_worker(number, by));
  e.bytes = near;
  e.other = far;
  add(w, e);
}

void trace_builder::part_wait(std::uint32_t w, std::uint64_t t, std::uint64_t address,
                              std::uint32_t duration) {
  add(w, make(t, kind::part_wait, address, 0, duration));
}

std::uint64_t trace_builder::event_count() const {
  std::uint64_t sum = 0;
  for (const auto& list : events) sum += list.size();
  return sum;
}

std::string trace_builder::bytes() const {
  constexpr std::size_t per_chunk = 20'000;
  std::string out;
  put_foreign(out);
  put_chunk(out, chunk(godwit::trace::chunk::info, 0, 1, info.dump()));
  std::string names;
  for (const auto& [address, text] : strings) {
    const auto length = static_cast<std::uint32_t>(text.size());
    names.append(reinterpret_cast<const char*>(&address), sizeof address);
    names.append(reinterpret_cast<const char*>(&length), sizeof length);
    names += text;
  }
  put_chunk(out, chunk(godwit::trace::chunk::strings, 0, strings.size(), names));
  put_chunk(out, chunk(static_cast<godwit::trace::chunk>(77), 0, 0, "of a later version"));
  for (std::uint32_t w = 0; w < events.size(); ++w)
    for (std::size_t at = 0; at < events[w].size(); at += per_chunk) {
      const std::size_t n = std::min(per_chunk, events[w].size() - at);
      const std::string body(reinterpret_cast<const char*>(events[w].data() + at), n * sizeof(event));
      put_chunk(out, chunk(godwit::trace::chunk::events, w, n, body));
      put_foreign(out);
    }
  return out;
}

void trace_builder::write(const std::string& path) const {
  std::ofstream out(path, std::ios::binary);
  const std::string all = bytes();
  out.write(all.data(), static_cast<std::streamsize>(all.size()));
}

}  // namespace report_test
