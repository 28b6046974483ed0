// map_file: addresses out of the run's global memory, over which every worker maps the file. See
// include/godwit/map_file.hpp and docs/decisions/0018-mapped-files.md.
#include <godwit/global_access.hpp>
#include <godwit/global_memory.hpp>
#include <godwit/map_file.hpp>
#include <godwit/runtime.hpp>

#include <cerrno>
#include <cstring>
#include <fcntl.h>
#include <filesystem>
#include <stdexcept>
#include <string>
#include <sys/stat.h>
#include <unistd.h>
#include <vector>

#include "transport/shm/file_pages.hpp"

namespace godwit {

namespace {

/// What a worker sees at the path.
struct finding {
  std::uint64_t size = 0;
  std::uint64_t sample = 0;  ///< of pages from all over it
  int error = 0;             ///< errno
  enum : int { opening, reading, not_regular, mapping } doing = opening;
};

class open_file {
 public:
  explicit open_file(const char* path) noexcept : fd_(open(path, O_RDONLY | O_CLOEXEC)) {}
  open_file(const open_file&) = delete;
  ~open_file() {
    if (fd_ >= 0) close(fd_);
  }
  int fd() const noexcept { return fd_; }

 private:
  int fd_;
};

/// 16 pages, the first and the last among them.
bool take_sample(int fd, finding& f) noexcept {
  constexpr std::uint64_t page = 4096, pages = 16;
  f.sample = 0xcbf29ce484222325u;
  for (std::uint64_t i = 0; i < pages && f.size != 0; ++i) {
    unsigned char bytes[page];
    const std::uint64_t from = f.size <= page ? 0 : (f.size - page) / (pages - 1) * i;
    const ssize_t n =
        pread(fd, bytes, page, static_cast<off_t>(i == pages - 1 && f.size > page ? f.size - page : from));
    if (n < 0) return false;
    for (ssize_t k = 0; k < n; ++k) f.sample = (f.sample ^ bytes[k]) * 0x100000001b3u;
  }
  return true;
}

finding look_at(const open_file& file) noexcept {
  finding f;
  struct stat about {};
  f.doing = finding::opening;
  if (file.fd() < 0 || fstat(file.fd(), &about) != 0) {
    f.error = errno;
    return f;
  }
  f.doing = finding::not_regular;
  f.error = S_ISREG(about.st_mode) ? 0 : EINVAL;
  if (f.error != 0) return f;
  f.size = static_cast<std::uint64_t>(about.st_size);
  f.doing = finding::reading;
  if (!take_sample(file.fd(), f)) f.error = errno;
  return f;
}

/// On this worker. Its pages must be those of @p wanted.
finding map_here(const char* path, const finding& wanted, std::byte* at) noexcept {
  const open_file file(path);
  finding f = look_at(file);
  if (f.error != 0 || f.size != wanted.size || f.sample != wanted.sample) return f;
  f.doing = finding::mapping;
  if (f.size != 0 && !transport::shm::map_read_only(at, f.size, file.fd())) f.error = errno;
  return f;
}

[[noreturn]] void fail(const std::string& path, std::uint32_t worker, const std::string& why,
                       const char* remedy) {
  throw std::runtime_error("godwit: map_file: " + path + " at worker " + std::to_string(worker) + ": " + why +
                           ": " + remedy);
}

void require(const finding& f, const finding& wanted, const std::string& path, std::uint32_t worker,
             std::uint32_t caller) {
  constexpr const char* same = "every host needs the same file at this path, or a file system that all share";
  switch (f.error == 0 ? -1 : static_cast<int>(f.doing)) {
    case finding::opening:
      fail(path, worker, std::string("cannot open it: ") + std::strerror(f.error), same);
    case finding::not_regular:
      fail(path, worker, "it is no regular file", "give the path of a file");
    case finding::reading:
      fail(path, worker, std::string("cannot read it: ") + std::strerror(f.error), same);
    case finding::mapping:
      fail(path, worker, std::string("cannot map it: ") + std::strerror(f.error),
           "its file system must allow mappings, and the limit on mappings (vm.max_map_count) one more");
    default:
      break;
  }
  if (f.size != wanted.size)
    fail(path, worker,
         "it has " + std::to_string(f.size) + " bytes, but " + std::to_string(wanted.size) + " at worker " +
             std::to_string(caller),
         same);
  if (f.sample != wanted.sample)
    fail(path, worker, "its contents differ from those at worker " + std::to_string(caller), same);
}

}  // namespace

mapped_file map_file(const char* path, detail::place where) {
  if (detail::hot_workers() == 0)
    throw std::logic_error(
        "godwit: map_file was called outside godwit::run: the address is agreed upon by the "
        "run: call it first thing inside, and capture what it gives");
  const std::uint32_t caller = worker_id();
  // Nothing that lies on the heap may live across on_each_worker: the thread may go on at another worker.
  mapped_file result;
  struct request {
    global_ptr<char> path;
    global_ptr<finding> findings;
    finding wanted;
    std::uint64_t path_bytes;
    std::byte* at;
  } r;
  {
    const std::string full = std::filesystem::absolute(path).string();
    r.path_bytes = full.size() + 1;
    if (r.path_bytes > 4096) fail(path, caller, "the path is too long", "4,095 bytes at most");
    r.wanted = look_at(open_file(full.c_str()));
    require(r.wanted, r.wanted, full, caller, caller);
    r.at =
        r.wanted.size == 0 ? nullptr : detail::global_raw<std::byte>(detail::global_reserve(r.wanted.size));
    r.path = allocate<char>(r.path_bytes);
    put(r.path, full.c_str(), r.path_bytes);
    r.findings = allocate<finding>(worker_count());
  }
  on_each_worker(
      [r] {
        if (worker_id() >= worker_count()) return;  // a spare one calls: what others see here it sees, too
        char name[4096];
        get(r.path, name, r.path_bytes);
        put(r.findings + worker_id(), map_here(name, r.wanted, r.at));
      },
      where);
  {
    std::vector<finding> found(worker_count());
    get(r.findings, found.data(), found.size());
    std::string name(r.path_bytes, 0);
    get(r.path, name.data(), r.path_bytes);
    deallocate(r.path, r.path_bytes);
    deallocate(r.findings, worker_count());
    name.pop_back();
    for (std::uint32_t w = 0; w < found.size(); ++w) require(found[w], r.wanted, name, w, caller);
  }
  result.data_ = r.at;
  result.size_ = r.wanted.size;
  return result;
}

}  // namespace godwit
