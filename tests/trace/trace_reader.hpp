// Reads a trace file back for tests: raw chunks, and of Perfetto's packets the names of tracks. Written from
// src/trace/file.hpp and the definition of protocol buffers, not with the writer's code.
#pragma once

#include "trace/file.hpp"
#include "trace/events.hpp"

#include <cstdint>
#include <cstring>
#include <fstream>
#include <iterator>
#include <map>
#include <set>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

namespace support {

struct trace_contents {
  std::map<std::uint32_t, std::vector<godwit::trace::event>> events;
  std::map<std::uint64_t, std::string> strings;
  std::string info;
  std::size_t chunks = 0;     ///< of events
  std::uint64_t packets = 0;  ///< of Perfetto
  std::vector<std::string> track_names;
  std::set<std::uint64_t> track_uuids;
  std::string bytes;
  bool has_text(std::string_view text) const { return bytes.find(text) != std::string::npos; }
};

namespace detail {

inline std::uint64_t varint(std::string_view& in) {
  std::uint64_t v = 0;
  for (int shift = 0;; shift += 7) {
    if (in.empty() || shift > 63) throw std::runtime_error("a varint is cut short");
    const auto byte = static_cast<unsigned char>(in.front());
    in.remove_prefix(1);
    v |= std::uint64_t{byte & 0x7fu} << shift;
    if (byte < 0x80) return v;
  }
}

struct field {
  std::uint64_t number;
  std::uint64_t value;    // varint
  std::string_view text;  // bytes
};
inline field next_field(std::string_view& in) {
  const std::uint64_t tag = varint(in);
  field f{tag >> 3, 0, {}};
  const auto take = [&](std::uint64_t n) {
    if (n > in.size()) throw std::runtime_error("a field is cut short");
    f.text = in.substr(0, n);
    in.remove_prefix(n);
  };
  switch (tag & 7) {
    case 0:
      f.value = varint(in);
      break;
    case 1:
      take(8);
      break;
    case 2:
      take(varint(in));
      break;
    default:
      throw std::runtime_error("an unknown wire type");
  }
  return f;
}

inline void read_chunk(std::string_view in, trace_contents& to) {
  using namespace godwit::trace;
  raw_header h;
  if (in.size() < sizeof h) throw std::runtime_error("a chunk without a header");
  std::memcpy(&h, in.data(), sizeof h);
  in.remove_prefix(sizeof h);
  if (std::memcmp(h.magic, raw_magic, 8) != 0 || h.bytes != in.size())
    throw std::runtime_error("a bad chunk header");
  if (h.what == chunk::info) to.info = in;
  if (h.what == chunk::events) {
    if (h.bytes != h.count * sizeof(event)) throw std::runtime_error("a chunk of events of the wrong size");
    auto& all = to.events[h.worker];
    const std::size_t before = all.size();
    all.resize(before + h.count);
    std::memcpy(all.data() + before, in.data(), in.size());
    ++to.chunks;
  }
  if (h.what == chunk::strings)
    for (std::uint64_t i = 0; i < h.count; ++i) {
      std::uint64_t address = 0;
      std::uint32_t length = 0;
      if (in.size() < 12) throw std::runtime_error("a text is cut short");
      std::memcpy(&address, in.data(), 8);
      std::memcpy(&length, in.data() + 8, 4);
      to.strings[address] = in.substr(12, length);
      in.remove_prefix(12 + length);
    }
}

}  // namespace detail

/// Throws std::runtime_error if @p path is not such a file from its first byte to its last.
inline trace_contents read_trace(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  if (!file) throw std::runtime_error("cannot read " + path);
  trace_contents c;
  c.bytes.assign(std::istreambuf_iterator<char>(file), {});
  for (std::string_view in = c.bytes; !in.empty();) {
    const detail::field packet = detail::next_field(in);
    if (packet.number != 1) throw std::runtime_error("not a packet");
    bool raw = false;
    for (std::string_view inside = packet.text; !inside.empty();) {
      const detail::field f = detail::next_field(inside);
      if (f.number == godwit::trace::raw_field) {
        detail::read_chunk(f.text, c);
        raw = true;
      }
      if (f.number == 60)  // track_descriptor
        for (std::string_view track = f.text; !track.empty();) {
          const detail::field about = detail::next_field(track);
          if (about.number == 1) c.track_uuids.insert(about.value);
          if (about.number == 2) c.track_names.emplace_back(about.text);
        }
    }
    if (!raw) ++c.packets;
  }
  return c;
}

}  // namespace support
