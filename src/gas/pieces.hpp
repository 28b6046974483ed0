// memory::visit_pieces and each_piece: the parts of a range by owner. Included by the files of src/gas that
// need it.
#pragma once

#include "base/check.hpp"
#include "gas/memory.hpp"

#include <algorithm>

namespace godwit::gas {

template <class F>
bool memory::visit_pieces(global_address at, std::uint64_t bytes, F&& f) {
  while (bytes != 0) {
    if (where_.is_local(at)) {  // an allocation has one home there
      const std::uint32_t home = where_.local_home(at);
      const std::uint64_t n = std::min(bytes, where_.local_begin(home) + where_.local_bytes() - at);
      GODWIT_ASSERT(home < where_.homes && n != 0, "a piece of local memory has a home");
      f(home, at, n);
      at += n;
      bytes -= n;
      continue;
    }
    const descriptor* d = find(at);
    if (d == nullptr) return false;
    const global_address begin = begin_of(*d);
    const global_address end = std::min(at + bytes, begin + ((d->bytes + space::granule_bytes - 1) >>
                                                             space::granule_bits << space::granule_bits));
    if (end <= at) return false;  // behind its data, or more bytes than addresses
    const auto what = static_cast<detail::spread::kind>(d->what);
    while (at < end) {
      const std::uint64_t block = (at - begin) / d->block_bytes;
      std::uint64_t n = std::min(end, begin + (block + 1) * d->block_bytes) - at;
      // Behind the last block there is only what rounding added.
      const std::uint32_t owner =
          owner_of_block(*d, what == detail::spread::kind::cyclic ? block : std::min(block, d->blocks - 1));
      if (block >= d->blocks) n = end - at;
      GODWIT_ASSERT(owner < where_.homes && n != 0 && at + n <= end, "a piece of a block has an owner");
      f(owner, at, n);
      at += n;
      bytes -= n;
    }
  }
  return true;
}

template <class F>
void memory::each_piece(global_address at, std::uint64_t bytes, F&& f) {
  if (!visit_pieces(at, bytes, f)) bad_address(at, bytes, "reach");
}

}  // namespace godwit::gas
