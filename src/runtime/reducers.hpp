// Reducers: see reducers.cpp.
#pragma once

namespace godwit::runtime {

/// The root thread begins: if main has reducers, it is tracked.
void track_for_main() noexcept;

}  // namespace godwit::runtime
