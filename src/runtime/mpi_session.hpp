// The ranks of this job: MPI started once per process, who is on which host, whether all of them fit
// together.
//
// A session begins with the first run on the substrate mpi and lasts until the process exits. See
// run_mpi.cpp.
#pragma once

#include "runtime/placement.hpp"
#include "transport/mpi/component.hpp"
#include "transport/mpi/selftest.hpp"

#include <godwit/options.hpp>

#include <algorithm>
#include <array>
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace godwit::runtime {

class mpi_session {
 public:
  /// The session of this process; made at the first call, which is collective. Throws std::runtime_error: no
  /// component, MPI does not start, ranks that do not fit together.
  static mpi_session& get(const options& opts);

  const transport::mpi::component& mpi() const noexcept { return *mpi_; }
  int rank() const noexcept { return world_.rank; }
  int size() const noexcept { return world_.size; }
  const transport::mpi::world& world() const noexcept { return world_; }
  const machine_table& machines() const noexcept { return machines_; }
  /// The first rank on the machine of @p rank.
  int first_beside(int rank) const noexcept { return machines_.first_rank[machine_of(rank)]; }
  const char* host_name(int rank) const noexcept { return host_names_[machine_of(rank)].data(); }
  /// "rank 3 (node7)"
  std::string who(int rank) const;
  /// @p text, which may begin with "godwit: ", as said by @p rank.
  std::string said_by(int rank, std::string_view text) const;
  std::uint32_t next_epoch() noexcept { return ++epoch_; }
  /// The measured link to the first rank on another host; measured once. Collective.
  const transport::mpi::link_quality& link(int partner, bool with_rma);
  bool announced = false;  ///< the line about the connection has been printed

  /// Wait until all ranks are here, without using the CPU much; says so when that takes long. Collective.
  /// Throws if some of them came here because their program ends (@p leaving), or with another @p root.
  void meet(bool leaving, std::uintptr_t root = 0);
  /// Collective: throws in all ranks, with the same text, if @p problem is not empty in any:
  /// invalid_argument if it is @p of_options, else runtime_error.
  void agree(const std::string& problem, bool of_options = false) const;
  /// Collective: do @p step in all ranks; if it throws in one, throw in all.
  void together(const std::function<void()>& step) const;
  /// Collective: each of @p words becomes what it is in all ranks together.
  void reduce(std::span<std::uint64_t> words, transport::mpi::reduction how) const;
  /// Collective: for each of @p mine the first rank where it holds; size() if in none.
  template <std::size_t N>
  std::array<int, N> first_where(const std::array<bool, N>& mine) const {
    std::array<std::uint64_t, N> ranks;
    for (std::size_t i = 0; i < N; ++i) ranks[i] = static_cast<std::uint64_t>(mine[i] ? rank() : size());
    reduce(ranks, transport::mpi::reduction::least);
    std::array<int, N> first;
    std::copy(ranks.begin(), ranks.end(), first.begin());
    return first;
  }
  /// Collective: the same for one word.
  std::uint64_t reduce(std::uint64_t word, transport::mpi::reduction how) const {
    reduce(std::span(&word, 1), how);
    return word;
  }
  /// Collective: in the first rank everybody's @p mine, by rank; empty in the others. Plain bytes.
  template <class T>
  std::vector<T> gather(const T& mine) const {
    std::vector<T> all(rank() == 0 ? static_cast<std::size_t>(size()) : 0);
    check(mpi_->gather(&mine, all.data(), sizeof mine, 0), "gather");
    return all;
  }
  /// Collective: rank @p root 's @p mine. Plain bytes.
  template <class T>
  T share(T mine, int root = 0) const {
    check(mpi_->bcast(&mine, sizeof mine, root), "broadcast");
    return mine;
  }
  /// Collective: rank @p root 's text, or vector of bytes.
  template <class Bytes>
  Bytes share_bytes(const Bytes& mine, int root) const {
    std::uint64_t bytes = mine.size();
    check(mpi_->bcast(&bytes, sizeof bytes, root), "broadcast");
    Bytes all = rank() == root ? mine : Bytes(bytes, typename Bytes::value_type{});
    constexpr std::uint64_t piece = std::uint64_t{1} << 29;
    for (std::uint64_t done = 0; done < bytes; done += piece)
      check(mpi_->bcast(all.data() + done, std::min(piece, bytes - done), root), "broadcast");
    return all;
  }
  /// Collective: a line, once, if main has allocated more in some ranks than in others before MPI began.
  void tell_unequal_mains();
  /// One message; back when it has left, or is here.
  void send(const void* data, std::size_t bytes, int to, int tag) const;
  void receive(void* data, std::size_t bytes, int from, int tag) const;
  void check(int code, const char* what) const;
  /// The job cannot be ended in order any more: do not finalize at exit.
  void give_up() noexcept { tainted_ = true; }

 private:
  mpi_session() = default;
  void start(const options& opts);
  void compare_layouts() const;
  void meet_machines();
  [[noreturn]] void throw_left() const;
  void finish(transport::mpi::operation op, const char* what) const;
  std::size_t machine_of(int rank) const noexcept {
    return machines_.of_rank[static_cast<std::size_t>(rank)];
  }
  static void at_exit(int status, void*);

  const transport::mpi::component* mpi_ = nullptr;
  transport::mpi::world world_;
  using name = std::array<char, 64>;
  machine_table machines_;
  std::vector<name> host_names_;   // by machine
  std::int64_t pid_ = 0;           // of this process; that of a child differs
  std::uint64_t mains_bytes_ = 0;  // that main had allocated before MPI began; 0: not known, or told
  std::uint32_t epoch_ = 0;
  bool tainted_ = false;
  std::optional<int> left_;                           ///< this rank has ended: no more meetings
  std::optional<transport::mpi::link_quality> link_;  // as measured
  bool link_with_rma_ = false;
};

/// Rank 0 has left, and this rank is the first that is still there: it says what rank 0 would say.
bool speaks_instead_of_first_rank() noexcept;

}  // namespace godwit::runtime
