// See files.hpp.
#include "io/files.hpp"

#include "io/system.hpp"

namespace godwit::events {

long file_read(int fd, const iovec* v, int count, off_t at) noexcept {
  return at < 0 ? raw(SYS_readv, fd, v, count) : raw(SYS_preadv, fd, v, count, at, 0);
}
long file_write(int fd, const iovec* v, int count, off_t at) noexcept {
  return at < 0 ? raw(SYS_writev, fd, v, count) : raw(SYS_pwritev, fd, v, count, at, 0);
}

}  // namespace godwit::events
