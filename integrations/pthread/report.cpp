// See report.hpp. Without stdio: the caller may hold its locks.
#include "report.hpp"

#include <cstdarg>
#include <cstdio>
#include <cstring>
#include <unistd.h>

namespace godwit::pthread {

namespace {
void say(const char* text) noexcept { static_cast<void>(!::write(2, text, std::strlen(text))); }
}  // namespace

void fail(const char* format, ...) noexcept {
  char text[1024];
  va_list args;
  va_start(args, format);
  std::vsnprintf(text, sizeof text, format, args);
  va_end(args);
  char line[1100];
  std::snprintf(line, sizeof line, "godwit-pthread: %s\n", text);
  say(line);
  _exit(70);
}

void not_supported(bool& said, const char* what, const char* why) noexcept {
  if (__atomic_exchange_n(&said, true, __ATOMIC_RELAXED)) return;
  char line[512];
  std::snprintf(line, sizeof line, "godwit-pthread: %s is not supported: %s\n", what, why);
  say(line);
}

}  // namespace godwit::pthread
