// Bytes of other hosts, fetched or written in few messages: small ones of one host travel together.
//
// Called by access.cpp (gather, scatter) and cache_transfer.cpp. Tests: tests/global under MPI.
#pragma once

#include "gas/directory.hpp"

#include <cstdint>
#include <span>
#include <vector>

namespace godwit::gas {

/// A range that one other host owns, and the memory here that it is copied to or from.
struct part {
  std::uint32_t host;
  global_address at;
  std::uint64_t bytes;
  std::byte* here;
  place_words* words = nullptr;  ///< movable: of its place, and `host` is a guess
  std::uint32_t home = 0;        ///< movable
  bool sent_on = false;          ///< movable: `host` is a better guess than before
  std::uint8_t redirects = 0;    ///< movable: how often it was sent on
  /// movable: whether who is asked next was found among translations, and was not asked yet
  enum class guesses : std::uint8_t { none, unknown, known } guess = guesses::none;
  std::uint64_t version = 0;  ///< movable: of what led to `host`
  part(const reach& net, const piece& p, std::byte* h) noexcept
      : host(net.host_of(p.owner)), at(p.at), bytes(p.bytes), here(h), words(p.words), home(p.home) {}

  gas::place place(const reach& net) const noexcept { return {*words, net.is_near(home)}; }
  far_place name(const reach& net) const noexcept {
    return {reinterpret_cast<std::uint64_t>(words), home, net.my_host(), redirects};
  }
  /// @p owner: a worker of `host`.
  piece as_piece(std::uint32_t owner) const noexcept { return {owner, at, bytes, words, home}; }
  /// Movable: whom to ask.
  void guess_from(const reach& net, ownership o) noexcept {
    host = net.host_of(o.worker);
    version = o.version;
  }
  /// It is not to be had where it was asked for: where to ask next.
  void follow(const reach& net, const place_answer& said) noexcept;
};
std::uint64_t bytes_of(const std::vector<part>& parts) noexcept;
/// As many bytes of a range travel with others in a message; more come or go by themselves.
inline constexpr std::uint64_t largest_packed = transport::far::inline_bytes / 2;

/// All of them are here when it returns, but what @p left gets: movable ones that may not be used now
/// (docs/protocols/move.md). Waits for answers only. Sorts them, and joins those that touch. How many
/// requests it took.
std::uint64_t fetch(const reach& net, std::vector<part>& parts, std::vector<part>& left) noexcept;
/// All of them are there when it returns. The same else.
std::uint64_t write(const reach& net, std::vector<part>& parts, std::vector<part>& left) noexcept;

// parts_movable.cpp. The same for movable memory alone.
std::uint64_t fetch_places(const reach& net, std::vector<part>& parts, std::vector<part>& left) noexcept;
std::uint64_t write_places(const reach& net, std::vector<part>& parts, std::vector<part>& left) noexcept;
/// One message to who is believed to have the place of @p p. The value before goes to @p before.
place_answer atomic_at(const reach& net, part& p, atomic_function f, unsigned width, std::uint64_t operand,
                       std::uint64_t expected, std::uint64_t& before) noexcept;

/// Who has it, if it is where @p p believes. The answer is done with the owner, or as for others.
place_answer owner_at(const reach& net, part& p) noexcept;
/// One of a mover's calls, to @p host; an answer for each of @p moves.
void call_places(const reach& net, std::uint32_t host, place_call what, std::span<const far_move> moves,
                 place_answer* answers) noexcept;

/// Between two times of asking for what may not be used now: some microseconds and more each time, in which
/// other hosts are served.
class later {
 public:
  explicit later(const reach& net) noexcept : net_(net) {}
  void wait() noexcept;

 private:
  const reach& net_;
  std::uint64_t ns_ = first_ns;
  static constexpr std::uint64_t first_ns = 2'000, most_ns = 200'000;
};

/// The same for an access, which is counted and seen if it has to wait at all.
class part_wait {
 public:
  explicit part_wait(const reach& net) noexcept : net_(net), more_(net) {}
  part_wait(const part_wait&) = delete;
  ~part_wait() {
    if (since_ns_ != 0) [[unlikely]]
      ended();
  }
  /// @p at: of what is waited for; 0: several.
  void wait(global_address at) noexcept;
  /// Unless one of @p left was sent on: that is asked for again at once.
  void wait_for(const std::vector<part>& left) noexcept;

 private:
  void ended() noexcept;

  const reach& net_;
  later more_;
  std::uint64_t since_ns_ = 0;  ///< 0: it has not waited
  global_address at_ = 0;
};

}  // namespace godwit::gas
