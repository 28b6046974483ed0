// Why a worker died, in words. The same on all substrates: told by the supervisor, or by the dying worker
// itself where all are threads of one process -- in a handler of the signal, so most of it does not allocate.
// Called by: family.cpp, faults.cpp. Tests: tests/api/fault_test.cpp,
// tests/api/death_test.cpp.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

namespace godwit::runtime {

struct cause_of_death {
  std::uint64_t address = 0;  ///< that was accessed
  std::uint64_t code = 0;     ///< by this instruction; 0: not known, then address means nothing
  std::uint64_t sender = 0;   ///< 1 + the number of the process that sent the signal; 0: not known
  std::uint64_t user = 0;     ///< whose process that is
  std::uint64_t self = 0;     ///< the process that died
  /// That code and its callers, the innermost first, without those of the C library; 0: no more.
  std::uintptr_t frames[8] = {};
};

/// " was killed by signal 11 (Segmentation fault) at address 0x8", cut off at @p size. Gives back its length.
int describe_signal(char* text, std::size_t size, int signal, const cause_of_death& why) noexcept;

/// ", which process 12 (bash) of user 0 sent"; of process @p self: ", which it sent to itself". Gives back
/// its length.
int describe_sender(char* text, std::size_t size, std::uint64_t sender, std::uint64_t user,
                    std::uint64_t self) noexcept;

/// "f (program+0x11f3)"
int describe_code(char* text, std::size_t size, std::uint64_t code) noexcept;

/// ", in f (file.cpp:12), called at file.cpp:20, main.cpp:7" where there is debug information; else ", in f
/// (program+0x11f3)"; nothing if the code is not known. Not for handlers of signals: allocates, and takes as
/// long as base::code_place.
std::string describe_place(const cause_of_death& why);

}  // namespace godwit::runtime
