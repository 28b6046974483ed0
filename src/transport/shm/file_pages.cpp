// See file_pages.hpp.
#include "transport/shm/file_pages.hpp"

#include <sys/mman.h>

namespace godwit::transport::shm {

bool map_read_only(std::byte* at, std::uint64_t bytes, int fd) noexcept {
  return mmap(at, bytes, PROT_READ, MAP_PRIVATE | MAP_FIXED, fd, 0) != MAP_FAILED;
}

}  // namespace godwit::transport::shm
