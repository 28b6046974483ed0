// Encode and decode exceptions; used by entry points and by run. See exception.cpp.
#pragma once

#include <godwit/codec.hpp>

namespace godwit::detail {

/// Append the exception being handled. Inside a handler only.
void encode_current_exception(writer& w);
/// Throw what encode_current_exception wrote.
[[noreturn]] void throw_encoded(reader& r);
/// Throw what capture_exception put into a record. @p done: before that, when @p p is needed no more.
[[noreturn]] void throw_captured(const payload& p, void (*done)(ref), ref record);

}  // namespace godwit::detail
