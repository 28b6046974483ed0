// See pages.hpp.
#include "transport/shm/pages.hpp"

#include <cerrno>
#include <cstring>
#include <stdexcept>
#include <string>
#include <sys/mman.h>

namespace godwit::transport::shm {

shared_pages::shared_pages(std::size_t bytes, const char* remedy) {
  void* p = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (p == MAP_FAILED)
    throw std::runtime_error("godwit: cannot map " + std::to_string(bytes >> 20) +
                             " MiB of shared memory: " + std::strerror(errno) + ": " + remedy);
  data_ = {static_cast<std::byte*>(p), unmap{bytes}};
}

void shared_pages::unmap::operator()(std::byte* data) const noexcept { munmap(data, bytes); }

}  // namespace godwit::transport::shm
