// Members of companion: what it does for its channel of datagrams (transport/net). See companion.hpp and
// docs/protocols/switch.md.
#include "transport/mpi/companion.hpp"

#include <cstring>

#include "base/check.hpp"

namespace godwit::transport::mpi {

using far::entry;
using far::header;

void companion::carry_out_routed(entry& e) noexcept {
  if (mood_ == mood::quiet) mood_ = mood::served;
  std::unique_ptr<std::byte[]> room;
  std::byte* const big = setup_.services->carry_out(e, room);
  GODWIT_ASSERT(big == nullptr, "what goes by datagram fits into one");
  static_cast<void>(big);
}

void companion::answered(worker_no asker, std::uint32_t slot, const header& head,
                         const std::byte* data) noexcept {
  entry& e = words_of(asker).ring[slot];
  e.head.result = head.result;
  e.head.info = head.info;
  e.head.bytes = 0;
  e.head.more[3] = 0;
  if (head.info != 0) std::memcpy(e.data, data, head.info);
  finish(asker, slot);
}

}  // namespace godwit::transport::mpi
