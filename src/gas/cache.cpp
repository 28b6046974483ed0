// See cache.hpp.
#include "gas/cache.hpp"

namespace godwit::gas {

bool cache::checkout(global_address, std::uint64_t, detail::access_mode) { return false; }
void cache::checkin(global_address, std::uint64_t, detail::access_mode) noexcept {}
bool cache::read(global_address, void*, std::size_t) noexcept { return false; }
void cache::written(global_address, const void*, std::size_t) noexcept {}
void cache::drop(global_address, std::size_t) noexcept {}
void cache::write_back() noexcept {}
void cache::check_invariants() const noexcept {}

}  // namespace godwit::gas
