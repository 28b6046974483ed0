// on_rank: a function of the ranks' own processes, where calls of MPI are allowed.
//
//   gw::on_rank([](gw::rank, std::span<double> mine) {
//     MPI_Allreduce(MPI_IN_PLACE, mine.data(), int(mine.size()), MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
//   }, gw::global_span<double>(all, n));
//
// Workers are processes that a rank has forked, so that a call of MPI in a thread stops the run. What f needs
// of global memory it gets as plain memory: the part that lies with the rank's workers. docs/cluster.md.
// Tests: tests/global/on_rank_test.cpp, tests/mpi/calls_check.cpp.
#pragma once

#include <godwit/detail/rank_call.hpp>
#include <godwit/detail/values.hpp>
#include <godwit/global_span.hpp>

#include <cstddef>
#include <new>
#include <span>

namespace godwit {

namespace detail {

template <class T>
const T& of_rank(const T& plain_bytes, rank_call&) noexcept {
  return plain_bytes;
}
template <class T>
std::span<T> of_rank(const global_span<T>& all, rank_call& call) noexcept {
  void* begin = nullptr;
  const std::uint64_t bytes = part_of_rank(all.data().address(), all.size() * sizeof(T), &begin, call);
  return {static_cast<T*>(begin), static_cast<std::size_t>(bytes / sizeof(T))};
}

}  // namespace detail

/// Call f(rank, arguments...) once in each rank, in its own process, on an OS thread of its own, and wait for
/// all. The workers go on meanwhile, and messages between hosts are carried. Not in it: anything of the run
/// (spawn, get, global_ptr). Inside a run only; calls of several threads come one after the other, the same
/// one first in all ranks. May migrate the calling thread.
/// @param f, arguments plain bytes, 256 in all as f gets them. A global_span arrives as the std::span of what
///   lies with the workers of that rank, at its beginning in memory; it may be empty. Threads that have
///   written to it must have been joined, as for anything that another thread reads.
/// Throws std::logic_error outside a run; std::runtime_error with the rank and what was thrown if f throws in
/// one (the first one's); and, before anything is called anywhere, if a rank has no workers, if a part is
/// movable or not one range, or if MPI was started with less than MPI_THREAD_MULTIPLE: call MPI_Init_thread
/// with that level before run. Cost: four messages per rank -- it is asked, and answers, twice -- to all at
/// once, so that the round trips in a row are some ten, however many ranks there are; an OS thread each; and
/// the time until the first worker of each looks, which it does at its next spawn when it is busy.
template <class F, class... Args>
void on_rank(const F& f, const Args&... arguments) {
  static_assert(plain<F> && (plain<Args> && ...),
                "godwit: on_rank sends f and its arguments to other processes: they must be plain bytes");
  const auto prepare = [f, ... a = arguments](detail::rank_call& call) {
    const auto here = [f, ... mine = detail::of_rank(a, call)](rank r) { f(r, mine...); };
    using closure = decltype(here);
    static_assert(sizeof(closure) <= detail::rank_call::closure_bytes && alignof(closure) <= 64,
                  "godwit: on_rank: f and its arguments are larger than 256 bytes");
    new (call.closure) std::remove_const_t<closure>(here);
    call.run = [](void* at, rank r) { (*static_cast<closure*>(at))(r); };
  };
  detail::run_on_ranks(
      [](const void* at, detail::rank_call& call) { (*static_cast<const decltype(prepare)*>(at))(call); },
      &prepare, sizeof prepare);
}

}  // namespace godwit
