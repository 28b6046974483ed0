// Encode and decode exceptions; used by entry points and by run. See exception.cpp.
#pragma once

#include <godwit/codec.hpp>

namespace godwit::detail {

/// Append the exception being handled. Inside a handler only.
void encode_current_exception(writer& w);
/// Throw what encode_current_exception wrote.
[[noreturn]] void throw_encoded(reader& r);

}  // namespace godwit::detail
