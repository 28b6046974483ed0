// What the drop-in says to the user, all of it on standard error.
#pragma once

namespace godwit::pthread {

/// "godwit-pthread: ..." and the end of the process, with status 70.
[[noreturn, gnu::format(printf, 1, 2)]] void fail(const char* format, ...) noexcept;

/// "godwit-pthread: WHAT is not supported: WHY", once for each @p said.
void not_supported(bool& said, const char* what, const char* why) noexcept;

}  // namespace godwit::pthread
