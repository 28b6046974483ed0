// See check.hpp.
#include "base/check.hpp"

#include <cstdarg>
#include <cstdio>
#include <unistd.h>

namespace godwit::base {

namespace {
fatal_hook hook_ = nullptr;
}

void set_fatal_hook(fatal_hook hook) noexcept { hook_ = hook; }

void fatal(const char* format, ...) noexcept {
  char text[2048];
  va_list args;
  va_start(args, format);
  std::vsnprintf(text, sizeof text, format, args);
  va_end(args);
  if (hook_ != nullptr)
    hook_(text);
  else
    std::fprintf(stderr, "godwit: %s\n", text);
  _exit(status_failed);
}

}  // namespace godwit::base
