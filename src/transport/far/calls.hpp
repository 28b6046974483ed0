// Calls: what a higher layer does at the home of what it asks about, in one go instead of word by word
// (op::call and op::cast of requests.hpp).
//
// A layer names its calls and has a handler for each; it enters them into the tables of the places where
// calls are carried out, which the runtime makes: the companion (ways server and assist) and each worker (way
// am). Layers do not know each other's calls, and nobody here knows any. The number that travels is made of
// the name at compile time: whatever else is entered, and in whatever order, all ranks agree on it.
// docs/protocols/far.md. Test: tests/transport/calls_test.cpp.
#pragma once

#include "transport/far/requests.hpp"

#include <string_view>
#include <vector>

namespace godwit::transport::far {

/// The number of the call @p name, "layer.what" (FNV-1a).
consteval std::uint64_t call_number(std::string_view name) noexcept {
  std::uint64_t h = 0xcbf29ce484222325;
  for (const char c : name) h = (h ^ static_cast<unsigned char>(c)) * 0x100000001b3;
  return h;
}

/// Gives room for the bytes of an answer that do not fit into the entry; valid until the answer has left.
struct answer_room {
  std::byte* (*get)(void* arg, std::size_t bytes) noexcept;
  void* arg;
  std::byte* operator()(std::size_t bytes) const noexcept { return get(arg, bytes); }
};

class call_table {
 public:
  /// Carries out @p e, whose argument is head.b, at its target's host. Fills in head.result, info, bytes,
  /// local and more[1], which are 0; info and bytes that fit lie in e.data. Gives back where the bytes are:
  /// null if in e.data. Local: it waits for nobody. @p place: as entered. Who is not the one to ask may name
  /// a worker of another host in head.target instead: then that one is asked, with what is in e.data, and
  /// answers.
  using handler = std::byte* (*)(void* place, entry& e, const answer_room& room) noexcept;

  void enter(std::uint64_t number, handler f, void* place);
  /// @p e: its op is call or cast. An unknown number ends the run.
  std::byte* carry_out(entry& e, const answer_room& room) const noexcept;

 private:
  struct row {
    std::uint64_t number;
    handler f;
    void* place;
  };
  std::vector<row> rows_;
};

}  // namespace godwit::transport::far
