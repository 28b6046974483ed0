// Which workers share a host, asked of the workers themselves, and work that one certain worker has to do.
// For programs on movable memory, whose counters are those of one worker. Used by put_latency and
// translations.
#pragma once

#include <cstdint>
#include <godwit/godwit.hpp>

namespace parts {

namespace gw = godwit;

/// The first worker of each host, as far as they fit; worker 0's host is the first.
struct host_list {
  static constexpr std::uint32_t most = 64;
  std::uint32_t count = 0;
  std::uint32_t first[most] = {};
};

/// In a run.
inline host_list find_hosts() {
  constexpr std::uint64_t block = 4096, words = block / sizeof(std::uint64_t);
  const std::uint32_t workers = gw::worker_count();
  const auto probe = gw::allocate<std::uint64_t>(workers * words, gw::distribution::blocked(block));
  const auto answers = gw::allocate<std::uint64_t>(workers, gw::distribution::at(0));
  gw::on_each_worker([=] {
    std::uint32_t w = 0;
    while (gw::try_local(probe + static_cast<std::ptrdiff_t>(w * words), 1) == nullptr) ++w;
    gw::put(answers + gw::worker_id(), w);
  });
  host_list all;
  for (std::uint32_t w = 0; w < workers && all.count < host_list::most; ++w)
    if (gw::get(answers + w) == w) all.first[all.count++] = w;
  gw::deallocate(probe, workers * words);
  gw::deallocate(answers, workers);
  return all;
}

/// f() on worker @p w, inside whatever runs there; gives back its result, plain bytes. In a run.
template <class F>
auto on_worker(std::uint32_t w, const F& f) {
  using result = std::invoke_result_t<F>;
  const auto at = gw::allocate<result>(1, gw::distribution::at(w));
  gw::on_each_worker([=] {
    if (gw::worker_id() == w) gw::put(at, f());
  });
  const result r = gw::get(at);
  gw::deallocate(at, 1);
  return r;
}

}  // namespace parts
