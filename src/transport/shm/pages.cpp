// See pages.hpp.
#include "transport/shm/pages.hpp"

#include <cerrno>
#include <cstring>
#include <stdexcept>
#include <string>
#include <sys/mman.h>
#include <utility>

namespace godwit::transport::shm {

shared_pages::shared_pages(std::size_t bytes, const char* remedy) : bytes_(bytes) {
  void* p = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (p == MAP_FAILED)
    throw std::runtime_error("godwit: cannot map " + std::to_string(bytes >> 20) +
                             " MiB of shared memory: " + std::strerror(errno) + ": " + remedy);
  data_ = static_cast<std::byte*>(p);
}

shared_pages::~shared_pages() {
  if (data_ != nullptr) munmap(data_, bytes_);
}

shared_pages::shared_pages(shared_pages&& other) noexcept
    : data_(std::exchange(other.data_, nullptr)), bytes_(std::exchange(other.bytes_, 0)) {}

shared_pages& shared_pages::operator=(shared_pages&& other) noexcept {
  std::swap(data_, other.data_);
  std::swap(bytes_, other.bytes_);
  return *this;
}

}  // namespace godwit::transport::shm
