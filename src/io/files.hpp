// Reading and writing what epoll refuses: files. docs/protocols/events.md, "Files". Test:
// tests/io/stream_test.cpp.
#pragma once

#include <sys/types.h>
#include <sys/uio.h>

namespace godwit::events {

/// Like preadv and pwritev; @p at -1: at the file's position. Gives back bytes or -errno.
long file_read(int fd, const iovec* v, int count, off_t at) noexcept;
long file_write(int fd, const iovec* v, int count, off_t at) noexcept;

}  // namespace godwit::events
