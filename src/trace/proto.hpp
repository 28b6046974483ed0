// Just enough of the protocol buffers encoding to write Perfetto packets: varints, fixed64, bytes, messages.
//
// Not a library for reading, and not for messages of unknown shape. Field numbers are those of Perfetto's
// protos/perfetto/trace/trace_packet.proto and the files it names; tests/trace/perfetto_check.py reads the result
// back with Perfetto's own classes.
// Called by: perfetto.cpp, trace_file.cpp. Test: tests/trace/proto_test.cpp.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace godwit::trace {

/// A message under construction. clear() keeps the memory.
class message {
 public:
  void clear() noexcept { bytes_.clear(); }
  const std::string& bytes() const noexcept { return bytes_; }

  void number(std::uint32_t field, std::uint64_t value) {
    tag(field, 0);
    varint(value);
  }
  void fixed(std::uint32_t field, std::uint64_t value) {
    tag(field, 1);
    for (int i = 0; i < 8; ++i) bytes_ += static_cast<char>(value >> (8 * i));
  }
  void text(std::uint32_t field, std::string_view value) {
    head(field, value.size());
    bytes_ += value;
  }
  void nested(std::uint32_t field, const message& m) { text(field, m.bytes_); }
  /// The beginning of a field of @p length bytes, which the caller writes elsewhere.
  void head(std::uint32_t field, std::size_t length) {
    tag(field, 2);
    varint(length);
  }

 private:
  void tag(std::uint32_t field, std::uint32_t wire_type) { varint(std::uint64_t{field} << 3 | wire_type); }
  void varint(std::uint64_t v) {
    char out[10];
    std::size_t n = 0;
    for (; v >= 0x80; v >>= 7) out[n++] = static_cast<char>(v | 0x80);
    out[n++] = static_cast<char>(v);
    bytes_.append(out, n);
  }
  std::string bytes_;
};

}  // namespace godwit::trace
