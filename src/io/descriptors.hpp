// Descriptors that threads wait for, as events.cpp sees them. docs/protocols/events.md, "Descriptors".
#pragma once

#include <cstdint>

namespace godwit::events {

/// Does any thread wait for a descriptor? Any worker; one load.
bool descriptors_waited_for() noexcept;
/// Something happened to the descriptor that @p tag names (epoll's data). By the worker that collected.
void descriptor_event(std::uint64_t tag, std::uint32_t what) noexcept;
/// Now and then whoever waits long is looked at: perhaps its descriptor was closed behind our back. By the worker that collected.
bool descriptors_want_a_check(std::uint64_t now) noexcept;
void check_descriptors(std::uint64_t now) noexcept;
/// Forget all: the run is over.
void clear_descriptors() noexcept;

}  // namespace godwit::events
