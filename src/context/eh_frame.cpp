// See eh_frame.hpp.
#include "context/eh_frame.hpp"

namespace godwit::context {

namespace {

/// The letters of a common record, which say what stands in it and in those that refer to it. False: one is
/// not understood.
bool read_letters(const char* letters, table_reader& at, unsigned& address_encoding,
                  unsigned& handlers_encoding) noexcept {
  for (; *letters != '\0'; ++letters) switch (*letters) {
      case 'R':
        address_encoding = at.fixed<std::uint8_t>();
        break;
      case 'L':
        handlers_encoding = at.fixed<std::uint8_t>();
        break;
      case 'P': {  // the function that looks at handlers: of no interest
        const unsigned encoding = at.fixed<std::uint8_t>();
        const unsigned bytes = table_reader::bytes_of(encoding);
        if (bytes == 0) return false;
        at.at += bytes;
        break;
      }
      default:
        return false;  // 'S', a signal frame, above all
    }
  return true;
}

}  // namespace

bool frame_description::read(const unsigned char* record) noexcept {
  table_reader f{record};
  const auto length = f.fixed<std::uint32_t>();
  if (length == 0 || length == 0xFFFFFFFF) return false;
  const auto* const from = f.at;
  own_end.at = from + length;
  const auto distance = f.fixed<std::uint32_t>();
  if (distance == 0) return false;  // a common record

  table_reader c{from - distance};
  const auto common_length = c.fixed<std::uint32_t>();
  if (common_length == 0 || common_length == 0xFFFFFFFF) return false;
  common_end.at = c.at + common_length;
  if (c.fixed<std::uint32_t>() != 0) return false;
  const auto version = c.fixed<std::uint8_t>();
  if (version != 1 && version != 3) return false;
  const auto* const letters = reinterpret_cast<const char*>(c.at);
  c.at += std::strlen(letters) + 1;
  code_unit = c.unsigned_number();
  data_unit = c.signed_number();
  constexpr std::uint64_t return_column = 16;
  if ((version == 1 ? c.fixed<std::uint8_t>() : c.unsigned_number()) != return_column) return false;
  unsigned handlers_encoding = table_reader::omitted;
  if (letters[0] == 'z') {
    const auto bytes = c.unsigned_number();
    table_reader in{c.at};
    if (!read_letters(letters + 1, in, address_encoding, handlers_encoding)) return false;
    c.at += bytes;
  } else if (letters[0] != '\0') {
    return false;
  }
  common = c;

  std::uintptr_t bytes = 0;
  if (!f.address(address_encoding, begin)) return false;
  if (!f.address(address_encoding & table_reader::form, bytes)) return false;
  end = begin + bytes;
  if (letters[0] == 'z') {
    const auto extra = f.unsigned_number();
    const auto* const behind = f.at + extra;
    std::uintptr_t table = 0;
    if (handlers_encoding != table_reader::omitted && !f.address(handlers_encoding, table)) return false;
    handlers = reinterpret_cast<const unsigned char*>(table);
    f.at = behind;
  }
  own = f;
  return true;
}

bool frame_description::find(const unsigned char* header, std::uintptr_t pc) noexcept {
  constexpr unsigned version = 1, sorted_pairs = 0x3B;  // of 4 bytes each, from the header's begin
  if (header[0] != version || header[3] != sorted_pairs) return false;
  table_reader h{header + 4};
  std::uintptr_t records = 0, count = 0;
  if (!h.address(header[1], records) || !h.address(header[2], count)) return false;
  const auto at = [&](std::size_t i) {
    std::int32_t v;
    std::memcpy(&v, h.at + i * sizeof v, sizeof v);
    return reinterpret_cast<std::uintptr_t>(header) + static_cast<std::uintptr_t>(std::int64_t{v});
  };
  std::size_t low = 0, high = count;  // the last that begins at pc or before it
  while (low < high) {
    const std::size_t middle = (low + high) / 2;
    if (at(2 * middle) <= pc)
      low = middle + 1;
    else
      high = middle;
  }
  if (low == 0 || !read(reinterpret_cast<const unsigned char*>(at(2 * (low - 1) + 1)))) return false;
  return begin <= pc && pc < end;
}

}  // namespace godwit::context
