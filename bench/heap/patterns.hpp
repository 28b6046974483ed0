// How programs allocate, as loops over an allocator: what bench/heap measures. Allocator: as in
// ../common/allocators.hpp.
#pragma once

#include "../common/shared_page.hpp"

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <new>
#include <random>
#include <thread>
#include <utility>
#include <vector>

namespace heap_bench {

enum pattern : int { pairs, batches, mixed, handed_on, server, patterns };
inline constexpr const char* pattern_names[patterns] = {
    "40 bytes, freed at once", "1,000 of 40 bytes, then freed", "8 to 8,000 bytes, replaced at random",
    "64 bytes, freed by the next worker", "8 to 500 bytes, replaced by all workers"};
inline constexpr unsigned most_workers = 64;
inline constexpr int batch = 1000, places = 4096;

/// What the workers of a run share, whoever they are.
struct board {
  std::atomic<unsigned> arrived[64];
  void* handed[most_workers][batch];
  std::atomic<void*> slots[places];
  double ns[most_workers];  ///< of each worker, per malloc and free

  /// All @p workers are here; @p phase counts up from 0.
  void meet(unsigned phase, unsigned workers) {
    arrived[phase].fetch_add(1, std::memory_order_acq_rel);
    while (arrived[phase].load(std::memory_order_acquire) < workers) std::this_thread::yield();
  }
};

inline void use(void* p) {
  *static_cast<volatile char*>(p) = 1;  // as anybody does who asks for memory
}

inline std::size_t some_bytes(std::minstd_rand& random) {
  const auto how = random() % 100;
  return 8 + random() % (how < 80 ? 300 : how < 97 ? 2000 : 7992);
}

template <class Allocator>
void one_worker(board& b, pattern p, unsigned me, unsigned workers, int rounds) {
  using clock = std::chrono::steady_clock;
  std::minstd_rand random(me + 1);
  b.meet(0, workers);
  const auto start = clock::now();
  double operations = 0, waited_ns = 0;
  switch (p) {
    case pairs:
      for (int i = 0; i < rounds * batch; ++i) {
        void* const at = Allocator::allocate(40);
        use(at);
        Allocator::release(at);
      }
      operations = static_cast<double>(rounds) * batch;
      break;
    case batches: {
      std::array<void*, batch> at;
      for (int i = 0; i < rounds; ++i) {
        for (void*& q : at) use(q = Allocator::allocate(40));
        for (void* const q : at) Allocator::release(q);
      }
      operations = static_cast<double>(rounds) * batch;
      break;
    }
    case mixed: {
      std::array<void*, places> at{};
      for (int i = 0; i < rounds * batch; ++i) {
        void*& q = at[random() % places];
        Allocator::release(q);
        use(q = Allocator::allocate(some_bytes(random)));
      }
      for (void* const q : at) Allocator::release(q);
      operations = static_cast<double>(rounds) * batch;
      break;
    }
    case handed_on: {
      // One round trip a phase: fill the own place, free the neighbour's.
      const int turns = std::min(rounds, 30);
      for (int i = 0; i < turns; ++i) {
        for (void*& q : b.handed[me]) use(q = Allocator::allocate(64));
        const auto before = clock::now();
        b.meet(static_cast<unsigned>(2 * i + 1), workers);
        waited_ns += std::chrono::duration<double, std::nano>(clock::now() - before).count();
        for (void* const q : b.handed[(me + 1) % workers]) Allocator::release(q);
        const auto then = clock::now();
        b.meet(static_cast<unsigned>(2 * i + 2), workers);
        waited_ns += std::chrono::duration<double, std::nano>(clock::now() - then).count();
      }
      operations = static_cast<double>(turns) * batch;
      break;
    }
    case server:
      for (int i = 0; i < rounds * batch; ++i) {
        void* const at = Allocator::allocate(8 + random() % 493);
        use(at);
        void* const old = b.slots[random() % places].exchange(at, std::memory_order_acq_rel);
        if (old != nullptr) Allocator::release(old);
      }
      operations = static_cast<double>(rounds) * batch;
      break;
    case patterns:
      break;
  }
  const double ns = std::chrono::duration<double, std::nano>(clock::now() - start).count() - waited_ns;
  b.ns[me] = ns / operations;
}

/// One large block, and a list of many small ones: what the pages themselves cost.
struct touched {
  double touch_s, walk_s;
};
inline touched touch(std::size_t bytes) {
  using clock = std::chrono::steady_clock;
  const auto seconds = [](clock::time_point from) {
    return std::chrono::duration<double>(clock::now() - from).count();
  };
  touched t{};
  auto start = clock::now();
  auto* const large = static_cast<char*>(std::malloc(bytes));
  for (std::size_t i = 0; i < bytes; i += 4096) use(large + i);
  t.touch_s = seconds(start);
  std::free(large);
  struct node {
    node* next;
    std::uint64_t value[3];
  };
  node* first = nullptr;
  for (std::size_t i = 0; i < bytes / sizeof(node); ++i)
    first = new (std::malloc(sizeof(node))) node{first, {i, 0, 0}};
  start = clock::now();
  std::uint64_t sum = 0;
  for (const node* n = first; n != nullptr; n = n->next) sum += n->value[0];
  t.walk_s = seconds(start);
  for (node* n = first; n != nullptr;) std::free(std::exchange(n, n->next));
  if (sum == 0) t.walk_s = -1;  // it was read
  return t;
}

/// After the run of a pattern, where its memory is: what is left.
template <class Allocator>
void free_rest(board& b) {
  for (auto& slot : b.slots)
    if (void* const at = slot.exchange(nullptr)) Allocator::release(at);
}

}  // namespace heap_bench
