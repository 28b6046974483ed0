// Waking lightweight threads from OS threads that are no workers: those of signal handlers and of the C
// library's helpers.
#pragma once

#include "seams/park.hpp"

namespace godwit::pthread {

/// Make a suspended thread ready to run. From anywhere.
void resume_waiter(detail::waiter* w, detail::wakes by = detail::wakes::inside) noexcept;

/// Before the run begins.
void install_foreign_wakes() noexcept;

}  // namespace godwit::pthread
