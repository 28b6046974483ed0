// Global memory: allocate and free it, anywhere in the run.
//
// A home is a worker: the memory of an allocation lies on the hosts of its homes, in blocks that a
// distribution deals out. Where it lies decides only what an access costs. Inside one host every access is a
// load or a store. Source: Active global address space. Tests: tests/global/allocate_test.cpp. See
// docs/global-memory.md.
#pragma once

#include <godwit/detail/global_objects.hpp>
#include <godwit/global_ptr.hpp>
#include <godwit/runtime.hpp>

#include <cstdint>
#include <new>
#include <string>
#include <type_traits>

namespace godwit {

/// There is no room for an allocation: what() says how much was asked for, what is in use and what to raise.
class global_bad_alloc : public std::bad_alloc {
 public:
  explicit global_bad_alloc(std::string what) : what_(std::move(what)) {}
  const char* what() const noexcept override { return what_.c_str(); }

 private:
  std::string what_;
};

/// How the blocks of an allocation are dealt out to the homes: workers 0 ... worker_count()-1, and behind
/// them the spare ones, if there are any (options::spare_workers).
class distribution {
 public:
  constexpr distribution() noexcept = default;
  /// All of it at the calling worker.
  static distribution local() noexcept { return {}; }
  /// All of it at worker @p home.
  static distribution at(std::uint32_t home) noexcept { return distribution({.home = home}); }
  /// One contiguous part per home, in order; the parts are equal but for the last ones.
  /// @p block_bytes: how large they are; 0: what is allocated, divided by the number of homes.
  static constexpr distribution blocked(std::uint64_t block_bytes = 0) noexcept {
    return distribution({.what = detail::spread::kind::blocked, .block_bytes = block_bytes});
  }
  /// Block i at home i mod the number of homes. @p block_bytes: any size; 0: 64 KiB.
  static distribution cyclic(std::uint64_t block_bytes = 0) noexcept {
    return distribution({.what = detail::spread::kind::cyclic, .block_bytes = block_bytes});
  }
  /// Block i at home `f(i, blocks, homes)`, which must be less than homes (else std::invalid_argument). f is
  /// called by the allocating worker, once for every block; it must live until allocate returns.
  template <class F>
  requires std::is_object_v<F> &&
      std::is_invocable_r_v<std::uint32_t, const F&, std::uint64_t, std::uint64_t, std::uint32_t>
  static distribution user(std::uint64_t block_bytes, const F& f) noexcept {
    const auto home_of = [](const void* arg, std::uint64_t block, std::uint64_t blocks, std::uint32_t homes) {
      return static_cast<std::uint32_t>((*static_cast<const F*>(arg))(block, blocks, homes));
    };
    return distribution({.what = detail::spread::kind::user,
                         .block_bytes = block_bytes,
                         .home_of = home_of,
                         .arg = std::addressof(f)});
  }
  /// The same with a function.
  static distribution user(std::uint64_t block_bytes,
                           std::uint32_t (*f)(std::uint64_t, std::uint64_t, std::uint32_t)) noexcept {
    const auto home_of = [](const void* arg, std::uint64_t block, std::uint64_t blocks, std::uint32_t homes) {
      using function = std::uint32_t (*)(std::uint64_t, std::uint64_t, std::uint32_t);
      return reinterpret_cast<function>(const_cast<void*>(arg))(block, blocks, homes);
    };
    return distribution({.what = detail::spread::kind::user,
                         .block_bytes = block_bytes,
                         .home_of = home_of,
                         .arg = reinterpret_cast<const void*>(f)});
  }
  /// Parts of @p move_bytes may be moved to other workers later (move.hpp). A multiple of 4 KiB, and the
  /// distribution's blocks a multiple of it, else std::invalid_argument; 0: the distribution's blocks if
  /// their size was given, else 64 KiB. Memory that is not movable never pays for that. docs/moving.md.
  distribution& movable(std::uint64_t move_bytes = 0) noexcept {
    how_.movable = true;
    how_.move_bytes = move_bytes;
    return *this;
  }

  const detail::spread& how() const noexcept { return how_; }

 private:
  constexpr explicit distribution(const detail::spread& how) noexcept : how_(how) {}
  detail::spread how_;
};

/// Room for @p n objects of type T, uninitialised. @p d as above; @p alignment: a power of two, of the whole.
/// Throws global_bad_alloc; std::invalid_argument for a bad alignment, block size or home.
/// Cost: local for a local distribution; otherwise up to some round trips to worker 0's host and five to
/// each host, of which it waits for up to 16 at once.
template <class T>
global_ptr<T> allocate(std::uint64_t n, const distribution& d = distribution::local(),
                       std::uint64_t alignment = alignof(T), detail::place where = detail::place::here()) {
  detail::require_global_element<T>();
  if (n > (std::uint64_t{1} << 62) / sizeof(T))
    throw global_bad_alloc("godwit: that many objects do not fit any memory");
  return global_ptr<T>(detail::global_allocate(n * sizeof(T), alignment, d.how(), where));
}

/// The same, and at once in memory: every worker touches its own parts, so that pages lie where the worker
/// runs (NUMA). Called by one thread, which may go on at another worker. Cost: allocate's, the system's for
/// the pages, and one message per worker.
template <class T>
global_ptr<T> collective_allocate(std::uint64_t n, const distribution& d = distribution::blocked(),
                                  std::uint64_t alignment = alignof(T),
                                  detail::place where = detail::place::here()) {
  const global_ptr<T> p = allocate<T>(n, d, alignment, where);
  on_each_worker([at = p.address(), bytes = n * sizeof(T)] { detail::global_populate(at, bytes); }, where);
  return p;
}

/// Give back what allocate gave, with the same @p n. From any thread, any worker. Null is nothing.
/// Cost: local, or one message to the home; distributed: some round trips to each host.
template <class T>
void deallocate(global_ptr<T> p, std::uint64_t n, detail::place where = detail::place::here()) {
  detail::global_free(p.address(), n * sizeof(T), where);
}

/// One object at the calling worker, T{args...}. For millions of small ones. Throws global_bad_alloc.
/// Cost: local; in a run on one host some instructions, inlined.
template <class T, class... Args>
global_ptr<T> global_new(Args&&... args) {
  detail::require_global_value<T>();
  if constexpr (detail::small_object<T>)
    if (void* const at = detail::take_object<T>(); at != nullptr) [[likely]] {
      *static_cast<T*>(at) = T{std::forward<Args>(args)...};
      return global_ptr<T>(static_cast<detail::global_address>(static_cast<std::byte*>(at) -
                                                               detail::global_raw<std::byte>(0)));
    }
  const global_ptr<T> p(detail::global_allocate_local(sizeof(T), alignof(T), detail::place::here()));
  *p = T{std::forward<Args>(args)...};
  return p;
}
/// Give back what global_new gave. From any thread, any worker. Null is nothing.
/// Cost: of the calling worker's own likewise; else that of deallocate.
template <class T>
void global_delete(global_ptr<T> p, detail::place where = detail::place::here()) {
  if constexpr (detail::small_object<T>)
    if (detail::give_object<T>(p.address())) [[likely]]
      return;
  detail::free_elsewhere(p.address(), sizeof(T), where.file, where.function, where.line);
}

/// What is allocated now, all homes of the calling worker's host, in bytes; and the limit there. Local.
struct global_usage {
  std::uint64_t used_bytes;
  std::uint64_t limit_bytes;
};
global_usage global_memory_usage() noexcept;

}  // namespace godwit
