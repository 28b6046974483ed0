#include "io/descriptors.hpp"
namespace godwit::events {
bool descriptors_waited_for() noexcept { return false; }
void descriptor_event(std::uint64_t, std::uint32_t) noexcept {}
bool descriptors_want_a_check(std::uint64_t) noexcept { return false; }
void check_descriptors(std::uint64_t) noexcept {}
void clear_descriptors() noexcept {}
}
