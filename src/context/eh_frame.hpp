// Reading .eh_frame and .gcc_except_table: the encodings of their numbers and addresses, and the records in
// which they stand (DWARF 5, 6.4; Linux Standard Base, 10.6; Itanium C++ ABI, exception handling).
// Used by frame_rules.cpp alone.
#pragma once

#include <cstdint>
#include <cstring>

namespace godwit::context {

/// A place in a table.
struct table_reader {
  const unsigned char* at;

  template <class T>
  T fixed() noexcept {
    T v;
    std::memcpy(&v, at, sizeof v);
    at += sizeof v;
    return v;
  }
  std::uint64_t unsigned_number() noexcept {
    std::uint64_t v = 0;
    for (unsigned shift = 0;; shift += 7) {
      const unsigned char b = *at++;
      if (shift < 64) v |= std::uint64_t{b & 127u} << shift;
      if ((b & 128) == 0) return v;
    }
  }
  std::int64_t signed_number() noexcept {
    std::uint64_t v = 0;
    for (unsigned shift = 0;;) {
      const unsigned char b = *at++;
      if (shift < 64) v |= std::uint64_t{b & 127u} << shift;
      shift += 7;
      if ((b & 128) != 0) continue;
      if (shift < 64 && (b & 64) != 0) v |= ~std::uint64_t{0} << shift;
      return static_cast<std::int64_t>(v);
    }
  }

  static constexpr unsigned omitted = 0xFF;
  static constexpr unsigned indirect = 0x80;
  static constexpr unsigned relative = 0x70, to_itself = 0x10;
  static constexpr unsigned form = 0x0F;
  /// Bytes of an address that is encoded so; 0: not known.
  static unsigned bytes_of(unsigned encoding) noexcept {
    switch (encoding & form) {
      case 0x2:
      case 0xA:
        return 2;
      case 0x3:
      case 0xB:
        return 4;
      case 0x0:
      case 0x4:
      case 0xC:
        return 8;
      default:
        return 0;
    }
  }
  /// False: encoded in a way that is not used for code in memory.
  bool address(unsigned encoding, std::uintptr_t& v) noexcept {
    v = 0;
    if (encoding == omitted) return true;
    const auto* const from = at;
    switch (encoding & form) {
      case 0x0:
      case 0x4:
      case 0xC:
        v = fixed<std::uint64_t>();
        break;
      case 0x1:
        v = unsigned_number();
        break;
      case 0x2:
        v = fixed<std::uint16_t>();
        break;
      case 0x3:
        v = fixed<std::uint32_t>();
        break;
      case 0x9:
        v = static_cast<std::uintptr_t>(signed_number());
        break;
      case 0xA:
        v = static_cast<std::uintptr_t>(std::int64_t{fixed<std::int16_t>()});
        break;
      case 0xB:
        v = static_cast<std::uintptr_t>(std::int64_t{fixed<std::int32_t>()});
        break;
      default:
        return false;
    }
    if (v == 0) return true;  // none, however it is encoded
    if ((encoding & relative) == to_itself)
      v += reinterpret_cast<std::uintptr_t>(from);
    else if ((encoding & relative) != 0)
      return false;
    if ((encoding & indirect) != 0) v = *reinterpret_cast<const std::uintptr_t*>(v);
    return true;
  }
};

/// What .eh_frame says of one function, and of all that share its beginnings.
struct frame_description {
  std::uintptr_t begin = 0, end = 0;    ///< the function's code
  table_reader common{}, common_end{};  ///< the program that all begin with
  table_reader own{}, own_end{};
  std::uint64_t code_unit = 1;
  std::int64_t data_unit = 1;
  unsigned address_encoding = 0;
  const unsigned char* handlers = nullptr;  ///< .gcc_except_table; null: none

  /// The one that holds @p pc, found by the sorted table @p header (.eh_frame_hdr). False: none does, or in a
  /// way that is not understood.
  bool find(const unsigned char* header, std::uintptr_t pc) noexcept;

 private:
  bool read(const unsigned char* record) noexcept;
};

}  // namespace godwit::context
